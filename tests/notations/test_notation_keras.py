"""The notations keras and keras.box against what Keras prints.

`printed/` has the texts that Keras printed for two models. Keras 3.11.3 printed its own with the
torch backend, in a terminal of 130 columns. Those of Keras 2.15.0 are from its `print_summary`,
called with the layers of the same models, as TensorFlow was not installed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from layerscope import Builder, Graph, analyze
from layerscope.graph.attributes import Recurrent
from layerscope.notations import write
from layerscope.notations.keras import box_lines
from layerscope.notations.keras_rows import KerasRow, class_name
from tests.networks import waves

PRINTED = Path(__file__).parent / "printed"
FORMS = ("keras", "keras.box")
VERSIONS = {"keras": "keras_2.15.0", "keras.box": "keras_3.11.3"}
NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50", "googlenet": "googlenet", "bert_base": "bert_base", "waves": waves,
}  # fmt: skip


def vgg16() -> Graph:
    """`keras.applications.VGG16`, whose activations are parts of its layers."""
    b = Builder("vgg16")
    x = b.input("input_layer", (1, 3, 224, 224))
    for block, (count, channels) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for n in range(1, count + 1):
            x = b.conv(x, channels, 3, padding=1, name=f"block{block}_conv{n}")
        x = b.max_pool(x, 2, name=f"block{block}_pool")
    x = b.flatten(x, name="flatten")
    for name, features in (("fc1", 4096), ("fc2", 4096), ("predictions", 1000)):
        x = b.linear(x, features, name=name)
    return b.build(x)


def residual() -> Graph:
    """A model with branches: a sum, a concatenation, and names that are longer than a column."""
    b = Builder("residual")
    data = b.input("data", (1, 3, 32, 32))
    x = b.pad(data, ((0, 0), (0, 0), (1, 1), (1, 1)), name="pad1")
    x = b.batch_norm(b.conv(x, 16, 3, bias=False, name="conv1"), name="bn1")
    stem = b.relu(x, name="relu1")
    name = "block1_depthwise_with_a_long_name"
    x = b.conv(stem, 16, 3, stride=2, padding="same_upper", groups=16, name=name)
    x = b.conv(x, 24, 1, name="block1_pointwise")
    y = b.conv(stem, 24, 1, stride=2, name="block1_shortcut")
    x = b.activation("sigmoid", b.add(x, y, name="block1_add"), name="block1_act")
    x = b.concat(b.resize(x, 2, name="up"), stem, name="concat")
    x = b.conv_transpose(b.max_pool(x, 4, name="pool"), 8, 2, stride=2, name="deconv")
    x = b.dropout(b.flatten(b.global_pool(x, name="average"), name="flatten"), name="drop")
    return b.build(b.softmax(b.linear(x, 10, name="fc"), name="prob"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("build", [vgg16, residual])
@pytest.mark.parametrize("batch", [1, 5])
def test_text_is_that_of_keras(form: str, build: Callable[[], Graph], batch: int) -> None:
    path = PRINTED / f"{VERSIONS[form]}_{build.__name__}.txt"
    assert write(analyze(build(), batch=batch), form) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETWORKS)
def test_golden(form: str, name: str, golden: Callable[[str, str], None]) -> None:
    network = NETWORKS[name]
    report = analyze(network if isinstance(network, str) else network())
    golden(f"{form}/{name}.txt", write(report, form))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_box_adds_up(name: str) -> None:
    network = NETWORKS[name]
    report = analyze(network if isinstance(network, str) else network())
    lines = write(report, "keras.box").splitlines()
    cells = [line.split("│")[3].strip() for line in lines if line.startswith("│")]
    total = sum(int(cell.replace(",", "")) for cell in cells if cell)
    assert total == report.totals.params + report.totals.buffers
    trainable, other = (int(line.split()[2].replace(",", "")) for line in lines[-2:])
    assert (trainable, other) == (report.totals.params, report.totals.buffers)
    assert lines[-3].startswith(f" Total params: {total:,} (")


def test_published_box(shared: Path) -> None:
    """An example of keras.io, printed by an older Keras 3 with other widths of the columns."""
    page = (shared / "truth" / "tables" / "41.txt").read_text(encoding="utf-8")
    lines = [line for line in unescape(re.sub("<[^>]*>", "", page)).splitlines() if line]
    start = next(n for n, line in enumerate(lines) if line.startswith("┏"))
    rows = [
        KerasRow("input_layer", "InputLayer", ("(None, None)",), 0, ()),
        KerasRow("embedding", "Embedding", ("(None, None, 128)",), 2_560_000, ()),
        KerasRow("bidirectional", "Bidirectional", ("(None, None, 128)",), 98_816, ()),
        KerasRow("bidirectional_1", "Bidirectional", ("(None, 128)",), 98_816, ()),
        KerasRow("dense", "Dense", ("(None, 1)",), 129, ()),
    ]
    found = list(box_lines(rows, (31, 25, 10)))
    assert found == lines[start : start + len(found)]


def test_published_box_with_connections(shared: Path) -> None:
    page = (shared / "truth" / "tables" / "40.txt").read_text(encoding="utf-8")
    lines = [line for line in unescape(re.sub("<[^>]*>", "", page)).splitlines() if line]
    start = next(n for n, line in enumerate(lines) if line.startswith("┏"))
    names = ("input_layer", "conv2d", "conv2d_1", "flatten", "dense", "z_mean", "z_log_var")
    kinds = ("InputLayer", "Conv2D", "Conv2D", "Flatten", "Dense", "Dense", "Dense")
    shapes = ((28, 28, 1), (14, 14, 32), (7, 7, 64), (3136,), (16,), (2,), (2,))
    params = (0, 320, 18_496, 0, 50_192, 34, 34)
    sources = ("", "input_layer", "conv2d", "conv2d_1", "flatten", "dense", "dense")
    rows = [
        KerasRow(name, kind, (f"({', '.join(map(str, (None, *shape)))})",), count,
                 (f"{source}[0][0]",) if source else ())
        for name, kind, shape, count, source in zip(
            names, kinds, shapes, params, sources, strict=True)
    ]  # fmt: skip
    inputs = ("z_mean[0][0]", "z_log_var[0][0]")
    rows.append(KerasRow("sampling", "Sampling", ("(None, 2)",), 0, inputs))
    found = list(box_lines(rows, (19, 17, 7, 20)))
    assert found == lines[start : start + len(found)]


def kinds(graph: Graph) -> dict[str, str]:
    return {layer.name: class_name(layer) for layer in analyze(graph).layers}


def test_class_names() -> None:
    b = Builder("kinds")
    x = b.input("x", (1, 6, 9, 9))
    x = b.pad(x, ((0, 0), (1, 1), (0, 0), (0, 0)), name="channels")
    x = b.adaptive_pool(x, 3, name="bins")
    x = b.adaptive_pool(x, 1, name="one")
    x = b.conv(x, 1, 1, name="single")
    x = b.conv(x, 4, 1, name="not depthwise")
    b.build(b.lrn(x, 5, name="lrn"))
    assert kinds(b.build()) == {
        "channels": "pad", "bins": "adaptive_avg_pool", "one": "GlobalAveragePooling2D",
        "single": "Conv2D", "not depthwise": "Conv2D", "lrn": "lrn",
    }  # fmt: skip


def test_recurrent_layers_list_the_outputs_that_are_used() -> None:
    b = Builder("sequence")
    x = b.input("x", (1, 7, 5))
    first = Recurrent(4, batch_first=True, bidirectional=True)
    y, *_ = b.add_node("lstm", (x,), first, outputs=3, name="both")
    y, hidden, _ = b.add_node("lstm", (y,), Recurrent(3, batch_first=True), outputs=3, name="one")
    graph = b.build(y, hidden)
    assert kinds(graph) == {"both": "Bidirectional", "one": "LSTM"}
    text = write(analyze(graph), "keras")
    assert " x (InputLayer)              [(None, 7, 5)] " in text
    assert "both (Bidirectional)        (None, 7, 8) " in text
    assert "one (LSTM)                  [(None, 7, 3), " in text
    assert "'x[0][0]'" not in text  # a chain


def test_unknown_figures_are_marked() -> None:
    b = Builder("odd")
    x = b.conv(b.input("x", (1, 3, 8, 8)), 4, 3, name="conv")
    (x,) = b.add_node("warp::drive", (x,), name="warp")
    report = analyze(b.build(x))
    text, box = (write(report, form) for form in FORMS)
    assert " warp (warp::drive)          ?                         ?         " in text
    assert "Total params: 112 + ? (448.00 Byte + ?)" in text
    assert re.search(r"│ warp \(warp::drive\) +│ \? +│ +\? │", box)
    assert " Trainable params: 112 + ? (448.00 B + ?)" in box


def test_wide_characters_take_two_cells() -> None:
    rows = [KerasRow("层" * 12, "Conv2D", ("(None, 1)",), 0, ())]
    lines = list(box_lines(rows, (19, 17, 7)))
    assert lines[3] == f"│ {'层' * 9}… │ (None, 1)         │       0 │"
    assert lines[4] == f"│ (Conv2D){' ' * 11} │{' ' * 19}│{' ' * 9}│"


def test_all_parts_of_a_split_have_their_channels_last() -> None:
    """One part goes to a convolution, the other to a join behind it."""
    report = analyze("shufflenet_v2_x0_5")
    lines = write(report, "keras").splitlines()
    joins = [layer for layer in report.layers if layer.op in ("split", "concat")]
    assert len(joins) > 20
    for layer in joins:
        channels, high, wide = (layer.output or ())[1:]
        (line,) = (line for line in lines if line.startswith(f" {layer.name} ("))
        assert f"(None, {high}, {wide}, {channels})" in line
