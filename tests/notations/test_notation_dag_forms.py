"""MatConvNet's print of a DagNN as csv, LaTeX and dot: the text's cells, and no name is obeyed."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerscope import Builder, Graph, analyze
from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import NUMBERS, visible
from layerscope.notations import write
from tests.formats.matconvnet.matfiles import write as save
from tests.formats.matconvnet.matnets import residual
from tests.syntax import digraph, latex_rows, record_fields

FORMS = ("matconvnet.dag.csv", "matconvnet.dag.latex", "matconvnet.dag.dot")
TABLES = ("matconvnet.dag", "matconvnet.dag.csv", "matconvnet.dag.latex")
CORNERS = {"layers": "func", "params": "param", "vars": "var", "memory": "params", "fields": "rf"}
NETWORKS = ("lenet5", "patch32", "block")


def printed(network: str | Graph, notation: str, **options: object) -> str:
    return write(analyze(network, like="matconvnet"), notation, **options)


@pytest.fixture
def block(tmp_path: Path) -> str:
    return save(tmp_path / "block.mat", residual())


def text_rows(text: str) -> list[list[str]]:
    """Rows of the text form, without those of dashes."""
    rows = [[cell.strip() for cell in line.split("|")[:-1]] for line in text.splitlines() if line]
    return [row for row in rows if set(row[0]) != {"-"}]


def csv_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    rows = list(csv.reader(StringIO("\n".join(lines)), skipinitialspace=True))
    assert all(row.pop() == "" for row in rows), "every cell is followed by a comma"
    return rows


@pytest.mark.parametrize("notation", FORMS)
@pytest.mark.parametrize("network", NETWORKS)
def test_golden(
    network: str, notation: str, block: str, golden: Callable[[str, str], None]
) -> None:
    text = printed(block if network == "block" else network, notation)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    golden(f"{notation}/{network}.txt", text)


@pytest.mark.parametrize("most", [1, 7, 18, 100])
@pytest.mark.parametrize("network", [*NETWORKS, "squeezenet1_0"])
def test_csv_and_latex_have_the_cells_of_the_text(network: str, block: str, most: int) -> None:
    given = block if network == "block" else network
    rows = text_rows(printed(given, "matconvnet.dag", max_columns=most))
    assert max(map(len, rows)) <= most + 1
    assert csv_rows(printed(given, "matconvnet.dag.csv", max_columns=most)) == rows
    written = latex_rows(printed(given, "matconvnet.dag.latex", max_columns=most))
    assert [[cell.replace(r"\char`_", "_") for cell in row] for row in written] == rows


@pytest.mark.parametrize("most", [1, 2, 5, 17, 18, 19, 1000])
def test_blocks_join_to_the_same_table(most: int) -> None:
    """Whatever the width of a block, the columns are the same, and none is missing."""

    def joined(count: int) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        text = printed("squeezenet1_0", "matconvnet.dag", max_columns=count, parts=("vars",))
        for label, *cells in text_rows(text):
            assert len(cells) <= count
            found.setdefault(label, []).extend(cells)
        return found

    assert joined(most) == joined(18)


def test_csv_is_aligned_as_matconvnet_aligns_it() -> None:
    lines = printed("lenet5", "matconvnet.dag.csv", parts="memory").splitlines()
    assert lines == ['"params","241KB",', '  "vars", "62KB",', ' "total","303KB",']


# -- parts


@pytest.mark.parametrize("notation", TABLES)
@pytest.mark.parametrize("part", CORNERS)
def test_each_part_is_a_part_of_the_whole(part: str, notation: str) -> None:
    whole = printed("lenet5", notation)
    text = printed("lenet5", notation, parts=(part,))
    assert text in whole
    others = [printed("lenet5", notation, parts=[each]) for each in CORNERS]
    assert "\n\n".join(others) == whole
    read = {TABLES[0]: text_rows, TABLES[1]: csv_rows, TABLES[2]: latex_rows}[notation]
    assert read(text)[0][0].split(" ")[0] == CORNERS[part]


@pytest.mark.parametrize("notation", TABLES)
def test_parts_are_in_matconvnets_order(notation: str) -> None:
    both = printed("lenet5", notation, parts="vars,layers")
    assert both == printed("lenet5", notation, parts=("layers", "vars", "layers"))
    assert both.index("func") < both.index("fanin")


@pytest.mark.parametrize("notation", [*TABLES, "matconvnet.dag.dot"])
def test_wrong_parts(notation: str) -> None:
    with pytest.raises(UnknownName, match="unknown part 'layer'"):
        printed("lenet5", notation, parts=("layer",))
    with pytest.raises(UsageError, match="--parts is empty"):
        printed("lenet5", notation, parts=())


def test_a_graph_has_no_tables() -> None:
    with pytest.raises(UnknownName, match="unknown part 'memory'"):
        printed("lenet5", "matconvnet.dag.dot", parts=("layers", "memory"))


# -- dot


@pytest.mark.parametrize("network", [*NETWORKS, "squeezenet1_0", "resnet18"])
def test_dot_has_every_layer_variable_and_parameter(network: str, block: str) -> None:
    report = analyze(block if network == "block" else network, like="matconvnet")
    tables = {
        part: text_rows(write(report, "matconvnet.dag", parts=part, max_columns=10**6))
        for part in ("layers", "params", "vars")
    }
    found = digraph(write(report, "matconvnet.dag.dot"))
    fields = [record_fields(each["label"]) for each in found.nodes.values()]
    arrays = [list(cells) for part in ("vars", "params")
              for cells in zip(*[row[1:] for row in tables[part][:3]], strict=True)]  # fmt: skip
    assert fields[: len(arrays)] == arrays  # name, dims, mem
    names, types, *ends = [row[1:] for row in tables["layers"]]
    assert [each[0] for each in fields[len(arrays) :]] == names
    assert [each[1].removeprefix("dagnn.") for each in fields[len(arrays) :]] == types
    assert len(found.edges) == sum(len(cell.split()) for row in ends[:3] for cell in row)
    for edge in found.edges:
        kinds = [found.nodes[end]["fillcolor"].strip('"') for end in edge]
        assert sorted(kinds)[-1] == "tomato"
        assert kinds.count("tomato") == 1


def test_dot_by_hand() -> None:
    b = Builder("one")
    graph = b.build(b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, bias=False, name="conv-1"))
    array = 'shape=record style="solid,rounded,filled"'
    font = 'fontsize=12 fontname="helvetica" ]'
    beige = f"{array} color=cornsilk4 fillcolor=beige {font}"
    blue = f"{array} color=lightsteelblue4 fillcolor=lightsteelblue {font}"
    red = f'shape=record style="bold,filled" color="tomato4" fillcolor="tomato" {font}'
    assert printed(graph, "matconvnet.dag.dot").splitlines() == [
        "digraph DagNN {",
        "\tfontsize=12",
        f'\tvar_data [label="{{{{data}} | {{8x8x3x1 | 768B }}}}" {beige}',
        f'\t"var_conv-1" [label="{{{{conv-1}} | {{6x6x4x1 | 576B }}}}" {beige}',
        f'\t"par_conv-1f" [label="{{{{conv-1f}} | {{3x3x3x4 | 432B }}}}" {blue}',
        f'\t"conv-1" [label="{{ conv-1 | dagnn.Conv }}" {red}',
        '\tvar_data->"conv-1" [weight=10]',
        '\t"conv-1"->"var_conv-1" [weight=10]',
        '\t"par_conv-1f"->"conv-1" [weight=1]',
        "}",
    ]


def test_dot_in_parts() -> None:
    whole = digraph(printed("lenet5", "matconvnet.dag.dot"))
    bare = digraph(printed("lenet5", "matconvnet.dag.dot", parts="vars,layers"))
    assert bare.nodes == {n: each for n, each in whole.nodes.items() if not n.startswith("par_")}
    assert bare.edges == [edge for edge in whole.edges if edge[0] in bare.nodes]
    alone = digraph(printed("lenet5", "matconvnet.dag.dot", parts="params"))
    assert alone.nodes.keys() == whole.nodes.keys() - bare.nodes.keys()
    assert not alone.edges


def test_unknown_sizes_are_unknown_in_dot() -> None:
    b = Builder("strange")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="first")
    (x,) = b.add_node("whirl|<x>", (x,), name="odd")
    found = digraph(printed(b.build(b.relu(x, name="after")), "matconvnet.dag.dot"))
    assert record_fields(found.nodes["var_odd"]["label"]) == ["odd", "n/a", "NaN"]
    assert record_fields(found.nodes["odd"]["label"]) == ["odd", "whirl|<x>"]


def test_names_that_would_be_one_id_are_two_nodes() -> None:
    b = Builder("clash")
    x = b.input("x", (1, 2, 4, 4))
    x = b.relu(x, name="var_x")
    x = b.relu(x, name="node")
    x = b.relu(x, name="GRAPH")
    x = b.relu(x, name="a\x1bb")
    graph = b.build(b.relu(x, name="a\\x1bb"))
    found = digraph(printed(graph, "matconvnet.dag.dot"))
    assert len(found.nodes) == 5 + 6
    assert ("var_x", "var_x_2") in found.edges
    assert ("var_var_x", '"node"') in found.edges
    ends = [end for edge in found.edges for end in edge]
    assert set(ends) == set(found.nodes)


# -- names that a reader would obey

NAMES = st.text(min_size=1, max_size=12) | st.text(
    alphabet='\\{}|<>"&;,=+-@#%$_^~ `\n\r\t:/.aN0é\u202e', min_size=1, max_size=12
)


def hostile(names: tuple[str, str, str]) -> Graph:
    given, first, second = names
    b = Builder("hostile")
    x = b.conv(b.input(given, (1, 2, 4, 4)), 3, 1, name=first)
    return b.build(b.relu(x, name=second))


THREE = st.tuples(NAMES, NAMES, NAMES).filter(lambda names: len(set(names)) == 3)


@given(THREE)
def test_dot_prints_names_and_obeys_none(names: tuple[str, str, str]) -> None:
    found = digraph(printed(hostile(names), "matconvnet.dag.dot"))
    shown = [record_fields(each["label"])[0] for each in found.nodes.values()]
    first = visible(names[1])
    assert shown == [*map(visible, names), visible(f"{names[1]}f"), visible(f"{names[1]}b"),
                     first, visible(names[2])]  # fmt: skip
    assert len(found.edges) == 2 * 2 + 2
    assert {end for edge in found.edges for end in edge} == found.nodes.keys()


@given(THREE, st.sampled_from(["matconvnet.latex", "matconvnet.dag.latex"]))
def test_latex_prints_names_and_obeys_none(names: tuple[str, str, str], notation: str) -> None:
    assert latex_rows(printed(hostile(names), notation))


@given(THREE, st.booleans())
def test_csv_cells_are_the_names_or_texts(names: tuple[str, str, str], skip: bool) -> None:
    """Readers that skip the spaces before a quote get the cells, and no reader gets a formula."""
    text = printed(hostile(names), "matconvnet.dag.csv", parts=("vars",))
    rows = list(csv.reader(StringIO(text), skipinitialspace=skip))
    assert len(rows) == 5
    assert {len(row) for row in rows} == {5}
    for cell in (cell for row in rows for cell in row):
        assert not cell.startswith(("=", "+", "@")) or re.fullmatch(NUMBERS, cell)
    if skip:
        assert [cell.removeprefix("'") for cell in rows[0][1:4]] == [
            visible(name).removeprefix("'") for name in names
        ]


@pytest.mark.parametrize("name", ["a;=1", "a,=1", 'a"b'])
def test_a_cell_with_a_separator_begins_with_its_quote(name: str) -> None:
    """After a space a reader takes the quote for text, and would split the cell."""
    text = printed(hostile(("data", name, "b")), "matconvnet.dag.csv", parts=("layers",))
    doubled = name.replace('"', '""')
    assert text.splitlines()[0].startswith(f'   "func","{doubled}",')
    assert f'"outputs","{doubled}",' in text
