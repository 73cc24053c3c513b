"""Per-layer shapes, parameters, operations, memory and receptive fields of neural networks.

`load` reads a network into a Graph, and `Builder` builds one. `analyze` applies the rules of `ops`
to a Graph and returns a Report, counted by a convention. Notations and exports print the Report.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from layerscope.version import __version__

if TYPE_CHECKING:
    from layerscope.api.auditing import audit
    from layerscope.api.comparing import compare
    from layerscope.api.fitting import fit
    from layerscope.api.networks import analyze, load
    from layerscope.api.reporting import report_page
    from layerscope.api.timing import measure, predict
    from layerscope.builder import Builder
    from layerscope.dropins import FlopCountAnalysis, profile, summary
    from layerscope.errors import LayerscopeError
    from layerscope.graph import Graph, Node, Param, Tensor
    from layerscope.report import Report
    from layerscope.report.compare import Comparison
    from layerscope.sweeping.functions import sweep
    from layerscope.sweeping.results import results
    from layerscope.sweeping.tasks import SweepOptions

# Imported on first use: `layerscope --help` needs none of them.
PUBLIC = {
    "analyze": "layerscope.api.networks",
    "audit": "layerscope.api.auditing",
    "compare": "layerscope.api.comparing",
    "explain": "layerscope.api.explaining",
    "fit": "layerscope.api.fitting",
    "load": "layerscope.api.networks",
    "measure": "layerscope.api.timing",
    "results": "layerscope.sweeping.results",
    "sweep": "layerscope.sweeping.functions",
    "predict": "layerscope.api.timing",
    "report_page": "layerscope.api.reporting",
    "Builder": "layerscope.builder",
    "profile": "layerscope.dropins",
    "summary": "layerscope.dropins",
    "Comparison": "layerscope.report.compare",
    "Explanation": "layerscope.report.explain",
    "FlopCountAnalysis": "layerscope.dropins",
    "Graph": "layerscope.graph",
    "LayerscopeError": "layerscope.errors",
    "Node": "layerscope.graph",
    "Param": "layerscope.graph",
    "Report": "layerscope.report",
    "SweepOptions": "layerscope.sweeping.tasks",
    "Tensor": "layerscope.graph",
}

__all__ = [
    "Builder",
    "Comparison",
    "Explanation",
    "FlopCountAnalysis",
    "Graph",
    "LayerscopeError",
    "Node",
    "Param",
    "Report",
    "SweepOptions",
    "Tensor",
    "__version__",
    "analyze",
    "audit",
    "compare",
    "explain",
    "fit",
    "load",
    "measure",
    "predict",
    "profile",
    "report_page",
    "results",
    "summary",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'layerscope' has no attribute {name!r}")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return __all__
