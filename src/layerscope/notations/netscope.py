"""Netscope's Markdown table: one row per layer with Caffe's type names, and a TOTAL row.

- Rows are in Netscope's order: depth first from inputs declared ahead of the layers, later branches
  first; as declared where a data layer is one of the layers. The inputs come first of all.
- Outputs of a data layer besides its data, such as labels, have no row. Netscope has rows called
  implicit for blobs without a layer of that name; they repeat another row and are left out.
- A number strictly above a thousand, million … is divided by it and rounded to two decimals, in
  binary floating point as in Netscope's JavaScript, so that some halves round down (1005 is `1k`).
- A submodule(n) row stands for n layers; Netscope itself prints one less.
- DIM is width x height. A third axis is the height, as in Caffe: a 1-D map is 1 x L, a 3-D one
  width x height x depth, a vector 1x1.
- An input ahead of the layers that has other than four axes (`im_info`) stays an implicit layer of
  unknown size in Netscope and has no activation. A layer declared as implicit passes on its input.
- An unknown figure is `?`; a sum that lacks one has an entry `?` beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import floor

from msgspec import Struct
from msgspec.structs import replace

from layerscope.conventions.netscope import has_sizes
from layerscope.escaping import markdown
from layerscope.formats.caffe.names import NUMBERED, WORDS
from layerscope.graph.names import shape_text
from layerscope.graph.types import Claims, Graph, Node, Shape, Source, Tensor, claims_of
from layerscope.ops import FREE, Ops, display_name
from layerscope.report import Report
from layerscope.report.numbers import ABOUT
from layerscope.report.types import Layer, sum_ops

HEAD = "| ID | Name | Type | Input CH | Input DIM | Output CH | Output DIM | OPS | Mem |"
ALIGN = "| -- | :--- | :--- | :--- | :--- | :--- |:--- | :--- | :--- | "
STEM = "netscope"
NO_SIZES = ("?", "?x?")
UNITS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))

# what a Caffe file itself may call a layer; the words of its older form are written small
CAFFE = frozenset(WORDS) | frozenset(word.lower() for word in NUMBERED)


class NetscopeRow(Struct, frozen=True):
    """One row: name, type, channels and size (CH, DIM) of input and output, and costs."""

    name: str
    type: str
    before: tuple[str, str]
    after: tuple[str, str]
    ops: Ops
    activation: int
    param: int
    no_ops: bool = False  # operations unknown
    no_mem: bool = False  # memory unknown
    estimated: Ops = FREE  # of the operations, those that are estimates
    estimated_activation: int = 0
    claimed: tuple[str, ...] = ()  # its cells in the document that it was read from


def write(report: Report) -> str:
    """The table, one row an input and a layer."""
    return _table(_rows(report), claims_of(report.graph, STEM))


def write_folded(report: Report) -> str:
    """The table with consecutive layers of one name before `/` folded into a submodule(n) row."""
    return _table(_fold(_rows(report)), claims_of(report.graph, STEM))


def _table(rows: list[NetscopeRow], claims: Claims) -> str:
    lines = [HEAD, ALIGN]
    for number, row in enumerate(rows, 1):
        name, kind = (markdown(text, keep="_") for text in (row.name, row.type))
        cells = row.claimed or (*row.before, *row.after, *_costs(row))
        lines.append(_line(str(number), name, kind, *cells))
    total = _sum(NetscopeRow("", "", ("", ""), ("", ""), FREE, 0, 0), rows)
    lines.append(_line("TOTAL", *[""] * 6, *(claims.totals or _costs(total))))
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def _costs(row: NetscopeRow) -> tuple[str, str]:
    ops = row.ops
    counts = {"macc": ops.mac, "comp": ops.comp, "add": ops.add, "div": ops.div, "exp": ops.exp}
    counts["mul"] = ops.mul  # Netscope itself counts none
    memory = {"activation": row.activation, "param": row.param}
    about = {kind for kind in counts if getattr(row.estimated, "mac" if kind == "macc" else kind)}
    if row.estimated_activation:
        about.add("activation")
    return _entries(counts, about, row.no_ops), _entries(memory, about, row.no_mem)


def _entries(counts: dict[str, int], about: set[str], unknown: bool) -> str:
    """All counts except zeros, separated by <br>; estimates begin with a tilde."""
    entries = [
        f"{kind}\t{ABOUT if kind in about else ''}{number_text(count)}"
        for kind, count in counts.items()
        if count
    ]
    return "<br>".join([*entries, "?"] if unknown else entries)


def number_text(count: int) -> str:
    """A count with at most two decimals and k, M, G or T from strictly above a thousand on."""
    for factor, unit in UNITS:
        if count > factor:
            rounded = floor(count / factor * 100 + 0.5) / 100  # JavaScript's Math.round
            return f"{rounded:.2f}".rstrip("0").rstrip(".") + unit
    return str(count)


# -- rows


def _rows(report: Report) -> list[NetscopeRow]:
    rows = []
    seen: set[Source] = set()
    for tensor in report.inputs:
        source = tensor.source or Source()
        if source.op and source in seen:
            continue
        seen.add(source)
        called, kind = source.name or tensor.name, source.op or "data"
        if not has_sizes(tensor):
            rows.append(NetscopeRow(called, "implicit", NO_SIZES, NO_SIZES, FREE, 0, 0))
            continue
        sizes = _channels_and_dim(tensor.shape)
        row = NetscopeRow(called, kind, sizes, sizes, FREE, tensor.elements, 0)
        rows.append(replace(row, no_mem=tensor.shape is None))
    layers = report.layers
    claims = report.graph.claims
    own = claims is not None and claims.notation == STEM  # a table of Netscope's is in its order
    order = range(len(layers)) if own else depth_first(report.graph)
    claimed = claims_of(report.graph, STEM).rows
    for index in order:
        layer, row = layers[index], _row(layers[index])
        if own and layer.node.source is not None:  # a folded table may print a name twice
            row = replace(row, name=layer.node.source.name or row.name)
        rows.append(replace(row, claimed=claimed.get(layer.name, ())))
    return rows


def _row(layer: Layer) -> NetscopeRow:
    before = _channels_and_dim(layer.inputs[0].shape if layer.inputs else None)
    after = _channels_and_dim(layer.output)
    if layer.op == "concat" and layer.call is not None and before[1] == after[1]:
        before = after  # Netscope prints the sum of the channels of a concat
    if layer.op == "softmax_loss":
        after = before  # Netscope prints the input of a loss as its output
    unknown = layer.call is None
    return NetscopeRow(
        layer.name,
        _type(layer.node),
        before,
        after,
        layer.convention_kinds,
        layer.convention_activations,
        layer.params,
        unknown,
        unknown,
        layer.convention_kinds if layer.has_estimated_count else FREE,
        layer.convention_activations if layer.has_estimated_sizes else 0,
    )


def _type(node: Node) -> str:
    own = node.source.op if node.source is not None else ""
    return own if own in CAFFE else display_name(node.op, "caffe") or own or node.op


def _channels_and_dim(shape: Shape | None) -> tuple[str, str]:
    """Channels and WxH of a tensor."""
    if shape is None:
        return "?", "?"
    sizes = shape[:1:-1]  # from the last axis, the width, down to the first of space
    sizes = (*(1 for _ in range(2 - len(sizes))), *sizes)
    return str(shape[1] if len(shape) > 1 else 1), shape_text(sizes)


def depth_first(graph: Graph) -> Iterator[int]:
    """Numbers of the nodes in Netscope's order: a depth-first post-order, backwards.

    It starts from the inputs, the last first, and goes to readers in the order of declaration;
    nodes that no input reaches come before the others. Netscope joins layers by their names: the
    blobs of a data layer are no inputs to it, but any blob that no layer is named after is one.
    """
    readers: dict[str, list[int]] = {}
    roots = _roots(graph)
    for index, node in enumerate(graph.nodes):
        for name in dict.fromkeys(node.inputs):
            readers.setdefault(roots.get(name, name), []).append(index)
    done: list[int] = []
    met: set[int] = set()
    begins = [tensor.name for tensor in graph.inputs if not _made_by_a_layer(tensor)]
    begins = list(dict.fromkeys([*begins, *roots.values()]))
    starts = [readers.get(name, []) for name in reversed(begins)]
    for start in (*starts, range(len(graph.nodes) - 1, -1, -1)):
        path = [(-1, iter(start))]
        while path:
            index, ahead = path[-1]
            child = next((i for i in ahead if i not in met), None)
            if child is None:
                path.pop()
                if index >= 0:
                    done.append(index)
            else:
                met.add(child)
                outputs = [name for name in graph.nodes[child].outputs if name not in roots]
                path.append((child, iter(sorted({i for o in outputs for i in readers.get(o, ())}))))
    return reversed(done)


def _made_by_a_layer(tensor: Tensor) -> bool:
    return tensor.source is not None and bool(tensor.source.op)


def _roots(graph: Graph) -> dict[str, str]:
    """Tensor -> blob, of the tensors of a Caffe file whose blob no layer is named after."""
    data = [tensor for tensor in graph.inputs if _made_by_a_layer(tensor)]
    nodes = [node for node in graph.nodes if node.source is not None and node.source.op in CAFFE]
    named = {node.source.name or node.name for node in nodes if node.source is not None}
    named |= {tensor.source.name for tensor in data if tensor.source is not None}
    roots = {tensor.name: tensor.name for tensor in data if tensor.name not in named}
    for node in nodes:
        for name in node.outputs:
            blob, _, writer = name.rpartition(":")  # written in-place
            blob = blob if blob and writer == node.name else name
            if blob not in named:
                roots[name] = blob
    return roots


# -- sums


def _fold(rows: list[NetscopeRow]) -> list[NetscopeRow]:
    """Fold consecutive rows that have the same name before the first `/`."""
    runs: list[list[NetscopeRow]] = []
    for row in rows:
        module, slash, _ = row.name.partition("/")
        if slash and module and runs and runs[-1][-1].name.partition("/")[0] == module:
            runs[-1].append(row)
        else:
            runs.append([row])
    return [_submodule(run) if len(run) > 1 else run[0] for run in runs]


def _submodule(run: list[NetscopeRow]) -> NetscopeRow:
    module = run[0].name.partition("/")[0]
    return _sum(
        NetscopeRow(module, f"submodule({len(run)})", run[0].before, run[-1].after, FREE, 0, 0), run
    )


def _sum(total: NetscopeRow, rows: Iterable[NetscopeRow]) -> NetscopeRow:
    parts = list(rows)
    return replace(
        total,
        ops=sum_ops([row.ops for row in parts]),
        activation=sum(row.activation for row in parts),
        param=sum(row.param for row in parts),
        no_ops=any(row.no_ops for row in parts),
        no_mem=any(row.no_mem for row in parts),
        estimated=sum_ops([row.estimated for row in parts]),
        estimated_activation=sum(row.estimated_activation for row in parts),
    )
