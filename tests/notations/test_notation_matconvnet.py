"""MatConvNet's display: its document, goldens, and every row computed again from the others."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from fractions import Fraction
from io import StringIO
from pathlib import Path

import pytest

from layerscope import Builder, Graph, Report, analyze
from layerscope.errors import UsageError
from layerscope.notations import write
from layerscope.notations.matconvnet import memory_text, number_text
from tests.networks import waves

NOTATIONS = ("matconvnet", "matconvnet.csv", "matconvnet.latex", "matconvnet.dilation")
RULE = "-"
LABELS = (
    *("layer", "type", "name", RULE, "support", "filt dim", "num filts", "stride", "pad", RULE),
    *("rf size", "rf offset", "rf stride", RULE, "data size", "data depth", "data num", RULE),
    *("data mem", "param mem"),
)

Columns = list[dict[str, str]]  # one a layer: row label -> cell

# Every cell of document 000 that breaks its own rules: layer, row, printed, right, why.
BROKEN = [
    (24, "data depth", "7", "5", "fc11 has 5 filters, and its 20B of data are 5 numbers"),
]


def display(network: str | Graph, notation: str = "matconvnet") -> str:
    return write(analyze(network, like="matconvnet"), notation)


def parse(text: str) -> tuple[Columns, dict[str, str]]:
    """Columns and totals of a display; its frame is checked on the way."""
    *blocks, totals = text.split("\n\n")
    columns: Columns = []
    for block in blocks:
        lines = [line.split("|") for line in block.splitlines()]
        assert all(line.pop() == "" for line in lines), "every cell ends with |"
        for down in zip(*lines, strict=True):
            width = len(down[0])
            assert {len(cell) for cell in down} == {width}, "a column is of one width"
            assert width == max(len(cell.strip()) for cell in down if set(cell) != {RULE})
            assert all(cell == RULE * width for cell in down if cell.startswith(RULE))
        labels = [line[0].strip().strip(RULE) or RULE for line in lines]
        assert tuple(label for label in labels if label != "filt dilat") == LABELS
        for n in range(1, len(lines[0])):
            cells = [line[n].strip() for line in lines]
            columns.append(dict(zip(labels, cells, strict=True)))
    ends = [line.split("|") for line in totals.splitlines()]
    return columns, {line[0].strip(): line[1].strip() for line in ends}


def numbers(cell: str) -> list[Fraction]:
    return [Fraction(part) for part in cell.split("x")]


def plane(cell: str) -> list[Fraction]:
    """Height and width."""
    return numbers(cell) * (1 if "x" in cell else 2)


def text_of(values: list[Fraction]) -> str:
    shown = [f"{float(value):.4g}" for value in values]
    return "x".join(shown) if len(set(values)) > 1 else shown[0]


def shortened(count: int) -> str:
    """Bytes as the display writes them, by another way than the writer's."""
    for unit, power in (("GB", 3), ("MB", 2), ("KB", 1), ("B", 0)):
        if count >= 1024**power or power == 0:
            whole, rest = divmod(count, 1024**power)
            return f"{whole + (2 * rest >= 1024**power)}{unit}"
    raise AssertionError


