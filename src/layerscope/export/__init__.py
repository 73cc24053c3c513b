"""Reports in formats for people and other programs: one file per format, listed here."""

from __future__ import annotations

# form -> module with write(report, view) -> str
FORMS = {
    "text": "text",
    "markdown": "markdown",
    "csv": "csv",
    "json": "json",
    "latex": "latex",
    "html": "html",
}
SUFFIXES = {
    ".txt": "text", ".md": "markdown", ".csv": "csv", ".json": "json", ".tex": "latex",
    ".html": "html",
}  # fmt: skip

# other targets of `export --to` -> module (of this package, or full), function, description
TARGETS = {
    "dot": (
        "dot",
        "write",
        "a Graphviz digraph, for dot -Tsvg; `--depth N` draws a module as one node",
    ),
    "scalesim": ("scalesim", "write", "a SCALE-Sim topology of convolutions"),
    "scalesim.gemm": (
        "scalesim",
        "write_gemm",
        "a SCALE-Sim topology of matrix products M, N, K (-i gemm)",
    ),
    "timeloop": ("timeloop", "write", "Timeloop problems, one file per layer in a folder"),
    "zigzag": ("zigzag", "write", "a ZigZag workload"),
    "svg": (
        "layerscope.plot.graph_picture",
        "write",
        "a picture of the graph, repeated modules folded; `--depth N` opens N levels of modules",
    ),
    "model-explorer": (
        "model_explorer",
        "write",
        "node data for Google's Model Explorer: a figure of every node of an ONNX or PyTorch graph",
    ),
    "builder": (
        "builder",
        "write",
        "Builder calls, one per line, which every command reads (FILE.builder)",
    ),
}
# targets that are written to a file only -> description
BINARY = {"onnx": "an ONNX model with random weights that engines can run; needs -o FILE"}

__all__ = ["BINARY", "FORMS", "SUFFIXES", "TARGETS"]
