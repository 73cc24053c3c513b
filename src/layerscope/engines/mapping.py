"""Map the nodes of an engine's optimised graph back to source layers.

The optimiser fuses, renames, folds and inserts nodes. An engine node is anchored to a source node
by the name of its output, else by its own name, else by the initializers it reads. It covers the
source nodes from its inputs to its anchor, and beyond the anchor those that use its remaining
inputs (a sum that is fused into a convolution) and its activation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from layerscope.engines.onnx_nodes import EngineGraph, EngineNode

# Engine nodes that only change the memory layout; rows of their own unless the source has them.
LAYOUTS = frozenset({"ReorderInput", "ReorderOutput", "Reorder", "Transpose"})
# Engine nodes whose output holds the same elements as their first input.
VIEWS = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast"})
# Source nodes that an optimiser removes rather than fuses; rows do not show their names.
DROPPED = frozenset({"Identity", "Dropout", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze"})
STEPS = 8  # nodes that a search for the reader of an input goes past
FUSED = re.compile(r"^fused ")


class Group(Struct, frozen=True):
    """Engine nodes that together run some source layers; no layers if they are unidentified."""

    layers: tuple[str, ...]
    shown: tuple[str, ...]  # those that the name of a row shows
    nodes: tuple[int, ...]
    layout: bool = False


class LayerMapping(Struct, frozen=True):
    """Groups in order of execution, and the source layers that no engine node runs."""

    groups: tuple[Group, ...]
    removed: tuple[str, ...]
    tensors: dict[str, str]  # engine tensor -> source tensor of the same elements


def map_nodes(source: EngineGraph, owners: Sequence[str], engine: EngineGraph) -> LayerMapping:
    """Put every engine node into a group; `owners` are the layers of the source nodes."""
    coverage = _Coverage(source, engine)
    for index in range(len(engine.nodes)):
        coverage.add(index)
    coverage.absorb_rest()
    return _grouped(coverage, owners)


class _Coverage:
    """Source nodes that each engine node covers."""

    def __init__(self, source: EngineGraph, engine: EngineGraph) -> None:
        self.source, self.engine = source, engine
        self.producer = {t: n for n, op in enumerate(source.nodes) for t in op.outputs}
        self.consumers: dict[str, list[int]] = {}
        for n, op in enumerate(source.nodes):
            for name in op.inputs:
                self.consumers.setdefault(name, []).append(n)
        self.names = {op.name: n for n, op in enumerate(source.nodes) if op.name}
        self.names = {**self.producer, **self.names}
        self.moving = self._moving()
        outputs = {name for op in engine.nodes for name in op.outputs}
        self.claimed = {self.producer[name] for name in outputs if name in self.producer}
        self.same: dict[str, str] = {name: name for name in (*source.inputs, *source.initializers)}
        self.covers: list[set[int]] = [set() for _ in engine.nodes]
        self.joins: dict[int, int] = {}  # engine node -> the engine node whose group it joins
        self.owner: dict[int, int] = {}  # source node -> the engine node that covers it
        self.readers: dict[str, list[int]] = {}
        for n, op in enumerate(engine.nodes):
            for name in op.inputs:
                self.readers.setdefault(name, []).append(n)
        self.producers = {name: n for n, op in enumerate(engine.nodes) for name in op.outputs}

    def _moving(self) -> set[int]:
        """Source nodes that depend on an input; the others are folded when a model is loaded."""
        variable, moving = set(self.source.inputs), set()
        for n, op in enumerate(self.source.nodes):
            if any(name in variable for name in op.inputs):
                moving.add(n)
                variable.update(op.outputs)
        return moving

    def add(self, index: int) -> None:
        """Find the source nodes that an engine node covers."""
        op = self.engine.nodes[index]
        sources = {self.same[name] for name in op.inputs if name in self.same}
        anchors = self._anchors(op)
        if not anchors or all(anchor in self.owner for anchor in anchors):
            if anchors:
                self.joins[index] = self.owner[anchors[0]]
            self._add_own_node(op)
            return
        free = [anchor for anchor in anchors if anchor not in self.owner]
        cover = self._between(free, sources)
        result = self.source.nodes[max(free)].outputs
        cover, last = self._extend_to_inputs(cover, max(free), op)
        cover, last = self._extend_to_activation(op, cover, last)
        self._cover(index, cover)
        if last != max(free):
            result = self.source.nodes[last].outputs
        for name, source_name in zip(op.outputs, result, strict=False):
            self.same[name] = source_name
        for name in op.outputs:
            if name in self.producer and last == max(free):
                self.same[name] = name

    def _add_own_node(self, op: EngineNode) -> None:
        """Note the source tensor that a node inserted by the engine passes through."""
        for name in op.outputs:
            if name in self.producer:
                self.same[name] = name
            elif op.op_type in LAYOUTS | VIEWS and op.inputs and op.inputs[0] in self.same:
                self.same[name] = self.same[op.inputs[0]]

    def _anchors(self, op: EngineNode) -> list[int]:
        """Source nodes found by the outputs, the name or the initializers of an engine node."""
        found = [self.producer[name] for name in op.outputs if name in self.producer]
        named = self._named(op.name)
        if op.op_type in LAYOUTS:
            # The name of a reorder says nothing: it precedes or follows the node of its tensor.
            kinds = {self.source.nodes[n].op_type for n in found}
            return [n for n in found if n not in self.owner] if op.op_type in kinds else []
        if found:
            # A fused node may keep an output name that belongs to a folded source node.
            return sorted({n for n in found if n in self.moving})
        if named is not None and named in self.moving:
            return [named]
        read = {
            reader
            for name in op.inputs
            if name in self.source.initializers and len(self.consumers.get(name, ())) == 1
            for reader in self.consumers[name]
        }
        return [max(read)] if read and max(read) in self.moving else []

    def _named(self, name: str) -> int | None:
        """The source node whose name is the longest prefix of this one."""
        name = FUSED.sub("", name)
        for end in range(len(name), 0, -1):
            if end < len(name) and name[end].isalnum():
                continue
            if name[:end] in self.names:
                return self.names[name[:end]]
        return None

    def _between(self, anchors: Iterable[int], sources: set[str]) -> set[int]:
        """Source nodes from the anchors back to the tensors `sources`, or to covered nodes."""
        cover, todo = set(), list(anchors)
        while todo:
            n = todo.pop()
            if n in cover or n in self.owner or n not in self.moving:
                continue
            cover.add(n)
            inputs = self.source.nodes[n].inputs
            todo += [self.producer[t] for t in inputs if t not in sources and t in self.producer]
        return cover

    def _extend_to_inputs(self, cover: set[int], last: int, op: EngineNode) -> tuple[set[int], int]:
        """Extend a cover to the readers of inputs that it does not use, such as a sum's operand."""
        given = Counter(self.same[name] for name in op.inputs if name in self.same)
        for _ in range(STEPS):
            used = Counter(name for n in cover for name in self.source.nodes[n].inputs)
            inner = {name for n in cover for name in self.source.nodes[n].outputs}
            spare = {
                name
                for name in given - used
                if name not in inner
                and any(n not in self.owner for n in self.consumers.get(name, ()))
                and (name not in self.source.initializers or len(self.consumers[name]) == 1)
            }
            reader = self._reader(last, spare) if spare else None
            if reader is None:
                break
            cover |= self._between([reader], set(given) | inner) | {reader}
            last = reader
        return cover, last

    def _reader(self, start: int, wanted: set[str]) -> int | None:
        """The nearest source node after `start` that reads one of the wanted tensors."""
        layer, seen = [start], {start}
        for _ in range(STEPS):
            following = []
            for n in layer:
                for name in self.source.nodes[n].outputs:
                    for reader in self.consumers.get(name, ()):
                        if reader in seen or reader in self.owner:
                            continue
                        seen.add(reader)
                        if wanted & set(self.source.nodes[reader].inputs):
                            return reader
                        if reader not in self.claimed:
                            following.append(reader)
            layer = following
        return None

    def _extend_to_activation(
        self, op: EngineNode, cover: set[int], last: int
    ) -> tuple[set[int], int]:
        """Extend a cover to the activation that is fused into the engine node."""
        kinds = {self.source.nodes[n].op_type for n in cover}
        if not op.activation or op.activation in kinds:
            return cover, last
        layer = [last]
        for _ in range(2):  # past one removed node
            readers = [
                reader
                for n in layer
                for name in self.source.nodes[n].outputs
                for reader in self.consumers.get(name, ())
                if reader not in self.owner
            ]
            for reader in readers:
                if self.source.nodes[reader].op_type == op.activation:
                    return cover | {reader, *layer}, reader
            layer = [n for n in readers if self.source.nodes[n].op_type in DROPPED]
        return cover, last

    def _cover(self, index: int, cover: set[int]) -> None:
        self.covers[index] |= cover
        for n in cover:
            self.owner[n] = index

    def absorb_rest(self) -> None:
        """Add uncovered source nodes to the engine node that produces their input."""
        for n, op in enumerate(self.source.nodes):
            if n in self.owner or n not in self.moving or op.op_type in DROPPED:
                continue
            sources = [self.producer[name] for name in op.inputs if name in self.producer]
            owners = [self.owner[m] for m in sources if m in self.owner]
            if owners:
                self._cover(max(owners), {n})

    def partner(self, index: int) -> tuple[int | None, str]:
        """The engine node that an inserted node belongs to, and the source tensor it passes on."""
        if index in self.joins:
            return self.joins[index], ""
        op = self.engine.nodes[index]
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
            todo += [r for name in self.engine.nodes[n].outputs for r in self.readers.get(name, ())]
        producers = [self.producers[name] for name in op.inputs if name in self.producers]
        return next((n for n in producers if self.covers[n]), None), ""


