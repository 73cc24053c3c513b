"""Reports in formats that other programs read. One file a format; this is the table of them."""

from __future__ import annotations

# form -> module; each has write(report, view) -> str, json and text take more
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

# what `export --to` writes beside these -> module, function, what it is
TARGETS = {
    "dot": ("dot", "write", "a Graphviz digraph, for dot -Tsvg"),
    "scalesim": ("scalesim", "write", "SCALE-Sim's topology of convolutions"),
    "scalesim.gemm": ("scalesim", "write_gemm", "the same as products M, N, K, for -i gemm"),
    "timeloop": ("timeloop", "write", "Timeloop problems, a file a layer into a folder"),
    "zigzag": ("zigzag", "write", "ZigZag's workload of layers"),
}
# what it writes into a file only, by other ways -> what it is
BINARY = {"onnx": "an ONNX model with random weights, which engines run; -o FILE is needed"}

__all__ = ["BINARY", "FORMS", "SUFFIXES", "TARGETS"]
