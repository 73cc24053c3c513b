"""The plan of an operator call: nodes by its converter, results as PyTorch or a rule has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from layerscope.errors import ShapeError
from layerscope.formats.torch.aten import FLOATS_ONLY, INTEGERS_WITH_DTYPE
from layerscope.formats.torch.aten.declared_outputs import BY_PRODUCTS, declared_op
from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.dtypes import INEXACT
from layerscope.formats.torch.integer_results import integer_dtype
from layerscope.formats.torch.lowering import (
    CallPlan,
    Lowering,
    PlannedNode,
    Refused,
    TensorRef,
    Unsupported,
)
from layerscope.formats.torch.op_calls import OpCall, OpInfo
from layerscope.formats.torch.packed import Pack
from layerscope.formats.torch.strides import BY_ELEMENT, element_stride, joined_stride
from layerscope.formats.torch.tensors import Recompute, TensorMeta, TracedTensor
from layerscope.formats.torch.torch_types import Arg, Result
from layerscope.graph.attributes import CustomCost, DeclaredOutputs, Opaque
from layerscope.ops.torch_strides import dense

if TYPE_CHECKING:
    from torch import Tensor

# Results are contiguous whatever the strides of the inputs.
CONTIGUOUS_RESULT = frozenset((
    "linear", "bmm", "mm", "addmm", "embedding", "scaled_dot_product_attention", "_grouped_mm",
    "layer_norm", "softmax", "_softmax", "log_softmax", "sum", "mean", "amax", "amin", "var", "std",
    "var_mean", "linalg_vector_norm", "norm", "prod", "logsumexp", "cumsum", "topk", "repeat",
))  # fmt: skip
# Operators with indices or masks among their inputs; their converters check the dtypes of those.
INDEX_ARGS = frozenset((
    "embedding", "index", "index_select", "gather", "take_along_dim", "masked_fill", "where",
))  # fmt: skip
PACKING = ("_pack_padded_sequence", "_pad_packed_sequence")  # move elements, compute nothing
LISTS = frozenset(("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_chunk"))


class Converted(NamedTuple):
    """The nodes of a call, and its results; None if no converter supports the call."""

    lowering: Lowering
    results: list[TensorRef] | None
    form: type | None  # None for a single tensor, else list or tuple


def lowering_for(run: Capture, info: OpInfo) -> Lowering:
    """An empty lowering for one call."""
    return Lowering(info.source, run.tracker.attr_cache, run.floating)


def convert_call(run: Capture, call: OpCall) -> Converted:
    """Call the converter of an operator."""
    info, given = call.info, call.given
    lowering = lowering_for(run, info)
    lowering.in_place = info.in_place
    lowering.training = run.tracker.grads.training
    convert = info.convert
    if convert is None or any(traced.meta.sparse for traced in given):
        return Converted(lowering, None, None)
    if not info.quantized and given and given[0].meta.dtype in run.quantized_dtypes:
        from layerscope.formats.torch.aten.quantized_operators import ATEN_ON_QUANTIZED

        convert = ATEN_ON_QUANTIZED.get(info.name, convert)
    elif given and not info.quantized and info.name in FLOATS_ONLY:
        has_dtype = run.torch.dtype in map(type, (*call.args, *call.kwargs.values()))
        if not (has_dtype and info.name in INTEGERS_WITH_DTYPE):
            _check_is_float(info, given[0].meta)
    refs = iter([
        TensorRef(
            (meta := traced.meta).shape, meta.name, n, meta.kind != "", meta.kind == "buffer",
            stored_dtype=meta.stored_dtype,
        )
        for n, traced in enumerate(given)
    ])  # fmt: skip
    args = [_with_refs(run, arg, refs) for arg in call.args]
    kwargs = {name: _with_refs(run, arg, refs) for name, arg in call.kwargs.items()}
    try:
        out = convert(lowering, *args, **kwargs)
    except (Unsupported, ShapeError, TypeError, ValueError, IndexError):
        return Converted(lowering, None, None)
    if isinstance(out, list):
        return Converted(lowering, out, list if info.name in LISTS else tuple)
    return Converted(lowering, [out], None)


def _with_refs(run: Capture, arg: Arg, refs: Iterator[TensorRef]) -> Arg:
    """An argument with the next reference instead of each tensor."""
    if isinstance(arg, run.torch.Tensor):
        return next(refs)
    if isinstance(arg, (list, tuple)):
        if run.tensor_types.issuperset(map(type, arg)):
            return [*islice(refs, len(arg))]
        return [_with_refs(run, each, refs) for each in arg]
    if type(arg) is run.torch.ScriptObject:
        pack = run.packs.of(arg)
        return pack and Pack({name: next(refs) for name in pack.arrays}, pack.conv_args)
    return arg


def _check_is_float(info: OpInfo, meta: TensorMeta) -> None:
    if not meta.name.startswith(INEXACT):
        raise Refused(f"{info.full} of {meta.name}, which is for floats alone")


# Results inferred without a run


def infer_outputs(run: Capture, call: OpCall, converted: Converted) -> list[TensorMeta] | None:
    """Shapes, strides and dtypes of the results; None where PyTorch must be asked."""
    results, name = converted.results, call.info.name
    if results is None or not run.shortcuts or run.real:
        return None
    if any(type(ref.value_id) is int for ref in results):
        return None
    metas = [traced.meta for traced in call.given]
    if not has_one_float_dtype(run, name, metas):
        dtype = integer_dtype(run, call) if metas else None
        if dtype is None or [run.dtypes.get(ref.dtype) for ref in results] != [dtype]:
            return None
    if has_contiguous_result(name, call.given) or False not in [m.contiguous for m in metas]:
        return contiguous_metas(run, results, metas)
    if all(sum(size > 1 for size in ref.shape) < 2 for ref in results):
        return contiguous_metas(run, results, metas)  # along one axis there is one layout
    stride = None
    if name in BY_ELEMENT:
        stride = element_stride(results[0].shape, metas)
    elif name == "cat":
        stride = joined_stride(results[0].shape, metas)
    if stride is None:
        return None
    [meta] = contiguous_metas(run, results, metas)
    return [run.tracker.meta_of(meta.shape, stride, meta.dtype)]


def has_one_float_dtype(run: Capture, name: str, metas: list[TensorMeta]) -> bool:
    """Whether all inputs are floats of one dtype; for others PyTorch promotes or refuses dtypes."""
    dtypes = {meta.dtype for meta in metas}
    if name in INDEX_ARGS:
        dtypes -= run.index_dtypes
    elif name == "scaled_dot_product_attention" and len(metas) == 4:
        query, mask = metas[0].shape, metas[3].shape
        outer = zip(mask[-3::-1], query[-3::-1], strict=False)
        if len(mask) > len(query) or any(n not in (1, size) for n, size in outer):
            return False  # a mask for other heads or batches
        dtypes.discard(run.torch.bool)
    return len(dtypes) == 1 and dtypes <= run.float_dtypes


def has_contiguous_result(name: str, given: Sequence[TracedTensor]) -> bool:
    """Whether results are contiguous whatever the strides of the inputs."""
    if name == "matmul":  # with a matrix among the inputs, the result may be transposed
        return all(len(traced.meta.shape) > 2 for traced in given)
    return name in CONTIGUOUS_RESULT


def contiguous_metas(
    run: Capture, results: list[TensorRef], given: list[TensorMeta]
) -> list[TensorMeta]:
    """Results of a converter as contiguous tensors."""
    metas = []
    for ref in results:
        same = next((meta.dtype for meta in given if meta.name == ref.dtype), None)
        dtype = run.dtypes[ref.dtype] if same is None else same
        metas.append(run.tracker.meta_of(ref.shape, dense(ref.shape), dtype))
    return metas


# Results of a run


def checked_plan(
    run: Capture, call: OpCall, converted: Converted, outs: Result, alias: str = ""
) -> tuple[CallPlan | None, Result]:
    """The plan of a call that was run, and its results as a list.

    The converter's nodes if their shapes are those of the run, else an unknown node. The plan is
    None if the results are no tensors; these are then returned as they are.
    """
    info, (lowering, results, _) = call.info, converted
    many = isinstance(outs, (list, tuple))
    listed = list(outs) if many else [outs]
    tensors = [out for out in listed if isinstance(out, run.torch.Tensor)]
    form = (list if isinstance(outs, list) else tuple) if many else None
    if many and not listed:  # unbind along an axis of size 0
        return CallPlan((), (), (), form, alias), listed
    if not tensors:
        return None, outs
    if len(tensors) != len(listed):
        raise NotImplementedError(f"{info.full} makes tensors and other things")
    metas = tuple([run.tracker.meta(out) for out in tensors])
    if results is not None:
        results = results[: len(metas)]
        enough = len(results) == len(metas) or info.name in BY_PRODUCTS
        pairs = list(zip(results, metas, strict=False))
        if enough and all(ref.shape == meta.shape for ref, meta in pairs):
            cast = [lowering.cast(ref, meta.name) for ref, meta in pairs]
            return lowering.plan(cast, metas, form, alias), listed
    if all(0 in meta.shape for meta in metas):
        return CallPlan((), (), metas, form, alias), listed
    return unknown_plan(run, call, metas, form, alias), listed


def unknown_plan(
    run: Capture,
    call: OpCall,
    metas: tuple[TensorMeta, ...],
    form: type | None = None,
    alias: str = "",
) -> CallPlan:
    """One node under the operator's name, without figures unless its op needs only shapes."""
    op, attributes = _declared_op(run, call, metas)
    inputs = tuple(range(len(call.given)))
    node = PlannedNode(op, inputs, attributes, (), len(metas), call.info.source)
    return CallPlan((node,), tuple([(0, n) for n in range(len(metas))]), metas, form, alias)


def _declared_op(
    run: Capture, call: OpCall, metas: tuple[TensorMeta, ...]
) -> tuple[str, DeclaredOutputs | Opaque | CustomCost]:
    """The op that counts an operator by the shapes of its results, else its own name."""
    info = call.info
    shapes = tuple([meta.shape for meta in metas])
    dtypes = tuple([meta.name for meta in metas])
    if info.name in PACKING:
        return "custom", CustomCost(shapes, dtypes)
    operator = f"{info.full.partition('.')[0]}.{info.name}"  # also of an in-place form
    inputs = [traced.meta.shape for traced in call.given]
    declared = declared_op(operator, inputs, DeclaredOutputs(shapes, dtypes))
    if declared is None:
        return info.full, Opaque(shapes, dtypes)
    op, attributes = declared
    return op, run.tracker.intern(attributes)


def register_empty(run: Capture, outs: Sequence[Tensor], plan: CallPlan) -> None:
    """Register tensors without elements, as constants: no node makes them."""
    for out, meta in zip(outs, plan.outs, strict=True):
        traced = run.tracker.register(out, "", meta, plain=False)
        traced.is_const = traced.computable = True
        traced.recompute = Recompute(run.torch.zeros, (meta.shape,), {"dtype": meta.dtype})
