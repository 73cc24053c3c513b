"""Which fields Caffe's settings have. A layer with any other field is unknown.

Caffe refuses a text with a field that its schema does not have. A fork that has it may compute
something else under the name of a known layer, and a misspelled field leaves a default in place: in
both cases figures of the known layer may be wrong. Fields stand here if a converter reads them, or
if they change no figure: how weights are initialised, where data comes from, what training does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from layerscope.codecs.message import Message, Value

# Of a layer itself, of every generation of the format.
LAYER = frozenset((
    "name", "type", "bottom", "top", "phase", "loss_weight", "param", "blobs", "blobs_lr",
    "weight_decay", "propagate_down", "include", "exclude", "blob_share_mode", "share_mode",
    "need_backward", "force_backward", "debug", "debug_info", "lr_mult", "decay_mult", "layer",
    "forward_type", "backward_type", "forward_math", "backward_math", "quantization_param",
))  # fmt: skip
# What may stand in any settings: it tells how to start, to compute or to train.
ANYWHERE = frozenset((
    "weight_filler", "bias_filler", "filler", "scale_filler", "shift_filler", "slope_filler",
    "engine", "lr_mult", "decay_mult", "weight_decay", "blobs_lr", "name", "force_backward",
))  # fmt: skip
# Of the oldest form, whose settings stand in the layer itself, where no converter reads them.
FLAT = frozenset((
    "source", "scale", "mean_file", "batch_size", "crop_size", "mirror", "rand_skip", "new_num",
    "det_fg_threshold", "det_bg_threshold", "det_fg_fraction", "det_context_pad", "det_crop_mode",
    "new_channels", "new_height", "new_width", "shuffle_images", "hdf5_output_param",
))  # fmt: skip

_WINDOW = """
    pad kernel_size stride pad_h pad_w kernel_h kernel_w stride_h stride_w pad_l pad_r pad_t pad_b
    pad_type
"""
_POOLING = (
    _WINDOW
    + """pool global_pooling round_mode ceil_mode kernel_depth temporal_stride temporal_pad
    output_scale output_zero_point"""
)
_CONVOLUTION = (
    _WINDOW
    + """num_output bias_term group axis force_nd_im2col dilation kernel_depth temporal_stride
    temporal_pad conv_algos_override cudnn_convolution_algo_seeker cudnn_workspace_mb
    cudnn_workspace_limit cudnn_math_override input_scale output_scale weights_scale
    input_zero_point output_zero_point weight_zero_point"""
)
_NORM = """
    use_global_stats moving_average_fraction eps scale_bias scale_bias_term frozen momentum slope
    bn_state sync
"""
_BOXES = "pooled_h pooled_w spatial_scale sampling_ratio sample_num pad_ratio"

SETTINGS: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "accuracy_param": "top_k axis ignore_label",
        "argmax_param": "out_max_val top_k axis",
        "batch_norm_param": _NORM,
        "bias_param": "axis num_axes",
        "bn_param": _NORM,
        "channel_shuffle_param": "group",
        "clip_param": "min max",
        "concat_param": "axis concat_dim",
        "contrastive_loss_param": "margin legacy_version",
        "convolution_param": _CONVOLUTION,
        "convolution3d_param": _CONVOLUTION,
        "crop_param": "axis offset",
        "detection_output_param": """num_classes share_location background_label_id nms_param
            save_output_param code_type variance_encoded_in_target keep_top_k confidence_threshold
            visualize visualize_threshold save_file objectness_score""",
        "dropout_param": "dropout_ratio scale_train",
        "eltwise_param": "operation coeff stable_prod_grad",
        "elu_param": "alpha",
        "embed_param": "num_output input_dim bias_term",
        "exp_param": "base scale shift",
        "flatten_param": "axis end_axis",
        "hinge_loss_param": "norm",
        "infogain_loss_param": "source axis",
        "inner_product_param": "num_output bias_term axis transpose",
        "input_param": "shape",
        "interp_param": "height width zoom_factor shrink_factor pad_beg pad_end",
        "leaky_relu_param": "negative_slope",
        "log_param": "base scale shift",
        "loss_param": "ignore_label normalization normalize",
        "lrn_param": "local_size alpha beta norm_region k",
        "mvn_param": "normalize_variance across_channels eps",
        "norm_param": "across_spatial channel_shared eps",
        "normalize_param": "across_spatial channel_shared eps",
        "padding_param": "pad",
        "parameter_param": "shape",
        "permute_param": "order",
        "pooling_param": _POOLING,
        "pooling3d_param": _POOLING,
        "power_param": "power scale shift",
        "prelu_param": "channel_shared",
        "prior_box_param": """min_size max_size aspect_ratio flip clip variance img_size img_h
            img_w step step_h step_w offset""",
        "proposal_param": """feat_stride base_size min_size ratio scale pre_nms_topn post_nms_topn
            nms_thresh""",
        "psroi_pooling_param": "spatial_scale output_dim group_size",
        "python_param": "module layer param_str share_in_parallel",
        "recurrent_param": "num_output expose_hidden",
        "reduction_param": "operation axis coeff",
        "relu_param": "negative_slope",
        "reorg_param": "stride reverse",
        "reshape_param": "shape axis num_axes",
        "rfcn_psroi_pooling_param": "spatial_scale output_dim group_size",
        "roi_align_param": _BOXES,
        "roi_pooling_param": _BOXES,
        "scale_param": "axis num_axes bias_term",
        "shuffle_channel_param": "group",
        "sigmoid_param": "",
        "slice_param": "axis slice_point slice_dim",
        "smooth_l1_loss_param": "sigma",
        "softmax_param": "axis",
        "spp_param": "pyramid_height pool",
        "swish_param": "beta",
        "tanh_param": "",
        "threshold_param": "threshold",
        "tile_param": "axis tiles",
        "transpose_param": "dim",
        "unpooling_param": _WINDOW + "scale scale_h scale_w upsample_h upsample_w unpool",
        "upsample_param": """scale scale_h scale_w pad_out_h pad_out_w upsample_h upsample_w
            stride""",
    }.items()
}


_DATA = ("data_param", "transform_param", "annotated_data_param")  # which layers with bottoms skip


def unknown_fields(layer: Message) -> Iterator[tuple[str, Value | Message]]:
    """The fields of a layer that Caffe does not have, each as `settings.field` with its value."""
    for name, values in layer.fields.items():
        if name in SETTINGS:
            fields = SETTINGS[name]
            for value in values:
                if isinstance(value, Message):
                    for own, held in value.fields.items():
                        if own not in fields and own not in ANYWHERE:
                            yield f"{name}.{own}", held[0]
        elif name not in LAYER and not name.endswith("_data_param") and name not in _DATA:
            yield name, values[0]
