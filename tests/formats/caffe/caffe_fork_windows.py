"""Windows and resampling as forks of Caffe write them."""

from __future__ import annotations

from tests.formats.caffe.caffe_fork import IMAGE, WIDE, Fork, Row, unknown

WINDOWS = [
    Fork("padding of each side", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 2
  bias_term: false kernel_size: 3 stride: 2 pad_l: 0 pad_r: 1 pad_t: 0 pad_b: 1 pad_type: 0
  saturate: Signed input_scale: 0.5 output_scale: 2 } }
""", {"c": Row((1, 2, 4, 4), 16 * 2 * 27, 54)}),
    Fork("the same size", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 3 stride: 3 pad_type: 1 } }
layer { name: "p" type: "Pooling" bottom: "c" top: "p"
  pooling_param { pool: AVE_EXC_PAD kernel_size: 2 stride: 2 pad_type: 1 ceil_mode: false } }
""", {"c": Row((1, 2, 3, 3), 9 * 2 * 27, 56), "p": Row((1, 2, 2, 2))}),
    Fork("holes", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 3 pad: 2 hole: 2 } }
layer { name: "d" type: "Convolution" bottom: "c" top: "d"
  convolution_param { num_output: 1 kernel_size: 3 hole_h: 1 hole_w: 2 } }
""", {"c": Row((1, 2, 8, 8), 64 * 2 * 27, 56), "d": Row((1, 1, 6, 4), 24 * 18, 19)}),
    Fork("kernels with strides", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 3 kstride: 3 stride: 1 } }
""", {"c": Row((1, 2, 2, 2), 4 * 2 * 27, 56)}),
    Fork("a fused ReLU", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c" engine: "MKLDNN"
  convolution_param { num_output: 2 kernel_size: 1 engine: MKLDNN relu: true negative_slope: 0
  conv_algorithm: "auto" } }
""", {"c": Row((1, 2, 8, 8), 64 * 2 * 3, 8), "c/relu": Row((1, 2, 8, 8))}),
    Fork("algorithms and number types", IMAGE + """
default_forward_type: FLOAT16 default_backward_type: FLOAT16 global_grad_scale: 1000
layer { name: "c" type: "Convolution" bottom: "data" top: "c" forward_type: FLOAT
  forward_math: FLOAT
  convolution_param { num_output: 2 kernel_size: 1 cudnn_convolution_algo_seeker: FINDEX
  conv_algos_override: "1,-1,-1" } }
""", {"c": Row((1, 2, 8, 8), 64 * 2 * 3, 8)}),
    Fork("depthwise by several names", WIDE + """
layer { name: "a" type: "DepthwiseConvolution" bottom: "data" top: "a"
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 group: 8 bias_term: false } }
layer { name: "b" type: "ConvolutionDepthwise" bottom: "a" top: "b"
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 bias_term: false } }
layer { name: "c" type: "DepthwiseConv" bottom: "b" top: "c"
  convolution_param { num_output: 8 kernel_h: 1 kernel_w: 3 pad_w: 1 bias_term: false } }
""", {"a": Row((1, 8, 6, 4), 24 * 72, 72), "b": Row((1, 8, 6, 4), 24 * 72, 72),
      "c": Row((1, 8, 6, 4), 24 * 24, 24)}),
    Fork("quantized by Ristretto", IMAGE + """
layer { name: "c" type: "ConvolutionRistretto" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 3 }
  quantization_param { precision: DYNAMIC_FIXED_POINT bw_layer_in: 8 bw_layer_out: 8 bw_params: 8
  fl_layer_in: 0 fl_layer_out: -2 fl_params: 8 rounding_time: POST_TRAINING } }
layer { name: "n" type: "LRNRistretto" bottom: "c" top: "n" lrn_param { local_size: 3 } }
layer { name: "f" type: "FcRistretto" bottom: "n" top: "f" inner_product_param { num_output: 2 }
  quantization_param { bw_params: 8 } }
""", {"c": Row((1, 2, 6, 6), 36 * 54, 56), "n": Row((1, 2, 6, 6)), "f": Row((1, 2), 144, 146)}),
    Fork("pruned", IMAGE + """
