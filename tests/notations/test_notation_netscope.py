"""Netscope's table: its document, Netscope's own figures and order, goldens summed up again."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from layerscope import Builder, Graph, Node, Report, Tensor, analyze
from layerscope.notations import write
from layerscope.notations.netscope import ALIGN, HEAD, depth_first, number_text
from tests.networks import waves

KINDS = ("macc", "comp", "add", "div", "exp", "mul")
HELD = ("activation", "param")
DOCUMENT = ("mtcnn-pnet", "mtcnn-rnet", "mtcnn-onet")

Entries = dict[str, str]  # macc, comp … activation, param -> printed number
Cells = tuple[str, ...]  # ID, Name, Type, Input CH, Input DIM, Output CH, Output DIM

NO_OPS = "the row has no operations, and the empty OPS cell is missing"
BAR_OPS = "entries of the OPS cell parted by a bar in place of <br>"
BAR_MEM = "entries of the Mem cell parted by a bar in place of <br>"
OPEN = "the closing bar is missing"

# Every row of document 001 that breaks the structure of its own table. No cell breaks a rule.
IRREGULAR = [
    ("mtcnn-pnet", "1", NO_OPS),
    ("mtcnn-pnet", "2", BAR_MEM),
    ("mtcnn-pnet", "6", OPEN),
    ("mtcnn-pnet", "TOTAL", BAR_OPS),
    ("mtcnn-rnet", "1", NO_OPS),
    ("mtcnn-onet", "1", NO_OPS),
    ("mtcnn-onet", "7", OPEN),
    ("mtcnn-onet", "17", BAR_MEM),
    ("mtcnn-onet", "18", BAR_MEM),
]
WRONG: list[tuple[str, str, str, str, str]] = []  # network, row, column, printed, right


def table(network: str | Graph, notation: str = "netscope") -> str:
    return write(analyze(network, like="netscope"), notation)


def parse(text: str) -> Iterator[tuple[Cells, Entries, set[str]]]:
    """Rows of a table, whatever its blanks: cells, entries by what they count, irregularities."""
    for line in text.splitlines()[2:]:
        closed = line.rstrip().endswith("|")
        cells = [cell.strip() for cell in line.strip().removesuffix("|").split("|")[1:]]
        kinds, entries = [], {}
        for cell in cells[7:]:
            pairs = [entry.split("\t") for entry in cell.split("<br>") if entry]
            kinds += ["ops" if set(dict(pairs)) <= set(KINDS) else "mem"]
            for key, number in pairs:
                assert key not in entries
                entries[key] = number
        odd = set() if closed else {OPEN}
        if kinds.count("ops") != 1:
            odd.add(BAR_OPS if kinds.count("ops") else NO_OPS)
        if kinds.count("mem") > 1:
            odd.add(BAR_MEM)
        assert kinds == sorted(kinds, reverse=True)
        assert list(entries) == [key for key in (*KINDS, *HELD) if key in entries]
        yield tuple(cells[:7]), entries, odd


def shortened(count: int) -> str:
    """A count as the table writes it, by another way than the writer's."""
    for unit, power in (("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        if count > 10**power:
            hundredths = Decimal(count / 10**power * 100)  # the double that JavaScript has too
            near = hundredths.quantize(Decimal(1), ROUND_HALF_UP) / 100
            return f"{near.normalize():f}{unit}"
    return str(count)


def figures(report: Report, name: str) -> dict[str, int]:
    """Exact counts of a row, zeros left out."""
    if name in {tensor.name for tensor in report.inputs}:
        return {"activation": report.tensors[name].elements}
    layer = report.by_name[name]
    ops = layer.convention_kinds
    counts = (ops.mac, ops.comp, ops.add, ops.div, ops.exp, ops.mul)
    kinds = dict(zip(KINDS, counts, strict=True))
    kinds |= {"activation": layer.convention_activations, "param": layer.params}
    return {kind: count for kind, count in kinds.items() if count}


# -- the document


@pytest.fixture
def document(shared: Path) -> dict[str, str]:
    (path,) = shared.glob("seeds/001_*")
    parts = re.split(r"^\* .*\n\n", path.read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(DOCUMENT, (part.rstrip("\n") + "\n" for part in parts), strict=True))


@pytest.mark.parametrize("network", DOCUMENT)
def test_the_document_is_printed(network: str, document: dict[str, str]) -> None:
    text = table(network)
    assert document[network].splitlines()[:2] == text.splitlines()[:2] == [HEAD, ALIGN]
    theirs, ours = list(parse(document[network])), list(parse(text))
    assert [cells[:2] for cells, *_ in theirs] == [cells[:2] for cells, *_ in ours]
    wrong, odd = [], []
    for (cells, entries, ways), (right, figures_, none) in zip(theirs, ours, strict=True):
        assert not none
        columns = ("ID", "Name", "Type", "Input CH", "Input DIM", "Output CH", "Output DIM")
        told = dict(zip(columns, cells, strict=True)) | entries
        meant = dict(zip(columns, right, strict=True)) | figures_
        wrong += [
            (network, cells[0], column, told.get(column), meant.get(column))
            for column in {**told, **meant}
            if told.get(column) != meant.get(column)
        ]
        odd += [(network, cells[0], way) for way in sorted(ways)]
    assert wrong == [entry for entry in WRONG if entry[0] == network]
    assert odd == [entry for entry in IRREGULAR if entry[0] == network]


@pytest.mark.parametrize("network", DOCUMENT)
def test_regular_rows_are_the_same_but_for_blanks(network: str, document: dict[str, str]) -> None:
    """Blanks and tabs around bars follow no rule in the document; nothing else may differ."""
    odd = {row for name, row, _ in IRREGULAR if name == network}
    for line, ours in zip(document[network].splitlines(), table(network).splitlines(), strict=True):
        bare = [re.sub(r"\s*\|\s*", "|", text).strip() for text in (line, ours)]
        if bare[0].split("|")[1] not in odd:
            assert bare[0] == bare[1]


def test_the_document_tells_nothing_of_halves(document: dict[str, str]) -> None:
    """Math.round takes halves up; no figure of the document stands on one."""
    for network in DOCUMENT:
        report = analyze(network, like="netscope")
        for cells, _, _ in parse(document[network]):
            if cells[0] != "TOTAL":
                counts = figures(report, cells[1]).values()
                assert not [c for c in counts if 1000 < c < 10**6 and c % 10 == 5]


# -- Netscope's own figures


# zoo network, table, batch and input of the file, rows only there, rows only here
TRUTH = [
    # The file is the deployed network.
    ("googlenet-caffe", "tables/googlenet.csv", 10, (3, 227, 227), [], []),
    # Training files end in a loss that reads labels, a blob no layer is named after ("implicit");
    # the zoo's AlexNet ends in the softmax of its deployed form, its NIN in the scores.
    ("alexnet-caffe", "tables_repaired/alexnet.csv", 1, (3, 227, 227), ["label", "loss"], ["prob"]),
    ("nin", "tables_repaired/nin.csv", 1, (3, 224, 224), ["label", "loss"], []),
    ("mtcnn-pnet", "mtcnn/tables/det1.csv", 1, (3, 12, 12), [], []),
    ("mtcnn-rnet", "mtcnn/tables/det2.csv", 1, (3, 24, 24), [], []),
    # The document renames O-Net's layers and has relu5 before drop5: compared below by place.
]
RENAMED = {"conv5": "fc5", **{f"conv6-{n}": f"fc6-{n}" for n in (1, 2, 3)}}
RENAMED |= {f"prelu{n}": f"relu{n}" for n in (1, 2, 3, 4, 5)}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def same_as(row: dict[str, str], report: Report, cells: Cells) -> None:
    """One row of Netscope's: type, sizes and every exact figure."""
    name = cells[1]
    assert cells[2].lower() == row["type"].lower().replace("_", "").replace(
        "softmaxloss", "softmaxwithloss"
    )
    assert cells[3:] == tuple(row[key] for key in ("ch_in", "dim_in", "ch_out", "dim_out"))
    counts = {key: int(row[key]) for key in (*KINDS[:5], *HELD)}
    assert figures(report, name) == {key: count for key, count in counts.items() if count}


@pytest.mark.parametrize(("network", "path", "batch", "size", "theirs", "ours"), TRUTH)
def test_figures_are_netscopes(
    network: str,
    path: str,
    batch: int,
    size: tuple[int, ...],
    theirs: list[str],
    ours: list[str],
    shared: Path,
) -> None:
    report = analyze(network, batch=batch, input=size, like="netscope")
    *rows, (_, total, _) = parse(write(report, "netscope"))
    printed = {cells[1]: cells for cells, *_ in rows}
    truth = {row["name"]: row for row in rows_of(shared / "truth/netscope" / path)}
    assert [name for name in truth if name not in printed] == theirs
    assert [name for name in printed if name not in truth] == ours
    for name in printed.keys() & truth.keys():
        same_as(truth[name], report, printed[name])
    if not theirs and not ours:
        sums = {key: sum(int(row[key]) for row in truth.values()) for key in (*KINDS[:5], *HELD)}
        assert total == {key: shortened(count) for key, count in sums.items() if count}
    # A data layer in the file leaves Netscope's rows as declared; inputs ahead of the layers
    # (`input:`) have it go depth first from them, as the table does.
    in_file = [name for name in truth if name in printed]
    declared = [tensor.name for tensor in report.inputs] + [n.name for n in report.graph.nodes]
    as_layer = truth["data"]["type"] == "Data" or network == "nin"
    order = declared if as_layer else list(printed)
    assert in_file == [name for name in order if name in truth]


def test_onet_is_netscopes_under_other_names(shared: Path) -> None:
    report = analyze("mtcnn-onet", like="netscope")
    *rows, _ = parse(write(report, "netscope"))
    truth = rows_of(shared / "truth/netscope/mtcnn/tables/det3.csv")
    for row in truth:
        row["name"] = RENAMED.get(row["name"], row["name"])
    truth[13:15] = truth[14:12:-1]  # relu5 first
    assert [row["name"] for row in truth] == [cells[1] for cells, *_ in rows]
    for row, (cells, *_) in zip(truth, rows, strict=True):
        same_as(row, report, cells)


def test_a_loss_counts_as_netscope_has_it(shared: Path) -> None:
    b = Builder("loss")
    graph = b.build(b.softmax_loss(b.input("fc8", (1, 1000)), name="loss"))
    report = analyze(graph, like="netscope")
    truth = rows_of(shared / "truth/netscope/tables_repaired/alexnet.csv")[-1]
    (_, (cells, *_), _) = parse(write(report, "netscope"))
    same_as(truth, report, cells)


# -- Netscope's order


def layers_of(text: str) -> tuple[list[str], list[dict[str, list[str]]]]:
    """Inputs and layers of a prototxt, as far as their order needs it, in training."""
    inputs: list[str] = []
    layers: list[dict[str, list[str]]] = []
    depth = 0
    for opens, value in re.findall(
        r"\w+\s*:?\s*(\{)|(\w+\s*:\s*(?:\"[^\"]*\"|'[^']*'|[\w.-]+)|\})",
        re.sub(r"#.*", "", text),
    ):
        if opens:
            if depth == 0:
                layers.append({"name": [], "bottom": [], "top": [], "phase": []})
            depth += 1
        elif value == "}":
            depth -= 1
        else:
            word, told = re.split(r"\s*:\s*", value, maxsplit=1)
            told = told.strip("\"'")
            if depth == 0 and word == "input":
                inputs.append(told)
            elif (depth == 1 and word in layers[-1]) or word == "phase":
                layers[-1][word].append(told)
    return inputs, [layer for layer in layers if layer["name"] and layer["phase"] != ["TEST"]]


def graph_of(text: str) -> Graph:
    """The same as a graph of unknown ops, each blob written in place under a new name.

    Blobs that no layer is named after are inputs of it: Netscope makes rows of them, called
    implicit, after all others, and so starts from them as it does from inputs ahead of the layers.
    """
    inputs, layers = layers_of(text)
    named = {layer["name"][0] for layer in layers}
    blobs = [blob for layer in layers for blob in (*layer["bottom"], *layer["top"])]
    inputs = list(dict.fromkeys([*inputs, *(blob for blob in blobs if blob not in named)]))
    now = {name: name for name in inputs}
    nodes = []
    for n, layer in enumerate(layers):
        reads = tuple(now[blob] for blob in layer["bottom"])
        nodes.append(Node(layer["name"][0], "opaque", reads, (f"made by {n}",)))
        tops = (*layer["name"], *layer["top"])  # read by the layer's name, whatever its top
        now |= {blob: f"made by {n}" for blob in tops if blob in named}
    tensors = tuple(Tensor(name, (1,)) for name in inputs or ["read by nobody"])
    return Graph("file", tensors, tuple(nodes), ())


def test_order_is_netscopes(shared: Path) -> None:
    """In every table of its own that has a file: of data layers and of inputs alike."""
    folder = shared / "truth/netscope"
    compared = 0
    for table_of in sorted(folder.rglob("tables*/*.csv")):
        kind = table_of.parent.name.replace("tables", "prototxt")
        file = table_of.parent.parent / kind / f"{table_of.stem}.prototxt"
        graph = graph_of(file.read_text())
        given = {tensor.name for tensor in graph.inputs}
        rows = [row["name"] for row in rows_of(table_of) if row["name"] not in given]
        assert rows == [graph.nodes[index].name for index in depth_first(graph)], table_of
        compared += 1
    assert compared == 31


def test_later_branches_come_first_and_inputs_ahead_of_all() -> None:
    b = Builder("order")
    x, y = b.input("x", (1, 2, 4, 4)), b.input("y", (1, 2, 4, 4))
    first = b.relu(x, name="first")
    second = b.relu(x, name="second")
    late = b.relu(y, name="late")
    (free,) = b.add_node("noise", (), name="free")
    end = b.add(b.concat(first, second, name="join"), free, name="end")
    names = [cells[1] for cells, *_ in rows_with_unknowns(table(b.build(end, late)))]
    assert names == ["x", "y", "free", "second", "first", "join", "end", "late", ""]


def test_a_long_chain_needs_no_recursion() -> None:
    nodes = tuple(Node(f"n{i}", "relu", (f"t{i}",), (f"t{i + 1}",)) for i in range(100_000))
    graph = Graph("long", (Tensor("t0", (1, 1)),), nodes, ("t100000",))
    assert list(depth_first(graph)) == list(range(100_000))


# -- goldens, and sums done again


@pytest.mark.parametrize("notation", ["netscope", "netscope.folded"])
@pytest.mark.parametrize(
    "network", [*DOCUMENT, "resnet50", "googlenet", "googlenet-caffe", "waves"]
)
def test_golden(network: str, notation: str, golden: Callable[[str, str], None]) -> None:
    report = analyze(waves() if network == "waves" else network, like="netscope")
    text = write(report, notation)
    golden(f"{notation}/{network}.txt", text)
    *rows, (_, total, _) = parse(text)
    assert [cells[0] for cells, *_ in rows] == [str(n) for n in range(1, len(rows) + 1)]
    every = [figures(report, tensor.name) for tensor in report.inputs]
    every += [figures(report, layer.name) for layer in report.layers]
    exact = {kind: sum(counts.get(kind, 0) for counts in every) for kind in (*KINDS, *HELD)}
    assert exact["macc"] == report.totals.convention_ops
    assert exact["activation"] == report.totals.convention_activations
    for kind, count in exact.items():
        assert total.get(kind) == (shortened(count) if count else None)
        low, high = zip(*(between(entries.get(kind, "0")) for _, entries, _ in rows), strict=True)
        assert sum(low) <= count <= sum(high)
        if notation == "netscope":
            column = [entries.get(kind) for _, entries, _ in rows]
            right = [figures(report, cells[1]).get(kind) for cells, *_ in rows]
            assert column == [None if count is None else shortened(count) for count in right]


def between(text: str) -> tuple[Decimal, Decimal]:
    """Counts a printed number may stand for."""
    unit = Decimal(10) ** (3 * " kMGT".index(text[-1])) if text[-1] in "kMGT" else Decimal(1)
    half = Decimal("0.005") * unit if unit > 1 else Decimal(0)
    middle = Decimal(text.rstrip("kMGT")) * unit
    return middle - half, middle + half


def test_folded_rows_are_sums_of_their_layers() -> None:
    report = analyze("googlenet-caffe", like="netscope")
    plain = [cells for cells, *_ in parse(write(report, "netscope"))]
    for cells, entries, _ in list(parse(write(report, "netscope.folded")))[:-1]:
        if not cells[2].startswith("submodule"):
            assert cells[1:] in [other[1:] for other in plain]
            continue
        inside = [other for other in plain if other[1].startswith(f"{cells[1]}/")]
        assert cells[2] == f"submodule({len(inside)})"
        assert cells[3:] == (*inside[0][3:5], *inside[-1][5:])
        for kind in (*KINDS, *HELD):
            count = sum(figures(report, other[1]).get(kind, 0) for other in inside)
            assert entries.get(kind) == (shortened(count) if count else None)


def test_folding_takes_neighbours_only() -> None:
    b = Builder("fold")
    x = b.input("data", (1, 2, 4, 4))
    for name in ("a", "a/x", "b/x", "a/y", "/c", "/d", "ab/x", "b"):
        x = b.relu(x, name=name)
    names = [cells[1:3] for cells, *_ in parse(table(b.build(x), "netscope.folded"))]
    assert names == [
        ("data", "data"),
        ("a", "submodule(2)"),
        ("b/x", "ReLU"),
        ("a/y", "ReLU"),
        ("/c", "ReLU"),
        ("/d", "ReLU"),
        ("ab/x", "ReLU"),
        ("b", "ReLU"),
        ("", ""),
    ]


# -- cells by hand


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1000"),
        (1001, "1k"),
        (1005, "1k"),  # as JavaScript has it: 1.005 * 100 is 100.49999999999999
        (1015, "1.01k"),
        (1025, "1.02k"),
        (12955, "12.96k"),
        (12954, "12.95k"),
        (57600, "57.6k"),
        (999_994, "999.99k"),
        (999_995, "1000k"),
        (1_000_000, "1000k"),
        (1_000_001, "1M"),
        (10**9, "1000M"),
        (1_587_499_999, "1.59G"),
        (10**15 + 5 * 10**9, "1000.01T"),
    ],
)
def test_number_text(count: int, text: str) -> None:
    assert number_text(count) == text == shortened(count)


