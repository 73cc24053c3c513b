"""Norms, activations, shapes and losses as forks of Caffe write them."""

from __future__ import annotations

from tests.formats.caffe.caffe_fork import MAPS, WIDE, Fork, Row, unknown

LAYERS_OF_FORKS = [
    Fork("batch norms", MAPS + """
layer { name: "a" type: "BatchNorm" bottom: "data" top: "a" batch_norm_param {
  use_global_stats: true update_global_stats: true icnet: true add_eps_before_sqrt: true
  stats_batch_size: 0 } param { lr_mult: 0 decay_mult: 0 } }
layer { name: "b" type: "BatchNorm" bottom: "a" top: "b" batch_norm_param { scale_bias: true
  moving_average_fraction: 0.9 scale_filler { value: 1 } } }
layer { name: "c" type: "BN" bottom: "b" top: "c" param { lr_mult: 1 decay_mult: 0 } bn_param {
  slope_filler { type: "constant" value: 1 } bias_filler { type: "constant" value: 0 } frozen: true
  momentum: 0.95 } }
layer { name: "d" type: "BatchNorm" bottom: "c" top: "d" batch_norm_param { use_weight_bias: true
  relu: true } }
layer { name: "e" type: "SyncBN" bottom: "d" top: "e" bn_param { frozen: false } }
""", {"a": Row((2, 4, 6, 6)), "b": Row((2, 4, 6, 6), 0, 8), "c": Row((2, 4, 6, 6), 0, 8),
      "d": Row((2, 4, 6, 6), 0, 8), "d/relu": Row((2, 4, 6, 6)), "e": Row((2, 4, 6, 6), 0, 8)}),
    Fork("limits of ReLU", MAPS + """
layer { name: "a" type: "ReLU6" bottom: "data" top: "a" }
layer { name: "b" type: "ReLU" bottom: "a" top: "b" relu_param { relu6: true } }
layer { name: "c" type: "ReLU" bottom: "b" top: "c" relu_param { maximum: 20 minimum: 0 } }
layer { name: "d" type: "ReLU" bottom: "c" top: "d" relu_param { negative_slope: 0.1 maximum: 3 } }
layer { name: "e" type: "CReLU" bottom: "c" top: "e" crelu_param { concat_axis: 1 } }
layer { name: "f" type: "Mish" bottom: "c" top: "f" }
layer { name: "g" type: "HardSwish" bottom: "c" top: "g" }
""", {"a": Row((2, 4, 6, 6)), "b": Row((2, 4, 6, 6)), "c": Row((2, 4, 6, 6)),
      "d": unknown((2, 4, 6, 6)), "e/negative": Row((2, 4, 6, 6)), "e/above": Row((2, 4, 6, 6)),
      "e/below": Row((2, 4, 6, 6)), "e": Row((2, 8, 6, 6)), "f": Row((2, 4, 6, 6)),
      "g": Row((2, 4, 6, 6))}),
    Fork("functions of elements", MAPS + "".join(
        f'layer {{ name: "{kind}" type: "{kind}" bottom: "data" top: "{kind}" }}\n'
        for kind in ("Sqrt", "Rsqrt", "Square", "Neg", "Reciprocal", "Floor", "Ceil", "Round",
                     "Sign", "Sin", "Cos", "Tan", "Erf", "Softsign", "Abs", "GradientScaler",
                     "GradientReversal", "StopGradient", "BlockGradient", "NoOp")
    ), {kind: Row((2, 4, 6, 6))
        for kind in ("Sqrt", "Rsqrt", "Square", "Neg", "Reciprocal", "Floor", "Ceil", "Round",
                     "Sign", "Sin", "Cos", "Tan", "Erf", "Softsign", "Abs", "GradientScaler",
                     "GradientReversal", "StopGradient", "BlockGradient", "NoOp")}),
    Fork("operations of Eltwise", """
input: "a" input: "b" input: "c"
input_shape { dim: 2 dim: 4 dim: 3 dim: 3 } input_shape { dim: 2 dim: 4 dim: 3 dim: 3 }
input_shape { dim: 4 }
layer { name: "min" type: "Eltwise" bottom: "a" bottom: "b" top: "min"
  eltwise_param { operation: MIN output_scale: 2 saturate: Signed_8bit } }
layer { name: "div" type: "Eltwise" bottom: "a" bottom: "b" top: "div"
  eltwise_param { operation: DIV } }
layer { name: "sub" type: "Eltwise" bottom: "a" bottom: "b" top: "sub"
  eltwise_param { operation: SUB } }
layer { name: "mul" type: "Eltwise" bottom: "a" bottom: "c" top: "mul"
  eltwise_param { operation: PROD axis: 1 } }
layer { name: "add" type: "Eltwise" bottom: "a" bottom: "c" top: "add"
  eltwise_param { operation: SUM axis: 1 } }
layer { name: "max" type: "Eltwise" bottom: "a" bottom: "c" top: "max"
  eltwise_param { operation: MAX axis: 1 } }
layer { name: "odd" type: "Eltwise" bottom: "a" bottom: "b" top: "odd"
  eltwise_param { operation: XOR } }
layer { name: "hi" type: "Maximum" bottom: "a" bottom: "b" top: "hi" }
layer { name: "lo" type: "Minimum" bottom: "a" bottom: "b" top: "lo" }
layer { name: "by" type: "RealDiv" bottom: "a" bottom: "b" top: "by" }
""", {name: Row((2, 4, 3, 3)) for name in ("min", "div", "sub", "mul", "add", "hi", "lo", "by")}
         | {"max": unknown((2, 4, 3, 3)), "odd": unknown()}),
    Fork("SENet", WIDE + """
layer { name: "g" type: "Pooling" bottom: "data" top: "g"
  pooling_param { pool: AVE engine: CAFFE global_pooling: true } }
layer { name: "f" type: "Convolution" bottom: "g" top: "f"
  convolution_param { num_output: 8 kernel_size: 1 stride: 1 } }
layer { name: "s" type: "Sigmoid" bottom: "f" top: "s" sigmoid_param { engine: CAFFE } }
layer { name: "a" type: "Axpy" bottom: "s" bottom: "data" bottom: "data" top: "a" }
""", {"g": Row((1, 8, 1, 1)), "f": Row((1, 8, 1, 1), 64, 72), "s": Row((1, 8, 1, 1)),
      "a": Row((1, 8, 6, 4))}),
    Fork("ShuffleNet", WIDE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 6 kernel_size: 1 group: 2 bias_term: false } }
