"""The table of cases: every op on shapes of every kind it takes."""

from __future__ import annotations

from layerscope.graph import attributes as at
from tests.brute.case import Case
from tests.brute.case import window as w

CONVOLUTIONS = [
    Case("conv", at.Conv(w([3]), 4), ((2, 3, 9),), "1d"),
    Case("conv", at.Conv(w([5], 2, [(3, 1)], 2), 2, bias=False), ((1, 2, 14),), "1d-uneven-pads"),
    Case("conv", at.Conv(w([3, 3], 1, 1), 4), ((1, 3, 5, 6),), "padded"),
    Case("conv", at.Conv(w([3, 2], [2, 3], [(0, 2), (1, 0)]), 3), ((2, 2, 7, 8),), "uneven"),
    Case("conv", at.Conv(w([3, 3], 1, 2, 2), 4, 2, bias=False), ((1, 4, 6, 6),), "groups-dilated"),
    Case("conv", at.Conv(w([3, 3], 2, 1), 6, 6), ((1, 6, 6, 5),), "depthwise"),
    Case("conv", at.Conv(w([3, 3], 1, 1), 8, 4), ((1, 4, 4, 4),), "depthwise-multiplied"),
    Case("conv", at.Conv(w([1, 1], 2), 5), ((2, 3, 5, 5),), "1x1-strided"),
    Case("conv", at.Conv(w([3, 4], 2, "same_upper"), 2), ((1, 2, 6, 7),), "same-upper"),
    Case("conv", at.Conv(w([3, 4], 2, "same_lower"), 2), ((1, 2, 6, 7),), "same-lower"),
    Case("conv", at.Conv(w([2, 3], 3, "same_upper"), 2), ((1, 1, 7, 8),), "same-step-past-kernel"),
    Case("conv", at.Conv(w([2, 3, 2], [1, 2, 1], 1), 2), ((1, 2, 3, 5, 4),), "3d"),
    Case("conv", at.Conv(w([2, 1, 3], 1, [(1, 0), (0, 0), (2, 1)], [1, 1, 2]), 4, 2),
         ((1, 2, 3, 2, 6),), "3d-groups-dilated"),
    Case("conv_transpose", at.TransposedConv(w([3], 2), 3), ((2, 2, 5),), "1d"),
    Case("conv_transpose", at.TransposedConv(w([3, 3], 2, 1), 2, output_padding=(1, 1)),
         ((1, 3, 4, 3),), "output-padding"),
    Case("conv_transpose", at.TransposedConv(w([4, 2], [3, 1], [(1, 2), (0, 1)]), 4, 2, False),
         ((1, 4, 3, 4),), "groups-uneven"),
    Case("conv_transpose", at.TransposedConv(w([3, 2], 2, 1, [2, 3]), 2),
         ((1, 2, 4, 4),), "dilated"),
    Case("conv_transpose", at.TransposedConv(w([2, 2], 3, 0), 1), ((1, 1, 3, 3),), "holes"),
    Case("conv_transpose", at.TransposedConv(w([2, 2], [3, 2], 0, [1, 3]), 2, 2, True, (2, 2)),
         ((1, 2, 3, 3),), "output-padding-below-dilation"),
    Case("conv_transpose", at.TransposedConv(w([5, 4], 2, "same_upper"), 2),
         ((1, 2, 3, 4),), "same-upper"),
    Case("conv_transpose", at.TransposedConv(w([5, 4], 2, "same_lower"), 2),
         ((1, 2, 3, 4),), "same-lower"),
    Case("conv_transpose", at.TransposedConv(w([4, 5], 2, "same_lower"), 1, output_padding=(1, 1)),
         ((1, 1, 3, 3),), "same-lower-output-padding"),
    Case("conv_transpose", at.TransposedConv(w([2, 2, 3], 2, 0), 2), ((1, 2, 2, 2, 3),), "3d"),
]  # fmt: skip

