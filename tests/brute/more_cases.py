"""The table of cases, continued: sequences, reductions, indices, sampling, number types."""

from __future__ import annotations

from layerscope.graph import attributes as at
from tests.brute.case import Case

A = at.Attention
SEQUENCES = [
    Case("attention", A(2), ((2, 3, 8),) * 3, "packed"),
    Case("attention", A(2), ((2, 2, 3, 4),) * 3, "heads-apart"),
    Case("attention", A(1), ((1, 4, 3),) * 3, "one-head"),
    Case("attention", A(4, 2), ((2, 3, 8), (2, 3, 4), (2, 3, 4)), "packed-grouped"),
    Case("attention", A(4, 1), ((1, 4, 3, 2), (1, 1, 3, 2), (1, 1, 3, 2)), "one-head-of-keys"),
    Case("attention", A(2), ((2, 3, 4), (2, 5, 4), (2, 5, 4)), "cross"),
    Case("attention", A(2), ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 3)), "values-of-other-size"),
    Case("attention", A(2), ((1, 3, 8), (1, 4, 8), (1, 4, 6)), "packed-values-of-other-size"),
    Case("attention", A(2, causal=True), ((1, 4, 6),) * 3, "causal"),
    Case("attention", A(2), ((2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)), "masked"),
    Case("attention", A(2), ((2, 2, 3, 2),) * 3 + ((2, 1, 3, 3),), "masked-by-image"),
    Case("attention", A(2), ((2, 2, 3, 2),) * 3 + ((2, 1, 1, 3),), "masked-keys"),
    Case("attention", A(2, causal=True), ((1, 3, 4),) * 3 + ((3, 3),), "masked-causal"),
    Case("attention", A(2, past=3), ((2, 2, 2, 3),) * 3, "cached"),
    Case("attention", A(2, past=2, causal=True), ((1, 2, 3, 2),) * 3, "cached-causal"),
    Case("attention", A(1, causal=True), ((1, 3, 2), (1, 5, 2), (1, 5, 2)), "cross-causal"),
    Case("attention", A(4, 2, True, True, 4), ((1, 1, 8), (1, 1, 4), (1, 1, 4)), "cached-step"),
    Case("attention", A(2, past=2), ((1, 2, 3, 2), (1, 2, 3, 2), (1, 2, 3, 4), (3, 5)),
         "cached-masked"),
    *(Case("einsum", at.Einsum(equation), shapes, equation)
      for equation, shapes in [
          ("ij->ji", ((2, 3),)),
          ("ijk->ik", ((2, 3, 4),)),
          ("ij->", ((2, 3),)),
          ("ba", ((2, 3),)),
          ("ii->i", ((3, 3),)),
          ("ii", ((3, 3),)),
          ("iji->j", ((2, 3, 2),)),
          ("...i->...", ((2, 3, 4),)),
          ("...ji", ((5, 2, 3),)),
          ("ij,jk->ik", ((2, 3), (3, 4))),
          ("ij,jk", ((2, 3), (3, 4))),
          ("cB,Ba", ((2, 3), (3, 4))),
          ("bij,bjk->bik", ((2, 2, 3), (2, 3, 4))),
          ("bhqd,bkhd->bhqk", ((2, 2, 3, 4), (2, 5, 2, 4))),
          ("i,j->ij", ((3,), (4,))),
          ("ij,ij->ij", ((3, 2), (3, 2))),
          ("i,i->", ((4,), (4,))),
          ("ij,k->ik", ((2, 3), (4,))),
          (",i->i", ((), (3,))),
          ("iij,jk->ik", ((3, 3, 2), (2, 4))),
          ("...ij,...jk", ((5, 2, 3), (5, 3, 4))),
          ("...ij,jk->...ik", ((2, 5, 2, 3), (3, 4))),
          ("i...,jk->ik...", ((2, 3, 2), (3, 4))),
          ("ij,jk->ik", ((2, 1), (3, 4))),
          ("i,i,i->i", ((1,), (1,), (3,))),
          ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
          ("i,j,k->ijk", ((2,), (3,), (4,))),
          ("ij,i,ij->j", ((2, 3), (2,), (2, 3))),
          ("bij,bjk,k,bl->bil", ((2, 2, 3), (2, 3, 2), (2,), (2, 3))),
          ("...i,...i,...j->...j", ((2, 3), (2, 3), (2, 4))),
      ]),
    Case("rotary", at.Rotary(2), ((2, 3, 8),), "packed"),
    Case("rotary", at.Rotary(3), ((2, 3, 4, 6),), "heads-apart"),
    Case("rotary", at.Rotary(1), ((1, 2, 2),), "one-pair"),
    *(Case(kind, told, (shape,), note)
      for kind in ("rnn", "lstm", "gru")
      for told, shape, note in [
          (at.Recurrent(3), (4, 2, 2), "plain"),
          (at.Recurrent(2, bias=False), (3, 2, 4), "no-bias"),
          (at.Recurrent(3, bidirectional=True), (3, 2, 2), "both-ways"),
          (at.Recurrent(2, layers=3), (3, 1, 4), "deep"),
          (at.Recurrent(2, 2, True, batch_first=True), (2, 3, 3), "deep-both-ways-batch-first"),
      ]),
    Case("rnn", at.Recurrent(3, activation="relu"), ((3, 2, 2),), "relu"),
    Case("rnn", at.Recurrent(2, 2, True, activation="relu"), ((3, 2, 2),), "relu-deep-both-ways"),
    Case("lstm", at.Recurrent(4, projection=2), ((3, 2, 3),), "projected"),
    Case("lstm", at.Recurrent(3, 2, True, False, True, 2), ((2, 3, 3),), "projected-deep"),
    Case("lstm", at.Recurrent(3, 2, True, projection=1), ((2, 1, 2),), "projected-both-ways"),
]  # fmt: skip