layer { name: "s" type: "ShuffleChannel" bottom: "c" top: "s"
  shuffle_channel_param { group: 3 } }
""", {"c": Row((1, 6, 6, 4), 24 * 24, 24), "s": Row((1, 6, 6, 4))}),
    Fork("channels of zeros", WIDE + """
layer { name: "p" type: "PadChannel" bottom: "data" top: "p"
  pad_channel_param { num_channels_to_pad: 4 } }
layer { name: "q" type: "Pad" bottom: "data" top: "q" pad_param { paddings: 0 paddings: 0
  paddings: 0
  paddings: 0 paddings: 1 paddings: 2 paddings: 0 paddings: 3 constant_values: 1 } }
layer { name: "m" type: "MirrorPad" bottom: "data" top: "m" mirror_pad_param { paddings:
  [0, 0, 0, 0,
  1, 1, 1, 1] mode: "REFLECT" } }
layer { name: "o" type: "Padding" bottom: "data" top: "o" padding_param { pad: 2 } }
""", {"p": Row((1, 12, 6, 4)), "q": Row((1, 8, 9, 7)), "m": Row((1, 8, 8, 6)),
      "o": Row((1, 8, 10, 8))}),
    Fork("shapes of TensorFlow", WIDE + """
layer { name: "e" type: "ExpandDimsND" bottom: "data" top: "e" expand_dims_nd_param { axis: 1
  axis: 3 } }
layer { name: "s" type: "Squeeze" bottom: "e" top: "s" squeeze_param { axis: 0 axis: 3 } }
layer { name: "x" type: "ExpandDims" bottom: "data" top: "x" expand_dims_param { axis: 4 } }
layer { name: "t" type: "TileND" bottom: "data" top: "t" tile_nd_param { multiples: [1, 2, 1, 3] } }
layer { name: "p" type: "Piece" bottom: "data" top: "p" piece_param { begin: [0, 2, 0, 1]
  size: [1, 3, -1, 2] } }
layer { name: "q" type: "StridedSlice" bottom: "data" top: "q" strided_slice_param {
  begin: [0, 0, 0, 0] end: [1, 8, 6, 4] strides: [1, 2, 3, 1] } }
layer { name: "m" type: "StridedSlice" bottom: "data" top: "m" strided_slice_param { begin: [0]
  end: [1] begin_mask: 1 } }
