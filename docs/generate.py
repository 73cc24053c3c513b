"""Write the generated pages of the documentation: `make docs`.

tests/test_docs.py fails if a page is not up to date.
"""

from __future__ import annotations

import inspect
import io
import json
import re
import runpy
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import layerscope
from layerscope import limits
from layerscope.cli import COMMANDS, run
from layerscope.conventions import CONVENTIONS, convention
from layerscope.export import BINARY, TARGETS
from layerscope.export.json import schema
from layerscope.export.page_types import PageData
from layerscope.export.text import write as write_text
from layerscope.graph.names import shape_text
from layerscope.notations import NOTATIONS
from layerscope.report.columns import COLUMNS, cell
from layerscope.report.numbers import bytes_text, cell_text
from layerscope.report.tree import layer_rows
from layerscope.zoo import NAMES

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"(<!-- output: layerscope (.+?) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def output(*args: str) -> str:
    """What the command prints to a pipe, in the root of the repository; audits have findings."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(ROOT), redirect_stdout(out), redirect_stderr(err):
        code = run(args)
    assert code == 0 or (args[0] == "audit" and code == 1), err.getvalue()
    return out.getvalue()


# column -> layer of resnet50 for the example, explanation
EXPLAINED = {
    "name": (
        "layer1.0.conv1",
        "Name of the layer, or of a module with all its layers. In the module tree it is "
        "indented, and equal consecutive modules are one row with `× N`.",
    ),
    "type": (
        "layer1.0.conv1",
        "The op of a layer, or the class of a module. `--by op` groups rows by it.",
    ),
    "scope": (
        "layer1.0.conv1",
        "The modules that contain the layer, outermost first. It is empty for a layer at the "
        "top level.",
    ),
    "window": (
        "conv1",
        "Kernel and stride of a convolution or pool; `d` is the dilation and `g` the number of "
        "groups. Other layers leave it blank.",
    ),
    "input": (
        "conv1",
        "Shapes of all inputs, batch first. Weights are not inputs.",
    ),
    "output": (
        "conv1",
        "Shapes of all outputs, batch first. `?` means that the shape is unknown, `(declared)` "
        "that it is from the file and not inferred.",
    ),
    "params": (
        "bn1",
        "Number of learnable parameters. A parameter that several layers share is counted once, "
        "at its first use. Parameters that no layer uses are in the row `unused parameters` and in "
        "the total.",
    ),
    "params%": (
        "fc",
        "Share of the layer in the parameters of the network, in percent. Below a tenth of a "
        "percent it is `<0.1`; of a lower bound it is at most that, `≤8.0`. `ratio` is another "
        "name of this column.",
    ),
    "buffers": (
        "bn1",
        "Number of stored elements that are not learned, such as the running mean and variance "
        "of batch norm. They are part of `weights`, not of `params`.",
    ),
    "weights": (
        "bn1",
        "Bytes of all stored arrays: parameters and buffers, each in its own dtype. The total "
        "is the size of a checkpoint without its headers.",
    ),
    "macs": (
        "conv1",
        "Number of multiply-adds in convolutions, linear layers and matrix products. One "
        "multiply-add is one MAC and two FLOPs.",
    ),
    "macs%": (
        "conv1",
        "Share of the layer in the multiply-adds of the network, in percent. Blank if the layer "
        "has none.",
    ),
    "flops": (
        "relu",
        "Number of operations: 2 per multiply-add and 1 per add, mul, comp, div and exp. A "
        "comparison of ReLU counts as one.",
    ),
    "convention_ops": (
        "conv1",
        "The figure of the convention that `--like` names, under that tool's own title. For "
        "`exact` it is FLOPs.",
    ),
    "convention_ops%": (
        "conv1",
        "Share of the layer in the figure of the convention, in percent. Blank if the layer has "
        "none.",
    ),
    "add": (
        "bn1",
        "Number of additions outside multiply-adds. Batch norm adds once per element.",
    ),
    "mul": (
        "bn1",
        "Number of multiplications outside multiply-adds. Batch norm multiplies once per element.",
    ),
    "comp": (
        "maxpool",
        "Number of comparisons and selections. A 3x3 max pool compares 8 times per output.",
    ),
    "div": (
        "avgpool",
        "Number of divisions. An average pool divides once per output.",
    ),
    "exp": (
        "fc",
        "Number of transcendental functions: exp, log, sqrt, pow, erf. Softmax has one per "
        "element; a linear layer has none.",
    ),
    "activations": (
        "conv1",
        "Number of output elements that need new storage. A view such as `flatten`, and a layer "
        "that works in-place, have 0.",
    ),
    "activations%": (
        "conv1",
        "Share of the layer in the activations of the network, in percent. Blank if the layer "
        "has none.",
    ),
    "convention_activations": (
        "conv1",
        "Activations as the convention of `--like` counts them. timm, for example, counts "
        "outputs of convolutions and linear layers only.",
    ),
    "memory": (
        "conv1",
        "`activations` in bytes, each tensor in its own dtype. The total is the sum over all "
        "layers, not the memory in use at one time.",
    ),
    "alive": (
        "conv1",
        "Bytes of all activations that are alive while the layer runs: its inputs and outputs, and "
        "tensors that later layers read. A module, and the total, have the largest of their "
        "layers, not the sum; the total is the peak.",
    ),
    "read": (
        "conv1",
        "Bytes that the layer reads: its inputs and its stored arrays, each once. Caches are "
        "not modelled.",
    ),
    "write": (
        "conv1",
        "Bytes that the layer writes: its outputs. A view writes nothing.",
    ),
    "intensity": (
        "conv1",
        "Arithmetic intensity: FLOPs per byte read or written. A low value means that memory "
        "bandwidth limits the layer.",
    ),
    "gemm": (
        "conv1",
        "The matrix product M x N x K that the layer amounts to; × is the number of products. M "
        "is output positions, N output channels, K inputs per output.",
    ),
    "field": (
        "maxpool",
        "Receptive field: how many input positions one output position depends on, per axis. "
        "`everything` means all of them.",
    ),
    "field_stride": (
        "maxpool",
        "Distance in the input between the receptive fields of two neighbouring outputs. It is "
        "a fraction after upsampling.",
    ),
    "field_offset": (
        "maxpool",
        "Centre of the receptive field of output position 0, in input positions from 0. Padding "
        "can make it negative.",
    ),
    "backward_macs": (
        "conv1",
        "Multiply-adds of the backward pass: gradients of inputs and of weights. The first "
        "layer needs no gradient of its input.",
    ),
    "backward_flops": (
        "relu",
        "FLOPs of the backward pass, counted as `flops`. The rules are in "
        "[counting](counting.md#backward-pass).",
    ),
    "status": (
        "conv1",
        "How the figures were found: exact, estimate (`~` before its figures), lower bound (of a "
        "sum, `≥`) or unknown (`?`). "
        "`--strict` fails on unknown.",
    ),
    "note": (
        "conv1",
        "The reason for an estimate or an unknown figure. Blank if there is none.",
    ),
}


def columns() -> str:
    """The page of columns, with examples from resnet50."""
    report = layerscope.analyze("resnet50")
    rows = {row.name: row for row in layer_rows(report)}
    lines = []
    for column in COLUMNS.values():
        layer, text = EXPLAINED[column.name]
        value = cell_text(cell(column, rows[layer], report), column.kind).strip() or "blank"
        value = value if value == "blank" else f"`{value}`"
        lines.append(f"| `{column.name}` | {column.title} | {text} | `{layer}`: {value} |\n")
    totals = report.totals
    elements, total, peak = (
        totals.activations,
        totals.activation_bytes,
        totals.peak_activation_bytes,
    )
    return f"""# Columns

