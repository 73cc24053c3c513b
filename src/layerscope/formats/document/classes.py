"""Classes of PyTorch and Keras in printed tables, as ops and kinds of rows."""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.ops import SPECS, display_name
from layerscope.sheets.kinds import Kind

KINDS: Mapping[str, Kind] = {
    "conv": "conv", "conv_transpose": "deconv", "linear": "fc", "batch_norm": "batch_norm",
    "max_pool": "pool", "avg_pool": "pool", "global_avg_pool": "global_pool",
    "global_max_pool": "global_pool",
}  # fmt: skip
LEAST = 8  # letters of a class that is cut
# an adaptive pool into one position is a global one, and its rows are tried as both
ADAPTIVE = {"adaptive_avg_pool": "global_avg_pool", "adaptive_max_pool": "global_max_pool"}


def _classes(system: str) -> dict[str, str]:
    """Ops by their class in a system, with every number of axes."""
    found: dict[str, str] = {}
    for op in SPECS:
        name = display_name(op, system)
        if name is None:
            continue
        for rank in (1, 2, 3) if "{}" in name else (0,):
            found.setdefault(name.format(rank), ADAPTIVE.get(op, op))
    return found


TORCH: Mapping[str, str] = {
    **_classes("torch"), "GELU": "gelu", "Identity": "identity", "Flatten": "flatten",
    "LogSoftmax": "log_softmax", "SELU": "selu", "Softplus": "softplus", "CELU": "celu",
    "StochasticDepth": "dropout", "DropPath": "dropout",
}  # fmt: skip
KERAS: Mapping[str, str] = {
    **{name: op for name, op in _classes("keras").items() if name not in ("Activation", "ReLU")},
    **{f"DepthwiseConv{n}D": "conv" for n in (1, 2)},
    "ReLU": "relu", "SpatialDropout2D": "dropout", "Functional": "", "Sequential": "",
}  # fmt: skip


def kind_of_op(op: str) -> Kind:
    """The kind of a row of an op."""
    if not op:
        return "unknown"
    if op in SPECS and SPECS[op].family == "activation":
        return "activation"
    return KINDS.get(op, "unknown")


def count_of(text: str) -> int | None:
    """A whole number with or without commas; None for another text."""
    digits = text.replace(",", "").strip()
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 20 else None


def sizes_of(text: str) -> tuple[int | None, ...] | None:
    """The sizes of `[-1, 64, 7, 7]` or `(None, 7, 7, 64)`; None for another text."""
    inside = text.strip().strip("[]()").rstrip(",")
    if not inside:
        return ()
    found: list[int | None] = []
    for part in inside.split(","):
        word = part.strip()
        if word in ("None", "-1"):
            found.append(None)
        elif (size := count_of(word)) is not None:
            found.append(size)
        else:
            return None
    return tuple(found)


def _cut(kind: str, classes: Mapping[str, str]) -> str:
    """The op of a class whose name Keras cut at its column: MaxPooling2."""
    found = {op for name, op in classes.items() if len(kind) >= LEAST and name.startswith(kind)}
    return found.pop() if len(found) == 1 else ""


def op_and_kind(kind: str, classes: Mapping[str, str]) -> tuple[str, Kind]:
    """The op of a class, or of that name if there is no class, and the kind of its row."""
    op = (
        classes.get(kind, "")
        or _cut(kind, classes)
        or (ADAPTIVE.get(kind, kind) if kind in SPECS else "")
    )
    return op, kind_of_op(op)
