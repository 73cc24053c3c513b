"""The stages joined: load a network, analyze it. The only file that calls every stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerscope.analysis.costs import costs
from layerscope.analysis.fields import Fields
from layerscope.analysis.memory import liveness
from layerscope.analysis.shapes import Shapes, infer
from layerscope.analysis.stored import check_stored
from layerscope.conventions import COUNTERS, convention
from layerscope.errors import FormatError, ShapeError, UsageError
from layerscope.graph import DTYPE_BITS, Graph, Shape
from layerscope.graph.edits import bind, token_shapes, with_cache, with_tokens
from layerscope.ops import SPECS
from layerscope.report.quantities import count_of, shape_of, within
from layerscope.report.training import Fit
from layerscope.report.types import Report
from layerscope.version import __version__

if TYPE_CHECKING:
    from layerscope.engines import Progress
    from layerscope.engines.measuring import MeasureRequest
    from layerscope.formats import Recognised
    from layerscope.report.compare import Comparison
    from layerscope.report.explain import Explanation
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction

Input = Sequence[int] | str | Mapping[str, Sequence[int] | str]  # (1, 3, 224, 224), "3x224x224"


def load(network: str, **options: Any) -> Graph:
    """The network of that zoo name, or in that file; options are those of its format."""
    return _load(network, options)


def _load(network: str, options: dict[str, Any], found: Recognised | None = None) -> Graph:
    """The network of a name or file; `found` is the file if it has been recognised already."""
    from layerscope import formats

    told = formats.options_of(**options)
    if found is not None or formats.looks_like_a_file(network):
        graph = formats.read(network, told, found)
        return graph if told.weights is None else check_weights(graph, told.weights)
    from layerscope.zoo import build

    other = [name for name in options if name not in ("inputs", "batch")]
    if other and replace(told, inputs={}, batch=None) != formats.DEFAULTS:
        raise UsageError(f"{other[0]} is of networks in files, {network} is of the zoo")
    graph = build(network, told.inputs) if told.inputs else build(network)
    return bind(graph, told.inputs, told.batch)


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
    """A graph with the arrays of a file, which must have the shapes that its layers need.

    Layers without any keep what they would have, as in Caffe, and a note says which they are.
    """
    missing = check_stored(graph, infer(graph), path)
    if not missing:
        return graph
    if not any(node.params for node in graph.nodes):
        raise FormatError(f"{path}: weights of no layer of {graph.name}; is it of this network?")
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    note = f"no weights in {path} for {', '.join(missing[:5])}{more}"
    return replace(graph, notes=(*graph.notes, note))


def analyze(
    network: Any,
    *,
    input: Input | None = None,
    batch: int | None = None,
    dtype: Any = None,
    like: str = "exact",
    in_place: bool = False,
    tokens: int | None = None,
    decode: int | None = None,
    **options: Any,
) -> Report:
    """The per-layer account of a network, counted by the convention `like`.

    A network is a name, a file, a Graph or a PyTorch module; `tokens` reads so many at once,
    `decode` reads one after a cache of so many. Other options are those of `load`, or with a module
    `input_size`, `input_data`, `dtypes`, `rules`, `real`. `dtype` is a name or a dtype of PyTorch.
    """
    if tokens is not None and decode is not None:
        raise UsageError("tokens does not go with decode, which is of one token")
    numbers = {"batch": batch, "tokens": tokens, "decode": decode}
    _check_numbers({**numbers, "proposals": options.get("proposals")},
                   (input, options.get("input_size"), options.get("dims")))  # fmt: skip
    counted_by = convention(like)
    if dtype is not None and dtype not in DTYPE_BITS:
        from layerscope.formats.torch.dtypes import dtype_name

        dtype = dtype_name(dtype)
    if not isinstance(network, (str, Graph)) or _is_model(network):
        graph = _captured(network, input, batch, {"tokens": tokens, "decode": decode, **options})
        return analyze(bind(graph, dtype=dtype), like=like, in_place=in_place)
    if options and not isinstance(network, str):
        raise UsageError(f"{next(iter(options))} goes with the name of a file, not with a graph")
    shapes = _shapes_of(input)
    found = _recognised(network) if isinstance(network, str) else None
    if isinstance(network, str) and _binds(network, found):
        graph = _load(network, {"inputs": shapes, "batch": batch, **options}, found)
        if tokens is not None:  # the reader must know the length
            shapes = {**shapes, **token_shapes(graph, tokens)}
            graph = _load(network, {"inputs": shapes, "batch": batch, **options}, found)
            tokens = None
        graph = bind(graph, dtype=dtype)
    else:
        graph = _load(network, options, found) if isinstance(network, str) else network
        graph = bind(graph, shapes, batch, dtype)
    if graph.autograd is not None and (tokens is not None or decode is not None):
        raise UsageError(
            f"{graph.name}: the graph of a captured model is of the length that it was captured "
            "at; give the model again, with tokens or decode"
        )
    graph = graph if tokens is None else with_tokens(graph, tokens)
    graph = graph if decode is None else with_cache(graph, decode)
    _need_shapes(graph)
    inferred = infer(graph) if not isinstance(network, str) else _inferred(network, graph)
    if not graph.own_layout and any(node.params is not None for node in graph.nodes):
        check_stored(graph, inferred)
    return Report(
        graph=graph,
        shapes=inferred,
        costs=costs(graph, inferred),
        fields=Fields(graph, inferred),
        memory=liveness(graph, inferred, in_place=in_place),
        convention=counted_by,
        version=__version__,
    )


def _is_model(network: Any) -> bool:
    """Whether a network is a PyTorch model by its name."""
    from layerscope import formats

    return isinstance(network, str) and formats.names_a_model(network)


def _shapes_of(input: Input | None) -> dict[str, Shape]:
    """Shapes of inputs by name; "" is the first."""
    if input is None:
        return {}
    if isinstance(input, Mapping):
        return {name: shape_of(shape, f"input {name}") for name, shape in input.items()}
    return {"": shape_of(input, "input")}


def _check_numbers(counts: Mapping[str, Any], sizes: Any) -> None:
    """Raise for a number above 2^63 - 1, in whatever form sizes of inputs are given."""
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


def _captured(network: Any, input: Any, batch: int | None, options: dict[str, Any]) -> Graph:
    """The graph of a live module or of a model by name."""
    from layerscope.formats.torch.model_names import InputOptions, NamedModel, find

    if isinstance(network, str):
        network = find(network)
    if not isinstance(network, NamedModel):
        from layerscope.formats.torch.frontend import graph_of

        return graph_of(network, input=input, batch=batch, **options)
    length = {name: options.pop(name) for name in ("tokens", "decode")}
    other = next(iter(options), None)
    if other is not None:
        raise UsageError(f"{other} is of networks in files, {network.spec} is a model by name")
    return network.graph(InputOptions(_shapes_of(input), batch, **length))


def _inferred(network: str, graph: Graph) -> Shapes:
    """Shapes of a network; of one of the zoo, an error says which images it takes."""
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
        raise ShapeError(f"{error}; it takes images from {side}x{side} on") from None


def _need_shapes(graph: Graph) -> None:
    """Raise where a file leaves the shape of an input open that a known op reads."""
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
    """Raise for a file of weights, where a command needs what is done with them."""
    nodes = found.graph.nodes
    if nodes and all(node.op == "weights" for node in nodes):
        raise UsageError(
            f"{found.name}: a file of weights tells no operations, which {what} needs; give the "
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
    """The largest batch whose training step (or, without `train`, inference) fits in memory.

    Inference holds the weights, the peak of activations and a cache of keys and values if there is
    one; other options are those of `analyze`.
    """
    if within(memory_bytes, "memory") < 1:
        raise UsageError(f"memory of {memory_bytes} bytes, expected at least 1")
    source: Any = network
    if _is_model(network):
        from layerscope.formats.torch.model_names import find

        source = find(str(network))  # built once, captured for every batch
    elif isinstance(network, str):
        found = _recognised(network)
        source = network if _binds(network, found) else _load(network, {}, found)

    def needed(batch: int) -> int:
        report = analyze(source, batch=batch, **options)
        if train is None:
            held = report.totals.param_bytes + report.totals.peak_activation_bytes
            return held + report.cache_bytes
        return report.training(train, mixed=mixed, checkpoint=checkpoint).total_bytes

    high = 1
    while high < MOST_BATCH and needed(high) <= memory_bytes:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) <= memory_bytes else (low, middle)
    return Fit(low, needed(low) if low else 0, needed(high), memory_bytes)


MOST_BATCH = 2**40  # a network whose memory does not grow with the batch would fit forever


def compare(
    first: str | Graph | Report, *others: str | Graph | Report, **options: Any
) -> Comparison:
    """Networks against the first one; options are those of `analyze`, for all but reports.

    What only readers of files are told, they alone are.
    """
    from layerscope.formats import ReadOptions, looks_like_a_file, names_a_model
    from layerscope.report.compare import compare as compared

    networks = (first, *others)
    read = {name for name in options if name in ReadOptions.__struct_fields__ and name != "batch"}
    files = [
        each
        for each in networks
        if isinstance(each, str) and looks_like_a_file(each) and not names_a_model(each)
    ]
    if read and not files:
        raise UsageError(f"{sorted(read)[0]} is of networks in files, and none of these is one")
    plain = {name: value for name, value in options.items() if name not in read}
    reports = [
        each if isinstance(each, Report) else analyze(each, **(options if each in files else plain))
        for each in networks
    ]
    return compared(reports)


GIVEN = ("input", "input_size", "input_data")


def explain(
    network: Any, *, figure: str | None = None, counters: Sequence[str] = COUNTERS, **options: Any
) -> Explanation:
    """What other counters would say of a network, and why; options are those of `analyze`.

    With a `figure` as published, such as "4.11G", which of them give it at its printed precision.
    """
    from layerscope.report.explain import explain as explained
    from layerscope.report.figures import find, parse_figure

    wanted = None if figure is None else parse_figure(figure)
    first = network if isinstance(network, Report) else analyze(network, **options)
    found = explained(replace(first, convention=convention("exact")), tuple(counters))

    def again(shape: Shape) -> Report:
        if isinstance(network, Report):
            return analyze(network.graph, input=shape)
        told = {name: value for name, value in options.items() if name not in GIVEN}
        return analyze(network, input=shape, **told)

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
    """Times of a network's layers on an engine (`all`: on every one installed), beside the roofs.

    `fusion` is on, off or both; `power` are watts that are assumed. Other options are those of
    `analyze`. A run that ends early is kept and marked.
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

    path = network if isinstance(network, str) and network.lower().endswith(".onnx") else None
    started = monotonic()
    report = analyze(network, **options)
    source = NetworkSource(path, monotonic() - started)
    need_operations(report, "measure")
    return report, measure_report(report, request, source, progress)