Names for `--columns` and `--sort`: `layerscope show resnet50 --columns name,macs --sort macs`.
Examples are layers of resnet50 with batch 1 in fp32.

| name | title | what it is | example |
| --- | --- | --- | --- |
{"".join(lines)}
## `activations`, `memory` and peak memory

| figure | unit | what it is | resnet50 |
| --- | --- | --- | ---: |
| `activations` | elements | outputs of all layers that need new storage | {elements:,} |
| `memory` | bytes | the same in bytes: 4 per element in fp32 | {total:,} ({bytes_text(total)}) |
| `alive` | bytes | tensors alive while the layer runs | peak in the total |
| peak | bytes | largest sum of tensors alive at the same time | {peak:,} ({bytes_text(peak)}) |

- The total of `memory` is what inference would need if no tensor were ever freed. Training keeps
  a part of these tensors for the backward pass; `--train adam` prints how many bytes
  ([training memory](training.md)).
- The peak is what inference needs if every tensor is freed after the last layer that reads it. It
  is the total of the column `alive`, in the line `Memory peaks at …` under the table, in `--total`,
  in JSON (`totals.peak_activation_bytes`), and `layerscope plot NET --of memory` draws it.
- `alive` is no sum: `layerscope show NET --columns name,alive --sort alive` lists the layers that
  need most memory. In JSON it is `alive_bytes` of a layer. While a tensor of unknown shape is alive
  it is a lower bound, `≥` in tables and null in JSON.
