"""What PyTorch prints for a model: the tree of its modules, each with its arguments.

The format is that of torch 2.13, which prints the bias of norms. An op that is not a module of
PyTorch is printed under its own name. A network without modules, or with names that PyTorch does
not allow (`inception_3a/1x1`), is printed as one flat module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from layerscope.escaping import visible
from layerscope.graph.attributes import (
    Activation,
    AdaptivePool,
    BatchNorm,
    Conv,
    Dropout,
    Flatten,
    GroupNorm,
    LayerNorm,
    Linear,
    LocalResponseNorm,
    PixelShuffle,
    Pool,
    PReLU,
    Resize,
    RoIPool,
    Softmax,
    TransposedConv,
    Window,
)
from layerscope.graph.types import elements
from layerscope.ops import Call
from layerscope.report import Layer, Report

Text = tuple[str, str]  # class name, and the text in its parentheses
Printer = Callable[..., Text]  # takes the attributes of an op and its call


def write(report: Report) -> str:
    """The printed module; a path that is called several times is printed once."""
    return print_modules(report, lambda path: "")


def print_modules(report: Report, figures: Callable[[str], str]) -> str:
    """The printed module, with figures before the arguments of each module."""
    modules = dict(report.graph.modules)
    leaves = leaves_of(report)
    for path in leaves:
        modules.setdefault(path, "")
    children: dict[str, list[str]] = {}
    homes = {path for path, kind in modules.items() if kind or path not in leaves}
    folders = folders_of(modules)
    for path in modules:
        if path and (path in leaves or path not in folders):
            children.setdefault(_parent(path, homes), []).append(path)
    kinds = {"": report.graph.name} | {path: kind for path, kind in modules.items() if kind}
    return _Tree(kinds, leaves, children, figures).text("") + "\n"


def leaves_of(report: Report) -> dict[str, Text]:
    """Class and arguments of every module that is an operation, by its path."""
    found: dict[str, Text] = {}
    for layer in report.layers:
        path = layer.node.module if report.graph.modules else layer.name
        if path:
            found.setdefault(path, leaf_text(layer))
    return found


def leaf_class(path: str, layers: Sequence[Layer]) -> str:
    """The class of a module that has no name of its own: of its operation, if it is one."""
    is_leaf = len(layers) == 1 and layers[0].node.module in (path, "")
    return leaf_text(layers[0])[0] if is_leaf else "Module"


def folders_of(paths: Iterable[str]) -> set[str]:
    """What stands before a `/` in names that PyTorch does not allow: no module by itself."""
    return {path[:end] for path in paths for end, c in enumerate(path) if c == "/"}


def _parent(path: str, homes: set[str]) -> str:
    while path:
        path = path.rpartition(".")[0]
        if path in homes:
            break
    return path


class _Tree(Struct, frozen=True):
    """The modules of a model, as they are printed."""

    kinds: dict[str, str]
    leaves: dict[str, Text]
    children: dict[str, list[str]]
    figures: Callable[[str], str]

    def text(self, path: str) -> str:
        """The print of one module."""
        inside = self.children.get(path, [])
        if path in self.leaves and not inside:
            kind, args = self.leaves[path]
            return _leaf(self.kinds.get(path, kind), args, self.figures(path))
        kind = self.kinds.get(path, "Module")
        if not inside:
            return _leaf(kind, "", self.figures(path))
        start = len(path) + 1 if path else 0
        shown = [(child[start:], self.text(child)) for child in inside]
        own = self.figures(path)
        if kind == "ModuleList":
            own, shown = "", _repeats(shown)  # it prints no figures of its own
        lines = [f"({visible(name)}): {text}" for name, text in shown]
        inner = [*([own] if own else []), *(line.replace("\n", "\n  ") for line in lines)]
        return "\n  ".join([f"{visible(kind)}(", *inner]) + "\n)"


def _leaf(kind: str, args: str, figures: str) -> str:
    """One line; a class name that has arguments, such as `StochasticDepth(p=0.1)`, keeps them."""
    kind = visible(kind)
    if not kind.endswith(")"):
        return f"{kind}({figures}{visible(args)})"
    name, _, given = kind.partition("(")
    return f"{name}({figures}{given}"


def _repeats(shown: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A ModuleList prints equal consecutive modules once, with their range and count."""
    runs: list[tuple[int, int, str]] = []
    for index, (_, text) in enumerate(shown):
        if runs and runs[-1][2] == text:
            runs[-1] = (runs[-1][0], index, text)
        else:
            runs.append((index, index, text))
    return [
        (f"{first}-{last}", f"{last - first + 1} x {text}") if first != last else (str(first), text)
        for first, last, text in runs
    ]


def leaf_text(layer: Layer) -> Text:
    """The PyTorch class of an op, and its arguments as PyTorch prints them."""
    printer = PRINTERS.get(layer.op)
    if printer is None:
        return layer.op, ""
    return printer(layer.node.attributes, layer.call or _stored_call(layer))


