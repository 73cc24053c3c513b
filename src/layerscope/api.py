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
from layerscope.errors import FormatError, LayerscopeError, ShapeError, UsageError
from layerscope.graph import Graph, Shape, Tensor
from layerscope.graph.dtype_names import dtype_name, known_dtype
from layerscope.graph.edits import bind, token_inputs, token_shapes, with_cache, with_tokens
from layerscope.network_options import (
    APPLIES_TO,
    Asked,
    applies,
    check_bound,
    check_dtypes,
    check_effect,
    check_module_length,
    check_module_sizes,
    check_onnx,
    check_rules,
    check_sizes,
    formats_of,
    is_given,
)
from layerscope.ops import SPECS
from layerscope.report import Report
from layerscope.report.build import report_of
from layerscope.report.quantities import count_of, shape_of, within
from layerscope.report.training import Fit
from layerscope.report.unchanged import check_unchanged

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.engines import Progress
    from layerscope.engines.measuring import MeasureRequest
    from layerscope.formats import Recognised
    from layerscope.formats.torch.model_names import NamedModel
    from layerscope.report.budgets import Budget, Verdict
    from layerscope.report.compare import Comparison, NetworkTime
    from layerscope.report.explain import Explanation
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction

Analyzable: TypeAlias = "str | PathLike[str] | Graph | torch.nn.Module | NamedModel"
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
    from layerscope import formats

    parsed = formats.options_of(**options)
    if _is_model(network):
        others = {name: value for name, value in options.items() if name in APPLIES_TO}
        lengths = {"tokens": None, "decode": None}
        return _captured(network, parsed.inputs or None, parsed.batch, {**lengths, **others})
    found = _recognised(network)
    asked = Asked(parsed.inputs, parsed.batch, dims=parsed.dims)
    if _has_onnx_format(found):
        check_onnx(network, asked)
        return _load(network, options, found)
    graph = _load(network, options, found)
    check_sizes(graph.inputs, asked)
    check_bound(graph, asked)
    return graph


def _load(network: str, options: dict[str, Any], found: Recognised | None = None) -> Graph:
    """The network of a name or file; `found` is the file if it has been recognised already."""
    from layerscope import formats

    parsed = formats.options_of(**options)
    if found is None:
        found = _recognised(network)
    check_effect(network, options, found)
    if found is not None:
        graph = formats.read(network, parsed, found)
        if not found.binds:
            graph = bind(graph, parsed.inputs, parsed.batch)
        return graph if parsed.weights is None else check_weights(graph, parsed.weights)
    from layerscope.zoo import build

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
    if tokens is not None and decode is not None:
        raise UsageError("tokens cannot be combined with decode, which reads one token")
    numbers = {"batch": batch, "tokens": tokens, "decode": decode}
    given = {"input": input, **numbers, "dtype": dtype, "like": like, "in_place": in_place}
    return _analyze(network, {**given, **options})


def _analyze(network: Analyzable, given: Mapping[str, Any], *, agrees: bool = True) -> Report:
    """The report of a network with the options of `analyze`.

    With `agrees`, options that set a size to different values are refused; else the batch wins.
    """
    options = dict(given)
    if isinstance(network, PathLike):
        network = fspath(network)
    if isinstance(network, Report):
        raise UsageError("a Report is analyzed already; analyze its graph with other options")
    sizes, batch, tokens, decode, dtype = (
        options.pop(name, None) for name in ("input", "batch", "tokens", "decode", "dtype")
    )
    like, in_place = options.pop("like", "exact"), options.pop("in_place", False)
    _check_numbers({"batch": batch, "tokens": tokens, "decode": decode,
                    "proposals": options.get("proposals")},
                   (sizes, options.get("input_size"), options.get("dims")))  # fmt: skip
    if isinstance(network, (str, Graph)):
        _check_input_option(network, options)
    counted_by = convention(like)
    dtype = None if dtype is None else known_dtype(dtype)
    if not isinstance(network, (str, Graph)) or _is_model(network):
        if agrees:
            check_dtypes(options.get("dtypes"), dtype)
        lengths = {"tokens": tokens, "decode": decode}
        graph = _captured(network, sizes, batch, {**lengths, **options}, agrees=agrees)
        return analyze(bind(graph, dtype=dtype), like=like, in_place=in_place)
    if options and not isinstance(network, str):
        raise UsageError(f"{next(iter(options))} needs the name of a file, not a graph")
    asked = Asked(_shapes_of(sizes), batch, tokens, decode, options.get("dims") or {})
    graph = _bound(network, asked, options, agrees=agrees)
    graph = _with_length(bind(graph, dtype=dtype), asked)
    _need_shapes(graph)
    inferred = infer(graph) if not isinstance(network, str) else _inferred(network, graph)
    if not graph.own_layout and any(node.params is not None for node in graph.nodes):
        check_stored(graph, inferred)
    return report_of(graph, inferred, like=counted_by.name, in_place=in_place)


