"""layerscope show: the account of one network, in any form."""

from __future__ import annotations

from typing import Any

import click

from layerscope.cli.network import NETWORK, WHOLE_NUMBER, file_options, parse_shapes, reading
from layerscope.cli.output import deliver, terminal, wrapped
from layerscope.conventions import CONVENTIONS
from layerscope.errors import StrictError, UnknownName, UsageError
from layerscope.export import FORMS, SUFFIXES
from layerscope.notations import NOTATIONS

EXAMPLES = """\b
Examples:
  layerscope show vgg16
  layerscope show resnet50 --input 3x288x288 --batch 8 --depth 2
  layerscope show resnet50 --by op --sort macs
  layerscope show resnet50 --columns name,output,macs,field --sort macs --top 5
  layerscope show vgg16 --as netscope --like exact
  layerscope show vgg16 --total
  layerscope show googlenet --as json -o googlenet.json
  layerscope show llama-3-8b --decode 4096 --dtype bf16 --depth 1

\b
NET is a name of the zoo, or a file:
  layerscope show train_val.prototxt --phase train --as netscope
  layerscope show net.caffemodel
  layerscope show imagenet-vgg-f.mat
  layerscope show model.onnx --input images=1x3x640x640
  layerscope show model.onnx --dim batch=4 --dim sequence=128
  layerscope show model.pt2                        # torch.export.save
  layerscope show model.safetensors                # parameters alone
  layerscope show model.safetensors.index.json
  layerscope show state_dict.pt
  layerscope show run.json                         # a run that measure kept

\b
Or a PyTorch model by name:
  layerscope show torchvision:resnet50
  layerscope show torchvision:retinanet_resnet50_fpn --input 3x480x640
  layerscope show timm:vit_tiny_patch16_224 --depth 2
  layerscope show hf:path/to/config.json --tokens 2048
  layerscope show hf:path/to/config.json --decode 8192 --dtype bf16
  layerscope show my_file.py:make_model --input 1x3x64x64
  layerscope show package.module:Class
"""