def again(columns: Columns) -> tuple[Columns, int, int]:
    """A chain's rf, data and memory rows computed again from its window rows, as RULES.md says.

    Returns the columns as they should be, and the bytes of parameters and of data.
    """
    size, step, centre = [[Fraction(1)] * 2, [Fraction(1)] * 2, [Fraction(1)] * 2]
    high, depth, num = plane(columns[0]["data size"]), 0, 0
    params = data = 0
    right: Columns = []
    for n, printed in enumerate(columns):
        cells = dict(printed)
        stored = 0
        if n == 0:
            depth, num = int(cells["data depth"]), int(cells["data num"])
        else:
            support, stride = plane(cells["support"]), plane(cells["stride"])
            pads = numbers(cells["pad"]) * (1 if "x" in cells["pad"] else 4)
            for axis in (0, 1):
                before, after = pads[2 * axis : 2 * axis + 2]
                size[axis] += (support[axis] - 1) * step[axis]
                centre[axis] += step[axis] * ((support[axis] - 1) / 2 - before)
                step[axis] *= stride[axis]
                room = high[axis] + before + after - support[axis]
                high[axis] = Fraction(room // stride[axis] + 1)
            if cells["type"] == "conv":
                depth = int(cells["num filts"])
                dilation = plane(cells.get("filt dilat", "1"))
                taps = [(s - 1) / d + 1 for s, d in zip(support, dilation, strict=True)]
                stored = int(taps[0] * taps[1]) * int(cells["filt dim"]) * depth + depth
            elif cells["type"] == "bnorm":
                stored = 4 * depth
            elif cells["type"] == "softmxl":
                depth = num = 1
            cells |= {"rf size": text_of(size), "rf offset": text_of(centre)}
            cells |= {"rf stride": text_of(step), "param mem": shortened(4 * stored)}
        held = 4 * int(high[0] * high[1]) * depth * num
        cells |= {"data size": text_of(high), "data depth": str(depth), "data num": str(num)}
        cells["data mem"] = shortened(held)
        right.append(cells)
        params += 4 * stored
        data += held
    return right, params, data


def check_totals(totals: dict[str, str], params: int, data: int, batch: int) -> None:
    assert totals == {
        "parameter memory": f"{shortened(params)} ({params / 4:.2g} parameters)",
        "data memory": f"{shortened(data)} (for batch size {batch})",
    }


# -- the document


@pytest.fixture
def document(shared: Path) -> str:
    (path,) = shared.glob("seeds/000_*")
    return path.read_text()


def test_the_document_is_printed_but_for_the_cells_that_break_its_rules(document: str) -> None:
    text = display("patch32")
    theirs, their_totals = parse(document)
    ours, our_totals = parse(text)
    assert their_totals == our_totals
    found = [
        (n, row, cell, right[row])
        for n, (printed, right) in enumerate(zip(theirs, ours, strict=True))
        for row, cell in printed.items()
        if cell != right[row]
    ]
    assert found == [entry[:4] for entry in BROKEN]
    # Outside these cells every character is the same: put them right, and nothing differs.
    lines = document.splitlines()
    for layer, row, printed, right, _ in BROKEN:
        block = next(n for n in range(layer // 18 * 21, len(lines)) if lines[n].startswith("  "))
        at = next(n for n in range(block, len(lines)) if lines[n].startswith(row))
        cells = lines[at].split("|")
        place = 1 + layer % 18
        assert cells[place].strip() == printed
        cells[place] = right.rjust(len(cells[place]))
        lines[at] = "|".join(cells)
    assert "\n".join(lines) + "\n" == text


def test_the_document_alone_shows_the_same_broken_cells(document: str) -> None:
    """The rows follow from each other: no network is needed to find what cannot be right."""
    columns, totals = parse(document)
    right, params, data = again(columns)
    found = [
        (n, row, cell, cells[row])
        for n, (printed, cells) in enumerate(zip(columns, right, strict=True))
        for row, cell in printed.items()
        if cell != cells[row]
    ]
    assert found == [entry[:4] for entry in BROKEN]
    check_totals(totals, params, data, batch=1)


# -- goldens, and the tables computed again


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("network", ["patch32", "resnet50", "googlenet", "waves"])
def test_golden(network: str, notation: str, golden: Callable[[str, str], None]) -> None:
    text = display(waves() if network == "waves" else network, notation)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    golden(f"{notation}/{network}.txt", text)


@pytest.mark.parametrize("network", ["patch32", "alexnet", "vgg16", "waves"])
@pytest.mark.parametrize("batch", [1, 3])
def test_a_chain_follows_from_its_windows(network: str, batch: int) -> None:
    graph = waves() if network == "waves" else network
    text = write(analyze(graph, batch=batch, like="matconvnet"), "matconvnet.dilation")
    columns, totals = parse(text)
    right, params, data = again(columns)
    assert columns == right
    check_totals(totals, params, data, batch)


@pytest.mark.parametrize("network", ["resnet50", "googlenet", "googlenet-caffe", "nin", "waves"])
def test_totals_add_up(network: str) -> None:
    report = analyze(waves() if network == "waves" else network, like="matconvnet")
    columns, totals = parse(write(report, "matconvnet"))
    # data: exactly, from the printed sizes
    data = 0
    for cells in columns:
        high, wide = plane(cells["data size"])
        held = 4 * int(high * wide) * int(cells["data depth"]) * int(cells["data num"])
        assert cells["data mem"] == shortened(held)
        data += held
    assert totals["data memory"] == f"{shortened(data)} (for batch size 1)"
    assert data == 4 * report.totals.convention_activations
    # parameters: exactly from the report, and from the printed cells within their precision
    params = 4 * report.totals.params
    assert totals["parameter memory"].startswith(f"{shortened(params)} (")
    assert float(totals["parameter memory"].split("(")[1].split()[0]) == float(f"{params / 4:.2g}")
    low = high = Fraction(0)
    for cells in columns[1:]:
        least, most = between(cells["param mem"])
        low, high = low + least, high + most
    assert low <= params <= high
    names = [cells["name"] for cells in columns[1:]]
    kept = [layer for layer in report.layers if layer.op not in ("flatten", "reshape", "identity")]
    assert names == [layer.name for layer in kept]
    assert [c["param mem"] for c in columns[1:]] == [shortened(4 * k.params) for k in kept]
    assert [c["layer"] for c in columns] == [str(n) for n in range(len(columns))]


def between(cell: str) -> tuple[Fraction, Fraction]:
    """Bytes a printed memory may stand for."""
    unit = cell.lstrip("0123456789")
    size = 1024 ** ("B", "KB", "MB", "GB").index(unit)
    half = Fraction(size, 2) if size > 1 else Fraction(0)
    middle = int(cell.removesuffix(unit)) * size
    return middle - half, middle + half


def test_blocks_have_at_most_18_columns() -> None:
    blocks = display("resnet50").split("\n\n")[:-1]
    widths = [block.splitlines()[0].count("|") - 1 for block in blocks]
    assert widths[:-1] == [18] * (len(widths) - 1)
    assert 0 < widths[-1] <= 18
    assert sum(widths) == 1 + sum(node.op != "flatten" for node in analyze("resnet50").graph.nodes)


@pytest.mark.parametrize("notation", NOTATIONS)
@pytest.mark.parametrize("most", [1, 8, 17, 26, 1000])
def test_max_columns(most: int, notation: str) -> None:
    """Each block has at most so many layers; in all widths they are the same layers."""

    def joined(count: int) -> tuple[dict[str, list[str]], list[int]]:
        report = analyze("patch32", like="matconvnet")
        found: dict[str, list[str]] = {}
        widths = []
        for line in write(report, notation, max_columns=count).splitlines():
            if notation.endswith("latex"):
                cells = line.removesuffix("\\\\").split("&")
            elif notation.endswith("csv"):
                cells = next(csv.reader([line]), [])[:-1]
            else:
                cells = line.split("|")[:-1]
            cells = [cell.strip() for cell in cells]
            if len(cells) > 1 and not cells[0].startswith(RULE):
                found.setdefault(cells[0], []).extend(cells[1:])
                widths += [len(cells) - 1] if cells[0] == "layer" else []
        return found, widths

    cells, widths = joined(most)
    assert cells == joined(18)[0]
    assert [int(cell) for cell in cells["layer"]] == list(range(26))
    assert widths == [most] * (26 // most) + ([26 % most] if 26 % most else [])


def test_max_columns_refused() -> None:
    report = analyze("lenet5", like="matconvnet")
    for wrong in (0, -1, True, 2.5, "8"):
        for notation in NOTATIONS:
            with pytest.raises(UsageError, match="--max-columns"):
                write(report, notation, max_columns=wrong)


@pytest.mark.parametrize("notation", NOTATIONS)
def test_the_batch_is_that_of_data_num_and_of_the_total(notation: str) -> None:
    text = write(analyze("patch32", batch=7, like="matconvnet"), notation)
    assert "(for batch size 7)" in text
    nums = [line for line in text.splitlines() if "data num" in line]
    assert len(nums) == 2
    assert re.findall("[0-9]+", " ".join(nums)) == ["7"] * 25 + ["1"]  # one after the loss


# -- csv and LaTeX


@pytest.mark.parametrize("network", ["patch32", "resnet50"])
def test_csv_has_the_cells_of_the_text(network: str) -> None:
    text = display(network, "matconvnet.csv")
    columns, totals = parse(display(network))
    cells = []
    for line in text.splitlines():
        assert line == "" or line.endswith('",')
        cells.append(next(csv.reader(StringIO(line)), [])[:-1])
    seen: dict[str, list[str]] = {}
    for row in cells:
        if row:
            seen.setdefault(row[0], []).extend(row[1:])
    assert {label: seen[label] for label in totals} == {k: [v] for k, v in totals.items()}
    for label in LABELS:
        assert label == RULE or seen[label] == [column[label] for column in columns]


def test_csv_quotes_are_doubled_and_latex_is_escaped() -> None:
    b = Builder("odd")
    x = b.input("data", (1, 1, 4, 4))
    graph = b.build(b.relu(b.relu(x, name='a"b'), name="c_d\\e"))
    assert '"name","n/a","a""b","c_d\\e",\n' in display(graph, "matconvnet.csv")
    latex = display(graph, "matconvnet.latex").splitlines()
    assert latex[0] == r"\begin{tabular}{cccc}"
    assert latex[3] == r"      name&  n/a& a" + '"b&' + r"c\char`_d\textbackslash{}e\\"
    assert latex[4] == r"\hline"
    assert latex[-4:-2] == [r"\begin{tabular}{cc}", r"parameter memory&      0B (0 parameters)\\"]
    assert latex[-1] == r"\end{tabular}"


def test_dilation_is_a_row_after_filt_dim() -> None:
    lines = display(waves(), "matconvnet.dilation").splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("  filt dim"))
    assert lines[place + 1].startswith("filt dilat|  n/a|      1|  n/a|")
    plain = [line for line in lines if not line.startswith("filt dilat")]
    assert plain == display(waves()).splitlines()


# -- cells by hand


def column(graph: Graph, name: str, **options: object) -> dict[str, str]:
    report: Report = analyze(graph, like="matconvnet", **options)  # type: ignore[arg-type]
    columns, _ = parse(write(report, "matconvnet.dilation"))
    return next(cells for cells in columns if cells["name"] == name)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1KB"),
        (1024 * 1024 - 1, "1024KB"),
        (147968, "145KB"),  # 144.5
        (147967, "144KB"),
        (3 * 512, "2KB"),  # 1.5
        (5 * 512, "3KB"),  # 2.5: to even would be 2
        (1024**3 - 1, "1024MB"),
        (1024**4, "1024GB"),
    ],
)
def test_memory_text(count: int, text: str) -> None:
    assert memory_text(count) == text == shortened(count)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 4, "0"),
        (9999, 4, "9999"),
        (12345, 4, "1.235e+04"),  # halves away from zero
        (12344, 4, "1.234e+04"),
        (Fraction(33, 2), 4, "16.5"),
        (Fraction(-1, 2), 4, "-0.5"),
        (Fraction(1, 3), 4, "0.3333"),
        (18665477, 2, "1.9e+07"),
        (99, 2, "99"),
        (100, 2, "1e+02"),
        (125, 2, "1.3e+02"),
    ],
)
def test_number_text(value: Fraction | int, digits: int, text: str) -> None:
    assert number_text(value, digits) == text