layer { name: "r" type: "Reverse" bottom: "data" top: "r" reverse_param { axis: 1 } }
layer { name: "z" type: "Squeeze" bottom: "data" top: "z" }
""", {"e/axis 1": Row((1, 1, 8, 6, 4)), "e": Row((1, 1, 8, 1, 6, 4)),
      "s/axis 3": Row((1, 1, 8, 6, 4)), "s": Row((1, 8, 6, 4)), "x": Row((1, 8, 6, 4, 1)),
      "t": Row((1, 16, 6, 12)), "p": Row((1, 3, 6, 2)), "q": Row((1, 4, 2, 4)), "m": unknown(),
      "r": Row((1, 8, 6, 4)), "z": unknown()}),
    Fork("reductions of TensorFlow", WIDE + "".join(
        f'layer {{ name: "{word}" type: "Reduce{word}" bottom: "data" top: "{word}" '
        f"reduce_{word.lower()}_param {{ axis: 2 axis: 3 keepdims: true }} }}\n"
        for word in ("Sum", "Mean", "Max", "Min", "Prod", "Logsumexp", "All", "Any")
    ) + """
layer { name: "one" type: "ReduceL1" bottom: "data" top: "one" reduce_l1_param { axes: 1 } }
layer { name: "two" type: "ReduceL2" bottom: "data" top: "two" reduce_l2_param { axes: 1
  keepdims: 0 } }
""", {word: Row((1, 8, 1, 1))
      for word in ("Sum", "Mean", "Max", "Min", "Prod", "Logsumexp", "All", "Any")}
         | {"one": Row((1, 1, 6, 4)), "two": Row((1, 6, 4))}),
    Fork("products of blobs", """
input: "a" input: "b" input_shape { dim: 2 dim: 3 dim: 4 } input_shape { dim: 2 dim: 4 dim: 5 }
layer { name: "m" type: "MatMul" bottom: "a" bottom: "b" top: "m" }
layer { name: "g" type: "Gemm" bottom: "m" bottom: "m" top: "g" gemm_param { transB: 1
  alpha: 0.5 } }
layer { name: "h" type: "MatMul" bottom: "a" top: "h" }
""", {"m": Row((2, 3, 5), 120), "g/product": Row((2, 3, 3), 90), "g": Row((2, 3, 3)),
      "h": unknown()}),
    Fork("margins", """
input: "data" input_shape { dim: 2 dim: 4 } input: "label" input_shape { dim: 2 }
layer { name: "l" type: "LargeMarginInnerProduct" bottom: "data" bottom: "label" top: "l"
  top: "lambda"
  largemargin_inner_product_param { num_output: 3 type: QUADRUPLE base: 1000 gamma: 0.000025
  iteration: 0 lambda_min: 0 weight_filler { type: "msra" } } }
layer { name: "s" type: "MarginInnerProduct" bottom: "data" bottom: "label" top: "s"
  margin_inner_product_param { num_output: 3 type: QUADRUPLE } }
layer { name: "c" type: "CenterLoss" bottom: "data" bottom: "label" top: "c"
  center_loss_param { num_output: 3 center_filler { type: "xavier" } } loss_weight: 0.008 }
layer { name: "f" type: "FocalLoss" bottom: "data" bottom: "label" top: "f"
  focal_loss_param { alpha: 0.25 gamma: 2.0 } }
""", {"l": Row((2, 3), 24, 12), "l/rest": unknown(), "s": unknown((2, 3)), "c": unknown(()),
      "f": unknown(())}),
    Fork("norms of vectors", """
input: "data" input_shape { dim: 2 dim: 4 dim: 1 dim: 1 }
layer { name: "a" type: "L2Normalization" bottom: "data" top: "a" }
layer { name: "b" type: "Normalize" bottom: "a" top: "b" norm_param { across_spatial: true
  channel_shared: true eps: 1e-10 add_eps_before_sqrt: true } }
layer { name: "m" type: "MVN" bottom: "b" top: "m" mvn_param { across_channels: true
  add_eps_before_sqrt: true } }
""", {"a": Row((2, 4, 1, 1)), "b": Row((2, 4, 1, 1), 0, 1), "m": Row((2, 4, 1, 1))}),
    Fork("norms by their type", """
input: "data" input_shape { dim: 2 dim: 4 }
layer { name: "a" type: "Normalize" bottom: "data" top: "a"
  normalize_param { normalize_type: "L2" fix_gradient: true bp_norm: false } }
layer { name: "b" type: "Normalize" bottom: "data" top: "b"
  normalize_param { normalize_type: "L1" } }
layer { name: "s" type: "Scale" bottom: "a" top: "s" param { lr_mult: 1 }
  scale_param { filler { type: "constant" value: 20 } bias_term: false min_value: 1
  max_value: 64 } }
