"""Exact receptive fields, per axis and per input of the network, on graphs with branches.

A FieldAxis gives the range of input positions that each position of a tensor depends on. Along a
regular axis the ranges repeat: after `period` positions they have moved by `advance` inputs. The
period is 1 until an op upsamples; then positions differ by phase, and the range of each is stored.

Example: a 3x3 convolution with stride 2 and padding 1 on an image gives, on both axes, one range
(-1, 1) with advance 2: position j depends on inputs 2j - 1 to 2j + 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import gcd, lcm

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.shapes import Shapes
from layerscope.graph.types import Graph, Node
from layerscope.ops import SPECS, Call
from layerscope.ops.access_map import SAME, AccessMap, Map, SliceMap, WindowMap

MOST_PHASES = 4096  # an axis with more is reduced to the range of all positions together

Number = int | Fraction
Stretch = tuple[int, int] | None  # first and last input position, None if it depends on none


class FieldAxis(Struct, frozen=True, gc=False):
    """Ranges on one axis of an input, by position along one tensor axis (the carrier)."""

    length: int  # size of the network's input on this axis
    carrier: int | None  # None: the range is the same at all positions
    stretches: tuple[Stretch, ...]  # one per phase, or per position if not regular
    advance: int = 0  # input positions per period
    aligned: bool = True
    regular: bool = True

    def at(self, j: int) -> Stretch:
        """The range of position j, padding included."""
        if self.carrier is None:
            return self.stretches[0]
        if not self.regular:
            return self.stretches[j] if 0 <= j < len(self.stretches) else None
        turn, phase = divmod(j, len(self.stretches))
        stretch = self.stretches[phase]
        return stretch and (stretch[0] + turn * self.advance, stretch[1] + turn * self.advance)

    @property
    def everything(self) -> bool:
        """Whether every position depends on the whole input."""
        stretch = self.stretches[0]
        return (
            self.carrier is None
            and stretch is not None
            and stretch[0] <= 0
            and stretch[1] >= self.length - 1
        )

    @property
    def size(self) -> int:
        """The largest range, padding included."""
        if len(self.stretches) == 1:
            only = self.stretches[0]
            return only[1] - only[0] + 1 if only else 0
        return max([s[1] - s[0] + 1 for s in self.stretches if s], default=0)

    @property
    def stride(self) -> Number | None:
        """Input positions per position; None where ranges do not move, or not evenly."""
        if self.carrier is None or not self.regular:
            return None
        return _number(Fraction(self.advance, len(self.stretches)))

    @property
    def offset(self) -> Number | None:
        """Centre of the range of position 0, counted from 0."""
        first = self.stretches[0]
        return None if first is None else _number(Fraction(first[0] + first[1], 2))


class Field(Struct, frozen=True, gc=False):
    """Receptive field of a tensor on one input of the network, per spatial axis of the input."""

    input: str
    axes: tuple[FieldAxis, ...]

    @property
    def size(self) -> tuple[int | str, ...]:
        """Input positions per axis, or "everything"."""
        return tuple([
            "everything" if axis.carrier is None and axis.everything else axis.size
            for axis in self.axes
        ])  # fmt: skip

    @property
    def stride(self) -> tuple[Number | None, ...]:
        """Input positions per position, for each axis."""
        return tuple(axis.stride for axis in self.axes)

    @property
    def offset(self) -> tuple[Number | None, ...]:
        """Centre of position 0 per axis, counted from 0; None where it is everything."""
        return tuple(None if axis.everything else axis.offset for axis in self.axes)

    @property
    def aligned(self) -> bool:
        """False after a join of branches with unequal strides or centres."""
        return all(axis.aligned for axis in self.axes)


def _number(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value


def fields(graph: Graph, shapes: Shapes) -> dict[str, tuple[Field, ...]]:
    """Fields of every tensor, one for each input of the network that it depends on.

    The cache of a decoding step is no such input: it stands for tokens that were read before.
    """
    found: dict[str, tuple[Field, ...]] = {}
    for tensor in graph.inputs:
        shape = tensor.shape or ()
        axes = tuple(FieldAxis(size, n, ((0, 0),), 1) for n, size in enumerate(shape) if n >= 2)
        has_field = axes and tensor.name not in graph.cache
        found[tensor.name] = (Field(tensor.name, axes),) if has_field else ()
    steps: dict[int, _Step] = {}  # by id: equal calls are mostly one object
    settled: set[int] = set()  # ids of tuples of fields that no further node changes
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        if call is None or not node.inputs:
            found.update(dict.fromkeys(node.outputs, ()))
            continue
        step = steps.get(id(call))
        if step is None:
            step = steps[id(call)] = _step(node, call)
        if step.single is None:
            _join(node, shapes, step.maps, (found, settled))
            continue
        seen = found.get(node.inputs[0], ())
        if not step.unchanged and id(seen) not in settled:
            seen = tuple(
                [Field(f.input, _through(f.axes, step.single, call.x, call.y)) for f in seen]
            )
        found[node.outputs[0]] = seen
    return found


class _Step(Struct, frozen=True, gc=False):
    """What a call does to fields."""

    maps: tuple[AccessMap, ...]
    single: AccessMap | None  # of a call with one input and one output
    unchanged: bool  # and every axis stays as it is


def _step(node: Node, call: Call) -> _Step:
    maps = SPECS[node.op].access_map(call)
    if len(node.inputs) != 1 or len(call.outputs) != 1 or -1 in maps[0]:
        return _Step(maps, None, unchanged=False)
    unchanged = all(maps[0].get(n) == (n, SAME) for n in range(len(call.x)))
    return _Step(maps, maps[0], unchanged)


class Fields(Mapping[str, tuple[Field, ...]]):
    """Fields of every tensor, computed when the first one is read."""

    __slots__ = ("_found", "_graph", "_shapes")

    def __init__(self, graph: Graph, shapes: Shapes) -> None:
        self._graph, self._shapes = graph, shapes
        self._found: dict[str, tuple[Field, ...]] | None = None

    def _all_found(self) -> dict[str, tuple[Field, ...]]:
        if self._found is None:
            self._found = fields(self._graph, self._shapes)
        return self._found

    def __getitem__(self, name: str) -> tuple[Field, ...]:
        return self._all_found()[name]

    def first(self, name: str) -> Field | None:
        """The field of a tensor on the first input that it depends on."""
        found = (self._found or self._all_found()).get(name)
        return found[0] if found else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._all_found())

    def __len__(self) -> int:
        return len(self._all_found())


def _join(
    node: Node,
    shapes: Shapes,
    maps: tuple[AccessMap, ...],
    so_far: tuple[dict[str, tuple[Field, ...]], set[int]],
) -> None:
    """Add the fields of the outputs of a node with several inputs or outputs.

    A step of a language model has a cache for each layer as inputs, so that a tensor has hundreds
    of fields. Most are settled: the same for all positions of the tensor, and so behind any node.
    """
    found, settled = so_far
    call = shapes.calls[node.name]
    for n, (name, output) in enumerate(zip(node.outputs, call.outputs, strict=True)):
        # With several outputs, maps[n] is from the first input to output n. An output depends on
        # all of every other input.
        by_input = maps
        if len(call.outputs) > 1:
            rest: AccessMap = maps[n] if -1 in maps[n] else {}
            by_input = (maps[n], *(rest,) * (len(node.inputs) - 1))
        branches = [
            (seen, mapped, shape)
            for source, mapped, shape in zip(node.inputs, by_input, call.inputs, strict=True)
            if -1 not in mapped and (seen := found.get(source, ()))  # -1: only its shape matters
        ]
        first = branches[0][0] if branches else ()
        if id(first) in settled and all(seen is first for seen, _, _ in branches):
            found[name] = first
            continue
        parts: dict[str, list[tuple[tuple[FieldAxis, ...], AccessMap]]] = {}
        for seen, mapped, shape in branches:
            is_settled = id(seen) in settled
            for field in seen:
                axes = field.axes if is_settled else _through(field.axes, mapped, shape, output)
                parts.setdefault(field.input, []).append((axes, mapped))
        joined = found[name] = tuple(
            Field(origin, _unite(each, output)) for origin, each in parts.items()
        )
        if all(axis.carrier is None for field in joined for axis in field.axes):
            settled.add(id(joined))


def _unite(
    branches: list[tuple[tuple[FieldAxis, ...], AccessMap]], output: tuple[int, ...]
) -> tuple[FieldAxis, ...]:
    """The union of the fields of all branches, axis by axis."""
    first = branches[0][0]
    if all(each is first for each, _ in branches):
        return first
    axes, maps = zip(*branches, strict=True)
    return tuple(
        _union(_limit_to_parts(each, maps, output), output) for each in zip(*axes, strict=True)
    )


def _limit_to_parts(
    axes: tuple[FieldAxis, ...], maps: tuple[AccessMap, ...], output: tuple[int, ...]
) -> tuple[FieldAxis, ...]:
    """Limit an axis without a carrier to the part of a concatenation that it comes from."""
    carriers = {axis.carrier for axis in axes}
    if None not in carriers or len(carriers) == 1:
        return axes
    limited = list(axes)
    for n, axis in enumerate(axes):
        for out_axis, mapped in maps[n].values():
            part = axis.carrier is None and isinstance(mapped, SliceMap) and out_axis in carriers
            if part and output[out_axis] <= MOST_PHASES:
                only = axis.stretches[0]
                seen = tuple(only if mapped.at(i) else None for i in range(output[out_axis]))
                limited[n] = replace(axis, carrier=out_axis, stretches=seen, regular=False)
    return tuple(limited)


def _through(
    axes: tuple[FieldAxis, ...],
    access: AccessMap,
    shape: tuple[int, ...],
    output: tuple[int, ...],
) -> tuple[FieldAxis, ...]:
    result = []
    changed = False  # no axis has a carrier in steps of a language model: a cache a layer
    for axis in axes:
        carrier = axis.carrier
        if carrier is None:
            result.append(axis)
            continue
        changed = True
        if carrier not in access:
            result.append(_collapse(axis, shape[carrier]))
        else:
            out_axis, mapped = access[carrier]
            result.append(_map(axis, mapped, out_axis, shape[carrier], output[out_axis]))
    return tuple(result) if changed else axes


def _map(axis: FieldAxis, mapped: Map, out_axis: int, size: int, length: int) -> FieldAxis:
    """The field axis of an output, from that of an input and the map of their positions.

    `size` and `length` are the sizes of the carrier axis in the input and in the output.
    """
    if mapped is SAME and out_axis == axis.carrier:
        return axis
    only = axis.stretches[0]
    if len(axis.stretches) == 1 and axis.regular and type(mapped) is WindowMap and only is not None:
        near = -mapped.begin * axis.advance
        far = near + (mapped.taps - 1) * mapped.dilation * axis.advance
        if far < near:  # a reversed axis
            near, far = far, near
        stretch = only[0] + near, only[1] + far
        return FieldAxis(
            axis.length, out_axis, (stretch,), axis.advance * mapped.stride, axis.aligned
        )
    if not axis.regular or mapped.period == 0:
        if length > MOST_PHASES:
            return _collapse(axis, size)
        seen = tuple(_hull(axis, mapped.at(i)) for i in range(length))
        return replace(axis, carrier=out_axis, stretches=seen, advance=0, regular=False)
    period = len(axis.stretches)
    turns = period // gcd(period, mapped.advance)
    phases = turns * mapped.period
    if phases > MOST_PHASES:
        return _collapse(axis, size)
    advance = axis.advance * (turns * mapped.advance // period)
    seen = tuple(_hull(axis, mapped.at(i)) for i in range(phases))
    return _shortest(replace(axis, carrier=out_axis, stretches=seen, advance=advance))


def _hull(axis: FieldAxis, positions: range) -> Stretch:
    """The range of these positions together; one period at either end is enough."""
    period = len(axis.stretches)
    near: Iterable[int] = positions
    if axis.regular and len(positions) > 2 * period:
        near = (*positions[:period], *positions[-period:])
    seen = [stretch for j in near if (stretch := axis.at(j)) is not None]
    if not seen:
        return None
    return min(s[0] for s in seen), max(s[1] for s in seen)


def _collapse(axis: FieldAxis, size: int) -> FieldAxis:
    """The axis with the range of all positions together."""
    return replace(
        axis, carrier=None, stretches=(_hull(axis, range(size)),), advance=0, regular=True
    )


def _shortest(axis: FieldAxis) -> FieldAxis:
    """The same axis with its shortest period."""
    phases = len(axis.stretches)
    for period in range(1, phases // 2 + 1):
        if phases % period or axis.advance * period % phases:
            continue
        shorter = replace(
            axis, stretches=axis.stretches[:period], advance=axis.advance * period // phases
        )
        if all(shorter.at(i) == axis.stretches[i] for i in range(period, phases)):
            return shorter
    return axis


def _union(axes: tuple[FieldAxis, ...], output: tuple[int, ...]) -> FieldAxis:
    """The union of ranges over all branches; misaligned if strides or centres differ."""
    first = axes[0]
    if all(axis == first for axis in axes[1:]):
        return first
    plain = _plain_union(axes)
    if plain is not None:
        return plain
    whole = next((axis for axis in axes if axis.everything), None)
    if whole is not None:
        return whole
    carriers = {axis.carrier for axis in axes}
    carrier = max((c for c in carriers if c is not None), default=None)
    if carrier is None or len(carriers - {None}) > 1:
        return _union_of_all_positions(axes, output)
    return _union_along(axes, carrier, output[carrier])


def _union_of_all_positions(axes: tuple[FieldAxis, ...], output: tuple[int, ...]) -> FieldAxis:
    """The union without a carrier, where branches have different ones or none."""
    flat = tuple(
        _collapse(axis, output[axis.carrier]) if axis.carrier is not None else axis for axis in axes
    )
    joined = _merge([axis.stretches[0] for axis in flat])
    aligned = _agree(flat, 1)
    return replace(axes[0], carrier=None, stretches=(joined,), advance=0, aligned=aligned)


def _union_along(axes: tuple[FieldAxis, ...], carrier: int, length: int) -> FieldAxis:
    """The union along one carrier of `length` positions."""
    first = axes[0]
    strides = {axis.stride if axis.carrier is not None else None for axis in axes}
    if len(strides) == 1 and None not in strides:
        phases = lcm(*(len(axis.stretches) for axis in axes))
        if phases <= MOST_PHASES:
            seen = tuple(_merge([axis.at(i) for axis in axes]) for i in range(phases))
            advance = first.advance * (phases // len(first.stretches))
            return _shortest(FieldAxis(first.length, carrier, seen, advance, _agree(axes, phases)))
    if length > MOST_PHASES:
        flat = [_collapse(axis, length) if axis.carrier is not None else axis for axis in axes]
        joined = _merge([axis.stretches[0] for axis in flat])
        return FieldAxis(first.length, None, (joined,), 0, aligned=False)
    seen = tuple(_merge([axis.at(i) for axis in axes]) for i in range(length))
    return FieldAxis(first.length, carrier, seen, 0, aligned=_agree(axes, length), regular=False)


def _plain_union(axes: tuple[FieldAxis, ...]) -> FieldAxis | None:
    """The union of axes with one phase and the same stride, as most are; None for others."""
    first = axes[0]
    carrier, advance = first.carrier, first.advance
    if carrier is None:
        return None
    low = high = None
    centre: int | None = None
    aligned = True
    for axis in axes:
        stretch = axis.stretches[0]
        if (
            axis.carrier != carrier
            or axis.advance != advance
            or len(axis.stretches) != 1
            or not axis.regular
            or stretch is None
        ):
            return None
        start, end = stretch
        low = start if low is None or start < low else low
        high = end if high is None or end > high else high
        aligned = aligned and axis.aligned and centre in (None, start + end)
        centre = start + end
    assert low is not None
    assert high is not None
    return FieldAxis(first.length, carrier, ((low, high),), advance, aligned)


def _merge(stretches: list[Stretch]) -> Stretch:
    seen = [stretch for stretch in stretches if stretch is not None]
    return (min(s[0] for s in seen), max(s[1] for s in seen)) if seen else None


def _agree(axes: tuple[FieldAxis, ...], phases: int) -> bool:
    """Whether the ranges of all branches have the same centre at every position."""
    if not all(axis.aligned for axis in axes):
        return False
    for i in range(phases):
        centres = {s[0] + s[1] for axis in axes if (s := axis.at(i)) is not None}
        if len(centres) > 1:
            return False
    return True