def test_unequal_sizes_and_pads() -> None:
    b = Builder("unequal")
    x = b.input("data", (1, 3, 20, 30))
    x = b.conv(x, 4, (3, 5), stride=(1, 2), padding=((0, 1), (2, 3)), name="conv")
    cells = column(b.build(x), "conv")
    assert cells["support"] == "3x5"
    assert cells["stride"] == "1x2"
    assert cells["pad"] == "0x1x2x3"  # top, bottom, left, right
    assert cells["rf offset"] == "2x1"
    assert cells["data size"] == "19x16"
    assert cells["param mem"] == "736B"  # 4 · (3·5·3·4 + 4)


def test_a_three_dimensional_network() -> None:
    b = Builder("volume")
    x = b.input("data", (1, 1, 8, 16, 16))
    x = b.conv(x, 2, (1, 3, 3), padding=(0, 1, 1), name="conv")
    graph = b.build(b.max_pool(x, 2, name="pool"))
    cells = column(graph, "conv")
    assert [cells[row] for row in ("support", "pad", "data size")] == [
        "1x3x3",
        "0x0x1x1x1x1",
        "8x16x16",
    ]
    assert [column(graph, "pool")[row] for row in ("support", "rf size", "rf stride")] == [
        "2",
        "2x4x4",
        "2",
    ]


