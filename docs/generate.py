"""Writes the parts of the documentation that come out of the program, so that they stay true.

`make docs` writes them; a test fails when one is stale.
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from functools import partial
from html import escape
from importlib import import_module
from pathlib import Path

import layerscope
from layerscope import limits
from layerscope.cli import COMMANDS, run
from layerscope.conventions import CONVENTIONS, convention
from layerscope.export import BINARY, TARGETS
from layerscope.export.json import schema
from layerscope.export.text import write as write_text
from layerscope.notations import NOTATIONS
from layerscope.report.columns import COLUMNS

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(<!-- output: layerscope (.+?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def output(*args: str) -> str:
    """What the command prints into a pipe."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(args) == 0
    return out.getvalue()


def columns() -> str:
    """The page of columns."""
    rows = "".join(f"| `{c.name}` | {c.title} | {c.says} |\n" for c in COLUMNS.values())
    return (
        "# Columns\n\nNames for `--columns` and `--sort`.\n\n"
        f"| name | title | what it is |\n| --- | --- | --- |\n{rows}"
    )


def commands() -> str:
    """The page of commands: the help of each."""
    pages = ["# Commands\n", f"```text\n{output('--help')}```\n"]
    pages += [
        f"## layerscope {name}\n\n```text\n{output(name, '--help')}```\n" for name in COMMANDS
    ]
    return "\n".join(pages)


UNDER_A_CONVENTION = """\
## What a convention changes

`--like fvcore` puts fvcore's figure into the cost column, under fvcore's word (`flops`); it adds
up to the total. In JSON it is `convention_ops`, of every layer and in `totals`; `stamp.figure` is
the word. In Python it is `report.totals.convention_ops` and `layer.convention_ops`.

| figure | under a convention |
| --- | --- |
| `macs`, `flops`, `ops`, intensity | exact, always |
| bytes: `memory`, `read`, `write`, `weights`, peak | exact, always; each tensor in its own dtype |
| `activations` | exact; the convention's own count is `convention_activations` |
| `params` | as the convention counts them: thop leaves out modules it does not know |
| `summary().total_mult_adds`, `profile()`, `FlopCountAnalysis.total()` | the convention's figure |
| `summary().total_macs`, `.total_flops` | exact, always |

## Unknown figures

A sum that lacks an unknown layer is a lower bound: `≥432` in text, Markdown, LaTeX, HTML and csv.
JSON names such totals in `totals.lower_bounds`; figures of unknown layers are null. A total of
parameters is exact where all arrays are known, as in a state dict, even if the operations are
not. Intensity and ratios of lower bounds are `?`, in JSON null.

Stamp, coverage and notes stand under the table: in csv, LaTeX, dot, Timeloop and ZigZag as
comments. `pandas.read_csv(path, comment="#")` skips them; `--no-stamp` leaves them out.

## Dtypes

The stamp names the dtype of a network that has only one. Otherwise it is `mixed`, with the dtypes
of the inputs and of the arithmetic. `stamp.dtypes` in JSON has the number of elements of each.

## Other programs
"""


def forms() -> str:
    """The page of notations and conventions."""
    told = "".join(f"| `{n}` | {t.says} | `{t.like}` |\n" for n, t in NOTATIONS.items())
    says = {name: says for name, (_, _, says) in TARGETS.items()} | BINARY
    targets = "".join(f"| `{name}` | {line} |\n" for name, line in says.items())
    counted = "".join(
        f"| `{name}` | {convention(name).says} | {convention(name).figure or 'none'} |\n"
        for name in CONVENTIONS
    )
    return (
        "# Notations and conventions\n\n"
        "A notation is a table style (`--as`), a convention a way to count (`--like`). A notation\n"
        "counts in its own convention unless told otherwise; the stamp says which.\n\n"
        f"| notation | what it prints | counts as |\n| --- | --- | --- |\n{told}\n"
        f"| convention | what it counts | its one figure |\n| --- | --- | --- |\n{counted}\n"
        f"{UNDER_A_CONVENTION}\n"
        "`export --to` writes these beside csv, JSON, Markdown, LaTeX and HTML; simulators get\n"
        "the products of a network, and what is left out is counted on stderr.\n\n"
        f"| target | what it is |\n| --- | --- |\n{targets}"
    )


