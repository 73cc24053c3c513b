"""A report as JSON. The types here are the schema; docs/report.schema.json is made from them."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from msgspec import Struct

from layerscope.analysis.costs import Status, storage_of
from layerscope.analysis.fields import Field as FieldOf
from layerscope.analysis.training import Training as TrainingOf
from layerscope.escaping import json_text
from layerscope.export.answers import Answers
from layerscope.graph.types import Role
from layerscope.graph.types import Tensor as TensorOf
from layerscope.ops import Gemm
from layerscope.ops import Ops as OpsOf
from layerscope.report.language import Language as LanguageOf
from layerscope.report.language import language
from layerscope.report.numbers import decimal
from layerscope.report.training import Fit
from layerscope.report.types import Layer as LayerOf
from layerscope.report.types import Report as ReportOf
from layerscope.report.types import sum_ops

NONE_ASKED = Answers()
Number = int | float | str  # a fraction that is no decimal is text, such as "1/3"


class Tensor(Struct, omit_defaults=True):
    """A tensor; shape null where it could not be inferred."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int | None
    declared: bool = False  # the shape is what the file declares, nothing infers it; else left out


class Ops(Struct):
    """Operations by kind."""

    mac: int
    add: int
    mul: int
    comp: int
    div: int
    exp: int


class Field(Struct):
    """Receptive field per spatial axis of the input it is of."""

    input: str
    size: list[int | Literal["everything"]]
    stride: list[Number | None]
    offset: list[Number | None]
    aligned: bool


class Param(Struct):
    """A stored array; arrays of the same storage are tied and counted once."""

    name: str
    role: Role
    shape: tuple[int, ...]
    dtype: str
    storage: str


class Layer(Struct):
    """One layer. Figures are null where status is unknown."""

    name: str
    type: str
    scope: list[str]
    module: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    params: int | None
    buffers: int | None
    weights: list[Param]
    ops: Ops | None  # exact, whatever the convention
    flops: int | None
    convention_ops: int | None  # the convention's figure; null if it has none
    activations: int | None
    activation_bytes: int | None
    convention_activations: int | None  # null unless the convention counts its own
    read_bytes: int | None
    write_bytes: int | None
    intensity: float | None
    gemm: Gemm | None
    field: Field | None
    fields: list[Field]
    backward_ops: Ops | None
    status: Status
    note: str
    source: str
    source_op: str = ""  # what it is called there
    times: int = 1  # it runs in one pass


class Alive(Struct):
    """A tensor that is held at the peak."""

    tensor: str
    bytes: int


class Peak(Struct):
    """Where activation memory peaks, and what is held there."""

    layer: str
    bytes: int
    alive: list[Alive]
    in_place: bool
    complete: bool


class Totals(Struct):
    """Sums over all layers; those named in lower_bounds lack unknown layers (see coverage).

    macs, flops and ops are exact under every convention; convention_ops is the convention's figure.
    """

    params: int
    buffers: int
    macs: int
    flops: int
    convention_ops: int | None
    ops: Ops
    activations: int
    activation_bytes: int
    convention_activations: int | None
    peak_activation_bytes: int
    param_bytes: int
    read_bytes: int
    write_bytes: int
    intensity: float | None
    backward_ops: Ops
    macs_by_dtype: dict[str, int]  # of the weights, else of the first input
    complete: bool
    lower_bounds: list[str]  # names of totals that are lower bounds


class Coverage(Struct):
    """How many layers have figures."""

    known: int
    total: int
    unknown: dict[str, int]
    estimated: int


class Dtypes(Struct):
    """Elements by dtype: of the inputs, and of the outputs of layers with arithmetic."""

    inputs: dict[str, int]
    arithmetic: dict[str, int]


class Stamp(Struct):
    """What makes the figures reproducible."""

    version: str
    convention: str
    counts: str
    figure: str | None  # what the convention's system calls convention_ops
    batch: int
    dtype: str  # `mixed` where dtypes has several
    dtypes: Dtypes
    text: str