def test_half_precision_takes_half_the_memory() -> None:
    text = write(analyze("patch32", dtype="fp16", like="matconvnet"), "matconvnet")
    columns, totals = parse(text)
    assert [columns[n]["data mem"] for n in (0, 1)] == ["64KB", "256KB"]
    assert columns[1]["param mem"] == "72KB"  # 72.25
    assert totals["parameter memory"] == "36MB (1.9e+07 parameters)"


def test_an_unknown_op_is_never_zero() -> None:
    b = Builder("strange")
    x = b.input("data", (1, 3, 8, 8))
    x = b.conv(x, 4, 3, name="first")
    (x,) = b.add_node("whirl", (x,), name="odd")
    x = b.relu(b.conv(x, 5, 3, padding=1, dilation=2, name="after"), name="relu")
    report = analyze(b.build(x), like="matconvnet")
    columns, totals = parse(write(report, "matconvnet.dilation"))
    odd, after, relu = columns[2:]
    assert [cell for row, cell in odd.items() if row != RULE] == ["2", "whirl", "odd", *"?" * 14]
    told = {"support": "5", "filt dim": "?", "filt dilat": "2", "num filts": "5", "pad": "1"}
    assert told.items() <= after.items()
    assert after["rf size"] == after["data mem"] == after["param mem"] == "?"
    assert relu["filt dim"] == "n/a"
    assert relu["support"] == relu["data size"] == relu["data mem"] == "?"
    assert relu["param mem"] == "0B"  # a ReLU has none, whatever its size
    assert totals == {
        "parameter memory": "448B + ? (1.1e+02 + ? parameters)",
        "data memory": "1KB + ? (for batch size 1)",
    }


