"""Which functions of PyTorch have a rule: every sample call of its own tests, captured.

`python -m tests.formats.torch.torch_coverage` prints how many do and lists the rest with a reason;
`python -m tests.formats.torch.torch_coverage NAME ...` prints the nodes of these functions.
"""

from __future__ import annotations

import importlib.util
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
from layerscope.ops import SPECS
from tests.formats.torch.torch_nets import Doing, f, torch

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
    if "expecttest" not in sys.modules and importlib.util.find_spec("expecttest") is None:
        stub = types.ModuleType("expecttest")  # only a base class of it is needed
        stub.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        stub.ACCEPT = False  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stub
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = importlib.import_module("torch.testing._internal.common_methods_invocations")
    return list(table.op_db)


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
        made.unknown |= {node.op for node in graph.nodes if node.op not in SPECS}
        made.operators |= {node.source.op for node in graph.nodes if node.source is not None}
    return made


def x_of(*shape: int) -> Any:
    return torch.rand(shape)


# Public functions of torch.nn.functional that PyTorch's table has no samples of.
FUNCTIONAL: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{
        f"nn.functional.adaptive_max_pool{n}d_with_indices": (
            getattr(f, f"adaptive_max_pool{n}d_with_indices"), (x_of(1, 2, *[6] * n), 2)
        )
        for n in (1, 2, 3)
    },
    **{
        f"nn.functional.max_pool{n}d_with_indices": (
            getattr(f, f"max_pool{n}d_with_indices"), (x_of(1, 2, *[6] * n), 2)
        )
        for n in (1, 2, 3)
    },
    **{
        f"nn.functional.fractional_max_pool{n}d_with_indices": (
            getattr(f, f"fractional_max_pool{n}d_with_indices"), (x_of(1, 2, *[6] * n), 2, 3)
        )
        for n in (2, 3)
    },
    **{
        f"nn.functional.lp_pool{n}d": (
            getattr(f, f"lp_pool{n}d"), (x_of(1, 2, *[6] * n), 2.0, 2)
        )
        for n in (1, 2, 3)
    },
    **{
        f"nn.functional.{name}_": (lambda x, name=name: getattr(f, f"{name}_")(x * 1), (x_of(4),))
        for name in ("celu", "elu", "hardtanh", "leaky_relu", "relu", "rrelu", "selu")
    },
    "nn.functional.threshold_": (lambda x: f.threshold_(x * 1, 0.1, 20), (x_of(4),)),
    "nn.functional.affine_grid": (f.affine_grid, (x_of(2, 2, 3), (2, 3, 4, 4), False)),
    "nn.functional.conv_tbc": (f.conv_tbc, (x_of(5, 2, 3), x_of(3, 3, 4), x_of(4), 1)),
    "nn.functional.dropout1d": (f.dropout1d, (x_of(2, 3, 4),)),
    "nn.functional.fold": (f.fold, (x_of(1, 12, 9), (4, 4), (2, 2))),
    "nn.functional.gumbel_softmax": (f.gumbel_softmax, (x_of(2, 3),)),
    "nn.functional.native_channel_shuffle": (f.native_channel_shuffle, (x_of(1, 4, 2, 2), 2)),
    "nn.functional.upsample": (f.upsample, (x_of(1, 2, 4, 4), (8, 8))),
}  # fmt: skip

VALUES = "the number of operations depends on values"
# Functions without a rule by how their names begin, and why.
REASONS = {
    "gcd": VALUES,
    "lcm": VALUES,
    "special.chebyshev": VALUES,
    "special.shifted_chebyshev": VALUES,
    "special.hermite": VALUES,
    "special.laguerre": VALUES,
    "special.legendre": VALUES,
    "_segment_reduce": VALUES,
    "linalg.lstsq": "PyTorch chooses the driver",
    "jiterator": "on CUDA alone",
    "sparse.": "sparse layouts have no strides",
    "to_sparse": "sparse layouts have no strides",
    "histogram": "statistics of data, no layer",
    "hash_tensor": "for debugging",
    "_chunk_cat": "for sharded training",
    "_softmax_backward_data": "of the backward pass",
    "native_dropout_backward": "of the backward pass",
    "max_pool2d_with_indices_backward": "of the backward pass",
    "_unsafe_masked_index_put_accumulate": "of the backward pass",
    "_native_batch_norm_legit": "updates running statistics that it is given",
    "_batch_norm_with_update": "updates running statistics that it is given",
    "nn.functional.linear_cross_entropy.chunked": "an operator with a schedule of its own",
}


def reason(name: str) -> str:
    """Why a function has no rule; "" for none."""
    return next((why for begin, why in REASONS.items() if name.startswith(begin)), "")


def outcomes(names: list[str] | None = None) -> list[Outcome]:
    """What becomes of all functions, or of these."""
    found = []
    for info in op_infos():
        name = info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")
        if names and info.name not in names:
            continue
        try:
            found.append(outcome(name, list(samples(info))))
        except RuntimeError as error:  # of tensors that cannot be inputs
            found.append(Outcome(name, [], set(), f"{error}"))
    for name, (call, args) in FUNCTIONAL.items():
        if not names or name in names:
            found.append(outcome(name, [(call, args, {})]))
    return found


def main(names: list[str]) -> None:
    """Print the coverage, or the nodes of the functions named."""
    warnings.simplefilter("ignore")
    found = outcomes(names)
    missing = [each for each in found if each.unknown or each.refused]
    for each in found if names else missing:
        if names:
            print(each.name, each.nodes)
        why = reason(each.name) or each.refused[:160]
        print(f"{each.name}: {' '.join(sorted(each.unknown))} {why}")
    print(f"{len(found) - len(missing)} of {len(found)} functions have a rule")


if __name__ == "__main__":
    main(sys.argv[1:])
