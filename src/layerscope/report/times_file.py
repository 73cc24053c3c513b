"""Reads times of layers from a file: csv, JSON, or the per-call file of Boda.

Boda's file is a Python program that its own tools execute. Here it is parsed line by line and never
executed: lines of other forms than those that Boda writes are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from layerscope.errors import FormatError, UsageError
from layerscope.formats import near_files
from layerscope.formats.documents import is_json
from layerscope.formats.sources import check_file
from layerscope.graph.types import Shape
from layerscope.limits import ARRAY_RANK, NAME_CHARACTERS, TIMES_BYTES, TIMES_ROWS
from layerscope.report.quantities import seconds, shown, whole

HEADING = ("layer", "seconds")
EXPECTED = (
    "expected csv with the heading layer,seconds, a JSON object of seconds by layer, "
    "a run of `layerscope measure`, or the per-call file of Boda"
)
LONGEST = 2 * NAME_CHARACTERS.most + 200  # characters of a line with a time: it has the name twice
BODA = re.compile(r"\s*(?:#|net\.|num_img\b|per_layer_time\b)")
# per_layer_time['conv1']=per_layer_time.get('conv1',0.0) + 0.000465 # name of the function
TIME = re.compile(
    r"per_layer_time\[(?P<quote>['\"])(?P<name>.*)(?P=quote)\]\s*=\s*"
    r"(?P<sum>per_layer_time\.get\(\s*(?P=quote)(?P=name)(?P=quote)\s*,\s*0(?:\.0*)?\s*\)\s*\+\s*)?"
    r"(?P<seconds>[^\s#]+)\s*(?:#.*)?"
)
RUNTIME = re.compile(r"net\.args\.runtime\s*=\s*([^\s#]+)\s*(?:#.*)?")
IMAGES = re.compile(r"(?:net\.args\.num_imgs|num_img)\s*=\s*([^\s#]+)\s*(?:#.*)?")
TENSOR = re.compile(
    r"net\.add_nda\(\s*\"([^\"]*)\"\s*,\s*NDA\(\s*\"[^\"]*\"((?:\s*,\s*\d+)*)\s*\).*"
)
# other declarations of the network: net.add_op( Pooling(…) ), ReLU(name=…), x_filts = NDA(…)
DECLARATION = re.compile(
    r"(?:net\.(?:add_nda|add_op)\s*\(|net\.ndas\[|net\.args\.\w+\s*=|[A-Za-z_]\w*\s*=\s*NDA\(|"
    r"[A-Z]\w*\(\s*name\s*=|for i in range\(0,num_img\):|\s+\w+\(|\s+\S+ = \S+ \* transpose\().*"
)


class Declared(Struct, frozen=True):
    """A value in a file, and its line."""

    line: int
    value: Shape


class TimesFile(Struct, frozen=True):
    """Seconds by name, in the order of the file, and what else it says."""

    path: str
    seconds: dict[str, float]
    runtime_s: float | None = None
    shapes: dict[str, Declared] = {}  # of tensors by name
    images: Declared | None = None


def read(path: str) -> TimesFile:
    """The times in a file, whose form is recognised by its content."""
    data = _contents(path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path}:{line}: not UTF-8 at byte {error.start}") from None
    if is_json(data):
        return TimesFile(path, _seconds_by_layer(path, _json(path, text)))
    line, first = next(((n, t) for n, t in _lines(text) if t.strip()), (1, ""))
    if not first:
        raise FormatError(f"{path}: the file is empty; {EXPECTED}")
    if [cell.strip() for cell in first.split(",")] == list(HEADING):
        return TimesFile(path, _seconds_by_layer(path, _csv(path, text)))
    if BODA.match(first):
        return _boda(path, text)
    raise FormatError(f"{path}:{line}: heading {shown(first.strip())!r}; {EXPECTED}")


def _contents(path: str) -> bytes:
    """The bytes of a file, without a byte order mark."""
    check_file(path)
    try:
        with open(path, "rb") as file:
            data = file.read(TIMES_BYTES.most + 1)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}{near_files(path)}") from None
    except ValueError as error:  # a NUL in the name
        raise FormatError(f"{path}: {error}") from None
    if len(data) > TIMES_BYTES.most:
        raise FormatError(f"{path}: {TIMES_BYTES.refusal()}")
    return data.removeprefix(b"\xef\xbb\xbf")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; a line ends in LF or CR LF only."""
    return enumerate((line.removesuffix("\r") for line in text.split("\n")), 1)


class TimesEntry(Struct, frozen=True):
    """One time in a file: where it is, the layer and the number as text."""

    where: str
    name: str
    text: str


def _seconds_by_layer(path: str, entries: Iterator[TimesEntry]) -> dict[str, float]:
    """Seconds by layer; raises for a layer that is there twice."""
    found: dict[str, float] = {}
    for entry in entries:
        value = _seconds(entry)
        if entry.name in found:
            raise FormatError(f"{entry.where}: {shown(entry.name)!r} is there twice")
        found[entry.name] = value
    if not found:
        raise FormatError(f"{path}: no times; {EXPECTED}")
    return found


