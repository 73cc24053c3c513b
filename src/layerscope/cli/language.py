"""Options of `show` for language models: formats of weights and cache, and the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

from layerscope.cli.network import NetworkOptions, names_in
from layerscope.errors import UnknownName, UsageError
from layerscope.report.quantities import real, whole

if TYPE_CHECKING:
    from layerscope.export.language_lines import LanguageResults
    from layerscope.llm.devices import Parallelism
    from layerscope.report.generation import GenerationTimes

Command = TypeVar("Command", bound=Callable[..., object])
FORMS = ("text", "markdown", "json")
GENERATION_OPTIONS = (
    "on", "batch", "tokens", "decode", "dtype", "batches", "weight_dtype", "cache_dtype",
    "sort", "top", "no_stamp", "what", "theme",
)  # fmt: skip
PARALLEL = {"tp": "tensor", "pp": "pipeline", "ep": "expert"}
MOST_DEVICES = 1 << 20
OWN_TYPES = "--weight-dtype: {} has the types of its weights"
DEFAULT_TOKENS = 128  # of a configuration without --tokens and --decode


class LanguageOptions(TypedDict):
    """What `language_options` adds to a command, and `--runtime`, `--fit` and `--parallel`."""

    runtime: float | str | None
    fit: str | None
    weight_dtype: str | None
    cache_dtype: str | None
    parallel: str | None


class LanguageRequest(TypedDict):
    """What is asked about a language model."""

    program: str
    weights: str | None
    cache: str | None


class MemoryOptions(NetworkOptions, LanguageOptions):
    """Options that the memory of a language model depends on."""


class GenerationOptions(NetworkOptions):
    """Options that the times of a language model depend on."""

    on: str | None
    batches: str | None
    weight_dtype: str | None
    cache_dtype: str | None


class RuntimeParam(click.ParamType):  # type: ignore[type-arg]
    """Seconds, or the name of a program that runs language models."""

    name = "runtime"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """The seconds as a number; a name as it is, in lower case."""
        if isinstance(value, float):
            return value
        text = str(value)
        if text[:1].isalpha() and text.lower() not in ("nan", "inf", "infinity"):
            from layerscope.llm.runtimes import runtime

            runtime(text.lower())
            return text.lower()
        return real(text, "--runtime")


RUNTIME = RuntimeParam()
FORMATS = names_in("llm.block_formats:FORMATS")


def language_options(command: Command) -> Command:
    """Add --weight-dtype and --cache-dtype."""
    for option in (
        click.option(
            "--cache-dtype",
            metavar="TYPE",
            shell_complete=FORMATS,
            help="Language models: format of the cache, such as fp8 or q8_0; K,V for two formats.",
        ),
        click.option(
            "--weight-dtype",
            metavar="TYPE",
            shell_complete=FORMATS,
            help="Language models: format of the weights, such as q4_0, q4_k, mxfp4, nf4, awq.",
        ),
    ):
        command = option(command)
    return command


def parallel_option(command: Command) -> Command:
    """Add --parallel."""
    return click.option(
        "--parallel",
        metavar="tp=N,pp=N,ep=N",
        help="Language models: bytes of each device under tensor, pipeline and expert parallelism.",
    )(command)


def batches_option(command: Command) -> Command:
    """Add --batches."""
    return click.option(
        "--batches",
        metavar="N,N",
        help="Language models: a row for each of these batch sizes, such as 1,8,64.",
    )(command)


def parallelism(text: str) -> Parallelism:
    """Numbers of parts from tp=8,pp=2,ep=4."""
    from layerscope.llm.devices import Parallelism

    found: dict[str, int] = {}
    for part in text.split(","):
        name, sign, number = part.strip().partition("=")
        if name not in PARALLEL or not sign:
            raise UsageError(f"--parallel {text}: {part!r}, expected tp=N, pp=N or ep=N")
        if PARALLEL[name] in found:
            raise UsageError(f"--parallel {text}: {name} is given twice")
        count = whole(number, "--parallel")
        if not 1 <= count <= MOST_DEVICES:
            raise UsageError(f"--parallel {part.strip()}, expected 1 to {MOST_DEVICES:,}")
        found[PARALLEL[name]] = count
    return Parallelism(**found)


def is_weight_file(network: str) -> bool:
    """Whether NET is a GGUF file, whose table is that of its arrays."""
    return network.lower().endswith(".gguf") and not network.startswith("hf:")


def is_language_model(network: str) -> bool:
    """Whether NET is a configuration or a GGUF file of a language model with a description."""
    if not network.startswith("hf:") and not network.lower().endswith(".gguf"):
        return False
    from layerscope.llm.account import read_language_model

    try:
        read_language_model(network)
    except UnknownName:
        return False
    return True


def generation(network: str, machine: str, options: GenerationOptions) -> GenerationTimes:
    """The times of a prompt and of a token; options that they do not depend on are refused."""
    from layerscope.api.generating import predict_generation, steps_of

    for name, value in options.items():
        if name not in GENERATION_OPTIONS and value not in (None, (), False):
            option = {"inputs": "input", "dims": "dim"}.get(name, name).replace("_", "-")
            raise UsageError(f"--{option} does not apply to the times of a language model")
    if options["batches"] is not None and options["batch"] is not None:
        raise UsageError("--batch and --batches, expected one of them")
    batches = [options["batch"] or 1]
    if options["batches"] is not None:
        batches = [whole(text.strip(), "--batches") for text in options["batches"].split(",")]
    weights = options["weight_dtype"] or options["dtype"] or "bf16"
    if options["weight_dtype"] and network.lower().endswith(".gguf"):
        raise UsageError(OWN_TYPES.format(network))
    steps = steps_of(options["tokens"], options["decode"], batches)
    formats = weights, options["cache_dtype"] or "f16"
    return predict_generation(network, steps, on=machine, formats=formats)


def asked(
    network: str,
    form: str,
    options: LanguageOptions,
    *,
    train: str | None = None,
    inputs: tuple[str, ...] = (),
) -> LanguageRequest | None:
    """What is asked about a language model, None if nothing is; `runtime` is then seconds.

    `--fit` alone asks it where the network is one, unless it is for a training step or for inputs
    of given shapes.
    """
    runtime = options["runtime"]
    program = runtime if isinstance(runtime, str) else ""
    if program:
        options["runtime"] = None
    if options["parallel"] is not None:
        parallelism(options["parallel"])  # raises
    names = {
        "--runtime": program,
        "--weight-dtype": options["weight_dtype"],
        "--cache-dtype": options["cache_dtype"],
        "--parallel": options["parallel"],
    }
    given = [name for name, value in names.items() if value]
    if given and train is not None:
        raise UsageError(f"{given[0]} cannot be combined with --train")
    if given and inputs:
        raise UsageError(f"{given[0]} cannot be combined with --input; give --tokens or --decode")
    fits = options["fit"] is not None and train is None
    if not given:
        is_asked = fits and not inputs and is_language_model(network)
        return {"program": "", "weights": None, "cache": None} if is_asked else None
    is_file = is_weight_file(network)
    if network.lower().endswith(".gguf") and options["weight_dtype"]:
        raise UsageError(OWN_TYPES.format(network))
    if not network.startswith("hf:") and not is_file:
        what = f"{given[0]} {program}".strip() if given[0] == "--runtime" else given[0]
        raise UsageError(
            f"{what} needs a language model, as hf:config.json or a GGUF file; {network} is none"
        )
    if form not in FORMS:
        raise UsageError(f"{given[0]} cannot be combined with --as {form}")
    from layerscope.llm.block_formats import block_format

    for text in (options["weight_dtype"], *(options["cache_dtype"] or "").split(",")[:2]):
        if text:
            block_format(text)
    return {
        "program": program,
        "weights": options["weight_dtype"],
        "cache": options["cache_dtype"],
    }


def results(network: str, request: LanguageRequest, options: MemoryOptions) -> LanguageResults:
    """The memory of a language model in use, and what fits if `--fit` is given."""
    from layerscope.export.language_lines import LanguageResults
    from layerscope.llm.account import Deployment, read_language_model, stored_weights
    from layerscope.llm.block_formats import block_format
    from layerscope.llm.cache import CacheOptions
    from layerscope.llm.description import encoder_tokens
    from layerscope.llm.fit import language_fit
    from layerscope.report.quantities import quantity

    dtype = options["dtype"]
    keys, _, values = (request["cache"] or dtype or "f16").partition(",")
    formats = [block_format(each).name for each in (keys, values or keys)]
    activations = block_format(dtype or "bf16").name
    lengths = (options["tokens"], options["decode"])
    tokens = max([each for each in lengths if each is not None], default=DEFAULT_TOKENS)
    memory = None if options["fit"] is None else quantity(options["fit"], "bytes", "--fit")
    stored, model = stored_weights(network), read_language_model(network)
    deployment = Deployment(
        model=model,
        cache=CacheOptions(
            tokens=tokens,
            sequences=options["batch"] or 1,
            keys=formats[0],
            values=formats[1],
            encoded=encoder_tokens(model, options["tokens"]),
        ),
        weights=block_format(request["weights"] or dtype or "bf16").name
        if stored is None
        else "the types of the file",
        stored=stored,
        activations=activations,
        program=request["program"],
        device_bytes=memory,
    )
    fit = None if memory is None else language_fit(deployment, memory)
    split = None if options["parallel"] is None else parallelism(options["parallel"])
    return LanguageResults(deployment, fit, options["decode"] is not None, split)
