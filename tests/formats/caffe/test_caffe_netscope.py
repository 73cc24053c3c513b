"""Caffe files against Netscope's own figures for them, row by row; and where Netscope is wrong.

Compared are name, type, order, channels, sizes and every count of every row. Left out are:
- rows of type `implicit`: Netscope joins layers by name and makes a row for each blob that no layer
  is named after (`label` of a Data layer; `score`, `bigscore`, `score-pool44c` of the FCNs; `data`
  of an Input layer called `input`). Each repeats the sizes of another row and counts nothing.
- the tables of six presets whose figures are NaN, as a Data layer with crop_size leaves Netscope's
  batch undefined: these files are held against the tables of their repaired form.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from layerscope import Report, analyze, load
from layerscope.errors import FormatError, ShapeError
from layerscope.notations import write
from layerscope.ops import Ops
from tests.conftest import SHARED
from tests.formats.caffe.caffe_nets import layer, net
from tests.notations.test_notation_netscope import figures, parse, shortened
from tests.skips import NO_SHARED
from tests.zoo.published import NETSCOPE

KINDS = ("macc", "comp", "add", "div", "exp", "activation", "param")
SIZES = ("ch_in", "dim_in", "ch_out", "dim_out")
ROOT = SHARED / "truth" / "netscope"
TABLES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("tables*/*.csv"))
ROWS = 4098

# Not valid Caffe: an Eltwise reads a blob that nobody produces.
INVALID = "fcn-16s"


def rows_of(table: str) -> list[dict[str, str]]:
    """Netscope's rows; of a preset it fails on, those of the repaired form."""
    repaired = ROOT / table.replace("tables/", "tables_repaired/")
    path = repaired if not table.startswith("mtcnn") and repaired.is_file() else ROOT / table
    with path.open() as file:
        return [row for row in csv.DictReader(file) if row["type"] != "implicit"]


def report_of(table: str, like: str = "netscope") -> Report:
    path = ROOT / table.replace("tables", "prototxt").replace(".csv", ".prototxt")
    return analyze(str(path), like=like, phase="train", keep_going=INVALID in table)


def counts(row: dict[str, str]) -> dict[str, int]:
    return {kind: int(row[kind]) for kind in KINDS if int(row[kind])}


@pytest.mark.skipif(not TABLES, reason=NO_SHARED)
@pytest.mark.parametrize("table", TABLES or [""])
def test_every_row_is_netscopes(table: str) -> None:
    report, truth = report_of(table), rows_of(table)
    *rows, (_, total, _) = parse(write(report, "netscope"))
    assert [cells[1:3] for cells, *_ in rows] == [(row["name"], row["type"]) for row in truth]
    called = {}
    for tensor in reversed(report.inputs):
        told = tensor.source.name if tensor.source is not None else ""
        called[told or tensor.name] = tensor.name
    for row, (cells, printed, _) in zip(truth, rows, strict=True):
        exact = counts(row)
        assert cells[3:] == tuple(row[key] for key in SIZES), row["name"]
        assert figures(report, called.get(row["name"], row["name"])) == exact, row["name"]
        assert printed == {kind: shortened(count) for kind, count in exact.items()}
    sums = {kind: sum(counts(row).get(kind, 0) for row in truth) for kind in KINDS}
    assert total == {kind: shortened(count) for kind, count in sums.items() if count}


def conv(name: str, bottom: str, channels: int, kernel: int) -> str:
    told = f"convolution_param {{ num_output: {channels} kernel_size: {kernel} }}"
    return layer("Convolution", told, bottom, name, name)


PNET = "".join((
    "input: 'data' input_shape { dim: 1 dim: 3 dim: 12 dim: 12 } ",
    conv("conv1", "data", 10, 3), layer("PReLU", "", "conv1", "conv1", "prelu1"),
    layer("Pooling", "pooling_param { kernel_size: 2 stride: 2 }", "conv1", "pool1", "pool1"),
    conv("conv2", "pool1", 16, 3), layer("PReLU", "", "conv2", "conv2", "prelu2"),
    conv("conv3", "conv2", 32, 3), layer("PReLU", "", "conv3", "conv3", "prelu3"),
    conv("conv4-1", "conv3", 2, 1), conv("conv4-2", "conv3", 4, 1),
    layer("Softmax", "", "conv4-1", "prob1", "prob1"),
))  # fmt: skip


def test_a_file_has_the_totals_that_netscope_prints() -> None:
    """P-Net of MTCNN: the same constants as of the zoo's network, through the reader of files."""
    *_, (_, total, _) = parse(write(analyze(net(PNET), like="netscope"), "netscope"))
    stated = {x.quantity: int(x.stated) for x in NETSCOPE if x.network == "mtcnn-pnet"}
    assert set(stated) == set(KINDS)
    assert total == {kind: shortened(stated[kind]) for kind in KINDS}