def rows_with_unknowns(text: str) -> list[tuple[Cells, str, str]]:
    """As parse, where `?` may stand among entries."""
    rows = []
    for line in text.splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        rows.append((tuple(cells[:7]), cells[7], cells[8]))
    return rows


def test_what_is_unknown_is_told() -> None:
    b = Builder("strange")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="first")
    (x,) = b.add_node("whirl", (x,), name="odd")
    graph = b.build(b.conv(x, 5, 3, name="after"))
    for notation in ("netscope", "netscope.folded"):
        rows = rows_with_unknowns(table(graph, notation))
        assert rows[2] == (("3", "odd", "whirl", "4", "6x6", "?", "?"), "?", "?")
        assert rows[3] == (("4", "after", "Convolution", "?", "?", "?", "?"), "?", "?")
        assert rows[4][1:] == ("macc\t3.89k<br>?", "activation\t336<br>param\t112<br>?")


def test_types_are_caffes_or_the_files_own() -> None:
    from layerscope.graph import Source

    b = Builder("types")
    x = b.input("data", (1, 4, 8, 8))
    x = b.conv_transpose(x, 4, 2, stride=2, name="up")
    x = b.add(b.activation("sigmoid", x, name="gate"), x, name="sum")
    x = b.activation("gelu", x, name="curve")
    (x,) = b.add_node("whirl", (x,), name="odd", source=Source("a.onnx", 0, "Whirl2d"))
    types = [cells[2] for cells, *_ in rows_with_unknowns(table(b.build(x)))]
    assert types == ["data", "Deconvolution", "Sigmoid", "Eltwise", "gelu", "Whirl2d", ""]


