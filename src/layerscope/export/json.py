"""A report as JSON.

The structs here define the schema: docs/report.schema.json is generated from them, with the suffix
`Json` removed from their names.
"""

from __future__ import annotations

import os
import re
from fractions import Fraction
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.costs import Status, storage_of
from layerscope.analysis.fields import Field
from layerscope.analysis.training import Training
from layerscope.errors import FormatError
from layerscope.escaping import json_text
from layerscope.export.fit_lines import MemoryResults
from layerscope.export.run_json import reading
from layerscope.graph.serialize import from_plain, to_plain
from layerscope.graph.types import Graph, Role, Tensor
from layerscope.ops import Gemm, Ops
from layerscope.report.language import Language, language
from layerscope.report.numbers import decimal
from layerscope.report.quantities import check_stored
from layerscope.report.training import Fit
from layerscope.report.types import Layer, Report, sum_ops

SCHEMA = 1
NOT_REQUESTED = MemoryResults()
# Totals that a report in a file is compared by when it is read.
COMPARED = ("params", "macs", "flops", "activations", "peak_activation_bytes", "param_bytes")
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


def write(
    report: Report,
    *,
    stamp: bool = True,
    totals_only: bool = False,
    requested: MemoryResults = NOT_REQUESTED,
) -> str:
    """The report as indented JSON text."""
    if totals_only:
        return json_text(_totals_only(report, stamp=stamp))
    return json_text(document(report, stamp=stamp, requested=requested))


def schema() -> str:
    """The JSON Schema of the document that `write` returns."""
    # $defs, $refs and titles are class names
    return re.sub(r'(\w+)Json"', r'\1"', json_text(msgspec.json.schema(ReportJson)))


def document(
    report: Report, *, stamp: bool = True, requested: MemoryResults = NOT_REQUESTED
) -> ReportJson:
    """The report as structs that can be encoded as JSON."""
    from layerscope.report.findings import findings

    memory = report.memory
    return ReportJson(
        kind="report",
        schema=SCHEMA,
        network=report.name,
        inputs=[_tensor(tensor) for tensor in report.inputs],
        outputs=[_tensor(report.tensors[name]) for name in report.graph.outputs],
        totals=_totals(report),
        memory=PeakJson(
            memory.peak_node,
            memory.peak_bytes,
            [AliveJson(name, size) for name, size in memory.peak_alive],
            memory.in_place,
            "peak_activation_bytes" not in report.lower_bounds,
        ),
        layers=[_layer(layer, report) for layer in report.layers],
        stamp=_stamp(report) if stamp else None,
        coverage=_coverage(report),
        findings=list(findings(report)),
        notes=list(report.notes),
        stored=report.stored,
        language=_language(language(report)),
        training=_training(requested.training),
        fit=requested.fit,
        options=OptionsJson(report.convention.name, memory.in_place),
        graph=_plain_graph(report.graph),
    )


def _plain_graph(graph: Graph) -> dict[str, Any]:
    """The graph without the folders of its files."""
    plain = to_plain(graph)
    for each in (*plain["nodes"], *plain["inputs"]):
        source = each.get("source")
        if source and source.get("file"):
            source["file"] = os.path.basename(source["file"])
    return plain


class ReportFile(Struct):
    """What is read of a report in a file."""

    kind: str = ""
    schema: int = SCHEMA
    network: str = ""
    totals: dict[str, Any] = {}
    options: OptionsJson | None = None
    graph: dict[str, Any] = {}