- None of them includes the weights, which are the column `weights`.
- `--in-place` changes all of them: activation, norm and add layers then need no storage of their
  own.
"""


def commands() -> str:
    """The page of commands: the help of each."""
    pages = ["# Commands\n", f"```text\n{output('--help')}```\n"]
    pages += [
        f"## layerscope {name}\n\n```text\n{output(name, '--help')}```\n" for name in COMMANDS
    ]
    return "\n".join(pages)


UNDER_A_CONVENTION = """\
## What a convention changes

`--like fvcore` prints fvcore's figure in the cost column, under fvcore's title (`flops`); the rows
add up to the total. In JSON it is `convention_ops`, for every layer and in `totals`, and
`stamp.figure` is its title. In Python it is `report.totals.convention_ops` and
`layer.convention_ops`.

| figure | under a convention |
| --- | --- |
| `macs`, `flops`, `ops`, intensity | exact, always |
| bytes: `memory`, `read`, `write`, `weights`, peak | exact, always; each tensor in its own dtype |
| `activations` | exact; the convention's own count is `convention_activations` |
| `params` | as the convention counts them: thop leaves out classes without a rule |
| `summary().total_mult_adds`, `profile()`, `FlopCountAnalysis.total()` | the convention's figure |
| `summary().total_macs`, `.total_flops` | exact, always |

## Unknown figures

A sum without the figures of an unknown layer is a lower bound: `≥432` in text, Markdown, LaTeX,
HTML and csv. JSON lists such totals in `totals.lower_bounds`; figures of unknown layers are null.
The total of parameters is exact if all arrays have shapes, as in a state dict, even if operations
are unknown. Intensity and ratios of lower bounds are `?`, in JSON null.

| sign | meaning | in JSON |
| --- | --- | --- |
| `?` | unknown, or a sum of which no part is known | null; a sum is 0, in `totals.lower_bounds` |
| `≥432` | a sum that lacks figures of unknown layers | listed in `totals.lower_bounds` |
| `≤12.3` | a share of a lower bound | not stored; in `explain` `"upper_bound": true` |
| `~432` | an estimate, or a sum with one | `status` of the layer; listed in `totals.estimates` |

The column `note` says why a figure is an estimate. Signs combine: `≥~432` is a sum with an
estimate and an unknown part. Notations of other programs print `432 + ?` (Boda `432+?`) instead of
`≥432`, and `NaN` where MatConvNet does. `memory.complete` in JSON is false if the peak is a lower
bound. `profile()` and `FlopCountAnalysis` return plain numbers: they warn of unknown operators by
name, and `unsupported_ops_warnings(False)` turns that off.

Stamp, coverage and notes are under the table; in csv, LaTeX, dot, Timeloop and ZigZag as comments.
`pandas.read_csv(path, comment="#")` skips them; `--no-stamp` leaves them out.

## Dtypes

The stamp names the dtype of a network that has only one. Otherwise it is `mixed`, with the dtypes
of the inputs and of the arithmetic. `stamp.dtypes` in JSON has the number of elements of each.

## Other programs
"""


OPTIONS = """\
## Options of notations

| option | notations | what it does |
| --- | --- | --- |
| `--max-columns N` | `matconvnet`, `.csv`, `.latex`, `.dilation`; `matconvnet.dag`, `.csv`, \
`.latex` | layers in a block: `maxNumColumns` of MatConvNet, 18 by default |
| `--batch N` | all | the batch; for MatConvNet its `batchSize`, in `data num` and the last line |
| `--parts A,B,…` | `matconvnet.dag`, `.csv`, `.latex` | `layers`, `params`, `vars`, `memory`, \
`fields`: the tables of `print` |
| `--parts A,B,…` | `matconvnet.dag.dot` | `layers`, `params`, `vars`: nodes, with the edges \
between them |
| `--parts A,B,…` | `boda` | `layers`, `info`, `totals`; for a run also `profile`, `timers` |

