"""Fields of Caffe's messages. A layer with any other field is unknown.

Caffe refuses a text with a field that is not in its schema. A fork that has the field may compute
something else for the same type, and a misspelled field leaves its default unchanged: in both cases
the figures may be wrong. A field is listed if a converter reads it, or if it changes no figure: it
initialises weights, says where data comes from, or configures training.

How a message is checked depends on what it can change:

- settings of a layer, rules of `include` and `exclude`, and `param`, which can share weights: the
  layer is unknown
- `shape` and `input_shape`: the shape is unknown and must be given as an option
- the network itself: an unknown row, since the field may be a layer
- fillers, data sources and `transform_param`: not checked. They change no figure, or leave the
  shape of an input open, which must then be given as an option.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from layerscope.codecs.message import Message, Scalar

NamedValue = tuple[str, Scalar | Message]

# Fields of NetParameter.
NET = frozenset((
    "name", "input", "input_dim", "input_shape", "layer", "layers", "state", "force_backward",
    "debug_info", "default_forward_type", "default_backward_type", "default_forward_math",
    "default_backward_math", "reduce_buckets", "global_grad_scale", "global_grad_scale_adaptive",
    "default_conv_algos_override", "default_cudnn_math_override", "eltwise_mem_opt", "engine",
    "compile_net_state", "mem_param",
))  # fmt: skip
# Fields of a layer itself, in every version of the format.
LAYER = frozenset((
    "name", "type", "bottom", "top", "phase", "loss_weight", "param", "blobs", "blobs_lr",
    "weight_decay", "propagate_down", "include", "exclude", "blob_share_mode", "share_mode",
    "need_backward", "force_backward", "debug", "debug_info", "lr_mult", "decay_mult", "layer",
    "forward_type", "backward_type", "forward_math", "backward_math", "quantization_param",
    "cudnn_math_override", "engine", "multinode", "mn_grad_compress_param", "reshape_every_iter",
    "bbox_reg_param", "connectivity_mode",
))  # fmt: skip
# Fields of any settings that only configure initialisation, engines or training.
ANYWHERE = frozenset((
    "weight_filler", "bias_filler", "filler", "scale_filler", "shift_filler", "slope_filler",
    "engine", "lr_mult", "decay_mult", "weight_decay", "blobs_lr", "name", "force_backward",
    "weight_fixed", "dis_mode", "gen_mode", "input_scale", "output_scale", "saturate",
    "debug_info",
))  # fmt: skip
# Fields of V0 layers, whose settings are in the layer itself, that no converter reads.
FLAT = frozenset((
    "source", "scale", "mean_file", "batch_size", "crop_size", "mirror", "rand_skip", "new_num",
    "det_fg_threshold", "det_bg_threshold", "det_fg_fraction", "det_context_pad", "det_crop_mode",
    "new_channels", "new_height", "new_width", "shuffle_images", "hdf5_output_param",
))  # fmt: skip
# Messages inside others, by the name of their field.
WITHIN: Mapping[str, frozenset[str]] = {
    "param": frozenset(("name", "share_mode", "lr_mult", "decay_mult")),
    "include": frozenset(("phase", "min_level", "max_level", "stage", "not_stage")),
    "exclude": frozenset(("phase", "min_level", "max_level", "stage", "not_stage")),
    "shape": frozenset(("dim",)),
    "nms_param": frozenset(("nms_threshold", "top_k", "eta")),
}  # fmt: skip

_WINDOW = """
    pad kernel_size stride pad_h pad_w kernel_h kernel_w stride_h stride_w pad_l pad_r pad_t pad_b
    pad_type pad_top pad_bottom pad_left pad_right
"""
_POOLING = (
    _WINDOW
    + """pool global_pooling round_mode ceil_mode round_below kernel_depth temporal_stride
    temporal_pad output_zero_point avg_include_pad output_shift_instead_division"""
)
_CONVOLUTION = (
    _WINDOW
    + """num_output bias_term group axis force_nd_im2col dilation dilation_h dilation_w hole hole_h
    hole_w kstride kstride_h kstride_w kernel_depth temporal_stride temporal_pad relu
    negative_slope conv_algorithm conv_algos_override cudnn_convolution_algo_seeker
    cudnn_workspace_mb cudnn_workspace_limit cudnn_math_override weights_scale input_zero_point
    output_zero_point weight_zero_point deformable_group"""
)
# How pruning proceeds in training.
_PRUNING = """
    gamma power iter_stop c_rate weight_mask_filler bias_mask_filler dynamicsplicing splicing_rate
"""
_PRODUCT = "num_output bias_term axis transpose relu negative_slope"
_NORM = """
    use_global_stats moving_average_fraction eps scale_bias frozen momentum slope bn_state bn_mode
    sync add_eps_before_sqrt update_global_stats icnet use_weight_bias bias_term stats_batch_size
    relu negative_slope clip_variance