layer { name: "c" type: "SqueezeConvolution" bottom: "data" top: "c" squeeze_convolution_param {
  num_output: 2 kernel_size: 3 gamma: 0.0001 power: 1 c_rate: 0.68 iter_stop: 200000
  weight_mask_filler { type: "constant" value: 1 } bias_mask_filler { type: "constant" value: 1 }
  dynamicsplicing: true } }
layer { name: "d" type: "CConvolution" bottom: "c" top: "d" cconvolution_param { num_output: 1
  kernel_size: 1 gamma: 0.00002 c_rate: 0.5 weight_mask_filler { type: "constant" value: 1 } } }
layer { name: "f" type: "SqueezeInnerProduct" bottom: "d" top: "f" squeeze_inner_product_param {
  num_output: 2 c_rate: 4 bias_mask_filler { type: "constant" value: 1 } } }
layer { name: "g" type: "CInnerProduct" bottom: "f" top: "g" cinner_product_param {
  num_output: 3 } }
""", {"c": Row((1, 2, 6, 6), 36 * 54, 56), "d": Row((1, 1, 6, 6), 36 * 2, 3),
      "f": Row((1, 2), 72, 74), "g": Row((1, 3), 6, 9)}),
    Fork("deformable", """
input: "data" input_shape { dim: 1 dim: 4 dim: 6 dim: 6 }
layer { name: "o" type: "Convolution" bottom: "data" top: "o"
  convolution_param { num_output: 36 kernel_size: 3 pad: 1 bias_term: false } }
layer { name: "c" type: "DeformableConvolution" bottom: "data" bottom: "o" top: "c"
  deformable_convolution_param { num_output: 2 kernel_size: 3 pad: 1 deformable_group: 2
  bias_term: false } }
layer { name: "m" type: "Convolution" bottom: "data" top: "m"
  convolution_param { num_output: 18 kernel_size: 1 bias_term: false } }
layer { name: "d" type: "ModulatedDeformableConvolution" bottom: "data" bottom: "o" bottom: "m"
  top: "d" modulated_deformable_convolution_param { num_output: 2 kernel_size: 3 pad: 1
  deformable_group: 2 bias_term: false } }
layer { name: "e" type: "DeformableConvolution" bottom: "data" bottom: "o" top: "e"
  convolution_param { num_output: 2 kernel_size: 3 pad: 1 } }
""", {"o": Row((1, 36, 6, 6), 36 * 36 * 36, 36 * 36), "c": Row((1, 2, 6, 6), 36 * 2 * 36, 72),
      "m": Row((1, 18, 6, 6), 36 * 18 * 4, 72), "d": Row((1, 2, 6, 6), 36 * 2 * 36, 72),
      "e": unknown()}),
    Fork("averages without padding", IMAGE + """
layer { name: "p" type: "Pooling" bottom: "data" top: "p"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 avg_include_pad: false
  engine: MKL2017 } }
layer { name: "q" type: "Pooling" bottom: "data" top: "q"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 round_below: true } }
layer { name: "r" type: "Pooling" bottom: "data" top: "r"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 round_mode: FLOOR } }
""", {"p": Row((1, 3, 5, 5)), "q": Row((1, 3, 3, 3)), "r": Row((1, 3, 3, 3))}),
    Fork("a word for pooling that is nobody's", IMAGE + """
layer { name: "p" type: "Pooling" bottom: "data" top: "p" pooling_param { pool: SUM
  kernel_size: 2 } }
layer { name: "r" type: "ReLU" bottom: "data" top: "r" }
""", {"p": unknown(), "r": Row((1, 3, 8, 8))}),
    Fork("volumes", """
input: "data" input_shape { dim: 1 dim: 2 dim: 4 dim: 6 dim: 6 }
layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 3
  kernel_size: 2 kernel_size: 3 kernel_size: 3 pad: 0 pad: 1 pad: 1 stride: 2 stride: 1
  stride: 1 } }
""", {"c": Row((1, 3, 2, 6, 6), 72 * 3 * 36, 3 * 37)}),
    Fork("one weight for two bottoms", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" bottom: "data" top: "a" top: "b"
  param { name: "w" } param { name: "b" } convolution_param { num_output: 2 kernel_size: 1 } }
""", {"c": Row((1, 2, 8, 8), 64 * 6, 8), "c/2": Row((1, 2, 8, 8), 64 * 6)}),
]  # fmt: skip

