"""Cases of what only Caffe has, and of what it tells ops that others do not."""

from __future__ import annotations

from layerscope.graph import attributes as at
from tests.brute.case import Case, window

MAP = (2, 3, 5, 4)

CASES = [
    *(Case("power", a, (MAP,), note)
      for a, note in [
          (at.Power(2.0, 0.5, 1.5), "all"), (at.Power(shift=-1.0), "shift"),
          (at.Power(scale=-1.0), "scale"), (at.Power(3.0), "power"), (at.Power(), "neutral"),
      ]),
    Case("axpy", None, ((2, 3), MAP, MAP)),
    Case("axpy", None, ((2, 3, 1, 1), MAP, MAP), "as-a-map"),
    Case("scale", at.Scale(axis=0), (MAP, (2, 3)), "given"),
    Case("scale", at.Scale(axis=1, bias=True), (MAP, (3, 5)), "given-and-shifted"),
    Case("scale", None, (MAP, ()), "given-scalar"),
    Case("scale", at.Scale(axis=1, bias=True, axes=2), (MAP,), "two-axes"),
    Case("scale", at.Scale(axis=0, axes=-1), ((2, 3),), "all-axes"),
    Case("scale", at.Scale(axes=0), (MAP,), "one-value"),
    Case("bias", None, (MAP,)),
    Case("bias", at.Bias(axis=-1), (MAP,), "last"),
    Case("bias", at.Bias(axis=2, axes=2), (MAP,), "places"),
    Case("bias", at.Bias(axis=0), (MAP, (2, 3)), "given"),
    *(Case(f"{op}", at.Sum(scaled), (MAP,) * count, f"{scaled}-of-{count}")
      for op, scaled, count in [("add", 1, 2), ("add", 3, 3), ("add", 0, 2)]),
    Case("linear", at.Linear(4, flatten=True, axis=2), ((2, 3, 2, 2),), "from-axis-2"),
    Case("linear", at.Linear(4, False, True, -1), ((2, 3, 5),), "last-axis"),
    Case("linear", at.Linear(3, True, True, 0), ((2, 3),), "all-axes"),
    Case("tile", at.Tile(1, 3), (MAP,)),
    Case("tile", at.Tile(-1, 2), ((2, 3),), "last"),
    Case("tile", at.Tile(0, 1), (MAP,), "once"),
    Case("channel_shuffle", at.ChannelShuffle(2), ((2, 6, 3, 2),)),
    Case("channel_shuffle", at.ChannelShuffle(3), ((1, 6),), "vector"),
    Case("im2col", at.Im2Col(window([3, 2], 2, 1)), (MAP,)),
    Case("im2col", at.Im2Col(window([2, 2], 1, 0, 2)), (MAP,), "dilated"),
    Case("stochastic_pool", at.Pool(window([2, 2], 1)), (MAP,)),
    Case("stochastic_pool", at.Pool(window([2, 3], 2)), ((1, 2, 4, 5),), "strided"),
    Case("global_stochastic_pool", at.GlobalPool(), (MAP,)),
    *(Case(f"pyramid_{kind}_pool", at.Pyramid(levels), (shape,), f"{levels}-{n}")
      for kind in ("max", "avg", "stochastic")
      for levels in (1, 2, 3)
      for n, shape in enumerate([(2, 3, 8, 4), (1, 2, 7, 6)])
      if kind != "stochastic" or n == 0),
    *(Case("interp", a, (MAP,), note)
      for a, note in [
          (at.Interp((7, 9)), "size"), (at.Interp((5, 4)), "same"), (at.Interp(zoom=3), "zoom"),
          (at.Interp(shrink=2), "shrink"), (at.Interp(shrink=2, zoom=4), "both"),
          (at.Interp((3, 6), crop=(1, 0)), "cropped"), (at.Interp((1, 1)), "one"),
      ]),
    Case("interp", at.Interp(), (MAP, (2, 1, 3, 6)), "like another"),
    Case("unpool", at.Unpool(scale=(2, 2)), ((2, 3, 2, 3),) * 2),
    Case("unpool", at.Unpool(scale=(2, 2), less=(1, 0)), ((1, 2, 2, 2),) * 2, "less"),
    Case("unpool", at.Unpool((5, 4)), ((1, 2, 2, 2),) * 2, "size"),
    Case("reshape", at.Reshape((2, -1), axis=1), ((2, 4, 3),), "from-axis-1"),
    Case("reshape", at.Reshape((1,), axis=1, axes=0), ((2, 8),), "new-axis"),
    Case("reshape", at.Reshape((6,), axis=0, axes=2), ((2, 3, 4),), "two-axes"),
    Case("reshape", at.Reshape((1,), axis=-1), ((2, 8),), "behind"),
    Case("reshape", at.Reshape((0, 2, 2), axis=-3), ((2, 4),), "from-behind"),
    *(Case(op, at.Reduce((1,), tail=True), ((2, 3, 4),), "tail")
      for op in ("reduce_sum", "reduce_mean", "reduce_l1", "reduce_sum_square")),
    Case("reduce_sum_square", None, ((2, 3, 2),), "all"),
    Case("reduce_sum_square", at.Reduce((1,), keep=True), ((2, 3, 2),), "kept"),
    Case("instance_norm", at.InstanceNorm(variance=False), (MAP,), "mean-only"),
    Case("layer_norm", at.LayerNorm(1, False, variance=False), (MAP,), "mean-only"),
    *(Case(op, a, shapes, note)
      for op in ("accuracy", "log_loss", "infogain_loss")
      for a, shapes, note in [
          (None, ((4, 3), (4,)), "rows"), (None, ((4, 3),), "alone"),
          (at.Softmax(1), ((2, 3, 2, 2), (2, 2, 2)), "maps"),
      ]),
    Case("smooth_l1_loss", None, ((3, 4), (3, 4))),
    Case("smooth_l1_loss", None, ((3, 4),), "alone"),
    Case("contrastive_loss", None, ((4, 3), (4, 3))),
    Case("contrastive_loss", None, ((2, 3, 2, 2),) * 2, "maps"),
    *(Case(op, at.Unrolled(3, len(shapes) == 3), shapes, note)
      for op in ("caffe_lstm", "caffe_rnn")
      for shapes, note in [
          (((4, 2, 3), (4, 2)), "plain"), (((2, 3, 2, 2), (2, 3)), "maps"),
          (((3, 2, 2), (3, 2), (2, 5)), "static"),
      ]),
    Case("psroi_pool", at.PSRoIPool(2, 3), ((2, 18, 7, 5), (4, 5))),
    Case("psroi_pool", at.PSRoIPool(1, 2, 0.5), ((1, 4, 4, 4), (2, 5)), "scaled"),
]  # fmt: skip
