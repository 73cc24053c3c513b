"""Layers of a printed module: the op, attributes and parameters of a class with its arguments.

A class of torch.nn is read by its name. A class of others that prints the arguments of one of
torch.nn is read as a subclass of that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import LayerscopeError
from layerscope.formats.document.module_arguments import Arguments, Value
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role, Shape
from layerscope.ops.calls import infer_call, params_of

Reader = Callable[[Arguments], "TextLayer"]
WIDTH = 64  # of a sample input, along axes that parameters do not depend on


class TextLayer(Struct, frozen=True):
    """A layer as its text has it; `sample` is a shape that it takes, if parameters need one."""

    op: str
    attributes: Struct | None = None
    sample: Shape = ()
    channels: int = 0  # that it takes along axis 1; 0: any
    trailing: Shape = ()  # last axes that it takes; (): any
    rank: int = 0  # of its input; 0: any
    params: tuple[Param, ...] | None = None  # instead of those that the op has
    left_open: str = ""  # what its text does not say, and what is assumed
    why: str = ""  # why its op is not known
    keeps_text: bool = False  # the arguments are not in op and attributes without an input
    dtype: str = "fp32"

    def parameters(self) -> tuple[Param, ...]:
        """Parameters and buffers."""
        if self.params is not None or not self.sample:
            return self.params or ()
        try:
            found = params_of(self.op, infer_call(self.op, self.attributes, (self.sample,)), "fp32")
        except LayerscopeError:  # sizes that the op refuses
            return ()
        if self.dtype == "fp32":
            return found
        return tuple(
            replace(param, dtype=self.dtype) if param.role == "weight" else param for param in found
        )


class OtherArguments(Exception):
    """The arguments are not those of the class of torch.nn."""


def _window(a: Arguments, rank: int, sizes: Sequence[tuple[int, ...]] | None = None) -> at.Window:
    kernel, stride = sizes or (a.sizes("kernel_size", rank), a.sizes("stride", rank, 1))
    pads: at.Pads | at.Same
    padding = a.value("padding")
    if padding == "same":
        pads = "same_upper"
    elif padding == "valid":
        pads = ((0, 0),) * rank
    else:
        pads = tuple((size, size) for size in a.sizes("padding", rank, 0))
    rounding: at.Rounding = "torch" if a.flag("ceil_mode", default=False) else "floor"
    return at.Window(kernel, stride, pads, a.sizes("dilation", rank, 1), rounding)


def _plane(channels: int, rank: int) -> Shape:
    return (1, channels, *(WIDTH,) * rank)


def _roomy(channels: int, window: at.Window) -> Shape:
    """An input that a window fits into."""
    return (1, channels, *window.extents)


def _conv(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, out = a.count(0), a.count(1)
        window = _window(a, rank)
        attributes = at.Conv(window, out, a.count("groups", 1), a.flag("bias", default=True))
        if not channels:  # a lazy module
            return TextLayer("conv", attributes, params=(), why="its input channels are not set")
        mode = a.word("padding_mode", "zeros")
        return TextLayer(
            "conv", attributes, _roomy(channels, window), channels, rank=rank + 2,
            keeps_text=mode != "zeros" or a.value("padding") == "valid",
        )  # fmt: skip

    return read


def _conv_transpose(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, out = a.count(0), a.count(1)
        window, extra = _window(a, rank), a.sizes("output_padding", rank, 0)
        bias = a.flag("bias", default=True)
        attributes = at.TransposedConv(window, out, a.count("groups", 1), bias, extra)
        return TextLayer(
            "conv_transpose", attributes, _plane(channels, rank), channels, rank=rank + 2
        )

    return read


def _linear(a: Arguments) -> TextLayer:
    features, out = a.count("in_features"), a.count("out_features")
    attributes = at.Linear(out, a.flag("bias", default=True))
    if not features:
        return TextLayer("linear", attributes, params=(), why="its input features are not set")
    return TextLayer("linear", attributes, (1, features), trailing=(features,))


def _bilinear(a: Arguments) -> TextLayer:
    first, second = a.count("in1_features"), a.count("in2_features")
    out = a.count("out_features")
    params = [Param("weight", (out, first, second))]
    if a.flag("bias", default=True):
        params.append(Param("bias", (out,), "bias"))
    why = "it takes two inputs, and a print does not say which"
    return TextLayer("bilinear", params=tuple(params), why=why)


def _pool(kind: str, rank: int, left_open: str = "") -> Reader:
    def read(a: Arguments) -> TextLayer:
        kernel = a.sizes("kernel_size", rank)
        stride = kernel if a.value("stride") is None else a.sizes("stride", rank)
        window = _window(a, rank, (kernel, stride))
        power = int(a.number("norm_type", 2))
        attributes = at.Pool(window, p=power)
        return TextLayer(f"{kind}_pool", attributes, rank=rank + 2, left_open=left_open)

    return read


def _adaptive_pool(kind: str, rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        given = a.value("output_size")
        if not a.has("output_size"):
            raise KeyError("output_size")
        each = given if isinstance(given, tuple) else (given,) * rank
        bins = tuple(size if isinstance(size, int) else None for size in each)
        if len(bins) != rank:
            raise a.named["output_size"].refuse(a.where, f"{rank} sizes")
        # as the writer prints them: one size for a global pool, all sizes for an adaptive one
        if rank > 1 and given == 1:
            return TextLayer(f"global_{kind}_pool", at.GlobalPool(), rank=rank + 2)
        return TextLayer(f"adaptive_{kind}_pool", at.AdaptivePool(bins), rank=rank + 2)

    return read


def _statistics(channels: int) -> tuple[Param, ...]:
    return (
        Param("running_mean", (channels,), "statistic"),
        Param("running_var", (channels,), "statistic"),
    )


def _scale_and_bias(shape: Shape, *, bias: bool = True) -> tuple[Param, ...]:
    scale = Param("weight", shape, "scale")
    return (scale, Param("bias", shape, "bias")) if bias else (scale,)


def _batch_norm(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, affine = a.count(0), a.flag("affine", default=True)
        bias = a.flag("bias", default=affine)
        tracks = a.flag("track_running_stats", default=True)
        attributes = at.BatchNorm(affine, a.number("eps", 1e-5), a.number("momentum", 0.1))
        params = None
        if not tracks or (affine and not bias):
            learned = _scale_and_bias((channels,), bias=bias) if affine else ()
            params = (*learned, *(_statistics(channels) if tracks else ()))
        unusual = params is not None or a.value("momentum") is None
        return TextLayer(
            "batch_norm", attributes, _plane(channels, rank), channels,
            params=params, keeps_text=unusual or not affine,
        )  # fmt: skip

    return read


def _frozen_batch_norm(a: Arguments) -> TextLayer:
    channels = a.count(0)
    params = tuple(
        Param(name, (channels,), "statistic")
        for name in ("weight", "bias", "running_mean", "running_var")
    )
    attributes = at.BatchNorm(eps=a.number("eps", 1e-5), evaluated=True)
    return TextLayer(
        "batch_norm", attributes, _plane(channels, 2), channels, params=params, keeps_text=True
    )


def _instance_norm(rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        channels, affine = a.count(0), a.flag("affine", default=False)
        attributes = at.InstanceNorm(affine, a.number("eps", 1e-5))
        tracks = a.flag("track_running_stats", default=False)
        learned = _scale_and_bias((channels,)) if affine else ()
        params = (*learned, *_statistics(channels)) if tracks else None
        return TextLayer(
            "instance_norm", attributes, _plane(channels, rank), channels,
            params=params, keeps_text=True,
        )  # fmt: skip

    return read


def _normalized(a: Arguments) -> Shape:
    given = a.value(0) if a.positional else None
    rank = len(given) if isinstance(given, tuple) else 1
    return a.sizes(0, max(rank, 1))


def _layer_norm(a: Arguments) -> TextLayer:
    shape, affine = _normalized(a), a.flag("elementwise_affine", default=True)
    bias = a.flag("bias", default=affine)
    attributes = at.LayerNorm(-len(shape), affine, bias or not affine, a.number("eps", 1e-5))
    return TextLayer("layer_norm", attributes, (1, *shape), trailing=shape, keeps_text=not affine)


def _rms_norm(a: Arguments) -> TextLayer:
    shape, affine = _normalized(a), a.flag("elementwise_affine", default=True)
    attributes = at.RMSNorm(-len(shape), affine, a.number("eps", 1e-6))
    return TextLayer("rms_norm", attributes, (1, *shape), trailing=shape, keeps_text=True)


def _group_norm(a: Arguments) -> TextLayer:
    groups, channels = a.count(0), a.count(1)
    affine = a.flag("affine", default=True)
    attributes = at.GroupNorm(groups, affine, a.number("eps", 1e-5))
    params = None
    if affine and not a.flag("bias", default=True):
        params = _scale_and_bias((channels,), bias=False)
    return TextLayer(
        "group_norm", attributes, _plane(channels, 1), channels,
        params=params, keeps_text=not affine or params is not None,
    )  # fmt: skip


def _lrn(a: Arguments) -> TextLayer:
    numbers = (a.number("alpha", 1e-4), a.number("beta", 0.75), a.number("k", 1.0))
    return TextLayer("lrn", at.LocalResponseNorm(a.count(0), *numbers))


def _activation(op: str, *names: str) -> Reader:
    def read(a: Arguments) -> TextLayer:
        values: list[float | None] = []
        for name in names:
            found = a.number(name, -1e300)
            values.append(None if found == -1e300 else found)
        return TextLayer(op, at.Activation(*values, in_place=a.flag("inplace", default=False)))

    return read


def _gelu(a: Arguments) -> TextLayer:
    return TextLayer("gelu_tanh" if a.word("approximate", "none") == "tanh" else "gelu")


def _prelu(a: Arguments) -> TextLayer:
    channels = a.count("num_parameters")
    if channels == 1:
        return TextLayer("prelu", at.PReLU(shared=True), _plane(1, 1))
    return TextLayer("prelu", at.PReLU(), _plane(channels, 1), channels)


def _softmax(op: str) -> Reader:
    def read(a: Arguments) -> TextLayer:
        given = a.value("dim")
        if given is None:
            return TextLayer(op, at.Softmax(1), left_open="dim", keeps_text=True)
        if isinstance(given, bool) or not isinstance(given, int):
            raise a.named["dim"].refuse(a.where, "a whole number")
        return TextLayer(op, at.Softmax(given))

    return read


def _dropout(a: Arguments, *, channels: bool = False) -> TextLayer:
    p = a.number("p", 0.5)
    in_place = a.flag("inplace", default=False)
    return TextLayer("dropout", at.Dropout(p, in_place, channels=channels), keeps_text=channels)


def _channel_dropout(a: Arguments) -> TextLayer:
    return _dropout(a, channels=True)


def _drop_path(a: Arguments) -> TextLayer:
    """A residual branch left out at random in training; nothing at inference."""
    p = a.number("p", a.number("drop_prob", 0.0))
    return TextLayer("dropout", at.Dropout(p), keeps_text=True)


def _embedding(a: Arguments) -> TextLayer:
    rows, features = a.count(0), a.count(1)
    return TextLayer("embedding", at.Embedding(rows, features), (1, 1), keeps_text=True)


def _embedding_bag(a: Arguments) -> TextLayer:
    params = (Param("weight", (a.count(0), a.count(1)), "embedding"),)
    return TextLayer("embedding_bag", params=params, why="a print does not say its bags")


def _recurrent(op: str) -> Reader:
    def read(a: Arguments) -> TextLayer:
        features, hidden = a.count(0), a.count(1)
        attributes = at.Recurrent(
            hidden,
            a.count("num_layers", 1),
            a.flag("bidirectional", default=False),
            a.flag("bias", default=True),
            a.flag("batch_first", default=False),
            a.count("proj_size", 0),
            dropout=a.number("dropout", 0.0),
        )
        left_open = "nonlinearity (tanh)" if op == "rnn" else ""
        return TextLayer(
            op, attributes, (1, 1, features), trailing=(features,), rank=3, left_open=left_open,
            keeps_text=True,
        )  # fmt: skip

    return read


def _cell(gates: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        features, hidden = a.count(0), a.count(1)
        rows = gates * hidden
        params = [Param("weight_ih", (rows, features)), Param("weight_hh", (rows, hidden))]
        if a.flag("bias", default=True):
            params += [Param(name, (rows,), "bias") for name in ("bias_ih", "bias_hh")]
        why = "a print does not say how often a cell runs"
        return TextLayer("recurrent_cell", params=tuple(params), why=why)

    return read


def _flatten(a: Arguments) -> TextLayer:
    bounds = [a.value("start_dim"), a.value("end_dim")]
    start, end = (
        bound if isinstance(bound, int) else default
        for bound, default in zip(bounds, (1, -1), strict=True)
    )
    return TextLayer("flatten", at.Flatten(start, end))


def _unflatten(a: Arguments) -> TextLayer:
    axis, sizes = a.value("dim"), a.value("unflattened_size")
    shape = tuple(size for size in sizes if isinstance(size, int)) if _tuple(sizes) else ()
    if not isinstance(axis, int) or not isinstance(sizes, tuple) or len(shape) != len(sizes):
        raise KeyError("dim")
    return TextLayer("reshape", at.Reshape(shape, axis, 1), keeps_text=True)


def _tuple(value: Value) -> bool:
    return isinstance(value, tuple)


def _pad(mode: at.Filling, rank: int) -> Reader:
    def read(a: Arguments) -> TextLayer:
        key: str | int = "padding" if a.has("padding") else 0
        given = a.value(key)
        each = given if isinstance(given, tuple) else (given,) * (2 * rank)
        sizes = [size for size in each if isinstance(size, int)]
        if len(sizes) != 2 * rank:
            raise KeyError(key)
        pairs = [(sizes[n], sizes[n + 1]) for n in range(0, 2 * rank, 2)][::-1]
        return TextLayer(
            "pad", at.Pad(((0, 0), (0, 0), *pairs), mode), rank=rank + 2, keeps_text=True
        )

    return read


def _upsample(a: Arguments) -> TextLayer:
    modes: dict[str, at.Sampling] = {"bicubic": "bicubic", "nearest": "nearest"}
    mode = modes.get(a.word("mode", "nearest").removesuffix("-exact"), "bilinear")
    size = a.value("size")
    if size is not None:
        sizes = size if isinstance(size, tuple) else (size,)
        whole = tuple(each for each in sizes if isinstance(each, int))
        if len(whole) == 1:
            raise KeyError("size")  # of every axis, and their number is not printed
        return TextLayer("resize", at.Resize(mode, whole), keeps_text=True)
    scale = a.value("scale_factor")
    factors = scale if isinstance(scale, tuple) else (scale,)
    ratios = []
    for factor in factors:
        if isinstance(factor, (bool, str, tuple)) or factor is None or not 0 < factor < 1e6:
            raise KeyError("scale_factor")
        ratios.append(float(factor).as_integer_ratio())
    return TextLayer("resize", at.Resize(mode, scale=tuple(ratios)), keeps_text=True)


def _shuffle(*, inverse: bool) -> Reader:
    name = "downscale_factor" if inverse else "upscale_factor"
    return lambda a: TextLayer(
        "pixel_shuffle", at.PixelShuffle(a.count(name), inverse), keeps_text=inverse
    )


def _plain(op: str, attributes: Struct | None = None, *, keeps_text: bool = False) -> Reader:
    return lambda a: TextLayer(op, attributes, keeps_text=keeps_text)


def _loss(op: str) -> Reader:
    why = "it takes a target besides the output, and a print does not say which"
    return lambda a: TextLayer(op, why=why)


def _quantized(read: Reader, *, bias: str = "") -> Reader:
    """A quantized layer, whose weight is int8."""

    def quantized(a: Arguments) -> TextLayer:
        layer = read(a)
        return replace(layer, dtype="int8", left_open=bias, keeps_text=True)

    return quantized


RANKS = (1, 2, 3)
POOLED = "ceil_mode and count_include_pad (False and True)"
BIAS = "bias (with one)"
CLASSES: dict[str, Reader] = {
    **{f"Conv{n}d": _conv(n) for n in RANKS},
    **{f"ConvTranspose{n}d": _conv_transpose(n) for n in RANKS},
    **{f"MaxPool{n}d": _pool("max", n) for n in RANKS},
    **{f"AvgPool{n}d": _pool("avg", n, POOLED) for n in RANKS},
    **{f"LPPool{n}d": _pool("lp", n) for n in RANKS},
    **{f"AdaptiveMaxPool{n}d": _adaptive_pool("max", n) for n in RANKS},
    **{f"AdaptiveAvgPool{n}d": _adaptive_pool("avg", n) for n in RANKS},
    **{f"BatchNorm{n}d": _batch_norm(n) for n in RANKS},
    "SyncBatchNorm": _batch_norm(2),
    "FrozenBatchNorm2d": _frozen_batch_norm,
    **{f"InstanceNorm{n}d": _instance_norm(n) for n in RANKS},
    "LayerNorm": _layer_norm, "RMSNorm": _rms_norm, "GroupNorm": _group_norm,
    "LocalResponseNorm": _lrn,
    "Linear": _linear, "NonDynamicallyQuantizableLinear": _linear, "Bilinear": _bilinear,
    "Embedding": _embedding, "EmbeddingBag": _embedding_bag,
    "RNN": _recurrent("rnn"), "LSTM": _recurrent("lstm"), "GRU": _recurrent("gru"),
    "RNNCell": _cell(1), "LSTMCell": _cell(4), "GRUCell": _cell(3),
    "ReLU": _activation("relu"), "ReLU6": _activation("relu6"),
    "LeakyReLU": _activation("leaky_relu", "negative_slope"), "PReLU": _prelu,
    "ELU": _activation("elu", "alpha"), "CELU": _activation("celu", "alpha"),
    "SELU": _activation("selu"), "SiLU": _activation("silu"), "Mish": _activation("mish"),
    "GELU": _gelu, "Sigmoid": _plain("sigmoid"), "Tanh": _plain("tanh"),
    "Hardswish": _plain("hard_swish"), "Hardsigmoid": _plain("hard_sigmoid"),
    "Hardtanh": _activation("clip", "min_val", "max_val"),
    "Threshold": _activation("threshold", "threshold", "value"),
    "Softplus": _activation("softplus", "beta", "threshold"),
    "Softsign": _plain("softsign"), "LogSigmoid": _plain("log_sigmoid"),
    "Hardshrink": _plain("shrink", keeps_text=True),
    "Softshrink": _plain("shrink", keeps_text=True),
    "Softmax": _softmax("softmax"), "LogSoftmax": _softmax("log_softmax"),
    "Softmax2d": _plain("softmax", at.Softmax(1), keeps_text=True),
    "Dropout": _dropout, "AlphaDropout": _dropout, "FeatureAlphaDropout": _channel_dropout,
    **{f"Dropout{n}d": _channel_dropout for n in RANKS},
    "StochasticDepth": _drop_path, "DropPath": _drop_path,
    "Identity": _plain("identity"), "Flatten": _flatten, "Unflatten": _unflatten,
    **{f"ZeroPad{n}d": _pad("constant", n) for n in RANKS},
    **{f"ConstantPad{n}d": _pad("constant", n) for n in RANKS},
    **{f"ReflectionPad{n}d": _pad("reflect", n) for n in RANKS},
    **{f"ReplicationPad{n}d": _pad("edge", n) for n in RANKS},
    **{f"CircularPad{n}d": _pad("wrap", n) for n in RANKS},
    "Upsample": _upsample, "UpsamplingNearest2d": _upsample, "UpsamplingBilinear2d": _upsample,
    "PixelShuffle": _shuffle(inverse=False), "PixelUnshuffle": _shuffle(inverse=True),
    "ChannelShuffle": lambda a: TextLayer(
        "channel_shuffle", at.ChannelShuffle(a.count("groups")), keeps_text=True
    ),
    "CrossEntropyLoss": _loss("softmax_loss"), "NLLLoss": _loss("nll_loss"),
    "MSELoss": _loss("mse_loss"), "L1Loss": _loss("l1_loss"),
    "BCEWithLogitsLoss": _loss("sigmoid_cross_entropy"),
    **{f"QuantizedConv{n}d": _quantized(_conv(n)) for n in RANKS},
    **{f"QuantizedConvReLU{n}d": _quantized(_conv(n)) for n in RANKS},
    "QuantizedLinear": _quantized(_linear, bias=BIAS),
    "QuantizedLinearReLU": _quantized(_linear, bias=BIAS),
    "DynamicQuantizedLinear": _quantized(_linear, bias=BIAS),
    "DynamicQuantizedLinearReLU": _quantized(_linear, bias=BIAS),
    "QuantStub": _plain("identity", keeps_text=True),
    "DeQuantStub": _plain("identity", keeps_text=True),
}  # fmt: skip


def layer_of(kind: str, a: Arguments) -> TextLayer | None:
    """The layer of a class by its name; None if the class or its arguments are not torch.nn's."""
    reader = CLASSES.get(kind)
    return None if reader is None else _read(reader, a)