class Training(Struct):
    """Bytes of one training step, by what holds them."""

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
    kept_status: str  # of kept_bytes: exact | estimate
    notes: list[str]  # why kept_bytes is an estimate, and of which layers


class Language(Struct):
    """Figures of a network that takes tokens; cache_bytes null where it keeps no keys."""

    tokens: int
    past: int
    macs_per_token: int | float
    intensity: float | None
    weight_bytes: dict[str, int]
    cache_tokens: int
    cache_bytes: dict[str, int] | None


class Sums(Totals, kw_only=True):
    """The totals alone, with what makes them reproducible."""

    network: str
    stamp: Stamp | None
    coverage: Coverage
    notes: list[str]


class Report(Struct):
    """The whole account."""

    network: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    totals: Totals
    memory: Peak
    layers: list[Layer]
    stamp: Stamp | None
    coverage: Coverage
    findings: list[str]
    notes: list[str] = []  # what the reader of a file has to say of it
    stored: dict[str, dict[str, int]] = {}  # numbers stored, by what they are and their type
    language: Language | None = None
    training: Training | None = None
    fit: Fit | None = None


def write(
    report: ReportOf,
    *,
    stamp: bool = True,
    totals_only: bool = False,
    asked: Answers = NONE_ASKED,
) -> str:
    """The account as JSON text, indented."""
    if totals_only:
        return json_text(_sums(report, stamp=stamp))
    return json_text(document(report, stamp=stamp, asked=asked))


def schema() -> str:
    """The JSON Schema of what `write` gives."""
    import msgspec

    return json_text(msgspec.json.schema(Report))


def document(report: ReportOf, *, stamp: bool = True, asked: Answers = NONE_ASKED) -> Report:
    """The account as plain values."""
    from layerscope.report.findings import findings

    memory = report.memory
    return Report(
        network=report.name,
        inputs=[_tensor(tensor) for tensor in report.inputs],
        outputs=[_tensor(report.tensors[name]) for name in report.graph.outputs],
        totals=_totals(report),
        memory=Peak(
            memory.peak_node,
            memory.peak_bytes,
            [Alive(name, size) for name, size in memory.peak_alive],
            memory.in_place,
            memory.complete,
        ),
        layers=[_layer(layer, report) for layer in report.layers],
        stamp=_stamp(report) if stamp else None,
        coverage=_coverage(report),
        findings=list(findings(report)),
        notes=list(report.notes),
        stored=report.stored,
        language=_language(language(report)),
        training=_training(asked.training),
        fit=asked.fit,
    )


def _language(found: LanguageOf | None) -> Language | None:
    if found is None:
        return None
    macs = found.macs_per_token
    return Language(
        tokens=found.tokens,
        past=found.past,
        macs_per_token=int(macs) if macs.denominator == 1 else float(macs),
        intensity=_float(found.intensity),
        weight_bytes=dict(found.weight_bytes),
        cache_tokens=found.cache_tokens,
        cache_bytes=None if found.cache_bytes is None else dict(found.cache_bytes),
    )


def _training(training: TrainingOf | None) -> Training | None:
    if training is None:
        return None
    return Training(
        training.optimizer,
        training.total_bytes,
        training.weights_bytes,
        training.half_copy_bytes,
        training.gradient_bytes,
        training.state_bytes,
        training.kept_bytes,
        training.working_bytes,
        training.checkpoints,
        training.complete,
        training.kept_status,
        list(training.notes),
    )


