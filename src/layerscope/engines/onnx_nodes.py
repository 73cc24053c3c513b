"""Operators of an ONNX model as plain records: what mapping needs to see of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Operator(Struct, frozen=True):
    """One node of a model; `activation` is what it was told to apply to its result."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: str = ""
    activation: str = ""


class Program(Struct, frozen=True):
    """A model's operators in order, its inputs and what it has stored."""

    operators: tuple[Operator, ...]
    inputs: tuple[str, ...]
    stored: frozenset[str]
    outputs: tuple[str, ...] = ()


def program_of(model: Any) -> Program:
    """The operators of an onnx.ModelProto."""
    graph = model.graph
    stored = frozenset(each.name for each in graph.initializer)
    return Program(
        tuple(
            Operator(
                node.op_type,
                node.name,
                tuple(node.input),
                tuple(node.output),
                node.domain,
                next((a.s.decode() for a in node.attribute if a.name == "activation"), ""),
            )
            for node in graph.node
        ),
        tuple(each.name for each in graph.input if each.name not in stored),
        stored,
        tuple(each.name for each in graph.output),
    )
