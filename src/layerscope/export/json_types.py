"""The structs that define the JSON of a report, from which docs/report.schema.json is generated.

The suffix `Json` is removed from their names there.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from layerscope.analysis.costs import Status
from layerscope.graph.types import Role
from layerscope.ops import Gemm
from layerscope.report.training import Fit

SCHEMA = 1
Number = int | float | str  # text for a fraction without a finite decimal, such as "1/3"


class TensorJson(Struct, omit_defaults=True):
    """A tensor; shape null where it could not be inferred."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int | None
    declared: bool = False  # the shape is declared by the file, not inferred; left out if false


class OpsJson(Struct):
    """Operations by kind."""

    mac: int
    add: int
    mul: int
    comp: int
    div: int
    exp: int


class FieldJson(Struct):
    """Receptive field in one input of the network, per spatial axis of that input."""

    input: str
    size: list[int | Literal["everything"]]
    stride: list[Number | None]
    offset: list[Number | None]
    aligned: bool


class ParamJson(Struct):
    """A stored array. Arrays that share a storage are tied and counted once."""

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: str
    storage: str


class LayerJson(Struct):
    """One layer. Figures are null where status is unknown."""

    name: str
    type: str
    scope: list[str]
    module: str
    inputs: list[TensorJson]
    outputs: list[TensorJson]
    params: int | None
    buffers: int | None
    weights: list[ParamJson]
    ops: OpsJson | None  # exact, whatever the convention
    flops: int | None
    convention_ops: int | None  # the convention's figure; null if it has none
    activations: int | None
    activation_bytes: int | None
    convention_activations: int | None  # null unless the convention counts its own
    alive_bytes: int | None  # while it runs; null if a tensor of unknown shape is alive
    read_bytes: int | None
    write_bytes: int | None
    intensity: float | None
    gemm: Gemm | None
    field: FieldJson | None
    fields: list[FieldJson]
    backward_ops: OpsJson | None
    status: Status
    note: str
    source: str
    source_op: str = ""  # operator name in the source file
    times: int = 1  # runs per forward pass


class AliveJson(Struct):
    """A tensor that is alive at the peak."""

    tensor: str
    bytes: int


class PeakJson(Struct):
    """The layer where activation memory peaks, and the tensors alive there."""

    layer: str
    bytes: int
    alive: list[AliveJson]
    in_place: bool
    complete: bool


class TotalsJson(Struct, omit_defaults=True):
    """Sums over all layers; those named in lower_bounds lack unknown layers (see coverage).

    macs, flops and ops are exact under every convention; convention_ops is the convention's figure.
    """

    params: int
    buffers: int
    macs: int
    flops: int
    convention_ops: int | None
    ops: OpsJson
    activations: int
    activation_bytes: int
    convention_activations: int | None
    peak_activation_bytes: int
    param_bytes: int
    read_bytes: int
    write_bytes: int
    intensity: float | None
    backward_ops: OpsJson
    macs_by_dtype: dict[str, int]  # dtype of the weights, else of the first input
    complete: bool
    lower_bounds: list[str]  # names of totals that are lower bounds
    unused_params: int = 0  # of params, those that no layer uses; left out if 0
    estimates: list[str] = []  # names of totals that are estimates; left out if there are none


class CoverageJson(Struct):
    """How many layers have figures."""

    known: int
    total: int
    unknown: dict[str, int]
    estimated: int


class DtypesJson(Struct):
    """Elements by dtype: of the inputs, and of the outputs of layers with arithmetic."""

    inputs: dict[str, int]
    arithmetic: dict[str, int]


class StampJson(Struct):
    """What is needed to reproduce the figures: version, convention, batch, dtype."""

    version: str
    convention: str
    counts: str
    figure: str | None  # the convention's own name for convention_ops
    batch: int
    dtype: str  # `mixed` if dtypes lists several
    dtypes: DtypesJson
    text: str


class TrainingJson(Struct):
    """Bytes of one training step, by purpose."""

    optimizer: str
    total_bytes: int
    weights_bytes: int
    half_copy_bytes: int
    gradient_bytes: int
    state_bytes: int
    kept_bytes: int
    working_bytes: int
    checkpoints: int
    complete: bool
    kept_status: str  # status of kept_bytes: exact | estimate
    notes: list[str]  # why kept_bytes is an estimate, and for which layers


class LanguageJson(Struct):
    """Figures of a network that reads tokens; cache_bytes is null without a key-value cache."""

    tokens: int
    past: int
    macs_per_token: int | float
    intensity: float | None
    weight_bytes: dict[str, int]
    cache_tokens: int
    cache_bytes: dict[str, int] | None


class OptionsJson(Struct):
    """How the graph was counted, so that the report can be read back."""

    like: str
    in_place: bool


class ReportJson(Struct):
    """The whole report. `graph` and `options` are what `layerscope show FILE` reads it from."""

    kind: Literal["report"]
    schema: int
    network: str
    inputs: list[TensorJson]
    outputs: list[TensorJson]
    totals: TotalsJson
    memory: PeakJson
    layers: list[LayerJson]
    stamp: StampJson | None
    coverage: CoverageJson
    findings: list[str]
    notes: list[str] = []  # remarks of the file reader
    stored: dict[str, dict[str, int]] = {}  # stored elements by role and dtype
    language: LanguageJson | None = None
    training: TrainingJson | None = None
    fit: Fit | None = None
    options: OptionsJson | None = None
    graph: dict[str, Any] = {}