def _totals(report: ReportOf) -> Totals:
    totals = report.totals
    return Totals(
        params=totals.params,
        buffers=totals.buffers,
        macs=totals.macs,
        flops=totals.flops,
        convention_ops=totals.convention_ops,
        ops=_ops(totals.ops),
        activations=totals.activations,
        activation_bytes=totals.activation_bytes,
        convention_activations=totals.convention_activations if _counts_its_own(report) else None,
        peak_activation_bytes=totals.peak_activation_bytes,
        param_bytes=totals.param_bytes,
        read_bytes=totals.read_bytes,
        write_bytes=totals.write_bytes,
        intensity=None if report.coverage.unknown else _float(totals.intensity),
        backward_ops=_ops(sum_ops(list(report.backward.values()))),
        macs_by_dtype=report.macs_by_dtype,
        complete=not report.coverage.unknown,
        lower_bounds=list(report.lower_bounds),
    )


def _sums(report: ReportOf, *, stamp: bool) -> Sums:
    totals = _totals(report)
    return Sums(
        *[getattr(totals, name) for name in Totals.__struct_fields__],
        network=report.name,
        stamp=_stamp(report) if stamp else None,
        coverage=_coverage(report),
        notes=list(report.notes),
    )


def _coverage(report: ReportOf) -> Coverage:
    coverage = report.coverage
    return Coverage(coverage.known, coverage.total, coverage.unknown, coverage.estimated)


def _counts_its_own(report: ReportOf) -> bool:
    """Whether the convention has a count of activations that is not ours."""
    counted = report.convention
    return counted.activations is not None


def _stamp(report: ReportOf) -> Stamp:
    counted = report.convention
    return Stamp(
        version=report.version,
        convention=counted.name,
        counts=counted.says,
        figure=counted.figure or None,
        batch=report.batch,
        dtype=report.dtype,
        dtypes=Dtypes(report.dtypes.inputs, report.dtypes.arithmetic),
        text=report.stamp,
    )


def _layer(layer: LayerOf, report: ReportOf) -> Layer:
    known = layer.status != "unknown"
    told = report.params_known(layer.node)  # a format may state weights of an op without a rule
    own = _counts_its_own(report)
    source = layer.node.source
    return Layer(
        name=layer.name,
        type=layer.op,
        scope=list(layer.scope),
        module=layer.node.module,
        inputs=[_tensor(tensor) for tensor in layer.inputs],
        outputs=[_tensor(tensor) for tensor in layer.outputs],
        params=layer.params if told else None,
        buffers=layer.cost.buffer_count if told else None,
        weights=[
            Param(p.name, p.role, p.shape, p.dtype, storage_of(layer.node, p))
            for p in layer.cost.params
        ],
        ops=_ops(layer.ops) if known else None,
        flops=layer.ops.flops if known else None,
        convention_ops=layer.convention_ops if known else None,
        activations=layer.activations if known else None,
        activation_bytes=layer.activation_bytes if known else None,
        convention_activations=layer.convention_activations if known and own else None,
        read_bytes=layer.cost.read_bytes if known else None,
        write_bytes=layer.cost.write_bytes if known else None,
        intensity=_float(layer.intensity) if known else None,
        gemm=layer.gemm,
        field=_field(layer.field) if layer.field else None,
        fields=[_field(field) for field in report.fields.get(layer.node.outputs[0], ())],
        backward_ops=_ops(report.backward[layer.name]) if known else None,
        status=layer.status,
        note=layer.cost.note,
        source=str(source) if source else "",
        source_op=source.op if source else "",
        times=layer.node.times,
    )


def _tensor(tensor: TensorOf) -> Tensor:
    size = tensor.bytes if tensor.shape is not None else None
    return Tensor(tensor.name, tensor.shape, tensor.dtype, size, tensor.declared)


def _ops(ops: OpsOf) -> Ops:
    return Ops(ops.mac, ops.add, ops.mul, ops.comp, ops.div, ops.exp)


def _field(field: FieldOf) -> Field:
    return Field(
        field.input,
        [size if isinstance(size, int) else "everything" for size in field.size],
        [decimal(value) for value in field.stride],
        [decimal(value) for value in field.offset],
        field.aligned,
    )


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
