"""Networks in any form, read and counted: `load` and `analyze`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from os.path import isfile, join
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from layerscope.analysis.shapes import Shapes, infer
from layerscope.analysis.stored import check_stored
from layerscope.api.options import (
    APPLIES_TO,
    Asked,
    check_bound,
    check_dtypes,
    check_effect,
    check_module_length,
    check_module_sizes,
    check_onnx,
    check_rules,
    check_sizes,
)
from layerscope.conventions import convention
from layerscope.errors import FormatError, ShapeError, UsageError
from layerscope.graph import Graph, Shape, Tensor
from layerscope.graph.dtype_names import known_dtype
from layerscope.graph.edits import bind, token_inputs, token_shapes, with_cache, with_tokens
from layerscope.ops import SPECS
from layerscope.report import Report
from layerscope.report.build import report_of
from layerscope.report.quantities import count_of, shape_of, within

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.formats import Recognised
    from layerscope.formats.torch.named_model import NamedModel

Analyzable: TypeAlias = "str | PathLike[str] | Graph | torch.nn.Module | NamedModel"


Input = Sequence[int] | str | Mapping[str, Sequence[int] | str]  # (1, 3, 224, 224), "3x224x224"


# What modules, other tools and `load` call an input, which `analyze` calls `input`.
INPUT_NAMES = ("inputs", "input_size", "input_sizes", "input_shape", "input_shapes", "input_data")


def load(network: str | PathLike[str], **options: Any) -> Graph:
    """The graph of a zoo network or a file.

    Options of the readers: `phase`, `proposals`, `weights`, `keep_going`, `inputs`, `dims`,
    `batch`.
    """
    if isinstance(network, PathLike):
        network = fspath(network)
    if not isinstance(network, str):
        raise UsageError(f"a {type(network).__name__}, expected the name of a network or file")
    network = of_folder(network)
    from layerscope import formats

    parsed = formats.options_of(**options)
    if is_model(network):
        others = {name: value for name, value in options.items() if name in APPLIES_TO}
        lengths = {"tokens": None, "decode": None}
        return _captured(network, parsed.inputs or None, parsed.batch, {**lengths, **others})
    found = recognised(network)
    asked = Asked(parsed.inputs, parsed.batch, dims=parsed.dims)
    if has_onnx_format(found):
        check_onnx(network, asked)
        return load_graph(network, options, found)
    graph = load_graph(network, options, found)
    check_sizes(graph.inputs, asked)
    check_bound(graph, asked)
    return graph


def load_graph(network: str, options: dict[str, Any], found: Recognised | None = None) -> Graph:
    """The network of a name or file; `found` is the file if it has been recognised already."""
    from layerscope import formats

    parsed = formats.options_of(**options)
    if found is None:
        found = recognised(network)
    check_effect(network, options, found)
    if found is not None:
        graph = formats.read(network, parsed, found)
        if not found.binds:
            graph = bind(graph, parsed.inputs, parsed.batch)
        return graph if parsed.weights is None else check_weights(graph, parsed.weights)
    from layerscope.zoo import build

    graph = build(network, parsed.inputs) if parsed.inputs else build(network)
    return bind(graph, parsed.inputs, parsed.batch)


def recognised(network: str) -> Recognised | None:
    """The file of a network, recognised but not read; None for a network of the zoo."""
    from layerscope import formats

    return formats.recognise_file(network) if formats.looks_like_a_file(network) else None


def has_onnx_format(found: Recognised | None) -> bool:
    """Whether a file has been recognised as an ONNX model."""
    return found is not None and found.format is not None and found.format.name == "onnx"


def takes_sizes(network: str, found: Recognised | None) -> bool:
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
    return analyze_with(network, {**given, **options})


def analyze_with(network: Analyzable, given: Mapping[str, Any], *, agrees: bool = True) -> Report:
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
    if isinstance(network, str):
        network = of_folder(network)
        network = network if (tokens, decode) == (None, None) else with_layers(network)
    check_numbers({"batch": batch, "tokens": tokens, "decode": decode,
                    "proposals": options.get("proposals")},
                   (sizes, options.get("input_size"), options.get("dims")))  # fmt: skip
    if isinstance(network, (str, Graph)):
        check_input_option(network, options)
    counted_by = convention(like)
    dtype = None if dtype is None else known_dtype(dtype)
    file = ""  # or zoo network
    if not isinstance(network, (str, Graph)) or is_model(network):
        if agrees:
            check_dtypes(options.get("dtypes"), dtype)
        lengths = {"tokens": tokens, "decode": decode}
        graph = _captured(network, sizes, batch, {**lengths, **options}, agrees=agrees)
        graph = graph if dtype is None else bind(graph, dtype=dtype)
    elif options and not isinstance(network, str):
        raise UsageError(f"{next(iter(options))} needs the name of a file, not a graph")
    else:
        asked = Asked(shapes_of(sizes), batch, tokens, decode, options.get("dims") or {})
        graph = _bound(network, asked, options, agrees=agrees)
        graph = _with_length(bind(graph, dtype=dtype), asked)
        file = network if isinstance(network, str) else ""
    _need_shapes(graph)
    inferred = _inferred(file, graph) if file else infer(graph)
    if not graph.own_layout and any(node.params is not None for node in graph.nodes):
        check_stored(graph, inferred)
    return report_of(graph, inferred, like=counted_by.name, in_place=in_place)


def _bound(network: str | Graph, asked: Asked, options: dict[str, Any], *, agrees: bool) -> Graph:
    """The graph of a file, a zoo network or a graph, with the shapes and the batch asked for."""
    found = recognised(network) if isinstance(network, str) else None
    is_onnx = has_onnx_format(found)
    if agrees and is_onnx:
        check_onnx(str(network), asked)
    if isinstance(network, str) and takes_sizes(network, found):
        reading = {"inputs": asked.shapes, "batch": asked.batch, **options}
        graph = load_graph(network, reading, found)
        if agrees and not is_onnx:
            check_sizes(graph.inputs, asked)
        if asked.tokens is not None:  # the reader needs the sequence length
            shapes = {**asked.shapes, **token_shapes(graph, asked.tokens)}
            graph = load_graph(network, {**reading, "inputs": shapes}, found)
    else:
        graph = load_graph(network, options, found) if isinstance(network, str) else network
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


def of_folder(network: str) -> str:
    """A folder with a config.json as the model of transformers in it; names of the zoo precede."""
    from layerscope.zoo import NAMES

    is_one = network not in NAMES and isfile(join(network, "config.json"))
    return f"hf:{network}" if is_one else network


def with_layers(network: str) -> str:
    """A GGUF file, which has arrays alone, as the model that its metadata describe."""
    is_file = network.lower().endswith(".gguf") and not network.startswith("hf:")
    return f"hf:{network}" if is_file else network


def is_model(network: object) -> bool:
    """Whether a network is the name of a PyTorch model."""
    from layerscope import formats

    return isinstance(network, str) and formats.names_a_model(network)


def check_input_option(network: str | Graph, options: Mapping[str, Any]) -> None:
    """Raise for a name that other functions have for `input`."""
    other = next((name for name in options if name in INPUT_NAMES), None)
    if other is not None:
        name = network if isinstance(network, str) else network.name
        raise UsageError(
            f"{other}: the input shape of {name} is given as input=, such as "
            "input=(1, 3, 224, 224), or input={'data': (1, 3, 224, 224)} for an input by name"
        )


def shapes_of(input: Input | None) -> dict[str, Shape]:
    """Input shapes by name; "" stands for the first input."""
    if input is None:
        return {}
    if isinstance(input, Mapping):
        return {name: shape_of(shape, f"input {name}") for name, shape in input.items()}
    return {"": shape_of(input, "input")}


def check_numbers(counts: Mapping[str, object], sizes: object) -> None:
    """Raise for a number above 2^63 - 1, in any nesting of input sizes."""
    for name, value in counts.items():
        if value is not None:
            count_of(value, name)
    waiting = [sizes]
    while waiting:
        each = waiting.pop()
        if isinstance(each, int):
            within(each, "input")
        elif isinstance(each, (list, tuple)):
            waiting += each
        elif each is not None and isinstance(each, Mapping):  # slow for other types
            waiting += each.values()


def _captured(
    network: str | torch.nn.Module | NamedModel,
    input: Input | None,
    batch: int | None,
    options: dict[str, Any],
    *,
    agrees: bool = True,
) -> Graph:
    """The captured graph of a module or of a named model."""
    from layerscope.formats.torch.named_model import InputOptions, NamedModel

    if isinstance(network, str):
        from layerscope.formats.torch.model_names import find

        network = find(network)
    if not isinstance(network, NamedModel):
        from layerscope.formats.torch.frontend import graph_of

        sizes: object = input
        if isinstance(input, (str, Mapping)):  # as text, or by name; "" is the first input
            shapes = shapes_of(input)
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
    shapes = shapes_of(input)
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