RESAMPLING = [
    Fork("SegNet", """
input: "data" input_shape { dim: 1 dim: 2 dim: 5 dim: 6 }
layer { name: "b" type: "BN" bottom: "data" top: "data" bn_param {
  bn_mode: INFERENCE scale_filler { type: "constant" value: 1 }
  shift_filler { type: "constant" value: 0.001 } } }
layer { name: "p" type: "Pooling" bottom: "data" top: "p" top: "mask"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "u" type: "Upsample" bottom: "p" bottom: "mask" top: "u"
  upsample_param { scale: 2 upsample_w: 6 upsample_h: 5 } }
""", {"b": Row((1, 2, 5, 6), 0, 4), "p": Row((1, 2, 3, 3)), "u": Row((1, 2, 5, 6))}),
    Fork("SegNet's odd sizes", """
input: "data" input_shape { dim: 1 dim: 2 dim: 5 dim: 6 }
layer { name: "p" type: "Pooling" bottom: "data" top: "p" top: "mask"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "u" type: "Upsample" bottom: "p" bottom: "mask" top: "u"
  upsample_param { scale: 2 pad_out_h: true } }
""", {"p": Row((1, 2, 3, 3)), "u": Row((1, 2, 5, 6))}),
    Fork("nearest neighbours", WIDE + """
layer { name: "u" type: "Upsample" bottom: "data" top: "u" upsample_param { scale: 2 } }
layer { name: "v" type: "UpsampleDarknet" bottom: "data" top: "v"
  upsample_darknet_param { stride: 3 } }
layer { name: "w" type: "Upsample" bottom: "data" top: "w"
  upsample_param { upsample_h: 7 upsample_w: 9 } }
""", {"u": Row((1, 8, 12, 8)), "v": Row((1, 8, 18, 12)), "w": Row((1, 8, 7, 9))}),
    Fork("interpolation", WIDE + """
layer { name: "a" type: "Interp" bottom: "data" top: "a" interp_param { height: 5 width: 7 } }
layer { name: "b" type: "Interp" bottom: "data" top: "b" interp_param { zoom_factor: 2 } }
layer { name: "c" type: "Interp" bottom: "data" top: "c" interp_param { shrink_factor: 2 } }
layer { name: "d" type: "Interp" bottom: "data" top: "d"
  interp_param { shrink_factor: 2 zoom_factor: 3 height: 9 width: 9 } }
layer { name: "e" type: "Interp" bottom: "data" top: "e" interp_param { full_zoom_factor: 2 } }
layer { name: "f" type: "Interp" bottom: "data" bottom: "b" top: "f"
  interp_param { pad_beg: 0 pad_end: 0 } }
""", {"a": Row((1, 8, 5, 7)), "b": Row((1, 8, 11, 7)), "c": Row((1, 8, 3, 2)),
      "d": Row((1, 8, 9, 9)), "e": Row((1, 8, 12, 8)), "f": Row((1, 8, 11, 7))}),
    Fork("a pixel shuffle in a reshape", WIDE + """
layer { name: "p" type: "Reshape" bottom: "data" top: "p" reshape_param { pixelshuffler: 2 } }
""", {"p": Row((1, 2, 12, 8))}),
    Fork("pixel shuffles", WIDE + """
layer { name: "r" type: "Reorg" bottom: "data" top: "r" reorg_param { stride: 2 } }
layer { name: "s" type: "Reorg" bottom: "r" top: "s" reorg_param { stride: 2 reverse: true } }
layer { name: "t" type: "PassThrough" bottom: "data" top: "t"
  passthrough_param { num_output: 32 block_height: 2 block_width: 2 } }
layer { name: "u" type: "PixelShuffle" bottom: "data" top: "u"
  pixel_shuffle_param { upscale_factor: 2 } }
layer { name: "v" type: "DepthToSpace" bottom: "data" top: "v"
  depth_to_space_param { block_size: 2 data_format: "NCHW" } }
layer { name: "w" type: "SpaceToDepth" bottom: "data" top: "w"
  space_to_depth_param { block_size: 2 data_format: "NCHW" } }
""", {"r": Row((1, 32, 3, 2)), "s": Row((1, 8, 6, 4)), "t": Row((1, 32, 3, 2)),
      "u": Row((1, 2, 12, 8)), "v": Row((1, 2, 12, 8)), "w": Row((1, 32, 3, 2))}),
    Fork("a reorganization in Python", WIDE + """
layer { name: "r" type: "Python" bottom: "data" top: "r"
  python_param { module: "yolov2" layer: "darknet_reorg" } }
""", {"r": Row((1, 32, 3, 2))}),
    Fork("channels last", 'input: "data" input_shape { dim: 1 dim: 6 dim: 4 dim: 8 }' + """
layer { name: "a" type: "ResizeBilinear" bottom: "data" top: "a"
  resize_bilinear_param { output_height: 12 output_width: 8 align_corners: true } }
layer { name: "b" type: "ResizeNearestNeighbor" bottom: "data" top: "b"
  resize_nearest_neighbor_param { scale_height: 2 scale_width: 3 data_format: "NHWC" } }
""", {"a/channels first": Row((1, 8, 6, 4)), "a/resize": Row((1, 8, 12, 8)),
      "a": Row((1, 12, 8, 8)), "b/channels first": Row((1, 8, 6, 4)),
      "b/resize": Row((1, 8, 12, 12)), "b": Row((1, 12, 12, 8))}),
    Fork("FlowNet", """
input: "img0" input: "img1" input: "flow"
input_shape { dim: 1 dim: 3 dim: 8 dim: 8 } input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
input_shape { dim: 1 dim: 2 dim: 8 dim: 8 }
layer { name: "s" type: "Eltwise" bottom: "img0" top: "s"
  eltwise_param { operation: SUM coeff: 0.00392156862745098 } }
layer { name: "aug" type: "DataAugmentation" bottom: "s" top: "aug" propagate_down: false
  augmentation_param { augment_during_test: true recompute_mean: 1000 mean_per_pixel: false } }
layer { name: "small" type: "Resample" bottom: "aug" top: "small" reshape_every_iter: false
  resample_param { width: 4 height: 4 type: LINEAR antialias: true } }
layer { name: "near" type: "Resample" bottom: "img1" top: "near"
  resample_param { width: 4 height: 6 type: NEAREST antialias: false } }
layer { name: "lin" type: "Resample" bottom: "img1" top: "lin"
  resample_param { width: 4 height: 6 type: LINEAR antialias: false } }
layer { name: "corr" type: "Correlation" bottom: "img0" bottom: "img1" top: "corr"
  correlation_param { pad: 4 kernel_size: 1 max_displacement: 4 stride_1: 1 stride_2: 2 } }
layer { name: "corr1" type: "Correlation1D" bottom: "img0" bottom: "img1" top: "corr1"
  correlation_param { pad: 4 kernel_size: 1 max_displacement: 4 stride_1: 1 stride_2: 1
  single_direction: -1 } }
layer { name: "warp" type: "FlowWarp" bottom: "img1" bottom: "flow" top: "warp" }
layer { name: "err" type: "Eltwise" bottom: "img0" bottom: "warp" top: "err"
  eltwise_param { operation: SUM coeff: 1.0 coeff: -1.0 } }
layer { name: "norm" type: "ChannelNorm" bottom: "err" top: "norm" }
layer { name: "acc" type: "Accum" bottom: "small" bottom: "img0" top: "acc"
  accum_param { have_reference: true } }
layer { name: "down" type: "Downsample" bottom: "flow" top: "down"
  downsample_param { top_height: 2 top_width: 3 } }
layer { name: "loss" type: "L1Loss" bottom: "warp" bottom: "img0" top: "loss" loss_weight: 0.005
  l1_loss_param { l2_per_location: true } }
layer { name: "mad" type: "L1Loss" bottom: "warp" bottom: "img0" top: "mad"
  l1_loss_param { normalize_by_num_entries: true } }
""", {"s": Row((1, 3, 8, 8)), "aug": unknown((1, 3, 8, 8)), "small": unknown((1, 3, 4, 4)),
      "near": Row((1, 3, 6, 4)), "lin": Row((1, 3, 6, 4)), "corr": unknown((1, 25, 8, 8)),
      "corr1": unknown((1, 5, 8, 8)), "warp/positions": Row((1, 2, 8, 8)),
      "warp/grid": Row((1, 8, 8, 2)), "warp": Row((1, 3, 8, 8)), "err": Row((1, 3, 8, 8)),
      "norm": Row((1, 1, 8, 8)), "acc": unknown((1, 3, 8, 8)), "down": unknown((1, 2, 2, 3)),
      "loss": unknown(()), "mad": Row(())}),
]  # fmt: skip
