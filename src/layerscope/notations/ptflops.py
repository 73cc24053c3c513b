"""What ptflops 0.7.5 prints for a model: its modules, each with parameters, MACs and their shares.

The figures of a module are those of the modules in it that ptflops has a rule for; other modules
print zero. What it counts for functions is in the total that shares are of, and in no module.

- A class that prints itself in its own way shows no figures, as torchvision's StochasticDepth.
- Figures that lack unknown ones end with `+ ?`, and their shares are `?%`; ptflops counts as zero
  what it has no rule for.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec import Struct

from layerscope.conventions.counted_nodes import counted_nodes
from layerscope.conventions.ptflops import CONVENTION, COUNTED, count_of_module, module_ops
from layerscope.notations.module import leaves_of, print_modules
from layerscope.report import Report
from layerscope.report.modules import figure_of_layer, parameters_by_path
from layerscope.report.numbers import UNKNOWN, plus_unknown

DECIMALS = 2
MACS = ((9, " GMac"), (6, " MMac"), (3, " KMac"))
PARAMS = ((6, " M"), (3, " k"))
# Classes of torchvision.ops that print themselves in their own way.
OWN_PRINT = frozenset((
    "DeformConv2d", "FrozenBatchNorm2d", "PSRoIAlign", "PSRoIPool", "RoIAlign", "RoIPool",
    "StochasticDepth",
))  # fmt: skip


class ModuleCount(Struct):
    """Parameters and MACs of a module; whether some are unknown."""

    params: int = 0
    macs: int = 0
    lacks_params: bool = False
    lacks_macs: bool = False

    def add(self, other: ModuleCount) -> None:
        """Add the counts of a module inside."""
        self.params += other.params
        self.macs += other.macs
        self.lacks_params |= other.lacks_params
        self.lacks_macs |= other.lacks_macs


def write(report: Report) -> str:
    """The printed module with figures."""
    found = _counts(report)
    batch = report.batch or 1
    total = found[""].macs / batch + _functions(report)
    params = sum(_trainable(report).values())
    classes = _classes(report)

    def figures(path: str) -> str:
        if classes.get(path, "").partition("(")[0].rpartition(".")[2] in OWN_PRINT:
            return ""
        count = found[path]
        macs = count.macs / batch
        texts = (
            plus_unknown(_params_text(count.params), count.params, count.lacks_params),
            f"{_share(count.params / max(params, 1), found[''].lacks_params)} Params",
            plus_unknown(_macs_text(macs), count.macs, count.lacks_macs),
            f"{_share(macs / max(total, 1), found[''].lacks_macs)} MACs",
        )
        return ", ".join(texts) + ", "

    return print_modules(report, figures)


def _classes(report: Report) -> dict[str, str]:
    """The class of every module by path, with its package unless that is torch.nn."""
    leaves = {path: kind for path, (kind, _) in leaves_of(report).items()}
    printed = {path: kind for path, kind in report.graph.modules.items() if kind}
    return {**leaves, **printed, **report.graph.kinds}


def _trainable(report: Report) -> dict[str, int]:
    frozen = report.graph.frozen
    return {
        path: param.elements
        for path, param in parameters_by_path(report).items()
        if path not in frozen
    }


def _own_macs(report: Report) -> dict[str, int]:
    """MACs that each module counts itself; those of ptflops for its convention."""
    found: dict[str, int] = defaultdict(int)
    if report.convention.name != CONVENTION.name:
        for layer in report.layers:
            found[layer.node.module or ".".join(layer.scope)] += figure_of_layer(layer)
        return found
    for node in counted_nodes(report.graph, report.shapes, report.costs, "modules"):
        if node.inferred_call is not None:
            path, ops = count_of_module(node)
            found[path] += (ops.mac + ops.add) * node.node.times
    return found


def _functions(report: Report) -> int:
    """MACs of functions, which no module counts."""
    if report.convention.name != CONVENTION.name:
        return 0
    counted = sum(figure_of_layer(layer) for layer in report.layers)
    nodes = counted_nodes(report.graph, report.shapes, report.costs, "modules")
    shares = [
        module_ops(node) * (node.module_uses * node.node.times)
        for node in nodes
        if node.inferred_call is not None
    ]
    return counted - sum(ops.mac + ops.add for ops in shares)


def _counts(report: Report) -> dict[str, ModuleCount]:
    """Counts of every module: its own if ptflops has a rule for its class, else of those in it."""
    found: dict[str, ModuleCount] = defaultdict(ModuleCount)
    classes, own = _classes(report), _own_macs(report)
    for path, elements in _trainable(report).items():
        home = path.rpartition(".")[0]
        while home and classes.get(home, "").partition("(")[0] not in COUNTED:
            home = home.rpartition(".")[0]
        if home:
            found[home].params += elements
    for path, macs in own.items():
        found[path].macs += macs
    for layer in report.layers:
        if layer.lacks_figures:
            found[layer.node.module].lacks_macs = True
        if not report.params_known(layer.node):
            found[layer.node.module].lacks_params = True
    return _summed(found, classes)


def _summed(found: dict[str, ModuleCount], classes: dict[str, str]) -> dict[str, ModuleCount]:
    """The same with the counts of modules inside, the innermost first."""
    paths = {*found, *classes, ""}
    for path in sorted(paths, key=lambda path: -path.count(".") if path else 1):
        if path:
            outer = path.rpartition(".")[0]
            while outer and outer not in paths:
                outer = outer.rpartition(".")[0]
            if classes.get(outer, "").partition("(")[0] not in COUNTED:
                found[outer].add(found[path])
    return found


# -- text


def _share(part: float, incomplete: bool) -> str:
    """A share; of a total that lacks unknown figures it is unknown."""
    return f"{UNKNOWN}%" if incomplete else f"{part:.3%}"


def _params_text(count: int) -> str:
    for power, unit in PARAMS:
        if count >= 10**power:
            return f"{round(count / 10**power, DECIMALS)}{unit}"
    return str(count)


def _macs_text(macs: float) -> str:
    for power, unit in MACS:
        if macs >= 10**power:
            return f"{round(macs / 10.0**power, DECIMALS)}{unit}"
    return f"{macs} Mac"