def predict(
    network: str | Graph,
    *,
    on: str | None = None,
    threads: int | None = None,
    dtype: str | None = None,
    **options: Any,
) -> Prediction:
    """What every layer would take on this machine once it is calibrated, or on a known one.

    `dtype` is that of the products; a known machine has those of its data sheet, this one those it
    was calibrated in. Other options are those of `analyze`.
    """
    if on is None or on == "this":
        from layerscope.engines.machine import threads_of
        from layerscope.prediction.this_machine import check_dtype, predict_here

        check_dtype(dtype)
        found = analyze(network, dtype=dtype, **options)
        need_operations(found, "predict")
        check_dtype(found.float_dtype)
        return predict_here(found, "onnxruntime", threads_of(threads))
    from layerscope.prediction.other_machines import STORED_AS, dtype_on, predict_on

    if threads is not None:
        raise UsageError(f"--threads is of this machine, not of {on}")
    dtype_on(on, dtype, "fp32")  # refuses before a network is read
    found = analyze(network, **options)
    need_operations(found, "predict")
    dtype = dtype_on(on, dtype, found.float_dtype)
    stored = STORED_AS.get(dtype, dtype)
    if stored != found.float_dtype:
        found = analyze(found.graph, dtype=stored, in_place=options.get("in_place", False))
    return predict_on(found, on, dtype)