In Python: `report.to_notation("matconvnet.dag", parts=("layers", "memory"), max_columns=8)`.
Options of MatConvNet's `print` and their counterparts: `Layers`, `Parameters`, `Variables` and
`Dependencies` are parts (`fields` for the last one), `All` is the default, `Format` is the
notation, and `FigurePath` is a file that `dot` writes:
`layerscope show NET --as matconvnet.dag.dot -o net.dot && dot -Tpdf net.dot -o net.pdf`.
"""


def forms() -> str:
    """The page of notations and conventions."""
    notations = "".join(f"| `{n}` | {t.says} | `{t.like}` |\n" for n, t in NOTATIONS.items())
    says = {name: says for name, (_, _, says) in TARGETS.items()} | BINARY
    targets = "".join(f"| `{name}` | {line} |\n" for name, line in says.items())
    counted = "".join(
        f"| `{name}` | {convention(name).says} | {convention(name).figure or 'none'} |\n"
        for name in CONVENTIONS
    )
    return (
        "# Notations and conventions\n\n"
        "A notation is a table style (`--as`). A convention is a way to count (`--like`). Each\n"
        "notation has a default convention, which `--like` overrides; the stamp names it.\n\n"
        f"| notation | what it prints | counts as |\n| --- | --- | --- |\n{notations}\n"
        f"{OPTIONS}\n"
        "## Conventions\n\n"
        f"| convention | what it counts | name of its figure |\n| --- | --- | --- |\n{counted}\n"
        f"{UNDER_A_CONVENTION}\n"
        "Besides csv, JSON, Markdown, LaTeX and HTML, `export --to` writes these. Simulators get\n"
        "the matrix products of a network; layers that are left out are counted on stderr.\n\n"
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


TEXTS = ("README.md", "docs/audit.md", "docs/explain.md", "docs/getting-started.md")

# result types that the public functions return, and classes to build graphs with
RESULTS = (
    "layerscope.report.types:Report", "layerscope.report.types:Layer",
    "layerscope.report.types:Totals", "layerscope.report.types:Coverage",
    "layerscope.report.compare:Comparison",
    "layerscope.report.explain:Explanation", "layerscope.report.training:Fit",
    "layerscope.analysis.training:Training", "layerscope.report.measurement:Measurement",
    "layerscope.report.measurement:Run", "layerscope.report.prediction:Prediction",
    "layerscope.plot.chart:Chart",
    "layerscope.auditing.findings:Audit", "layerscope.auditing.findings:AuditedTable",
    "layerscope.auditing.findings:AuditedColumn", "layerscope.auditing.findings:Finding",
    "layerscope.dropins:FlopCountAnalysis", "layerscope.graph:Graph", "layerscope.graph:Node",
    "layerscope.graph:Tensor", "layerscope.graph:Param", "layerscope.builder:Builder",
    "layerscope.errors:LayerscopeError",
)  # fmt: skip
API = """# Python API

Generated from the docstrings. The functions are in the package `layerscope`: `import layerscope`,
then `layerscope.analyze("resnet50")`. The classes are what they return, and the parts of a graph.

"""


def api() -> str:
    """The page of the Python API: functions, then classes with their fields and methods."""
    functions = [name for name in layerscope.__all__ if name[0].islower()]
    lines = [API, "## Functions\n\n"]
    for name in functions:
        found = getattr(layerscope, name)
        lines.append(f"### {name}\n\n{_signature(name, found)}\n{_docstring(found)}\n\n")
    lines.append("## Classes\n\n")
    lines += [_class(path) for path in RESULTS]
    return "".join(lines).rstrip("\n") + "\n"


def _docstring(found: object) -> str:
    return (inspect.getdoc(found) or "").strip()


def _signature(name: str, found: Any) -> str:
    """The signature as a block of Python, one parameter per line if it is long."""
    signature = inspect.signature(found)
    parameters = [
        parameter.replace(default=_Default(parameter.default))
        if parameter.default is not parameter.empty
        else parameter
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    signature = signature.replace(parameters=parameters)
    text = f"{name}{signature}".replace("'", "")
    if len(text) > 96:
        parts = [
            f"    {part.strip()},\n" for part in _split(text[len(name) + 1 : text.rindex(")")])
        ]
        text = f"{name}(\n{''.join(parts)}){text[text.rindex(')') + 1 :]}"
    return f"```py\n{text}\n```\n"


class _Default:
    """A default value whose repr has double quotes, as in the sources."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        if isinstance(self.value, tuple):
            return f"({', '.join(repr(_Default(each)) for each in self.value)})"
        return f'"{self.value}"' if isinstance(self.value, str) else repr(self.value)


