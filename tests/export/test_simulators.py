"""Exports for Graphviz and accelerator simulators: they parse, and their loops multiply to MACs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import layerscope
from layerscope import Builder, Graph
from layerscope.cli import run
from layerscope.export import TARGETS, dot, scalesim, timeloop, zigzag
from layerscope.export.footer import footer
from layerscope.export.loop_nests import left_out, loop_nests
from tests.networks import waves

Golden = Callable[[str, str], None]
Captured = pytest.CaptureFixture[str]
NETWORKS = ("resnet50", "googlenet", "waves")
WRITERS: dict[str, Callable[[Any], str]] = {
    "dot": dot.write, "scalesim": scalesim.write, "scalesim.gemm": scalesim.write_gemm,
    "timeloop": timeloop.write, "zigzag": zigzag.write,
}  # fmt: skip
SIMULATORS = tuple(name for name in WRITERS if name != "dot")


def every_product() -> Graph:
    """Convolutions with groups, padding, dilation and strides; every kind of product."""
    b = Builder("products")
    x = b.input("data", (2, 8, 17, 19))
    x = b.conv(x, 12, (3, 5), stride=(2, 1), padding=((1, 0), (2, 2)), name="uneven")
    x = b.conv(x, 12, 3, groups=4, padding=1, name="grouped")
    x = b.conv(x, 24, 3, groups=12, stride=2, name="depthwise")
    x = b.conv(x, 24, 3, dilation=2, padding=2, name="DPdilated")
    x = b.conv(x, 6, 4, stride=3, padding="same", name="same")
    x = b.conv_transpose(x, 4, 2, stride=2, groups=2, name="up")
    x = b.relu(x, name="relu")
    x = b.linear(b.flatten(x, name="flat"), 6, name="fc")
    x = b.linear(b.reshape(x, (2, 3, 2), name="tokens"), 8, name="widen")
    y = b.attention(x, x, x, heads=2, name="attend")
    return b.build(b.matmul(x, b.permute(y, (0, 2, 1), name="turned"), name="product"))


def volume() -> Graph:
    b = Builder("volume")
    x = b.conv(b.input("data", (1, 2, 5, 6, 7)), 4, 3, padding=1, name="conv3d")
    x = b.conv(x, 4, 3, groups=2, name="grouped3d")
    return b.build(x)


def report(name: str, **options: Any) -> layerscope.Report:
    own = {"waves": waves, "products": every_product, "volume": volume}
    return layerscope.analyze(own[name]() if name in own else name, **options)


ALL = (*NETWORKS, "products", "volume", "alexnet-caffe", "lenet5")


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("form", WRITERS)
def test_goldens(name: str, form: str, golden: Golden) -> None:
    suffix = {"dot": "dot", "timeloop": "yaml", "zigzag": "yaml"}.get(form, "csv")
    golden(f"{form}/{name}.{suffix}", WRITERS[form](report(name)))


def test_every_target_is_tested() -> None:
    assert set(TARGETS) == {
        *WRITERS, "svg", "model-explorer", "builder",
    }  # fmt: skip  # tests/plot, test_model_explorer, tests/formats/test_builder_text


@pytest.mark.parametrize("name", ALL)
def test_nothing_with_products_is_left_out(name: str) -> None:
    account = report(name)
    assert sum(nest.macs for nest in loop_nests(account)) == account.totals.macs
    assert "MACs" not in left_out(account)


def test_windows_multiply_to_the_same_as_products() -> None:
    for name in ALL:
        for nest in loop_nests(report(name)):
            w = nest.window
            if w is not None:
                channels = w.batch * w.groups * w.in_channels * w.out_channels
                places = math.prod(axis.kernel * axis.output for axis in (w.y, w.x))
                assert nest.macs == channels * places


# SCALE-Sim, read as its topology_utils.py reads it


def rows(text: str) -> Iterator[tuple[str, list[int]]]:
    for line in text.splitlines()[1:]:
        assert line.endswith(",")
        name, *sizes = [part.strip() for part in line.split(",")[:-1]]
        yield name, [int(size) for size in sizes]


def scalesim_macs(text: str) -> dict[str, int]:
    found = {}
    for name, (height, width, rows_, columns, channels, filters, stride) in rows(text):
        assert rows_ <= height
        assert columns <= width
        positions = [
            math.ceil((size - kernel + stride) / stride)
            for size, kernel in ((height, rows_), (width, columns))
        ]
        times = channels if "DP" in name else 1
        depth = 1 if "DP" in name else channels
        assert name not in found
        found[name] = times * math.prod(positions) * rows_ * columns * depth * filters
    return found


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("batch", [1, 3])
def test_scalesim_counts_what_we_count(name: str, batch: int) -> None:
    account = report(name, batch=batch) if name != "products" else report(name)
    found = scalesim_macs(scalesim.write(account))
    assert sum(found.values()) == account.totals.macs
    products = list(rows(scalesim.write_gemm(account)))
    assert sum(math.prod(sizes) for _, sizes in products) == account.totals.macs
    assert scalesim.write_gemm(account).startswith("Layer,M,N,K,\n")


def test_scalesim_rows() -> None:
    text = scalesim.write(report("resnet50"))
    assert text.splitlines()[:3] == [
        "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, "
        "Strides,",
        "conv1, 229, 229, 7, 7, 3, 64, 2,",
        "layer1.0.conv1, 56, 56, 1, 1, 64, 64, 1,",
    ]
    assert text.splitlines()[-1] == "fc, 1, 1, 1, 1, 2048, 1000, 1,"
    found = scalesim_macs(text)
    by_name = report("resnet50").by_name
    assert found == {name: by_name[name].ops.mac for name in found}
    assert [sizes for _, sizes in rows(scalesim.write(report("waves")))] == [
        [1, 407, 1, 9, 2, 16, 2],
        [1, 52, 1, 3, 16, 32, 1],
        [1, 1, 1, 1, 32, 5, 1],
    ]


def test_scalesim_groups() -> None:
    b = Builder("groups")
    x = b.conv(b.input("data", (1, 8, 9, 9)), 16, 3, groups=8, padding=1, name="depthwise")
    x = b.conv(x, 8, 3, groups=2, padding=1, name="DP,grouped")
    account = layerscope.analyze(b.build(x))
    lines = scalesim.write(account).splitlines()[1:]
    assert lines == [
        "depthwise_DP, 11, 11, 3, 3, 8, 2, 1,",
        "Dp_grouped_0, 11, 11, 3, 3, 8, 4, 1,",
        "Dp_grouped_1, 11, 11, 3, 3, 8, 4, 1,",
    ]


# Timeloop

LOOPS = set("RSPQCKNGMH")


@pytest.mark.parametrize("name", ALL)
def test_timeloop_problems(name: str) -> None:
    account = report(name)
    documents = list(yaml.safe_load_all(timeloop.write(account)))
    found = loop_nests(account)
    assert len(documents) == len(found)
    for document, nest in zip(documents, found, strict=True):
        assert set(document) == {"problem"}
        problem = document["problem"]
        assert set(problem) == {"version", "shape", "instance"}
        assert problem["version"] == 0.4
        shape, instance = problem["shape"], problem["instance"]
        coefficients = {each["name"] for each in shape.get("coefficients", ())}
        assert set(shape["dimensions"]) | coefficients == set(instance)
        assert set(shape["dimensions"]) <= LOOPS
        assert math.prod(instance[each] for each in shape["dimensions"]) == nest.macs
        written = [space.get("read_write", False) for space in shape["data_spaces"]]
        assert written == [False, False, True]
        used = {
            each for s in shape["data_spaces"] for p in s["projection"] for t in p for each in t
        }
        assert used == set(instance)
        if nest.window is not None:
            sizes = _held(shape["data_spaces"][1], instance)
            w = nest.window
            needed = [
                (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1
                for axis in (w.y, w.x)
            ]
            assert sizes == w.batch * w.groups * w.in_channels * math.prod(needed)


def _held(space: dict[str, Any], instance: dict[str, int]) -> int:
    """Numbers of a data space: per axis, the reach of its sum of products."""
    held = 1
    for terms in space["projection"]:
        held *= 1 + sum(
            (instance[term[0]] - 1) * (instance[term[1]] if len(term) > 1 else 1) for term in terms
        )
    return held


def test_timeloop_width_and_height() -> None:
    first = next(yaml.safe_load_all(timeloop.write(report("products"))))["problem"]["instance"]
    assert first == {
        "R": 5, "S": 3, "P": 19, "Q": 8, "C": 8, "K": 12, "N": 2,
        "Wstride": 1, "Hstride": 2, "Wdilation": 1, "Hdilation": 1,
    }  # fmt: skip


def test_timeloop_files_in_a_folder(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "new" / "problems"
    assert run(["export", "lenet5", "--to", "timeloop", "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "1_C1.yaml", "2_C3.yaml", "3_C5.yaml", "4_F6.yaml", "5_output.yaml",
    ]  # fmt: skip
    below = footer(report("lenet5"), "timeloop")
    problems = [path.read_text() for path in sorted(folder.iterdir())]
    assert all(text.endswith(below) for text in problems)
    joined = "".join(f"---\n{text.removesuffix(below)}" for text in problems)
    assert joined == timeloop.write(report("lenet5"))
    single = tmp_path / "all.yaml"
    assert run(["export", "lenet5", "--to", "timeloop", "-o", str(single)]) == 0
    assert single.read_text() == joined + below
    out, err = capsys.readouterr()
    assert out == ""
    assert err == 2 * "layerscope: left out: 4 tanh, 2 avg_pool, 1 flatten\n"


# ZigZag, by the rules of its workload_validator.py

EQUATION = re.compile(r"^O(\[\w+\])+\+?=\w(\[\w+\])+[*+]\w(\[(?:\w+)?\])+$")
RELATION = re.compile(r"^(\w+)\s*=\s*(?:(\w+)\s*\*\s*)?(\w+)\s*\+\s*(?:(\w+)\s*\*\s*)?(\w+)$")


@pytest.mark.parametrize("name", ALL)
def test_zigzag_workloads(name: str) -> None:
    account = report(name)
    entries = yaml.safe_load(zigzag.write(account))
    found = loop_nests(account)
    assert [entry["id"] for entry in entries] == list(range(len(found)))
    for entry, nest in zip(entries, found, strict=True):
        assert entry["name"] == nest.name
        assert entry["operator_type"] == ("Gemm" if nest.window is None else "Conv")
        assert EQUATION.match(entry["equation"])
        relations = [RELATION.match(text) for text in entry["dimension_relations"]]
        assert all(relations)
        related = {match[1] for match in relations if match}
        letters = set(re.findall(r"\[(\w+)\]", entry["equation"])) - related
        assert {letter.upper() for letter in letters} == set(entry["loop_dims"])
        assert math.prod(entry["loop_sizes"]) == nest.macs
        assert len(entry["loop_sizes"]) == len(entry["loop_dims"])
        assert set(entry["operand_precision"]) == {"W", "I", "O", "O_final"}
        assert all(0 <= source <= entry["id"] for source in entry["operand_source"].values())
        if nest.window is not None:
            assert len(entry["padding"]) == len(entry["pr_loop_dims"]) == 2
            assert {dim.lower() for dim in entry["pr_loop_dims"]} == related


def test_zigzag_sources() -> None:
    entries = {entry["name"]: entry for entry in yaml.safe_load(zigzag.write(report("products")))}
    numbers = {name: entry["id"] for name, entry in entries.items()}
    sources = {name: entry["operand_source"] for name, entry in entries.items()}
    assert sources["uneven"] == {"I": 0, "W": 0}  # its own number: from outside
    assert sources["grouped"] == {"I": numbers["uneven"], "W": numbers["grouped"]}
    assert sources["fc"] == {"I": numbers["up"], "W": numbers["fc"]}
    widen = numbers["widen"]
    assert sources["attend.scores"] == {"I": widen, "W": widen}
    assert sources["attend.values"] == {"I": numbers["attend.scores"], "W": widen}
    assert sources["product"] == {"I": widen, "W": numbers["attend.values"]}


def test_zigzag_of_the_published_resnet18() -> None:
    """Loop sizes are those of inputs/workload/resnet18.yaml, whose downsamplings are not 1x1."""
    entries = yaml.safe_load(zigzag.write(report("resnet18")))
    first = entries[0]
    assert first["equation"] == "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]"
    assert first["dimension_relations"] == ["ix=2*ox+1*fx", "iy=2*oy+1*fy"]
    assert first["loop_dims"] == ["B", "K", "C", "OY", "OX", "FY", "FX"]
    sizes = [entry["loop_sizes"] for entry in entries]
    assert sizes[0] == [1, 64, 3, 112, 112, 7, 7]
    assert sizes[1:5] == [[1, 64, 64, 56, 56, 3, 3]] * 4
    assert sizes[5] == [1, 128, 64, 28, 28, 3, 3]
    assert [1, 128, 64, 28, 28, 1, 1] in sizes
    assert sizes[-1] == [1, 1000, 512]


@pytest.mark.parametrize(
    ("dtype", "bits"), [("fp32", (32, 32)), ("fp16", (16, 16)), ("int8", (8, 16)), ("int4", (4, 8))]
)
def test_zigzag_precision(dtype: str, bits: tuple[int, int]) -> None:
    entry = yaml.safe_load(zigzag.write(report("lenet5", dtype=dtype)))[0]
    own, sums = bits
    assert entry["operand_precision"] == {"W": own, "I": own, "O": sums, "O_final": own}


# Graphviz


def check_dot(text: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Nodes and edges; raises unless quotes close on their line and braces pair."""
    depth = 0
    nodes, edges = set(), set()
    for line in text.splitlines():
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
        assert bare.count('"') % 2 == 0, line
        assert bare.count("[") == bare.count("]"), line
        depth += bare.count("{") - bare.count("}")
        assert depth >= 0
        assert bare.endswith(("{", "}", ";")), line
        node = re.fullmatch(r"\s*([ino]\d+) \[.*\];", bare)
        edge = re.fullmatch(r"\s*(\w+) -> (\w+);", bare)
        if node:
            assert node[1] not in nodes
            nodes.add(node[1])
        if edge:
            edges.add((edge[1], edge[2]))
    assert depth == 0
    assert {end for edge in edges for end in edge} <= nodes
    return nodes, edges


