"""The table of cases, continued: what files of other frameworks ask for."""

from __future__ import annotations

from layerscope.graph import attributes as at
from tests.brute.case import Case
from tests.brute.case import window as w

A = at.Activation
UNARY = (
    "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
    "floor", "ceil", "round", "sign", "reciprocal", "not", "is_nan", "is_inf", "bitwise_not",
    "mish", "softsign", "quick_gelu", "rsqrt", "square", "log_sigmoid", "expm1", "log1p",
)  # fmt: skip

POINTWISE = [
    *(Case(op, told, (shape,))
      for op, told in [
          *((op, None) for op in UNARY),
          ("celu", A(1.5)), ("thresholded_relu", A(0.5)), ("shrink", A(0.5, 0.25)),
      ]
      for shape in [(2, 3, 4), (7,)]),
    *(Case(op, None, shapes)
      for op in ("logical", "bitwise", "mod", "floor_div", "atan2", "mean")
      for shapes in [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((4, 1), (2, 1, 5)), ((2, 3),)]),
    Case("mean", None, ((2, 1, 4), (3, 1), (4,)), "3-inputs"),
    *(Case(op, told, (shape,), note)
      for op in ("softmax", "log_softmax", "hardmax")
      for told, shape, note in [
          (at.Softmax(1, tail=True), (2, 3, 2, 2), "tail"),
          (at.Softmax(0, tail=True), (2, 3), "all"),
          (at.Softmax(-2), (2, 3, 4), "one"),
      ]),
]  # fmt: skip

POOLS = [
    Case("max_pool", at.Pool(w([2, 2], 2), indices=True), ((2, 3, 4, 6),), "places"),
    Case("max_pool", at.Pool(w([3], 1, 1), indices=True), ((1, 2, 5),), "places-padded"),
    Case("adaptive_max_pool", at.AdaptivePool((2, 3), indices=True), ((2, 2, 4, 6),), "places"),
]

REDUCTIONS = [
    *(Case(f"reduce_{kind}", told, (shape,), note)
      for kind in ("log_sum", "log_sum_exp", "var", "std", "any", "all")
      for told, shape, note in [
          (None, (2, 3, 2), "all"),
          (at.Reduce((1,)), (2, 3, 4), "one"),
          (at.Reduce((-1, 1), keep=True), (2, 3, 2, 4), "several-kept"),
      ]),
    *(Case(op, at.CumSum(axis), (shape,), f"{axis}")
      for op in ("cum_sum", "cum_prod")
      for axis, shape in [(1, (2, 3, 4)), (-1, (2, 5)), (0, (4,))]),
]  # fmt: skip

MOVES = [
    Case("repeat", at.Repeat((2, 1, 3)), ((2, 3, 2),)),
    Case("repeat", at.Repeat((4,)), ((3,),), "vector"),
    Case("flip", at.Flip((1,)), ((2, 3, 4),)),
    Case("flip", at.Flip((0, -1)), ((2, 3, 4),), "two"),
    Case("trilu", None, ((2, 3, 4),)),
    Case("insert", at.Slice((1,), (1,), (3,)), ((2, 4, 3), (2, 2, 3))),
    Case("insert", at.Slice((-1,), (0,), (5,), (2,)), ((2, 5), (2, 3)), "steps"),
    Case("gather_nd", None, ((4, 3), (2, 2)), "elements"),
    Case("gather_nd", at.GatherND(), ((4, 3, 2), (2, 5, 1)), "slices"),
    Case("gather_nd", at.GatherND(1), ((2, 4, 3), (2, 5, 1)), "batched"),
    Case("scatter_nd", None, ((4, 3), (2, 2), (2,)), "elements"),
    Case("scatter_nd", at.Scatter(), ((4, 3), (2, 1), (2, 3)), "slices"),
    Case("scatter_nd", at.Scatter(add=True), ((4, 3, 2), (5, 1, 2), (5, 1, 2)), "added"),
    Case("one_hot", at.OneHot(5), ((2, 3),)),
    Case("one_hot", at.OneHot(4, 1), ((2, 3),), "between"),
    Case("one_hot", at.OneHot(3, 0), ((4,),), "in-front"),
]

CONTROL = [
    Case("constant", at.DeclaredOutputs(((2, 3),), ("fp32",)), (), "floats"),
    Case("constant", at.DeclaredOutputs(((4,), ()), ("int64", "fp32")), (), "two"),
    Case("select", at.DeclaredOutputs(((2, 3),), ("fp32",)), ((2, 3), (2, 3))),
    Case("select", at.DeclaredOutputs(((2, 3), (4,)), ("fp32", "fp32")), ((2, 3), (4,)), "two"),
    Case("range", at.DeclaredOutputs(((5,),), ("int64",)), ()),
    Case("random", at.DeclaredOutputs(((2, 3),), ("fp32",)), ()),
    Case("shape_of", None, ((2, 3, 4),)),
]

