"""The functions of the public API; the only module that calls every stage of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from layerscope.analysis.shapes import Shapes, infer
from layerscope.analysis.stored import check_stored
from layerscope.conventions import COUNTERS, convention
from layerscope.errors import FormatError, ShapeError, UsageError
from layerscope.graph import Graph, Shape
from layerscope.graph.dtype_names import dtype_name, known_dtype
from layerscope.graph.edits import bind, token_shapes, with_cache, with_tokens
from layerscope.ops import SPECS
from layerscope.report import Report
from layerscope.report.build import report_of
from layerscope.report.quantities import count_of, shape_of, within
from layerscope.report.training import Fit

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.audit.document import SheetAudit
    from layerscope.audit.findings import Audit
    from layerscope.engines import Progress
    from layerscope.engines.measuring import MeasureRequest
    from layerscope.formats import Recognised
    from layerscope.formats.torch.model_names import NamedModel
    from layerscope.report.budgets import Budget, Verdict
    from layerscope.report.compare import Comparison, NetworkTime
    from layerscope.report.explain import Explanation
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction

Input = Sequence[int] | str | Mapping[str, Sequence[int] | str]  # (1, 3, 224, 224), "3x224x224"


def load(network: str | PathLike[str], **options: Any) -> Graph:
    """The graph of a zoo network or a file.

    Options of the readers: `phase`, `proposals`, `weights`, `keep_going`, `inputs`, `dims`,
    `batch`.
    """
    if isinstance(network, PathLike):
        network = fspath(network)
    if not isinstance(network, str):
        raise UsageError(f"a {type(network).__name__}, expected the name of a network or file")
    return _load(network, options)


def _load(network: str, options: dict[str, Any], found: Recognised | None = None) -> Graph:
    """The network of a name or file; `found` is the file if it has been recognised already."""
    from layerscope import formats

    parsed = formats.options_of(**options)
    if found is not None or formats.looks_like_a_file(network):
        graph = formats.read(network, parsed, found)
        return graph if parsed.weights is None else check_weights(graph, parsed.weights)
    from layerscope.zoo import build

    other = [name for name in options if name not in ("inputs", "batch")]
    if other and replace(parsed, inputs={}, batch=None) != formats.DEFAULTS:
        raise UsageError(f"{other[0]} applies to networks in files; {network} is a zoo network")
    graph = build(network, parsed.inputs) if parsed.inputs else build(network)
    return bind(graph, parsed.inputs, parsed.batch)


def _recognised(network: str) -> Recognised | None:
    """The file of a network, recognised but not read; None for a network of the zoo."""
    from layerscope import formats

    return formats.recognise_file(network) if formats.looks_like_a_file(network) else None


def _binds(network: str, found: Recognised | None) -> bool:
    """Whether the reader of a network must know the shapes of its inputs."""
    if found is not None:
        return found.binds
    from layerscope.zoo import sized

    return sized(network)


def check_weights(graph: Graph, path: str) -> Graph:
    """Check that the arrays of a weight file have the shapes that the layers need.

    Layers without arrays in the file keep their inferred ones, as in Caffe; a note names them.
    """
    missing = check_stored(graph, infer(graph), path)
    if not missing:
        return graph
    if not any(node.params for node in graph.nodes):
        raise FormatError(
            f"{path}: holds weights of no layer of {graph.name}; is it for this network?"
        )
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    note = f"no weights in {path} for {', '.join(missing[:5])}{more}"
    return replace(graph, notes=(*graph.notes, note))


def analyze(
    network: str | PathLike[str] | Graph | torch.nn.Module | NamedModel,
    *,
    input: Input | None = None,
    batch: int | None = None,
    dtype: str | torch.dtype | None = None,
    like: str = "exact",
    in_place: bool = False,
    tokens: int | None = None,
    decode: int | None = None,
    **options: Any,
) -> Report:
    """The per-layer report of a network: shapes, parameters, operations, memory, fields.

    - `network`: a zoo name, a file, the name of a PyTorch model, a Graph or a `torch.nn.Module`.
    - `input`: shape of the input, or shapes by input name: `(1, 3, 224, 224)`, `"3x224x224"`.
    - `batch`: batch size.
    - `dtype`: dtype of weights and activations, a name such as `"fp16"` or a `torch.dtype`.
    - `like`: convention to count by, such as `"fvcore"`.
    - `in_place`: count activation, norm and add layers as in-place.
    - `tokens`: sequence length of a language model (prefill).
    - `decode`: length of the key-value cache; the model reads one token.
    - `options`: those of `load` for a file; `input_size`, `input_data`, `dtypes`, `rules` and
      `real` for a module.

    """
    if isinstance(network, PathLike):
        network = fspath(network)
    if tokens is not None and decode is not None:
        raise UsageError("tokens cannot be combined with decode, which reads one token")
    numbers = {"batch": batch, "tokens": tokens, "decode": decode}
    _check_numbers({**numbers, "proposals": options.get("proposals")},
                   (input, options.get("input_size"), options.get("dims")))  # fmt: skip
    if isinstance(network, (str, Graph)):
        _check_input_option(network, options)
    counted_by = convention(like)
    dtype = None if dtype is None else known_dtype(dtype)
    if not isinstance(network, (str, Graph)) or _is_model(network):
        graph = _captured(network, input, batch, {"tokens": tokens, "decode": decode, **options})
        return analyze(bind(graph, dtype=dtype), like=like, in_place=in_place)
    if options and not isinstance(network, str):
        raise UsageError(f"{next(iter(options))} needs the name of a file, not a graph")
    shapes = _shapes_of(input)
    found = _recognised(network) if isinstance(network, str) else None
    if isinstance(network, str) and _binds(network, found):
        graph = _load(network, {"inputs": shapes, "batch": batch, **options}, found)
        if tokens is not None:  # the reader needs the sequence length
            shapes = {**shapes, **token_shapes(graph, tokens)}
            graph = _load(network, {"inputs": shapes, "batch": batch, **options}, found)
            tokens = None
        graph = bind(graph, dtype=dtype)
    else:
        graph = _load(network, options, found) if isinstance(network, str) else network
        graph = bind(graph, shapes, batch, dtype)
    if graph.autograd is not None and (tokens is not None or decode is not None):
        raise UsageError(
            f"{graph.name}: a captured graph has a fixed sequence length; pass the model itself "
            "with tokens or decode"
        )
    graph = graph if tokens is None else with_tokens(graph, tokens)
    graph = graph if decode is None else with_cache(graph, decode)
    _need_shapes(graph)
    inferred = infer(graph) if not isinstance(network, str) else _inferred(network, graph)
    if not graph.own_layout and any(node.params is not None for node in graph.nodes):
        check_stored(graph, inferred)
    return report_of(graph, inferred, like=counted_by.name, in_place=in_place)


def _is_model(network: object) -> bool:
    """Whether a network is the name of a PyTorch model."""
    from layerscope import formats

    return isinstance(network, str) and formats.names_a_model(network)


def _check_input_option(network: str | Graph, options: Mapping[str, Any]) -> None:
    """Raise for a name that other functions have for `input`."""
    other = next((name for name in options if name in INPUT_NAMES), None)
    if other is not None:
        name = network if isinstance(network, str) else network.name
        raise UsageError(
            f"{other}: the input shape of {name} is given as input=, such as "
            "input=(1, 3, 224, 224), or input={'data': (1, 3, 224, 224)} for an input by name"
        )


def _shapes_of(input: Input | None) -> dict[str, Shape]:
    """Input shapes by name; "" stands for the first input."""
    if input is None:
        return {}
    if isinstance(input, Mapping):
        return {name: shape_of(shape, f"input {name}") for name, shape in input.items()}
    return {"": shape_of(input, "input")}


def _check_numbers(counts: Mapping[str, object], sizes: object) -> None:
    """Raise for a number above 2^63 - 1, in any nesting of input sizes."""
    for name, value in counts.items():
        if value is not None:
            count_of(value, name)
    waiting = [sizes]
    while waiting:
        each = waiting.pop()
        if isinstance(each, int):
            within(each, "input")
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, (list, tuple)):
            waiting += each


def _captured(
    network: str | torch.nn.Module | NamedModel,
    input: Input | None,
    batch: int | None,
    options: dict[str, Any],
) -> Graph:
    """The captured graph of a module or of a named model."""
    from layerscope.formats.torch.model_names import InputOptions, NamedModel, find

    if isinstance(network, str):
        network = find(network)
    if not isinstance(network, NamedModel):
        from layerscope.formats.torch.frontend import graph_of

        sizes: object = input
        if isinstance(input, (str, Mapping)):  # as text, or by name; "" is the first input
            shapes = _shapes_of(input)
            sizes = shapes[""] if list(shapes) == [""] else shapes
        return graph_of(network, input=sizes, batch=batch, **options)
    length = {name: options.pop(name) for name in ("tokens", "decode")}
    other = next(iter(options), None)
    if other is not None:
        raise UsageError(f"{other} applies to networks in files; {network.spec} is a model name")
    return network.graph(InputOptions(_shapes_of(input), batch, **length))


def _inferred(network: str, graph: Graph) -> Shapes:
    """Inferred shapes; for a zoo network the error names the smallest image it accepts."""
    from layerscope import formats

    try:
        return infer(graph)
    except ShapeError as error:
        if formats.looks_like_a_file(network):
            raise
        from layerscope.analysis.limits import least_image

        side = least_image(load(network))
        if side is None:
            raise
        raise ShapeError(f"{error}; the smallest image it accepts is {side}x{side}") from None


def _need_shapes(graph: Graph) -> None:
    """Raise if the file has no shape for an input that an op with a rule reads."""
    blank = {t.name: t for t in graph.inputs if t.shape is None and t.source is not None}
    if not blank:
        return
    for node in graph.nodes:
        for name in node.inputs:
            if name in blank and node.op in SPECS:
                from layerscope.formats.input_hints import shape_hint

                raise FormatError(
                    f"{blank[name].source}: the file tells no shape of input {name!r}, which "
                    f"{node.name} reads; give it with --input {name}={shape_hint(name, node)} or "
                    "what it is"
                )


def need_operations(found: Report, what: str) -> None:
    """Raise for a file that holds weights but no operations."""
    nodes = found.graph.nodes
    if nodes and all(node.op == "weights" for node in nodes):
        raise UsageError(
            f"{found.name}: a weight file has no operations, which {what} needs; give the "
            "network itself"
        )


def fit(
    network: str | Graph,
    memory_bytes: int,
    *,
    train: str | None = None,
    mixed: bool = False,
    checkpoint: bool = False,
    **options: Any,
) -> Fit:
    """The largest batch whose inference (or training step with optimizer `train`) fits in memory.

    Inference needs the weights, the peak of activations and the key-value cache if there is one.
    Other options are those of `analyze`.
    """
    if count_of(memory_bytes, "memory") < 1:
        raise UsageError(f"memory of {memory_bytes} bytes, expected at least 1")
    if train is None and (mixed or checkpoint):
        raise UsageError(f"{'mixed' if mixed else 'checkpoint'} needs train, the optimizer")
    if options.get("batch") is not None:
        raise UsageError("batch is what fit finds")
    options.pop("batch", None)
    source: str | Graph | NamedModel = network
    if _is_model(network):
        from layerscope.formats.torch.model_names import find

        source = find(str(network))  # built once, captured for every batch
    elif isinstance(network, str):
        found = _recognised(network)
        source = network if _binds(network, found) else _load(network, {}, found)

    def needed(batch: int) -> tuple[int, bool]:
        """Bytes of a batch, and whether they are all of them."""
        report = analyze(source, batch=batch, **options)
        if train is None:
            totals, bounds = report.totals, report.lower_bounds
            is_all = not {"param_bytes", "peak_activation_bytes"} & {*bounds}
            return totals.param_bytes + totals.peak_activation_bytes + report.cache_bytes, is_all
        step = report.training(train, mixed=mixed, checkpoint=checkpoint)
        return step.total_bytes, step.complete

    high = 1
    while needed(high)[0] <= memory_bytes:
        if high >= MOST_BATCH:
            raise UsageError(f"every batch up to {high:,} fits in {memory_bytes:,} bytes")
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle)[0] <= memory_bytes else (low, middle)
    size, complete = needed(high)
    return Fit(low, needed(low)[0] if low else 0, size, memory_bytes, complete)


MOST_BATCH = 2**40  # ends the search if memory hardly grows with the batch


Network: TypeAlias = "str | Graph | torch.nn.Module | Report | Measurement"


def compare(
    first: Network,
    *others: Network,
    measure: bool = False,
    on: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare networks with the first one; options are those of `analyze`.

    A Report or a Measurement is compared as it is, and so are files that layerscope wrote, except
    that `like` applies to these files too. With `measure` the networks are timed on ONNX Runtime,
    with `on` their time is predicted for that machine. Options for readers of files apply to the
    files among the networks only; modules take the same `input_size` or `input_data`, or are given
    as Reports of `analyze`.
    """
    from layerscope.report.compare import compare as compared
    from layerscope.report.measurement import Measurement

    if measure and on is not None:
        raise UsageError("--measure cannot be combined with --on")
    options = {name: value for name, value in options.items() if value is not None}
    if all(isinstance(each, (Report, Measurement)) for each in (first, *others)):
        _check_unused(options, "Reports and Measurements are compared as they are")
    subjects = [_subject(each, options) for each in (first, *others)]
    _check_reader_options(options, [first, *others])
    _check_network_options(options, [first, *others])
    reports = [report for report, _ in subjects]
    times = [time for _, time in subjects]
    for n, report in enumerate(reports):
        if (measure or on is not None) and times[n] is None:
            network = (first, *others)[n]
            dtype = None if _is_result(network) else options.get("dtype")
            times[n] = _time_of(report, network, on, dtype, progress)
    return compared(reports, times if any(times) else ())


