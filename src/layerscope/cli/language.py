"""Options of `show` for language models: formats of weights and cache, and the runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

from layerscope.cli.network import NetworkOptions, names_in
from layerscope.errors import UsageError
from layerscope.report.quantities import real

if TYPE_CHECKING:
    from layerscope.export.language_lines import LanguageResults

Command = TypeVar("Command", bound=Callable[..., object])
FORMS = ("text", "markdown", "json")
DEFAULT_TOKENS = 128  # of a configuration without --tokens and --decode


class LanguageOptions(TypedDict):
    """What `language_options` adds to a command, and `--runtime` and `--fit`."""

    runtime: float | str | None
    fit: str | None
    weight_dtype: str | None
    cache_dtype: str | None


class LanguageRequest(TypedDict):
    """What is asked about a language model."""

    program: str
    weights: str | None
    cache: str | None


class MemoryOptions(NetworkOptions, LanguageOptions):
    """Options that the memory of a language model depends on."""


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


def asked(network: str, form: str, options: LanguageOptions) -> LanguageRequest | None:
    """What is asked about a language model, None if nothing is; `runtime` is then seconds."""
    runtime = options["runtime"]
    program = runtime if isinstance(runtime, str) else ""
    if program:
        options["runtime"] = None
    names = {
        "--runtime": program,
        "--weight-dtype": options["weight_dtype"],
        "--cache-dtype": options["cache_dtype"],
    }
    given = [name for name, value in names.items() if value]
    if not given:
        return None
    is_file = network.lower().endswith(".gguf")
    if is_file and options["weight_dtype"]:
        raise UsageError(f"--weight-dtype: {network} has the types of its weights")
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


def results(
    network: str, request: LanguageRequest, options: MemoryOptions, stored: int
) -> LanguageResults:
    """The memory of a language model in use, and what fits if `--fit` is given.

    `stored` are the bytes of the weights in the network's own file.
    """
    from layerscope.export.language_lines import LanguageResults
    from layerscope.llm.account import Deployment, read_language_model
    from layerscope.llm.block_formats import block_format
    from layerscope.llm.cache import CacheOptions
    from layerscope.llm.fit import language_fit
    from layerscope.report.quantities import quantity

    dtype = options["dtype"]
    keys, _, values = (request["cache"] or dtype or "f16").partition(",")
    formats = [block_format(each).name for each in (keys, values or keys)]
    activations = block_format(dtype or "bf16").name
    lengths = (options["tokens"], options["decode"])
    tokens = max([each for each in lengths if each is not None], default=DEFAULT_TOKENS)
    deployment = Deployment(
        model=read_language_model(network),
        cache=CacheOptions(
            tokens=tokens, sequences=options["batch"] or 1, keys=formats[0], values=formats[1]
        ),
        weights=block_format(request["weights"] or dtype or "bf16").name
        if network.startswith("hf:")
        else "the types of the file",
        stored=None if network.startswith("hf:") else stored,
        activations=activations,
        program=request["program"],
    )
    fit = None
    if options["fit"] is not None:
        fit = language_fit(deployment, quantity(options["fit"], "bytes", "--fit"))
    return LanguageResults(deployment, fit, options["decode"] is not None)
