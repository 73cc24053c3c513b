"""PyTorch's own count of a model: FlopCounterMode with attention written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from tests.wild.rules import ALGORITHMS, UNCOUNTED, Call


def count(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """Multiply-adds of one forward: half of FlopCounterMode's FLOPs."""
    counter = FlopCounterMode(display=False)
    _run(model, args, kwargs, counter)
    flops = counter.get_total_flops()
    assert flops % 2 == 0
    return int(flops // 2)


def calls(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Call]:
    """The products of one forward, those without a formula included."""
    products = Products(model, (args, kwargs))
    with products:
        _run(model, args, kwargs, FlopCounterMode(display=False))
    return products.found


def _run(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], counter: Any) -> None:
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it has no formula for the fused layer
    trained = [param for param in model.parameters() if param.requires_grad]
    for param in trained:  # its hooks fail on views of parameters that are made without gradients
        param.requires_grad_(False)
    try:
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
            model(*args, **kwargs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for param in trained:
            param.requires_grad_(True)


class Products(TorchDispatchMode):  # type: ignore[misc]
    """Lists calls that multiply matrices, and follows what depends on inputs and parameters."""

    def __init__(self, model: Any, given: Any) -> None:
        super().__init__()
        self.found: list[Call] = []
        self._live: dict[int, StorageWeakRef] = {}  # kept, so that an address is not used again
        for tensor in (*model.parameters(), *tree_leaves(given)):
            self._mark(tensor)

    def _mark(self, tensor: Any) -> None:
        if isinstance(tensor, torch.Tensor):
            storage = StorageWeakRef(tensor.untyped_storage())
            self._live[storage.cdata] = storage

    def _is_live(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._live

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        outs = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor)]
        live = any(self._is_live(tensor) for tensor in tensors)
        if live:
            written = [tensors[0]] if tensors and func._schema.is_mutable else []
            for tensor in (*outs, *written):
                self._mark(tensor)
        packet, name = func._overloadpacket, func._schema.name
        if (packet in flop_registry or name in UNCOUNTED or name in ALGORITHMS) and outs:
            formula = flop_registry.get(packet)
            flops = formula(*args, **kwargs, out_val=out) if formula else 0
            self.found.append(
                Call(
                    name,
                    tuple(tuple(tensor.shape) for tensor in tensors),
                    tuple(outs[0].shape),
                    flops // 2,
                    not live,
                    sum(tensor.is_complex() for tensor in tensors),
                )
            )
        return out
