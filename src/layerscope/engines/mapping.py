"""Engine nodes back to source layers, after fusing, renaming, folding and changes of layout.

An engine's operator is anchored to a source operator by the name of its output, else by its own
name, else by the arrays it reads. It covers what lies between its anchor and its inputs, and
further on what it takes to use all of its inputs (a sum that a convolution adds to) and its
activation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from layerscope.engines.onnx_nodes import Operator, Program

# Operators that only change how a tensor lies in memory; rows of their own if the source has none.
LAYOUTS = frozenset({"ReorderInput", "ReorderOutput", "Reorder", "Transpose"})
# Operators that an engine puts in and that hand their first input on.
VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast"})
# Source operators that are left out rather than fused: no name of theirs is shown in a row.
DROPPED = frozenset({"Identity", "Dropout", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})
STEPS = 8  # how far a search for the reader of an input goes
FUSED = re.compile(r"^fused ")


class Group(Struct, frozen=True):
    """Engine operators that stand for some source layers; with none, nobody knows for which."""

    layers: tuple[str, ...]
    shown: tuple[str, ...]  # those of them that are worth a name
    operators: tuple[int, ...]
    layout: bool = False


class Mapped(Struct, frozen=True):
    """Groups in order of execution, source layers that nothing runs for, and what tensors are."""

    groups: tuple[Group, ...]
    removed: tuple[str, ...]
    tensors: dict[str, str]  # an engine's tensor -> the source's that it holds


def map_operators(source: Program, owners: Sequence[str], engine: Program) -> Mapped:
    """Every operator of the engine in a group; `owners` are the layers of the source's."""
    placing = _Placing(source, engine)
    for index in range(len(engine.operators)):
        placing.place(index)
    placing.absorb()
    return _grouped(placing, owners)


