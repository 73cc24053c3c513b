"""What a page asks for while a network is typed: one function that takes and returns JSON.

`answer` never raises for what a user can cause: an error is part of the answer, with the position
in the text and a fix where there is one. The page in a browser runs this module in a worker.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from layerscope.api.auditing import audit_document
from layerscope.api.networks import analyze, load, recognised
from layerscope.api.options import APPLIES_TO
from layerscope.api.reporting import page_data
from layerscope.conventions import CONVENTIONS, convention
from layerscope.errors import FormatError, LayerscopeError, ShapeError, TextSpan, UsageError
from layerscope.export import FORMS, TARGETS
from layerscope.export.json_types import SCHEMA
from layerscope.export.page_data import page_report
from layerscope.export.page_types import PageData
from layerscope.formats import FORMATS, recognise, suffix_of
from layerscope.graph.types import Graph
from layerscope.notations import NOTATIONS
from layerscope.report.outline import outline
from layerscope.report.types import Report
from layerscope.version import __version__
from layerscope.zoo import NAMES, describe

if TYPE_CHECKING:
    from layerscope.auditing.findings import Finding

Severity = Literal["error", "warning"]
MOST_TEXT = 1 << 25  # bytes of a text, as of a document
POSITION = re.compile(r"[^\s:]+:(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?: ")
OPTIONS = re.compile(r" \(--[a-z][^()]*\)")
OTHER_PHASE = re.compile(r"--phase (test|train)\b")
STEM = "text"
# Texts of the usual formats; reading one imports the modules that read it.
SAMPLES = (
    'input: "x" input_dim: [1, 1, 4, 4] layer { type: "ReLU" bottom: "x" top: "y" }',
    'x = input("x", (1, 1, 4, 4))\ny = relu(x)\n',
    "Net(\n  (fc): Linear(in_features=4, out_features=4, bias=True)\n)\n",
    "| layer | type | output | params |\n|---|---|---|---|\n| data | input | 4 | |\n"
    "| fc1 | linear | 4 | 20 |\n| fc2 | linear | 4 | 20 |\n",
)


class LiveOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of an analysis; blank ones are those of the network."""

    input: str = ""
    batch: int | None = None
    dtype: str = ""
    phase: str = ""  # of Caffe: test or train

    def given(self) -> dict[str, str | int]:
        """The options of `analyze` that are given."""
        found: dict[str, str | int] = {}
        if self.input:
            found["input"] = self.input
        if self.batch is not None:
            found["batch"] = self.batch
        if self.dtype:
            found["dtype"] = self.dtype
        if self.phase:
            found["phase"] = self.phase
        return found


class LiveRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked for: `what`, of a network given by zoo name, as text or as a file."""

    what: Literal[
        "analyze",
        "write",
        "audit",
        "builder",
        "zoo",
        "conventions",
        "formats",
        "notations",
        "completions",
        "warm",
    ]
    zoo: str = ""
    text: str = ""
    path: str = ""
    number: int = 0  # of a network in a document that has several; 0: the first
    options: LiveOptions = LiveOptions()
    form: str = ""  # of `write`
    calls: bool = False  # the answer has the Builder calls of a zoo network, and their lines
    conventions: tuple[str, ...] = ()  # whose figures the page has; none: all, and charts


class TextMark(Struct, frozen=True):
    """An error or a remark, with its position in the text; line 0 if it has none."""

    severity: Severity
    text: str
    line: int = 0
    column: int = 0
    length: int = 0
    fix: str | None = None


class LiveAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer to a request; without `error` it has what was asked for."""

    error: TextMark | None = None
    page: PageData | None = None
    format: str = ""  # of the text: caffe, builder, document …
    lines: list[int] = []  # of each layer in the text; 0 if it has none
    starts: list[int] = []  # lines of the networks of a document that has several
    marks: list[TextMark] = []
    text: str = ""
    phase: str = ""  # with an error: the phase in which Caffe's network has what is missing
    names: list[tuple[str, str]] = []  # with what each is


def answer(request: str) -> str:
    """The answer to a request, both as JSON."""
    try:
        asked = msgspec.json.decode(request, type=LiveRequest)
    except msgspec.DecodeError as error:
        return _json(LiveAnswer(error=TextMark("error", f"not a request: {error}")))
    with TemporaryDirectory() as folder:
        session = LiveSession(asked, folder)
        try:
            return _json(session.answer())
        except LayerscopeError as error:
            phase = OTHER_PHASE.search(str(error))
            mark = session.mark(error)
            return _json(
                LiveAnswer(error=mark, format=session.format, phase=phase[1] if phase else "")
            )
        except RecursionError:
            return _json(LiveAnswer(error=TextMark("error", "nested too deep to be read")))


def _json(found: LiveAnswer) -> str:
    return msgspec.json.encode(found).decode()


