"""Whether a changed figure contradicts another figure of its table, by arithmetic of its own.

Nothing here is taken from the audit but where cells are and what kind of layer a row names. A row
is explained if some kernel, stride, padding, groups and bias that it does not print give all of its
figures, from the output of an earlier row (of the row above in a chain).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from msgspec import Struct

from layerscope.sheets.sheet import Sheet

Shape = tuple[int, int, int]  # channels, height, width
Range = tuple[float, float]
SAME = ("activation", "prelu", "batch_norm", "norm", "lrn", "scale", "dropout", "softmax")
POOLS = ("max_pool", "avg_pool", "pool")
POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "B": 3, "T": 4}
NUMBER = re.compile(r"(\d[\d,]*)(?:\.(\d+))?\s*([KMGTkmgt](?![a-z]))?")
BACK = 40  # earlier rows that may be the input in a network with branches
TINY = 1e-9
# heading -> quantity, for headings that have one number; others are read by `_cell`
COUNTS = {
    "memory(b)": "elements", "memory": "elements", "data mem": "elements", "mem": "elements",
    "number of activations (memory)": "elements", "memory(mb)": "elements",
    "params": "params", "param #": "params", "param mem": "params", "weights": "params",
    "parameters (compute)": "params", "bf": "macs", "macc": "macs", "flops": "macs",
    "madd": "macs", "ratio": "share", "rf size": "field", "rf stride": "jump",
    "rf offset": "offset", "memwrite(b)": "written", "memread(b)": "read", "memr+w(b)": "moved",
    "activation": "elements", "param": "params", "comp": "pooled", "add": "pooled",
}  # fmt: skip
SIZES = {
    "ksize": ("kh", "kw"), "support": ("kh", "kw"), "patch size (height)": ("kh",),
    "patch size (width)": ("kw",), "stride": ("sh", "sw"), "stride (height)": ("sh",),
    "stride (width)": ("sw",), "pad": ("ph", "pw"), "padding": ("ph", "pw"),
    "channel": ("c",), "data depth": ("c",), "output size (channel)": ("c",), "filters": ("c",),
    "num filts": ("c",), "filt dim": ("per_group",), "data size": ("h", "w"),
    "output size (height)": ("h",), "output size (width)": ("w",), "data num": ("n",),
    "input ch": ("c_in",), "output ch": ("c",), "filt dilat": ("d",),
}  # fmt: skip
UNITS = (1.0, 4.0, 2.0, 1e-9, 2e-9, 1 / 2**20, 4 / 2**20)  # of a count in its column


class Facts(Struct):
    """What the cells of one row say: sizes, and quantities as ranges."""

    kind: str
    sizes: dict[str, int]
    again: list[tuple[str, int]]  # sizes that the row says twice
    counts: dict[str, Range]
    exact: dict[str, tuple[float, float]]  # formulas: what they give, and what is printed for it


def facts(sheet: Sheet, last: bool) -> list[Facts]:
    """The facts of every row; `last`: shapes have their channels last."""
    headings = [re.sub(r"[*`_]", "", cell.text).lower() for cell in sheet.table.heading.cells]
    found = []
    for row in sheet.rows:
        one = Facts(row.kind, {}, [], {}, {})
        for heading, cell in zip(headings, row.cells, strict=False):
            for name, value in _cell(heading, cell.text.replace("\\", ""), last):
                if isinstance(value, int):
                    if name in one.sizes:
                        one.again.append((name, value))
                    one.sizes.setdefault(name, value)
                elif name.startswith("="):
                    one.exact[heading] = value
                else:
                    one.counts[name] = value
        found.append(one)
    return found


def _cell(heading: str, text: str, last: bool) -> Iterator[tuple[str, int | Range]]:
    numbers = [int(n) for n in re.findall(r"(?<![\d.])-?\d+", text)]
    if heading in SIZES and len(numbers) == 1:
        for name in SIZES[heading]:
            yield name, numbers[0]
    elif heading in ("size/strd(dil)", "size/strd") and len(numbers) >= 3:
        yield from zip(("kh", "kw", "sh", "sw"), (*numbers[:3], numbers[2]), strict=True)
    elif heading in ("size", "input dim", "output dim") and numbers:
        side = "_in" if "input" in heading else ""
        yield from ((f"h{side}", numbers[0]), (f"w{side}", numbers[-1]))
    elif heading in ("output shape", "input shape", "input", "output", "shape") and numbers:
        yield from _shape(heading, text, numbers, last)
    elif heading in ("ops", "mem") and re.match(r"[a-z]", text):
        for part in re.split(r"<br>", text):
            word, _, number = part.replace("\t", " ").partition(" ")
            if word in COUNTS and (found := span(number)):
                yield COUNTS[word], found
    elif heading in COUNTS:
        left, equals, right = text.partition("=")
        found = span(right if equals else text)
        if found is not None:
            yield COUNTS[heading], found
        if re.fullmatch(r"[\d\s*()]+", left) and "*" in left:
            value = float(prod(map(int, re.findall(r"\d+", left))))
            yield f"={heading}", (value, value)
            yield f"formula {COUNTS[heading]}", (value, value + TINY)
            if equals and found is not None:
                yield f"={heading}", (value, found[0])
                yield f"printed {COUNTS[heading]}", found


def _shape(heading: str, text: str, numbers: list[int], last: bool) -> Iterator[tuple[str, int]]:
    side = "_in" if "input" in heading else ""
    if text.lstrip("[( ").startswith(("-", "None")):
        numbers = numbers[1:] if text.lstrip("[( ").startswith("-") else numbers
    elif text.startswith("[") and "," in text:
        yield "n", numbers[0]
        numbers = numbers[1:]
    if len(numbers) == 3:
        c, h, w = (numbers[2], *numbers[:2]) if last else tuple(numbers)
        yield from ((f"c{side}", c), (f"h{side}", h), (f"w{side}", w))
    elif len(numbers) == 1:
        yield from ((f"c{side}", numbers[0]), (f"h{side}", 1), (f"w{side}", 1))


def span(text: str) -> Range | None:
    """What a printed number may stand for, rounded or cut, by 1000 or by 1024."""
    match = NUMBER.search(text)
    if match is None:
        return None
    digits, part, prefix = match[1].replace(",", ""), match[2] or "", (match[3] or "").upper()
    value, step = float(f"{digits}.{part or 0}"), 10.0 ** -len(part)
    power = POWERS.get(prefix, 0)
    if not part and not power and "~" not in text:
        return value, value + TINY
    if prefix and not part:
        step *= 10 ** (len(digits) - len(digits.rstrip("0")))
    if "~" in text:
        step *= 2
    low, high = value - step / 2 - TINY, value + step + TINY
    return low * 1000.0**power, high * 1024.0**power


def steps(room: int, step: int) -> tuple[int, ...]:
    return () if room < 0 or step < 1 else (room // step + 1, -(-room // step) + 1)


def window(sizes: dict[str, int], axis: str, kernel: int, pool: bool) -> bool:
    """Whether a window gives the output of an axis, by the stride and padding that are printed."""
    got, out = sizes.get(f"{axis}_in"), sizes.get(axis)
    if got is None or out is None:
        return True
    reach = sizes_reach(sizes, kernel)
    strides = [sizes[f"s{axis}"]] if f"s{axis}" in sizes else range(1, 5)
    pads = [sizes[f"p{axis}"]] if f"p{axis}" in sizes else range(kernel // 2 + 1)
    return any(
        out in steps(got + pad + other - reach, stride)[: 2 if pool else 1]
        for stride in strides
        for pad in pads
        for other in ({pad, pad - 1} if pool and pad else {pad})
    )


def explained(one: Facts, source: Shape | None, rules: Sequence[str]) -> bool:
    """Whether some kernel, groups and bias explain a row with that input."""
    sizes = dict(one.sizes)
    if any(sizes[name] != value for name, value in one.again):
        return False
    if source is not None and not _takes(sizes, source):
        return False
    c = sizes.get("c")
    if one.kind in SAME:
        same = all(sizes.get(a, 0) == sizes.get(f"{a}_in", sizes.get(a, 0)) for a in "chw")
        flat = sizes.get("c") == prod(sizes.get(f"{a}_in", 0) for a in "chw")
        if not same and not flat:
            return False
    if one.kind in POOLS and c is not None and sizes.get("c_in", c) != c:
        return False
    if not _elements(one, sizes, rules):
        return False
    if one.kind not in ("conv", "depthwise", "fc", *POOLS):
        return True
    if one.kind == "fc":
        return _learned(one, sizes, (1, 1, 1), rules)
    kernels = (
        [(sizes["kh"], sizes["kw"])] if "kh" in sizes and "kw" in sizes
        else [(k, k) for k in range(1, 12)] + [(1, 3), (3, 1), (1, 7), (7, 1)]
    )  # fmt: skip
    groups = (
        (1,) if one.kind in POOLS else tuple(dict.fromkeys((1, sizes.get("c_in", 1), 2, 4, 32)))
    )
    for (high, wide), group in product(kernels, groups):
        if not window(sizes, "h", high, one.kind in POOLS) or not window(
            sizes, "w", wide, one.kind in POOLS
        ):
            continue
        if one.kind in POOLS or _learned(one, sizes, (high, wide, group), rules):
            return True
    return False


def _takes(sizes: dict[str, int], source: Shape) -> bool:
    """Give a row its input; False if it prints another one."""
    printed = tuple(sizes.get(f"{axis}_in") for axis in "chw")
    if None not in printed and printed[1:] == (1, 1) and printed[0] == prod(source):
        return True
    for axis, size in zip("chw", source, strict=True):
        if sizes.setdefault(f"{axis}_in", size) != size:
            return False
    return True


def _elements(one: Facts, sizes: dict[str, int], rules: Sequence[str]) -> bool:
    out = [sizes.get(axis) for axis in "chw"]
    for name in ("elements", "formula elements", "printed elements", "written"):
        if name not in one.counts or None in out:
            continue
        number = prod(n for n in out if n is not None) * sizes.get("n", 1)
        if not _meets(number, one.counts[name], name, rules):
            return False
    return True


def _learned(
    one: Facts, sizes: dict[str, int], kernel: tuple[int, int, int], rules: Sequence[str]
) -> bool:
    """Parameters and operations of a convolution or a fully connected layer."""
    got = [sizes.get(name) for name in ("c_in", "c")]
    if None in got:
        return True
    inner, outer = (n for n in got if n is not None)
    area = prod(sizes.get(axis, 1) for axis in "hw")
    if one.kind == "fc":
        inner *= prod(sizes.get(f"{axis}_in", 1) for axis in "hw") if area == 1 else 1
    if not outer or inner % kernel[2]:
        return False
    if "per_group" in sizes and sizes["per_group"] * kernel[2] != inner:
        return False
    for bias in (0, 1):
        weights = prod(kernel[:2]) * inner // kernel[2] * outer
        learned = weights + bias * outer
        names = ("params", "formula params", "printed params")
        if not all(
            name not in one.counts or _meets(learned, one.counts[name], name, rules)
            or (name != "params" and _meets(weights, one.counts[name], name, rules))
            for name in names
        ):  # fmt: skip
            continue
        if "macs" not in one.counts or any(
            _meets(n * area, one.counts["macs"], "macs", rules) for n in (weights, learned)
        ):
            return True
    return False


def _meets(number: float, printed: Range, name: str, rules: Sequence[str]) -> bool:
    """Whether a number is printed so, in a unit in which the right table prints it."""
    units = [float(rule.split()[-1]) for rule in rules if rule.rsplit(" ", 1)[0] == name]
    return not units or any(printed[0] <= number * unit < printed[1] for unit in units)


class Table(Struct):
    """The facts of the right table, and by which rules each row is explained."""

    rows: list[Facts]
    chain: bool
    rules: list[str]

    @classmethod
    def of(cls, sheet: Sheet, last: bool, chain: bool) -> Table:
        rows = facts(sheet, last)
        best: list[str] = []
        table = cls(rows, chain, [])
        for name in ("elements", "formula elements", "printed elements", "written", "params",
                     "formula params", "printed params", "macs"):  # fmt: skip
            having = [n for n, row in enumerate(rows) if name in row.counts]
            for unit in UNITS:
                rule = f"{name} {unit}"
                right = sum(table.holds(n, [rule]) for n in having)
                if having and right * 10 >= len(having) * 8:
                    best.append(rule)
                    break
        table.rules = best
        return table

    def holds(self, at: int, rules: Sequence[str]) -> bool:
        """Whether a row is explained by an earlier one."""
        row = self.rows[at]
        if row.kind == "total":
            return True
        sources: list[Shape | None] = list(self._sources(at))
        return any(explained(row, source, rules) for source in sources or [None])

    def _sources(self, at: int) -> Iterator[Shape]:
        for n in range(at - 1, max(-1, at - 1 - BACK), -1):
            found = self.shape(n)
            if found is not None:
                yield found
            if self.chain:
                return

    def biases(self) -> int:
        """One for each output channel of a convolution or fully connected layer."""
        learned = [n for n, row in enumerate(self.rows) if row.kind in ("conv", "fc")]
        shapes = [self.shape(n) for n in learned]
        return sum(shape[0] for shape in shapes if shape is not None)

    def shape(self, at: int) -> Shape | None:
        """The output of a row; what it does not print is as in the row above, in a chain."""
        row = self.rows[at]
        sizes = [row.sizes.get(axis) for axis in "chw"]
        if None in sizes and self.chain and at:
            before = self.shape(at - 1)
            kept = row.kind in (*SAME, *POOLS)
            if before is not None and (kept or sizes[0] is not None) and row.kind != "fc":
                sizes = [s if s is not None else b for s, b in zip(sizes, before, strict=True)]
        if row.kind == "fc" and sizes[0] is not None:
            sizes = [sizes[0], sizes[1] or 1, sizes[2] or 1]
        return None if None in sizes else (sizes[0] or 0, sizes[1] or 0, sizes[2] or 0)


def field_holds(rows: Sequence[Facts], at: int) -> bool:
    """Whether the field, jump and offset of a row in a chain follow from those of the row above."""
    row = rows[at]
    above = rows[at - 1].counts if at else {}
    if not {"field", "jump", "offset"} <= row.counts.keys() or not {"kh", "sh", "ph"} <= {
        *row.sizes
    }:
        return True
    one = (1.0, 1.0 + TINY)
    field, jump, offset = (above.get(name, one) for name in ("field", "jump", "offset"))
    kernel, stride, pad = (row.sizes[name] for name in ("kh", "sh", "ph"))
    reach = sizes_reach(row.sizes, kernel)
    expected = {
        "field": _moved(field, (reach - 1) * jump[0]), "jump": (jump[0] * stride,) * 2,
        "offset": _moved(offset, ((reach - 1) / 2 - pad) * jump[0]),
    }  # fmt: skip
    return all(low <= row.counts[n][1] and row.counts[n][0] <= high + TINY
               for n, (low, high) in expected.items())  # fmt: skip


def sizes_reach(sizes: dict[str, int], kernel: int) -> int:
    return sizes.get("d", 1) * (kernel - 1) + 1


def _moved(given: Range, by: float) -> Range:
    return given[0] + by, given[1] + by


def contradicts(right: Table, sheet: Sheet, at: int, last: bool) -> bool:
    """Whether a changed row, or one that follows it, is not explained any more."""
    changed = Table(facts(sheet, last), right.chain, right.rules)
    if len(changed.rows) != len(right.rows):
        return False
    near = [at, *range(at + 1, min(at + 13, len(right.rows)))]
    if any(right.holds(n, right.rules) and not changed.holds(n, right.rules) for n in near):
        return True
    if right.chain and any(field_holds(right.rows, n) and not field_holds(changed.rows, n)
                           for n in near[:2]):  # fmt: skip
        return True
    return any(_total_moves(right, changed, name) for name in right.rows[at].counts)


def _total_moves(right: Table, changed: Table, name: str) -> bool:
    """Whether a column added up to its total and does not any more."""
    return _adds_up(right, name) is True and _adds_up(changed, name) is False


def _adds_up(table: Table, name: str) -> bool | None:
    totals = [row.counts[name] for row in table.rows if row.kind == "total" and name in row.counts]
    given = [row.counts[name] for row in table.rows if row.kind != "total" and name in row.counts]
    if not totals or not given:
        return None
    low, high = sum(g[0] for g in given), sum(g[1] for g in given)
    # a total with the biases, which its rows leave out, is right for the network: no finding
    extras = {0, table.biases()} if "params" in name else {0}
    return any(totals[0][0] <= high + n and low + n <= totals[0][1] for n in extras)
