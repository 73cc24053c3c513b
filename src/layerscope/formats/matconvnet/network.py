"""Converts MatConvNet's layers into a graph of N x depth x height x width tensors.

- A layer without a name is called layer1, layer2 …; one whose name is taken gets _2, _3 ….
- The number of groups is not stored: it is the depth of the data divided by that of the filters.
- Labels are no inputs of a loss, as files do not have their sizes.
- A layer without a converter keeps its type as an op without a rule, and its arrays.
"""

from __future__ import annotations

from layerscope.errors import FormatError, ShapeError
from layerscope.formats import ReadOptions
from layerscope.formats.matconvnet.fields import MatLayer
from layerscope.formats.matconvnet.layers import DAG_NN, SIMPLE_NN, ConvertedLayer, filters_of
from layerscope.formats.matconvnet.wrappers import DATA, MatNetwork
from layerscope.graph.attributes import Reshape
from layerscope.graph.types import Graph, Node, Param, Shape, Source, Tensor

UNKNOWN = ("spnorm", "noffset", "pdist")  # types of MatConvNet that are no op's name


def build(net: MatNetwork, name: str, file: str, options: ReadOptions) -> Graph:
    """The graph of a network that was read from a file."""
    builder = _GraphBuilder(net, file, options)
    for layer in net.layers:
        try:
            builder.add(layer)
        except (FormatError, ShapeError) as error:
            raise FormatError(f"{layer.name}: {error}") from None
    read = {tensor for node in builder.nodes for tensor in node.inputs}
    results = [tensor for node in builder.nodes for tensor in node.outputs]
    outputs = tuple(tensor for tensor in results if tensor not in read)
    return Graph(name, tuple(builder.inputs.values()), tuple(builder.nodes), outputs)


class _GraphBuilder:
    """The nodes so far, and the depth of every variable."""

    def __init__(self, net: MatNetwork, file: str, options: ReadOptions) -> None:
        self.net, self.file, self.options = net, file, options
        self.table = SIMPLE_NN if net.chain else DAG_NN
        self.produced = {name for layer in net.layers for name in layer.outputs}
        given = [name for layer in net.layers for name in layer.inputs if name not in self.produced]
        self.first = given[0] if given else DATA
        self.inputs: dict[str, Tensor] = {}
        self.depths: dict[str, int | None] = {}
        self.nodes: list[Node] = []

    def add(self, layer: MatLayer) -> None:
        """Add the nodes of a layer, and graph inputs for inputs that no layer produces."""
        shapes = {
            name: self.inputs[name].shape if name in self.inputs else self.shape(name, layer)
            for name in layer.inputs
            if name not in self.produced
        }
        depths = [
            shape[1] if (shape := shapes.get(name)) else self.depths.get(name)
            for name in layer.inputs
        ]
        convert = self.table.get(layer.kind)
        convertible = convert is not None and depths and len(layer.outputs) == 1
        converted = convert(layer, depths) if convert is not None and convertible else None
        inputs = layer.inputs if converted is None else layer.inputs[: converted.reads]
        for name in inputs:
            if name in shapes and name not in self.inputs:
                self.inputs[name] = Tensor(name, shapes[name], source=Source(self.file))
        for name in layer.outputs:
            self.depths[name] = converted.depth if converted is not None else None
        if converted is None:
            self.nodes.append(self.unknown(layer))
        else:
            self.nodes.extend(self.nodes_of(layer, converted, inputs))

    def nodes_of(
        self, layer: MatLayer, converted: ConvertedLayer, inputs: tuple[str, ...]
    ) -> list[Node]:
        source = Source(self.file, op=layer.kind)
        outputs = (f"{layer.outputs[0]}/pooled",) if converted.flat else layer.outputs
        op, attributes, ties = converted.op, converted.attributes, _ties(layer, converted)
        node = Node(layer.name, op, inputs, outputs, attributes, ties=ties, source=source)
        if not converted.flat:
            return [node]
        flat = Reshape((0, -1, 1, 1))
        name = f"{layer.name}/flatten"
        return [node, Node(name, "reshape", outputs, layer.outputs, flat, source=source)]

    def unknown(self, layer: MatLayer) -> Node:
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

    def shape(self, name: str, layer: MatLayer) -> Shape | None:
        """The shape of an input; None where the file does not have it."""
        sizes = self.net.inputs.get(name, ())
        if not sizes and name == self.first:
            sizes = self.net.inputs.get("", ())
        if len(sizes) == 2:
            sizes = (*sizes, self.depth(layer))
        if sizes:
            height, width, depth, num = (*sizes, 1)[:4]
            return num, depth, height, width
        regions = layer.kind == "dagnn.ROIPooling" and name in layer.inputs[1:]
        return (self.options.proposals, 5) if regions else None

    def depth(self, layer: MatLayer) -> int:
        """The depth of an input that has only height and width: that of its filters, or 1."""
        conv = layer.kind in ("conv", "dagnn.Conv")
        filters = filters_of(layer) if conv else None
        return filters[2] if filters else 1


def _ties(layer: MatLayer, converted: ConvertedLayer) -> dict[str, str] | None:
    """The array names of a DagNN, by which layers share them; moments are two columns."""
    if not layer.params or not converted.params:
        return None
    names = layer.params
    if len(converted.params) == 4 and len(names) > 2:
        names = (*names[:2], f"{names[2]}(:,1)", f"{names[2]}(:,2)")
    return dict(zip(converted.params, names, strict=False))