def _bound(network: str | Graph, asked: Asked, options: dict[str, Any], *, agrees: bool) -> Graph:
    """The graph of a file, a zoo network or a graph, with the shapes and the batch asked for."""
    found = _recognised(network) if isinstance(network, str) else None
    is_onnx = _has_onnx_format(found)
    if agrees and is_onnx:
        check_onnx(str(network), asked)
    if isinstance(network, str) and _binds(network, found):
        reading = {"inputs": asked.shapes, "batch": asked.batch, **options}
        graph = _load(network, reading, found)
        if agrees and not is_onnx:
            check_sizes(graph.inputs, asked)
        if asked.tokens is not None:  # the reader needs the sequence length
            shapes = {**asked.shapes, **token_shapes(graph, asked.tokens)}
            graph = _load(network, {**reading, "inputs": shapes}, found)
    else:
        graph = _load(network, options, found) if isinstance(network, str) else network
        if agrees:
            check_sizes(graph.inputs, asked)
        graph = bind(graph, asked.shapes, asked.batch)
    check_bound(graph, asked)
    return graph


def _with_length(graph: Graph, asked: Asked) -> Graph:
    """The network on a prompt of `tokens` tokens, or decoding after a cache of `decode` ones."""
    lengths = {tensor.shape[1] for tensor in token_inputs(graph) if tensor.shape}
    if asked.decode is None and asked.tokens in (None, *(lengths if len(lengths) == 1 else ())):
        return graph  # a reader may have set it already
    if graph.autograd is not None:
        raise UsageError(
            f"{graph.name}: a captured graph has a fixed sequence length; pass the model itself "
            "with tokens or decode"
        )
    if asked.tokens is not None:
        return with_tokens(graph, asked.tokens)
    return with_cache(graph, asked.decode or 0)


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
    *,
    agrees: bool = True,
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
        asked = Asked({}, batch, options.get("tokens"), options.get("decode"))
        given = options.get("input_size") if sizes is None else sizes
        check_rules(options.get("rules"))
        if agrees:
            check_module_sizes(given, asked)
        graph = graph_of(network, input=sizes, batch=batch, **options)
        if agrees:
            check_module_length(given, graph, asked)
        return graph
    length = {name: options.pop(name) for name in ("tokens", "decode")}
    check_effect(network.spec, options, None)
    other = next(iter(options), None)
    if other is not None:
        raise UsageError(f"{other} applies to modules; {network.spec} is a model name")
    shapes = _shapes_of(input)
    if agrees:
        defaults = network.defaults.items()
        inputs = [Tensor(name, shape, "int64") for name, shape in defaults]
        check_sizes(inputs, Asked(shapes, batch, **length))
    return network.graph(InputOptions(shapes, batch, **length))


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
    network: str | PathLike[str] | Graph | Report,
    memory_bytes: int,
    *,
    train: str | None = None,
    mixed: bool = False,
    checkpoint: bool = False,
    **options: Any,
) -> Fit:
    """The largest batch whose inference (or training step with optimizer `train`) fits in memory.

    Inference needs the weights, the peak of activations and the key-value cache if there is one. A
    Report stands for its graph, in-place if it is counted so. Other options are those of `analyze`.
    """
    if count_of(memory_bytes, "memory") < 1:
        raise UsageError(f"memory of {memory_bytes} bytes, expected at least 1")
    if train is None and (mixed or checkpoint):
        raise UsageError(f"{'mixed' if mixed else 'checkpoint'} needs train, the optimizer")
    if options.get("batch") is not None:
        raise UsageError("batch is what fit finds")
    options.pop("batch", None)
    if isinstance(network, Report):
        options = {"in_place": network.memory.in_place, **options}
        network = network.graph
    network = fspath(network) if isinstance(network, PathLike) else network
    source: str | Graph | NamedModel = network
    if _is_model(network):
        from layerscope.formats.torch.model_names import find

        source = find(str(network))  # built once, captured for every batch
    elif isinstance(network, str):
        found = _recognised(network)
        if not _binds(network, found):
            reading = {name: options.pop(name) for name in APPLIES_TO if name in options}
            source = _load(network, reading, found)
    if sum(is_given(options.get(name)) for name in ("input", "tokens", "decode", "dims")) > 1:
        _analyze(source, options)  # raises if they contradict each other

    def analyzed(batch: int) -> Report:
        try:
            return _analyze(source, {**options, "batch": batch}, agrees=False)
        except ShapeError as error:
            raise _fixed_batch(source, options, error) from None

    def needed(batch: int) -> tuple[int, bool]:
        """Bytes of a batch, and whether they are all of them."""
        report = analyzed(batch)
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


