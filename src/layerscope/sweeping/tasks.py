"""One network with its options, which a worker analyzes, and the row of results it becomes."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec
from msgspec import Struct

from layerscope.version import __version__

Status = Literal["ok", "error"]


class SweepOptions(Struct, frozen=True):
    """Options of `analyze` for one row; `measure` and `on` add its time."""

    batch: int | None = None
    input: tuple[str, ...] = ()
    dtype: str | None = None
    like: str = "exact"
    tokens: int | None = None
    decode: int | None = None
    measure: bool = False
    on: str | None = None

    @property
    def text(self) -> str:
        """The options that are no defaults, as JSON with sorted keys."""
        defaults = SweepOptions()
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        given = {n: value for n, value in values.items() if value != getattr(defaults, n)}
        return msgspec.json.encode(given, order="sorted").decode()


class Task(Struct, frozen=True):
    """A network to analyze: NET, or a graph that a generator yielded."""

    name: str
    source: str  # NET as `analyze` takes it, or the generator that yields the graph
    options: SweepOptions
    content: str  # what identifies its bytes: a hash of the file, or name and version
    graph: str = ""  # a Graph as JSON
    error: str = ""  # the source itself failed: nothing to analyze

    @property
    def key(self) -> str:
        """Hash of name, content, options and version: a row with this key is not repeated."""
        parts = (self.name, self.content, self.options.text, __version__)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


class ResultRow(Struct, frozen=True):
    """A row of the table of results. Figures are None if they are unknown or the task failed."""

    key: str
    name: str
    source: str
    options: str
    status: Status
    error: str = ""
    params: int | None = None
    macs: int | None = None
    flops: int | None = None
    activations: int | None = None
    peak: int | None = None
    weights: int | None = None
    time: float | None = None  # of one forward pass in seconds, measured or predicted
    bounds: str = ""  # figures that are lower bounds, because operators have no rule
    json: str = ""
    version: str = __version__
    seconds: float = 0.0  # that the analysis took


def failed(task: Task, error: str, seconds: float = 0.0) -> ResultRow:
    """The row of a task that has no figures."""
    return ResultRow(task.key, task.name, task.source, task.options.text, "error", error,
                     seconds=seconds)  # fmt: skip