def picture() -> str:
    """The terminal table of vgg16 as an SVG."""
    report = layerscope.analyze("vgg16")
    table = write_text(report, width=108, style=lambda text, role: f"{role}\t{text}")
    marked = ["rule\t$ layerscope show vgg16", "note\t", *table.splitlines(), "note\t"]
    marked += [f"note\t{finding}" for finding in report.findings()]
    height = 17
    lines, body = [], []
    for n, (role, line) in enumerate(text.split("\t", 1) for text in marked):
        weight = ' font-weight="bold"' if role in ("head", "scope", "total") else ""
        colour = "#7d8590" if role == "rule" else "#e6edf3"
        lines.append(line)
        body.append(
            f'<text x="20" y="{24 + height * (n + 1)}" fill="{colour}"{weight} '
            f'xml:space="preserve">{escape(line)}</text>'
        )
    width = 40 + round(7.83 * max(map(len, lines)))
    tall = 40 + height * (len(lines) + 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{tall}" '
        f'viewBox="0 0 {width} {tall}" font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans '
        f'Mono\', monospace" font-size="13">\n<rect width="100%" height="100%" rx="10" '
        'fill="#0d1117"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def page(name: str) -> str:
    """A page with the output of its commands in it."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return BLOCK.sub(lambda m: m[1] + output(*m[2].split()) + m[4], text)


BOUNDED = ("formats", "codecs", "builder", "report", "engines", "lower")
BOUND = re.compile(
    r"^((?:MOST|LONGEST|LARGEST|UNPACKED)_[A-Z_]+|LARGEST|[A-Z]+_(?:BYTES|DEPTH|SECONDS|DIGITS))"
    r" = [^\n#]+?(?:  # (.+))?$",
    re.MULTILINE,
)
STEPS = ("HEAD_BYTES", "STEP_BYTES", "RELEASE_BYTES", "MAPPED_BYTES", "HEADER_BYTES")  # no bounds
BOUNDS = re.compile(r"(<!-- bounds -->\n).*?(<!-- end of bounds -->)", re.DOTALL)


def bounds() -> list[tuple[str, str, int, str]]:
    """Module, name, value and comment of every constant that bounds something."""
    root = Path(layerscope.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if inside.parts[0] not in BOUNDED:
            continue
        named = BOUND.findall(path.read_text(encoding="utf-8"))
        name = ".".join(inside.with_suffix("").parts).removesuffix(".__init__")
        module = import_module(f"layerscope.{name}") if named else None
        for constant, says in named:
            value = getattr(module, constant)
            if isinstance(value, int) and constant not in STEPS:
                found.append((name, constant, value, says))
    return found


def threats() -> str:
    """The threat model with the table of bounds in it."""
    rows = "".join(
        f"| `{module}` | `{name}` | {value:,} | {says.replace('|', '/')} |\n"
        for module, name, value, says in bounds()
    )
    table = f"| module | bound | value | of what |\n| --- | --- | ---: | --- |\n{rows}"
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    return BOUNDS.sub(lambda m: m[1] + table + m[2], text)


def named_limits() -> str:
    """The page of limits, with all that errors name in its table."""
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    intro, _, _ = text.partition("| limit |")
    rows = "".join(
        f"| {limit.name} | {limit.most:,} | {limit.unit} | {limit.why} |\n"
        for limit in vars(limits).values()
        if isinstance(limit, limits.Limit)
    )
    return f"{intro}| limit | most | of | why |\n| --- | ---: | --- | --- |\n{rows}"


PAGES = {
    "docs/columns.md": columns,
    "docs/commands.md": commands,
    "docs/forms.md": forms,
    "docs/limits.md": named_limits,
    "docs/report.schema.json": schema,
    "docs/threat-model.md": threats,
    "docs/vgg16.svg": picture,
    **{name: partial(page, name) for name in ("README.md", "docs/explain.md")},
}


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (ROOT / name).write_text(make(), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