POOLS = [
    Case(f"{kind}_pool", at.Pool(window), (shape,), note)
    for kind in ("max", "avg", "lp")
    for window, shape, note in [
        (w([3], 2), (2, 2, 9), "1d"),
        (w([2, 2], 2), (1, 3, 6, 7), "2d"),
        (w([3, 3], 2, 1), (1, 2, 6, 7), "padded"),
        (w([3, 2], [1, 3], [(1, 0), (0, 1)]), (1, 2, 5, 7), "uneven"),
        (w([2, 3, 2], 2, [(0, 1), (1, 1), (0, 0)]), (1, 1, 4, 5, 4), "3d"),
    ]
] + [
    Case(f"{kind}_pool", at.Pool(window, count_include_pad=counts), (shape,), f"{note}-{counts}")
    for kind in ("max", "avg")
    for counts in (True, False)
    for window, shape, note in [
        (w([3, 3], 2, 0, 1, "torch"), (1, 2, 6, 7), "ceil"),
        (w([2, 2], 2, 1, 1, "torch"), (1, 2, 3, 5), "ceil-drops-the-last"),
        (w([3, 3], [2, 3], 1, 1, "caffe"), (1, 2, 6, 7), "caffe-padded"),
        (w([3, 3], 2, 0, 1, "caffe"), (1, 2, 6, 8), "caffe-unpadded"),
        (w([3, 3], 2, 0, 1, "ceil"), (1, 2, 6, 8), "plain-ceil"),
        (w([3, 2], 2, "same_upper"), (1, 2, 6, 7), "same-upper"),
        (w([3, 2], 2, "same_lower"), (1, 2, 6, 7), "same-lower"),
    ]
] + [
    Case("max_pool", at.Pool(w([3, 2], 1, 1, 2)), ((1, 2, 6, 6),), "dilated"),
    Case("max_pool", at.Pool(w([2], 3, 1, 2, "torch")), ((1, 2, 11),), "dilated-ceil"),
    Case("lp_pool", at.Pool(w([2, 3], 2), p=1), ((1, 2, 5, 6),), "p1"),
    Case("lp_pool", at.Pool(w([2, 3], 2, 1), p=3), ((1, 2, 5, 6),), "p3"),
    Case("lp_pool", at.Pool(w([2, 3], 2), p=4), ((1, 2, 5, 6),), "p4"),
    Case("global_lp_pool", at.GlobalPool(1), ((2, 3, 4, 2),), "p1"),
    Case("global_lp_pool", at.GlobalPool(3), ((2, 3, 4, 2),), "p3"),
    *(Case(f"global_{kind}_pool", a, (shape,))
      for kind in ("max", "avg", "lp")
      for a, shape in [
          (None, (2, 3, 7)), (at.GlobalPool(), (2, 3, 4, 5)), (None, (1, 2, 3, 2, 2)),
      ]),
    *(Case(f"adaptive_{kind}_pool", at.AdaptivePool(bins), (shape,), note)
      for kind in ("max", "avg")
      for bins, shape, note in [
          ((4,), (2, 3, 10), "overlapping"),
          ((3, 2), (1, 2, 6, 8), "even"),
          ((None, 3), (1, 2, 3, 7), "axis-kept"),
          ((5, 3), (1, 1, 3, 3), "more-bins-than-places"),
          ((2, 1, 3), (1, 2, 3, 4, 5), "3d"),
      ]),
]  # fmt: skip

PRODUCTS = [
    Case("linear", at.Linear(4), ((3, 5),)),
    Case("linear", at.Linear(4, bias=False), ((2, 3, 5),), "last-axis"),
    Case("linear", at.Linear(3), ((2, 2, 3, 4),), "last-axis-biased"),
    Case("linear", at.Linear(4, flatten=True), ((2, 3, 2, 2),), "flattened"),
    Case("linear", at.Linear(4, bias=False, flatten=True), ((2, 6),), "flattened-matrix"),
    Case("linear", at.Linear(2), ((7,),), "vector"),
    Case("matmul", None, ((3, 4), (4, 5))),
    Case("matmul", at.MatMul(), ((2, 3, 4), (2, 4, 5)), "batched"),
    Case("matmul", at.MatMul(), ((2, 1, 3, 4), (5, 4, 2)), "broadcast"),
    Case("matmul", at.MatMul(transpose_b=True), ((2, 3, 4), (5, 4)), "right-turned"),
    Case("matmul", at.MatMul(transpose_a=True), ((2, 4, 3), (2, 4, 5)), "left-turned"),
    Case("matmul", at.MatMul(True, True), ((4, 3), (2, 5, 4)), "both-turned"),
    Case("matmul", None, ((4,), (2, 4, 5)), "vector-matrix"),
    Case("matmul", None, ((2, 3, 4), (4,)), "matrix-vector"),
    Case("matmul", None, ((4,), (4,)), "vectors"),
    Case("matmul", at.MatMul(True, True), ((4,), (2, 5, 4)), "turned-vector"),
]

