"""The structs of the data inside a report page: reports without what the page does not show.

Figures are in `cells` only, tensors have numbers, and blank fields are left out, so that the data
of 10,000 layers stays small.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from layerscope.analysis.costs import Status
from layerscope.export.json_types import (
    CellsJson,
    ColumnJson,
    ConventionJson,
    CoverageJson,
    FieldJson,
    FindingJson,
    LanguageJson,
    PeakJson,
    SourceJson,
    StampJson,
    TensorJson,
    TotalsJson,
    TreeJson,
)
from layerscope.ops import Gemm


class PageWeight(Struct):
    """A stored array of a layer."""

    name: str
    role: str
    shape: tuple[int, ...]
    dtype: str


class PageLayer(Struct, omit_defaults=True):
    """One layer without its figures."""

    name: str
    type: str
    inputs: list[int]  # numbers of tensors
    outputs: list[int]
    scope: list[str] = []
    module: str = ""
    attributes: dict[str, Any] = {}
    window: str = ""
    weights: list[PageWeight] = []
    gemm: Gemm | None = None
    field: FieldJson | None = None
    fields: list[FieldJson] = []  # if it sees several inputs
    status: Status = "exact"
    note: str = ""
    source: SourceJson | None = None
    source_op: str = ""
    times: int = 1


class PageTensor(Struct, omit_defaults=True):
    """A tensor, its texts, and when it is alive."""

    name: str
    shape: tuple[int, ...] | None
    text: str  # its shape
    dtype: str
    bytes: int | None
    size: str  # its bytes; "?" if unknown
    producer: int | None
    consumers: list[int]
    first: int
    last: int
    storage: int
    counted: int
    declared: bool = False


class PageCoverage(CoverageJson):
    """How many layers have figures, and the line that says so."""

    text: str


class PageRoof(Struct):
    """The bandwidth of one memory level."""

    name: str
    bytes_s: float
    text: str
    size_bytes: int


class PageMachine(Struct):
    """Roofs of a machine; flops is null if it has no peak in that dtype."""

    name: str
    source: str
    dtype: str
    threads: int
    flops: float | None
    flops_text: str
    levels: list[PageRoof]


class PageTime(Struct):
    """Layers that run as one, and their time."""

    name: str
    kind: str
    layers: list[int]
    time_s: float | None
    time: str


class PageRun(Struct):
    """Times of a network: measured, or predicted."""

    kind: Literal["run", "prediction"]
    title: str
    stamp: str
    lines: list[str]
    total_s: float
    total: str
    contention: float | None
    machine: str
    dtype: str  # of its products
    error: float | None  # of a prediction, relative
    columns: list[ColumnJson]
    cells: dict[str, CellsJson]  # by the rows of the report
    fused: list[tuple[int, int]]  # a layer, and the layer whose time includes its
    rows: list[PageTime]


class PageTotal(Struct):
    """One total of two networks as texts, and their ratio."""

    name: str
    title: str
    first: str
    second: str
    ratio: str


class PageMatch(Struct, omit_defaults=True):
    """A layer of one network and its counterpart in the other, by number."""

    sign: str  # = equal, ~ changed, - only in the first, + only in the second
    first: int | None
    second: int | None
    changes: list[str] = []
    ratios: dict[str, str] = {}  # by column


class PageComparison(Struct):
    """Two networks of the page, by number, in execution order."""

    first: int
    second: int
    text: str
    counts: dict[str, int]
    totals: list[PageTotal]
    matches: list[PageMatch]


class PageCacheLayer(Struct):
    """What one layer of a decoder caches."""

    kind: str
    bytes: int  # of all sequences
    text: str


class PageCacheKind(Struct):
    """Layers that cache as much as each other."""

    layers: str  # numbers, such as 0–4, 6–10
    kind: str
    cells: str
    keys: str
    values: str
    state: str
    each: str
    all: str


class PageFitRow(Struct):
    """The longest context at a batch size, and its bytes by use."""

    batch: str
    tokens: str
    uses: list[str]  # weights, cache, activations, workspace
    total: str


class PageUse(Struct):
    """A language model in use: its cache by layer, its memory, and what fits."""

    cache: str  # one sentence
    layers: list[PageCacheLayer]
    most: str  # of one layer
    kinds: list[PageCacheKind]
    notes: list[str]
    memory: str
    fits: str  # "" without --fit
    contexts: list[PageFitRow]


class PageReport(Struct, tag_field="kind", tag="report"):
    """One network of the page."""

    network: str
    columns: list[ColumnJson]
    layers: list[PageLayer]
    tree: TreeJson
    cells: dict[str, CellsJson]
    conventions: dict[str, ConventionJson]
    tensors: list[PageTensor]
    memory: PeakJson
    totals: TotalsJson
    inputs: list[TensorJson]
    outputs: list[TensorJson]
    stamp: StampJson
    coverage: PageCoverage
    findings: list[FindingJson]
    notes: list[str]
    stored: dict[str, dict[str, int]]
    language: LanguageJson | None
    facts: list[tuple[str, str]]  # for the head of the page: a label or "", and a text
    exports: dict[str, str]  # the table as csv, markdown and latex; none of a large network
    machine: PageMachine | None = None
    use: PageUse | None = None  # of a language model


class PageRefused(Struct, tag_field="kind", tag="refused"):
    """A file that could not be read, and the line that says why."""

    network: str
    text: str


class PageData(Struct):
    """Everything that a page shows."""

    kind: Literal["page"]
    schema: int
    version: str
    reports: list[PageReport | PageRefused]
    comparisons: list[PageComparison]
    runs: list[PageRun | None]
    charts: list[dict[str, Any]]  # Vega-Lite specifications by name, of each report
    chart_themes: dict[str, Any]  # their config, light and dark
