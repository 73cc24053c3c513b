"""The state of one forward, which the handlers of operator calls read and write."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from layerscope.formats.torch.grads import plain_grad
from layerscope.formats.torch.packed import Packs
from layerscope.formats.torch.tensors import TensorMeta
from layerscope.formats.torch.torch_types import Rule, Torch
from layerscope.formats.torch.tracking import Tracker
from layerscope.formats.torch.written_tensors import WrittenTensors
from layerscope.graph.dtype_names import TORCH_NAMES

if TYPE_CHECKING:
    from torch import Tensor, dtype
    from torch._ops import OpOverload

    from layerscope.formats.torch.caches import Plans
    from layerscope.formats.torch.op_calls import OpInfo
    from layerscope.formats.torch.tensor_copies import MetaCopies

MOST_COMPUTED = 1 << 22  # elements of a tensor whose values are computed if the model reads them


class DataDependent(Exception):
    """An operator needs values that meta tensors do not have; the text names it."""

    of_literal = False  # PyTorch dropped values that the forward writes out: torch.tensor([1, 2])


class NoKernel(DataDependent):
    """An operator that PyTorch has no kernel for on the meta device."""


@cache
def _dtypes(torch: Torch) -> dict[str, dtype]:
    return {
        own: getattr(torch, name) for name, own in reversed(TORCH_NAMES.items())
        if hasattr(torch, name)
    }  # fmt: skip


class Capture:
    """One forward on the way to a graph.

    Its methods make tensors and errors; calls of operators are handled by functions that take it
    (dispatch.py).
    """

    def __init__(
        self,
        torch: Torch,
        tracker: Tracker,
        *,
        real: bool,
        floating: str,
        rules: Mapping[str, Rule],
    ) -> None:
        self.torch = torch
        self.tracker = tracker  # the graph so far: tensors, nodes, names
        self.real = real  # run with values: nothing is inferred instead of a run
        self.floating = floating  # float dtype of the model
        # Results beside the first, such as the mean of a layer norm, are computed: a gradient, or
        # the forward itself, reads them.
        self.by_products = False
        self.left_out = False  # an operator returned None for such a result
        self.own_params = True  # of the user's: a run with values must not write to them
        self.shortcuts = True  # use cached plans and inferred strides; off in tests
        self.rules = rules  # cost functions of the user's, by operator
        # Plans of calls, by operator and arguments. Those with rules of the user's are not shared.
        cached = tracker.caches.plans
        self.plans: Plans = (
            {} if rules else cached.setdefault((floating, tracker.grads.training), {})
        )
        self.mode: Any = None  # the dispatch mode, while the forward runs
        self.as_meta: MetaCopies | None = None  # copies constants to meta, if all tensors must be
        self.raised: DataDependent | None = None  # in the forward, which may have caught it
        self.sized_by_values = False  # whether the last call had sizes that depend on values
        self.written = WrittenTensors(torch)
        self.writes = 0  # in-place writes into computable tensors so far
        self.notes: dict[str, str] = {}  # what was assumed of inputs, by their names
        # Objects of PyTorch that are compared with often.
        self.meta_device, self.cpu = torch.device("meta"), torch.device("cpu")
        self.tensor_types = frozenset((torch.Tensor, torch.nn.Parameter))
        # of arguments that are their own key
        self.plain_types = frozenset((int, type(None), str, torch.dtype, torch.device))
        self.quantized_dtypes = frozenset((torch.quint8, torch.qint8, torch.qint32))
        self.float_dtypes = frozenset((torch.float32, torch.float16, torch.bfloat16, torch.float64))
        self.index_dtypes = frozenset((torch.int64, torch.int32, torch.bool))
        self.dtypes = _dtypes(torch)  # by layerscope's names
        self.plain_grad = plain_grad(torch, tracker.grads)
        keys = torch._C.DispatchKey
        self._python_keys = torch._C.DispatchKeySet(keys.Python).add(keys.PythonTLSSnapshot)
        self._guard = torch._C._ExcludeDispatchKeyGuard
        self._reused_guard = self._guard(self._python_keys)
        self._in_inference = torch.is_inference_mode_enabled
        unwatched = partial(self._guard, self._python_keys)  # a bound method would be a cycle
        self.packs = Packs(torch, tracker.modules, tracker.param_table, unwatched)

    # Tensors

    def unwatched(self) -> AbstractContextManager[object]:
        """A context in which the dispatch mode is skipped."""
        guard: AbstractContextManager[object] = self._guard(self._python_keys)
        return guard

    def empty(self, meta: TensorMeta) -> Tensor:
        """A tensor on the meta device. A detach of an earlier one takes a third of the time."""
        if meta.blank is not None and self._in_inference():
            return meta.blank.detach()
        torch = self.torch
        out = torch.empty_strided(
            meta.shape, meta.stride, dtype=meta.dtype, device=self.meta_device
        )
        if type(out) is torch.Tensor and out.is_inference():
            meta.blank = out.detach()  # a copy, because the model may call t_() on its own
        return out

    def empty_undispatched(self, meta: TensorMeta) -> Tensor:
        """As `empty`, outside of an operator call: the dispatch mode is skipped."""
        guard = self._reused_guard
        guard.__enter__()
        try:
            if meta.blank is not None and self._in_inference():
                return meta.blank.detach()
            return self.empty(meta)
        finally:
            guard.__exit__(None, None, None)

    # Operators

    def is_composite(self, func: OpOverload) -> bool:
        """Whether PyTorch implements an operator by other operators alone."""
        has_kernel = self.torch._C._dispatch_has_kernel_for_dispatch_key
        return bool(has_kernel(func.name(), "CompositeImplicitAutograd"))

    def has_inplace_view_tag(self, func: OpOverload) -> bool:
        """Whether an operator changes the shape or strides of its input, as `t_` does."""
        return self.torch.Tag.inplace_view in func.tags

    # Messages

    def in_module(self) -> str:
        """The module that is running, for a message; "" for the model itself."""
        module = self.tracker.module
        return f", in {module.path}" if module is not None and module.path else ""

    def needs_values(
        self, info: OpInfo, why: str, error: type[DataDependent] = DataDependent
    ) -> DataDependent:
        """The error that says which operator needs values, and in which module."""
        raised = error(f"{info.full} {why}{self.in_module()}")
        raised.of_literal = self.tracker.lost_values
        self.raised = raised
        return raised
