"""Build a model on the meta device, within limits on its modules and bytes of weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from layerscope.errors import FormatError, LayerscopeError
from layerscope.formats.torch.capture import the_torch
from layerscope.limits import MODEL_BYTES, MODEL_MODULES

if TYPE_CHECKING:
    from torch.nn import Module


def build(
    make: Callable[[], Module],
    *,
    meta: bool = True,
    guard: Callable[[bool], AbstractContextManager[object]] = nullcontext,
) -> Module:
    """Return a model in eval mode, on the meta device unless it cannot be built or run there.

    Random weights use seed 0; the random state of the process is restored. `guard` is entered
    around each attempt and receives whether that attempt allocates weights.
    """
    torch = the_torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if not meta:
            return make().eval()
        try:
            with guard(False), torch.device("meta"):
                return make().eval()
        except LayerscopeError:
            raise
        except Exception:
            with guard(True):
                return make().eval()


@contextmanager
def bounded_model(path: str, allocates: bool) -> Iterator[None]:
    """Raise while a model is built once it has too many modules, or too many bytes of weights."""
    torch = the_torch()
    dispatch: Any = torch.utils._python_dispatch.TorchDispatchMode
    modules, allocated = 0, 0

    def count_module(*_: object) -> None:
        nonlocal modules
        modules += 1
        MODEL_MODULES.check(modules, path)

    class Allocations(dispatch):  # type: ignore[misc]
        """Counts the bytes of tensors created from sizes, such as torch.empty."""

        def __torch_dispatch__(
            self,
            func: Callable[..., object],
            types: Sequence[type],
            args: tuple[object, ...] = (),
            kwargs: Mapping[str, object] | None = None,
        ) -> object:
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