def complete_forms(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Forms that begin so."""
    return [name for name in (*FORMS, *NOTATIONS) if name.startswith(incomplete)]


@click.command(epilog=EXAMPLES)
@click.argument("network", metavar="NET", type=NETWORK)
@click.option(
    "--as",
    "form",
    metavar="FORM",
    shell_complete=complete_forms,
    help=f"{', '.join(FORMS)}, or a notation: {', '.join(NOTATIONS)}.  [default: text]",
)
@click.option(
    "--like",
    metavar="CONVENTION",
    help=f"Count as another system does: {', '.join(CONVENTIONS)}.  "
    "[default: exact, or the notation's own]",
)
@click.option(
    "--batch", "-b", type=WHOLE_NUMBER, metavar="N", help="Batch size.  [default: the network's, 1]"
)
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="SHAPE",
    help="Input shape, 3x227x227 or 1x3x227x227; NAME=SHAPE for one of several inputs.",
)
@click.option("--dtype", metavar="TYPE", help="Number type: fp32, fp16, bf16, int8, int4.")
@file_options
@click.option(
    "--depth",
    type=WHOLE_NUMBER,
    metavar="N",
    help="Levels of the module tree to open.  [default: all]",
)
@click.option(
    "--by",
    metavar="WHAT",
    help="Rows by module (each what it does itself), op or layer.  [default: the tree]",
)
@click.option("--columns", metavar="A,B,…", help="Columns, by name; a wrong one lists them all.")
@click.option("--sort", metavar="COLUMN", help="Layers by one column, largest first.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Only the first N rows.")
@click.option("--all", "everything", is_flag=True, help="Also layers that only work out shapes.")
@click.option("--total", is_flag=True, help="One line: params, MACs, FLOPs, peak memory.")
@click.option(
    "--in-place", is_flag=True, help="Let activations, norms and sums overwrite their input."
)
@click.option("--tokens", type=WHOLE_NUMBER, metavar="N", help="Read N tokens at once (prefill).")
@click.option(
    "--decode", type=WHOLE_NUMBER, metavar="LENGTH", help="Read one token after a cache of LENGTH."
)
@click.option(
    "--train", metavar="OPTIMIZER", help="Memory of a training step: sgd, momentum, adam."
)
@click.option("--mixed", is_flag=True, help="With --train: half precision beside fp32 weights.")
@click.option("--checkpoint", is_flag=True, help="With --train: keep few activations, recompute.")
@click.option("--fit", metavar="SIZE", help="The largest batch that fits in SIZE, such as 8GB.")
@click.option(
    "--parts",
    metavar="A,B,…",
    help="Parts of the boda notation: layers, info, totals; of a run also profile, timers.",
)
@click.option("--strict", is_flag=True, help="Fail (exit 1) if anything is unknown.")
@click.option(
    "--no-stamp", is_flag=True, help="Leave out the stamp and what stands under the table."
)
@click.option("--output", "-o", metavar="FILE", help="Write to FILE; its suffix chooses the form.")
def command(network: str, form: str | None, output: str | None, **options: Any) -> None:
    """Print the account of NET: every layer's shapes, parameters, operations, memory and field."""
    from layerscope.api import analyze
    from layerscope.formats import is_run
    from layerscope.notations import notation

    if is_run(network):
        from layerscope.cli.measure import show_again

        show_again(network, form, output, options)
        return
    form = form or _form_of(output)
    if form not in FORMS and form not in NOTATIONS:
        raise UnknownName(
            "form", form, (*FORMS, *NOTATIONS), f"; known: {', '.join((*FORMS, *NOTATIONS))}"
        )
    _check_options(form, options)
    _read_training(options)
    like = options["like"] or (notation(form).like if form in NOTATIONS else "exact")
    told = {
        "input": parse_shapes(options["inputs"]),
        "dtype": options["dtype"],
        "like": like,
        "in_place": options["in_place"],
        "tokens": options["tokens"],
        "decode": options["decode"],
    }
    report = analyze(network, batch=options["batch"], **told, **reading(options))
    asked = _answers(network, report, options, told)
    deliver(_render(report, form, options, asked, to_file=bool(output)), output, form)
    if options["strict"] and report.coverage.unknown:
        raise StrictError(f"--strict: {report.coverage}")


def _form_of(output: str | None) -> str:
    from os.path import splitext

    return SUFFIXES.get(splitext(output)[1].lower(), "text") if output else "text"


def _read_training(options: dict[str, Any]) -> None:
    """Sizes as numbers, and half precision where mixed precision asks for it."""
    from layerscope.analysis.training import STATES
    from layerscope.report.quantities import quantity

    if options["train"] is not None and options["train"] not in STATES:
        raise UnknownName("optimizer", options["train"], STATES, f"; known: {', '.join(STATES)}")
    for name in ("mixed", "checkpoint"):
        if options[name] and options["train"] is None:
            raise UsageError(f"--{name} goes with --train")
    if options["mixed"]:
        options["dtype"] = options["dtype"] or "fp16"
        if options["dtype"] not in ("fp16", "bf16"):
            raise UsageError(f"--mixed with --dtype {options['dtype']}, expected fp16 or bf16")
    if options["fit"] is not None:
        options["fit"] = quantity(options["fit"], "bytes", "--fit")


def _answers(network: str, report: Any, options: dict[str, Any], told: dict[str, Any]) -> Any:
    """What was asked beyond the table: memory of training, the batch that fits."""
    from layerscope.export.answers import Answers

    how = {name: options[name] for name in ("mixed", "checkpoint")}
    training = fitting = None
    if options["train"] is not None:
        training = report.training(options["train"], **how)
    if options["fit"] is not None:
        from layerscope.api import fit
        from layerscope.formats import names_a_model

        # A captured graph is of one batch: the model is captured again for every other.
        source = network if names_a_model(network) else report.graph
        fitting = fit(source, options["fit"], train=options["train"], **how, **told)
    return Answers(training, fitting)


def _check_options(form: str, options: dict[str, Any]) -> None:
    """Raise for an option that the form would silently ignore."""
    shaped = [
        name for name in ("depth", "by", "columns", "sort", "top") if options[name] is not None
    ]
    if shaped and (form in NOTATIONS or form == "json" or options["total"]):
        what = "--total" if options["total"] else f"--as {form}"
        raise UsageError(f"--{shaped[0]} does not go with {what}")
    if options["total"] and form not in ("text", "json"):
        raise UsageError(f"--total does not go with --as {form}")
    asked = [name for name in ("train", "fit") if options[name] is not None]
    if asked and form not in ("text", "markdown", "json"):
        raise UsageError(f"--{asked[0]} does not go with --as {form}")
    if options["train"] is not None and options["decode"] is not None:
        raise UsageError("--train does not go with --decode")
    if options["parts"] is not None and form != "boda":
        raise UsageError("--parts goes with --as boda only")


def _render(report: Any, form: str, options: dict[str, Any], asked: Any, *, to_file: bool) -> str:
    from layerscope.export.table import View

    stamp = not options["no_stamp"]
    if form == "json":
        from layerscope.export.json import write as write_json

        return write_json(report, stamp=stamp, totals_only=options["total"], asked=asked)
    if options["total"]:
        from layerscope.export.footer import listing
        from layerscope.export.text import total_line

        return total_line(report) + listing(asked.lines(report), form)
    if form in NOTATIONS:
        from layerscope.export.footer import footer
        from layerscope.notations import write as write_notation

        parts = options["parts"]
        told = {} if parts is None else {"parts": tuple(_names(parts))}
        text = write_notation(report, form, **told)
        return text + footer(report, form) if stamp else text
    view = View(
        tuple(_names(options["columns"])) if options["columns"] is not None else (),
        options["depth"],
        options["sort"] or "",
        options["top"],
        by=options["by"] or "",
        all=options["everything"],
    )
    if options["columns"] is not None and not view.columns:
        raise UsageError("--columns is empty; a wrong name lists them all")
    if form == "text":
        from layerscope.export.text import write as write_text

        width, style = terminal(to_file)
        text = write_text(report, view, width=width, style=style)
        below = _below(report, form, asked, stamp)
        return text + (wrapped(below, width) if below and width else below)
    from importlib import import_module

    table: str = import_module(f"layerscope.export.{FORMS[form]}").write(report, view)
    return table + _below(report, form, asked, stamp)


def _below(report: Any, form: str, asked: Any, stamp: bool) -> str:
    """What was asked beyond the table is told even where the stamp is not wanted."""
    from layerscope.export.footer import footer, listing

    lines = listing(asked.lines(report), form)
    return ("\n" + lines if lines else "") + (footer(report, form) if stamp else "")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
