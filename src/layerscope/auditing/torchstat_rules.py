"""What torchstat prints for a module, by its kind: the figures that follow from its shapes.

A table of torchstat says no kinds, so that a row is right if the rules of any kind give it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import gcd, isqrt, prod

Shape = tuple[int, ...]
Number = int | Fraction
Figures = Mapping[str, Number | None]  # by name; None: `?`
BYTES = 4
WIDEST = 64  # kernel
LINES = (3, 5, 7, 11, 13, 15)  # kernels of one row, such as 1x7
NARROW = 16  # positions of an axis that a kernel of one row or column leaves as it is
MOST_GROUPS = 256  # of which divisors are looked for
COUNTED = ("params", "madd", "flops", "read", "written")


def explains(given: Shape, out: Shape, figures: Figures) -> bool:
    """Whether the rules of some kind give all figures; those that are None may be anything."""
    return any(
        all(figures.get(name) in (None, value) for name, value in right.items())
        for right in explanations(given, out, figures)
    )


def explanations(given: Shape, out: Shape, figures: Figures) -> Iterator[dict[str, int]]:
    """The figures of each kind that a row with these shapes may be, without those left open."""
    taken, left = prod(given), prod(out)
    moved = {"read": BYTES * taken, "written": BYTES * left}
    if given == out:
        yield {"params": 0, "madd": taken, "flops": taken, **moved}
        yield {"params": 0, "flops": taken, "madd": 0, **moved}
        yield {"params": 0, "madd": 3 * taken - 1}  # softmax
        for slopes in {1, given[0]}:
            yield _with_params(slopes, taken, {"flops": taken, "written": BYTES * left})
        yield from _norms(given)
    if len(given) == len(out) == 1:
        yield from _linear(given[0], out[0])
    if len(given) == len(out) == 3:
        if given[0] == out[0]:
            yield from _pools(given, out, figures)
        yield from _convolutions(given, out, figures)
        yield from _transposed(given, out, figures)
        yield {"params": 0, "flops": prod(out[1:])}  # upsampling
    yield {"madd": 0, "flops": 0, "read": 0, "written": 0}  # torchstat has no rule


def _with_params(params: int, taken: int, others: dict[str, int]) -> dict[str, int]:
    return {"params": params, "read": BYTES * (taken + params), **others}


def _norms(shape: Shape) -> Iterator[dict[str, int]]:
    taken, channels = prod(shape), shape[0]
    moved = {"read": BYTES * (taken + 2 * channels), "written": BYTES * taken}
    yield {"params": 2 * channels, "madd": 4 * taken, "flops": 2 * taken, **moved}
    yield {"params": 0, "madd": 4 * taken, "flops": taken, **moved}


def _linear(taken: int, left: int) -> Iterator[dict[str, int]]:
    for bias in (0, left):
        figures = {"madd": left * (2 * taken - 1), "flops": left * taken, "written": BYTES * left}
        yield _with_params(left * taken + bias, taken, figures)


def _pools(given: Shape, out: Shape, figures: Figures) -> Iterator[dict[str, int]]:
    taken, left = prod(given), prod(out)
    moved = {"read": BYTES * taken, "written": BYTES * left}
    madd = figures.get("madd")
    # of a maximum one less than positions of the window, of a mean as many
    sizes = range(WIDEST) if madd is None else (madd // left,) if left else ()
    for positions in sizes:
        if any(isqrt(n) ** 2 == n > 0 for n in (positions, positions + 1)):
            yield {"params": 0, "madd": positions * left, "flops": taken, **moved}


def _convolutions(given: Shape, out: Shape, figures: Figures) -> Iterator[dict[str, int]]:
    taken, left = prod(given), prod(out)
    for products, bias in _products(taken, out, figures):
        if products < 1 or not _is_grouped(products, given, out):
            continue
        counted = {
            "madd": (2 * products - 1 + bias) * left,
            "flops": (products + bias) * left,
            "written": BYTES * left,
        }
        yield _with_params((products + bias) * out[0], taken, counted)


def _transposed(given: Shape, out: Shape, figures: Figures) -> Iterator[dict[str, int]]:
    """Transposed convolutions, for which torchstat has a rule of MAdd only."""
    positions = prod(given[1:]) * out[0]
    params, madd = figures.get("params"), figures.get("madd")
    for bias in (0, 1):
        counts = set() if params is None or not out[0] else {params // out[0] - bias}
        if madd is not None and positions:
            counts.add((madd // positions + 1 - bias) // 2)
        for products in counts:
            turned = (given[0], *out[1:]), (out[0], *given[1:])
            if products > 0 and _is_grouped(products, *turned):
                total = (2 * products - 1 + bias) * positions
                yield {"params": (products + bias) * out[0], "madd": total, "flops": 0}


def _products(taken: int, out: Shape, figures: Figures) -> set[tuple[int, int]]:
    """Multiplications per output that some figure shows, with and without a bias."""
    left, found = prod(out), set()
    for bias in (0, 1):
        for name, value in figures.items():
            if value is None or not left:
                continue
            if name in ("params", "read"):
                params = value if name == "params" else value // BYTES - taken
                found.add((params // out[0] - bias, bias))
            elif name == "flops":
                found.add((value // left - bias, bias))
            elif name == "madd":
                found.add(((value // left + 1 - bias) // 2, bias))
    return found


def _is_grouped(products: int, given: Shape, out: Shape) -> bool:
    """Whether a window over the channels of a group has so many products."""
    channels, both = given[0], gcd(given[0], out[0])
    if not both or products > channels * WIDEST * WIDEST:
        return False
    small = [n for n in range(1, min(isqrt(both), MOST_GROUPS) + 1) if not both % n]
    return any(
        not products % (channels // n) and _is_window(products * n // channels, given, out)
        for n in {*small, *(both // n for n in small)}
    )


def _is_window(positions: int, given: Shape, out: Shape) -> bool:
    """Whether a window of so many positions, square or a line, may give an output."""
    side = isqrt(positions)
    if side * side == positions:
        kernels = {(side, side)}
    else:
        kernels = {(1, positions), (positions, 1)} if positions in LINES else set()
        if positions <= WIDEST:  # along the axis of time, beside a few sensors
            kernels |= {(positions, 1)} if given[2] == out[2] <= NARROW else set()
            kernels |= {(1, positions)} if given[1] == out[1] <= NARROW else set()
    return any(
        all(
            1 <= kernel <= WIDEST and 1 <= got < size + kernel
            for size, kernel, got in zip(given[1:], each, out[1:], strict=True)
        )
        for each in kernels
    )