def _subject(network: Network, options: dict[str, Any]) -> tuple[Report, NetworkTime | None]:
    """The report of a network to compare, and its time if it was measured."""
    from layerscope.formats import ReadOptions, looks_like_a_file, names_a_model
    from layerscope.report.compare import NetworkTime
    from layerscope.report.measurement import Measurement

    saved = read_result(network) if isinstance(network, str) else None
    if saved is not None:
        report, time = _subject(saved, {})
        like = options.get("like", report.convention.name)
        return replace(report, convention=convention(like)), time
    if isinstance(network, Report):
        return network, None
    if isinstance(network, Measurement):
        return network.report, NetworkTime.of_measurement(network)
    if isinstance(network, (str, Graph)):
        _check_input_option(network, options)
    is_a_file = isinstance(network, str) and looks_like_a_file(network)
    if not is_a_file or names_a_model(str(network)):
        for_files = {*ReadOptions.__struct_fields__} - {"batch"}
        options = {name: value for name, value in options.items() if name not in for_files}
    return analyze(network, **options), None


def _check_unused(options: Mapping[str, Any], why: str) -> None:
    """Raise for an option that would have no effect."""
    unused = next((name for name, value in options.items() if value is not None), None)
    if unused is not None:
        raise UsageError(f"{unused} has no effect: {why}")


