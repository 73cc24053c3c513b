"""Tensors of a forward: shape, strides and dtype, and the name and origin of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from layerscope.formats.torch.torch_types import Args, Kwargs
from layerscope.graph.types import Shape
from layerscope.ops.torch_strides import dense

if TYPE_CHECKING:
    from torch import Tensor, UntypedStorage, dtype
    from torch._ops import OpOverload

    from layerscope.formats.torch.lowering import CallPlan
    from layerscope.formats.torch.module_table import ModuleInfo

NO_STRIDES: Shape = (-1,)  # the strides of a tensor with a sparse layout


class TensorMeta:
    """Shape, strides and dtype. Tensors with equal ones share one object, compared by identity."""

    __slots__ = (
        "blank", "contiguous", "dtype", "kind", "name", "shape", "sparse", "stored_dtype", "stride"
    )  # fmt: skip

    def __init__(self, shape: Shape, stride: Shape, dtype: dtype, kind: str, name: str) -> None:
        self.shape = shape
        self.stride = stride
        self.dtype = dtype
        self.kind = kind  # "param" and "buffer" for those of the model, "" for all others
        self.name = name  # layerscope's name of the dtype: fp32
        self.contiguous = stride == dense(shape)
        self.sparse = stride == NO_STRIDES
        self.stored_dtype = ""  # dtype of a param before autocast casts it; "": same as `name`
        self.blank: Tensor | None = None  # an empty meta tensor; detach() of it makes others


# A tensor, with the storage and the offset in it that it had, and its shape and strides.
Foreign: TypeAlias = "tuple[Tensor, UntypedStorage, int, TensorMeta]"


class Recompute(Struct, frozen=True, gc=False, eq=False):
    """The call that computes the values of a tensor, run only if the model reads them."""

    func: OpOverload
    args: Args
    kwargs: Kwargs
    output: int | None = None  # index of the tensor in the results; None for a single result
    writes: int = 0  # in-place writes before the call; later ones do not change its inputs


class ViewCall(Struct, frozen=True, gc=False, eq=False):
    """The call that takes a view: its nodes, its tensors, and which of its results this is."""

    plan: CallPlan
    given: list[TracedTensor]
    output: int


class TracedTensor(Struct, gc=False, eq=False):
    """A tensor of the forward. All of a run are freed together: see `Tracker.clear`."""

    tensor: Tensor
    name: str  # in the graph
    meta: TensorMeta
    plain: bool = True  # the name is current; else `Tracker.read` returns the name
    parent: TracedTensor | None = None  # the tensor that this is a view of
    view_call: ViewCall | Callable[[], ViewCall] | None = None  # of a view; a function if lazy
    module: ModuleInfo | None = None  # the module that took the view
    version: int = 0  # of the storage, when the name was set
    was_read: bool = False  # whether a node reads this view
    meta_copy: Tensor | None = None  # an empty copy on the meta device, of a tensor elsewhere
    values: Tensor | None = None  # the computed values of a meta tensor
    computable: bool = False  # the values depend on no parameter and no unknown input
    recompute: Recompute | None = None
    random: bool = False  # a random generator makes the values
    no_values: bool = False  # an input of which only the shape is given
    assumed: dict[str, None] | None = None  # inputs that were taken as zeros or ones in `values`
    foreign: bool = False  # neither made by the run nor a parameter or buffer: an attribute
    is_const: bool = False  # computed from constants alone

    @property
    def viewed_by(self) -> ViewCall:
        """The call that takes this view."""
        if not isinstance(self.view_call, ViewCall):
            assert self.view_call is not None
            self.view_call = self.view_call()
        return self.view_call

    @property
    def still_const(self) -> bool:
        """Computed from constants alone, and nothing else was written into its storage since."""
        return self.is_const and (self.parent is None or self.version == self.root.version)

    @property
    def root(self) -> TracedTensor:
        """The tensor that owns the storage."""
        traced = self
        while traced.parent is not None:
            traced = traced.parent
        return traced
