"""Layers of a printed module: the op, attributes and parameters of a class with its arguments.

A class of torch.nn is read by its name. A class of others that prints the arguments of one of
torch.nn is read as a subclass of that.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from layerscope.formats.document.module_arguments import Arguments, Value
from layerscope.formats.document.module_layer import RANKS, Reader, TextLayer, plane
from layerscope.formats.document.module_norms import NORMS
from layerscope.formats.document.module_windows import WINDOWED
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role, Shape


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


def _activation(op: str, *names: str) -> Reader:
    def read(a: Arguments) -> TextLayer:
        found = [a.number(name, UNSET) for name in names] + [UNSET, UNSET]
        alpha, beta = (None if value == UNSET else value for value in found[:2])
        return TextLayer(op, at.Activation(alpha, beta, a.flag("inplace", default=False)))

    return read


def _gelu(a: Arguments) -> TextLayer:
    return TextLayer("gelu_tanh" if a.word("approximate", "none") == "tanh" else "gelu")


def _prelu(a: Arguments) -> TextLayer:
    channels = a.count("num_parameters")
    if channels == 1:
        return TextLayer("prelu", at.PReLU(shared=True), plane(1, 1))
    return TextLayer("prelu", at.PReLU(), plane(channels, 1), channels)


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
    each = sizes if isinstance(sizes, tuple) else ()
    shape = tuple(size for size in each if isinstance(size, int))
    if not isinstance(axis, int) or not shape or len(shape) != len(each):
        raise KeyError("dim")
    return TextLayer("reshape", at.Reshape(shape, axis, 1), keeps_text=True)


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


BIAS = "bias (with one)"
UNSET = -1e300  # of a number that is not printed
CLASSES: dict[str, Reader] = {
    **WINDOWED,
    **NORMS,
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
    "ChannelShuffle": lambda a: TextLayer(
        "channel_shuffle", at.ChannelShuffle(a.count("groups")), keeps_text=True
    ),
    "CrossEntropyLoss": _loss("softmax_loss"), "NLLLoss": _loss("nll_loss"),
    "MSELoss": _loss("mse_loss"), "L1Loss": _loss("l1_loss"),
    "BCEWithLogitsLoss": _loss("sigmoid_cross_entropy"),
    **{f"QuantizedConv{n}d": _quantized(WINDOWED[f"Conv{n}d"]) for n in RANKS},
    **{f"QuantizedConvReLU{n}d": _quantized(WINDOWED[f"Conv{n}d"]) for n in RANKS},
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
    except KeyError:
        return None


def _class_by_arguments(a: Arguments) -> str:
    first = [each.value for each in a.positional[:2]]
    if a.has("kernel_size", "stride") and len(first) == 2 and all(_whole(v) for v in first):
        kernel = a.value("kernel_size")
        rank = len(kernel) if isinstance(kernel, tuple) else 0
        kind = "ConvTranspose" if a.has("output_padding") else "Conv"
        return f"{kind}{rank}d" if rank in RANKS else ""
    if a.has("kernel_size", "stride", "padding", "ceil_mode") and not first:
        kernel = a.value("kernel_size")
        return f"MaxPool{len(kernel)}d" if isinstance(kernel, tuple) else "MaxPool2d"
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
    found: list[tuple[str, Shape, Role]] = [("in_proj_weight", (3 * features, features), "weight")]
    if bias:
        found.append(("in_proj_bias", (3 * features,), "bias"))
    return tuple(Param(name, shape, role) for name, shape, role in found)
