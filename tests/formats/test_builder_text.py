"""Builder calls as text: every zoo network reads back as an equal graph, any text is bounded."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from pathlib import Path

import pytest

from layerscope import Builder, Graph
from layerscope.api.networks import analyze, load
from layerscope.builder.calls import TENSORS, calls
from layerscope.cli import run
from layerscope.errors import FormatError, LayerscopeError
from layerscope.export.builder import calls_of
from layerscope.formats.builder_text import parse, recognise
from layerscope.graph.serialize import to_plain
from layerscope.zoo import NAMES, build

Captured = pytest.CaptureFixture[str]
TINY = """# a comment
network("tiny", "Tiny")
data = input("data", (1, 3, 32, 32))
x = conv(data, 16, 3, padding=1)
with scope("block", "Block"):
    x = relu(x, name="act")
    a, b = split(x, [8, 8])
    x = concat(a, b)
x = linear(flatten_1, 10)
build(x)
""".replace("x = linear(flatten_1, 10)", "f = flatten(x)\nx = linear(f, 10, name='fc')")


def text_of(graph: Graph) -> str:
    return calls_of(graph)[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_zoo_reads_back_as_equal_graphs(name: str) -> None:
    graph = build(name)
    text = text_of(graph)
    again, lines = parse(text, "net.builder")
    assert again == graph
    assert to_plain(again) == to_plain(graph)
    assert list(again.modules.items()) == list(graph.modules.items())
    assert calls_of(graph, checked=False) == (text, lines)
    written = text.split("\n")
    assert recognise(text.encode()[:4096])
    for node in graph.nodes:
        assert "(" in written[lines[node.name] - 1]


def test_a_typed_text_is_the_network_of_the_same_builder() -> None:
    b = Builder("tiny", "Tiny")
    x = b.conv(b.input("data", (1, 3, 32, 32)), 16, 3, padding=1)
    with b.scope("block", "Block"):
        x = b.relu(x, name="act")
        x = b.concat(*b.split(x, (8, 8)))
    expected = b.build(b.linear(b.flatten(x), 10, name="fc"))
    assert parse(TINY, "tiny.builder")[0] == expected
    assert parse(TINY.replace("\n", "\r\n"), "tiny.builder")[0] == expected


def test_every_string_of_a_call_is_a_tensor_or_a_word() -> None:
    words = {"name", "kind", "op", "equation", "tied", "dtype", "mode", "rounding", "role"}
    for parameters in calls().values():
        for each in parameters:
            if each.hint is str:
                assert each.name in TENSORS | words


@pytest.mark.parametrize(
    "line, column, word",
    [
        ("x = conv(data, 64, 0)", 20, "kernel size 0"),
        ("x = conv(data, 64, 3, stride=0)", 30, "stride 0"),
        ("x = conv(data, 64, 3, paddng=1)", 23, "did you mean padding"),
        ("x = conv(dat, 64, 3)", 10, "did you mean data"),
        ("x = conv(data, 'a', 3)", 16, "channels 'a', expected a whole number"),
        ("x = conv('data', 64, 3)", 10, "expected a tensor"),
        ("x = cnov(data, 64, 3)", 5, "did you mean conv"),
        ("x = conv(data, 64)", 5, "needs kernel"),
        ("x = conv(data, 64, 3, 1)", 23, "too many arguments"),
        ("x = conv(data, 64, 3, name='c', name='d')", 33, "given twice"),
        ("conv(data, 64, 3)", 1, "has no variable"),
        ("x, y = conv(data, 64, 3)", 1, "1 results"),
        ("x = data", 1, "expected a call"),
        ("x = global_pool(data, 'fast')", 5, "no op 'global_fast_pool'"),
        ("x = activation('rleu', data)", 5, "no op 'rleu'"),
        ("x = conv(data, 64, 3 + 4)", 22, "found '+'"),
        ("x = conv(data, 64, (((((((((((((((((3)))))))))))))))))", 35, "BRACKETS"),
        ("x = __import__('os')", 5, "unknown call"),
        ("import os", 1, "found 'import'"),
        ("x = data.shape", 9, "found '.'"),
        ("x = lambda: 1", 5, "found 'lambda'"),
        ("x = f'{data}'", 5, "found 'f'"),
        ("x = add_node('conv', [data], Conv(window=3))", 30, "expected"),
        ("x = add_node('conv', [data], Conv(chanels=3))", 35, "it has window"),
        ("x = add_node('split', [data], Split(axis=1), outputs=999999999)", 1, "1 variables"),
        ("x = conv(data, 99999999999999999999, 3)", 16, "2^63"),
        ("network('again')", 1, "on the first line"),
        ("with scope(3):", 12, "expected a string"),
        ("x = conv(data, 64, 3", 9, "never closed"),
    ],
)
def test_errors_have_the_line_and_column_of_the_value(line: str, column: int, word: str) -> None:
    more = "    x = relu(data)" if line.startswith("with") else ""
    with pytest.raises(FormatError) as caught:
        parse(f'data = input("data", (1, 3, 32, 32))\n{line}\n{more}', "n.builder")
    error = caught.value
    assert word in str(error)
    assert error.span is not None
    assert (error.span.line, error.span.column) == (2, column)
    assert str(error).startswith(f"n.builder:2:{column}: ")


def test_a_fix_mends_the_text() -> None:
    text = 'data = input("data", (1, 3, 32, 32))\nx = cnov(dta, 64, 3, paddng=1)\n'
    for _ in range(3):
        with pytest.raises(FormatError) as caught:
            parse(text, "n")
        span = caught.value.span
        assert span is not None
        assert span.fix is not None
        lines = text.split("\n")
        line = lines[span.line - 1]
        start = span.column - 1
        lines[span.line - 1] = line[:start] + span.fix + line[start + span.length :]
        text = "\n".join(lines)
    assert parse(text, "n")[0].nodes[0].op == "conv"


def test_names_of_strangers_are_quoted() -> None:
    b = Builder('a"\n#\u202e', "class")
    x = b.conv(b.input("with", (1, 3, 8, 8)), 4, 3, name='"); import os #')
    graph = b.build(b.relu(x, name="пример é"))
    text = text_of(graph)
    assert parse(text, "n")[0] == graph
    assert len(text.split("\n")) == 6


HOSTILE = (
    "x = " + "(" * 100_000,
    "x = " + "[" * 15 + "]" * 15 + "," * 100_000,
    "x = conv(" + "-" * 100_000 + "1)",
    "x = " + "not " * 100_000 + "1",
    "x = conv(" + "1" * 100_000 + ")",
    "a" * 1_000_000,
    "x = relu(data)\n" * 30_000,
    'data = input("d", (1, 3, 8, 8))\n' + "x = relu(data)\n" * 30_000,
    'data = input("d", (1, 3, 8, 8))\n' + "".join(f"{' ' * n}with scope('{'s' * 900}'):\n" for n in range(90)),  # noqa: E501
    'x = "' + "\\" * 100_000,
    'data = input("d", (' + "1, " * 100_000 + "))",
    "\0" * 1000,
    "\n" * 500_000 + "?",
)  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_any_text_is_bounded(number: int, tmp_path: Path) -> None:
    path = tmp_path / "n.builder"
    path.write_text(HOSTILE[number], encoding="utf-8")
    start = time.process_time()
    with suppress(LayerscopeError):
        analyze(str(path))
    assert time.process_time() - start < 10


def test_random_edits_give_a_network_or_a_named_error() -> None:
    source = random.Random(7)
    text = text_of(build("squeezenet1_1"))[:3000]
    signs = "()[]{},=:'\"-.0x1e#\\ \n\t\u00e9"
    for _ in range(300):
        at = source.randrange(len(text))
        edited = (
            text[:at]
            + source.choice(signs) * source.randrange(3)
            + text[at + source.randrange(9) :]
        )
        with suppress(FormatError):
            parse(edited, "n.builder")


def test_the_command_line_writes_and_reads_it(tmp_path: Path, capsys: Captured) -> None:
    path = str(tmp_path / "lenet.builder")
    assert run(["export", "lenet5", "-o", path]) == 0
    assert run(["show", path, "--total"]) == 0
    shown = capsys.readouterr().out
    assert run(["show", "lenet5", "--total"]) == 0
    assert [line for line in capsys.readouterr().out.split("\n") if "params" in line] == [
        line for line in shown.split("\n") if "params" in line
    ]
    assert load(path) == build("lenet5")
    assert run(["export", "lenet5", "--dtype", "fp16", "--batch", "4", "-o", path]) == 0
    report = analyze(path)
    assert (report.batch, report.graph.dtype) == (4, "fp16")


def test_a_network_with_stored_arrays_is_refused(tmp_path: Path, capsys: Captured) -> None:
    from tests.formats.network_forms import onnx_file

    assert run(["export", onnx_file(tmp_path), "--to", "builder"]) == 2
    assert "cannot be written as Builder calls" in capsys.readouterr().err