@pytest.mark.parametrize("name", ALL)
def test_dot_parses_and_is_the_graph(name: str) -> None:
    account = report(name)
    text = dot.write(account)
    nodes, edges = check_dot(text)
    graph = account.graph
    assert len(nodes) == len(graph.nodes) + len(graph.inputs) + len(graph.outputs)
    maker = {tensor.name: tensor.name for tensor in graph.inputs}
    maker |= {output: node.name for node in graph.nodes for output in node.outputs}
    wanted = {(maker[tensor], node.name) for node in graph.nodes for tensor in node.inputs}
    assert len(edges) == len(wanted) + len(graph.outputs)
    scopes = {layer.scope[:n] for layer in account.layers for n in range(1, len(layer.scope) + 1)}
    assert text.count("subgraph cluster_") == len(scopes)


def test_dot_labels() -> None:
    text = dot.write(report("resnet50"))
    assert 'label="conv1\\nconv 7x7/2\\n1x64x112x112\\n9.41k params · 118M MACs"' in text
    assert 'label="layer1  Sequential";' in text
    assert 'label="0  Bottleneck";' in text


def test_unknown_ops_and_evil_names() -> None:
    b = Builder('a"b\\\n')
    with b.scope('s"{\\'):
        x = b.conv(b.input('in"', (1, 3, 8, 8)), 4, 3, name='x"];}\n\x1b\\')
        x = b.add_node("warp::drive", (x,), name="odd, 1: [x]")[0]
        x = b.linear(x, 3, name='"- é😀')
    account = layerscope.analyze(b.build(x))
    check_dot(dot.write(account))
    assert "costs unknown" in dot.write(account)
    assert left_out(account) == "left out: 1 linear, 1 warp::drive"
    for writer in WRITERS.values():
        assert "\x1b" not in writer(account)
        assert writer(account) == writer(account)
    (entry,) = yaml.safe_load(zigzag.write(account))
    assert entry["name"] == 's"{\\.x"];}\\x0a\\x1b\\'
    assert len(list(yaml.safe_load_all(timeloop.write(account)))) == 1
    assert list(timeloop.files(account)) == ["1_s___.x_______.yaml"]
    assert len(list(rows(scalesim.write(account)))) == 1