def _check_reader_options(options: dict[str, Any], networks: Sequence[Network]) -> None:
    """Raise for an option of file readers if there is no file."""
    from layerscope.formats import ReadOptions, looks_like_a_file, names_a_model

    read = {name for name in options if name in ReadOptions.__struct_fields__ and name != "batch"}
    files = [
        each
        for each in networks
        if isinstance(each, str) and looks_like_a_file(each) and not names_a_model(each)
    ]
    if read and not files:
        raise UsageError(
            f"{sorted(read)[0]} applies to networks in files, and none of these is a file"
        )


def _check_network_options(options: dict[str, Any], networks: Sequence[Network]) -> None:
    """Raise for an option of `analyze` if there is nothing to analyze."""
    given = [name for name in options if name != "like"]
    if given and all(_is_result(each) for each in networks):
        raise UsageError(
            f"{given[0]} does not apply to reports and runs, and there is nothing else"
        )


def _is_result(network: Network) -> bool:
    """Whether it is a report or a run, or a file that one was written to."""
    from layerscope.formats import kind_of_json
    from layerscope.report.measurement import Measurement

    if isinstance(network, str):
        return kind_of_json(network) in ("run", "report")
    return isinstance(network, (Report, Measurement))


def _time_of(
    report: Report,
    network: object,
    on: str | None,
    dtype: str | torch.dtype | None,
    progress: Progress | None = None,
) -> NetworkTime:
    """The measured time of a network, or its predicted time on a machine.

    Without a `dtype` that was asked for, a prediction chooses that of the machine.
    """
    from layerscope.report.compare import NetworkTime

    if on is not None:
        return NetworkTime.of_prediction(predict(report.graph, on=on, dtype=dtype))
    from layerscope.engines.measuring import MeasureRequest, NetworkSource
    from layerscope.engines.measuring import measure as measure_report

    need_operations(report, "--measure")
    path = network if isinstance(network, str) and network.lower().endswith(".onnx") else None
    found = measure_report(report, MeasureRequest(), NetworkSource(path, 0.0), progress)
    return NetworkTime.of_run(found.runs[0])