"""
_BOXES = "pooled_h pooled_w spatial_scale sampling_ratio sample_num pad_ratio"
_REGIONS = "spatial_scale output_dim group_size"
_SIZES = """
    align_corners output_height output_width data_format scale_height scale_width
"""
_REDUCE = "axis axes keepdims"

SETTINGS: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "accum_param": "top_height top_width size_divisible_by have_reference",
        "accuracy_param": "top_k axis ignore_label denominator",
        "argmax_param": "out_max_val top_k axis min_first",
        "batch_norm_param": _NORM,
        "bias_param": "axis num_axes",
        "bn_param": _NORM,
        "cconvolution_param": _CONVOLUTION + _PRUNING,
        "channel_shuffle_param": "group",
        "cinner_product_param": _PRODUCT + _PRUNING,
        "clip_param": "min max",
        "compact_bilinear_param": "num_output sum_pool",
        "concat_param": "axis concat_dim",
        "contrastive_loss_param": "margin legacy_version",
        "convolution_param": _CONVOLUTION,
        "convolution3d_param": _CONVOLUTION,
        "correlation_param": """pad kernel_size max_displacement stride_1 stride_2 single_direction
            do_abs correlation_type""",
        "crelu_param": "concat_axis",
        "crop_param": "axis offset",
        "deformable_convolution_param": _CONVOLUTION,
        "depth_to_space_param": "block_size data_format",
        "detection_output_param": """num_classes share_location background_label_id nms_param
            save_output_param code_type variance_encoded_in_target keep_top_k confidence_threshold
            visualize visualize_threshold save_file objectness_score""",
        "downsample_param": "top_height top_width",
        "dropout_param": "dropout_ratio scale_train sample_weights_test",
        "dummy_data_param": "data_filler shape num channels height width refill",
        "eltwise_param": "operation coeff stable_prod_grad axis relu negative_slope",
        "elu_param": "alpha",
        "embed_param": "num_output input_dim bias_term",
        "exp_param": "base scale shift",
        "expand_dims_nd_param": "axis",
        "expand_dims_param": "axis",
        "flatten_param": "axis end_axis",
        "flow_warp_param": "fill_value",
        "gemm_param": "alpha beta transA transB",
        "hinge_loss_param": "norm",
        "infogain_loss_param": "source axis",
        "inner_product_param": _PRODUCT,
        "input_param": "shape",
        "interp_param": """height width zoom_factor shrink_factor pad_beg pad_end
            full_zoom_factor""",
        "l1_loss_param": """l2_per_location l2_prescale_by_channels normalize_by_num_entries epsilon
            plateau""",
        "largemargin_inner_product_param": "num_output type base gamma iteration lambda_min power",
        "leaky_relu_param": "negative_slope",
        "log_param": "base scale shift",
        "loss_param": """ignore_label normalization normalize pre_fixed_normalizer label_smoothing
            weight_by_label_freqs class_weighting""",
        "lrn_param": "local_size alpha beta norm_region k",
        "margin_inner_product_param": "num_output type base gamma iteration lambda_min power",
        "mat_mul_param": "transpose_a transpose_b",
        "matmul_param": "transpose_a transpose_b",
        "memory_data_param": "batch_size channels height width",
        "mirror_pad_param": "paddings constant_values mode",
        "modulated_deformable_convolution_param": _CONVOLUTION,
        "mvn_param": "normalize_variance across_channels eps add_eps_before_sqrt",
        "norm_param": "across_spatial channel_shared eps add_eps_before_sqrt",
        "normalize_param": """across_spatial channel_shared eps add_eps_before_sqrt normalize_type
            fix_gradient bp_norm""",
        "pad_channel_param": "num_channels_to_pad",
        "pad_param": "pad pad_h pad_w paddings constant_values mode",
        "padding_param": "pad",
        "parameter_param": "shape",
        "passthrough_param": "block_height block_width num_output reverse",
        "permute_param": "order",
        "piece_param": "begin size",
        "pixel_shuffle_param": "upscale_factor block_size factor stride scale",
        "pixelshuffle_param": "upscale_factor block_size factor stride scale",
        "pooling_param": _POOLING,
        "pooling3d_param": _POOLING,
        "power_param": "power scale shift",
        "prelu_param": "channel_shared",
        "prior_box_param": """min_size max_size aspect_ratio flip clip variance img_size img_h
            img_w step step_h step_w offset faceboxes box_width box_height tf yx_order""",
        "proposal_param": """feat_stride base_size min_size ratio scale pre_nms_topn post_nms_topn
            pre_nms_top_n post_nms_top_n nms_thresh anchor_base_size anchor_scale anchor_ratio
            max_rois""",
        "psroi_pooling_param": _REGIONS,
        "python_param": "module layer param_str share_in_parallel",
        "recurrent_param": "num_output expose_hidden forget_bias tf_rnn",
        "reduce_all_param": _REDUCE,
        "reduce_any_param": _REDUCE,
        "reduce_l1_param": _REDUCE,
        "reduce_l2_param": _REDUCE,
        "reduce_logsumexp_param": _REDUCE,
        "reduce_max_param": _REDUCE,
        "reduce_mean_param": _REDUCE,
        "reduce_min_param": _REDUCE,
        "reduce_prod_param": _REDUCE,
        "reduce_sum_param": _REDUCE,
        "reduction_param": "operation axis coeff",
        "relu_param": "negative_slope relu6 maximum minimum",
        "reorg_param": "stride reverse",
        "resample_param": "width height type antialias factor",
        "reshape_param": "shape axis num_axes pixelshuffler num channels height width",
        "resize_bilinear_param": _SIZES,
        "resize_nearest_neighbor_param": _SIZES,
        "reverse_param": "axis",
        "rfcn_psroi_pooling_param": _REGIONS,
        "roi_align_param": _BOXES,
        "roi_pooling_param": _BOXES,
        "scale_param": "axis num_axes bias_term min_value max_value",
        "shuffle_channel_param": "group",
        "sigmoid_param": "",
        "slice_param": "axis slice_point slice_dim",
        "smooth_l1_loss_param": "sigma abssum",
        "softmax_param": "axis",
        "softmaxwithloss_param": "ignore_label weight_source",
        "space_to_depth_param": "block_size data_format",
        "spatial_dropout_param": "dropout_ratio",
        "split_param": "",
        "spp_param": "pyramid_height pool",
        "squeeze_convolution_param": _CONVOLUTION + _PRUNING,
        "squeeze_inner_product_param": _PRODUCT + _PRUNING,
        "squeeze_param": "axis",
        "strided_slice_param": """begin end strides axes begin_mask end_mask ellipsis_mask
            new_axis_mask shrink_axis_mask""",
        "swish_param": "beta",
        "tanh_param": "",
        "threshold_param": "threshold",
        "tile_nd_param": "multiples",
        "tile_param": "axis tiles",
        "transpose_param": "dim order",
        "unpooling_param": _WINDOW + "scale scale_h scale_w upsample_h upsample_w unpool",
        "upsample_darknet_param": "stride",
        "upsample_param": """scale scale_h scale_w pad_out_h pad_out_w upsample_h upsample_w
            stride""",
    }.items()
}

MESSAGES = {**WITHIN, **{name: fields | ANYWHERE for name, fields in SETTINGS.items()}}
SOURCE = ("input_param", "dummy_data_param", "memory_data_param", "include", "exclude")
_DATA = (
    "data_param",
    "transform_param",
    "annotated_data_param",
)  # not checked in layers with bottoms


def unknown_fields(layer: Message) -> Iterator[NamedValue]:
    """Fields of a layer that Caffe does not have, each as `settings.field` with its value."""
    for name, values in layer.fields.items():
        if name in MESSAGES:
            yield from _within(name, values, MESSAGES[name])
        elif name not in LAYER and not name.endswith("_data_param") and name not in _DATA:
            yield name, values[0]


def unknown_of_source(layer: Message) -> Iterator[NamedValue]:
    """The same for a layer without bottoms, where only shapes and rules change figures."""
    for name in SOURCE:
        yield from _within(name, layer.fields.get(name, ()), MESSAGES[name])


def unknown_of_net(net: Message) -> Iterator[NamedValue]:
    """Fields of a network that Caffe does not have, once for every value."""
    for name, values in net.fields.items():
        if name not in NET:
            for value in values:
                yield name, value


def _within(
    name: str, values: Sequence[Scalar | Message], fields: frozenset[str]
) -> Iterator[NamedValue]:
    """Fields of messages, and of messages inside them, that are not in `fields`."""
    for value in values:
        if isinstance(value, Message):
            for own, inner in value.fields.items():
                if own not in fields:
                    yield f"{name}.{own}", inner[0]
                elif own in WITHIN:
                    yield from _within(f"{name}.{own}", inner, WITHIN[own])


def close_field(path: str) -> str | None:
    """The field of Caffe that `settings.field` may be a misspelling of."""
    from difflib import get_close_matches

    outer, _, field = path.rpartition(".")
    inside = (
        MESSAGES.get(outer.rpartition(".")[2], frozenset()) if outer else MESSAGES.keys() | LAYER
    )
    return next(iter(get_close_matches(field[:100], sorted(inside), n=1, cutoff=0.7)), None)