class LiveSession:
    """One request while it is answered; a text is written to a file of its format."""

    def __init__(self, asked: LiveRequest, folder: str) -> None:
        self.asked = asked
        self.folder = folder
        self.format = ""
        self.path = asked.path
        self.lines: Mapping[str, int] = {}  # of nodes of Builder calls

    def answer(self) -> LiveAnswer:
        """What the request asks for."""
        table = LISTS.get(self.asked.what)
        if table is not None:
            return LiveAnswer(names=table())
        if self.asked.zoo:
            describe(self.asked.zoo)  # a link may name no file and no model
            self.format = "builder"
        elif self.asked.text:
            self._store()
        if self.asked.what == "audit":
            return LiveAnswer(marks=self._findings(), format=self.format)
        network = self.asked.zoo or self.path
        if not network:
            raise UsageError("no network: expected a zoo name, a text or a file")
        if not self.format and self.path:
            found = recognised(self.path)
            self.format = found.format.name if found is not None and found.format else ""
        if self.asked.what == "builder" and self.asked.zoo and not self.asked.options.given():
            return LiveAnswer(text=_calls(self.asked.zoo)[0])
        report = analyze(self._network(network), **self._options())  # type: ignore[arg-type]
        if self.asked.what in ("write", "builder"):
            return LiveAnswer(text=_written(report, self.asked.form or "builder"))
        calls = ""
        if self.asked.calls and self.asked.zoo:
            calls, self.lines = _calls(self.asked.zoo)
        marks = self._findings() if self.format == "document" and self.asked.text else []
        if self.format == "caffe" and self.asked.text:
            from layerscope.formats.caffe.problems import problems

            marks = [self._text_mark(each, "warning") for each in problems(self.asked.text, STEM)]
        return LiveAnswer(
            page=_page(report, self.asked.conventions),
            format=self.format,
            lines=self._numbers(report),
            starts=self._starts(report),
            marks=marks,
            text=calls,
        )

    def _options(self) -> dict[str, str | int]:
        given = self.asked.options.given()
        if self.format not in APPLIES_TO["phase"]:
            given.pop("phase", None)  # of the text before, which was another
        shape = given.get("input")
        if isinstance(shape, str) and "=" in shape:
            pairs = (each.partition("=") for each in shape.split(","))
            given["input"] = {name.strip(): size for name, _, size in pairs}  # type: ignore[assignment]
        return given

    def _store(self) -> None:
        data = self.asked.text.encode("utf-8", "replace")
        if len(data) > MOST_TEXT:
            raise UsageError(f"a text of {len(data):,} bytes, expected at most {MOST_TEXT:,}")
        suffix = suffix_of(f"{STEM}.txt", data[:4096])
        self.path = os.path.join(self.folder, f"{STEM}{suffix}")
        with open(self.path, "wb") as file:
            file.write(data)
        self.format = recognise(self.path, data[:4096]).name

    def _network(self, network: str) -> str | Graph:
        """The network; Builder calls are parsed here, for their lines."""
        if self.format == "document" and self.asked.number > 0:
            return f"{network}#{self.asked.number}"
        if self.asked.zoo:
            return network
        if self.format != "builder" or not self.asked.text:
            return network
        from layerscope.formats.builder_text import parse

        graph, self.lines = parse(self.asked.text, self.path or STEM)
        return graph

    def _numbers(self, report: Report) -> list[int]:
        """The line of each layer."""
        if not self.asked.text and not self.lines:
            return []
        sources = [layer.node.source for layer in report.layers]
        names = [layer.name for layer in report.layers]
        return [
            self.lines.get(name, 0) or (source.line if source is not None else 0)
            for name, source in zip(names, sources, strict=True)
        ]

    def _starts(self, report: Report) -> list[int]:
        """The lines of the networks of a document; none if it has one."""
        if self.format != "document" or not self.asked.text:
            return []
        from layerscope.formats.document import SEVERAL, networks_of

        if not any(note.startswith(SEVERAL) for note in report.graph.notes):
            return []
        return [network.line for network in networks_of(self.asked.text)]

    # -- marks

    def _findings(self) -> list[TextMark]:
        """Cells of the tables of a document that contradict the others."""
        from layerscope.auditing.check import audit_sheet
        from layerscope.documents.reader import BREAK

        try:
            found = audit_document(STEM, None, audit_sheet, self.asked.text).findings
        except LayerscopeError:
            return []  # it has no table to audit
        lines = BREAK.split(self.asked.text)
        return [_finding_mark(each, lines[each.line - 1 : each.line]) for each in found]

    def _text_mark(self, error: FormatError, severity: Severity) -> TextMark:
        span = error.span or TextSpan(0, 0)
        text = POSITION.sub("", self._named(str(error)), count=1)
        return TextMark(severity, text, *span)

    def mark(self, error: LayerscopeError) -> TextMark:
        """An error with its position in the text, as far as it is found."""
        if isinstance(error, FormatError) and error.span is not None:
            return self._text_mark(error, "error")
        text = self._named(error.line)
        span = self._shape_span(error)
        if span is not None:
            return TextMark("error", POSITION.sub("", text, count=1), *span)
        found = POSITION.match(text)
        if found is None or not self.asked.text:
            return TextMark("error", text)
        line, column = int(found["line"]), int(found["column"] or 1)
        return TextMark("error", text[found.end() :], line, column)

    def _shape_span(self, error: LayerscopeError) -> TextSpan | None:
        """The position of an error of shapes in the text."""
        if not isinstance(error, ShapeError) or not error.node:
            return None
        if error.node in self.lines:
            return TextSpan(self.lines[error.node], 1)
        at = POSITION.match(self._named(str(error)))
        if self.format != "caffe" or at is None:
            return None
        from layerscope.formats.caffe.problems import span_of_shape

        return span_of_shape(self.asked.text, STEM, int(at["line"]), str(error))

    def _named(self, text: str) -> str:
        """An error without the folder of the text and without options of the command line."""
        text = OTHER_PHASE.sub(r"phase \1", text.replace(os.path.join(self.folder, ""), ""))
        return OPTIONS.sub("", text)


