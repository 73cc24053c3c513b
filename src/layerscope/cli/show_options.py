"""Options of `show`, and which of them cannot be combined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layerscope.cli.language import MOST_DEVICES, LanguageOptions
from layerscope.cli.network import NetworkOptions
from layerscope.cli.show_forms import TableOptions, chosen_conventions
from layerscope.errors import UnknownName, UsageError
from layerscope.notations import NOTATIONS
from layerscope.report.quantities import shown, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

VIEW_OPTIONS = ("depth", "by", "columns", "sort", "top")
NOTATION_OPTIONS = ("parts", "max_columns")
STAGES = ("1", "2", "3")  # of ZeRO


class ShowOptions(NetworkOptions, TableOptions, LanguageOptions):
    """Options of the command."""

    like: str | None
    attention: str | None
    in_place: bool
    train: str | None
    mixed: bool
    checkpoint: bool
    zero: str | None
    lora: int | None
    strict: bool
    times: tuple[str, ...]
    power: float | None


def check_options(form: str, options: ShowOptions) -> None:
    """Raise for an option that the form would silently ignore."""
    values: Mapping[str, object] = options
    if options["everything"] and (form in NOTATIONS or options["total"]):
        what = "--total" if options["total"] else f"--as {form}"
        raise UsageError(f"--all cannot be combined with {what}")
    chosen = [name for name in VIEW_OPTIONS if values[name] is not None]
    if chosen and (form in NOTATIONS or form == "json" or options["total"]):
        what = "--total" if options["total"] else f"--as {form}"
        raise UsageError(f"--{chosen[0]} cannot be combined with {what}")
    if options["total"] and form not in ("text", "json"):
        raise UsageError(f"--total cannot be combined with --as {form}")
    if options["conventions"] is not None:
        if form != "json" or options["total"]:
            raise UsageError("--conventions needs --as json, without --total")
        chosen_conventions(options)
        if options["attention"] == "needed":
            raise UsageError("--conventions cannot be combined with --attention needed")
    requested = [name for name in ("train", "fit") if values[name] is not None]
    if requested and form not in ("text", "markdown", "json"):
        raise UsageError(f"--{requested[0]} cannot be combined with --as {form}")
    if options["train"] is not None and options["decode"] is not None:
        raise UsageError("--train cannot be combined with --decode")
    for name in NOTATION_OPTIONS:
        able = [each for each, found in NOTATIONS.items() if name in found.options]
        if values[name] is not None and form not in able:
            raise UsageError(f"{_dashed(name)} needs --as {', '.join(able[:-1])} or {able[-1]}")


def _dashed(name: str) -> str:
    return "--" + name.replace("_", "-")


def check_training(options: ShowOptions) -> None:
    """Raise for options of `--train` that are wrong or cannot be combined."""
    from layerscope.analysis.training import STATES

    if options["train"] is not None and options["train"] not in STATES:
        raise UnknownName(
            "optimizer", options["train"], STATES, f"; choose from {', '.join(STATES)}"
        )
    for name, given in (("mixed", options["mixed"]), ("checkpoint", options["checkpoint"])):
        if given and options["train"] is None:
            raise UsageError(f"--{name} needs --train")
    if options["lora"] is not None and (options["train"] is None or options["fit"] is not None):
        what = "needs --train" if options["train"] is None else "cannot be combined with --fit"
        raise UsageError(f"--lora {what}")
    if options["zero"] is not None:
        zero_of(options["zero"])
        if options["train"] is None or options["fit"] is not None:
            what = "needs --train" if options["train"] is None else "cannot be combined with --fit"
            raise UsageError(f"--zero {what}")
    if options["mixed"] and options["dtype"] not in (None, "fp16", "bf16"):
        raise UsageError(f"--mixed with --dtype {options['dtype']}, expected fp16 or bf16")
    fit_bytes(options)


def zero_of(text: str) -> tuple[int, int]:
    """Stage and number of devices, from 3x8."""
    stage, _, devices = text.partition("x")
    if stage not in STAGES or not (devices.isascii() and devices.isdigit()):
        raise UsageError(f"--zero {shown(text)}, expected a stage and devices, such as 3x8")
    count = whole(devices, "--zero")
    if not 1 <= count <= MOST_DEVICES:
        raise UsageError(f"--zero {shown(text)}, expected 1 to {MOST_DEVICES:,} devices")
    return int(stage), count


def fit_bytes(options: ShowOptions) -> int | None:
    """The memory size of `--fit` in bytes."""
    from layerscope.report.quantities import quantity

    return None if options["fit"] is None else quantity(options["fit"], "bytes", "--fit")
