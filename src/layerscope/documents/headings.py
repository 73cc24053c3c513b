"""What the heading of a column means, in the spellings that occur; one table for all documents."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

Meaning = Literal[
    "index", "name", "type", "kernel", "kernel_h", "kernel_w", "stride", "stride_h", "stride_w",
    "padding", "dilation", "groups", "kernel_padding_stride", "kernel_stride_padding",
    "kernel_stride", "kernel_shape", "filters", "in_channels", "out_channels", "input",
    "in_size", "output", "out_size", "out_h",
    "out_w", "bias", "params", "weights", "param_shape", "memory", "activations", "macs", "flops",
    "madds", "ops", "comparisons", "field", "jump", "offset", "share", "time", "connected",
    "description", "trainable", "model", "resolution", "params_bytes", "read", "written",
    "traffic", "jump_in", "effective_padding", "intensity", "param_memory", "batch", "additions",
    "divisions", "exponentials",
]  # fmt: skip

SPELLINGS: dict[Meaning, tuple[str, ...]] = {
    "index": ("id", "layer id", "#", "no", "idx", "index", "m_id", "序号", "编号"),
    "name": (
        "name", "layer", "layers", "layer name", "layer_name", "node", "node name", "op name",
        "layer/op", "layer (type)", "layer (type:depth-idx)", "module name", "module",
        "network layer", "layer (name)", "end-point", "end point", "block", "stage", "层", "层名",
        "名称", "网络层", "网络层名称", "layer (type,original)", "operation",
        "layer (type (var_name))", "layer (type (var_name):depth-idx)", "name (*_layer)",
        "layer/type", "层级", "层数", "模块", "对应名称", "layer number", "layer #", "layer no",
        "layer index", "nn",
    ),
    "type": (
        "type", "layer type", "layer_type", "class", "kind", "op", "operator", "op type",
        "module type", "type of layer", "layer class", "类型", "层类型",
        "type/stride", "type/strike",
    ),
    "kernel": (
        "kernel", "kernel size", "ksize", "k", "filter size", "filter shape", "patch size",
        "support", "kernel_size", "core size", "size/strd", "window", "patch", "卷积核",
        "卷积核大小", "核大小", "核尺寸", "卷积核尺寸", "kernel_size(k)", "filter dim",
    ),
    "kernel_h": ("patch size (height)", "kernel height", "kernel h", "kh", "filter height"),
    "kernel_w": ("patch size (width)", "kernel width", "kernel w", "kw", "filter width"),
    "stride": ("stride", "strides", "s", "步长", "步幅", "stride(s)", "stride size"),
    "stride_h": ("stride (height)", "stride height", "stride h", "sh"),
    "stride_w": ("stride (width)", "stride width", "stride w", "sw"),
    "padding": ("padding", "pad", "p", "pads", "填充", "padding(p)", "边缘填充"),
    "dilation": ("dilation", "d", "rate", "dilation rate", "空洞率"),
    "groups": ("groups", "group", "g", "分组"),
    "kernel_padding_stride": ("k,p,s", "(k,p,s)", "k/p/s"),
    "kernel_stride_padding": ("k,s,p", "(k,s,p)", "k/s/p", "kernel/stride/padding"),
    "kernel_stride": (
        "patch size/stride", "filter/stride", "kernel/stride", "kernel size/stride",
        "size/strd(dil)", "filter size/stride", "k,s", "(k,s)", "kernel,stride",
    ),
    "kernel_shape": ("kernel shape", "weight shape", "filter shape (oihw)"),
    "filters": (
        "filters", "filter", "# filters", "num filters", "number of filters", "num filts",
        "kernels", "number of kernels", "feature maps", "卷积核个数", "卷积核数量",
        "filter number", "maps", "特征图", "特征图数", "特征图数量",
    ),
    "in_channels": (
        "input ch", "in ch", "in channels", "input channels", "in_channels", "cin", "ch_in", "ic",
        "input channel", "输入通道", "输入通道数", "filt dim",
        "input #channel", "#input channels",
    ),
    "out_channels": (
        "output ch", "out ch", "out channels", "output channels", "out_channels", "cout",
        "ch_out", "oc", "channel", "channels", "output channel", "output size (channel)", "depth",
        "输出通道", "输出通道数", "通道", "通道数", "data depth", "c", "#out",
        "output #channel", "#output channels",
    ),
    "input": (
        "input", "input shape", "input size", "in shape", "输入", "输入尺寸", "输入大小",
        "input tensor", "in size", "in sizes", "in_shape",
    ),
    "in_size": ("input dim", "in dim", "input resolution (layer)", "input hw"),
    "output": (
        "output", "output shape", "output size", "out shape", "oshape", "feature map",
        "activation shape", "output volume", "activation size", "输出", "输出尺寸", "输出大小",
        "output tensor", "shape", "size", "output size (length)", "输出特征图尺寸", "输出特征图",
        "输出特征图大小", "输出形状", "输出维度", "尺寸", "大小",
    ),
    "out_size": (
        "output dim", "out dim", "out size", "spatial size", "data size", "output hw",
        "feature size", "out sizes",
        "hxw", "h×w", "hw", "spatial", "resolution (hxw)", "特征图大小",
        "特征图尺寸",
        "output spatial", "output spatial size", "spatial output", "image size (out)",
    ),
    "out_h": ("output size (height)", "output height", "out h", "oh"),
    "out_w": ("output size (width)", "output width", "out w", "ow"),
    "bias": ("bias", "biases", "偏置"),
    "params": (
        "params", "param", "param #", "params #", "#params", "# params", "parameters",
        "# parameters", "#parameters", "number of parameters", "num params", "parameter count",
        "param count", "param#", "trainable parameter quantity", "trainable parameters",
        "parameters (compute)", "total params", "number of params", "#param", "# param",
        "num of params", "参数", "参数量", "参数数量", "参数个数", "训练参数数量", "可训练参数",
        "可训练参数量", "可训练参数数量",
        "params count", "#parameters or shape", "# of params", "# of parameters",
        "no. of parameters", "no. of params", "param num", "params num", "trainable params",
        "total parameters", "parameter", "learnable parameters", "parameter quantity", "参数总量",
        "参数数目",
    ),
    "weights": ("weights", "# weights", "number of weights", "weight", "权重", "权重数"),
    "params_bytes": ("param/size",),
    "param_shape": ("parameter shape", "shape of parameters", "squeezed shape"),
    "memory": (
        "memory", "mem", "memory size", "memory usage", "data mem", "内存", "显存",
        "内存占用",
    ),
    "activations": (
        "activations", "activation", "number of activations", "number of activations (memory)",
        "# activations", "#activations", "acts", "neurons", "number of neurons", "激活",
        "神经元数",
    ),
    "macs": (
        "macs", "mac", "macc", "maccs", "mult-adds", "multadds", "mult adds", "mul-adds",
        "mults-adds", "multiply-adds", "multiply-accumulates", "#macs", "# macs",
        "number of macs", "mult-add", "multiply-add", "乘加", "乘加次数",
    ),
    "flops": (
        "flops", "flop", "#flops", "ops", "计算量", "浮点运算量", "flops count", "# flops",
        "number of flops", "fp ops", "浮点计算量", "forward flops",
    ),
    "madds": ("madd", "madds", "m-adds"),
    "field": (
        "rf", "receptive field", "rf size", "receptive field size", "r", "感受野", "rf (size)",
        "receptive field (rf)", "感受野大小", "rf out", "rf_out", "rf(out)",
    ),
    "jump": (
        "jump", "j", "rf stride", "effective stride", "jump(j)", "total stride",
        "步长累积", "累积 stride 积", "累积stride", "累积 stride",
        "cumulative stride", "jump out", "jump_out", "j_out", "jout", "jump(out)", "累积步长",
    ),
    "jump_in": ("jump in", "jump(in)", "jumpin", "jump_in", "j_in", "jin", "j in"),
    "offset": ("rf offset", "start", "offset"),
    "share": ("ratio", "%", "share", "percent", "percentage", "占比", "比例", "duration"),
    "time": ("time", "latency", "runtime", "forward time", "时间", "耗时"),
    "connected": ("connected to", "connects to", "inputs from", "bottom", "from"),
    "description": (
        "config", "configuration", "structure", "hyperparameters", "结构", "配置", "相关参数",
        "description", "remark", "note", "notes", "comment", "details", "备注", "说明", "描述",
    ),
    "trainable": ("trainable",),
    "model": ("model", "network", "cnn", "architecture", "backbone", "模型", "网络"),
    "resolution": ("resolution", "input resolution", "image size", "分辨率"),
    "additions": ("additions", "adds"),
    "divisions": ("divisions", "divs"),
    "exponentials": ("exponentials", "exps"),
    "param_memory": ("param mem", "parameter memory", "param memory", "weight memory", "参数内存"),
    "batch": ("data num", "batch", "batch size"),
    "read": ("memread",),
    "written": ("memwrite",),
    "traffic": ("memr+w",),
    "effective_padding": ("effective padding",),
    "comparisons": ("comparisons", "comp"),
    "intensity": ("arithmetic intensity", "flop/b", "intensity"),
}  # fmt: skip
PREFIXES = {
    "k": 3,
    "m": 6,
    "g": 9,
    "b": 9,
    "t": 12,
    "million": 6,
    "billion": 9,
    "thousand": 3,
    "万": 4,
    "亿": 8,
}
UNIT = re.compile(
    r"(?:[\[(](?P<inside>[^\[\]()]{1,20})[\])]|/(?P<behind>[kmgtb]|[kmgt]i?b|million|billion|ms|us|s))$"
)
# names of axes behind a heading: Output (C, H, W), 输出 Co×Ho×Wo
AXES = re.compile(
    r"[(\[]?(?:[bn]\s*[,x×*]\s*)?[chwd](?:in|out|[io])?(?:\s*(?:[,x×*]|\\?times)\s*[chwd](?:in|out|[io])?){1,3}[)\]]?$"
)
POWER = re.compile(r"[x*×]?10\^?\{?(\d{1,2})\}?")  # (x10^6)
WITH_PREFIX = re.compile(r"([kmgtb])(f|flops?|macs?|madds?|params?)")
QUALIFIERS = ("pytorch", "aten", "total", "approx", "learnable", "per image", "per layer", "个")
BYTES = {"b": 0, "byte": 0, "bytes": 0, "kb": 1, "mb": 2, "gb": 3, "kib": 1, "mib": 2, "gib": 3}
TIMES = {"s": "second", "sec": "second", "seconds": "second", "ms": "ms", "us": "us", "µs": "us"}
SHAPED: tuple[Meaning, ...] = ("input", "output", "in_size", "out_size", "kernel_shape", "kernel")
IN_BYTES = ("memory", "activations", "read", "written", "traffic")
WIDE = str.maketrans("（）［］，：＃", "()[],:#")
_COUNTED = ("mac", "macs", "flop", "flops", "param", "params", "trainable")
LONGEST = 120  # characters of a heading
DEPTH = 3  # units and qualifiers behind each other


class Heading(Struct, frozen=True):
    """A heading that is recognised: its meaning and the unit that it gives its cells."""

    text: str
    meaning: Meaning
    scale: int = 1  # a cell counts so many: 1,000,000 under Params(M)
    unit: str = ""  # byte, %, second, ms, us


def plain(text: str) -> str:
    """A heading without markup, in lower case, without spaces at parentheses and slashes."""
    text = re.sub(r"<[^<>]*>|[*`$]|\\(?=[_#%&])", " ", text).translate(WIDE)
    text = re.sub(r"\s*([(\[/,])\s*|\s+(?=[)\]])", lambda m: m[1] or "", text)
    return re.sub(r"\s+", " ", text).strip().lower().rstrip(":.")


_MEANINGS = {
    plain(spelling): meaning for meaning, spellings in SPELLINGS.items() for spelling in spellings
}


def meaning_of(text: str) -> Heading | None:
    """The heading, or None where its spelling is in no row of the table."""
    return _meaning(text) if len(text) <= LONGEST else None


def axes_of(text: str) -> str:
    """The axes that a heading names, in their order: `chw` of Output (C, H, W); "" without."""
    words = plain(text)
    match = AXES.search(words)
    if match is None or not match.start():
        return ""
    return "".join(re.findall(r"[bnchwd](?=in|out|[io]|\W|t|x|$)", match[0].replace("times", " ")))


@lru_cache(maxsize=4096)
def _meaning(text: str) -> Heading | None:
    return _found(text, plain(text), DEPTH)


def _found(text: str, words: str, depth: int) -> Heading | None:
    if words in _MEANINGS:
        return Heading(text, _MEANINGS[words])
    prefixed = WITH_PREFIX.fullmatch(words)
    if prefixed is not None:
        counted = _MEANINGS["flops" if prefixed[2] == "f" else prefixed[2]]
        return Heading(text, counted, 10 ** PREFIXES[prefixed[1]])
    if not depth:
        return None
    shape = AXES.search(words)
    if shape is not None and shape.start():
        base = _found(text, words[: shape.start()].strip(), depth - 1)
        return base if base is not None and base.meaning in SHAPED else None
    unit = UNIT.search(words)
    if unit is None:
        return None
    base_heading = _found(text, words[: unit.start()].strip(), depth - 1)
    if base_heading is None:
        return None
    return _with_unit(base_heading, unit["inside"] or unit["behind"])


def _with_unit(base: Heading, unit: str) -> Heading | None:
    """The heading with the unit in its parentheses; None for other words."""
    text, meaning = base.text, base.meaning
    power = POWER.fullmatch(unit)
    prefixed = WITH_PREFIX.fullmatch(unit)
    if unit.rstrip(".") in QUALIFIERS or unit in _COUNTED:
        return base
    if power is not None:
        return Heading(text, meaning, 10 ** int(power[1]))
    if unit in BYTES and (meaning in IN_BYTES or unit not in PREFIXES):
        stored: Meaning = "memory" if meaning == "output" else meaning  # size (KB)
        return Heading(text, stored, 1024 ** BYTES[unit], "byte")
    if unit in PREFIXES:
        return Heading(text, meaning, 10 ** PREFIXES[unit])
    if unit == "%":
        return Heading(text, meaning, 1, "%")
    if unit in TIMES:
        return Heading(text, "time" if meaning == "share" else meaning, 1, TIMES[unit])
    if prefixed is not None:
        return Heading(text, meaning, 10 ** PREFIXES[prefixed[1]])
    return None
