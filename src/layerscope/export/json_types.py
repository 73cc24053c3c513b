"""The structs that define the JSON of a report, from which docs/report.schema.json is generated.

The suffix `Json` is removed from their names there.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from layerscope.analysis.costs import Status
from layerscope.export.language_types import DeploymentJson
from layerscope.graph.types import Role
from layerscope.ops import Gemm
from layerscope.report.training import Fit

SCHEMA = 2
OLDEST = 1  # schema that is still read
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


class SourceJson(Struct, omit_defaults=True):
    """Where a layer is written; the file without the folders above the network's own."""

    file: str
    line: int = 0  # from 1; left out if it is unknown
    column: int = 0  # from 1; left out if it is unknown


class LayerJson(Struct):
    """One layer. Figures are null where status is unknown."""

    name: str
    type: str
    scope: list[str]
    module: str
    attributes: dict[str, Any]  # kernel, stride, pads, groups, heads …, as its op names them
    window: str  # kernel/stride, as the table prints it; "" without one
    inputs: list[TensorJson]
    outputs: list[TensorJson]
    params: int | None
    buffers: int | None
    weights: list[ParamJson]
    ops: OpsJson | None  # exact, whatever the convention
    flops: int | None
    convention_ops: int | None  # the convention's figure; null if it has none
    convention_params: int | None  # equal to params, which the convention counts too
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
    source: SourceJson | None
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
    timeline: list[int] = []  # bytes alive while each layer runs; bounds if not complete


class LiveTensorJson(Struct):
    """A tensor and when it is alive: from layer `first` to `last`, by number.

    A view shares the storage of another tensor, and lives as long as that does.
    """

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int | None
    producer: int | None  # number of the layer that computes it; null: an input of the network
    consumers: list[int]  # numbers of the layers that read it
    first: int
    last: int
    storage: int  # number of the tensor whose storage it shares, else its own
    counted_bytes: int  # of activation memory; 0 for a view


class TreeJson(Struct, omit_defaults=True):
    """A group of the module tree that `show` prints: a module, or several equal neighbours."""

    row: int  # number of its row: layers first, then groups in this order, then the total
    name: str  # as `show` prints it; of equal neighbours with × N
    type: str
    path: str
    status: str  # exact, estimate, or lower bound: figures of a layer in it are unknown
    layers: list[int]  # numbers of the layers of all neighbours
    children: list[TreeJson | int]  # of the first neighbour: groups, and numbers of layers
    repeat: int = 1  # how many neighbours; left out if 1
    instances: list[list[int]] = []  # layers of each neighbour; left out if it is a single one
    sums: dict[str, int] = {}  # by name of a summable column


class ColumnJson(Struct):
    """A column of the table, in the order of `show`."""

    name: str
    title: str
    kind: str  # text, count, bytes, percent or ratio
    unit: str  # B, %, FLOP/B, or "" for texts and counts
    summable: bool  # a group has the sum of its layers
    shown: bool  # in the widest table of `show`
    says: str


class CellsJson(Struct, omit_defaults=True):
    """One column of all rows by number.

    Without `texts` the printed text is the value in digits, grouped by commas; of null it is blank.
    """

    values: list[int | float | None] | None = None  # left out for texts; shares from 0 to 1
    texts: list[str] | None = None  # as `show` prints them


class ConventionJson(Struct):
    """Figures of one convention: the columns that differ from the report's own."""

    title: str  # what its figure is called; "" if it has none
    says: str
    difference: str  # of its figure from the exact one, as `explain` prints it; "" if not compared
    reasons: list[str]
    notes: list[str]
    cells: dict[str, CellsJson]


class FindingJson(Struct, omit_defaults=True):
    """A sentence on the network, and the numbers of the layers that it is on.

    What would lower the peak, and fields that exceed the input, are there with --conventions only.
    """

    kind: str
    text: str
    layers: list[int]
    saves_bytes: int | None = None  # of the peak, for what would lower it
    saves_text: str = ""


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
    zero_stage: int = 0  # 1 to 3: bytes are those of one of `devices`
    devices: int = 1
    lora: int = 0  # rank of adapters; the rest is frozen


class LanguageJson(Struct):
    """Figures of a network that reads tokens; cache_bytes is null without a key-value cache."""

    tokens: int
    past: int
    macs_per_token: int | float
    intensity: float | None
    weight_bytes: dict[str, int]
    cache_tokens: int
    cache_bytes: dict[str, int] | None


class OptionsJson(Struct, omit_defaults=True):
    """How the graph was counted, so that the report can be read back."""

    like: str
    in_place: bool
    attention: Literal["all", "needed"] = "all"  # pairs that are counted; left out if all


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
    findings: list[FindingJson]
    columns: list[ColumnJson]
    tree: list[TreeJson | int]
    tensors: list[LiveTensorJson]
    notes: list[str] = []  # remarks of the file reader
    stored: dict[str, dict[str, int]] = {}  # stored elements by role and dtype
    language: LanguageJson | None = None
    training: TrainingJson | None = None
    fit: Fit | None = None
    deployment: DeploymentJson | None = None
    options: OptionsJson | None = None
    cells: dict[str, CellsJson] = {}  # by column; only with --conventions
    conventions: dict[str, ConventionJson] = {}  # only with --conventions
    graph: dict[str, Any] = {}