""", {"a": Row((2, 4)), "b": unknown((2, 4)), "s": Row((2, 4), 0, 4)}),
    Fork("four sizes", WIDE + """
layer { name: "r" type: "Reshape" bottom: "data" top: "r"
  reshape_param { num: 0 channels: 2 height: -1 width: 0 } }
layer { name: "s" type: "Softmax" bottom: "r" top: "s" }
layer { name: "l" type: "SoftmaxWithLoss" bottom: "s" top: "l"
  softmaxwithloss_param { ignore_label: 255 weight_source: "x" } }
""", {"r": Row((1, 2, 24, 4)), "s": Row((1, 2, 24, 4)), "l": Row(())}),
    Fork("transformers of images", WIDE + """
layer { name: "theta" type: "InnerProduct" bottom: "data" top: "theta"
  inner_product_param { num_output: 6 bias_term: false } }
layer { name: "st" type: "SpatialTransformer" bottom: "data" bottom: "theta" top: "st"
  st_param { to_compute_dU: false output_H: 3 output_W: 2 } }
layer { name: "su" type: "SpatialTransformer" bottom: "data" bottom: "theta" top: "su" }
layer { name: "cb" type: "CompactBilinear" bottom: "data" bottom: "data" top: "cb"
  compact_bilinear_param { num_output: 32 sum_pool: true } }
""", {"theta": Row((1, 6), 192 * 6, 192 * 6), "st": unknown((1, 8, 3, 2)),
      "su": unknown((1, 8, 6, 4)), "cb": unknown((1, 32))}),
    Fork("layers that are nobody's", MAPS + """
layer { name: "a" type: "RReLU" bottom: "data" top: "data" rrelu_param { lower: 0.1 upper: 0.3 } }
layer { name: "b" type: "Convolution" bottom: "data" top: "b"
  convolution_param { num_output: 1 kernel_size: 1 } }
layer { name: "c" type: "MultiStageMeanfield" bottom: "b" bottom: "b" bottom: "data" top: "c"
  multi_stage_meanfield_param { num_iterations: 10 theta_alpha: 160 } }
layer { name: "d" type: "Python" bottom: "b" top: "b"
  python_param { module: "mine" layer: "Mine" param_str: "{'x': 1}" } }
layer { name: "e" type: "Softmax" bottom: "b" top: "e" }
""", {"a": unknown((2, 4, 6, 6)), "b": Row((2, 1, 6, 6), 72 * 4, 5), "c": unknown(),
      "d": unknown((2, 1, 6, 6)), "e": Row((2, 1, 6, 6))}),
    Fork("dense images", """
layer { name: "data" type: "DenseImageData" top: "data" top: "label"
  dense_image_data_param { source: "x.txt" batch_size: 4 shuffle: true new_height: 8
  new_width: 6 } }
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 1 bias_term: false } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "c" bottom: "label" top: "loss"
  softmax_param { engine: CAFFE } loss_param: { weight_by_label_freqs: true ignore_label: 11
  class_weighting: 0.2595 class_weighting: 0.1826 } }
layer { name: "acc" type: "Accuracy" bottom: "c" bottom: "label" top: "acc" }
""", {"c": Row((1, 2, 8, 6), 48 * 6, 6), "loss": Row(()), "acc": Row(())}),
    Fork("images that are segmented", """
layer { name: "data" type: "ImageSegData" top: "data" top: "label" top: "dim"
  image_data_param { root_folder: "x" source: "y" batch_size: 8 shuffle: true label_type: PIXEL }
  transform_param { mean_value: 104.008 crop_size: 9 mirror: true scale_factors: 0.5 } }
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 1 } }
layer { name: "i" type: "Interp" bottom: "label" top: "i" interp_param { shrink_factor: 8 } }
""", {"c": Row((1, 2, 9, 9), 81 * 6, 8), "i": Row((1, 1, 2, 2))}),
    Fork("CPM", """
input: "data" input_dim: 1 input_dim: 3 input_dim: 16 input_dim: 16
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 pad: 4 kernel_size: 9 } }
layer { name: "r" type: "ImResize" bottom: "c" top: "r" imresize_param { factor: 8.0 } }
layer { name: "n" type: "Nms" bottom: "r" top: "n" nms_param { threshold: 0.2 max_peaks: 20 } }
""", {"c": Row((1, 2, 16, 16), 256 * 2 * 243, 2 * 244), "r": unknown(), "n": unknown()}),
]  # fmt: skip
