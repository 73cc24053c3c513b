"""Sequences of tensors, as far as their lengths are known before the run."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.arrays import Array
from layerscope.formats.onnx.folding import give_known
from layerscope.formats.onnx.inputs import MOST_ITEMS
from layerscope.formats.onnx.known import Known, NeedsValue
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.ops.spec import axis_of


def _items(s: Site) -> list[Known]:
    known = s.given(0)
    if known.items is None:
        raise NeedsValue(f"the length of sequence {known.name!r} is unknown")
    return known.items


def _place(s: Site, n: int, length: int) -> int:
    place = int(s.need(n).item)
    if not -length <= place < length:
        raise ShapeError(f"item {place} of a sequence of {length}")
    return place % length


def _sequence(s: Site, items: list[Known]) -> None:
    name = s.operator.outputs[0]
    s.reader.numbers -= len(items)  # each sequence has a list of its own
    if s.reader.numbers < 0:
        raise NeedsValue("sequences of more tensors in all than are followed")
    s.env[name] = Known(name, None, items[0].dtype if items else "fp32", items=items)


def construct(s: Site) -> None:
    """SequenceConstruct."""
    _sequence(s, [known for known in s.inputs if known is not None])


def empty(s: Site) -> None:
    """SequenceEmpty."""
    _sequence(s, [])


def insert(s: Site) -> None:
    """SequenceInsert."""
    items = list(_items(s))
    place = int(s.need(2).item) if s.has(2) else len(items)
    items.insert(place, s.given(1))
    _sequence(s, items)


def erase(s: Site) -> None:
    """SequenceErase."""
    items = list(_items(s))
    del items[_place(s, 1, len(items)) if s.has(1) else -1]
    _sequence(s, items)


def item(s: Site) -> None:
    """SequenceAt."""
    items = _items(s)
    s.alias(items[_place(s, 1, len(items))])


def length(s: Site) -> None:
    """SequenceLength."""
    give_known(s, [Array((), [len(_items(s))], "int64")])


def concat(s: Site) -> None:
    """ConcatFromSequence."""
    items = _items(s)
    axis = s.whole("axis")
    if not items:
        raise NeedsValue("the sequence has no tensor whose shape would tell that of the result")
    if s.whole("new_axis"):
        rank = len(items[0].shape or ()) + 1
        at_axis = axis_of(axis, rank)
        parts = []
        for n, known in enumerate(items):
            if known.shape is None:
                raise NeedsValue(s.reader.trace.shape(known.name))
            shape = (*known.shape[:at_axis], 1, *known.shape[at_axis:])
            parts.append(s.emit("reshape", (known,), at.Reshape(shape), part=f"item{n}")[0])
        items, axis = parts, at_axis
    s.emit("concat", items, at.Concat(axis))


def split(s: Site) -> None:
    """SplitToSequence."""
    x = s.shape(0)
    axis = axis_of(s.whole("axis"), len(x))
    keep = bool(s.whole("keepdims", 1))
    size = 1
    sizes: tuple[int, ...] | None = None
    if s.has(1):
        given = s.need(1)
        if given.shape == ():
            size = int(given.item)
        else:
            sizes = given.ints()
        keep = True
    starts = range(0, x[axis], max(size, 1))
    count = len(starts) if sizes is None else len(sizes)
    if count > MOST_ITEMS:
        raise NeedsValue(
            f"a sequence of {count:,} tensors, more than {MOST_ITEMS:,} are not followed"
        )
    if sizes is None:
        sizes = tuple(min(size, x[axis] - start) for start in starts)
    made = s.emit("split", (s.given(0),), at.Split(axis, sizes), part="split")
    if not keep:
        shape = (*x[:axis], *x[axis + 1 :])
        made = [
            s.emit("reshape", (known,), at.Reshape(shape), part=f"item{n}")[0]
            for n, known in enumerate(made)
        ]
    _sequence(s, made)


def optional(s: Site) -> None:
    """Optional: what is in it, if anything."""
    name = s.operator.outputs[0]
    if s.op == "OptionalGetElement" and (not s.has(0) or s.given(0).empty):
        raise ShapeError("the element of an optional that has none")
    s.env[name] = s.given(0) if s.has(0) else Known(name, None, "fp32", empty=True)


def has_element(s: Site) -> None:
    """OptionalHasElement."""
    give_known(s, [Array((), [s.has(0) and not s.given(0).empty], "bool")])


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "SequenceConstruct"): construct,
    ("", "SequenceEmpty"): empty,
    ("", "SequenceInsert"): insert,
    ("", "SequenceErase"): erase,
    ("", "SequenceAt"): item,
    ("", "SequenceLength"): length,
    ("", "ConcatFromSequence"): concat,
    ("", "SplitToSequence"): split,
    ("", "Optional"): optional,
    ("", "OptionalGetElement"): optional,
    ("", "OptionalHasElement"): has_element,
}