def read_result(path: str) -> Report | Measurement | None:
    """A report or a run that layerscope wrote to a JSON file; None for another kind of file."""
    from layerscope.formats import kind_of_json

    kind = kind_of_json(path)
    if kind == "run":
        from layerscope.export.run_json import read_file

        return read_file(path)
    if kind == "report":
        from layerscope.export.json import read_file as read_report

        return read_report(path)
    return None


def check(budget: Budget, *, measure: bool = False, on: str | None = None) -> Verdict:
    """Compare the figures of a network with its budget.

    A limit of its time needs `measure`, which times it on ONNX Runtime, or `on`, the machine that
    its time is predicted for.
    """
    from layerscope.report.budgets import judge
    from layerscope.report.quantities import named_sizes

    if measure and on is not None:
        raise UsageError("--measure cannot be combined with --on")
    shapes = budget.input
    if isinstance(shapes, (str, list)):
        texts = [shapes] if isinstance(shapes, str) else map(str, shapes)
        shapes = named_sizes(tuple(texts), "--input") or None
    report = analyze(
        budget.network,
        input=shapes,
        batch=budget.batch,
        dtype=budget.dtype,
        like=budget.like,
        tokens=budget.tokens,
        decode=budget.decode,
        **budget.reading,
    )
    time = None
    if "time" in budget.limits and (measure or on is not None):
        time = _time_of(report, budget.network, on, budget.dtype)
    return judge(report, budget, time)