def _stored_call(layer: Layer) -> Call | None:
    """A call as the stored arrays of a layer of unknown shapes imply it; None if they do not."""
    node = layer.node
    source = "" if node.source is None else node.source.op
    axes = (1,) * int(source[-2]) if source[-2:] in ("1d", "2d", "3d") else (1, 1)
    arrays = [param.shape for param in node.params or ()]
    if not arrays:
        shape: tuple[int, ...] | None = (1, 1, *axes) if layer.op.startswith("global_") else None
    elif layer.op == "conv":
        shape = (1, arrays[0][1] * node.attributes.groups, *axes)
    elif layer.op == "linear":
        shape = (1, arrays[0][1])
    elif layer.op == "layer_norm":
        shape = (1, *arrays[0])
    else:
        shape = (1, arrays[0][0], *axes)
    return None if shape is None else Call(node.attributes, (shape,))


def _once(sizes: Sequence[object]) -> object:
    """The size if it is the same along all axes, else all sizes; a pair of pads is no size."""
    return sizes[0] if len(set(sizes)) == 1 and not isinstance(sizes[0], tuple) else sizes


def _pads(window: Window) -> Sequence[object]:
    if isinstance(window.pads, str):
        return window.pads.removesuffix("_upper")
    even = all(begin == end for begin, end in window.pads)
    return tuple(begin if even else (begin, end) for begin, end in window.pads)


def _channels(call: Call | None) -> int | str:
    return "?" if call is None else call.x[1]


def _rank(call: Call | None) -> int | str:
    return "?" if call is None else max(len(call.x) - 2, 1)


def _conv(kind: str) -> Printer:
    def text(a: Conv | TransposedConv, call: Call | None) -> Text:
        w, rank = a.window, a.window.rank
        extra = getattr(a, "output_padding", ()) or (0,) * rank
        args = f"{_channels(call)}, {a.out_channels}, kernel_size={w.kernel}, stride={w.stride}"
        args += f", padding={_pads(w)}" if _pads(w) != (0,) * rank else ""
        args += f", dilation={w.dilation}" if w.dilation != (1,) * rank else ""
        args += f", output_padding={extra}" if extra != (0,) * rank else ""
        args += f", groups={a.groups}" if a.groups != 1 else ""
        return f"{kind}{rank}d", args + ("" if a.bias else ", bias=False")

    return text


def _linear(a: Linear, call: Call | None) -> Text:
    features: int | str = "?"
    if call is not None:
        features = elements(call.x[1:]) if a.flatten else call.x[-1]
    return "Linear", f"in_features={features}, out_features={a.out_features}, bias={a.bias}"


def _pool(kind: str) -> Printer:
    def text(a: Pool, call: Call | None) -> Text:
        w = a.window
        sizes = {"kernel_size": w.kernel, "stride": w.stride, "padding": _pads(w)}
        single = kind != "Avg" or w.rank > 1  # AvgPool1d prints its sizes as tuples
        args = ", ".join(
            f"{name}={_once(value) if single else value}" for name, value in sizes.items()
        )
        if kind == "Max":
            args += f", dilation={_once(w.dilation)}, ceil_mode={w.rounding != 'floor'}"
        return f"{kind}Pool{w.rank}d", args

    return text


def _lp_pool(a: Pool, call: Call | None) -> Text:
    """PyTorch's LPPool has no padding, and prints a default stride as None."""
    w = a.window
    stride = None if w.stride == w.kernel else _once(w.stride)
    args = f"norm_type={a.p}, kernel_size={_once(w.kernel)}, stride={stride}"
    if isinstance(w.pads, str) or any(map(any, w.pads)):
        return "lp_pool", f"{args}, padding={_once(_pads(w))}"
    return f"LPPool{w.rank}d", f"{args}, ceil_mode={w.rounding != 'floor'}"


def _adaptive_pool(kind: str) -> Printer:
    def text(a: AdaptivePool, call: Call | None) -> Text:
        rank = len(a.output)
        return f"Adaptive{kind}Pool{rank}d", f"output_size={a.output[0] if rank == 1 else a.output}"

    return text


def _global_pool(kind: str) -> Printer:
    return lambda a, call: (f"Adaptive{kind}Pool{_rank(call)}d", "output_size=1")


def _batch_norm(a: BatchNorm | None, call: Call | None) -> Text:
    a = a or BatchNorm()
    return f"BatchNorm{_rank(call)}d", (
        f"{_channels(call)}, eps={a.eps}, momentum={a.momentum}, affine={a.affine}, "
        f"bias={a.affine}, track_running_stats=True"
    )


def _layer_norm(a: LayerNorm | None, call: Call | None) -> Text:
    a = a or LayerNorm()
    shape = "?" if call is None else call.x[a.axis :]
    bias = a.affine and a.bias
    return "LayerNorm", f"{shape}, eps={a.eps}, elementwise_affine={a.affine}, bias={bias}"


