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


class PageReport(Struct):
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


class PageData(Struct):
    """Everything that a page shows."""

    kind: Literal["page"]
    schema: int
    version: str
    reports: list[PageReport]
    comparisons: list[dict[str, Any]]
    runs: list[dict[str, Any] | None]
    charts: list[dict[str, Any]]
