"""Problems for Timeloop: one YAML document per layer, with its shape and sizes.

Checked against NVlabs/timeloop problem-shapes/{cnn_layer,gemm_ABZ}.yaml, the front end's reader
Accelergy-Project/timeloopfe timeloopfe/v4/problem.py (version 0.4; it refuses other keys, so the
layer's name is a comment), timeloop-accelergy-exercises' problem_raella.yaml (a dimension G of
groups) and pytorch2timeloop-converter's grouped_convolution.yaml.

R, P and W… are the width, S, Q and H… the height. An input needs no padding: its size follows from
the windows. Timeloop reads one problem at a time: one file per layer.
"""

from __future__ import annotations

import re

from layerscope.escaping import one_line, quoted
from layerscope.export.loop_nests import LoopNest, loop_nests
from layerscope.graph.names import unique_names
from layerscope.report.types import Report

VERSION = "0.4"


def write(report: Report) -> str:
    """All problems, one document after another."""
    return "".join(f"---\n{text}" for text in files(report).values())


def files(report: Report) -> dict[str, str]:
    """Problem texts by file name; the names are numbered in order of execution."""
    found = loop_nests(report)
    digits = len(str(len(found)))
    names = unique_names(re.sub(r"[^A-Za-z0-9_.+-]", "_", nest.name)[:80] for nest in found)
    return {
        f"{n:0{digits}}_{name}.yaml": _problem(nest, report)
        for n, (nest, name) in enumerate(zip(found, names, strict=True), 1)
    }


def _problem(nest: LoopNest, report: Report) -> str:
    names = [one_line(text) for text in (report.name, nest.name, nest.layer.op)]
    head = f"# {names[0]}: {names[1]} ({names[2]}), {nest.macs:,} MACs\n"
    body = _product(nest) if nest.window is None else _convolution(nest)
    return f"{head}problem:\n  version: {VERSION}\n{body}"


def _convolution(nest: LoopNest) -> str:
    window = nest.window
    assert window is not None
    y, x = window.y, window.x
    grouped = window.groups > 1
    group = ["[[G]]"] if grouped else []
    shape = _shape(
        "CNN_Layer_Grouped" if grouped else "CNN_Layer",
        ["R", "S", "P", "Q", "C", "K", "N", *(["G"] if grouped else [])],
        {
            "Weights": [*group, "[[C]]", "[[K]]", "[[R]]", "[[S]]"],
            "Inputs": [
                "[[N]]", *group, "[[C]]",
                "[[R, Wdilation], [P, Wstride]]", "[[S, Hdilation], [Q, Hstride]]",
            ],
            "Outputs": ["[[N]]", *group, "[[K]]", "[[Q]]", "[[P]]"],
        },
        ["Wstride", "Hstride", "Wdilation", "Hdilation"],
    )  # fmt: skip
    sizes = {
        "R": x.kernel, "S": y.kernel, "P": x.output, "Q": y.output,
        "C": window.in_channels, "K": window.out_channels, "N": window.batch,
        "Wstride": x.stride, "Hstride": y.stride,
        "Wdilation": x.dilation, "Hdilation": y.dilation,
    }  # fmt: skip
    return shape + _instance(sizes | ({"G": window.groups} if grouped else {}))


def _product(nest: LoopNest) -> str:
    gemm = nest.gemm
    several = gemm.count > 1
    batch = ["[[H]]"] if several else []
    shape = _shape(
        "gemm_ABZ_batched" if several else "gemm_ABZ",
        [*(["H"] if several else []), "M", "N", "K"],
        {
            "A": [*batch, "[[M]]", "[[K]]"],
            "B": [*batch, "[[N]]", "[[K]]"],
            "Z": [*batch, "[[M]]", "[[N]]"],
        },
    )
    sizes = {"M": gemm.m, "N": gemm.n, "K": gemm.k}
    return shape + _instance(({"H": gemm.count} if several else {}) | sizes)


def _shape(
    name: str,
    dimensions: list[str],
    spaces: dict[str, list[str]],
    coefficients: list[str] | None = None,
) -> str:
    """The problem shape; the last data space is the output."""
    lines = ["  shape:", f"    name: {quoted(name)}", f"    dimensions: [{', '.join(dimensions)}]"]
    if coefficients:
        lines.append("    coefficients:")
        lines += [f"      - {{name: {each}, default: 1}}" for each in coefficients]
    lines.append("    data_spaces:")
    for space, projection in spaces.items():
        lines += [f"      - name: {space}", "        projection:"]
        lines += [f"          - {part}" for part in projection]
    return "\n".join([*lines, "        read_write: True"]) + "\n"


def _instance(sizes: dict[str, int]) -> str:
    return "  instance:\n" + "".join(f"    {name}: {size}\n" for name, size in sizes.items())