def _finding_mark(finding: Finding, line: Sequence[str]) -> TextMark:
    """A finding at its cell, or along its row if it is about the row."""
    row, column = finding.row, finding.column
    position = max(finding.position, 1)
    length = len(finding.printed) if column else len("".join(line).rstrip()) - position + 1
    found = f"{row}, {column}" if row and column else row or column
    expected = f"; expected {finding.expected}" if finding.expected else ""
    text = f"{found}: {finding.reason}{expected}"
    return TextMark("warning", text, finding.line, position, max(length, 0))


def _page(report: Report, names: tuple[str, ...]) -> PageData:
    """The data of the page; with some conventions only it is computed in a third of the time."""
    if not names:
        return page_data([report])
    exact = replace(report, convention=convention("exact"))
    chosen = tuple(convention(name).name for name in names)
    found = page_report(exact, outline(exact), chosen)
    return PageData("page", SCHEMA, __version__, [found], [], [None], [{}], {})


@lru_cache(maxsize=8)
def _calls(zoo: str) -> tuple[str, Mapping[str, int]]:
    """The Builder calls of a zoo network, and the line of each node.

    Tests read those of the whole zoo back.
    """
    from layerscope.export.builder import calls_of

    return calls_of(load(zoo), checked=False)


def _written(report: Report, form: str) -> str:
    """A report in a notation, a form or a text target of `export`."""
    from importlib import import_module

    from layerscope.export.footer import COMMENTS, footer
    from layerscope.notations import findings, write

    if form in NOTATIONS:
        counted = replace(report, convention=convention(NOTATIONS[form].like))
        return write(counted, form) + footer(counted, form, findings(counted, form))
    if form in FORMS:
        text: str = import_module(f"layerscope.export.{FORMS[form]}").write(report)
        return text if form == "json" else text + footer(report, form)
    if form not in TARGETS:
        raise UsageError(f"unknown form {form!r:.80}")
    module, function, _ = TARGETS[form]
    full = module if "." in module else f"layerscope.export.{module}"
    text = getattr(import_module(full), function)(report)
    return text + (footer(report, form) if form in COMMENTS else "")


@cache
def _warm() -> list[tuple[str, str]]:
    """Read a text of each usual format, so that later ones are read without a pause."""
    for text in SAMPLES:
        answer(
            msgspec.json.encode(LiveRequest("analyze", text=text, conventions=("exact",))).decode()
        )
    return []


def _completions() -> list[tuple[str, str]]:
    """Words to complete: types of Caffe, fields by their message, calls of the Builder."""
    from layerscope.builder.calls import blocks, calls
    from layerscope.formats.caffe.fields import LAYER, MESSAGES, NET
    from layerscope.formats.caffe.names import WORDS

    messages = {"": NET, "layer": LAYER | MESSAGES.keys(), **MESSAGES}
    return [
        *((word, "type") for word in WORDS),
        *((name, "call") for name in sorted({*calls(), *blocks()})),
        *((field, name) for name, fields in messages.items() for field in sorted(fields)),
    ]


LISTS: Mapping[str, Callable[[], list[tuple[str, str]]]] = {
    "zoo": lambda: [(name, describe(name)) for name in NAMES],
    "conventions": lambda: [(name, convention(name).says) for name in CONVENTIONS],
    "completions": _completions,
    "warm": _warm,
    "formats": lambda: [(", ".join(kind.suffixes), kind.says) for kind in FORMATS],
    "notations": lambda: [
        *((name, kind.says) for name, kind in NOTATIONS.items()),
        *((name, name) for name in FORMS),
        *((name, says) for name, (_, _, says) in TARGETS.items()),
    ],
}
