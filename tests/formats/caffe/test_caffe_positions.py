"""Errors and marks of a prototxt are at the value that is wrong, with a fix if there is one."""

from __future__ import annotations

import pytest

from layerscope import analyze
from layerscope.codecs.prototxt import parse
from layerscope.errors import FormatError, ShapeError, TextSpan
from layerscope.formats import DEFAULTS
from layerscope.formats.caffe.fields import ANYWHERE, SETTINGS
from layerscope.formats.caffe.network import graph_of
from layerscope.formats.caffe.problems import problems, span_of_shape
from layerscope.graph.types import Graph

TEXT = """name: "t"
input: "data"
input_shape {{ dim: 1 dim: 4 dim: 32 dim: 32 }}
layer {{
  name: "conv1" type: "{kind}" bottom: "data" top: "y"
  {settings} {{
    {fields}
  }}
}}
"""


def graph(text: str) -> Graph:
    return graph_of(parse(text.encode(), "n.prototxt"), "n.prototxt", DEFAULTS)


def text_of(fields: str, kind: str = "Convolution", settings: str = "convolution_param") -> str:
    return TEXT.format(kind=kind, settings=settings, fields=fields)


def marked(text: str, span: TextSpan) -> str:
    line = text.split("\n")[span.line - 1]
    return line[span.column - 1 : span.column - 1 + span.length]


def mended(text: str, span: TextSpan) -> str:
    assert span.fix is not None
    lines = text.split("\n")
    line, start = lines[span.line - 1], span.column - 1
    lines[span.line - 1] = line[:start] + span.fix + line[start + span.length :]
    return "\n".join(lines)


CONV = "num_output: 8 kernel_size: 3"
WRONG = {
    **{f"{name}: {value}": str(value) for name in ("kernel_size", "stride", "dilation", "group")
       for value in (0, -3)},
    "pad: -1": "-1", "num_output: 0": "0", "num_output: x": "x", "kernel_size: 2.5": "2.5",
    "kernel_size: 3 kernel_size: 0": "0", "kernel_size: 0 kernel_size: 3": "0",
    "bias_term: 7": "7", "kernel_h: 0 kernel_w: 3": "0", "kernel_h: 3 kernel_w: -2": "-2",
    "pad_h: -4": "-4", "stride_w: 0": "0", "kernel_size: 99999999999": "99999999999",
}  # fmt: skip


@pytest.mark.parametrize("fields", WRONG)
def test_a_wrong_value_is_where_the_error_is(fields: str) -> None:
    given = {part.split(":")[0] for part in fields.replace(": ", ":").split()}
    rest = [p for p in CONV.replace(": ", ":").split() if p.split(":")[0] not in given]
    if given & {"kernel_h", "kernel_w"}:
        rest = [part for part in rest if not part.startswith("kernel")]
    text = text_of("\n    ".join([*rest, fields]))
    with pytest.raises(FormatError) as caught:
        analyze(graph(text))
    span = caught.value.span
    assert span is not None
    assert marked(text, span) == WRONG[fields]
    assert str(caught.value).startswith(f"n.prototxt:{span.line}:{span.column}: ")


@pytest.mark.parametrize("fields", ["kernel_size: 0", "stride: 0 kernel_size: 3"])
def test_the_fix_of_a_size_mends_it(fields: str) -> None:
    text = text_of(f"num_output: 8 {fields}")
    with pytest.raises(FormatError) as caught:
        graph(text)
    assert caught.value.span is not None
    assert graph(mended(text, caught.value.span)).nodes


@pytest.mark.parametrize("settings", sorted(SETTINGS))
def test_every_misspelt_field_is_named_at_its_column(settings: str) -> None:
    """Two letters of each field are swapped; the mark is on it, and names the field."""
    for field in sorted(SETTINGS[settings] - ANYWHERE):
        if len(field) < 4:
            continue
        wrong = field[:-2] + field[-1] + field[-2]
        if wrong in SETTINGS[settings] | ANYWHERE:
            continue
        text = text_of(f"{wrong}: 1", "Convolution", settings)
        [mark] = problems(text, "n.prototxt")
        assert mark.span is not None
        assert marked(text, mark.span) == wrong
        assert f"{settings}.{wrong} is no field of Caffe" in str(mark)
        if mark.span.fix == field:
            assert problems(mended(text, mark.span), "n.prototxt") == []


def test_misspelt_types_and_settings_have_a_fix() -> None:
    text = text_of(CONV, "Convolutoin")
    [mark] = problems(text, "n")
    assert mark.span is not None
    assert problems(mended(text, mark.span), "n") == []
    text = text_of(CONV, settings="convolution_parm")
    [mark] = problems(text, "n")
    assert mark.span is not None
    assert marked(text, mark.span) == "convolution_parm"
    assert graph(mended(text, mark.span)).nodes[0].op == "conv"


def test_the_note_of_a_misspelt_field_names_the_field_that_is_meant() -> None:
    [note] = graph(text_of("num_output: 8 kernal_size: 3")).notes
    assert note.endswith("is no field of Caffe; did you mean kernel_size?")


def test_the_first_of_two_bottoms_is_marked() -> None:
    text = text_of(CONV).replace('bottom: "data"', 'bottom: "dat" bottom: "data"')
    with pytest.raises(FormatError) as caught:
        graph(text)
    span = caught.value.span
    assert span is not None
    assert marked(text, span) == '"dat"'
    assert span.fix == '"data"'


@pytest.mark.parametrize(
    "fields, value",
    [("num_output: 8 kernel_size: 50", "50"), ("num_output: 8 kernel_size: 3 group: 3", "3")],
)
def test_shapes_that_do_not_fit_are_at_their_value(fields: str, value: str) -> None:
    text = text_of(fields)
    found = graph(text)
    with pytest.raises(ShapeError) as caught:
        analyze(found)
    assert caught.value.node == "conv1"
    source = found.nodes[0].source
    assert source is not None
    span = span_of_shape(text, "n", source.line, str(caught.value))
    assert span is not None
    assert marked(text, span) == value


def test_columns_count_characters() -> None:
    text = 'name: "é" layer { name: "é" type: "Convolution" bottom: "x" top: "y" }'
    with pytest.raises(FormatError) as caught:
        graph(f'input: "data" input_shape {{ dim: 1 dim: 3 dim: 8 dim: 8 }} {text}')
    assert caught.value.span is not None
    assert marked(f'input: "data" input_shape {{ dim: 1 dim: 3 dim: 8 dim: 8 }} {text}',
                  caught.value.span) == '"x"'  # fmt: skip
