"""Binary search, running extremes, distances and embedding bags."""

from __future__ import annotations

from layerscope.lower.builder import NO_OPERATOR, Emitter

EMITTERS: dict[str, Emitter] = {}

REFUSED = dict.fromkeys(
    ("cdist", "searchsorted", "bincount", "cum_max", "cum_min", "masked_scatter", "embedding_bag"),
    NO_OPERATOR,
)
