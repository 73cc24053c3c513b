"""layerscope audit: check the tables of a document by themselves, or against a network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from layerscope.cli.network import CONVENTION_NAMES, NETWORK, WHOLE_NUMBER, standard_input
from layerscope.cli.output import (
    RESULT_FORMS,
    chosen_form,
    deliver,
    deliver_blocks,
    deliver_bytes,
    deliver_result,
    form_options,
)
from layerscope.conventions import CONVENTIONS
from layerscope.errors import NoTable, OutputError, UsageError, WrongCells

if TYPE_CHECKING:
    from layerscope.auditing.document import SheetAudit
    from layerscope.auditing.findings import Audit

FORMS = (*RESULT_FORMS, "junit", "github")
EXAMPLES = """\b
Examples:
  layerscope audit README.md
  layerscope audit table.csv --table 2
  layerscope audit docs/*.md --as github          # annotations in a workflow
  layerscope audit README.md -o audit.xml         # JUnit
  layerscope audit README.md --json | jq '.findings[].reason'
  layerscope audit vgg.md --against vgg16
  layerscope audit vgg.md --against vgg16 --like netscope
  layerscope audit README.md --fix                # writes README.fixed.md
  layerscope show vgg16 --as netscope | layerscope audit -

\b
Exit codes: 0 no finding, 1 findings, 2 wrong usage,
3 a document that cannot be read or has no table of layers.
"""


class AuditOptions(TypedDict):
    """Options of the command."""

    table: int | None
    against: str | None
    like: str | None
    fix: bool


class DocumentParam(click.ParamType):  # type: ignore[type-arg]
    """The path of a document; - is standard input."""

    name = "document"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """The path; standard input is copied to a temporary file."""
        from layerscope.formats import sources

        text = str(value)
        if text in sources.STANDARD_INPUT and ctx is not None:
            return standard_input(ctx, ".txt")
        sources.check_file(text)
        return text

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        """Let the shell complete file names."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


@click.command(epilog=EXAMPLES)
@click.argument("documents", metavar="DOC…", type=DocumentParam(), nargs=-1, required=True)
@click.option("--table", type=WHOLE_NUMBER, metavar="N", help="Audit only the Nth table of DOC.")
@click.option(
    "--against",
    metavar="NET",
    type=NETWORK,
    help="Compare with this network: its layers are aligned with the rows by name, then by order.",
)
@click.option(
    "--like",
    metavar="CONVENTION",
    shell_complete=CONVENTION_NAMES,
    help="With --against: count only by this convention: "
    f"{', '.join(CONVENTIONS)}.  [default: the one that explains most cells]",
)
@form_options(FORMS)
@click.option(
    "--fix",
    is_flag=True,
    help="Write a copy with the wrong cells corrected: NAME.fixed.EXT beside DOC, or -o FILE.",
)
def command(
    documents: tuple[str, ...],
    form: str | None,
    output: str | None,
    **options: Unpack[AuditOptions],
) -> None:
    """Check the tables of layers in DOC: find cells that contradict the others.

    For each column the convention is stated that explains most of its cells, then every cell that
    it does not explain: line, row, column, what is printed, what is expected, and why.
    """
    from layerscope.api.auditing import audit_check

    if options["like"] is not None and options["against"] is None:
        raise UsageError("--like needs --against, the network that it counts")
    check = audit_check(options["against"], options["like"])
    if options["fix"]:
        _fix(documents, form, output, options["table"], check)
        return
    form = chosen_form(form, output, FORMS)
    found = _audited(documents, options["table"], check)
    if form in ("junit", "github"):
        from layerscope.export.audit import write_github, write_junit

        deliver((write_junit if form == "junit" else write_github)(found), output, form)
    else:
        deliver_result(found, form, output, {})
    if not found.ok:
        raise WrongCells(found.headline)


def _audited(documents: tuple[str, ...], table: int | None, check: SheetAudit) -> Audit:
    """The audit of all documents; of several, those without a table are named in a note."""
    from msgspec.structs import replace

    from layerscope.api.auditing import audit_document
    from layerscope.auditing.findings import joined

    audits, without = [], []
    for path in documents:
        try:
            audits.append(audit_document(path, table, check))
        except NoTable as error:
            if len(documents) == 1:
                raise
            without.append(str(error))
    if not audits:
        raise NoTable("; ".join(without))
    found = joined(tuple(audits))
    return replace(found, notes=(*found.notes, *without))


def _fix(
    documents: tuple[str, ...], form: str | None, output: str | None, table: int | None,
    check: SheetAudit,
) -> None:  # fmt: skip
    """Write a corrected copy of each document, and print what was changed."""
    from layerscope.api.auditing import audit_document
    from layerscope.auditing.fix import encoded, fix
    from layerscope.documents.reader import load
    from layerscope.export.audit import counted, fix_blocks
    from layerscope.export.grid import Lines

    if form not in (None, "text"):
        raise UsageError(f"--fix prints text, it cannot be combined with --as {form}")
    if output is not None and len(documents) > 1:
        raise UsageError("--fix with -o takes one DOC")
    targets = [_target(path, output) for path in documents]
    left = 0
    for path, target in zip(documents, targets, strict=True):
        found = audit_document(path, table, check)
        fixes = fix(load(path), path, table, check, found)
        count = counted(len(fixes.changes), "cell")
        if fixes.changes:
            deliver_bytes(encoded(Path(path).read_bytes(), fixes.text), target)
            last = f"{path}: {count} changed in {target}"
        else:
            last = f"{path}: nothing was changed, and no file was written"
        deliver_blocks([*fix_blocks(fixes), Lines([last])], "text", None, "")
        left += len(fixes.left)
    if left:
        raise WrongCells(f"{counted(left, 'finding')} not changed")


def _target(path: str, output: str | None) -> str:
    """The file that gets the corrected document, which is never the original."""
    from layerscope.formats.sources import is_copy

    if output is None and is_copy(path):
        raise UsageError("--fix of standard input needs -o FILE")
    stem, suffix = os.path.splitext(path)
    target = f"{stem}.fixed{suffix}" if output is None else output
    if target == "-":
        raise UsageError("--fix writes a file, expected its name after -o")
    if os.path.realpath(target) == os.path.realpath(path) or (
        os.path.exists(target) and os.path.samefile(target, path)
    ):
        raise OutputError(f"{target} is the document itself, which --fix never writes")
    return target