def test_all_of_them_were_there(shared: Path) -> None:
    assert len(TABLES) == 31
    assert sum(len(rows_of(table)) for table in TABLES) == ROWS


def test_the_same_files_read_as_they_are_and_repaired(shared: Path) -> None:
    """The repaired files only have a shape written into their data layer."""
    for path in sorted((ROOT / "prototxt_repaired").glob("*.prototxt")):
        plain = analyze(str(ROOT / "prototxt" / path.name), phase="train")
        assert plain.totals == analyze(str(path), phase="train").totals


def test_fcn_16s_is_refused_by_name_and_read_on_if_told(shared: Path) -> None:
    path = str(ROOT / "prototxt" / "fcn-16s.prototxt")
    with pytest.raises(FormatError) as error:
        load(path)
    assert str(error.value) == (
        f"{path}:106:68: score-fuse: reads 'score-pool4c', which no layer before it produces; "
        "did you mean 'score-pool44c'? (--keep-going reads on)"
    )
    report = analyze(path, keep_going=True)
    assert report.by_name["score-fuse"].node.inputs == ("score2",)
    # It lost a pad of 100, so that its last Crop has 368 to cut 500 from: taken at its word.
    assert report.by_name["upscore"].output == (1, 21, 500, 500)
    mended = Path(path).read_text().replace("bottom: 'score-pool4c'", "bottom: 'score-pool44c'")
    with pytest.raises(ShapeError, match="cropping 1x21x368x368 to 1x3x500x500: axis 2 has 368"):
        analyze(net(mended))


# -- where Netscope itself is wrong, by any other measure


def one(table: str, name: str) -> tuple[Ops, int]:
    layer = report_of(table, "exact").by_name[name]
    return layer.convention_kinds, layer.params


def theirs(table: str, name: str) -> dict[str, int]:
    return counts(next(row for row in rows_of(table) if row["name"] == name))


def test_slopes_are_parameters(shared: Path) -> None:
    """Netscope gives PReLU none; it learns one a channel, and multiplies by it."""
    table = "mtcnn/tables/det1.csv"
    assert theirs(table, "PReLU1") == {"comp": 1000, "activation": 1000}
    assert one(table, "PReLU1") == (Ops(comp=1000, mul=1000), 10)


def test_scale_learns_what_it_multiplies_by(shared: Path) -> None:
    """Netscope gives Scale no parameters, and BatchNorm two a channel, which are statistics."""
    table = "tables/resnet-50.csv"
    size = 64 * 112 * 112
    assert theirs(table, "scale_conv1") == {"macc": size, "activation": size}
    assert one(table, "scale_conv1") == (Ops(mul=size, add=size), 128)
    assert theirs(table, "bn_conv1") == {
        "add": size, "div": size, "activation": size, "param": 128,
    }  # fmt: skip
    assert one(table, "bn_conv1") == (Ops(mul=size, add=size), 0)
    assert report_of(table, "exact").by_name["bn_conv1"].cost.buffer_count == 128


def test_local_response_norm_has_nothing_to_learn(shared: Path) -> None:
    """Netscope counts alpha and beta as two parameters; they are constants."""
    table = "tables_repaired/alexnet.csv"
    size = 96 * 55 * 55
    assert theirs(table, "norm1")["param"] == 2
    assert one(table, "norm1") == (Ops(mul=2, add=5, exp=1, div=1) * size, 0)


def test_biases_are_added(shared: Path) -> None:
    table = "tables/vgg-16.csv"
    size = 10 * 64 * 224 * 224
    assert "add" not in theirs(table, "conv1_1")
    assert one(table, "conv1_1") == (Ops(mac=27 * size, add=size), 27 * 64 + 64)


def test_deconvolution_multiplies_every_input_once_a_tap(shared: Path) -> None:
    """Netscope spreads the output over the stride: right only up to the edges."""
    table = "tables_repaired/fcn-8s-pascal.csv"
    assert theirs(table, "score2")["macc"] == 21 * 21 * 34 * 34 * 4
    assert one(table, "score2")[0].mac == 21 * 21 * 16 * 16 * 16
    # One bias a channel, where the file does not say otherwise; Netscope has none.
    assert theirs(table, "score2")["param"] == 21 * 21 * 16
    assert one(table, "score2")[1] == 21 * 21 * 16 + 21