NORMS = [
    Case("batch_norm", None, ((2, 3, 4, 2),)),
    Case("batch_norm", at.BatchNorm(affine=False, eps=1e-3), ((2, 3, 4),), "plain"),
    Case("batch_norm", at.BatchNorm(), ((4, 3),), "matrix"),
    Case("layer_norm", None, ((2, 3, 6),)),
    Case("layer_norm", at.LayerNorm(axis=1), ((2, 3, 4),), "two-axes"),
    Case("layer_norm", at.LayerNorm(bias=False), ((2, 3, 4),), "no-bias"),
    Case("layer_norm", at.LayerNorm(axis=-2, affine=False), ((2, 3, 4),), "plain"),
    Case("group_norm", at.GroupNorm(2), ((2, 4, 3, 2),)),
    Case("group_norm", at.GroupNorm(1), ((2, 4, 3),), "one-group"),
    Case("group_norm", at.GroupNorm(4), ((2, 4, 3, 2),), "instances"),
    Case("group_norm", at.GroupNorm(3, affine=False), ((1, 6, 4),), "plain"),
    Case("lrn", at.LocalResponseNorm(5, 0.3, 0.75, 2.0), ((1, 7, 2, 2),)),
    Case("lrn", at.LocalResponseNorm(4, 0.3, 0.5), ((1, 3, 2, 2),), "even-and-wider-than-channels"),
    Case("lrn", at.LocalResponseNorm(3, 0.5, within_channel=True), ((1, 2, 4, 5),), "within"),
    Case("lrn", at.LocalResponseNorm(3, 0.5, within_channel=True), ((1, 2, 6),), "within-1d"),
    Case("l2_norm", None, ((2, 5, 2, 3),)),
    Case("l2_norm", at.L2Norm(scale=True), ((2, 4, 3),), "scaled"),
    Case("l2_norm", at.L2Norm(scale=True, shared_scale=True), ((2, 4, 3),), "scaled-alike"),
    Case("l2_norm", at.L2Norm(axes=(1, 2, 3), scale=True), ((2, 3, 2, 2),), "across-places"),
    Case("l2_norm", at.L2Norm(axes=(-1,)), ((3, 4),), "last-axis"),
    Case("scale", None, ((2, 3, 4),)),
    Case("scale", at.Scale(bias=True), ((2, 3, 4, 2),), "biased"),
    Case("scale", at.Scale(axis=-1, bias=True), ((2, 3, 4),), "last-axis"),
]

A = at.Activation
POINTWISE = [
    *(Case(op, attributes, (shape,))
      for op, attributes in [
          ("relu", A()), ("relu6", A()), ("clip", A(-0.5, 1.25)), ("abs", A()),
          ("threshold", A(0.5)), ("leaky_relu", A(0.1)), ("elu", A(1.3)), ("selu", A()),
          ("sigmoid", A()), ("tanh", A()), ("silu", A()), ("hard_sigmoid", A(0.2, 0.5)),
          ("hard_swish", A()), ("gelu", A()), ("gelu_tanh", A()), ("softplus", A()),
          ("exp", A()), ("log", A()), ("sqrt", A()), ("neg", A()),
      ]
      for shape in [(2, 3, 4, 5), (7,)]),
    Case("prelu", None, ((2, 3, 4, 2),)),
    Case("prelu", at.PReLU(shared=True), ((2, 3, 4),), "shared"),
    Case("prelu", at.PReLU(), ((4, 3),), "matrix"),
    Case("prelu", at.PReLU(shared=True), ((6,),), "vector"),
    *(Case(op, None, shapes)
      for op in ("add", "sub", "mul", "div", "pow", "max", "min", "compare")
      for shapes in [
          ((2, 3, 4), (2, 3, 4)),
          ((2, 3, 4, 5), (3, 1, 1)),
          ((4, 1), (2, 1, 5)),
          ((1, 3), ()),
          ((2, 3, 4),),
      ]),
    *(Case(op, None, shapes, f"{len(shapes)}-inputs")
      for op in ("add", "mul", "max", "min")
      for shapes in [((2, 3),) * 3, ((2, 1, 4), (3, 1), (4,), (1, 1, 1))]),
]  # fmt: skip

SOFTMAX = [
    *(Case(op, attributes, (shape,))
      for op in ("softmax", "log_softmax")
      for attributes, shape in [
          (None, (3, 5)), (at.Softmax(1), (2, 4, 3)), (at.Softmax(-1), (2, 3, 4)),
      ]),
    *(Case(op, attributes, shapes)
      for op in ("softmax_loss", "nll_loss")
      for attributes, shapes in [
          (None, ((4, 5), (4,))),
          (at.Softmax(1), ((2, 3, 2, 2), (2, 2, 2))),
          (at.Softmax(1), ((2, 3, 2, 2), (2, 1, 2, 2))),
          (at.Softmax(-1), ((2, 3, 4), (2, 3))),
          (at.Softmax(1), ((3, 4),)),
      ]),
    *(Case(op, None, shapes)
      for op in ("mse_loss", "l1_loss", "hinge_loss", "sigmoid_cross_entropy")
      for shapes in [((3, 4), (3, 4)), ((2, 3, 1, 1), (2, 3)), ((5,),)]),
]  # fmt: skip

