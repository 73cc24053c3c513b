"""MatConvNet's files: the same network in every version of the file, every layer, every refusal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import pytest

from layerscope import Builder, Graph, analyze, load
from layerscope.cli import run
from layerscope.codecs import mat73
from layerscope.errors import FormatError, MissingExtra
from layerscope.formats import recognise
from layerscope.graph import attributes as at
from layerscope.notations import write as show
from tests.formats.matconvnet.matfiles import Structs, Zeros, write
from tests.formats.matconvnet.matnets import Dag, patch32, residual, simple_conv

VERSIONS = ("5", "7", "7.3")
Fields = dict[str, Any]


def figures(network: str | Graph) -> list[tuple[Any, ...]]:
    """All that a report tells of every layer, but for what they are called."""
    report = analyze(network)
    return [
        (
            layer.op,
            layer.output,
            layer.ops,
            layer.params,
            layer.gemm,
            layer.moved_bytes,
            layer.field,
        )
        for layer in report.layers
    ] + [tuple(report.totals.__struct_fields__), (report.totals,)]


def simple(tmp_path: Path, *layers: Fields, version: str = "7", **net: Any) -> Graph:
    net = net or {"meta": {"inputSize": (16, 20, 4)}}
    return load(write(tmp_path / "net.mat", {"layers": list(layers), **net}, version))


def dag(tmp_path: Path, d: Dag, version: str = "7") -> Graph:
    d.meta = d.meta or {"normalization": {"imageSize": (16, 20, 4)}}
    return load(write(tmp_path / "net.mat", d.net, version))


# -- whole networks


@pytest.mark.parametrize("version", VERSIONS)
def test_patch32_is_the_zoos(version: str, tmp_path: Path) -> None:
    path = write(tmp_path / "patch32.mat", {"net": patch32()}, version)
    assert figures(path) == figures("patch32")
    for notation in ("matconvnet", "matconvnet.dag"):
        ours = show(analyze(path, like="matconvnet"), notation)
        assert ours == show(analyze("patch32", like="matconvnet"), notation)
    assert load(path).name == "patch32"


def test_every_version_is_the_same_graph(tmp_path: Path) -> None:
    for net in (patch32(), residual()):
        graphs = []
        for version in VERSIONS:
            folder = tmp_path / version
            folder.mkdir(exist_ok=True)
            graph = load(write(folder / "net.mat", net, version))
            nodes = [(n.name, n.op, n.inputs, n.outputs, n.attributes, n.ties) for n in graph.nodes]
            graphs.append((nodes, [(t.name, t.shape) for t in graph.inputs], graph.outputs))
        assert graphs[0] == graphs[1] == graphs[2]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_residual_block(version: str, tmp_path: Path) -> None:
    path = write(tmp_path / "block.mat", residual(), version)
    b = Builder("block")
    x = b.input("data", (1, 3, 32, 48))
    x = b.conv(x, 16, 7, stride=2, padding=3, bias=False, name="stem")
    x = b.relu(b.batch_norm(x, name="stem_bn"), name="stem_relu")
    x = b.max_pool(x, 3, stride=2, padding=((0, 1), (0, 1)), name="pool")
    short = b.batch_norm(b.conv(x, 64, 1, bias=False))
    y = b.relu(b.batch_norm(b.conv(x, 64, 3, padding=1, bias=False)))
    y = b.conv(y, 64, 3, padding=2, dilation=2, groups=2)
    x = b.relu(b.add(short, y))
    x = b.conv(b.avg_pool(x, (8, 12), stride=1), 10, 1)
    loss = b.softmax_loss(x)
    b.add_node("accuracy", (x,), at.Softmax())
    assert figures(path) == figures(b.build(loss, "accuracy1"))
    report = analyze(path)
    assert report.coverage.unknown == {}
    assert report.by_name["branch2b"].field is not None
    assert [tensor.name for tensor in report.inputs] == ["data"]  # labels have no size
    assert report.layers[0].node.source is not None
    assert report.layers[0].node.source.op == "dagnn.Conv"


def test_batch_norm_moments_are_buffers_and_matconvnet_counts_them(tmp_path: Path) -> None:
    path = write(tmp_path / "block.mat", residual())
    assert analyze(path).by_name["bn_1"].params == 2 * 64
    assert analyze(path).by_name["bn_1"].cost.buffer_count == 2 * 64
    assert analyze(path, like="matconvnet").by_name["bn_1"].params == 4 * 64


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "patch32.mat", {"net": patch32()}, "7.3")
    assert run(["show", path, "--as", "matconvnet", "--no-stamp"]) == 0
    assert run(["show", "patch32", "--as", "matconvnet", "--no-stamp"]) == 0
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :]
    assert run(["show", path]) == 0
    assert "conv1" in capsys.readouterr().out


# -- layers


@pytest.mark.parametrize("version", VERSIONS)
def test_old_fields(version: str, tmp_path: Path) -> None:
    old = {
        "name": "conv", "type": "conv", "filters": Zeros((3, 3, 4, 8)), "biases": Zeros((1, 8)),
        "stride": (1, 2), "pad": (0, 1, 2, 3),
    }  # fmt: skip
    graph = simple(tmp_path, old, version=version, normalization={"imageSize": (16, 20, 4)})
    a = graph.nodes[0].attributes
    assert a == at.Conv(at.Window((3, 3), (1, 2), ((0, 1), (2, 3)), (1, 1)), 8, 1, True)
    assert graph.inputs[0].shape == (1, 4, 16, 20)


@pytest.mark.parametrize("version", VERSIONS)
def test_trailing_ones_come_back(version: str, tmp_path: Path) -> None:
    one = simple_conv("one", (1, 1, 4, 1))
    graph = simple(tmp_path, one, simple_conv("many", (3, 3, 1, 5)), version=version)
    assert [node.attributes.out_channels for node in graph.nodes] == [1, 5]
    assert [node.attributes.groups for node in graph.nodes] == [1, 1]


@pytest.mark.parametrize("field", ["dilate", "dilation"])
def test_dilation(field: str, tmp_path: Path) -> None:
    graph = simple(tmp_path, simple_conv("conv", (3, 3, 4, 8), **{field: (2, 3)}))
    assert graph.nodes[0].attributes.window.dilation == (2, 3)
    assert analyze(graph).layers[0].output == (1, 8, 12, 14)


def test_no_bias(tmp_path: Path) -> None:
    empty = {"type": "conv", "weights": [Zeros((3, 3, 4, 8)), Zeros((0, 0))]}
    lone = {"type": "conv", "weights": [Zeros((3, 3, 8, 8))]}
    graph = simple(tmp_path, empty, lone)
    assert [node.attributes.bias for node in graph.nodes] == [False, False]
    assert [node.name for node in graph.nodes] == ["layer1", "layer2"]


@pytest.mark.parametrize(
    ("layer", "op", "attributes"),
    [
        ({"type": "relu", "leak": 0.1}, "leaky_relu", at.Activation(0.1)),
        ({"type": "sigmoid"}, "sigmoid", at.Activation()),
        (
            {"type": "normalize", "param": (5, 2, 0.0001, 0.75)},
            "lrn",
            at.LocalResponseNorm(5, 0.0005, 0.75, 2),
        ),
        ({"type": "lrn"}, "lrn", at.LocalResponseNorm(5, 0.0001, 0.75, 1)),
        ({"type": "softmax"}, "softmax", at.Softmax()),
        ({"type": "loss"}, "softmax_loss", at.Softmax()),
        ({"type": "dropout", "rate": 0.3}, "dropout", at.Dropout(0.3)),
        (
            {"type": "pool", "pool": 3, "method": "avg", "stride": (2, 1), "pad": (0, 1, 0, 2)},
            "avg_pool",
            at.Pool(at.Window((3, 3), (2, 1), ((0, 1), (0, 2)), (1, 1)), False),
        ),
        (
            {
                "type": "convt", "weights": [Zeros((4, 4, 3, 4)), Zeros((1, 6))], "upsample": 2,
                "crop": 1, "numGroups": 2,
            },
            "conv_transpose",
            at.TransposedConv(at.Window((4, 4), (2, 2), ((1, 1), (1, 1)), (1, 1)), 6, 2, True),
        ),
        (
            {"type": "bnorm", "weights": [Zeros((4, 1)), Zeros((4, 1)), Zeros((4, 2))]},
            "batch_norm",
            at.BatchNorm(eps=1e-4),
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ["7", "7.3"])
def test_layers_of_a_chain(
    layer: Fields, op: str, attributes: Any, version: str, tmp_path: Path
) -> None:
    (node,) = simple(tmp_path, layer, version=version).nodes
    assert (node.op, node.attributes) == (op, attributes)
    report = analyze(str(tmp_path / "net.mat"))
    assert not report.coverage.unknown


def test_a_loss_after_a_softmax_is_of_probabilities(tmp_path: Path) -> None:
    graph = simple(tmp_path, {"type": "softmax"}, {"type": "loss"})
    assert [node.op for node in graph.nodes] == ["softmax", "log_loss"]


@pytest.mark.parametrize("kind", ["custom", "spnorm", "noffset", "pdist"])
def test_custom_layers_are_unknown(kind: str, tmp_path: Path) -> None:
    odd = {"name": "odd", "type": kind, "weights": [Zeros((3, 5))]}
    path = write(tmp_path / "net.mat", {"layers": [{"type": "relu"}, odd], "meta": {
        "inputSize": (8, 8, 3)}})  # fmt: skip
    report = analyze(path)
    op = "matconvnet.custom" if kind == "custom" else kind  # custom is an op of ops/
    assert report.coverage.unknown == {op: 1}
    assert report.by_name["odd"].params == 15
    assert str(report.by_name["odd"].node.source) == path
    assert run(["show", path, "--strict"]) == 1


def test_an_unknown_type_called_like_an_op_is_still_unknown(tmp_path: Path) -> None:
    assert simple(tmp_path, {"type": "crop"}).nodes[0].op == "matconvnet.crop"


def test_layers_of_a_dag(tmp_path: Path) -> None:
    d = Dag()
    x = d.conv("conv", "input", (3, 3, 4, 6), pad=(1, 1, 1, 1))
    up = d.add(
        "up", "ConvTranspose", [x], {"upf": (4, 4, 6, 6)}, size=(4, 4, 6, 6), upsample=(2, 2),
        crop=(0, 0, 0, 0), hasBias=0, numGroups=1,
    )  # fmt: skip
    x = d.add("crop", "Crop", [up, x], crop=(1, 1))
    x = d.add("cat", "Concat", [x, "convx"], dim=3)
    x = d.add("scale", "Scale", [x], {"s": (1, 1, 12), "t": (1, 1, 12)}, size=(1, 1, 12), hasBias=1)
    x = d.add("relu", "ReLU", [x], opts=["leak", 0.2])
    x = d.add("permute", "Permute", [x], order=(3, 2, 1, 4))
    x = d.add("reshape", "Reshape", [x], shape=[Zeros((0, 0)), 1, 60])
    x = d.add("flat", "Flatten", [x], axis=3)
    for version in ("7", "7.3"):
        report = analyze(dag(tmp_path, d, version))
        assert not report.coverage.unknown
        assert {layer.name: layer.output for layer in report.layers} == {
            "conv": (1, 6, 16, 20),
            "up": (1, 6, 34, 42),
            "crop": (1, 6, 16, 20),
            "cat": (1, 12, 16, 20),
            "scale": (1, 12, 16, 20),
            "relu": (1, 12, 16, 20),
            "permute": (1, 16, 12, 20),  # height and depth change places
            "reshape": (1, 60, 64, 1),
            "flat": (1, 3840, 1, 1),
        }
        assert report.by_name["up"].params == 4 * 4 * 6 * 6
        assert report.by_name["scale"].params == 24
        assert report.by_name["relu"].node.attributes.alpha == pytest.approx(0.2)


def test_regions_are_as_many_as_asked_for(tmp_path: Path) -> None:
    d = Dag()
    x = d.conv("conv", "data", (3, 3, 4, 8))
    x = d.add("roi", "ROIPooling", [x, "rois"], subdivisions=(6, 6), transform=0.0625, flatten=1)
    d.conv("fc", x, (1, 1, 288, 10))
    d.meta = {"inputs": Structs([{"name": "data", "size": (16, 20, 4)}])}
    path = write(tmp_path / "net.mat", d.net)
    report = analyze(load(path, proposals=50))
    assert report.by_name["fc"].output == (50, 10, 1, 1)
    assert {tensor.name: tensor.shape for tensor in report.inputs}["rois"] == (50, 5)


def test_shared_filters_are_counted_once(tmp_path: Path) -> None:
    d = Dag()
    for side in ("left", "right"):
        d.add(side, "Conv", ["data"], {"f": (3, 3, 4, 8), "b": (8, 1)}, size=(3, 3, 4, 8))
    report = analyze(dag(tmp_path, d))
    assert [layer.params for layer in report.layers] == [296, 0]
    assert report.totals.params == 296


def test_layers_of_a_dag_may_come_in_any_order(tmp_path: Path) -> None:
    d = Dag()
    d.add("last", "ReLU", ["firstx"], leak=0)
    d.conv("first", "data", (3, 3, 4, 8))
    assert [node.name for node in dag(tmp_path, d).nodes] == ["first", "last"]
    d.add("a", "ReLU", ["bx"])
    d.add("b", "ReLU", ["ax"])
    with pytest.raises(FormatError, match=r"net\.mat: layer a waits for its own output"):
        dag(tmp_path, d)


def test_a_block_of_another_class_is_unknown(tmp_path: Path) -> None:
    d = Dag()
    x = d.conv("conv", "data", (3, 3, 4, 8))
    d.add("warp", "UniformScalingGridGenerator", [x], Ho=4, Wo=4)
    d.add("mine", "MyLayer", [x, "other"], {"w": (2, 3)})
    report = analyze(dag(tmp_path, d))
    assert report.coverage.unknown == {"dagnn.UniformScalingGridGenerator": 1, "dagnn.MyLayer": 1}
    assert report.by_name["mine"].params == 6


# -- the size of the input


@pytest.mark.parametrize("version", ["7", "7.3"])
@pytest.mark.parametrize(
    ("told", "shape"),
    [
        ({"meta": {"inputSize": (8, 9, 4)}}, (1, 4, 8, 9)),
        ({"meta": {"inputSize": (8, 9, 4, 10)}}, (10, 4, 8, 9)),
        ({"meta": {"normalization": {"imageSize": (8, 9, 4)}}}, (1, 4, 8, 9)),
        (
            {"meta": {"inputSize": (8, 9, 4), "normalization": {"imageSize": (5, 5, 4)}}},
            (1, 4, 8, 9),
        ),
        ({"normalization": {"imageSize": (8, 9, 4), "averageImage": Zeros((8, 9, 4))}},
         (1, 4, 8, 9)),
        ({"meta": {"normalization": {"imageSize": (8, 9)}}}, (1, 4, 8, 9)),  # depth of the filters
    ],
)  # fmt: skip
def test_input_sizes(told: Fields, shape: tuple[int, ...], version: str, tmp_path: Path) -> None:
    graph = simple(tmp_path, simple_conv("conv", (3, 3, 4, 8)), version=version, **told)
    assert graph.inputs[0].shape == shape


def test_without_a_size_the_analysis_asks_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "net.mat", {"layers": [simple_conv("conv", (3, 3, 4, 8))]})
    with pytest.raises(FormatError, match=r"net\.mat: .*data.*--input"):
        analyze(path)
    assert run(["show", path, "--input", "1x4x16x20"]) == 0
    assert analyze(path, input=(1, 4, 16, 20)).layers[0].output == (1, 8, 14, 18)
    assert run(["show", path]) == 3
    assert "--input" in capsys.readouterr().err


# -- files that are no networks


@pytest.mark.parametrize(
    ("net", "told"),
    [
        ({"x": 1.0}, "no layers here nor in a variable `net`; found x"),
        ({"layers": []}, "a network without layers"),
        ({"layers": ["conv"]}, "layer 1 is no struct"),
        ({"layers": [{"name": "a"}]}, r"layer 1 \(a\) has no type"),
        (
            {"layers": [simple_conv("c", (3, 3, 3, 8))]},
            "c: filters of depth 3 over data of depth 4",
        ),
        ({"layers": [simple_conv("c", (3, 3, 4, 8), stride=1.5)]}, "c: stride 1.5, expected a who"),
        (
            {"layers": [simple_conv("c", (3, 3, 4, 8), stride=0)]},
            "c: stride 0, expected at least 1",
        ),
        ({"layers": [simple_conv("c", (3, 3, 4, 8), pad=(1, 1, 1))]}, "c: pad of 3 numbers"),
        ({"layers": [simple_conv("c", (3, 3, 4, 8), pad=-1)]}, "c: pad -1, expected a whole"),
        (
            {"layers": [{"type": "conv", "weights": [Zeros((3, 3, 4, 8)), Zeros((1, 7))]}]},
            "layer1: 7 biases, expected 8",
        ),
        ({"layers": [{"type": "bnorm", "weights": [Zeros((5, 1))]}]}, "5 multipliers, expected 4"),
    ],
)
@pytest.mark.parametrize("version", ["7", "7.3"])
def test_refusals(net: Fields, told: str, version: str, tmp_path: Path) -> None:
    net = {**net, "meta": {"inputSize": (16, 20, 4)}} if "layers" in net else net
    path = write(tmp_path / "net.mat", net, version)
    with pytest.raises(FormatError, match=told) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_an_object_is_told_how_to_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "net.mat"
    write(path, {"net": "object"}, "7.3")
    with h5py.File(path, "r+") as file:
        file["net"].attrs["MATLAB_object_decode"] = 3
    with pytest.raises(FormatError, match="saveobj"):
        load(str(path))


def test_without_h5py(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "net.mat", patch32(), "7.3")
    monkeypatch.setattr(mat73, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'layerscope\[mat\]'"):
        load(path)
    assert run(["show", path]) == 4
    assert capsys.readouterr().err.count("\n") == 1


def test_version_7_needs_no_library(tmp_path: Path) -> None:
    path = write(tmp_path / "net.mat", patch32())
    program = (
        "import sys\nfrom layerscope import analyze\nanalyze(sys.argv[1])\n"
        "print({'numpy', 'scipy', 'h5py'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_a_mat_file_is_known_by_its_head(tmp_path: Path) -> None:
    for version in VERSIONS:
        head = Path(write(tmp_path / "net.mat", patch32(), version)).read_bytes()[:4096]
        kind = recognise("without a suffix", head)
        assert kind is not None
        assert kind.name == "matconvnet"