def test_what_simulators_cannot_take_is_told(capsys: Captured) -> None:
    b = Builder("recurrent")
    out = b.recurrent("lstm", b.input("data", (5, 1, 10)), 20, name="lstm")
    account = layerscope.analyze(b.build(b.linear(out[0], 4, name="fc")))
    if account.coverage.unknown:
        pytest.skip("no rule for lstm")
    assert left_out(account) == "left out: 1 lstm; 96.8% of the MACs are theirs"


def test_the_command(tmp_path: Path, capsys: Captured) -> None:
    for target in (*TARGETS, "csv", "json", "markdown", "latex", "html"):
        assert run(["export", "lenet5", "--to", target]) == 0
        out, err = capsys.readouterr()
        assert out.endswith("\n")
        simulator = target in SIMULATORS
        assert err == ("layerscope: left out: 4 tanh, 2 avg_pool, 1 flatten\n" if simulator else "")
        file = tmp_path / f"out.{target}.txt"
        assert run(["export", "lenet5", "--to", target, "-o", str(file)]) == 0
        assert file.read_text() == out
        capsys.readouterr()
    for suffix, begins in {".dot": "digraph", ".gv": "digraph", ".csv": "name,type"}.items():
        file = tmp_path / f"net{suffix}"
        assert run(["export", "lenet5", "-o", str(file)]) == 0
        assert file.read_text().startswith(begins)
    assert run(["export", "lenet5", "--to", "scalesim.gemm", "--batch", "8"]) == 0
    assert "C1, 6272, 6, 25," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["lenet5", "--to", "scalsim"], 2, "did you mean scalesim"),
        (["lenet5", "--to", "text"], 2, "unknown target 'text'"),
        (["lenet5"], 2, "--to is missing; choose from dot, scalesim"),
        (["lenet5", "-o", "net.txt"], 2, "no target has the suffix .txt"),
        (["lenet6", "--to", "dot"], 2, "did you mean lenet5"),
        (["lenet5", "--to", "dot", "-o", "/nowhere/net.dot"], 2, "cannot write"),
        (["lenet5", "--to", "timeloop", "-o", "/dev/null/folder"], 2, "cannot write"),
        (["lenet5", "--to", "zigzag", "--input", "1x4x4"], 3, "does not fit"),
    ],
)
def test_wrong_arguments(args: list[str], code: int, says: str, capsys: Captured) -> None:
    assert run(["export", *args]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
