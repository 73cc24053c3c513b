"""Equations between the cells of a sheet, and the cells to blame where they do not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from layerscope.audit.conventions import Convention
from layerscope.audit.kinds import POOLS, SAME_SHAPE
from layerscope.audit.sheet import Claim
from layerscope.audit.structure import Cells, Layer, output_sizes

Place = tuple[int, int]  # row and column


class Equation(Struct, frozen=True):
    """A relation between cells; `target` is the cell that the others determine."""

    cells: Cells
    holds: bool
    target: Place
    expected: str
    reason: str
    number: Fraction | None = None  # the expected figure


class Suspect(Struct, frozen=True):
    """A cell that contradicts others, or several that are equally suspect."""

    places: tuple[Place, ...]
    equation: Equation
    broken: int  # equations that do not hold with it


def of_figures(claims: Iterable[Claim], layers: dict[int, Layer], convention: Convention) -> Iterator[Equation]:
    """One equation for each figure of a column."""
    for claim in claims:
        layer = layers.get(claim.row)
        if layer is None or claim.figure is None:
            continue
        number = convention.count(layer)
        rule = convention.by_kind.get(layer.kind)
        if number is None or rule is None:
            continue
        place = (claim.row, claim.column)
        cells = layer.cells(*rule.uses) | {place}
        holds = convention.explains(claim.figure, number)
        if claim.figure.formula is not None and rule.uses:
            holds = holds and claim.figure.formula in (number, number * convention.heading.scale)
        if len(cells) == 1 and holds:
            continue  # the size comes from this very cell
        exact = number * convention.heading.scale
        yield Equation(cells, holds, place, _text(exact), f"{rule.says}: {_arithmetic(layer, rule.uses)}", number)


def _text(number: Fraction) -> str:
    return f"{int(number):,}" if number.denominator == 1 else f"{float(number):.6g}"


def _arithmetic(layer: Layer, uses: Sequence[str]) -> str:
    return ", ".join(f"{name} {layer.sizes[name].value}" for name in uses if name in layer.sizes)


def of_shapes(layers: Sequence[Layer], padding: str) -> Iterator[Equation]:
    """Equations between the sizes of a row, and between a row and the rows above it."""
    outputs: list[tuple[int, ...]] = []
    for number, layer in enumerate(layers):
        yield from _said_twice(layer)
        if layer.kind == "input" or not number:
            pass
        else:
            yield from _chain(layer, layers[number - 1], outputs)
        if layer.kind in ("conv", "depthwise", *POOLS):
            yield from _windows(layer, padding)
        if layer.kind in SAME_SHAPE:
            yield from _unchanged(layer, "chw")
        elif layer.kind in POOLS:
            yield from _unchanged(layer, "c")
        outputs.append(layer.get("cout", "hout", "wout") or ())


def _said_twice(layer: Layer) -> Iterator[Equation]:
    for name, known in layer.said_again:
        first = layer.printed[name]
        (target,) = known.cells
        holds = first.value == known.value
        yield Equation(first.cells | known.cells, holds, target, str(first.value), f"the row says {first.value} too")


def _chain(layer: Layer, before: Layer, outputs: Sequence[tuple[int, ...]]) -> Iterator[Equation]:
    """A printed input is the output of the row above, or of an earlier one in a network with branches."""
    printed = {axis: layer.printed[f"{axis}in"] for axis in "chw" if f"{axis}in" in layer.printed}
    if not printed or layer.kind in ("concat", "add"):
        return
    shape = layer.get("cin", "hin", "win")
    if shape in outputs:  # of this row or an earlier one: a branch
        for axis, known in printed.items():
            above = before.sizes.get(f"{axis}out")
            if above is not None and above.cells and above.value == known.value:
                (target,) = known.cells
                yield Equation(above.cells | known.cells, True, target, "", "")
        return
    for axis, known in printed.items():
        above = before.sizes.get(f"{axis}out")
        if above is None:
            continue
        (target,) = known.cells
        reason = f"the row above gives {above.value}"
        yield Equation(above.cells | known.cells, above.value == known.value, target, str(above.value), reason)


def _windows(layer: Layer, padding: str) -> Iterator[Equation]:
    for axis in "hw":
        out = layer.printed.get(f"{axis}out")
        size, kernel = layer.sizes.get(f"{axis}in"), layer.sizes.get(f"k{axis}")
        if out is None or size is None or kernel is None:
            continue
        found = window_sizes(layer, axis, padding)
        if not found:
            continue
        (target,) = out.cells or {(-1, -1)}
        if target == (-1, -1):
            continue
        names = (f"{axis}in", f"k{axis}", f"s{axis}", f"p{axis}")
        stride = layer.sizes.get(f"s{axis}")
        text = f"kernel {kernel.value}, stride {stride.value if stride else 1} on {size.value} gives {found[0]}"
        yield Equation(layer.cells(*names) | out.cells, out.value in found, target, str(found[0]), text)


def window_sizes(layer: Layer, axis: str, padding: str) -> tuple[int, ...]:
    """Output sizes that are right for a window; a padding that is not printed follows the table's habit."""
    found = output_sizes(layer, axis)
    if found or f"p{axis}" in layer.sizes or layer.kind in POOLS:
        return found
    got = layer.get(f"{axis}in", f"k{axis}")
    if got is None or not padding:
        return ()
    stride = layer.sizes.get(f"s{axis}")
    step = stride.value if stride else 1
    if padding == "same":
        return (-(-got[0] // step),)
    return (max(got[0] - got[1], 0) // step + 1,)


def _unchanged(layer: Layer, axes: str) -> Iterator[Equation]:
    for axis in axes:
        out, size = layer.printed.get(f"{axis}out"), layer.sizes.get(f"{axis}in")
        if out is None or size is None or not out.cells:
            continue
        (target,) = out.cells
        reason = f"a {layer.kind.replace('_', ' ')} keeps its input's {size.value}"
        yield Equation(out.cells | size.cells, out.value == size.value, target, str(size.value), reason)


def padding_habit(layers: Sequence[Layer]) -> str:
    """Whether convolutions without a printed padding keep their size (`same`) or not (`valid`)."""
    counts: Counter[str] = Counter()
    for layer in layers:
        if layer.kind != "conv" or "ph" in layer.sizes:
            continue
        got = layer.get("hin", "kh", "hout")
        if got is None or "hout" not in layer.printed:
            continue
        step = layer.sizes["sh"].value if "sh" in layer.sizes else 1
        counts["same"] += got[2] == -(-got[0] // step)
        counts["valid"] += got[2] == max(got[0] - got[1], 0) // step + 1
        counts["all"] += 1
    if not counts["all"]:
        return ""
    best = max(("same", "valid"), key=lambda name: counts[name])
    return best if counts[best] * 4 >= counts["all"] * 3 else ""


def suspects(equations: Sequence[Equation]) -> Iterator[Suspect]:
    """The cells to blame: those in most broken equations, and of these in the fewest that hold."""
    broken = [equation for equation in equations if not equation.holds]
    good: Counter[Place] = Counter(cell for e in equations if e.holds for cell in e.cells)
    while broken:
        bad: Counter[Place] = Counter(cell for e in broken for cell in e.cells)
        best = min(bad, key=lambda cell: (-bad[cell], good[cell]))
        rank = bad[best], good[best]
        equal = [cell for cell in bad if (bad[cell], good[cell]) == rank]
        involved = [e for e in broken if best in e.cells]
        own = next((e for e in involved if e.target == best), involved[0])
        together = [c for c in equal if all(c in e.cells for e in involved)]
        places = tuple(sorted(set(together))) if own.target != best or len(together) > 1 else (best,)
        if own.target in together and len(together) > 1:
            places = (own.target, *(p for p in places if p != own.target))
        yield Suspect(places, own, len(involved))
        broken = [e for e in broken if best not in e.cells]
