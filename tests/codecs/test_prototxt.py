"""The text format: everything it may look like, errors that say where, and no way to hang it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layerscope.codecs import prototxt
from layerscope.codecs.message import Message, Scalar
from layerscope.codecs.prototxt import parse
from layerscope.errors import FormatError


def read(text: str | bytes, **options: Any) -> Message:
    return parse(text.encode() if isinstance(text, str) else text, "net.prototxt", **options)


def plain(message: Message) -> dict[str, Any]:
    """Fields as dictionaries and lists of what was written."""
    return {
        name: [plain(value) if isinstance(value, Message) else value.text for value in values]
        for name, values in message.fields.items()
    }


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("a: 1", {"a": ["1"]}),
        ("a:1b:2", {"a": ["1b"], "b": ["2"]}),  # a number ends where no letter follows
        ("a: 1, b: 2; c: 3", {"a": ["1"], "b": ["2"], "c": ["3"]}),
        ("a { b: 1 }", {"a": [{"b": ["1"]}]}),
        ("a: { b: 1 }", {"a": [{"b": ["1"]}]}),
        ("a < b: 1 > a: <>", {"a": [{"b": ["1"]}, {}]}),
        ("a { b < c { } > }", {"a": [{"b": [{"c": [{}]}]}]}),
        ("a: [1, 2,3] a: 4", {"a": ["1", "2", "3", "4"]}),
        ("a: []", {}),
        ("a: [{ b: 1 }, < b: 2 >]", {"a": [{"b": ["1"]}, {"b": ["2"]}]}),
        ("a [{ b: 1 }]", {"a": [{"b": ["1"]}]}),
        ("a: [\n# why\n'x' # here\n, \"y\"]", {"a": ["x", "y"]}),
        ("# all\na: 1 # rest\n#b: 2", {"a": ["1"]}),
        ('a: "it\'s" b: \'a "b"\'', {"a": ["it's"], "b": ['a "b"']}),
        ('a: "x" \'y\'\n  # and\n"z"', {"a": ["xyz"]}),
        ('a: "#no {comment}"', {"a": ["#no {comment}"]}),
        ("a: MAX b: -inf", {"a": ["MAX"], "b": ["-inf"]}),
        ("[my.ext/path]: 1 [x] { }", {"my.ext/path": ["1"], "x": [{}]}),
        ("a:\n\n  1", {"a": ["1"]}),
        ("a\n{\n}", {"a": [{}]}),
        ("a: -  5 b: +5 c: .5", {"a": ["-  5"], "b": ["+5"], "c": [".5"]}),
        ("\ufeffa: 1", {"a": ["1"]}),
        ("a: 1\r\nb: 2\r\n", {"a": ["1"], "b": ["2"]}),
    ],
)
def test_what_is_read(text: str, fields: dict[str, Any]) -> None:
    if "1b" in text:
        with pytest.raises(FormatError, match="1:5: found ':2'"):
            read(text)
        return
    assert plain(read(text)) == fields


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (r"a\nb\tc", "a\nb\tc"),
        (r"\x41\101\u0041\U00000041", "AAAA"),
        (r"\\ \' \" \?", "\\ ' \" ?"),
        (r"\xc3\xa9", "é"),
        (r"\q", "q"),
        (r"\xff", "\ufffd"),
        (r"\Uffffffff", "\ufffd"),
        ("é", "é"),
    ],
)
def test_escapes(text: str, meant: str) -> None:
    assert read(f"a: '{text}'" if '"' in text else f'a: "{text}"').text("a") == meant


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("12", 12), ("-3", -3), ("- 3", -3), ("0x1F", 31), ("-0x10", -16), ("017", 15),
        ("08", 8), ("3.0", 3), ("1e3", 1000), ("2f", 2), (str(2**63 - 1), 2**63 - 1),
    ],
)  # fmt: skip
def test_whole_numbers(text: str, number: int) -> None:
    assert read(f"a: {text}").whole("a") == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0), ("1.5f", 1.5), (".5", 0.5), ("1e-5", 1e-5), ("-2.5E+2", -250.0),
        ("inf", math.inf), ("-inf", -math.inf), ("-Infinity", -math.inf), ("0x10", 16.0),
    ],
)  # fmt: skip
def test_numbers(text: str, number: float) -> None:
    assert read(f"a: {text}").number("a") == number
    assert math.isnan(read("a: nan").number("a"))


def test_truth_and_words() -> None:
    message = read("a: true b: f c: True d: 0 e: AVE f: 1 g: 'max'")
    assert [message.flag(name) for name in "abcd"] == [True, False, True, False]
    assert message.flag("z", True)
    words = ("MAX", "AVE")
    assert [message.choice(name, words, "") for name in "efg"] == ["AVE", "AVE", "MAX"]
    assert message.choice("z", words, "MAX") == "MAX"


def test_the_last_of_several_counts_and_all_are_kept() -> None:
    message = read("a: 1 a: 2 m { x: 1 } m { x: 2 }")
    assert (message.whole("a"), message.wholes("a")) == (2, [1, 2])
    assert message.message("m").whole("x") == 2
    assert len(message.messages("m")) == 2
    assert message.message("none").fields == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a", "1:2: expected : or { after a"),
        ("a b", "1:3: found 'b', expected : or { after a"),
        ("a: ", "1:4: expected a value of a"),
        ("a: }", "1:4: found '}', expected a value of a"),
        ("x: 1\n  a {\n b: 1\n", "2:5: the message that begins here has no }"),
        ("a { b: 1 >", "1:10: found >, expected }"),
        ("a }", "1:3: found '}', expected : or { after a"),
        ("a: 1 }", "1:6: found }, which closes nothing"),
        ("a: [1, 2", "1:9: expected a value of a or ]"),
        ("a: [1 }", "1:7: found '}', expected a value of a or ]"),
        ("a [1]", "1:3: a list of a without :"),
        ('a: "x\ny"', "1:4: found '\"x', expected a value of a"),
        ("\n\n a: @", "3:5: found '@', expected a value of a"),
        ("1: 2", "1:1: found '1: 2', expected the name of a field"),
        ("a: 1\0", "1:5: a zero byte, expected text"),
    ],
)
def test_errors_say_where(text: str, told: str) -> None:
    with pytest.raises(FormatError) as error:
        read(text)
    assert str(error.value) == f"net.prototxt:{told}"


@pytest.mark.parametrize(
    ("text", "look", "told"),
    [
        ("a: x", "whole", "1:4: a x, expected a whole number"),
        ("a: 1.5", "whole", "1:4: a 1.5, expected a whole number"),
        ("a: inf", "whole", "1:4: a inf, expected a whole number"),
        ("a: 1_0", "whole", "1:4: a 1_0, expected a whole number"),
        (f"a: {2**64}", "whole", f"1:4: a {2**64}, expected at most 2^63 - 1"),
        (f"a: {2**63}", "whole", f"1:4: a {2**63}, expected at most 2^63 - 1"),
        (f"a: {'1' * 401}", "number", f"1:4: a {'1' * 60}…, expected at most 400 digits, not 401"),
        ("a: 1e400", "whole", "1:4: a 1e400, expected a whole number"),
        ("\n a: 'x'", "number", "2:5: a 'x', expected a number"),
        ("a: maybe", "flag", "1:4: a maybe, expected true or false"),
        ("a { }", "whole", "1:3: a is a message, expected a whole number"),
        ("a: 3", "message", "1:4: a '3', expected a message"),
    ],
)
def test_wrong_types_say_where(text: str, look: str, told: str) -> None:
    with pytest.raises(FormatError) as error:
        getattr(read(text), look)("a")
    assert str(error.value) == f"net.prototxt:{told}"


def test_a_wrong_word_lists_the_right_ones() -> None:
    with pytest.raises(FormatError, match="1:4: a MEAN, expected MAX or AVE"):
        read("a: MEAN").choice("a", ("MAX", "AVE"), "MAX")


def test_lines_are_counted_in_any_order() -> None:
    message = read("a { }\nb { }\n\nc { }")
    assert [message.message(name).line for name in "cabca"] == [4, 1, 2, 4, 1]


@given(st.text("ab\n", max_size=60), st.lists(st.integers(0, 60), max_size=9))
def test_columns_are_counted_in_any_order(text: str, offsets: list[int]) -> None:
    found = prototxt.Text(text.encode(), "net")
    for at in offsets:
        at = min(at, len(text))
        before = text[:at]
        assert found.line(at) == before.count("\n") + 1
        assert found.column(at) == len(before.rpartition("\n")[2]) + 1


def test_columns_of_one_long_line_take_linear_time() -> None:
    text = prototxt.Text(b"x" * 20_000_000, "net")
    started = time.process_time()
    assert [text.column(at) for at in range(0, 20_000_000, 100)][-1] == 19_999_901
    assert time.process_time() - started < 5


def test_what_is_skipped_is_not_kept_but_must_be_well_formed() -> None:
    message = read("a: 1 blobs { data: 1 data: [2, 3] x { y: 'z' } } b: 2", skip=("blobs",))
    assert plain(message) == {"a": ["1"], "b": ["2"]}
    with pytest.raises(FormatError, match="has no }"):
        read("blobs { data: 1", skip=("blobs",))


# -- bounds


def test_nesting_is_bounded() -> None:
    deep = 100
    assert read("a {" * deep + "}" * deep).fields
    for opening in ("a {", "a <", "a: [{"):
        with pytest.raises(FormatError, match="nested deeper than 100"):
            read(opening * 200_000)


def test_values_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prototxt, "MOST_VALUES", 1000)
    assert len(read("a: 1 " * 1000).fields["a"]) == 1000
    with pytest.raises(FormatError, match="more than 1,000 values"):
        read("a: 1 " * 1001)


def complaint(look: Callable[[], object]) -> str:
    """What is said against it; nothing if it is fine."""
    try:
        look()
    except FormatError as error:
        return str(error)
    return ""


LINES = [
    b"a: 1 ",
    b"l { x: 'y' } ",
    b"# ",
    b"\n",
    b" ",
    b"a: '",
    b"'a' ",
    b"a: [",
    b"{",
    b"-",
    b"\\",
]


@pytest.mark.parametrize("text", LINES)
def test_a_long_line_takes_bounded_time(text: bytes) -> None:
    """Three megabytes of anything: walked once, and no more than a million values kept."""
    data = b"a: 'x' " + text * (3_000_000 // len(text))
    start = time.process_time()
    said = complaint(lambda: parse(data, "long.prototxt"))
    assert time.process_time() - start < 20
    assert not said or (said.startswith("long.prototxt:") and len(said) < 300)


# -- any text, and any message written out


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_any_bytes_are_a_message_or_an_error_with_a_place(data: bytes) -> None:
    said = complaint(lambda: parse(data, "net.prototxt"))
    assert not said or said.startswith("net.prototxt:")


pieces = st.sampled_from(
    ["a", "layer", ":", "{", "}", "<", ">", "[", "]", '"x"', "'", '"', "1", "-", "0x", "1e", "#",
     "\n", ",", ";", " ", "\\", "inf", ".", "\ufeff", "\0", "é"]
)  # fmt: skip


@given(st.lists(pieces, max_size=40).map("".join))
@settings(max_examples=500)
def test_any_pieces_are_a_message_or_an_error_with_a_place(text: str) -> None:
    said = complaint(lambda: read(text))
    assert not said or said.startswith("net.prototxt:")
    if not said:
        message = read(text)
        for name in message.fields:
            for look in (message.wholes, message.numbers, message.texts, message.messages):
                said = complaint(partial(look, name))
                assert not said or said.startswith("net.prototxt:")


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
scalars = st.one_of(
    st.integers(-(2**63), 2**64 - 1).map(str),
    st.floats(allow_nan=False).map(repr),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8).map(
        lambda text: "".join(f"\\{b:03o}" for b in text.encode()).join("''")
    ),
)


@st.composite
def messages(draw: st.DrawFn, depth: int = 0) -> str:
    """A message as text, with blanks, separators and brackets of every kind."""
    made = []
    for name in draw(st.lists(names, max_size=3)):
        gap = draw(st.sampled_from([" ", "\n", " # note\n", " , ", ";"]))
        if depth < 3 and draw(st.booleans()):
            inner = draw(messages(depth + 1))
            opening, closing = draw(st.sampled_from([("{", "}"), ("<", ">"), (": {", "}")]))
            made.append(f"{name} {opening} {inner} {closing}{gap}")
        else:
            values = draw(st.lists(scalars, min_size=1, max_size=3))
            many = f"[{', '.join(values)}]" if len(values) > 1 else values[0]
            made.append(f"{name}: {many}{gap}")
    return "".join(made)


@given(messages())
@settings(max_examples=300)
def test_what_is_well_formed_is_read_and_read_again(text: str) -> None:
    once = plain(read(text))

    def written(fields: dict[str, Any]) -> str:
        parts = []
        for name, values in fields.items():
            for value in values:
                if isinstance(value, dict):
                    parts.append(f"{name} {{ {written(value)} }}")
                else:
                    octal = "".join(f"\\{b:03o}" for b in value.encode())
                    parts.append(f'{name}: "{octal}"')
        return " ".join(parts)

    assert plain(read(written(once))) == once


def test_values_know_their_kind() -> None:
    message = read("a: 'x' b: 1 c: X")
    kinds = [
        value.kind for v in message.fields.values() for value in v if isinstance(value, Scalar)
    ]
    assert kinds == ["string", "number", "word"]
