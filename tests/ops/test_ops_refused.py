"""Uses of ops on sequences, indices and regions that must raise a named error, not miscount."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from msgspec.structs import replace

from layerscope.errors import LayerscopeError, ShapeError
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from layerscope.ops import SPECS, Call
from layerscope.ops.calls import infer_call
from tests.brute import CASES
from tests.brute.case import window as w


@pytest.mark.parametrize(
    "op, told, inputs, match",
    [
        ("attention", at.Attention(3), [(1, 2, 8)] * 3, "with 3 heads"),
        ("attention", at.Attention(4, 3), [(1, 2, 12)] * 3, "cannot share"),
        ("attention", at.Attention(4, -2), [(1, 2, 12)] * 3, "cannot share"),
        ("attention", at.Attention(2, past=-1), [(1, 2, 4)] * 3, "cache of -1"),
        ("attention", at.Attention(2), [(1, 2, 4), (1, 3, 4), (1, 2, 4)], "do not agree"),
        ("attention", at.Attention(2), [(1, 2, 4), (2, 2, 4), (2, 2, 4)], "do not agree"),
        ("attention", at.Attention(2), [(1, 2, 4)] * 3 + [(3, 2)], "do not agree"),
        ("attention", at.Attention(2), [(1, 2, 4)] * 3 + [(5, 1, 2, 2, 2)], "mask"),
        ("einsum", at.Einsum("ij,jk->ik"), [(2, 3)], "of 1 operands"),
        ("einsum", at.Einsum("ij,jk->ik"), [(2, 3), (4, 5)], "j is 3 and 4"),
        ("einsum", at.Einsum("ij->k"), [(2, 3)], "stands in no operand"),
        ("einsum", at.Einsum("i->ii"), [(2,)], "twice in the result"),
        ("einsum", at.Einsum("ii->i"), [(1, 3)], "i is 1 and 3"),
        ("einsum", at.Einsum("ii->i"), [(3, 1)], "i is 3 and 1"),
        ("einsum", at.Einsum("i->i"), [(2, 3)], "for a tensor of 2 axes"),
        ("einsum", at.Einsum("...ijk->i"), [(2, 3)], "for a tensor of 2 axes"),
        ("einsum", at.Einsum("i..j->i"), [(2, 3, 4, 5)], "one ellipsis"),
        ("einsum", at.Einsum("...i...->i"), [(2, 3, 4)], "one ellipsis"),
        ("einsum", at.Einsum("i->...i"), [(2,)], "stands in no operand"),
        ("rotary", at.Rotary(2), [(1, 2, 6)], "pairs"),
        ("rotary", at.Rotary(4), [(1, 2, 6)], "cannot be cut"),
        ("reduce_sum", at.Reduce((2,)), [(2, 3)], "axis 2"),
        ("gather", at.Gather(0, elements=True), [(4, 3), (2, 5)], "axis 1"),
        ("gather", at.Gather(0, elements=True), [(4, 3), (2,)], "numbers of axes"),
        ("scatter", None, [(4, 3), (2, 5), (2, 5)], "axis 1"),
        ("scatter", None, [(4, 3), (2, 2), (2, 3)], "do not agree"),
        ("gru", at.Recurrent(3, peepholes=True), [(4, 2, 2)], "only lstm has"),
        ("deform_conv", at.DeformConv(w([3, 3]), 2), [(1, 2, 5, 5), (1, 9, 3, 3)], "expected"),
        ("affine_grid", at.AffineGrid((2, 3, 4, 5)), [(1, 2, 3)], "for a grid"),
        ("dft", at.DFT(-1), [(2, 4, 2)], "one or two behind it"),
        ("dft", at.DFT(1), [(2, 4, 3)], "one or two behind it"),
        ("stft", at.STFT(8, 2), [(1, 4, 1)], "frames of 8"),
        ("stft", at.STFT(4, 2), [(1, 9, 1), (5,)], "a window of"),
        ("det", None, [(2, 3)], "as many rows"),
        ("unique", at.Unique(None, 5), [(4,)], "1 to 4"),
        ("reverse_sequence", at.ReverseSequence(), [(4, 2), (3,)], "a length for each"),
        ("repeat", at.Repeat((2,)), [(2, 3)], "every axis"),
        ("repeat", at.Repeat((2, 0)), [(2, 3)], "every axis"),
        ("flip", at.Flip((2,)), [(2, 3)], "axis 2"),
        ("trilu", None, [(3,)], "at least 2 axes"),
        ("cum_sum", at.CumSum(2), [(2, 3)], "axis 2"),
        ("gather_nd", None, [(2, 3), (4, 3)], "do not agree"),
        ("gather_nd", at.GatherND(1), [(2, 3), (4, 1)], "do not agree"),
        ("gather_nd", at.GatherND(2), [(2, 3), (2, 3)], "behind 2 axes"),
        ("scatter_nd", None, [(4, 3), (2, 1), (2, 2)], "do not agree"),
        ("one_hot", at.OneHot(0), [(2, 3)], "at least 1"),
        ("one_hot", at.OneHot(2, 3), [(2, 3)], "axis 3"),
        ("constant", at.DeclaredOutputs(((2,),), ()), [], "1 shapes and 0"),
        ("expand", at.Expand((-1, 3)), [(3,)], "new axes need sizes"),
        ("expand", at.Expand((2, 4)), [(2, 3)], "do not agree"),
        ("expand", at.Expand((1, 3)), [(2, 3)], "cannot be expanded"),
        ("expand", at.Expand((3,)), [(2, 3)], "cannot be expanded"),
        ("where", None, [(2,), (3,), (3,)], "do not agree"),
        ("top_k", at.TopK(4), [(2, 3)], "the 4 largest of 3"),
        ("embedding", at.Embedding(0, 3), [(2,)], "at least 1"),
        ("table", at.Table((2, 3), batched=True), [(4, 3)], "1 in front"),
        ("table", at.Table((0, 3)), [(4, 3)], "at least 1"),
        ("positions", None, [(4,)], "N x T"),
        ("rnn", at.Recurrent(3, projection=2), [(2, 1, 3)], "only lstm"),
        ("lstm", at.Recurrent(3, projection=3), [(2, 1, 3)], "projected"),
        ("gru", at.Recurrent(3), [(2, 3)], "T x N x features"),
        ("instance_norm", None, [(2, 3)], "at least 3 axes"),
        ("grid_sample", None, [(2, 1, 3, 3), (1, 2, 2, 2)], "grid sampling takes"),
        ("roi_align", at.RoIAlign((2, 2)), [(1, 1, 3, 3), (2, 6)], "R x 5"),
        ("roi_align", at.RoIAlign((2, 2), 0), [(1, 1, 3, 3), (2, 5)], "0 samples"),
        ("roi_align", at.RoIAlign((2, 2)), [(1, 1, 3, 3), (2, 4), (3,)], "2 regions in images"),
        ("nms", at.NonMaxSuppression(2), [(2, 5, 4), (1, 3, 5)], "suppression takes"),
        ("nms", at.NonMaxSuppression(0), [(1, 5, 4), (1, 3, 5)], "at least 1"),
        ("prior_box", at.PriorBox(0), [(1, 2, 3, 3), (1, 3, 9, 9)], "at least 1"),
        ("quantize", None, [(2, 3)], "number type"),
        ("cast", None, [(2, 3)], "number type"),
    ],
)
def test_what_does_not_fit_is_refused(op: str, told: Any, inputs: list[Shape], match: str) -> None:
    with pytest.raises(ShapeError, match=match):
        SPECS[op].shape(Call(told, tuple(inputs)))


@pytest.mark.parametrize("op", sorted({case.op for case in CASES}))
def test_empty_attributes_and_few_axes_raise_named_errors(op: str) -> None:
    """No bins, sizes or axes, on tensors of 0 to 4 axes: shapes, or an error of ours."""
    for case in [each for each in CASES if each.op == op]:
        own = case.attributes
        names = [] if own is None else [n for n in own.__struct_fields__ if getattr(own, n) != ()]
        tuples = [n for n in names if isinstance(getattr(own, n), tuple)]
        for changed in (own, *[replace(own, **{name: ()}) for name in tuples]):
            for rank in range(5):
                shapes = tuple(tuple(shape[:rank]) for shape in case.inputs)
                with contextlib.suppress(LayerscopeError):
                    infer_call(op, changed, shapes)
