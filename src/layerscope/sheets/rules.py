"""What a figure of a layer can be, by the meaning of its column and the kind of the layer.

Each rule has a text, the sizes it uses and its value. A column takes, for each kind, the rule that
explains most of its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import prod

from msgspec import Struct

from layerscope.documents.headings import Meaning
from layerscope.sheets.kinds import POOLS, Kind
from layerscope.sheets.structure import RowLayer

OUT = ("cout", "hout", "wout")
IN = ("cin", "hin", "win")
FUNCTIONS: tuple[Kind, ...] = ("activation", "softmax")
MAP = ("kh", "kw", "cin", "cout")


class Rule(Struct, frozen=True):
    """A way to count a figure of a layer."""

    says: str
    uses: tuple[str, ...]
    count: Callable[[RowLayer], int | Fraction | None]


def _product(*names: str, times: int = 1) -> Callable[[RowLayer], int | None]:
    def count(layer: RowLayer) -> int | None:
        got = layer.get(*names)
        return None if got is None else times * prod(got)

    return count


def _halved(*names: str) -> Callable[[RowLayer], Fraction | None]:
    def count(layer: RowLayer) -> Fraction | None:
        got = layer.get(*names)
        return None if got is None else Fraction(prod(got), 2)

    return count


def _weights(layer: RowLayer) -> int | None:
    got = layer.get(*MAP)
    if got is None:
        return None
    groups = layer.sizes.get("groups")
    return prod(got) // (groups.value if groups and groups.value else 1)


# axes that a fully connected layer may be applied to, and those instead if they have one element
AXES = {"c": (0,), "w": (2, 1, 0), "h": (1, 2, 0)}


def _linear(layer: RowLayer, axis: str) -> tuple[int, int, int] | None:
    """Weights, outputs and positions of a fully connected layer.

    It takes every element of its input, or one axis at every position of the others, which are then
    the same in its output.
    """
    got, out = layer.get(*IN), layer.get(*OUT)
    if got is None or out is None:
        pair = layer.get("cin", "cout")
        return None if pair is None or axis != "c" else (pair[0] * pair[1], pair[1], 1)
    at = next((n for n in AXES[axis] if not got[n] == out[n] == 1), 0)
    kept = [size for n, size in enumerate(out) if n != at]
    if kept != [1, 1] and kept == [size for n, size in enumerate(got) if n != at]:
        return got[at] * out[at], out[at], prod(kept)
    return None if at else (prod(got) * out[0], out[0], 1)


def _inner(
    axis: str = "c", *, biased: bool = False, everywhere: bool = False
) -> Callable[[RowLayer], int | None]:
    """Weights of a fully connected layer, with biases or not, and times its positions or not."""

    def count(layer: RowLayer) -> int | None:
        found = _linear(layer, axis)
        if found is None:
            return None
        weights, outputs, positions = found
        return (weights + outputs * biased) * (positions if everywhere else 1)

    return count


def _of_axis(axis: str) -> str:
    return "" if axis == "c" else " of the last axis" if axis == "w" else " of the rows"


_LINEAR = tuple(
    Rule(f"weights{' and biases' * biased}{_of_axis(axis)}", (*IN, *OUT)[: 4 if axis == "c" else 6],
         _inner(axis, biased=biased))
    for axis in AXES for biased in (False, True)
)  # fmt: skip
_LINEAR_MACS = (*_LINEAR[:2], *(
    Rule(f"weights{' and biases' * biased}{_of_axis(axis)} at all positions", (*IN, *OUT),
         _inner(axis, biased=biased, everywhere=True))
    for axis in AXES for biased in (False, True)
))  # fmt: skip


def _biased(weights: Callable[[RowLayer], int | None]) -> Callable[[RowLayer], int | None]:
    def count(layer: RowLayer) -> int | None:
        found, out = weights(layer), layer.get("cout")
        return None if found is None or out is None else found + out[0]

    return count


def _unless_normed(weights: Callable[[RowLayer], int | None]) -> Callable[[RowLayer], int | None]:
    return lambda layer: weights(layer) if layer.normed else _biased(weights)(layer)


def _scaled(
    count: Callable[[RowLayer], int | None], *names: str, times: int = 1
) -> Callable[[RowLayer], int | None]:
    """A count times some sizes of the layer."""

    def scaled(layer: RowLayer) -> int | None:
        found, got = count(layer), layer.get(*names)
        return None if found is None or got is None else times * found * prod(got)

    return scaled


RECURRENT: tuple[Kind, ...] = ("lstm", "gru", "bidirectional")


def _recurrent(
    gates: int, biases: int, directions: int, layers: int
) -> Callable[[RowLayer], int | None]:
    """Parameters of recurrent layers; the outputs of both directions are joined."""

    def count(layer: RowLayer) -> int | None:
        got = layer.get("cin", "cout")
        if got is None or got[1] % directions:
            return None
        units = got[1] // directions
        inputs = got[0] + (layers - 1) * got[1]
        return directions * gates * units * (inputs + layers * (units + biases))

    return count


def _recurrent_rules(gates: Sequence[int], directions: Sequence[int]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            f"{number} gate{'s' * (number > 1)}, {biases} bias{'es' * (biases > 1)} each"
            + ", of two directions" * (ways > 1) + f", {layers} layers" * (layers > 1),
            ("cin", "cout"), _recurrent(number, biases, ways, layers),
        )
        for layers in (1, 2, 3) for ways in directions for number in gates for biases in (1, 2)
    )  # fmt: skip


NONE = Rule("none", (), lambda _: 0)
WEIGHTS: Mapping[Kind, tuple[Rule, ...]] = {
    "conv": (
        Rule("weights", MAP, _weights),
        Rule("weights and biases", MAP, _biased(_weights)),
        Rule("weights, and biases unless a norm follows", MAP, _unless_normed(_weights)),
    ),
    "deconv": (Rule("weights", MAP, _weights), Rule("weights and biases", MAP, _biased(_weights))),
    "depthwise": (
        Rule("weights", ("kh", "kw", "cout"), _product("kh", "kw", "cout")),
        Rule("weights and biases", ("kh", "kw", "cout"), _biased(_product("kh", "kw", "cout"))),
    ),
    "fc": _LINEAR,
    "batch_norm": (
        Rule("scale and shift", ("cin",), _product("cin", times=2)),
        Rule("scale, shift, mean and variance", ("cin",), _product("cin", times=4)),
        Rule("shift", ("cin",), _product("cin")),
        Rule("shift, mean and variance", ("cin",), _product("cin", times=3)),
        NONE,
    ),
    "norm": (
        Rule("scale and shift", ("cout",), _product("cout", times=2)),
        Rule("scale and shift of the last axis", ("wout",), _product("wout", times=2)),
        Rule("scale of the last axis", ("wout",), _product("wout")),
        Rule("scale", ("cout",), _product("cout")),
        Rule("scale of the rows", ("hout",), _product("hout")),
        NONE,
    ),
    "prelu": (
        NONE,
        Rule("a slope per channel", ("cin",), _product("cin")),
        Rule("one slope", (), lambda _: 1),
    ),
    "lrn": (NONE, Rule("Netscope's two", (), lambda _: 2)),
    "scale": (
        NONE,
        Rule("scale and shift", ("cin",), _product("cin", times=2)),
        Rule("a factor per channel", ("cin",), _product("cin")),
    ),
    "avg_pool": (
        NONE,
        Rule("a coefficient and a bias per map", ("cout",), _product("cout", times=2)),
    ),
    "lstm": _recurrent_rules((4,), (1, 2)),
    "gru": _recurrent_rules((3,), (1, 2)),
    "bidirectional": _recurrent_rules((4, 3, 1), (2,)),
}
ONCE_BIASED = "weights x positions, and biases once"
# what programs count for an exponential, or for a function with several
_FUNCTION = tuple(
    Rule(f"{n} per element", OUT, _product(*OUT, times=n)) for n in (3, 4, 5, 8, 10, 15)
)
_MAP_OUT = (*MAP, "hout", "wout")
MACS: Mapping[Kind, tuple[Rule, ...]] = {
    "conv": (
        Rule("weights x positions", _MAP_OUT, _scaled(_weights, "hout", "wout")),
        Rule(
            "weights and biases x positions", _MAP_OUT, _scaled(_biased(_weights), "hout", "wout")
        ),
        Rule(
            "weights, and biases unless a norm follows, x positions",
            _MAP_OUT,
            _scaled(_unless_normed(_weights), "hout", "wout"),
        ),
        Rule(ONCE_BIASED, _MAP_OUT, _biased(_scaled(_weights, "hout", "wout"))),
    ),
    "depthwise": (
        Rule("weights x positions", ("kh", "kw", *OUT), _product("kh", "kw", *OUT)),
        Rule(
            "weights and biases x positions",
            ("kh", "kw", *OUT),
            _scaled(_biased(_product("kh", "kw", "cout")), "hout", "wout"),
        ),
        Rule(ONCE_BIASED, ("kh", "kw", *OUT), _biased(_product("kh", "kw", *OUT))),
    ),
    "deconv": (
        Rule("weights x input positions", (*MAP, "hin", "win"), _scaled(_weights, "hin", "win")),
    ),
    "fc": _LINEAR_MACS,
    "batch_norm": (
        NONE,
        *(Rule(f"{n} per element", OUT, _product(*OUT, times=n)) for n in (2, 4, 1)),
    ),
    "lrn": (NONE, Rule("5 per element", OUT, _product(*OUT, times=5))),
    "scale": (NONE, Rule("1 per element", OUT, _product(*OUT))),
}
_POOLED = (
    NONE,
    Rule("kernel positions x outputs", ("kh", "kw", *OUT), _product("kh", "kw", *OUT)),
    Rule("1 per output", OUT, _product(*OUT)),
    Rule("1 per input", IN, _product(*IN)),
    Rule("2 per output", OUT, _product(*OUT, times=2)),
)
# where a multiply-add counts as two operations, an operation of a pool or of an element as one
_ONCE = (
    Rule("kernel positions x outputs, once", ("kh", "kw", *OUT), _halved("kh", "kw", *OUT)),
    Rule("inputs, once", IN, _halved(*IN)),
)
_EACH = (
    NONE,
    Rule("1 per element", OUT, _product(*OUT)),
    Rule("2 per element", OUT, _product(*OUT, times=2)),
)
_EACH_ONCE = (Rule("elements, once", OUT, _halved(*OUT)),)
ELEMENTS = (Rule("output elements", OUT, _product(*OUT)),)


def _products_and_sums(layer: RowLayer) -> Fraction | None:
    """Half of the products and additions of all outputs: one addition fewer than products."""
    weights, out = _inner()(layer), layer.get("cout")
    return None if weights is None or out is None else Fraction(2 * weights - out[0], 2)


MADDS = (
    _LINEAR[0],
    Rule("products and their sums", (*IN, "cout"), _products_and_sums),
)


# rows that are parameters: transformer.wte.weight (50257, 768)
OF_SHAPE = (Rule("product of the shape", ("elements",), _product("elements")),)


def rules(meaning: Meaning, kind: Kind) -> tuple[Rule, ...]:
    """The rules for figures of that meaning in rows of that kind, the usual ones first."""
    if kind in ("unknown", "embedding"):
        return OF_SHAPE if meaning == "params" and kind == "unknown" else ()
    if meaning in ("params", "weights", "param_memory"):
        return WEIGHTS.get(kind, (NONE,))
    if meaning == "madds" and kind == "fc":
        return MADDS
    if meaning in ("macs", "flops", "madds"):
        if kind in POOLS or kind == "global_pool":
            return _POOLED if meaning == "macs" else (*_POOLED, *_ONCE)
        each = _EACH if meaning == "macs" else (*_EACH, *_EACH_ONCE)
        return (*each, *_FUNCTION) if kind in FUNCTIONS else MACS.get(kind, each)
    if meaning in ("memory", "activations"):
        return (*ELEMENTS, NONE)
    if meaning == "comparisons":
        return (
            _POOLED[1:]
            if kind in POOLS
            else (_POOLED[3], NONE)
            if kind == "global_pool"
            else _EACH[1:]
        )
    if meaning in ("additions", "divisions", "exponentials"):
        pooled = (_POOLED[1], _POOLED[3])  # each input once, if the window is the whole map
        return (*_EACH[1:], *pooled) if kind in POOLS else _EACH[1:]
    return ()


def factors(meaning: Meaning, unit: str) -> tuple[int, ...]:
    """What one element may count: bytes of a dtype, two operations of a multiply-add."""
    if meaning in ("flops", "madds"):
        return (2, 1)
    if meaning in ("memory", "param_memory") or unit == "byte":
        return (1, 4, 2, 8)
    if meaning == "macs":
        return (1, 2)
    return (1,)