def test_sizes_are_width_by_height() -> None:
    b = Builder("wide")
    x = b.input("data", (2, 3, 10, 20))
    x = b.flatten(b.max_pool(x, (5, 2), name="pool"), name="flatten")
    rows = list(parse(table(b.build(b.linear(x, 7, name="fc")))))
    assert [cells[3:] for cells, *_ in rows[:-1]] == [
        ("3", "20x10", "3", "20x10"),
        ("3", "20x10", "3", "10x2"),
        ("3", "10x2", "60", "1x1"),
        ("60", "1x1", "7", "1x1"),
    ]
    assert rows[2][1] == {"activation": "120"}
    b = Builder("volume")
    x = b.input("data", (1, 1, 4, 8, 16))
    (_, (cells, *_), _) = parse(table(b.build(b.relu(x))))
    assert cells[3:] == ("1", "16x8x4", "1", "16x8x4")


def test_exact_figures_in_the_same_table() -> None:
    report = analyze("mtcnn-pnet", like="exact")
    rows = {cells[1]: entries for cells, entries, _ in parse(write(report, "netscope"))}
    assert rows["PReLU1"] == {
        "comp": "1000",
        "mul": "1000",
        "activation": "1000",
        "param": "10",
    }
    assert rows["conv1"] == {"macc": "27k", "add": "1000", "activation": "1000", "param": "280"}


