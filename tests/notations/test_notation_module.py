"""The printed module against document 003, PyTorch's own lines and the parameters they imply."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from pathlib import Path

import pytest

from layerscope import Builder, Graph, Node, Report, Tensor, analyze
from layerscope.graph import attributes as at
from layerscope.notations import write
from tests.networks import waves

Make = Callable[[Builder, str], object]

NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50",
    "googlenet": "googlenet",
    "waves": waves,
}
IMAGE, SIGNAL, CLIP, VECTOR = (1, 64, 8, 8), (1, 64, 16), (1, 64, 8, 8, 8), (1, 64)


def account(name: str) -> Report:
    network = NETWORKS.get(name, name)
    return analyze(network if isinstance(network, str) else network())


def test_vgg19_is_document_003(shared: Path) -> None:
    (path,) = (shared / "seeds").glob("003_*")
    text = path.read_text(encoding="utf-8")
    start = text.index("VGG(")
    assert write(analyze("vgg19"), "module") == text[start : text.index("\n)\n", start) + 3]


@pytest.mark.parametrize("name", NETWORKS)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"module/{name}.txt", write(account(name), "module"))


@pytest.mark.parametrize("name", [*NETWORKS, "vgg16_bn", "alexnet-caffe"])
def test_parameters_add_up(name: str) -> None:
    """What the lines say of each layer gives the parameters of the whole."""
    report = account(name)
    assert sum(map(implied, write(report, "module").splitlines())) == report.totals.params


def implied(line: str) -> int:
    """Learnable numbers of the module on one line."""
    numbers = [int(number) for number in re.findall(r"\d+", line.partition(": ")[2])]
    if match := re.search(r"Conv\dd\((\d+), (\d+), kernel_size=\(([\d, ]+)\)", line):
        inputs, outputs = int(match[1]), int(match[2])
        groups = re.search(r"groups=(\d+)", line)
        kernel = prod(int(size) for size in match[3].split(",") if size)
        weights = outputs * inputs // (int(groups[1]) if groups else 1) * kernel
        return weights + (0 if "bias=False" in line else outputs)
    if "Linear(" in line:
        inputs, outputs = numbers[:2]
        return inputs * outputs + outputs
    return 2 * numbers[1] if "BatchNorm" in line else 0  # after the 2 of BatchNorm2d


KINDS: tuple[tuple[tuple[int, ...], Make, str], ...] = (
    (IMAGE, lambda b, x: b.conv(x, 8, 3), "Conv2d(64, 8, kernel_size=(3, 3), stride=(1, 1))"),
    (
        IMAGE,
        lambda b, x: b.conv(x, 8, 3, padding="same", bias=False),
        "Conv2d(64, 8, kernel_size=(3, 3), stride=(1, 1), padding=same, bias=False)",
    ),
    (
        IMAGE,
        lambda b, x: b.conv(x, 64, (1, 5), padding=(0, 2), dilation=(1, 2), groups=64),
        "Conv2d(64, 64, kernel_size=(1, 5), stride=(1, 1), padding=(0, 2), dilation=(1, 2), "
        "groups=64)",
    ),
    (
        IMAGE,
        lambda b, x: b.conv(x, 8, 3, padding=((0, 1), (0, 1))),
        "Conv2d(64, 8, kernel_size=(3, 3), stride=(1, 1), padding=((0, 1), (0, 1)))",
    ),
    (
        SIGNAL,
        lambda b, x: b.conv(x, 16, 9, stride=2, padding=4),
        "Conv1d(64, 16, kernel_size=(9,), stride=(2,), padding=(4,))",
    ),
    (CLIP, lambda b, x: b.conv(x, 6, 1), "Conv3d(64, 6, kernel_size=(1, 1, 1), stride=(1, 1, 1))"),
    (
        IMAGE,
        lambda b, x: b.conv_transpose(x, 8, 3, stride=2, padding=1, output_padding=1, bias=False),
        "ConvTranspose2d(64, 8, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
        "output_padding=(1, 1), bias=False)",
    ),
    (
        VECTOR,
        lambda b, x: b.linear(x, 4),
        "Linear(in_features=64, out_features=4, bias=True)",
    ),
    (
        IMAGE,
        lambda b, x: b.linear(x, 4, flatten=True, bias=False),
        "Linear(in_features=4096, out_features=4, bias=False)",
    ),
    (
        IMAGE,
        lambda b, x: b.batch_norm(x),
        "BatchNorm2d(64, eps=1e-05, momentum=0.1, affine=True, bias=True, "
        "track_running_stats=True)",
    ),
    (
        VECTOR,
        lambda b, x: b.batch_norm(x, affine=False, eps=0.001),
        "BatchNorm1d(64, eps=0.001, momentum=0.1, affine=False, bias=False, "
        "track_running_stats=True)",
    ),
    (
        CLIP,
        lambda b, x: b.batch_norm(x),
        "BatchNorm3d(64, eps=1e-05, momentum=0.1, affine=True, bias=True, "
        "track_running_stats=True)",
    ),
    (
        SIGNAL,
        lambda b, x: b.layer_norm(x),
        "LayerNorm((16,), eps=1e-05, elementwise_affine=True, bias=True)",
    ),
    (
        SIGNAL,
        lambda b, x: b.layer_norm(x, axis=-2, affine=False),
        "LayerNorm((64, 16), eps=1e-05, elementwise_affine=False, bias=False)",
    ),
    (
        IMAGE,
        lambda b, x: b.group_norm(x, 32),
        "GroupNorm(32, 64, eps=1e-05, affine=True, bias=True)",
    ),
    (IMAGE, lambda b, x: b.lrn(x, 5), "LocalResponseNorm(5, alpha=0.0001, beta=0.75, k=1.0)"),
    (
        IMAGE,
        lambda b, x: b.max_pool(x, 3, stride=2, padding=1, rounding="torch"),
        "MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=True)",
    ),
    (
        IMAGE,
        lambda b, x: b.max_pool(x, (2, 1)),
        "MaxPool2d(kernel_size=(2, 1), stride=(2, 1), padding=0, dilation=1, ceil_mode=False)",
    ),
    (
        SIGNAL,
        lambda b, x: b.max_pool(x, 4, rounding="caffe"),
        "MaxPool1d(kernel_size=4, stride=4, padding=0, dilation=1, ceil_mode=True)",
    ),
    (
        SIGNAL,
        lambda b, x: b.avg_pool(x, 4),
        "AvgPool1d(kernel_size=(4,), stride=(4,), padding=(0,))",
    ),
    (
        IMAGE,
        lambda b, x: b.avg_pool(x, 3, stride=2, padding=1),
        "AvgPool2d(kernel_size=3, stride=2, padding=1)",
    ),
    (
        IMAGE,
        lambda b, x: b.lp_pool(x, 3),
        "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)",
    ),
    (
        IMAGE,
        lambda b, x: b.lp_pool(x, 3, stride=2),
        "LPPool2d(norm_type=2, kernel_size=3, stride=2, ceil_mode=False)",
    ),
    (
        IMAGE,
        lambda b, x: b.lp_pool(x, 3, stride=2, padding=1),
        "lp_pool(norm_type=2, kernel_size=3, stride=2, padding=1)",
    ),
    (IMAGE, lambda b, x: b.adaptive_pool(x, 7), "AdaptiveAvgPool2d(output_size=(7, 7))"),
    (
        IMAGE,
        lambda b, x: b.adaptive_pool(x, (None, 7), "max"),
        "AdaptiveMaxPool2d(output_size=(None, 7))",
    ),
    (SIGNAL, lambda b, x: b.adaptive_pool(x, 1), "AdaptiveAvgPool1d(output_size=1)"),
    (IMAGE, lambda b, x: b.global_pool(x), "AdaptiveAvgPool2d(output_size=1)"),
    (IMAGE, lambda b, x: b.relu(x), "ReLU()"),
    (IMAGE, lambda b, x: b.relu(x, in_place=True), "ReLU(inplace=True)"),
    (IMAGE, lambda b, x: b.activation("relu6", x, in_place=True), "ReLU6(inplace=True)"),
    (IMAGE, lambda b, x: b.activation("leaky_relu", x), "LeakyReLU(negative_slope=0.01)"),
    (
        IMAGE,
        lambda b, x: b.activation("leaky_relu", x, alpha=0.2, in_place=True),
        "LeakyReLU(negative_slope=0.2, inplace=True)",
    ),
    (IMAGE, lambda b, x: b.prelu(x), "PReLU(num_parameters=64)"),
    (IMAGE, lambda b, x: b.prelu(x, shared=True), "PReLU(num_parameters=1)"),
    (IMAGE, lambda b, x: b.activation("elu", x), "ELU(alpha=1.0)"),
    (IMAGE, lambda b, x: b.activation("selu", x), "SELU()"),
    (IMAGE, lambda b, x: b.activation("sigmoid", x), "Sigmoid()"),
    (IMAGE, lambda b, x: b.activation("tanh", x), "Tanh()"),
    (IMAGE, lambda b, x: b.activation("gelu", x), "GELU(approximate='none')"),
    (IMAGE, lambda b, x: b.activation("gelu_tanh", x), "GELU(approximate='tanh')"),
    (IMAGE, lambda b, x: b.activation("silu", x, in_place=True), "SiLU(inplace=True)"),
    (IMAGE, lambda b, x: b.activation("hard_swish", x, in_place=True), "Hardswish()"),
    (IMAGE, lambda b, x: b.activation("hard_sigmoid", x), "Hardsigmoid()"),
    (IMAGE, lambda b, x: b.activation("softplus", x), "Softplus(beta=1.0, threshold=20.0)"),
    (IMAGE, lambda b, x: b.softmax(x), "Softmax(dim=1)"),
    (IMAGE, lambda b, x: b.add_node("log_softmax", (x,), at.Softmax(-1)), "LogSoftmax(dim=-1)"),
    (IMAGE, lambda b, x: b.dropout(x), "Dropout(p=0.5, inplace=False)"),
    (IMAGE, lambda b, x: b.dropout(x, 0.2, in_place=True), "Dropout(p=0.2, inplace=True)"),
    (IMAGE, lambda b, x: b.add_node("identity", (x,)), "Identity()"),
    (IMAGE, lambda b, x: b.resize(x, 2), "Upsample(scale_factor=2.0, mode='nearest')"),
    (
        SIGNAL,
        lambda b, x: b.resize(x, 2, mode="bilinear"),
        "Upsample(scale_factor=2.0, mode='linear')",
    ),
    (
        IMAGE,
        lambda b, x: b.add_node("resize", (x,), at.Resize("bilinear", size=(3, 4))),
        "Upsample(size=(3, 4), mode='bilinear')",
    ),
    (IMAGE, lambda b, x: b.pixel_shuffle(x, 2), "PixelShuffle(upscale_factor=2)"),
    (
        IMAGE,
        lambda b, x: b.pixel_shuffle(x, 2, inverse=True),
        "PixelUnshuffle(downscale_factor=2)",
    ),
    (VECTOR, lambda b, x: b.softmax_loss(x), "CrossEntropyLoss()"),
    (IMAGE, lambda b, x: b.add_node("l2_norm", (x,), at.L2Norm()), "l2_norm()"),
    (IMAGE, lambda b, x: b.add_node("mystery", (x,)), "mystery()"),
)


@pytest.mark.parametrize("shape, make, line", KINDS, ids=[line for _, _, line in KINDS])
def test_kind(shape: tuple[int, ...], make: Make, line: str) -> None:
    """Every line was compared with what torch 2.13.0 prints, where it has such a module."""
    b = Builder("one", "One")
    make(b, b.input("data", shape))
    text = write(analyze(b.build()), "module").splitlines()
    assert [text[0], text[-1]] == ["One(", ")"]
    assert [re.sub(r"^  \(\w+\): ", "", inner) for inner in text[1:-1]] == [line]


def test_a_shared_module_stands_once_and_in_declared_order() -> None:
    b = Builder("net", "Net", order=("body", "act"))
    x = b.relu(b.input("data", (1, 4)), name="act")
    with b.scope("body", "Sequential", order=("0", "1")):
        x = b.linear(x, 4, name="1")
        x = b.linear(x, 4, name="0")
    x = b.relu(x, name="act")
    assert write(analyze(b.build(b.add(x, x))), "module") == (
        "Net(\n"
        "  (body): Sequential(\n"
        "    (0): Linear(in_features=4, out_features=4, bias=True)\n"
        "    (1): Linear(in_features=4, out_features=4, bias=True)\n"
        "  )\n"
        "  (act): ReLU()\n"
        ")\n"
    )


def test_a_module_list_counts_equal_neighbours() -> None:
    b = Builder("net", "Net")
    x = b.input("data", (1, 4))
    with b.scope("blocks", "ModuleList"):
        for n, width in enumerate((4, 4, 4, 8)):
            x = b.linear(x, width, name=str(n))
    assert write(analyze(b.build(x)), "module") == (
        "Net(\n"
        "  (blocks): ModuleList(\n"
        "    (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)\n"
        "    (3): Linear(in_features=4, out_features=8, bias=True)\n"
        "  )\n"
        ")\n"
    )


def test_names_with_slashes_are_flat() -> None:
    b = Builder("cafe", separator="/")
    x = b.input("data", (1, 3, 8, 8))
    with b.scope("inception"), b.scope("left"):
        x = b.relu(b.conv(x, 4, 1, name="1x1"), name="relu")
    assert write(analyze(b.build(x)), "module") == (
        "cafe(\n"
        "  (inception/left/1x1): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))\n"
        "  (inception/left/relu): ReLU()\n"
        ")\n"
    )


def test_without_modules_every_node_has_a_line() -> None:
    nodes = (
        Node("c1", "conv", ("data",), ("y",), at.Conv(_one_by_one(), 4)),
        Node("c1.cat", "concat", ("y", "y"), ("z",), at.Concat()),
    )
    graph = Graph("bare", (Tensor("data", (1, 3, 8, 8)),), nodes, ("z",))
    assert write(analyze(graph), "module") == (
        "bare(\n  (c1): Conv2d(3, 4, kernel_size=(1, 1), stride=(1, 1))\n  (c1.cat): concat()\n)\n"
    )


def _one_by_one() -> at.Window:
    return at.Window((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1))


def test_unknown_channels_are_marked() -> None:
    b = Builder("odd", "Odd")
    x = b.add_node("mystery", (b.input("data", (1, 3, 8, 8)),), name="what")[0]
    text = write(analyze(b.build(b.conv(x, 4, 3, name="after"))), "module")
    assert "  (after): Conv2d(?, 4, kernel_size=(3, 3), stride=(1, 1))\n" in text