def _grouped(coverage: _Coverage, owners: Sequence[str]) -> LayerMapping:
    """Join nodes that cover parts of one layer, and layers that one node covers."""
    engine, source = coverage.engine.nodes, coverage.source.nodes
    root: dict[str, str] = {}

    def find(layer: str) -> str:
        while root.setdefault(layer, layer) != layer:
            layer = root[layer]
        return layer

    mine: list[list[str]] = []
    for cover in coverage.covers:
        layers = [owners[n] for n in sorted(cover) if owners[n]]
        mine.append(layers)
        for layer in layers[1:]:
            root[find(layer)] = find(layers[0])
    members: dict[str, list[int]] = {}
    layouts: list[tuple[int, str]] = []
    unidentified: list[int] = []
    for index, op in enumerate(engine):
        if mine[index]:
            members.setdefault(find(mine[index][0]), []).append(index)
            continue
        partner, _ = coverage.partner(index)
        layers = mine[partner] if partner is not None else []
        if op.op_type in LAYOUTS and index not in coverage.joins:
            layouts.append((index, layers[0] if layers else ""))
        elif layers:
            members.setdefault(find(layers[0]), []).append(index)
        else:
            unidentified.append(index)
    position = {layer: n for n, layer in reversed(list(enumerate(owners)))}
    kinds: dict[str, set[str]] = {}
    covered: dict[str, set[str]] = {}
    for n in coverage.owner:
        kinds.setdefault(owners[n], set()).add(source[n].op_type)
        covered.setdefault(find(owners[n]), set()).add(owners[n])
    groups = []
    for key, indices in members.items():
        layers = sorted(covered.get(key, {key}), key=lambda layer: position.get(layer, 0))
        shown = [layer for layer in layers if not kinds.get(layer, set()) <= DROPPED]
        shown = shown or layers[-1:]
        groups.append(Group(tuple(layers), tuple(shown), tuple(indices)))
    groups += [
        Group((layer,) if layer else (), (layer,) if layer else (), (index,), True)
        for index, layer in layouts
    ]
    groups += [Group((), (), (index,)) for index in unidentified]
    groups.sort(key=lambda group: group.nodes[0])
    run = {layer for group in groups if not group.layout for layer in group.layers}
    removed = tuple(dict.fromkeys(layer for layer in owners if layer and layer not in run))
    return LayerMapping(tuple(groups), removed, dict(coverage.same))


def owners_of(source: EngineGraph, layers: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """The layer of each node, by its outputs, else by the longest prefix that is a layer's name.

    `layers` maps tensors to the layers that produce them, `names` are the names of all layers.
    """
    layer_names = set(names)
    found = []
    for op in source.nodes:
        layer = next((layers[name] for name in op.outputs if name in layers), "")
        name = op.name
        while not layer and name:
            if name in layer_names:
                layer = name
            name = name.rpartition("/")[0]
        found.append(layer)
    return found
