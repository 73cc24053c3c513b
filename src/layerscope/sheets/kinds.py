"""What kind of layer a name or type cell says, in the spellings of documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

Kind = Literal[
    "input", "conv", "depthwise", "deconv", "max_pool", "avg_pool", "pool", "global_pool", "fc",
    "activation", "prelu", "batch_norm", "norm", "lrn", "scale", "dropout", "softmax", "flatten",
    "concat", "add", "embedding", "lstm", "gru", "bidirectional", "upsample", "loss", "total",
    "unknown",
]  # fmt: skip

# The first pattern that matches decides.
PATTERNS: tuple[tuple[str, Kind], ...] = (
    (r"^(input|data|image)\b|inputlayer|^input|输入层|^输入$", "input"),
    (r"deconv|\bconvt\b|\bup-? ?conv|conv\w*\.? ?transpose|transpose\w*conv|transposed conv"
     r"|反卷积|转置卷积", "deconv"),
    (r"depth-?wise|dw ?conv|conv ?dw|深度卷积", "depthwise"),
    (r"batch ?_?norm|^bn\d*|\bbn\b|_bn\b|批归一化", "batch_norm"),
    (r"\blrn\b|local ?response|^norm\d*$|lrn", "lrn"),
    (r"(?:layer|group|instance|rms)[ _]?norm|\bln\b", "norm"),
    (r"global\w*[ _]?\w*pool|adaptive\w*pool|\bgap\b|global (average|max)|全局", "global_pool"),
    (r"max[ _-]?pool|maxpool|max pooling|^max$|最大池化", "max_pool"),
    (r"av(era)?ge?[ _.-]?pool|^avg$|average pooling|平均池化|sub-?sampl|down-?sampl", "avg_pool"),
    (r"pool|池化", "pool"),
    (r"conv|卷积|cccp|mlpconv", "conv"),
    (r"inner ?product|fully|full[ -]conn|\bfc|(?<!non)(?<!non-)(?<!bi)(?<!tri)linear|dense\b"
     r"|dense_|全连接|\bdense", "fc"),
    (r"p-?relu", "prelu"),
    (r"relu|sigmoid|tanh|swish|silu|gelu|elu\b|softplus|mish|hardswish|activation|nonlinearity|leaky|激活",
     "activation"),
    (r"dropout|^drop", "dropout"),
    (r"loss|cost|accuracy|softmxl", "loss"),
    (r"soft-?max|softmxl?|sftmx", "softmax"),
    (r"flatten|reshape|permute|squeeze|view|展平", "flatten"),
    (r"concat|route|拼接", "concat"),
    (r"eltwise|^add\b|add_|shortcut|residual|\bsum\b|\badd\b", "add"),
    (r"embed", "embedding"),
    (r"bidirectional|\bbi-?(?:lstm|gru)", "bidirectional"),
    (r"lstm", "lstm"),
    (r"\bgru\b|gru_", "gru"),
    (r"up-?sampl|interpol|resize", "upsample"),
    (r"^scale(?!d)", "scale"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), kind) for pattern, kind in PATTERNS)
NORMS = re.compile(r"(?:layer|group|instance|rms)_norm\b")  # not the norm of its last word
POOLS: tuple[Kind, ...] = ("max_pool", "avg_pool", "pool")
SAME_SHAPE = ("activation", "prelu", "batch_norm", "norm", "lrn", "scale", "dropout", "softmax")
# conv3-64 of the VGG sheets: kernel and filters; pool2: kernel and stride
NAMED_CONV = re.compile(r"^conv\s*(\d{1,2})(?:x\d{1,2})?\s*-\s*(\d{1,5})$")
NAMED_POOL = re.compile(r"^(?:max)?pool\s*-?(\d)$")
NAMED_FC = re.compile(r"^fc-(\d{1,6})$")
# Conv 3x3, MaxPool (2x2), 3x3 conv
WORDED_KERNEL = re.compile(
    r"(?:conv(?:olution(?:al)?|[123]d)?|pool(?:ing)?(?:[123]d)?)\s*[-(,:]?\s*"
    r"(\d{1,2})\s*[x×]\s*(\d{1,2})(?!\s*[x×\d])"
    r"|(?<![x×\d])(?<![x×] )(\d{1,2})\s*[x×]\s*(\d{1,2})[\s,-]*"
    r"(?:depth\w*|separable|max|avg|average)?[\s-]*(?:conv|pool)"
)
BLOCKS = re.compile(
    r"\b(?:blocks|stages|modules|layers)\b(?![./_-])|submodule\(\d"
    r"|(?<![\d\s])\s*[x×]\s*\d+\s*\)|\(\s*\d+\s*[x×](?!\s*\d)"
    r"|^\d+\s*[x×*]\s*[\[({]?\s*[a-z_]{2,}|block\s*[x×]\s*\d|模块\s*[x×]\s*\d"
)
WITH_ACTIVATION = re.compile(
    r"(?:dense|linear|fc|conv|conv[123]d|fully connected|全连接层?|卷积层?)\s*\("
)
JOINED = re.compile(r"\s*(?:\+|&| and )\s*")  # Conv2d + BN + ReLU
FIRST: tuple[Kind, ...] = (
    "conv", "depthwise", "deconv", "fc", "max_pool", "avg_pool", "pool", "global_pool",
)  # fmt: skip
NARROWER = (("conv", "depthwise"), ("conv", "deconv"), ("activation", "softmax"))
TYPED = re.compile(r".*\(([a-z][^()]*)\)\s*")


FUSED = re.compile(
    r"nl_\d+(?:_nl)?\s*\((?:conv|depthwise)"
)  # X-CUBE-AI: the function of the layer in parentheses
MARKUP = re.compile(r"[<*`$^{}\\]")


@lru_cache(maxsize=1 << 14)
def plain(text: str) -> str:
    """A cell without markup, in lower case."""
    if MARKUP.search(text) is None:
        return " ".join(text.split()).lower()
    text = text.replace("\\char`", "")  # LaTeX for the sign behind it: layer\char`_norm
    text = re.sub(r"<br\s*/?>", " ", text, flags=re.IGNORECASE)
    text = re.sub(r"<[^>]*>|[*`$]|\^\s*\\?\*|[{}]", "", text).replace("\\_", "_").replace("\\", "")
    return re.sub(r"\s+", " ", text).strip().lower()


TOTAL = re.compile(r"\btotals?\b|^(?:in all|sum)$|^totals?\w*|总计|合计|总和|总共")
NUMBERED = re.compile(r"(_?[A-Z]\w*[a-z]\w*?)-\d+")  # torchsummary: Conv2d-1
# classes of torch.nn in torchsummary's rows, in lower case
_STEMS = """
conv convtranspose batchnorm syncbatchnorm instancenorm groupnorm layernorm localresponsenorm
maxpool avgpool adaptiveavgpool adaptivemaxpool linear relu relu6 leakyrelu prelu elu selu gelu
silu sigmoid tanh hardswish hardsigmoid hardtanh mish softplus dropout alphadropout
softmax logsoftmax flatten embedding lstm gru upsample identity
"""
CLASSES = frozenset(f"{stem}{d}" for d in ("", "1d", "2d", "3d") for stem in _STEMS.split())


def is_total(text: str) -> bool:
    """Whether a row is a total by its label."""
    return TOTAL.search(plain(text)) is not None


def is_block(words: str) -> bool:
    """Whether a row stands for several layers by its type or name."""
    return BLOCKS.search(words) is not None


COMPOSITE = re.compile(
    r"res(?:net)?[ _-]?\d|residual|block|stage|bottleneck|inception|fire|残差|模块"
)


def is_composite(text: str) -> bool:
    """Whether a name is that of a module with several layers in it."""
    return COMPOSITE.search(plain(text)) is not None


def kind_of(text: str) -> Kind:
    """The kind that a text says; `unknown` for any other. `name (Type)` is read from the type."""
    words = plain(text)
    if is_block(words):
        return "unknown"
    first, *others = JOINED.split(words)
    if others and first and (found := kind_of(first)) in FIRST:
        return found
    if FUSED.match(words):
        return "activation"
    if match := TYPED.fullmatch(words):
        if match[1].startswith("placeholder"):
            return "unknown"  # an input, or an array of weights
        inner = _kind(match[1].split(",")[0])
        more = _kind(match[1].partition(",")[2])
        if (inner, more) in NARROWER:
            return more  # Conv2D, DEPTHWISE_CONV_2D
        if inner in (*SAME_SHAPE, "flatten") and WITH_ACTIVATION.match(words):
            return _kind(words.partition("(")[0])  # Dense (softmax): a layer and its activation
        if inner != "unknown":
            return inner
    if (match := NUMBERED.fullmatch(text.strip())) and match[1].lower() not in CLASSES:
        return "unknown"  # a module of the user's: BasicConv2d-26
    last = re.split(r"[_/.]", words)[-1]
    if NORMS.search(words):
        return "norm"
    if last != words and not last.isdigit() and re.fullmatch(r"[a-z]{2,}\d*", last):
        found = _kind(last)  # conv2_drop, block1_conv1, features.norm0
        if found not in ("unknown", "input"):
            return found
    return _kind(words)


def _kind(words: str) -> Kind:
    return next((kind for pattern, kind in _COMPILED if pattern.search(words)), "unknown")


def named_sizes(text: str) -> Mapping[str, int]:
    """Kernel and filters that the name itself says, as CONV3-64 and POOL2 do."""
    words = re.sub(r" ?\([a-z -]+\)$", "", plain(text))
    if match := NAMED_CONV.match(words):
        return {"kernel": int(match[1]), "filters": int(match[2])}
    if match := NAMED_POOL.match(words):
        return {"kernel": int(match[1])}
    if match := NAMED_FC.match(words):
        return {"filters": int(match[1])}
    return {}


def worded_kernel(text: str) -> int | None:
    """The size of a square kernel that stands beside the word for its layer."""
    match = WORDED_KERNEL.search(re.sub(r"(?<=\d)\s*times\s*(?=\d)", "x", plain(text)))
    if match is None:
        return None
    sizes = {int(size) for size in match.groups() if size is not None}
    return sizes.pop() if len(sizes) == 1 else None