def like_layer(a: Arguments) -> tuple[str, TextLayer] | None:
    """The class of torch.nn that prints arguments such as these, and its layer; None for none."""
    kind = _class_by_arguments(a)
    layer = layer_of(kind, a) if kind else None
    return None if layer is None else (kind, replace(layer, keeps_text=True))


def _read(reader: Reader, a: Arguments) -> TextLayer | None:
    try:
        return reader(a)
    except (KeyError, OtherArguments):
        return None


def _class_by_arguments(a: Arguments) -> str:
    first = [each.value for each in a.positional[:2]]
    if a.has("kernel_size", "stride") and len(first) == 2 and all(_whole(v) for v in first):
        kernel = a.value("kernel_size")
        rank = len(kernel) if isinstance(kernel, tuple) else 0
        kind = "ConvTranspose" if a.has("output_padding") else "Conv"
        return f"{kind}{rank}d" if rank in RANKS else ""
    if a.has("in_features", "out_features"):
        return "Linear"
    if a.has("eps", "elementwise_affine") and first:
        return "LayerNorm"
    if a.has("eps", "momentum", "affine") and first and _whole(first[0]):
        return "BatchNorm2d"
    if a.has("eps", "affine") and len(first) == 2 and all(_whole(v) for v in first):
        return "GroupNorm"
    return ""


def _whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def attention_params(features: int, *, bias: bool) -> tuple[Param, ...]:
    """The input projections of nn.MultiheadAttention, which a print leaves out."""
    found: list[tuple[str, Shape, Role]] = [
        ("in_proj_weight", (3 * features, features), "weight")
    ]
    if bias:
        found.append(("in_proj_bias", (3 * features,), "bias"))
    return tuple(Param(name, shape, role) for name, shape, role in found)