def read_file(path: str) -> Report:
    """The report in a file that `write` wrote, counted again from its graph."""
    from layerscope.formats.documents import contents
    from layerscope.report.build import report_of

    try:
        found = msgspec.json.decode(contents(path), type=ReportFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: not a report of layerscope: {error}") from None
    except RecursionError:
        raise FormatError(f"{path}: JSON that is nested too deeply") from None
    if found.schema != SCHEMA:
        raise FormatError(
            f"{path}: a report in schema {found.schema}, and this version reads schema {SCHEMA}"
        )
    if not found.graph or found.options is None:
        raise FormatError(
            f"{path}: a report without its graph (of layerscope 0.1, or only totals); "
            "write it again with `layerscope show NET -o FILE.json`"
        )
    with reading(path):
        check_stored(found.graph, path)
        graph = from_plain(found.graph)
        report = report_of(graph, like=found.options.like, in_place=found.options.in_place)
        note = _changed(found.totals, report)
        return (
            report
            if not note
            else replace(report, graph=replace(graph, notes=(*graph.notes, note)))
        )


def _changed(stored: dict[str, Any], report: Report) -> str:
    """A note if the file has other totals than this version counts."""
    now = {name: getattr(report.totals, name) for name in COMPARED}
    other = [
        f"{name} {stored[name]:,}"
        for name, value in now.items()
        if isinstance(stored.get(name), int) and stored[name] != value
    ]
    return f"counted again by this version; the file has {', '.join(other)}" if other else ""


def _language(found: Language | None) -> LanguageJson | None:
    if found is None:
        return None
    macs = found.macs_per_token
    return LanguageJson(
        tokens=found.tokens,
        past=found.past,
        macs_per_token=int(macs) if macs.denominator == 1 else float(macs),
        intensity=_float(found.intensity),
        weight_bytes=dict(found.weight_bytes),
        cache_tokens=found.cache_tokens,
        cache_bytes=None if found.cache_bytes is None else dict(found.cache_bytes),
    )


def _training(training: Training | None) -> TrainingJson | None:
    if training is None:
        return None
    return TrainingJson(
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


def _totals(report: Report) -> TotalsJson:
    totals = report.totals
    return TotalsJson(
        params=totals.params,
        buffers=totals.buffers,
        macs=totals.macs,
        flops=totals.flops,
        convention_ops=totals.convention_ops,
        ops=_ops(totals.ops),
        activations=totals.activations,
        activation_bytes=totals.activation_bytes,
        convention_activations=totals.convention_activations
        if _has_own_activations(report)
        else None,
        peak_activation_bytes=totals.peak_activation_bytes,
        param_bytes=totals.param_bytes,
        read_bytes=totals.read_bytes,
        write_bytes=totals.write_bytes,
        intensity=None if report.coverage.unknown else _float(totals.intensity),
        backward_ops=_ops(sum_ops(list(report.backward.values()))),
        macs_by_dtype=report.macs_by_dtype,
        complete=not report.coverage.unknown,
        lower_bounds=list(report.lower_bounds),
        unused_params=report.unused_params,
        estimates=list(report.estimates),
    )


def _totals_only(report: Report, *, stamp: bool) -> dict[str, object]:
    """The totals without the layers (`show --total --as json`)."""
    return {
        "kind": "report",
        "schema": SCHEMA,
        "network": report.name,
        **msgspec.to_builtins(_totals(report)),
        "stamp": _stamp(report) if stamp else None,
        "coverage": _coverage(report),
        "notes": list(report.notes),
    }


def _coverage(report: Report) -> CoverageJson:
    coverage = report.coverage
    return CoverageJson(coverage.known, coverage.total, coverage.unknown, coverage.estimated)


def _has_own_activations(report: Report) -> bool:
    """Whether the convention counts activations by a rule of its own."""
    counted = report.convention
    return counted.activations is not None


def _stamp(report: Report) -> StampJson:
    counted = report.convention
    return StampJson(
        version=report.version,
        convention=counted.name,
        counts=counted.says,
        figure=counted.figure or None,
        batch=report.batch,
        dtype=report.dtype,
        dtypes=DtypesJson(report.dtypes.inputs, report.dtypes.arithmetic),
        text=report.stamp,
    )


def _layer(layer: Layer, report: Report) -> LayerJson:
    has_ops = layer.status != "unknown"
    has_params = report.params_known(layer.node)  # true if the file stores weights of an unknown op
    sized = layer.name not in report.memory.bounded
    own = _has_own_activations(report)
    source = layer.node.source
    return LayerJson(
        name=layer.name,
        type=layer.op,
        scope=list(layer.scope),
        module=layer.node.module,
        inputs=[_tensor(tensor) for tensor in layer.inputs],
        outputs=[_tensor(tensor) for tensor in layer.outputs],
        params=layer.params if has_params else None,
        buffers=layer.cost.buffer_count if has_params else None,
        weights=[
            ParamJson(p.name, p.role, p.shape, p.dtype, storage_of(layer.node, p))
            for p in layer.cost.params
        ],
        ops=_ops(layer.ops) if has_ops else None,
        flops=layer.ops.flops if has_ops else None,
        convention_ops=layer.convention_ops if has_ops else None,
        activations=layer.activations if has_ops else None,
        activation_bytes=layer.activation_bytes if has_ops else None,
        convention_activations=layer.convention_activations if has_ops and own else None,
        alive_bytes=report.alive_bytes[layer.name] if has_ops and sized else None,
        read_bytes=layer.cost.read_bytes if has_ops else None,
        write_bytes=layer.cost.write_bytes if has_ops else None,
        intensity=_float(layer.intensity) if has_ops else None,
        gemm=layer.gemm,
        field=_field(layer.field) if layer.field else None,
        fields=[_field(field) for field in report.fields.get(layer.node.outputs[0], ())],
        backward_ops=_ops(report.backward[layer.name]) if has_ops else None,
        status=layer.status,
        note=layer.cost.note,
        source=str(source) if source else "",
        source_op=source.op if source else "",
        times=layer.node.times,
    )


def _tensor(tensor: Tensor) -> TensorJson:
    size = tensor.bytes if tensor.shape is not None else None
    return TensorJson(tensor.name, tensor.shape, tensor.dtype, size, tensor.declared)


def _ops(ops: Ops) -> OpsJson:
    return OpsJson(ops.mac, ops.add, ops.mul, ops.comp, ops.div, ops.exp)


def _field(field: Field) -> FieldJson:
    return FieldJson(
        field.input,
        [size if isinstance(size, int) else "everything" for size in field.size],
        [decimal(value) for value in field.stride],
        [decimal(value) for value in field.offset],
        field.aligned,
    )


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