# A kernel, a matrix, slopes that another layer makes.
GIVEN = [
    Case("conv", at.Conv(w([3, 3], 1, 1), 4, 2, bias=False), ((1, 4, 5, 6), (4, 2, 3, 3)), "given"),
    Case("conv", at.Conv(w([3], 2), 2), ((2, 3, 7), (2, 3, 3)), "given-bias-stored"),
    Case("conv", at.Conv(w([2, 2]), 2), ((1, 3, 4, 4), (2, 3, 2, 2), (2,)), "given-both"),
    Case("conv_transpose", at.TransposedConv(w([3, 3], 2, 1), 4, 2), ((1, 2, 3, 3), (2, 2, 3, 3)),
         "given"),
    Case("linear", at.Linear(4), ((3, 5), (4, 5)), "given"),
    Case("linear", at.Linear(4), ((2, 3, 5), (4, 5), (4,)), "given-both"),
    Case("batch_norm", None, ((2, 3, 4), (3,), (3,), (3,), (3,)), "given"),
    Case("layer_norm", at.LayerNorm(), ((2, 3, 4), (4,), (4,)), "given"),
    Case("group_norm", at.GroupNorm(2), ((2, 4, 3), (4,), (4,)), "given"),
    Case("instance_norm", at.InstanceNorm(affine=True), ((2, 3, 4), (3,), (3,)), "given"),
    Case("rms_norm", at.RMSNorm(), ((2, 3, 4), (4,)), "given"),
    Case("prelu", at.PReLU(), ((2, 3, 4), (3,)), "given"),
    Case("embedding", at.Embedding(7, 3), ((2, 4), (7, 3)), "given"),
]  # fmt: skip

D = at.DeformConv
DECIDED = [
    Case("deform_conv", D(w([3, 3], 1, 1), 2), ((1, 2, 4, 5), (1, 18, 4, 5)), "offsets"),
    Case("deform_conv", D(w([2, 2], [2, 1], 0, 1), 4, 2, False, 2),
         ((2, 4, 5, 4), (2, 16, 2, 3), (2, 8, 2, 3)), "weighted-groups"),
    Case("affine_grid", at.AffineGrid((2, 3, 4, 5)), ((2, 2, 3),)),
    Case("affine_grid", at.AffineGrid((1, 1, 2, 3, 4), True), ((1, 3, 4),), "3d-corners"),
    Case("dft", at.DFT(1), ((2, 8, 1),), "real"),
    Case("dft", at.DFT(), ((2, 4, 2),), "complex"),
    Case("dft", at.DFT(1, onesided=True), ((2, 8, 3, 1),), "onesided"),
    Case("dft", at.DFT(1, inverse=True), ((1, 4, 2),), "inverse"),
    Case("dft", at.DFT(1, length=8), ((1, 5, 1),), "padded"),
    Case("stft", at.STFT(4, 2), ((2, 9, 1), (4,)), "weighted"),
    Case("stft", at.STFT(8, 3), ((1, 16, 1),), "plain"),
    Case("det", None, ((3, 3),)),
    Case("det", None, ((2, 2, 4, 4),), "several"),
    Case("non_zero", None, ((2, 3),)),
    Case("compress", at.Compress(1), ((2, 3, 2), (3,)), "axis"),
    Case("compress", None, ((2, 3), (6,)), "elements"),
    Case("unique", None, ((2, 3),)),
    Case("unique", at.Unique(0, 4), ((3, 2),), "rows"),
    Case("unique", at.Unique(None, 4), ((5,),), "all-outputs"),
    Case("reverse_sequence", at.ReverseSequence(), ((4, 2, 3), (2,))),
    Case("reverse_sequence", at.ReverseSequence(0, 1), ((3, 4), (3,)), "batch-first"),
]  # fmt: skip

M = at.Attention
MASKS = [
    Case("attention", M(2, mask="add"), ((2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)), "mask-added"),
    Case("attention", M(2, mask="bool"), ((2, 3, 4), (2, 5, 4), (2, 5, 4), (3, 5)), "flags"),
    Case("attention", M(4, 2, mask="bool"), ((1, 4, 3, 2), (1, 2, 5, 2), (1, 2, 5, 3),
                                            (1, 1, 3, 5)), "flags-grouped"),
    Case("attention", M(2, softcap=1.5), ((1, 3, 8), (1, 4, 8), (1, 4, 6)), "capped"),
    Case("attention", M(2, causal=True, softcap=2.0), ((1, 2, 3, 4),) * 3, "capped-causal"),
]  # fmt: skip

V = at.Recurrent
RECURRENT = [
    Case("gru", V(3, reset_after=False), ((4, 2, 2),), "reset-before"),
    Case("gru", V(2, 2, True, False, reset_after=False), ((3, 1, 4),), "reset-before-deep"),
    Case("lstm", V(3, peepholes=True), ((4, 2, 2),), "peepholes"),
    Case("lstm", V(2, 2, True, False, peepholes=True), ((3, 2, 2),), "peepholes-deep"),
    Case("rnn", V(3), ((4, 2, 2), (1, 2, 3)), "states"),
    Case("gru", V(3, bidirectional=True), ((3, 2, 2), (2, 2, 3)), "states"),
    Case("lstm", V(3, 2, bias=False), ((3, 2, 2), (2, 2, 3), (2, 2, 3)), "states"),
    Case("lstm", V(2, peepholes=True, batch_first=True), ((2, 3, 2), (1, 2, 2), (1, 2, 2)),
         "states-peepholes"),
]  # fmt: skip

CASES = [*POINTWISE, *POOLS, *REDUCTIONS, *MOVES, *CONTROL, *GIVEN, *DECIDED, *MASKS, *RECURRENT]