def audit(
    document: str | PathLike[str] | None = None,
    *,
    text: str | None = None,
    table: int | None = None,
    against: str | PathLike[str] | Graph | Report | None = None,
    like: str | None = None,
) -> Audit:
    """The conventions of the tables in a document, and the cells that contradict them.

    - `document`: a file; `text`: the text itself.
    - `table`: the number of the one table to audit.
    - `against`: a network whose figures the tables should have.
    - `like`: the convention that figures are counted by, with `against`.
    """
    if (document is None) == (text is None):
        raise UsageError("expected either a document or a text")
    if isinstance(document, str) and "\n" in document:
        raise UsageError("the name of a document has a line end; give a text as text=…")
    _check_numbers({"table": table}, ())
    name = "text" if document is None else fspath(document)
    return audit_document(name, table, audit_check(against, like), text)


def audit_check(
    against: str | PathLike[str] | Graph | Report | None, like: str | None
) -> SheetAudit:
    """What audits one table: by itself, or against a network."""
    from layerscope.audit.check import audit_sheet
    from layerscope.conventions import CONVENTIONS

    if against is None:
        if like is not None:
            raise UsageError("like needs a network to compare with: against")
        return audit_sheet
    from layerscope.audit.against import Checker

    names = CONVENTIONS if like is None else (like,)
    rules = {name: convention(name) for name in names}
    report = against if isinstance(against, Report) else analyze(against)
    return Checker({name: replace(report, convention=each) for name, each in rules.items()})


def audit_document(
    name: str, table: int | None, check: SheetAudit, text: str | None = None
) -> Audit:
    """The audit of a file, or of a text with that name."""
    from layerscope.audit.against import Checker
    from layerscope.audit.document import audit_text
    from layerscope.documents.reader import load as read_text
    from layerscope.formats.sources import check_file

    before = check.rows if isinstance(check, Checker) else 0
    if text is None:
        check_file(name)
        try:
            text = read_text(name)
        except OSError as error:
            raise FormatError(f"{name}: {error.strerror}") from None
    found = audit_text(text, name, table, check)
    if isinstance(check, Checker) and check.rows == before:
        raise FormatError(f"{name}: no row is a layer of {check.name}, by name, kind or order")
    return found