MOVES = [
    Case("reshape", at.Reshape((0, -1)), ((2, 3, 4),)),
    Case("reshape", at.Reshape((1, 2, 3, 4)), ((2, 3, 4),), "longer"),
    Case("reshape", at.Reshape((0, 2, -1, 4, 2)), ((1, 6, 4, 2),), "channels-grouped"),
    Case("flatten", None, ((2, 3, 4, 2),)),
    Case("flatten", at.Flatten(0, 1), ((2, 3, 4),), "front"),
    Case("flatten", at.Flatten(-2), ((2, 3, 4, 2),), "back"),
    Case("flatten", None, ((5,),), "vector"),
    Case("identity", None, ((2, 3),)),
    Case("dropout", at.Dropout(), ((2, 3, 4),)),
    Case("concat", None, ((2, 3, 4), (2, 1, 4), (2, 2, 4))),
    Case("concat", at.Concat(-1), ((2, 3, 4), (2, 3, 1)), "last-axis"),
    Case("concat", at.Concat(0), ((2, 3),), "alone"),
    Case("split", at.Split(1, (1, 3, 2)), ((2, 6, 3),)),
    Case("split", at.Split(-1, (4, 1)), ((2, 3, 5),), "last-axis"),
    Case("split", at.Split(1, (3,)), ((2, 3),), "one-piece"),
    Case("slice", at.Slice((1, 2), (1, 0), (3, 5), (1, 2)), ((2, 4, 6),)),
    Case("slice", at.Slice((-1,), (-1,), (-(2**31),), (-2,)), ((2, 7),), "backwards"),
    Case("slice", at.Slice((0,), (-2,), (2**31,)), ((3, 2),), "open-ended"),
    Case("permute", at.Permute((0, 2, 3, 1)), ((2, 3, 4, 5),)),
    Case("pad", at.Pad(((0, 0), (1, 0), (2, 3))), ((2, 2, 3),)),
    Case("pad", at.Pad(((0, 0), (0, 0), (2, 3), (1, 2)), "reflect"), ((1, 2, 5, 4),), "reflect"),
    Case("pad", at.Pad(((0, 0), (0, 0), (2, 5)), "edge"), ((1, 2, 3),), "edge"),
    Case("pad", at.Pad(((0, 0), (-1, 2), (1, -2))), ((2, 3, 5),), "cutting"),
    Case("crop", None, ((1, 2, 6, 7), (1, 3, 4, 5))),
    Case("crop", at.Crop(2, (1, 2)), ((1, 2, 6, 7), (1, 1, 4, 5)), "two-offsets"),
    Case("crop", at.Crop(-1, (2,)), ((2, 2, 6), (3, 1, 3)), "last-axis"),
    Case("crop", at.Crop(1, (1,)), ((1, 4, 5), (1, 2, 3)), "channels-too"),
    *(Case("resize", at.Resize(mode, size, scale, align), (shape,), f"{mode}{'-corners' * align}")
      for mode in ("nearest", "bilinear")
      for align in (False, True)
      for size, scale, shape in [
          ((), ((2, 1),), (1, 2, 3, 4)),
          ((5, 3), (), (1, 2, 3, 7)),
          ((), ((3, 2), (1, 2)), (1, 1, 5, 6)),
          ((), ((7, 4),), (1, 1, 5)),
          ((1,), (), (1, 1, 4)),
          ((), ((2, 1),), (1, 1, 2, 3, 2)),
      ]
      # onnxruntime has corner-aligned nearest by rounding; the frameworks know only the floor.
      if not (mode == "nearest" and align)),
    *(Case("resize", at.Resize("bicubic", size, scale, align), (shape,), f"bicubic-{align}")
      for align in (False, True)
      for size, scale, shape in [
          ((), ((2, 1),), (1, 2, 4, 5)),
          ((7, 3), (), (1, 1, 4, 6)),
      ]),
    Case("pixel_shuffle", at.PixelShuffle(2), ((2, 8, 3, 2),)),
    Case("pixel_shuffle", at.PixelShuffle(3), ((1, 9, 2, 2),), "3"),
    Case("pixel_shuffle", at.PixelShuffle(2, inverse=True), ((2, 3, 4, 6),), "inverse"),
    Case("pixel_shuffle", at.PixelShuffle(2), ((1, 16, 2, 1, 3),), "3d"),
    Case("roi_pool", at.RoIPool((2, 3)), ((1, 2, 4, 6), (3, 5)), "even"),
    Case("roi_pool", at.RoIPool((3, 2)), ((2, 2, 7, 5), (2, 5)), "overlapping"),
    Case("roi_pool", at.RoIPool((2, 2), 0.5), ((1, 1, 6, 5), (2, 5)), "scaled"),
]  # fmt: skip

CASES = [*CONVOLUTIONS, *POOLS, *PRODUCTS, *NORMS, *POINTWISE, *SOFTMAX, *MOVES]
