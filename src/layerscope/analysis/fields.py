"""Receptive fields, exact, per axis and per input, on graphs with branches.

An axis of a field tells which stretch of the network's input each position of a tensor looks at.
Along a regular axis it repeats: after `period` positions it has moved by `advance` inputs. The
period is 1 until something upsamples; then positions differ by phase, and each phase is kept.
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

MOST_PHASES = 4096  # past this many phases an axis is summed up as one stretch

Number = int | Fraction
Stretch = tuple[int, int] | None  # first and last input position, None if it looks at nothing


class Axis(Struct, frozen=True, gc=False):
    """What positions along one tensor axis (the carrier) see of one axis of an input."""

    length: int  # of the network's input along this axis
    carrier: int | None  # None: all positions see the same
    stretches: tuple[Stretch, ...]  # one per phase, or per position if not regular
    advance: int = 0  # inputs moved per period
    aligned: bool = True
    regular: bool = True

    def at(self, j: int) -> Stretch:
        """What position j sees, padding included."""
        if self.carrier is None:
            return self.stretches[0]
        if not self.regular:
            return self.stretches[j] if 0 <= j < len(self.stretches) else None
        turn, phase = divmod(j, len(self.stretches))
        stretch = self.stretches[phase]
        return stretch and (stretch[0] + turn * self.advance, stretch[1] + turn * self.advance)

    @property
    def everything(self) -> bool:
        """Every position sees the whole input."""
        stretch = self.stretches[0]
        return (
            self.carrier is None
            and stretch is not None
            and stretch[0] <= 0
            and stretch[1] >= self.length - 1
        )

    @property
    def size(self) -> int:
        """Inputs seen by the position that sees most, padding included."""
        return max((s[1] - s[0] + 1 for s in self.stretches if s), default=0)

    @property
    def stride(self) -> Number | None:
        """Inputs moved per position; None where positions do not move, or not evenly."""
        if self.carrier is None or not self.regular:
            return None
        return _number(Fraction(self.advance, len(self.stretches)))

    @property
    def offset(self) -> Number | None:
        """Centre of what position 0 sees, counted from 0."""
        first = self.stretches[0]
        return None if first is None else _number(Fraction(first[0] + first[1], 2))


class Field(Struct, frozen=True, gc=False):
    """What a tensor sees of one input of the network, per spatial axis of that input."""

    input: str
    axes: tuple[Axis, ...]

    @property
    def size(self) -> tuple[int | str, ...]:
        """Inputs seen per axis, or "everything"."""
        return tuple("everything" if axis.everything else axis.size for axis in self.axes)

    @property
    def stride(self) -> tuple[Number | None, ...]:
        """Inputs moved per position and axis."""
        return tuple(axis.stride for axis in self.axes)

    @property
    def offset(self) -> tuple[Number | None, ...]:
        """Centre of position 0 per axis, counted from 0; None where everything is seen."""
        return tuple(None if axis.everything else axis.offset for axis in self.axes)

    @property
    def aligned(self) -> bool:
        """False once branches of unequal strides or centres were joined."""
        return all(axis.aligned for axis in self.axes)


def _number(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value


def fields(graph: Graph, shapes: Shapes) -> dict[str, tuple[Field, ...]]:
    """Fields of every tensor, one for each input of the network that reaches it."""
    found: dict[str, tuple[Field, ...]] = {}
    for tensor in graph.inputs:
        shape = tensor.shape or ()
        axes = tuple(Axis(size, n, ((0, 0),), 1) for n, size in enumerate(shape) if n >= 2)
        found[tensor.name] = (Field(tensor.name, axes),) if axes else ()
    unchanged: set[Call] = set()  # calls whose axes all stay as they are
    reaches: dict[Call, tuple[AccessMap, ...]] = {}
    for node in graph.nodes:
        call = shapes.calls.get(node.name)
        if call is None or not node.inputs:
            found.update(dict.fromkeys(node.outputs, ()))
            continue
        reach = reaches.get(call)
        if reach is None:
            reach = reaches[call] = SPECS[node.op].access_map(call)
            if all(reach[0].get(n) == (n, SAME) for n in range(len(call.x))):
                unchanged.add(call)
        if len(node.inputs) == 1 and len(call.outputs) == 1 and -1 not in reach[0]:
            seen = found.get(node.inputs[0], ())
            if call in unchanged:
                found[node.outputs[0]] = seen
                continue
            found[node.outputs[0]] = tuple(
                [Field(f.input, _through(f.axes, reach[0], call.x, call.y)) for f in seen]
            )
        else:
            _join(graph, node, shapes, reach, found)
    return found


class Fields(Mapping[str, tuple[Field, ...]]):
    """Fields of every tensor, worked out when the first of them is looked at."""

    __slots__ = ("_found", "_graph", "_shapes")

    def __init__(self, graph: Graph, shapes: Shapes) -> None:
        self._graph, self._shapes = graph, shapes
        self._found: dict[str, tuple[Field, ...]] | None = None

    def _all(self) -> dict[str, tuple[Field, ...]]:
        if self._found is None:
            self._found = fields(self._graph, self._shapes)
        return self._found

    def __getitem__(self, name: str) -> tuple[Field, ...]:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _join(
    graph: Graph,
    node: Node,
    shapes: Shapes,
    reach: tuple[AccessMap, ...],
    found: dict[str, tuple[Field, ...]],
) -> None:
    call = shapes.calls[node.name]
    for n, (name, output) in enumerate(zip(node.outputs, call.outputs, strict=True)):
        # of several outputs a reach tells what each sees of the first input; all of the others
        told = reach
        if len(call.outputs) > 1:
            rest: AccessMap = reach[n] if -1 in reach[n] else {}
            told = (reach[n], *(rest,) * (len(node.inputs) - 1))
        parts: dict[str, list[tuple[tuple[Axis, ...], AccessMap]]] = {}
        for source, mapped, shape in zip(node.inputs, told, call.inputs, strict=True):
            if -1 in mapped:  # only the shape of this input matters
                continue
            for field in found.get(source, ()):
                through = _through(field.axes, mapped, shape, output)
                parts.setdefault(field.input, []).append((through, mapped))
        found[name] = tuple(
            Field(origin, _unite(branches, output)) for origin, branches in parts.items()
        )


def _unite(
    branches: list[tuple[tuple[Axis, ...], AccessMap]], output: tuple[int, ...]
) -> tuple[Axis, ...]:
    """What is seen through any of the branches, axis by axis."""
    axes, reaches = zip(*branches, strict=True)
    return tuple(
        _union(_in_their_parts(each, reaches, output), output) for each in zip(*axes, strict=True)
    )


def _in_their_parts(
    axes: tuple[Axis, ...], reaches: tuple[AccessMap, ...], output: tuple[int, ...]
) -> tuple[Axis, ...]:
    """A part of a join in which all positions see the same is still seen only from that part."""
    carriers = {axis.carrier for axis in axes}
    if None not in carriers or len(carriers) == 1:
        return axes
    placed = list(axes)
    for n, axis in enumerate(axes):
        for place, mapped in reaches[n].values():
            part = axis.carrier is None and isinstance(mapped, SliceMap) and place in carriers
            if part and output[place] <= MOST_PHASES:
                only = axis.stretches[0]
                seen = tuple(only if mapped.at(i) else None for i in range(output[place]))
                placed[n] = replace(axis, carrier=place, stretches=seen, regular=False)
    return tuple(placed)


def _through(
    axes: tuple[Axis, ...],
    reach: AccessMap,
    shape: tuple[int, ...],
    output: tuple[int, ...],
) -> tuple[Axis, ...]:
    result = []
    for axis in axes:
        carrier = axis.carrier
        if carrier is None:
            result.append(axis)
        elif carrier not in reach:
            result.append(_collapse(axis, shape[carrier]))
        else:
            place, mapped = reach[carrier]
            result.append(_map(axis, mapped, place, shape[carrier], output[place]))
    return tuple(result)


def _map(axis: Axis, mapped: Map, place: int, size: int, length: int) -> Axis:
    """The axis of an op's output, given that of its input and how positions map."""
    if mapped is SAME and place == axis.carrier:
        return axis
    only = axis.stretches[0]
    if len(axis.stretches) == 1 and axis.regular and type(mapped) is WindowMap and only is not None:
        near = -mapped.begin * axis.advance
        far = near + (mapped.taps - 1) * mapped.dilation * axis.advance
        stretch = only[0] + min(near, far), only[1] + max(near, far)  # far is first if reversed
        return Axis(axis.length, place, (stretch,), axis.advance * mapped.stride, axis.aligned)
    if not axis.regular or mapped.period == 0:
        seen = tuple(_hull(axis, mapped.at(i)) for i in range(min(length, MOST_PHASES + 1)))
        if length > MOST_PHASES:
            return _collapse(axis, size)
        return replace(axis, carrier=place, stretches=seen, advance=0, regular=False)
    period = len(axis.stretches)
    turns = period // gcd(period, mapped.advance)
    phases = turns * mapped.period
    if phases > MOST_PHASES:
        return _collapse(axis, size)
    advance = axis.advance * (turns * mapped.advance // period)
    seen = tuple(_hull(axis, mapped.at(i)) for i in range(phases))
    return _shortest(replace(axis, carrier=place, stretches=seen, advance=advance))


def _hull(axis: Axis, positions: range) -> Stretch:
    """First and last input seen from these positions; a period from either end has them both."""
    period = len(axis.stretches)
    near: Iterable[int] = positions
    if axis.regular and len(positions) > 2 * period:
        near = (*positions[:period], *positions[-period:])
    seen = [stretch for j in near if (stretch := axis.at(j)) is not None]
    if not seen:
        return None
    return min(s[0] for s in seen), max(s[1] for s in seen)


def _collapse(axis: Axis, size: int) -> Axis:
    """All positions together."""
    return replace(
        axis, carrier=None, stretches=(_hull(axis, range(size)),), advance=0, regular=True
    )


def _shortest(axis: Axis) -> Axis:
    """The same axis with the shortest period that tells it."""
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


def _union(axes: tuple[Axis, ...], output: tuple[int, ...]) -> Axis:
    """What positions see through any of the branches; misaligned if strides or centres differ."""
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
    if len(carriers - {None}) > 1:
        axes = tuple(
            _collapse(axis, output[axis.carrier]) if axis.carrier is not None else axis
            for axis in axes
        )
        carriers = {None}
    carrier = max((c for c in carriers if c is not None), default=None)
    if carrier is None:
        joined = _merge([axis.stretches[0] for axis in axes])
        return replace(first, carrier=None, stretches=(joined,), advance=0, aligned=_agree(axes, 1))
    strides = {axis.stride if axis.carrier is not None else None for axis in axes}
    if len(strides) == 1 and None not in strides:
        phases = lcm(*(len(axis.stretches) for axis in axes))
        if phases <= MOST_PHASES:
            seen = tuple(_merge([axis.at(i) for axis in axes]) for i in range(phases))
            advance = first.advance * (phases // len(first.stretches))
            return _shortest(Axis(first.length, carrier, seen, advance, _agree(axes, phases)))
    length = output[carrier]
    if length > MOST_PHASES:
        flat = [_collapse(axis, length) if axis.carrier is not None else axis for axis in axes]
        joined = _merge([axis.stretches[0] for axis in flat])
        return Axis(first.length, None, (joined,), 0, aligned=False)
    seen = tuple(_merge([axis.at(i) for axis in axes]) for i in range(length))
    return Axis(first.length, carrier, seen, 0, aligned=_agree(axes, length), regular=False)


def _plain_union(axes: tuple[Axis, ...]) -> Axis | None:
    """Of axes that all move alike from position to position, as nearly all of them do."""
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
    return Axis(first.length, carrier, ((low, high),), advance, aligned)


def _merge(stretches: list[Stretch]) -> Stretch:
    seen = [stretch for stretch in stretches if stretch is not None]
    return (min(s[0] for s in seen), max(s[1] for s in seen)) if seen else None


def _agree(axes: tuple[Axis, ...], phases: int) -> bool:
    """Whether all branches look at the same centre from every position."""
    if not all(axis.aligned for axis in axes):
        return False
    for i in range(phases):
        centres = {s[0] + s[1] for axis in axes if (s := axis.at(i)) is not None}
        if len(centres) > 1:
            return False
    return True
