"""A DagNN as MatConvNet's `print(…, 'Format', 'dot')` prints it: a digraph for Graphviz.

Nodes for variables, parameters and layers, with edges from what a layer reads and to what it
writes, as in the print.m of MatConvNet's last release, which was read and not run. MatConvNet draws
all of them; without one of `parts`, its nodes and the edges from and to them are left out.
Differences: names that are no plain ids are quoted, special characters of record labels are
escaped, and a layer whose name is also the id of a variable or parameter gets an id of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from layerscope.escaping import quoted, record_text, visible
from layerscope.graph.names import unique_name
from layerscope.notations.matconvnet_dag import (
    Dag,
    Parts,
    chosen_parts,
    dag,
    dims_text,
    mem_text,
)
from layerscope.report import Report

PARTS = ("layers", "params", "vars")
PLAIN_ID = re.compile("[A-Za-z_][A-Za-z0-9_]*")
KEYWORDS = ("node", "edge", "graph", "digraph", "subgraph", "strict")  # in any case
PREFIXES = {"vars": "var_", "params": "par_", "layers": ""}
ARRAY_STYLE = 'shape=record style="solid,rounded,filled"'
LAYER_STYLE = 'shape=record style="bold,filled" color="tomato4" fillcolor="tomato"'
COLOURS = {
    "vars": "color=cornsilk4 fillcolor=beige",
    "params": "color=lightsteelblue4 fillcolor=lightsteelblue",
}
FONT = 'fontsize=12 fontname="helvetica"'

Ids = dict[tuple[str, str], str]  # part and name -> id


def write(report: Report, parts: Parts = None) -> str:
    """The digraph with the chosen parts."""
    chosen = chosen_parts(parts, PARTS)
    net = dag(report)
    ids = _ids(net)
    lines = ["digraph DagNN {", "\tfontsize=12"]
    for part, arrays in (("vars", net.variables), ("params", net.params)):
        for name, array in arrays.items() if part in chosen else ():
            sizes, memory = dims_text(array.sizes), array.sign + mem_text(array.bytes)
            label = f"{{{{{record_text(name)}}} | {{{sizes} | {memory} }}}}"
            style = f"{ARRAY_STYLE} {COLOURS[part]} {FONT}"
            lines.append(f'\t{ids[part, name]} [label="{label}" {style} ]')
    for layer in net.layers if "layers" in chosen else ():
        own = ids["layers", layer.name]
        label = f"{{ {record_text(layer.name)} | {record_text(layer.block)} }}"
        lines.append(f'\t{own} [label="{label}" {LAYER_STYLE} {FONT} ]')
        if "vars" in chosen:
            lines += [f"\t{ids['vars', name]}->{own} [weight=10]" for name in layer.inputs]
            lines += [f"\t{own}->{ids['vars', name]} [weight=10]" for name in layer.outputs]
        if "params" in chosen:
            lines += [f"\t{ids['params', name]}->{own} [weight=1]" for name in layer.params]
    return "\n".join([*lines, "}"]) + "\n"


def _ids(net: Dag) -> Ids:
    """Ids of all nodes, no two the same."""
    ids: Ids = {}
    taken: set[str] = set()
    names: dict[str, Iterable[str]] = {
        "vars": net.variables,
        "params": net.params,
        "layers": [layer.name for layer in net.layers],
    }
    for part, prefix in PREFIXES.items():
        for name in names[part]:
            text = unique_name(visible(prefix + name), taken)
            taken.add(text)
            ids[part, name] = _id(text)
    return ids


def _id(text: str) -> str:
    """An id of Graphviz's language, in quotes unless it is a plain word."""
    plain = PLAIN_ID.fullmatch(text) and text.lower() not in KEYWORDS
    return text if plain else quoted(text)