class _Placing:
    """Which source operators each of the engine's covers."""

    def __init__(self, source: Program, engine: Program) -> None:
        self.source, self.engine = source, engine
        self.producer = {t: n for n, op in enumerate(source.operators) for t in op.outputs}
        self.consumers: dict[str, list[int]] = {}
        for n, op in enumerate(source.operators):
            for name in op.inputs:
                self.consumers.setdefault(name, []).append(n)
        self.names = {op.name: n for n, op in enumerate(source.operators) if op.name}
        self.names = {**self.producer, **self.names}
        self.moving = self._moving()
        made = {name for op in engine.operators for name in op.outputs}
        self.claimed = {self.producer[name] for name in made if name in self.producer}
        self.same: dict[str, str] = {name: name for name in (*source.inputs, *source.stored)}
        self.covers: list[set[int]] = [set() for _ in engine.operators]
        self.joins: dict[int, int] = {}  # an operator that belongs to what another covers
        self.owner: dict[int, int] = {}  # source operator -> the engine's
        self.readers: dict[str, list[int]] = {}
        for n, op in enumerate(engine.operators):
            for name in op.inputs:
                self.readers.setdefault(name, []).append(n)
        self.makers = {name: n for n, op in enumerate(engine.operators) for name in op.outputs}

    def _moving(self) -> set[int]:
        """Source operators that depend on an input; others are folded when a model is loaded."""
        given, moving = set(self.source.inputs), set()
        for n, op in enumerate(self.source.operators):
            if any(name in given for name in op.inputs):
                moving.add(n)
                given.update(op.outputs)
        return moving

    def place(self, index: int) -> None:
        op = self.engine.operators[index]
        known = {self.same[name] for name in op.inputs if name in self.same}
        anchors = self._anchors(op)
        if not anchors or all(anchor in self.owner for anchor in anchors):
            if anchors:
                self.joins[index] = self.owner[anchors[0]]
            self._hand_on(op, known)
            return
        free = [anchor for anchor in anchors if anchor not in self.owner]
        cover = self._between(free, known)
        result = self.source.operators[max(free)].outputs
        cover, last = self._stretch(cover, max(free), op)
        cover, last = self._activated(op, cover, last)
        self._cover(index, cover)
        if last != max(free):
            result = self.source.operators[last].outputs
        for name, mine in zip(op.outputs, result, strict=False):
            self.same[name] = mine
        for name in op.outputs:
            if name in self.producer and last == max(free):
                self.same[name] = name

    def _hand_on(self, op: Operator, known: set[str]) -> None:
        """What an operator of the engine's own holds: a tensor of the source, or its input."""
        for name in op.outputs:
            if name in self.producer:
                self.same[name] = name
            elif op.kind in LAYOUTS | VIEWS and op.inputs and op.inputs[0] in self.same:
                self.same[name] = self.same[op.inputs[0]]

    def _anchors(self, op: Operator) -> list[int]:
        """Source operators by the names of outputs, by the operator's own, by its arrays."""
        found = [self.producer[name] for name in op.outputs if name in self.producer]
        named = self._named(op.name)
        if op.kind in LAYOUTS:
            # A reorder is named for nothing; it stands before or after what has its tensor.
            kinds = {self.source.operators[n].kind for n in found}
            return [n for n in found if n not in self.owner] if op.kind in kinds else []
        if found:
            # A fused node may keep the name of an output that it does not compute any more.
            return sorted({n for n in found if n in self.moving})
        if named is not None and named in self.moving:
            return [named]
        read = {
            reader
            for name in op.inputs
            if name in self.source.stored and len(self.consumers.get(name, ())) == 1
            for reader in self.consumers[name]
        }
        return [max(read)] if read and max(read) in self.moving else []

    def _named(self, name: str) -> int | None:
        """The source operator whose name is the longest beginning of this one."""
        name = FUSED.sub("", name)
        for end in range(len(name), 0, -1):
            if end < len(name) and name[end].isalnum():
                continue
            if name[:end] in self.names:
                return self.names[name[:end]]
        return None

    def _between(self, anchors: Iterable[int], known: set[str]) -> set[int]:
        """Source operators from the anchors back to known tensors or to what others cover."""
        cover, todo = set(), list(anchors)
        while todo:
            n = todo.pop()
            if n in cover or n in self.owner or n not in self.moving:
                continue
            cover.add(n)
            inputs = self.source.operators[n].inputs
            todo += [self.producer[t] for t in inputs if t not in known and t in self.producer]
        return cover

    def _stretch(self, cover: set[int], last: int, op: Operator) -> tuple[set[int], int]:
        """Go on to readers of inputs that the cover has no use for, such as a sum's other side."""
        given = Counter(self.same[name] for name in op.inputs if name in self.same)
        known = set(given)
        for _ in range(STEPS):
            used = Counter(name for n in cover for name in self.source.operators[n].inputs)
            made = {name for n in cover for name in self.source.operators[n].outputs}
            spare = {
                name
                for name in given - used
                if name not in made
                and any(n not in self.owner for n in self.consumers.get(name, ()))
                and (name not in self.source.stored or len(self.consumers[name]) == 1)
            }
            reader = self._reader(last, spare) if spare else None
            if reader is None:
                break
            cover |= self._between([reader], known | made) | {reader}
            last = reader
        return cover, last

    def _reader(self, start: int, wanted: set[str]) -> int | None:
        """The nearest operator after `start` that reads one of the wanted tensors."""
        layer, seen = [start], {start}
        for _ in range(STEPS):
            following = []
            for n in layer:
                for name in self.source.operators[n].outputs:
                    for reader in self.consumers.get(name, ()):
                        if reader in seen or reader in self.owner:
                            continue
                        seen.add(reader)
                        if wanted & set(self.source.operators[reader].inputs):
                            return reader
                        if reader not in self.claimed:
                            following.append(reader)
            layer = following
        return None

    def _activated(self, op: Operator, cover: set[int], last: int) -> tuple[set[int], int]:
        """The activation that an operator was told to apply, where the cover ends before it."""
        kinds = {self.source.operators[n].kind for n in cover}
        if not op.activation or op.activation in kinds:
            return cover, last
        layer = [last]
        for _ in range(2):  # past something that was dropped
            readers = [
                reader
                for n in layer
                for name in self.source.operators[n].outputs
                for reader in self.consumers.get(name, ())
                if reader not in self.owner
            ]
            for reader in readers:
                if self.source.operators[reader].kind == op.activation:
                    return cover | {reader, *layer}, reader
            layer = [n for n in readers if self.source.operators[n].kind in DROPPED]
        return cover, last

    def _cover(self, index: int, cover: set[int]) -> None:
        self.covers[index] |= cover
        for n in cover:
            self.owner[n] = index

    def absorb(self) -> None:
        """Give what is left to the operator that makes its input: activations go with it."""
        for n, op in enumerate(self.source.operators):
            if n in self.owner or n not in self.moving or op.kind in DROPPED:
                continue
            made = [self.producer[name] for name in op.inputs if name in self.producer]
            owners = [self.owner[m] for m in made if m in self.owner]
            if owners:
                self._cover(max(owners), {n})

    def partner(self, index: int) -> tuple[int | None, str]:
        """The operator that one of the engine's own serves, and the tensor it hands on."""
        if index in self.joins:
            return self.joins[index], ""
        op = self.engine.operators[index]
        for name in (*op.outputs, *op.inputs[:1]):
            if name in self.same and self.same[name] in self.producer:
                return self.owner.get(self.producer[self.same[name]]), self.same[name]
        seen = {index}
        todo = [reader for name in op.outputs for reader in self.readers.get(name, ())]
        while todo:
            n = todo.pop(0)
            if n in seen:
                continue
            seen.add(n)
            if self.covers[n]:
                return n, ""
            todo += [
                r for name in self.engine.operators[n].outputs for r in self.readers.get(name, ())
            ]
        makers = [self.makers[name] for name in op.inputs if name in self.makers]
        return next((n for n in makers if self.covers[n]), None), ""


