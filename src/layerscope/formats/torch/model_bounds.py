"""Bounds of a model that is built from a configuration of others: modules and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from layerscope.errors import FormatError
from layerscope.formats.torch.capture import the_torch
from layerscope.limits import MODEL_BYTES, MODEL_MODULES


@contextmanager
def bounded_model(path: str, allocates: bool) -> Iterator[None]:
    """Raise while a model is built once it has too many modules, or too many bytes of weights."""
    torch = the_torch()
    dispatch: Any = torch.utils._python_dispatch.TorchDispatchMode
    modules, allocated = 0, 0

    def count_module(*_: Any) -> None:
        nonlocal modules
        modules += 1
        MODEL_MODULES.check(modules, path)

    class Allocations(dispatch):  # type: ignore[misc]
        """Counts bytes of tensors that are made of sizes alone."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            nonlocal allocated
            kwargs = kwargs or {}
            sizes = args[0] if args and isinstance(args[0], (list, tuple)) else ()
            if sizes and all(isinstance(size, int) for size in sizes):
                count = 4
                for size in sizes:
                    count *= max(size, 0)
                allocated += count
                if allocated > MODEL_BYTES.most:
                    raise FormatError(f"{path}: {MODEL_BYTES.refusal(allocated)}")
            return func(*args, **kwargs)

    hook = torch.nn.modules.module.register_module_module_registration_hook(count_module)
    try:
        with Allocations() if allocates else nullcontext():
            yield
    finally:
        hook.remove()