def _fixed_batch(source: Analyzable, options: Mapping[str, Any], error: ShapeError) -> ShapeError:
    """The error of a batch that a network does not accept: with a hint, if it accepts its own."""
    try:
        own = _analyze(source, options)
    except LayerscopeError:
        return error
    works = "give a network of any batch, such as an ONNX file with a symbolic batch"
    if own.graph.autograd is not None:
        works = "pass the model itself, which is captured for every batch"
    return ShapeError(
        f"{error}; the batch of {own.name} is fixed at {own.batch}, and --fit tries others: {works}"
    )


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

    A Report or a Measurement is compared as it is, and options apply to the other networks. Files
    that layerscope wrote take `like`, and refuse options that would change them. With `measure` the
    networks are timed on ONNX Runtime, with `on` their time is predicted for that machine, all in
    one dtype. Options for readers of files apply to the files of their formats only; modules take
    the same `input_size` or `input_data`, or are given as Reports of `analyze`.
    """
    from layerscope.report.compare import compare as compared
    from layerscope.report.measurement import Measurement

    if measure and on is not None:
        raise UsageError("--measure cannot be combined with --on")
    options = {name: value for name, value in options.items() if is_given(value)}
    networks = [fspath(each) if isinstance(each, PathLike) else each for each in (first, *others)]
    if all(isinstance(each, (Report, Measurement)) for each in networks):
        _check_unused(options, "Reports and Measurements are compared as they are")
    _check_network_options(options, networks)
    _check_reader_options(options, networks)
    subjects = [_subject(each, options) for each in networks]
    reports = [report for report, _ in subjects]
    times = [time for _, time in subjects]
    dtype = _common_dtype(on, options.get("dtype"), networks, subjects)
    for n, report in enumerate(reports):
        if (measure or on is not None) and times[n] is None:
            times[n] = _time_of(report, networks[n], on, dtype, progress)
    return compared(reports, times if any(times) else ())


Subject: TypeAlias = "tuple[Report, NetworkTime | None]"


def _subject(network: Network, options: dict[str, Any]) -> Subject:
    """The report of a network to compare, and its time if it was measured."""
    from layerscope.report.compare import NetworkTime
    from layerscope.report.measurement import Measurement

    saved = read_result(network) if isinstance(network, str) else None
    if saved is not None:
        report, time = _subject(saved, {})
        check_unchanged(str(network), report, options, _shapes_of(options.get("input")))
        like = options.get("like", report.convention.name)
        return replace(report, convention=convention(like)), time
    if isinstance(network, Report):
        return network, None
    if isinstance(network, Measurement):
        return network.report, NetworkTime.of_measurement(network)
    if isinstance(network, (str, Graph)):
        _check_input_option(network, options)
    options = {name: value for name, value in options.items() if _applies(network, name)}
    return analyze(network, **options), None


def _common_dtype(
    on: str | None,
    asked: str | torch.dtype | None,
    networks: Sequence[Network],
    subjects: Sequence[Subject],
) -> str | None:
    """The dtype that all times of a comparison are predicted in; raises if there are several."""
    dtype = None if asked is None else dtype_name(asked)
    if on is None or on == "this":
        return dtype
    from layerscope.prediction.other_machines import dtype_on

    found: dict[str, str] = {}  # dtype -> a network that is predicted in it
    for network, (report, time) in zip(networks, subjects, strict=True):
        if time is None:
            name = network if isinstance(network, str) else report.name
            found.setdefault(dtype_on(on, dtype, report.float_dtype), name)
    if len(found) > 1:
        listed = " and ".join(f"{each} for {name}" for each, name in found.items())
        fixed = {report.float_dtype for network, (report, _) in zip(networks, subjects, strict=True)
                 if _is_result(network)} or {min(found)}  # fmt: skip
        works = "write the reports again with one --dtype"
        if len(fixed) == 1:
            works = f"give --dtype {min(fixed)}"
        raise UsageError(
            f"--on {on}: times would be predicted in {listed}, and a comparison needs one dtype; "
            f"{works}"
        )
    return next(iter(found), None)


def _check_unused(options: Mapping[str, Any], why: str) -> None:
    """Raise for an option that would have no effect."""
    unused = next((name for name, value in options.items() if is_given(value)), None)
    if unused is not None:
        raise UsageError(f"{unused} has no effect: {why}")


def _applies(network: Network, name: str) -> bool:
    """Whether an option of `analyze` applies to a network that is compared."""
    if name not in APPLIES_TO:
        return True
    if not isinstance(network, str) or _is_result(network):
        return False
    return applies(network, name, None if _is_model(network) else _recognised(network))


def _check_reader_options(options: dict[str, Any], networks: Sequence[Network]) -> None:
    """Raise for an option of file readers that applies to none of the networks."""
    for name in APPLIES_TO:
        if name in options and not any(_applies(each, name) for each in networks):
            formats = " or ".join(formats_of(name))
            raise UsageError(
                f"{name} has no effect: it applies to files of the format {formats}, and none of "
                "the networks is one"
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
    names = tuple(dict.fromkeys(counters))
    found = explained(replace(first, convention=convention("exact")), names)

    def again(shape: Shape) -> Report:
        if isinstance(network, Report):
            return analyze(network.graph, input=shape)
        others = {name: value for name, value in options.items() if name not in INPUT_OPTIONS}
        return _analyze(network, {**others, "input": shape}, agrees=False)

    answer = None if wanted is None else find(found, wanted, again)
    return replace(found, answer=answer)


def measure(
    network: str | Graph | Report,
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
    are those of `analyze`; a Report takes none. A run that ends early is returned with `complete`
    false.
    """
    from layerscope.engines.measuring import MeasureRequest

    request = MeasureRequest(engine, threads, runs, fusion, power)
    return measure_with_report(network, request, progress, **options)[1]


