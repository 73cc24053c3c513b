"""Which functions of PyTorch have a rule: every sample call of its own tests, captured.

`python -m tests.torch_coverage` prints how many do and lists the rest with a reason;
`python -m tests.torch_coverage NAME ...` prints the nodes of these functions.
"""

from __future__ import annotations

import sys
import types
import unittest
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct

from layerscope.errors import LayerscopeError
from layerscope.formats.torch.capture import capture
from layerscope.ops import RULES
from tests.torch_nets import Doing, f, torch

SAMPLES = 4  # of each function


class Outcome(Struct):
    """What became of the calls of one function."""

    name: str
    nodes: list[str]  # ops of all its graphs
    unknown: set[str]  # operators without a rule
    refused: str = ""
    operators: set[str] = set()  # of PyTorch, as they reached the dispatcher


def op_infos() -> list[Any]:
    """PyTorch's own table of functions with sample inputs."""
    if "expecttest" not in sys.modules:
        try:
            import expecttest  # noqa: F401
        except ImportError:  # only the base class of its own tests is needed
            stub = types.ModuleType("expecttest")
            stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
            stub.ACCEPT = False  # type: ignore[attr-defined]
            sys.modules["expecttest"] = stub
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def samples(info: Any) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Calls of a function with valid arguments, in the first dtype that it takes."""
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float64):
        if dtype not in info.supported_dtypes("cpu"):
            continue
        given = info.sample_inputs("cpu", dtype, requires_grad=False)
        for sample in islice(given, SAMPLES):
            yield info.op, (sample.input, *sample.args), dict(sample.kwargs)
        return


def graph_of(call: Any, args: Any, kwargs: Any) -> Any:
    """The graph of one call, its tensors as inputs."""
    leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def run(*given: Any) -> Any:
        rest = iter(given)
        full = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        args, kwargs = torch.utils._pytree.tree_unflatten(full, spec)
        return call(*args, **kwargs)

    if not tensors:  # what is made of nothing beside some input
        return capture(Doing(lambda x: (x, run())), (torch.zeros(1),))
    return capture(Doing(run), tuple(tensors))


def outcome(name: str, calls: Any) -> Outcome:
    """Capture calls of one function."""
    made = Outcome(name, [], set(), operators=set())
    for call, args, kwargs in calls:
        try:
            graph = graph_of(call, args, kwargs)
        except LayerscopeError as error:
            made.refused = made.refused or f"{error}"
            continue
        made.nodes += [node.op for node in graph.nodes]
        made.unknown |= {node.op for node in graph.nodes if node.op not in RULES}
        made.operators |= {node.source.op for node in graph.nodes if node.source is not None}
    return made


def main(names: list[str]) -> None:
    warnings.simplefilter("ignore")
    total = known = 0
    for info in op_infos():
        name = info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")
        if names and info.name not in names:
            continue
        try:
            made = outcome(name, list(samples(info)))
        except Exception as error:  # noqa: BLE001
            print(f"{name}: FAILED {type(error).__name__}: {str(error)[:150]}", flush=True)
            continue
        total += 1
        known += not made.unknown and not made.refused
        if names:
            print(name, made.nodes)
        if made.unknown or made.refused:
            text = " ".join(sorted(made.unknown))
            print(f"{name}: {text} {made.refused[:160]}", flush=True)
    print(f"{known} of {total}")


if __name__ == "__main__":
    main(sys.argv[1:])
