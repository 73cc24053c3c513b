"""What a run shows of training: train mode, parts without gradients, copies that autograd saves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from layerscope.formats.torch.module_table import ParamTable
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.formats.torch.torch_types import Torch
from layerscope.graph.types import Autograd, Constant, Node
from layerscope.ops.torch_strides import dense, storage_elements

NO_GRAD_MODE = "parts that run under no_grad are not told apart"
STRIDED = "an input that is not contiguous; which layers then copy is not followed"
CHANNELS_LAST = "weights are not contiguous; which layers then copy is not followed"


class Grads:
    """Collects what autograd needs while a model runs; nodes by index, as they may be renamed."""

    def __init__(self, *, training: bool = False, grad_mode: bool = True) -> None:
        self.training = training  # the model is in train mode
        self.grad_mode = grad_mode  # gradients are on, so that parts under no_grad are seen
        self.contiguous: set[str] = set()  # tensors read through `contiguous()`
        self.also_read: set[str] = set()  # of these, those that may be read directly as well
        self._copied: list[TracedTensor] = []
        self.detached: set[str] = set()  # tensors read through `detach()`
        self.inputs: set[str] = set()  # inputs that require a gradient
        self.no_grad: set[int] = set()  # nodes that ran without gradients
        self.custom: set[int] = set()  # nodes that ran in an `autograd.Function`
        self.hooked: set[int] = set()  # nodes that ran under hooks of saved tensors
        self.constants: dict[str, Constant] = {}
        self._storages: dict[tuple[str, int], str] = {}  # the first constant in each storage
        self.notes: list[str] = [] if grad_mode else [NO_GRAD_MODE]

    def copy(self, source: TracedTensor, name: str, was_read: bool) -> None:
        """A tensor is read through `contiguous()`, under the name that it has itself."""
        self.contiguous.add(name)
        if source.parent is None or was_read:
            self.also_read.add(name)
        source.was_read = False
        self._copied.append(source)

    def renamed(self, names: Mapping[str, str]) -> None:
        """Replace names of tensors, given new names by old ones."""
        for read in (self.contiguous, self.also_read, self.detached):
            for old in read & names.keys():
                read.remove(old)
                read.add(names[old])

    def constant(self, traced: TracedTensor) -> None:
        """A node reads a constant: note its storage, which views of it share."""
        root = traced.root
        tensor, meta = root.tensor, root.meta
        key: tuple[str, int] = ("tensor", id(root))  # records live as long as the run
        if meta.sparse:
            size = tensor._nnz() * meta.dtype.itemsize
            self.constants[traced.name] = Constant(traced.name, size, dense(meta.shape))
            return
        size = storage_elements(meta.shape, meta.stride) * meta.dtype.itemsize
        if not tensor.is_meta:
            storage = tensor.untyped_storage()
            key, size = ("storage", storage.data_ptr()), storage.nbytes()
        first = self._storages.setdefault(key, traced.name)
        if tensor.requires_grad:  # a parameter that no module has
            self.inputs.add(traced.name)
        self.constants[traced.name] = Constant(first, size, traced.meta.stride)

    def mark(self, torch: Torch, nodes: range) -> None:
        """Mark nodes for which autograd saves nothing, or what a Function or hook decides."""
        around = _around(torch)
        if torch.is_grad_enabled() or around == "checkpoint":
            self.hooked.update(nodes)
        elif around == "function":
            self.custom.update(nodes)
        elif self.grad_mode:
            self.no_grad.update(nodes)

    def found(self, nodes: Sequence[Node], onednn: bool) -> Autograd:
        """Everything collected, with names instead of indices."""

        def names(marked: set[int]) -> frozenset[str]:
            return frozenset([nodes[n].name for n in marked])

        also = self.also_read.union([traced.name for traced in self._copied if traced.was_read])
        return Autograd(
            training=self.training,
            onednn=onednn,
            contiguous=frozenset(self.contiguous),
            also_read=frozenset(also),
            no_grad=names(self.no_grad),
            custom=names(self.custom),
            hooked=names(self.hooked),
            detached=frozenset(self.detached),
            constants=self.constants,
            inputs=frozenset(self.inputs),
            notes=tuple(self.notes),
        )


def plain_grad(torch: Torch, grads: Grads) -> Callable[[], bool]:
    """A function that says whether autograd saves what it saves by default; always in eval mode."""
    if not grads.training:
        return lambda: True
    if not grads.grad_mode:
        return lambda: False
    enabled: Callable[[], bool] = torch.is_grad_enabled
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if hooks is None:
        return enabled
    return lambda: enabled() and hooks(True) is None


def strided_kernels(params: ParamTable) -> bool:
    """Whether kernels are stored with their channels last."""
    return any(t.dim() > 3 and not t.is_contiguous() for t in params.tensors.values())


def _around(torch: Torch) -> str:
    """Whether the caller is the forward of an `autograd.Function`, or a checkpoint."""
    apply = torch.autograd.Function.apply.__code__
    checkpoint = sys.modules.get("torch.utils.checkpoint")
    file = "" if checkpoint is None else checkpoint.__file__
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is apply:
            return "function"
        if frame.f_code.co_filename == file:
            return "checkpoint"
        frame = frame.f_back
    return ""