def _grouped(placing: _Placing, owners: Sequence[str]) -> Mapped:
    """Join operators that cover parts of one layer, and layers that one operator covers."""
    engine, source = placing.engine.operators, placing.source.operators
    root: dict[str, str] = {}

    def find(layer: str) -> str:
        while root.setdefault(layer, layer) != layer:
            layer = root[layer]
        return layer

    mine: list[list[str]] = []
    for cover in placing.covers:
        layers = [owners[n] for n in sorted(cover) if owners[n]]
        mine.append(layers)
        for layer in layers[1:]:
            root[find(layer)] = find(layers[0])
    members: dict[str, list[int]] = {}
    layouts: list[tuple[int, str]] = []
    unknown: list[int] = []
    for index, op in enumerate(engine):
        if mine[index]:
            members.setdefault(find(mine[index][0]), []).append(index)
            continue
        partner, _ = placing.partner(index)
        layers = mine[partner] if partner is not None else []
        if op.kind in LAYOUTS and index not in placing.joins:
            layouts.append((index, layers[0] if layers else ""))
        elif layers:
            members.setdefault(find(layers[0]), []).append(index)
        else:
            unknown.append(index)
    position = {layer: n for n, layer in reversed(list(enumerate(owners)))}
    kinds: dict[str, set[str]] = {}
    covered: dict[str, set[str]] = {}
    for n in placing.owner:
        kinds.setdefault(owners[n], set()).add(source[n].kind)
        covered.setdefault(find(owners[n]), set()).add(owners[n])
    groups = []
    for key, operators in members.items():
        layers = sorted(covered.get(key, {key}), key=lambda layer: position.get(layer, 0))
        shown = [layer for layer in layers if not kinds.get(layer, set()) <= DROPPED]
        shown = shown or layers[-1:]
        groups.append(Group(tuple(layers), tuple(shown), tuple(operators)))
    groups += [
        Group((layer,) if layer else (), (layer,) if layer else (), (index,), True)
        for index, layer in layouts
    ]
    groups += [Group((), (), (index,)) for index in unknown]
    groups.sort(key=lambda group: group.operators[0])
    run = {layer for group in groups if not group.layout for layer in group.layers}
    removed = tuple(dict.fromkeys(layer for layer in owners if layer and layer not in run))
    return Mapped(tuple(groups), removed, dict(placing.same))


def owners_of(source: Program, layers: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """The layer of each operator: of its outputs, else the longest layer name its own begins with.

    `layers` gives the layer that makes a tensor, `names` are those of all layers.
    """
    known = set(names)
    found = []
    for op in source.operators:
        layer = next((layers[name] for name in op.outputs if name in layers), "")
        name = op.name
        while not layer and name:
            if name in known:
                layer = name
            name = name.rpartition("/")[0]
        found.append(layer)
    return found