INPUT_OPTIONS = ("input", "input_size", "input_data")
# What modules, other tools and `load` call an input, which `analyze` calls `input`.
INPUT_NAMES = ("inputs", "input_size", "input_sizes", "input_shape", "input_shapes", "input_data")


def explain(
    network: str | Graph | torch.nn.Module | Report,
    *,
    figure: str | None = None,
    counters: Sequence[str] = COUNTERS,
    **options: Any,
) -> Explanation:
    """What other counters report for a network, and the reasons for each difference.

    With a published `figure`, such as "4.11G": which counters give it at its printed precision.
    Other options are those of `analyze`.
    """
    from layerscope.report.explain import explain as explained
    from layerscope.report.figures import find, parse_figure

    wanted = None if figure is None else parse_figure(figure)
    if isinstance(counters, str):
        raise UsageError(f"counters {counters!r}: a text, expected a list of names")
    if isinstance(network, Report):
        _check_unused(options, "a Report is explained as it is")
    first = network if isinstance(network, Report) else analyze(network, **options)
    found = explained(replace(first, convention=convention("exact")), tuple(counters))

    def again(shape: Shape) -> Report:
        if isinstance(network, Report):
            return analyze(network.graph, input=shape)
        others = {name: value for name, value in options.items() if name not in INPUT_OPTIONS}
        return analyze(network, input=shape, **others)

    answer = None if wanted is None else find(found, wanted, again)
    return replace(found, answer=answer)


def measure(
    network: str | Graph,
    *,
    engine: str = "onnxruntime",
    threads: int | None = None,
    runs: int = 10,
    fusion: str = "on",
    power: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Measurement:
    """Time the layers of a network on an engine (`all`: on every installed one).

    `fusion` is on, off or both; `power` is in watts and gives the energy of a run. Other options
    are those of `analyze`. A run that ends early is returned with `complete` false.
    """
    from layerscope.engines.measuring import MeasureRequest

    request = MeasureRequest(engine, threads, runs, fusion, power)
    return measure_with_report(network, request, progress, **options)[1]


def measure_with_report(
    network: str | Graph,
    request: MeasureRequest,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[Report, Measurement]:
    """The measurement of a network, and the report of it; options are those of `analyze`."""
    from layerscope.engines.measuring import NetworkSource
    from layerscope.engines.measuring import measure as measure_report

    path = network if isinstance(network, str) and _is_onnx(network) else None
    started = monotonic()
    if progress is not None:
        progress("read the network", 0, 1)
    report = analyze(network, **options)
    source = NetworkSource(path, monotonic() - started)
    need_operations(report, "measure")
    return report, measure_report(report, request, source, progress)


def _is_onnx(network: str) -> bool:
    """Whether a network is an ONNX file, by its bytes: the engine then runs that file."""
    found = None if _is_model(network) else _recognised(network)
    return found is not None and found.format is not None and found.format.name == "onnx"


def predict(
    network: str | Graph,
    *,
    on: str | None = None,
    threads: int | None = None,
    dtype: str | torch.dtype | None = None,
    **options: Any,
) -> Prediction:
    """Predict the time of every layer on this machine, or on the machine named by `on`.

    This machine must have been calibrated (`layerscope machine --calibrate`). `dtype` is that of
    the matrix products: one of the data sheet, or of the calibration. Other options are those of
    `analyze`.
    """
    dtype = None if dtype is None else dtype_name(dtype)
    if on is None or on == "this":
        from layerscope.engines.machine import threads_of
        from layerscope.prediction.this_machine import check_dtype, predict_here

        check_dtype(dtype)
        found = analyze(network, dtype=dtype, **options)
        need_operations(found, "predict")
        check_dtype(found.float_dtype)
        return predict_here(found, "onnxruntime", threads_of(threads))
    from layerscope.prediction.other_machines import dtype_on, predict_on
    from layerscope.report.measurement import STORED_AS

    if threads is not None:
        raise UsageError(f"--threads applies to this machine, not to {on}")
    dtype_on(on, dtype, "fp32")  # raises before the network is read
    found = analyze(network, **options)
    need_operations(found, "predict")
    dtype = dtype_on(on, dtype, found.float_dtype)
    stored = STORED_AS.get(dtype, dtype)
    if stored != found.float_dtype:
        found = analyze(found.graph, dtype=stored, in_place=options.get("in_place", False))
    return predict_on(found, on, dtype)