def _seconds(entry: TimesEntry) -> float:
    """The number of an entry, whose name is checked as well."""
    if not entry.name.strip():
        raise FormatError(f"{entry.where}: a time without the name of a layer")
    NAME_CHARACTERS.check(len(entry.name), entry.where)
    try:
        return seconds(entry.text, f"{entry.where}: {shown(entry.name)!r}:")
    except UsageError as error:
        raise FormatError(str(error)) from None


def _csv(path: str, text: str) -> Iterator[TimesEntry]:
    import csv
    import io

    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = 0
    try:
        for cells in reader:
            where = f"{path}:{reader.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if rows and len(cells) != len(HEADING):
                raise FormatError(f"{where}: {len(cells)} cells, expected layer,seconds")
            if rows:
                yield TimesEntry(where, cells[0].strip(), cells[1])
            TIMES_ROWS.check(rows, where)
            rows += 1
    except csv.Error as error:
        raise FormatError(f"{path}:{reader.line_num}: {error}") from None


class _Number(str):
    """The text of a number in JSON."""

    __slots__ = ()


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all its keys, duplicate ones too."""

    __slots__ = ()


def _json(path: str, text: str) -> Iterator[TimesEntry]:
    import json

    try:
        found = json.loads(
            text,
            object_pairs_hook=_Pairs,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_Number,
        )
    except json.JSONDecodeError as error:
        raise FormatError(f"{path}:{error.lineno}: {error.msg}; expected JSON") from None
    except RecursionError:
        raise FormatError(f"{path}: JSON that is nested too deeply; {EXPECTED}") from None
    assert isinstance(found, _Pairs)  # it begins with a brace
    TIMES_ROWS.check(len(found), path)
    seen: dict[str, int] = {}
    for name, value in found:
        seen[name] = seen.get(name, 0) + 1
        good = isinstance(value, _Number) and seen[name] == 1
        if good and _is_time(value):
            yield TimesEntry(path, name, str(value))
            continue
        where = f"{path}{_line_of_key(text, name, seen[name])}"
        if not isinstance(value, _Number):
            raise FormatError(f"{where}: {shown(name)!r} is {_kind(value)}, expected seconds")
        yield TimesEntry(where, name, value)


def _is_time(value: object) -> bool:
    """Whether no error will be raised, so that the line of the value is not needed."""
    try:
        seconds(str(value), "")
    except UsageError:
        return False
    return True


def _line_of_key(text: str, name: str, nth: int) -> str:
    """`:LINE` of the nth time that a JSON text has a key; "" if it is escaped otherwise."""
    import json

    for spelled in dict.fromkeys((json.dumps(name, ensure_ascii=False), json.dumps(name))):
        ends = [found.start() for found in re.finditer(re.escape(spelled) + r"\s*:", text)]
        if len(ends) >= nth:
            return f":{text.count(chr(10), 0, ends[nth - 1]) + 1}"
    return ""


def _kind(value: object) -> str:
    if isinstance(value, _Pairs):
        return "an object"
    kinds = {list: "an array", str: "a string", bool: "a truth value"}
    return kinds.get(type(value), "null")


def _boda(path: str, text: str) -> TimesFile:
    """Times of calls by name, summed over calls of one name as Boda does."""
    found: dict[str, float] = {}
    shapes: dict[str, Declared] = {}
    runtime, images, calls = None, None, 0
    for number, line in _lines(text):
        where = f"{path}:{number}"
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("per_layer_time"):
            calls += 1
            TIMES_ROWS.check(calls, where)
            name, value, adds = _call(where, stripped)
            if name in found and not adds:
                raise FormatError(f"{where}: {shown(name)!r} is there twice")
            found[name] = found.get(name, 0.0) + value
        elif match := RUNTIME.fullmatch(stripped):
            runtime = _seconds(TimesEntry(where, "net.args.runtime", match[1]))
            if not runtime:
                raise FormatError(f"{where}: net.args.runtime 0, expected more")
        elif match := IMAGES.fullmatch(stripped):
            images = Declared(number, (_whole(where, match[1]),))
        elif match := TENSOR.fullmatch(stripped):
            sizes = match[2].split(",")[1:]
            ARRAY_RANK.check(len(sizes), where)
            shapes[match[1]] = Declared(number, tuple(_whole(where, size) for size in sizes))
        elif not DECLARATION.fullmatch(line):
            raise FormatError(
                f"{where}: {shown(stripped)!r}: not a line of Boda's per-call file, such as "
                "per_layer_time['conv1']=0.0005"
            )
    if not found:
        raise FormatError(f"{path}: no times: expected lines per_layer_time['conv1']=0.0005")
    return TimesFile(path, found, runtime, shapes, images)


def _call(where: str, line: str) -> tuple[str, float, bool]:
    """Name and seconds of a call, and whether they are added to earlier calls of that name."""
    match = TIME.fullmatch(line) if len(line) <= LONGEST else None
    if match is None:
        raise FormatError(f"{where}: {shown(line)!r}, expected per_layer_time['conv1']=0.0005")
    value = _seconds(TimesEntry(where, match["name"], match["seconds"]))
    return match["name"], value, match["sum"] is not None


def _whole(where: str, text: str) -> int:
    try:
        return whole(text, f"{where}:")
    except UsageError as error:
        raise FormatError(str(error)) from None