def test_views_have_no_column_and_linear_layers_are_convolutions() -> None:
    b = Builder("head")
    x = b.input("data", (2, 3, 32, 32))
    x = b.max_pool(b.conv(x, 8, 3, padding=1, name="conv"), 4, stride=4, name="pool")
    x = b.dropout(b.flatten(x, name="flatten"), name="drop")
    x = b.linear(b.relu(b.linear(x, 20, name="fc1"), name="relu"), 5, bias=False, name="fc2")
    graph = b.build(b.softmax(x, name="prob"))
    columns, _ = parse(display(graph))
    assert "flatten" not in [cells["name"] for cells in columns]
    drop, fc1, _, fc2, prob = columns[3:]
    assert (drop["type"], drop["data size"], drop["data depth"]) == ("dropout", "8", "8")
    assert (drop["rf size"], drop["rf stride"]) == ("6", "4")
    assert (fc1["type"], fc1["support"], fc1["filt dim"], fc1["num filts"]) == (
        *("conv", "8", "8", "20"),
    )
    assert (fc1["rf size"], fc1["rf offset"], fc1["rf stride"]) == ("34", "16.5", "4")
    assert (fc2["support"], fc2["filt dim"], fc2["param mem"]) == ("1", "20", "400B")
    assert (prob["type"], prob["data num"]) == ("softmx", "2")