NORMS = [
    Case("instance_norm", None, ((2, 3, 4, 2),)),
    Case("instance_norm", at.InstanceNorm(affine=True, eps=1e-3), ((2, 3, 4),), "affine"),
    Case("instance_norm", at.InstanceNorm(affine=True), ((1, 2, 2, 3, 2),), "3d"),
    Case("rms_norm", None, ((2, 3, 4),)),
    Case("rms_norm", at.RMSNorm(axis=1, eps=1e-3), ((2, 3, 4),), "two-axes"),
    Case("rms_norm", at.RMSNorm(scale=False), ((3, 5),), "plain"),
]

REDUCTIONS = [
    *(Case(f"reduce_{kind}", a, (shape,), note)
      for kind in ("sum", "mean", "max", "min", "prod", "l1", "l2")
      for a, shape, note in [
          (None, (2, 3, 2), "all"),
          (at.Reduce((1,)), (2, 3, 4), "one"),
          (at.Reduce((-1, 1), keep=True), (2, 3, 2, 4), "several-kept"),
          (at.Reduce((2, 3)), (2, 3, 2, 4), "places"),
          (at.Reduce((), keep=True), (2, 3), "all-kept"),
          (at.Reduce((1,)), (3, 1), "of-one"),
      ]),
    *(Case(f"arg_{kind}", a, (shape,), note)
      for kind in ("max", "min")
      for a, shape, note in [
          (None, (2, 3, 2), "all"),
          (at.Reduce((1,)), (2, 3, 4), "one"),
          (at.Reduce((-1,), keep=True), (2, 3, 5), "kept"),
          (at.Reduce((), keep=True), (2, 3), "all-kept"),
      ]),
]  # fmt: skip