def test_pools_compare_one_less_and_dropout_nothing(shared: Path) -> None:
    table = "tables_repaired/alexnet.csv"
    size = 96 * 27 * 27
    assert theirs(table, "pool1")["comp"] == 9 * size
    assert one(table, "pool1") == (Ops(comp=8 * size), 0)
    assert theirs(table, "drop6")["comp"] == 4096
    assert one(table, "drop6") == (Ops(), 0)


def test_a_loss_gives_one_number(shared: Path) -> None:
    """Netscope has it hand on what it reads."""
    table = "tables_repaired/alexnet.csv"
    assert theirs(table, "loss")["activation"] == 1000
    assert report_of(table, "exact").by_name["loss"].activations == 1


# -- the same networks by another way


def figures_of(report: Report) -> list[tuple[str, Ops, int, tuple[int, ...] | None]]:
    return [(x.name, x.ops, x.params, x.output) for x in report.layers]


@pytest.mark.parametrize(
    ("zoo", "file", "batch", "here", "there"),
    [
        # training files end in a loss, the zoo's AlexNet in a softmax
        ("alexnet-caffe", "netscope/prototxt/alexnet.prototxt", 1, ["loss"], ["prob"]),
        ("nin", "netscope/prototxt/nin.prototxt", 1, ["loss"], []),
        ("nin-nopad", "boda/nin_imagenet_nopad.train_val.prototxt", 5, ["loss"], []),
        ("googlenet-caffe", "netscope/prototxt/googlenet.prototxt", 10, [], []),
        ("mtcnn-pnet", "netscope/mtcnn/prototxt/det1.prototxt", 1, [], []),
        ("mtcnn-rnet", "netscope/mtcnn/prototxt/det2.prototxt", 1, [], []),
    ],
)
def test_the_zoo_has_the_same_layers(
    zoo: str, file: str, batch: int, here: list[str], there: list[str], shared: Path
) -> None:
    graph = load(str(shared / "truth" / file), phase="train")
    ours = analyze(graph, batch=batch)
    size = graph.inputs[0].shape
    assert size is not None
    theirs = analyze(zoo, input=size[1:], batch=batch)
    a = {name: rest for name, *rest in figures_of(ours)}
    b = {name: rest for name, *rest in figures_of(theirs)}
    assert [name for name in a if name not in b] == here
    assert [name for name in b if name not in a] == there
    assert {k: v for k, v in a.items() if k in b} == {k: v for k, v in b.items() if k in a}


def test_onet_has_the_same_figures_under_other_names(shared: Path) -> None:
    ours = analyze(str(ROOT / "mtcnn/prototxt/det3.prototxt"))
    theirs = analyze("mtcnn-onet")
    assert ours.totals.params == theirs.totals.params
    assert (ours.totals.macs, ours.totals.flops) == (theirs.totals.macs, theirs.totals.flops)


def test_resnet_50_is_the_zoos_first_version(shared: Path) -> None:
    """The file gives its first convolution a bias, and has batch norm and scale apart."""
    ours = analyze(str(ROOT / "prototxt/resnet-50.prototxt"))
    theirs = analyze("resnet50-v1")
    assert ours.totals.macs == theirs.totals.macs
    assert ours.totals.params == theirs.totals.params + 64


def test_boda(shared: Path) -> None:
    """Every integer of the profile that the file determines."""
    report = analyze(str(shared / "truth/boda/nin_imagenet_nopad.train_val.prototxt"), batch=5)
    with (shared / "truth/boda/nin_imagenet_nopad.csv").open() as file:
        *rows, total = csv.DictReader(file)
    sums = dict.fromkeys(("input_bytes", "filter_bytes", "bias_bytes", "output_bytes"), 0)
    for row in rows:
        layer = report.by_name[row["name"]]
        weight, bias = layer.cost.params
        found = {
            "input_bytes": layer.inputs[0].bytes,
            "filter_bytes": weight.bytes,
            "bias_bytes": bias.bytes,
            "output_bytes": report.tensors[layer.node.outputs[0]].bytes,
        }
        assert found == {key: int(row[key]) for key in sums}
        assert 2 * layer.ops.mac == int(row["flops_2_per_mac"])
        assert layer.moved_bytes == int(row["forward_bytes_with_bias"])
        for key, shape in (("input_dims", layer.inputs[0].shape), ("filter_dims", weight.shape),
                           ("output_dims", layer.output)):  # fmt: skip
            assert "x".join(map(str, shape or ())) == row[key]
        gemm = layer.cost.gemm
        assert gemm is not None
        assert (gemm.m, gemm.n, gemm.k) == tuple(int(row[key]) for key in "MNK")
        sums = {key: sums[key] + found[key] for key in sums}
    assert sums == {key: int(total[key]) for key in sums}
    assert len(rows) == 12