def test_pools_by_bins() -> None:
    b = Builder("bins")
    x = b.input("data", (1, 4, 12, 10))
    even = b.adaptive_pool(x, (3, 5), name="even")
    uneven = b.adaptive_pool(x, 4, "max", name="uneven")
    whole = b.global_pool(even, name="whole")
    graph = b.build(uneven, whole)
    rows = ("type", "support", "stride", "pad", "rf size", "rf stride", "data size")
    assert [column(graph, "even")[r] for r in rows] == [
        *("apool", "4x2", "4x2", "0", "4x2", "4x2", "3x5"),
    ]
    assert [column(graph, "uneven")[r] for r in rows] == [
        *("mpool", "3", "3x2.5", "0", "3", "3x2.5", "4"),
    ]
    assert [column(graph, "whole")[r] for r in rows] == [
        *("apool", "3x5", "3x5", "0", "12x10", "12x10", "1"),
    ]


def test_layers_that_enlarge() -> None:
    b = Builder("larger")
    x = b.input("data", (1, 4, 8, 8))
    x = b.conv_transpose(x, 6, 4, stride=2, padding=1, groups=2, name="up")
    graph = b.build(b.resize(x, 4, name="resize"))
    cells = column(graph, "up")
    assert [cells[r] for r in ("type", "support", "filt dim", "num filts", "stride", "pad")] == [
        *("convt", "4", "2", "6", "0.5", "1"),
    ]
    assert (cells["rf stride"], cells["data size"]) == ("0.5", "16")
    assert cells["param mem"] == shortened(4 * (4 * 4 * 2 * 6 + 6))
    cells = column(graph, "resize")
    assert (cells["type"], cells["stride"], cells["rf stride"]) == ("resize", "0.25", "0.125")


def test_branches_with_different_centres_have_no_offset() -> None:
    b = Builder("apart")
    x = b.input("data", (1, 2, 9, 9))
    left = b.conv(x, 2, 2, padding=((0, 1), (0, 1)), name="left")
    graph = b.build(b.add(x, left, name="sum"))
    cells = column(graph, "sum")
    assert (cells["type"], cells["rf size"], cells["rf stride"]) == ("sum", "2", "1")
    assert cells["rf offset"] == "n/a"


def test_a_gate_sees_everything_and_the_stride_goes_on() -> None:
    b = Builder("gated")
    x = b.conv(b.input("data", (1, 2, 16, 16)), 4, 3, stride=2, padding=1, name="conv")
    gate = b.activation("sigmoid", b.conv(b.global_pool(x, name="pool"), 4, 1), name="gate")
    x = b.mul(x, gate, name="scaled")
    graph = b.build(b.conv(x, 4, 3, stride=2, padding=1, name="last"))
    rows = ("rf size", "rf offset", "rf stride", "data size")
    assert [column(graph, "scaled")[r] for r in rows] == ["17", "8", "2", "8"]
    assert [column(graph, "last")[r] for r in rows] == ["17", "8", "4", "4"]


def test_a_loss_leaves_one_number_a_position() -> None:
    b = Builder("loss")
    x = b.softmax_loss(b.input("data", (2, 5, 3, 3)), name="loss")
    report = analyze(b.build(x), like="matconvnet")
    columns, totals = parse(write(report, "matconvnet"))
    rows = ("type", "data size", "data depth", "data num", "data mem")
    assert [columns[1][row] for row in rows] == ["softmxl", "3", "1", "1", "36B"]
    assert totals["data memory"] == "396B (for batch size 2)"


def test_several_inputs_are_several_columns() -> None:
    b = Builder("pair")
    x, y = b.input("left", (1, 2, 4, 4)), b.input("right", (1, 3, 4, 4))
    columns, totals = parse(display(b.build(b.concat(x, y, name="both"))))
    assert [(c["layer"], c["type"], c["name"]) for c in columns] == [
        ("0", "input", "left"),
        ("1", "input", "right"),
        ("2", "concat", "both"),
    ]
    assert totals["data memory"] == "640B (for batch size 1)"


def test_exact_figures_in_the_same_table() -> None:
    """Batch-norm moments are buffers: counted by MatConvNet, not among the exact parameters."""
    report = analyze("resnet50", like="exact")
    _, totals = parse(write(report, "matconvnet"))
    assert totals["parameter memory"] == "97MB (2.6e+07 parameters)"
    assert report.totals.params == 25_557_032
