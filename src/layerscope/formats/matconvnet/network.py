"""A list of MatConvNet's layers as a graph: N x depth x height x width, the file's names kept.

- A layer without a name is called layer1, layer2 …; one called like an earlier one gets _2, _3 ….
- Groups are not stored: they are the depth of the data over that of the filters.
- Labels are not among what a loss reads, as no file tells their sizes.
- What has no op here keeps its type as an op without a rule, with the arrays it stores.
"""

from __future__ import annotations

from layerscope.errors import FormatError, ShapeError
from layerscope.formats import Options
from layerscope.formats.matconvnet.fields import Layer
from layerscope.formats.matconvnet.layers import DAG, SIMPLE, Made, filters_of
from layerscope.formats.matconvnet.wrappers import DATA, Network
from layerscope.graph.attributes import Reshape
from layerscope.graph.types import Graph, Node, Param, Shape, Source, Tensor

UNKNOWN = ("custom", "spnorm", "noffset", "pdist")  # MatConvNet's own words, which no op has


def build(net: Network, name: str, file: str, options: Options) -> Graph:
    """The graph of a network that was read from a file."""
    walk = _Walk(net, file, options)
    for layer in net.layers:
        try:
            walk.add(layer)
        except (FormatError, ShapeError) as error:
            raise FormatError(f"{layer.name}: {error}") from None
    read = {tensor for node in walk.nodes for tensor in node.inputs}
    made = [tensor for node in walk.nodes for tensor in node.outputs]
    outputs = tuple(tensor for tensor in made if tensor not in read)
    return Graph(name, tuple(walk.inputs.values()), tuple(walk.nodes), outputs)


class _Walk:
    """The nodes so far, and the depth of every variable."""

    def __init__(self, net: Network, file: str, options: Options) -> None:
        self.net, self.file, self.options = net, file, options
        self.table = SIMPLE if net.chain else DAG
        self.made = {name for layer in net.layers for name in layer.outputs}
        given = [name for layer in net.layers for name in layer.inputs if name not in self.made]
        self.first = given[0] if given else DATA
        self.inputs: dict[str, Tensor] = {}
        self.depths: dict[str, int | None] = {}
        self.nodes: list[Node] = []

    def add(self, layer: Layer) -> None:
        """The node of a layer, and those of its inputs that nothing makes."""
        shapes = {
            name: self.inputs[name].shape if name in self.inputs else self.shape(name, layer)
            for name in layer.inputs
            if name not in self.made
        }
        depths = [
            shape[1] if (shape := shapes.get(name)) else self.depths.get(name)
            for name in layer.inputs
        ]
        maker = self.table.get(layer.kind)
        made = maker(layer, depths) if maker and depths and len(layer.outputs) == 1 else None
        inputs = layer.inputs if made is None else layer.inputs[: made.reads]
        for name in inputs:
            if name in shapes and name not in self.inputs:
                self.inputs[name] = Tensor(name, shapes[name], source=Source(self.file))
        for name in layer.outputs:
            self.depths[name] = made.depth if made is not None else None
        if made is None:
            self.nodes.append(self.unknown(layer))
        else:
            self.nodes.extend(self.known(layer, made, inputs))

    def known(self, layer: Layer, made: Made, inputs: tuple[str, ...]) -> list[Node]:
        source = Source(self.file, op=layer.kind)
        outputs = (f"{layer.outputs[0]}/pooled",) if made.flat else layer.outputs
        ties = _ties(layer, made)
        node = Node(layer.name, made.op, inputs, outputs, made.attributes, ties=ties, source=source)
        if not made.flat:
            return [node]
        flat = Reshape((0, -1, 1, 1))
        name = f"{layer.name}/flatten"
        return [node, Node(name, "reshape", outputs, layer.outputs, flat, source=source)]

    def unknown(self, layer: Layer) -> Node:
        kind = layer.kind
        params = []
        for n, array in enumerate(layer.arrays):
            if array is not None and array.elements:
                own = layer.params[n] if n < len(layer.params) else ""
                params.append(Param(own or f"weights{n + 1}", array.shape, storage=own))
        return Node(
            layer.name,
            kind if "." in kind or kind in UNKNOWN else f"matconvnet.{kind}",
            layer.inputs,
            layer.outputs,
            params=tuple(params),
            source=Source(self.file, op=kind),
        )

    def shape(self, name: str, layer: Layer) -> Shape | None:
        """The shape of an input as the file tells it, if it does."""
        told = self.net.inputs.get(name, ())
        if not told and name == self.first:
            told = self.net.inputs.get("", ())
        if len(told) == 2:
            told = (*told, self.depth(layer))
        if told:
            height, width, depth, num = (*told, 1)[:4]
            return num, depth, height, width
        regions = layer.kind == "dagnn.ROIPooling" and name in layer.inputs[1:]
        return (self.options.proposals, 5) if regions else None

    def depth(self, layer: Layer) -> int:
        """Of an image whose height and width alone are told: that of the filters over it, or 1."""
        conv = layer.kind in ("conv", "dagnn.Conv")
        filters = filters_of(layer) if conv else None
        return filters[2] if filters else 1


def _ties(layer: Layer, made: Made) -> dict[str, str] | None:
    """What a DagNN calls the arrays: of the same name they are shared; moments are two columns."""
    if not layer.params or not made.params:
        return None
    names = layer.params
    if len(made.params) == 4 and len(names) > 2:
        names = (*names[:2], f"{names[2]}(:,1)", f"{names[2]}(:,2)")
    return dict(zip(made.params, names, strict=False))