def _group_norm(a: GroupNorm, call: Call | None) -> Text:
    args = f"{a.groups}, {_channels(call)}, eps={a.eps}, affine={a.affine}, bias={a.affine}"
    return "GroupNorm", args


def _lrn(a: LocalResponseNorm, call: Call | None) -> Text:
    """PyTorch has no module for normalization within a channel."""
    kind = "lrn" if a.within_channel else "LocalResponseNorm"
    return kind, f"{a.size}, alpha={a.alpha}, beta={a.beta}, k={a.k}"


def _plain(kind: str, args: str = "") -> Printer:
    return lambda a, call: (kind, args)


def _activation(kind: str, *constants: tuple[str, float]) -> Printer:
    """`inplace` is printed only if true."""

    def text(a: Activation | None, call: Call | None) -> Text:
        a = a or Activation()
        given = (a.alpha, a.beta)
        args = [
            f"{name}={default if value is None else value}"
            for (name, default), value in zip(constants, given, strict=False)
        ]
        return kind, ", ".join([*args, "inplace=True"] if a.in_place else args)

    return text


def _prelu(a: PReLU | None, call: Call | None) -> Text:
    return "PReLU", f"num_parameters={1 if a is not None and a.shared else _channels(call)}"


def _softmax(kind: str) -> Printer:
    def text(a: Softmax | None, call: Call | None) -> Text:
        return kind, f"dim={1 if a is None else a.axis}"

    return text


def _dropout(a: Dropout | None, call: Call | None) -> Text:
    a = a or Dropout()
    return "Dropout", f"p={a.p}, inplace={a.in_place}"


def _flatten(a: Flatten | None, call: Call | None) -> Text:
    a = a or Flatten()
    return "Flatten", f"start_dim={a.start}, end_dim={a.end}"


def _upsample(a: Resize, call: Call | None) -> Text:
    factors = tuple(up / down for up, down in a.scale)
    size = f"size={a.size}" if a.size else f"scale_factor={_once(factors)}"
    linear = {1: "linear", 3: "trilinear"}.get(len(call.x) - 2 if call else 2, "bilinear")
    return "Upsample", f"{size}, mode={linear if a.mode == 'bilinear' else a.mode!r}"


def _pixel_shuffle(a: PixelShuffle, call: Call | None) -> Text:
    if a.inverse:
        return "PixelUnshuffle", f"downscale_factor={a.factor}"
    return "PixelShuffle", f"upscale_factor={a.factor}"


def _roi_pool(a: RoIPool, call: Call | None) -> Text:
    return "RoIPool", f"output_size={a.output}, spatial_scale={a.scale}"


PRINTERS: dict[str, Printer] = {
    "conv": _conv("Conv"),
    "conv_transpose": _conv("ConvTranspose"),
    "linear": _linear,
    "max_pool": _pool("Max"),
    "avg_pool": _pool("Avg"),
    "lp_pool": _lp_pool,
    "adaptive_max_pool": _adaptive_pool("Max"),
    "adaptive_avg_pool": _adaptive_pool("Avg"),
    "global_max_pool": _global_pool("Max"),
    "global_avg_pool": _global_pool("Avg"),
    "batch_norm": _batch_norm,
    "layer_norm": _layer_norm,
    "group_norm": _group_norm,
    "lrn": _lrn,
    "relu": _activation("ReLU"),
    "relu6": _activation("ReLU6"),
    "leaky_relu": _activation("LeakyReLU", ("negative_slope", 0.01)),
    "prelu": _prelu,
    "elu": _activation("ELU", ("alpha", 1.0)),
    "selu": _activation("SELU"),
    "silu": _activation("SiLU"),
    "softplus": _activation("Softplus", ("beta", 1.0), ("threshold", 20.0)),
    "sigmoid": _plain("Sigmoid"),
    "tanh": _plain("Tanh"),
    "gelu": _plain("GELU", "approximate='none'"),
    "gelu_tanh": _plain("GELU", "approximate='tanh'"),
    "hard_swish": _plain("Hardswish"),
    "hard_sigmoid": _plain("Hardsigmoid"),
    "softmax": _softmax("Softmax"),
    "log_softmax": _softmax("LogSoftmax"),
    "dropout": _dropout,
    "identity": _plain("Identity"),
    "flatten": _flatten,
    "resize": _upsample,
    "pixel_shuffle": _pixel_shuffle,
    "roi_pool": _roi_pool,
    "softmax_loss": _plain("CrossEntropyLoss"),
    "nll_loss": _plain("NLLLoss"),
    "mse_loss": _plain("MSELoss"),
    "l1_loss": _plain("L1Loss"),
    "sigmoid_cross_entropy": _plain("BCEWithLogitsLoss"),
}