def test_a_bar_in_a_name_is_escaped() -> None:
    b = Builder("bar")
    text = table(b.build(b.relu(b.input("data", (1, 1)), name="a|b")))
    assert "| 2 | a\\|b | ReLU |" in text


def test_counting_rules_without_a_table_of_their_own() -> None:
    b = Builder("rules")
    x = b.input("data", (2, 4, 6, 6))
    rois = b.input("rois", (3, 5))
    up = b.conv_transpose(x, 8, 4, stride=2, padding=1, groups=2, name="up")
    product = b.mul(x, x, name="product")
    largest = b.add_node("max", (x, product), name="largest")[0]
    from layerscope.graph.attributes import L2Norm, RoIPool

    pooled = b.add_node("roi_pool", (largest, rois), RoIPool((2, 2)), name="pooled")[0]
    normed = b.add_node("l2_norm", (x,), L2Norm(), name="normed")[0]
    report = analyze(b.build(up, pooled, normed), like="netscope")
    size, up_size = 2 * 4 * 6 * 6, 2 * 8 * 12 * 12
    # cin · cout · outputs · (k / stride)², no bias and no groups
    assert figures(report, "up") == {
        "macc": 4 * up_size * 4,
        "activation": up_size,
        "param": 4 * 8 * 4 * 4,
    }
    assert figures(report, "product") == {"macc": size, "activation": size}
    assert figures(report, "largest") == {"comp": size, "activation": size}
    assert figures(report, "normed") == {
        "macc": size,
        "add": size,
        "div": 2 * size,
        "exp": size,
        "activation": size,
        "param": 2,
    }
    assert figures(report, "pooled") == {
        "macc": 3,
        "comp": 3 * 4 * 6 * 6,
        "add": 3,
        "div": 3,
        "activation": 3 * 4 * 2 * 2,
    }


def test_tied_layers_are_counted_each() -> None:
    b = Builder("twins")
    x = b.input("data", (1, 3, 8, 8))
    left = b.conv(x, 4, 3, name="left")
    from layerscope.graph.attributes import Conv

    same = Conv(b.window(3), 4)
    ties = {"weight": "left.weight", "bias": "left.bias"}
    (right,) = b.add_node("conv", (x,), same, name="right", ties=ties)
    graph = b.build(b.add(left, right, name="sum"))
    assert analyze(graph, like="netscope").totals.params == 2 * (3 * 3 * 3 * 4 + 4)
    assert analyze(graph, like="exact").totals.params == 3 * 3 * 3 * 4 + 4
