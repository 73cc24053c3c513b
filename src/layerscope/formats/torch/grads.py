"""What the run of a module shows of training: modes, parts without gradients, copies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layerscope.formats.torch.module_table import ParamTable
from layerscope.formats.torch.tensors import TracedTensor
from layerscope.graph.types import Autograd, Constant, Node
from layerscope.ops.strides import dense, storage_elements

NO_GRAD_MODE = "parts that run under no_grad are not told apart"
STRIDED = "an input that is not contiguous; which layers then copy is not followed"
CHANNELS_LAST = "weights are not contiguous; which layers then copy is not followed"


class Grads:
    """Collects it while a model runs; nodes by index, because they may still be renamed."""

    def __init__(self, *, training: bool = False, grad_mode: bool = True) -> None:
        self.training = training  # the model is in train mode
        self.grad_mode = grad_mode  # gradients are on, so that parts under no_grad are seen
        self.contiguous: set[str] = set()  # tensors read through `contiguous()`
        self.also_read: set[str] = set()  # and of these, those that may be read as they are, too
        self._copied: list[TracedTensor] = []
        self.detached: set[str] = set()  # tensors read through `detach()`
        self.inputs: set[str] = set()  # inputs that require a gradient
        self.no_grad: set[int] = set()  # nodes that ran without gradients
        self.custom: set[int] = set()  # nodes that ran in an `autograd.Function`
        self.hooked: set[int] = set()  # nodes that ran under hooks of saved tensors
        self.constants: dict[str, Constant] = {}
        self._storages: dict[tuple[str, int], str] = {}  # by what holds it: its first constant
        self.notes: list[str] = [] if grad_mode else [NO_GRAD_MODE]

    def copy(self, source: TracedTensor, name: str, was_read: bool) -> None:
        """A tensor is read through `contiguous()`, under the name that it has itself."""
        self.contiguous.add(name)
        if source.parent is None or was_read:
            self.also_read.add(name)
        source.was_read = False
        self._copied.append(source)

    def renamed(self, names: Mapping[str, str]) -> None:
        """Tensors have other names."""
        for read in (self.contiguous, self.also_read, self.detached):
            for old in read & names.keys():
                read.remove(old)
                read.add(names[old])

    def constant(self, value: TracedTensor) -> None:
        """A constant is read: views of one storage are kept as that storage."""
        root = value.root
        tensor, sig = root.tensor, root.sig
        key: tuple[str, int] = ("value", id(root))  # values live as long as the run
        if sig.sparse:
            held = tensor._nnz() * sig.dtype.itemsize
            self.constants[value.name] = Constant(value.name, held, dense(sig.shape))
            return
        held = storage_elements(sig.shape, sig.stride) * sig.dtype.itemsize
        if not tensor.is_meta:
            storage = tensor.untyped_storage()
            key, held = ("storage", storage.data_ptr()), storage.nbytes()
        first = self._storages.setdefault(key, value.name)
        if tensor.requires_grad:  # a parameter that is not the model's
            self.inputs.add(value.name)
        self.constants[value.name] = Constant(first, held, value.sig.stride)

    def mark(self, torch: Any, made: range) -> None:
        """Nodes that were just added keep nothing, or what somebody chooses."""
        around = _around(torch)
        if torch.is_grad_enabled() or around == "checkpoint":
            self.hooked.update(made)
        elif around == "function":
            self.custom.update(made)
        elif self.grad_mode:
            self.no_grad.update(made)

    def found(self, nodes: Sequence[Node], onednn: bool) -> Autograd:
        """All of it."""

        def names(marked: set[int]) -> frozenset[str]:
            return frozenset([nodes[n].name for n in marked])

        also = self.also_read.union([value.name for value in self._copied if value.was_read])
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


def plain_grad(torch: Any, grads: Grads) -> Callable[[], bool]:
    """What says whether autograd saves what it saves by itself; always so in eval mode."""
    if not grads.training:
        return lambda: True
    if not grads.grad_mode:
        return lambda: False
    enabled: Callable[[], bool] = torch.is_grad_enabled
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    if hooks is None:
        return enabled
    return lambda: enabled() and hooks(True) is None


def strided_kernels(held: ParamTable) -> bool:
    """Whether kernels are stored with their channels last."""
    return any(t.dim() > 3 and not t.is_contiguous() for t in held.tensors.values())


def _around(torch: Any) -> str:
    """Whether the caller is the forward of an `autograd.Function`, or a checkpoint."""
    apply = torch.autograd.Function.apply.__code__
    checkpoint = sys.modules.get("torch.utils.checkpoint")
    file = "" if checkpoint is None else checkpoint.__file__
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_code is apply:
            return "function"
        if frame.f_code.co_filename == file:
            return "checkpoint"
        frame = frame.f_back
    return ""
