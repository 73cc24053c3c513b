"""Attention within windows: a note with the multiply-adds of all pairs and of those inside."""

from __future__ import annotations

from typing import Any

from layerscope.graph.types import Graph


def window_note(graph: Graph, model: Any) -> str:
    """What the windows of a model's attention leave out, "" where there are none."""
    return ""
