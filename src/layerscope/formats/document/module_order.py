"""A printed module as nodes: which tensor each layer takes, as far as the text determines it.

The modules of a Sequential run in the order of the text. The forward of any other class is not in
the text. By default its modules run in the order of the text too; one that does not fit the output
before it takes the input of the module around it, if it fits that, else an unknown tensor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from layerscope.errors import LayerscopeError
from layerscope.formats.document.module_arguments import Arguments
from layerscope.formats.document.module_layer import TextLayer
from layerscope.formats.document.module_layers import attention_params, layer_of, like_layer
from layerscope.formats.document.module_print import PrintedModule
from layerscope.graph import attributes as at
from layerscope.graph.types import Node, Param, Role, Shape, Source, elements
from layerscope.limits import ARRAY_RANK, NUMBER_DIGITS
from layerscope.ops import SPECS
from layerscope.ops.calls import infer_call, params_of

SEQUENTIAL = "Sequential"
LISTS = ("ModuleList", "ModuleDict")
PARAMETERS = ("ParameterList", "ParameterDict", "BufferList", "BufferDict")
GLOBAL = ("adaptive_avg_pool", "adaptive_max_pool", "global_avg_pool", "global_max_pool")
ARRAY = re.compile(
    r"(?:Parameter|Buffer) containing: \[torch\.\w+ of size (?P<sizes>[\dx]*)[^\]]*\]"
)
UNDETERMINED = "undetermined"  # the tensor of unknown shape
WHY = "not a class of torch.nn: the text does not say what it computes"
ASSUMED = "the order of the layers is assumed"
HEADS = "the text has neither its heads nor the keys that it attends to"
CHANNELS_KEPT = frozenset(("max_pool", "avg_pool", "lp_pool", "batch_norm", "dropout", *GLOBAL))


class Flow(Struct, frozen=True):
    """A tensor on its way: its shape, or at least its channels, where the text gives them."""

    name: str
    shape: Shape | None = None
    channels: int | None = None
    certain: bool = True  # no order was assumed


class Walk:
    """The nodes and modules of a print, collected in the order of the text."""

    def __init__(self, file: str, inputs: Flow) -> None:
        self.file = file
        self.input = inputs
        self.nodes: list[Node] = []
        self.modules: dict[str, str] = {}
        self.containers: set[str] = set()
        self.assumed: dict[str, int] = {}  # class whose forward is not in the text -> how often
        self.unknown: dict[str, int] = {}  # class that is not one of torch.nn
        self.likened: dict[str, str] = {}  # class -> that of torch.nn whose arguments it prints
        self.opened: dict[str, str] = {}  # class -> arguments that are not printed
        self.unfit: list[str] = []  # layers that take no tensor before them
        self.attention = 0
        self.inserted: list[str] = []  # layers before which their input is flattened
        self.names: set[str] = {inputs.name, UNDETERMINED}
        self.own_layout = False
        self._params: dict[tuple[str, Struct | None, Shape], tuple[Param, ...]] = {}

    @property
    def nowhere(self) -> Flow:
        """The tensor of unknown shape."""
        return Flow(UNDETERMINED, certain=False)

    def run(self, module: PrintedModule, path: str, x: Flow, others: tuple[Flow, ...] = ()) -> Flow:
        """The output of a module for `x`, or for one of `others` if `x` does not fit."""
        if module.kind in PARAMETERS:
            self._arrays(module, path)
            return x
        if not module.kind:
            return self._text(module, path, x)
        layer, text = self._layer(module)
        if module.children:
            self.modules[path] = module.kind
            if layer is not None:
                x = self._add(layer, module, path, (x, *others))
            elif module.kind == "MultiheadAttention":
                x = self._attend(module, path, x)
            return self._inside(module, path, x, others)
        if layer is None:
            if not module.arguments and module.kind in (SEQUENTIAL, *LISTS):
                self.modules[path] = module.kind
                return x
            self.unknown[module.kind] = self.unknown.get(module.kind, 0) + 1
            self.modules[path] = text
            return self._unknown(module, path, x)
        self.modules[path] = text if layer.keeps_text or layer.why else ""
        return self._add(layer, module, path, (x, *others))

    def _layer(self, module: PrintedModule) -> tuple[TextLayer | None, str]:
        """The layer that a class is, if any, and its whole text."""
        arguments = Arguments(module.arguments, self.file)
        shown = ", ".join(
            f"{each.name}={each.text}" if each.name else each.text for each in module.arguments
        )
        text = f"{module.kind}({shown})"
        layer = layer_of(module.kind, arguments)
        if layer is None:
            liked = like_layer(arguments)
            if liked is None:
                return None, text
            self.likened[module.kind] = liked[0]
            layer = liked[1]
        if layer.left_open:
            self.opened[module.kind] = layer.left_open
        return layer, text

    def _inside(self, module: PrintedModule, path: str, x: Flow, others: tuple[Flow, ...]) -> Flow:
        """Run the modules of a module one after the other."""
        start, first = x, True
        ordered = module.kind == SEQUENTIAL
        if ordered or module.kind in LISTS:
            self.containers.add(path)
        if not ordered:
            self.assumed[module.kind] = self.assumed.get(module.kind, 0) + 1
            x = Flow(x.name, x.shape, x.channels, certain=False)
        begun = len(self.nodes)
        for child in module.children:
            for name in child.names():
                inner = f"{path}.{name}" if path else name
                if ordered:
                    also = others if first else ()
                else:
                    also = (start, *others) if first else (start,)
                x = self.run(child, inner, x, also)
                first = False
        if not ordered and path and self._is_ambiguous(start, x, begun):
            return self.nowhere
        return x

    def _is_ambiguous(self, start: Flow, end: Flow, begun: int) -> bool:
        """Whether a module may return its input, weighted by what it pools: its shape is open."""
        if start.shape is None or end.shape is None or start.shape == end.shape:
            return False
        pools = any(node.op in GLOBAL for node in self.nodes[begun:])
        return pools and start.shape[:2] == end.shape[:2] and len(start.shape) > 2

    # -- one layer

    def _add(
        self, layer: TextLayer, module: PrintedModule, path: str, candidates: tuple[Flow, ...]
    ) -> Flow:
        """A node on the first tensor that it fits."""
        params = self._parameters(layer)
        if layer.op not in SPECS or layer.why:
            return self._opaque(layer.op, params, layer.why, (module, path, candidates[0]))
        for x in candidates:
            for flat in (False, True):
                fits, shape = self._fit(layer, params, x, flat=flat)
                if not fits:
                    continue
                if flat:
                    x = self._flattened(path, x)
                return self._node(layer, params, (module, path, x), shape)
        self.unfit.append(path)
        return self._node(layer, params, (module, path, self.nowhere), None)

    def _parameters(self, layer: TextLayer) -> tuple[Param, ...]:
        if layer.params is not None or layer.dtype != "fp32":
            return layer.parameters()
        key = (layer.op, layer.attributes, layer.sample)
        found = self._params.get(key)
        if found is None:
            found = self._params[key] = layer.parameters()
        return found

    def _fit(
        self, layer: TextLayer, params: tuple[Param, ...], x: Flow, *, flat: bool
    ) -> tuple[bool, Shape | None]:
        """Whether a layer takes a tensor, flattened if asked, and the shape that it returns."""
        shape = x.shape
        if shape is None:
            wrong = layer.channels and x.channels is not None and layer.channels != x.channels
            return not wrong and not flat, None
        if flat:
            if layer.op != "linear" or len(shape) < 3 or layer.trailing != (elements(shape[1:]),):
                return False, None
            shape = (shape[0], elements(shape[1:]))
        if layer.rank and len(shape) != layer.rank:
            return False, None
        if layer.channels and (len(shape) < 2 or shape[1] != layer.channels):
            return False, None
        if layer.trailing and shape[-len(layer.trailing) :] != layer.trailing:
            return False, None
        try:
            call = infer_call(layer.op, layer.attributes, (shape,))
            derived = params_of(layer.op, call, "fp32")
        except LayerscopeError:
            return False, None
        if layer.params is None and [p.shape for p in derived] != [p.shape for p in params]:
            return False, None
        return True, call.outputs[0]

    def _flattened(self, path: str, x: Flow) -> Flow:
        name = self._fresh(f"{path}.flatten" if path else "flatten")
        shape = x.shape or ()
        self.inserted.append(path)
        self.nodes.append(
            Node(
                name, "flatten", (x.name,), (name,), at.Flatten(), scope=_scope(path),
                note="not in the text: the next layer takes a vector", estimate=not x.certain,
            )
        )  # fmt: skip
        return Flow(name, (shape[0], elements(shape[1:])), None, x.certain)

    def _node(
        self,
        layer: TextLayer,
        params: tuple[Param, ...],
        where: tuple[PrintedModule, str, Flow],
        shape: Shape | None,
    ) -> Flow:
        module, path, x = where
        name = self._fresh(path or module.kind)
        usual = layer.params is None and layer.dtype == "fp32"
        if not usual:
            self.own_layout = True
        certain = x.certain and module.kind not in self.likened
        outputs = _outputs(layer.op, name)
        self.nodes.append(
            Node(
                name,
                layer.op,
                (x.name,),
                outputs,
                layer.attributes,
                None if shape is not None and usual else params,
                _scope(path),
                path,
                source=self._source(module),
                note="" if certain or shape is None else ASSUMED,
                estimate=not certain and shape is not None,
            )
        )
        channels = getattr(layer.attributes, "out_channels", None)
        if channels is None and (layer.op in CHANNELS_KEPT or _is_pointwise(layer.op)):
            channels = layer.channels or x.channels
        return Flow(outputs[0], shape, channels, certain)

    def _source(self, module: PrintedModule) -> Source:
        return Source(self.file, module.line, module.kind, column=module.column)

    def _opaque(
        self,
        op: str,
        params: tuple[Param, ...] | None,
        why: str,
        where: tuple[PrintedModule, str, Flow],
        *,
        keeps_shape: bool = False,
    ) -> Flow:
        """A node whose operations are unknown."""
        module, path, x = where
        name = self._fresh(path or module.kind)
        self.own_layout = self.own_layout or bool(params)
        opaque = at.Opaque((), why=why)
        if keeps_shape:
            opaque = at.Opaque((), why=why, infer="same", sizes=(0,))
        self.nodes.append(
            Node(
                name, f"module.{op}", (x.name,), (name,), opaque, params, _scope(path), path,
                source=self._source(module),
            )
        )  # fmt: skip
        return Flow(name, x.shape if keeps_shape else None, certain=False)

    def _unknown(self, module: PrintedModule, path: str, x: Flow) -> Flow:
        return self._opaque(module.kind, None, WHY, (module, path, x))

    def _attend(self, module: PrintedModule, path: str, x: Flow) -> Flow:
        """Multi-head attention, whose input projections are parameters of the module itself."""
        for child in module.children:
            arguments = Arguments(child.arguments, self.file)
            if child.name == "out_proj" and arguments.has("in_features"):
                features = arguments.count("in_features")
                bias = arguments.flag("bias", default=True)
                params = attention_params(features, bias=bias)
                self.attention += 1
                where = (module, path, x)
                return self._opaque("MultiheadAttention", params, HEADS, where, keeps_shape=True)
        return x

    def _arrays(self, module: PrintedModule, path: str) -> None:
        """The arrays of a ParameterList, whose shapes are printed."""
        self.modules[path] = module.kind
        params = []
        for child in module.children:
            match = ARRAY.match(child.text)
            if match is None:
                continue
            parts = [size for size in match["sizes"].split("x") if size]
            where = f"{self.file}:{child.line}:{child.column}"
            ARRAY_RANK.check(len(parts), where)
            NUMBER_DIGITS.check(max(map(len, parts), default=0), where)
            sizes = [int(size) for size in parts]
            learned = module.kind.startswith("Parameter")
            role: Role = "weight" if learned else "statistic"
            params.append(Param(child.name, tuple(sizes), role))
        if params:
            node = (module, path, self.nowhere)
            self._opaque(module.kind, tuple(params), "it only has arrays", node)

    def _text(self, module: PrintedModule, path: str, x: Flow) -> Flow:
        """A module that prints no class and arguments."""
        if module.text == "None":
            return x
        self.modules[path] = module.text
        kind = re.match(r"\w*", module.text)
        module.kind = (kind[0] if kind is not None else "") or "module"
        self.unknown[module.kind] = self.unknown.get(module.kind, 0) + 1
        return self._unknown(module, path, x)

    def _fresh(self, name: str) -> str:
        count, found = 1, name
        while found in self.names:
            count += 1
            found = f"{name}_{count}"
        self.names.add(found)
        return found


def _scope(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")[:-1])


def _outputs(op: str, name: str) -> tuple[str, ...]:
    """Names of the outputs; a recurrent layer also returns its states."""
    count = {"lstm": 3, "gru": 2, "rnn": 2}.get(op, 1)
    return (name,) if count == 1 else tuple(f"{name}:{n}" for n in range(count))


def _is_pointwise(op: str) -> bool:
    return SPECS[op].family == "activation"


def inputs_of(shapes: Mapping[str, Shape], root: PrintedModule) -> Flow:
    """The tensor that the network takes, of the shape that the user gives, with or without N."""
    if not shapes:
        return Flow("input")
    name, shape = next(iter(shapes.items()))
    rank = _first_rank(root)
    if rank and len(shape) == rank - 1:
        shape = (1, *shape)
    return Flow(name or "input", shape)


def _first_rank(module: PrintedModule) -> int:
    """The rank of what the first layer of a module takes; 0 if it takes any."""
    while module.children and module.kind:
        module = module.children[0]
    layer = layer_of(module.kind, Arguments(module.arguments, ""))
    return 0 if layer is None else layer.rank