def _split(text: str) -> list[str]:
    """Parameters of a signature: split at commas outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "[({") - (sign in "])}")
        if sign == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _class(path: str) -> str:
    module, _, name = path.partition(":")
    found = getattr(import_module(module), name)
    where = f"`layerscope.{name}`" if name in layerscope.__all__ else f"`{module}.{name}`"
    lines = [f"### {name}\n\n{where}. {_docstring(found)}\n\n"]
    fields = _fields(found)
    if fields:
        lines.append("| field | type |\n| --- | --- |\n")
        lines += [
            f"| `{field}` | `{kind.replace('|', chr(92) + '|')}` |\n" for field, kind in fields
        ]
        lines.append("\n")
    for member, value in _members(found):
        if isinstance(value, property) or hasattr(value, "func"):
            text = _docstring(value).replace("\n\n", " ").replace("\n", " ")
            lines.append(f"- `.{member}`: {text}\n")
        else:
            said = _docstring(value).replace("\n", "\n  ")
            shown = _signature(member, value)[6:-5].replace("(\n    ", "(").replace(",\n)", ")")
            shown = shown.replace("\n    ", " ")
            lines.append(f"- `.{shown}`: {said}\n")
    return "".join(lines).rstrip("\n") + "\n\n"


def _fields(found: type) -> list[tuple[str, str]]:
    """Fields of a struct with their types as written in the source."""
    kinds: dict[str, str] = {}
    for base in reversed(found.__mro__):
        kinds |= {name: str(kind) for name, kind in vars(base).get("__annotations__", {}).items()}
    return [(name, kinds[name]) for name in getattr(found, "__struct_fields__", ())]


def _members(found: type) -> list[tuple[str, Any]]:
    """Public methods and properties with a docstring, those of base classes in layerscope too."""
    members: dict[str, Any] = {}
    for base in reversed(found.__mro__):
        if base.__module__.startswith("layerscope"):
            members |= {
                name: value
                for name, value in vars(base).items()
                if not name.startswith("_")
                and (
                    inspect.isfunction(value)
                    or isinstance(value, property)
                    or hasattr(value, "func")
                )
                and _docstring(value)
            }
    return sorted(members.items())


def performance() -> str:
    """What the last `make bench-all` measured."""
    data = json.loads((ROOT / "docs" / "performance.json").read_text(encoding="utf-8"))
    made: str = runpy.run_path(str(ROOT / "docs" / "performance.py"))["page"](data)
    return made


def zoo_figures() -> str:
    """The module with the totals of every zoo network, so that listing them computes nothing."""
    lines = []
    for name in NAMES:
        report = layerscope.analyze(name)
        shape = shape_text(report.inputs[0].shape)
        lines.append(f'    "{name}": ({report.totals.params}, {report.totals.macs}, "{shape}"),\n')
    return (
        '"""Params, MACs and input of every network, for `layerscope zoo`. `make docs` writes this '
        'file."""\n\nFIGURES: dict[str, tuple[int, int, str]] = {\n' + "".join(lines) + "}\n"
    )


PAGES = {
    "src/layerscope/zoo/figures.py": zoo_figures,
    "docs/api.md": api,
    "docs/columns.md": columns,
    "docs/commands.md": commands,
    "docs/forms.md": forms,
    "docs/limits.md": named_limits,
    "docs/performance.md": performance,
    "docs/report.schema.json": schema,
    "docs/page.schema.json": lambda: schema(PageData),
    "docs/threat-model.md": threats,
    "docs/vgg16.svg": picture,
    **{name: partial(page, name) for name in TEXTS},
}


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (ROOT / name).write_text(make(), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