INDICES = [
    Case("gather", None, ((5, 3), (4,))),
    Case("gather", at.Gather(1), ((2, 5, 3), (2, 2)), "matrix-of-indices"),
    Case("gather", at.Gather(-1), ((2, 5), ()), "one-index"),
    Case("gather", at.Gather(0, elements=True), ((4, 3), (2, 3)), "elements"),
    Case("gather", at.Gather(-1, elements=True), ((2, 3, 4), (2, 2, 6)), "elements-in-part"),
    Case("scatter", None, ((4, 3), (2, 3), (2, 3))),
    Case("scatter", at.Scatter(1), ((2, 5, 3), (2, 2, 2), (2, 2, 2)), "in-part"),
    Case("scatter", at.Scatter(-1, add=True), ((2, 4), (2, 7), (2, 7)), "added"),
    Case("expand", at.Expand((2, 3, 4)), ((2, 1, 4),)),
    Case("expand", at.Expand((2, 3, 4)), ((4,),), "more-axes"),
    Case("expand", at.Expand((5, -1, 0)), ((1, 3, 1),), "axes-kept"),
    Case("where", None, ((2, 3),) * 3),
    Case("where", None, ((3, 1), (2, 1, 4), ()), "broadcast"),
    Case("where", None, ((1, 1, 3, 3), (2, 2, 3, 3), (1,)), "masked-scores"),
    *(Case("top_k", at.TopK(k, axis), (shape,), f"{k}")
      for k, axis, shape in [
          (1, -1, (2, 5)), (2, 1, (2, 4, 3)), (3, -1, (2, 2, 7)), (5, 0, (5, 2)), (8, 1, (1, 9)),
      ]),
    Case("embedding", at.Embedding(7, 3), ((2, 4),)),
    Case("embedding", at.Embedding(5, 2), ((3,),), "vector"),
    Case("embedding", at.Embedding(4, 3), ((2, 2, 2),), "three-axes"),
    Case("table", at.Table((1, 4, 3)), ((2, 4, 3),)),
    Case("table", at.Table((1, 1, 3), batched=True), ((2, 4, 3),), "batched"),
    Case("positions", None, ((2, 5),)),
    Case("positions", None, ((1, 3, 4),), "features"),
    Case("roll", None, ((2, 4, 5, 3),)),
    Case("roll", None, ((1, 3, 2),), "past-the-end"),
]  # fmt: skip

REGIONS = [
    *(Case("grid_sample", a, shapes, note)
      for a, note in [
          (None, "default"), (at.GridSample("nearest"), "nearest"),
          (at.GridSample("bilinear"), "bilinear"), (at.GridSample("bicubic"), "bicubic"),
      ]
      for shapes in [((1, 2, 4, 5), (1, 3, 2, 2)), ((2, 1, 3, 3), (2, 4, 5, 2))]),
    Case("roi_align", at.RoIAlign((2, 3)), ((2, 2, 6, 5), (3, 5))),
    Case("roi_align", at.RoIAlign((2, 2), 1, 0.5), ((1, 3, 4, 4), (2, 4)), "first-image"),
    Case("roi_align", at.RoIAlign((1, 2), 3, 0.25), ((3, 1, 5, 6), (4, 4), (4,)), "images-apart"),
    Case("nms", at.NonMaxSuppression(3), ((2, 5, 4), (2, 2, 5)), "some"),
    Case("nms", at.NonMaxSuppression(9), ((1, 4, 4), (1, 3, 4)), "all"),
    Case("prior_box", at.PriorBox(3), ((1, 4, 2, 3), (1, 3, 20, 30))),
    Case("prior_box", at.PriorBox(1), ((2, 8, 3, 1), (2, 3, 24, 8)), "one"),
]  # fmt: skip

Q = at.Quantize
NUMBERS = [
    Case("quantize", Q(), ((2, 3, 4),)),
    Case("quantize", Q("uint8"), ((4, 3),), "unsigned"),
    Case("quantize", Q("int16", per_channel=True), ((2, 3, 2, 2),), "by-channel"),
    Case("quantize", Q(per_channel=True), ((5,),), "vector"),
    Case("dequantize", None, ((2, 3, 4),)),
    Case("dequantize", Q("uint8", per_channel=True), ((2, 3, 4),), "by-channel"),
    Case("dequantize", Q("int16"), ((6,),), "vector"),
    *(Case("cast", at.Cast(dtype), ((2, 3, 4),), dtype)
      for dtype in ("int64", "int8", "bool", "fp16", "fp64")),
]  # fmt: skip

CASES = [*SEQUENCES, *NORMS, *REDUCTIONS, *INDICES, *REGIONS, *NUMBERS]