def measure_with_report(
    network: str | Graph | Report,
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
    report = _exact_report(network, options, "measured")
    source = NetworkSource(path, monotonic() - started)
    need_operations(report, "measure")
    return report, measure_report(report, request, source, progress)


def _is_onnx(network: str) -> bool:
    """Whether a network is an ONNX file, by its bytes: the engine then runs that file."""
    return not _is_model(network) and _has_onnx_format(_recognised(network))


def _has_onnx_format(found: Recognised | None) -> bool:
    """Whether a file has been recognised as an ONNX model."""
    return found is not None and found.format is not None and found.format.name == "onnx"


def _exact_report(network: Analyzable | Report, options: Mapping[str, Any], what: str) -> Report:
    """The exact report of a network; a Report is used as it is, and takes no options."""
    if not isinstance(network, Report):
        return analyze(network, **options)
    _check_unused(options, f"a Report is {what} as it is")
    return replace(network, convention=convention("exact"))


def predict(
    network: str | Graph | Report,
    *,
    on: str | None = None,
    threads: int | None = None,
    dtype: str | torch.dtype | None = None,
    **options: Any,
) -> Prediction:
    """Predict the time of every layer on this machine, or on the machine named by `on`.

    This machine must have been calibrated (`layerscope machine --calibrate`). `dtype` is that of
    the matrix products: one of the data sheet, or of the calibration. Other options are those of
    `analyze`; a Report takes none of these.
    """
    dtype = None if dtype is None else dtype_name(dtype)
    if on is None or on == "this":
        from layerscope.engines.machine import threads_of
        from layerscope.prediction.this_machine import check_dtype, predict_here

        check_dtype(dtype)
        own = _exact_report(network, options, "predicted")
        found = own if dtype in (None, own.float_dtype) else _in_dtype(own, dtype)
        need_operations(found, "predict")
        check_dtype(found.float_dtype)
        return predict_here(found, "onnxruntime", threads_of(threads))
    from layerscope.prediction.other_machines import dtype_on, predict_on
    from layerscope.report.measurement import STORED_AS

    if threads is not None:
        raise UsageError(f"--threads applies to this machine, not to {on}")
    dtype_on(on, dtype, "fp32")  # raises before the network is read
    found = _exact_report(network, options, "predicted")
    need_operations(found, "predict")
    dtype = dtype_on(on, dtype, found.float_dtype)
    stored = STORED_AS.get(dtype, dtype)
    if stored != found.float_dtype:
        found = _in_dtype(found, stored)
    return predict_on(found, on, dtype)


def _in_dtype(report: Report, dtype: str) -> Report:
    """The report of the same network in another dtype."""
    return analyze(report.graph, dtype=dtype, in_place=report.memory.in_place)
