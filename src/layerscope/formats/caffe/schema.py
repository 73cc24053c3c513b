"""Field numbers of caffe.proto, for binary files.

Fields that change shapes or counts are listed with their names, fields that change no figure by
number only. A layer with any other field is unknown, as it is in text. Forks of Caffe choose field
numbers freely for the settings of the types they add. So the message of such a layer is found by
its type, whatever its number is: see `OF_TYPE`.
"""

from __future__ import annotations

from layerscope.codecs.protobuf import FIXED32, LEN, VARINT, Wire
from layerscope.codecs.schema import (
    BOOL,
    BYTES,
    DOUBLES,
    FLOAT,
    FLOATS,
    INT,
    SKIP,
    TEXT,
    ByWire,
    Enum,
    FieldType,
    Schema,
)
from layerscope.errors import FormatError
from layerscope.formats.caffe.names import NUMBERED, key


def _closed(fields: dict[int, tuple[str, FieldType]], *skipped: int) -> Schema:
    """A schema of fields that converters read, and of numbers that change no figure."""
    return Schema(fields | dict.fromkeys(skipped, ("", SKIP)), closed=True)


SHAPE = _closed({1: ("dim", INT)})
BLOB = Schema({
    1: ("num", INT), 2: ("channels", INT), 3: ("height", INT), 4: ("width", INT),
    5: ("data", FLOATS), 7: ("shape", SHAPE), 8: ("double_data", DOUBLES),
    10: ("raw_data_type", Enum(("DOUBLE", "FLOAT", "FLOAT16"))), 12: ("raw_data", BYTES),
})  # fmt: skip
PHASE = Enum(("TRAIN", "TEST"))
STATE = Schema({1: ("phase", PHASE), 2: ("level", INT), 3: ("stage", TEXT)})
RULE = _closed({
    1: ("phase", PHASE), 2: ("min_level", INT), 3: ("max_level", INT), 4: ("stage", TEXT),
    5: ("not_stage", TEXT),
})  # fmt: skip
PARAM = _closed({1: ("name", TEXT), 2: ("share_mode", Enum(("STRICT", "PERMISSIVE")))}, 3, 4)
TRANSFORM = Schema({
    3: ("crop_size", INT), 6: ("force_color", BOOL), 7: ("force_gray", BOOL),
    8: ("resize_param", Schema({3: ("height", INT), 4: ("width", INT)})),
    11: ("crop_h", INT), 12: ("crop_w", INT),
})  # fmt: skip

ACCURACY = _closed({1: ("top_k", INT), 2: ("axis", INT)}, 3)
ARGMAX = _closed({
    1: ("out_max_val", BOOL), 2: ("top_k", INT), 3: ("axis", INT), 4: ("min_first", BOOL),
})  # fmt: skip
# Forks number the flags for scale and shift differently; the number of blobs decides instead.
BATCH_NORM = _closed(
    {1: ("use_global_stats", BOOL), 3: ("eps", FLOAT), 10: ("relu", BOOL)},
    2, 4, 5, 6, 7, 8, 9, 15,
)  # fmt: skip
BIAS = _closed({1: ("axis", INT), 2: ("num_axes", INT)}, 3)
CLIP = _closed({1: ("min", FLOAT), 2: ("max", FLOAT)})
CONCAT = _closed({1: ("concat_dim", INT), 2: ("axis", INT)}, 3)
_WINDOW: dict[int, tuple[str, FieldType]] = {
    1: ("num_output", INT), 2: ("bias_term", BOOL), 3: ("pad", INT), 4: ("kernel_size", INT),
    5: ("group", INT), 6: ("stride", INT), 9: ("pad_h", INT), 10: ("pad_w", INT),
    11: ("kernel_h", INT), 12: ("kernel_w", INT), 13: ("stride_h", INT), 14: ("stride_w", INT),
    16: ("axis", INT), 17: ("force_nd_im2col", BOOL),
}  # fmt: skip
# 19 to 22 are left out: depending on the fork they are padding, an algorithm or a fused ReLU.
CONVOLUTION = _closed(
    {**_WINDOW, 18: ("dilation", INT),
     26: ("pad_l", INT), 27: ("pad_r", INT), 28: ("pad_t", INT), 29: ("pad_b", INT)},
    7, 8, 15, 23, 30, 31, 32,
)  # fmt: skip
DEFORMABLE = _closed({**_WINDOW, 18: ("dilation", INT), 25: ("deformable_group", INT)}, 7, 8, 15)
PRUNED = _closed(
    {**_WINDOW, 24: ("dilation", INT), 29: ("pad_type", INT), 36: ("pad_l", INT),
     37: ("pad_r", INT), 38: ("pad_t", INT), 39: ("pad_b", INT)},
    7, 8, 15, 18, 19, 20, 21, 22, 23, 25, 26, 46, 47, 48,
)  # fmt: skip
CROP = _closed({1: ("axis", INT), 2: ("offset", INT)})
DATA = Schema({1: ("source", TEXT), 4: ("batch_size", INT), 5: ("crop_size", INT)})
NMS = _closed({1: ("nms_threshold", FLOAT), 2: ("top_k", INT)}, 3)
DETECTION = _closed({
    1: ("num_classes", INT), 2: ("share_location", BOOL), 3: ("background_label_id", INT),
    4: ("nms_param", NMS), 7: ("keep_top_k", INT), 9: ("confidence_threshold", FLOAT),
    24: ("objectness_score", FLOAT),
}, 5, 6, 8, 10, 11, 12)  # fmt: skip
DROPOUT = _closed({1: ("dropout_ratio", FLOAT)}, 2, 3)
DUMMY = _closed({
    2: ("num", INT), 3: ("channels", INT), 4: ("height", INT), 5: ("width", INT),
    6: ("shape", SHAPE),
}, 1)  # fmt: skip
ELTWISE = _closed({
    1: ("operation", Enum(("PROD", "SUM", "MAX", "DIV", "MIN"))), 2: ("coeff", FLOAT),
    6: ("axis", INT),
}, 3, 4, 5)  # fmt: skip
ELU = _closed({1: ("alpha", FLOAT)})
EMBED = _closed({1: ("num_output", INT), 2: ("input_dim", INT), 3: ("bias_term", BOOL)}, 4, 5)
EXP = _closed({1: ("base", FLOAT), 2: ("scale", FLOAT), 3: ("shift", FLOAT)})
FLATTEN = _closed({1: ("axis", INT), 2: ("end_axis", INT)})
HDF5 = Schema({1: ("source", TEXT), 2: ("batch_size", INT)})
IMAGE = Schema({
    1: ("source", TEXT), 4: ("batch_size", INT), 5: ("crop_size", INT), 9: ("new_height", INT),
    10: ("new_width", INT), 11: ("is_color", BOOL),
})  # fmt: skip
INNER_PRODUCT = _closed({
    1: ("num_output", INT), 2: ("bias_term", BOOL), 5: ("axis", INT), 6: ("transpose", BOOL),
}, 3, 4, 7, 8, 9, 11)  # fmt: skip
PRUNED_PRODUCT = _closed({
    1: ("num_output", INT), 2: ("bias_term", BOOL), 5: ("axis", INT), 6: ("transpose", BOOL),
}, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14)  # fmt: skip
INPUT = _closed({1: ("shape", SHAPE)})
LRN = _closed({
    1: ("local_size", INT), 2: ("alpha", FLOAT), 3: ("beta", FLOAT),
    4: ("norm_region", Enum(("ACROSS_CHANNELS", "WITHIN_CHANNEL"))), 5: ("k", FLOAT),
}, 6, 7, 8)  # fmt: skip
MEMORY = _closed({
    1: ("batch_size", INT), 2: ("channels", INT), 3: ("height", INT), 4: ("width", INT),
})  # fmt: skip
MVN = _closed({1: ("normalize_variance", BOOL), 2: ("across_channels", BOOL), 3: ("eps", FLOAT)}, 4)
NORMALIZE = _closed(
    {1: ("across_spatial", BOOL), 3: ("channel_shared", BOOL), 4: ("eps", FLOAT)}, 2, 5
)
PERMUTE = _closed({1: ("order", INT)})
POOLS = Enum(("MAX", "AVE", "STOCHASTIC", "AVE_EXC_PAD"))
POOLING = _closed({
    1: ("pool", POOLS), 2: ("kernel_size", INT), 3: ("stride", INT), 4: ("pad", INT),
    5: ("kernel_h", INT), 6: ("kernel_w", INT), 7: ("stride_h", INT), 8: ("stride_w", INT),
    9: ("pad_h", INT), 10: ("pad_w", INT), 12: ("global_pooling", BOOL),
    13: ("round_mode", Enum(("CEIL", "FLOOR"))), 14: ("ceil_mode", BOOL), 16: ("pad_l", INT),
    17: ("pad_r", INT), 18: ("pad_t", INT), 19: ("pad_b", INT), 1013: ("ceil_mode", BOOL),
}, 11, 21, 22)  # fmt: skip
POWER = _closed({1: ("power", FLOAT), 2: ("scale", FLOAT), 3: ("shift", FLOAT)})
PRELU = _closed({2: ("channel_shared", BOOL)}, 1)
PRIOR_BOX = _closed({
    1: ("min_size", FLOAT), 2: ("max_size", FLOAT), 3: ("aspect_ratio", FLOAT), 4: ("flip", BOOL),
    5: ("clip", BOOL), 6: ("variance", FLOAT), 7: ("img_size", INT), 8: ("img_h", INT),
    9: ("img_w", INT), 10: ("step", FLOAT), 11: ("step_h", FLOAT), 12: ("step_w", FLOAT),
    13: ("offset", FLOAT), 14: ("faceboxes", BOOL), 15: ("box_width", FLOAT),
    16: ("box_height", FLOAT), 17: ("tf", BOOL), 18: ("yx_order", BOOL),
})  # fmt: skip
PYTHON = _closed({1: ("module", TEXT), 2: ("layer", TEXT), 3: ("param_str", TEXT)}, 4)
RECURRENT = _closed({
    1: ("num_output", INT), 5: ("expose_hidden", BOOL), 6: ("forget_bias", FLOAT),
    7: ("tf_rnn", BOOL),
}, 2, 3, 4)  # fmt: skip
REDUCTION = _closed({
    1: ("operation", Enum(("", "SUM", "ASUM", "SUMSQ", "MEAN"))), 2: ("axis", INT),
    3: ("coeff", FLOAT),
})  # fmt: skip
RELU = _closed({
    1: ("negative_slope", FLOAT), 3: ("relu6", BOOL), 6: ("maximum", FLOAT), 7: ("minimum", FLOAT),
}, 2, 4)  # fmt: skip
RESHAPE = _closed({
    1: ("shape", SHAPE), 2: ("axis", INT), 3: ("num_axes", INT), 4: ("pixelshuffler", INT),
})  # fmt: skip
SCALE = _closed({1: ("axis", INT), 2: ("num_axes", INT), 4: ("bias_term", BOOL)}, 3, 5, 6, 7)
SLICE = _closed({1: ("slice_dim", INT), 2: ("slice_point", INT), 3: ("axis", INT)})
SOFTMAX = _closed({2: ("axis", INT)}, 1, 3, 4)
SPP = _closed({1: ("pyramid_height", INT), 2: ("pool", POOLS)}, 6)
SWISH = _closed({1: ("beta", FLOAT)})
THRESHOLD = _closed({1: ("threshold", FLOAT)})
TILE = _closed({1: ("axis", INT), 2: ("tiles", INT)})
WINDOW_DATA = Schema({1: ("source", TEXT), 4: ("batch_size", INT), 5: ("crop_size", INT)})
CONTRASTIVE = _closed({1: ("margin", FLOAT), 2: ("legacy_version", BOOL)})
HINGE = _closed({1: ("norm", Enum(("", "L1", "L2")))})
INFOGAIN = _closed({1: ("source", TEXT), 2: ("axis", INT)})
ENGINE = _closed({}, 1)

ROI_POOLING = _closed({
    1: ("pooled_h", INT), 2: ("pooled_w", INT), 3: ("spatial_scale", FLOAT),
    4: ("sampling_ratio", INT),
}, 6)  # fmt: skip
PSROI = _closed({1: ("spatial_scale", FLOAT), 2: ("output_dim", INT), 3: ("group_size", INT)})
INTERP = _closed({
    1: ("height", INT), 2: ("width", INT), 3: ("zoom_factor", INT), 4: ("shrink_factor", INT),
    5: ("pad_beg", INT), 6: ("pad_end", INT), 7: ("full_zoom_factor", INT),
})  # fmt: skip
BN = _closed({
    3: ("", ByWire({
        VARINT: ("bn_mode", Enum(("LEARN", "INFERENCE"))), FIXED32: ("momentum", FLOAT),
    })),
    4: ("eps", FLOAT), 5: ("frozen", BOOL),
}, 1, 2, 6, 7, 8, 9, 10)  # fmt: skip
SHUFFLE = _closed({1: ("group", INT)})
REORG = _closed({1: ("stride", INT), 2: ("reverse", BOOL)})
UPSAMPLE = _closed({
    1: ("scale", INT), 2: ("scale_h", INT), 3: ("scale_w", INT), 4: ("pad_out_h", BOOL),
    5: ("pad_out_w", BOOL), 6: ("upsample_h", INT), 7: ("upsample_w", INT),
})  # fmt: skip
RESAMPLE = _closed({
    1: ("width", INT), 2: ("height", INT),
    3: ("type", Enum(("", "NEAREST", "LINEAR", "CUBIC", "AREA"))), 4: ("antialias", BOOL),
    5: ("factor", FLOAT),
})  # fmt: skip
CORRELATION = _closed({
    2: ("pad", INT), 3: ("kernel_size", INT), 4: ("max_displacement", INT), 5: ("stride_1", INT),
    6: ("stride_2", INT), 7: ("do_abs", BOOL), 8: ("single_direction", INT),
}, 15)  # fmt: skip
REDUCE = _closed({1: ("axis", INT), 2: ("keepdims", BOOL)})
RESIZE = _closed({
    1: ("align_corners", BOOL), 2: ("output_height", INT), 3: ("output_width", INT),
    4: ("data_format", TEXT), 5: ("scale_height", FLOAT), 6: ("scale_width", FLOAT),
})  # fmt: skip
BLOCKS = _closed({1: ("block_size", INT), 2: ("data_format", TEXT)})

# Type, as `names.key` spells it -> name and fields of the message that only its fork has.
OF_TYPE: dict[str, tuple[str, FieldType]] = {
    "bn": ("bn_param", BN),
    "cconvolution": ("cconvolution_param", PRUNED),
    "cinnerproduct": ("cinner_product_param", PRUNED_PRODUCT),
    "correlation": ("correlation_param", CORRELATION),
    "correlation1d": ("correlation_param", CORRELATION),
    "deformableconvolution": ("deformable_convolution_param", DEFORMABLE),
    "depthtospace": ("depth_to_space_param", BLOCKS),
    "detectionoutput": ("detection_output_param", DETECTION),
    "interp": ("interp_param", INTERP),
    "normalize": ("norm_param", NORMALIZE),
    "permute": ("permute_param", PERMUTE),
    "priorbox": ("prior_box_param", PRIOR_BOX),
    "psroipooling": ("psroi_pooling_param", PSROI),
    "reducemax": ("reduce_max_param", REDUCE),
    "reducemean": ("reduce_mean_param", REDUCE),
    "reducesum": ("reduce_sum_param", REDUCE),
    "reorg": ("reorg_param", REORG),
    "resample": ("resample_param", RESAMPLE),
    "resizebilinear": ("resize_bilinear_param", RESIZE),
    "resizenearestneighbor": ("resize_nearest_neighbor_param", RESIZE),
    "roialign": ("roi_align_param", ROI_POOLING),
    "roipooling": ("roi_pooling_param", ROI_POOLING),
    "shufflechannel": ("shuffle_channel_param", SHUFFLE),
    "spacetodepth": ("space_to_depth_param", BLOCKS),
    "squeezeconvolution": ("squeeze_convolution_param", PRUNED),
    "squeezeinnerproduct": ("squeeze_inner_product_param", PRUNED_PRODUCT),
    "upsample": ("upsample_param", UPSAMPLE),
}

# Name of a settings message -> number in `layer`, number in `layers` (0: none), fields.
SETTINGS: dict[str, tuple[int, int, FieldType]] = {
    "transform_param": (100, 36, TRANSFORM),
    "loss_param": (101, 42, Schema({})),
    "accuracy_param": (102, 27, ACCURACY),
    "argmax_param": (103, 23, ARGMAX),
    "concat_param": (104, 9, CONCAT),
    "contrastive_loss_param": (105, 40, CONTRASTIVE),
    "convolution_param": (106, 10, CONVOLUTION),
    "data_param": (107, 11, DATA),
    "dropout_param": (108, 12, DROPOUT),
    "dummy_data_param": (109, 26, DUMMY),
    "eltwise_param": (110, 24, ELTWISE),
    "exp_param": (111, 41, EXP),
    "hdf5_data_param": (112, 13, HDF5),
    "hdf5_output_param": (113, 14, SKIP),
    "hinge_loss_param": (114, 29, HINGE),
    "image_data_param": (115, 15, IMAGE),
    "infogain_loss_param": (116, 16, INFOGAIN),
    "inner_product_param": (117, 17, INNER_PRODUCT),
    "lrn_param": (118, 18, LRN),
    "memory_data_param": (119, 22, MEMORY),
    "mvn_param": (120, 34, MVN),
    "pooling_param": (121, 19, POOLING),
    "power_param": (122, 21, POWER),
    "relu_param": (123, 30, RELU),
    "sigmoid_param": (124, 38, ENGINE),
    "softmax_param": (125, 39, SOFTMAX),
    "slice_param": (126, 31, SLICE),
    "tanh_param": (127, 37, ENGINE),
    "threshold_param": (128, 25, THRESHOLD),
    "window_data_param": (129, 20, WINDOW_DATA),
    "python_param": (130, 0, PYTHON),
    "prelu_param": (131, 0, PRELU),
    "spp_param": (132, 0, SPP),
    "reshape_param": (133, 0, RESHAPE),
    "log_param": (134, 0, EXP),
    "flatten_param": (135, 0, FLATTEN),
    "reduction_param": (136, 0, REDUCTION),
    "embed_param": (137, 0, EMBED),
    "tile_param": (138, 0, TILE),
    "batch_norm_param": (139, 0, BATCH_NORM),
    "elu_param": (140, 0, ELU),
    "bias_param": (141, 0, BIAS),
    "scale_param": (142, 0, SCALE),
    "input_param": (143, 0, INPUT),
    "crop_param": (144, 0, CROP),
    "parameter_param": (145, 0, INPUT),
    "recurrent_param": (146, 0, RECURRENT),
    "swish_param": (147, 0, ByWire({LEN: ("swish_param", SWISH), VARINT: ("forward_type", SKIP)})),
    "clip_param": (148, 0, ByWire({LEN: ("clip_param", CLIP), VARINT: ("backward_type", SKIP)})),
}
# Scalars of NVIDIA's fork (dtypes, math, debugging) and of FlowNet's; settings of a layer are
# messages.
PLAIN = (149, 150, 151, 152, 157)
TYPE = 2  # number of a layer's field `type`
FIRST_SETTING = 102  # lower numbers are fields of all types

LAYER = _closed({
    1: ("name", TEXT), TYPE: ("type", TEXT), 3: ("bottom", TEXT), 4: ("top", TEXT),
    6: ("param", PARAM), 7: ("blobs", BLOB), 8: ("include", RULE), 9: ("exclude", RULE),
    10: ("phase", PHASE),
    **{number: (name, fields) for name, (number, _, fields) in SETTINGS.items()},
    **{number: ("", ByWire({VARINT: ("", SKIP)})) for number in PLAIN},
}, 5, 11)  # fmt: skip


USUAL = frozenset(LAYER.fields) - frozenset(PLAIN)


def layer(wire: Wire, start: int, end: int) -> Schema:
    """The schema of a layer, which depends on its type."""
    spans = [field for field in wire.fields(start, end) if field[1] == LEN]
    types = [wire.text(*span) for number, _, *span in spans if number == TYPE]
    own = OF_TYPE.get(key(types[-1])) if types else None
    if own is None and all(number in USUAL for number, *_ in spans):
        return LAYER
    fields = dict(LAYER.fields)
    for number, _, *span in spans:
        if number < FIRST_SETTING:
            continue
        if not _is_message(wire, *span):  # a string, such as the engine
            if number not in USUAL:
                fields[number] = ("", SKIP)
        elif own is not None:
            fields[number] = own
    return Schema(fields, closed=True)


def _is_message(wire: Wire, start: int, end: int) -> bool:
    """Whether a length-delimited value is a message."""
    try:
        return all(True for _ in wire.fields(start, end))
    except FormatError:
        return False


V0_LAYER = _closed({
    1: ("name", TEXT), 2: ("type", TEXT), 3: ("num_output", INT), 4: ("biasterm", BOOL),
    7: ("pad", INT), 8: ("kernelsize", INT), 9: ("group", INT), 10: ("stride", INT),
    11: ("pool", POOLS), 12: ("dropout_ratio", FLOAT), 13: ("local_size", INT),
    14: ("alpha", FLOAT), 15: ("beta", FLOAT), 19: ("batchsize", INT), 20: ("cropsize", INT),
    22: ("k", FLOAT), 50: ("blobs", BLOB), 65: ("concat_dim", INT),
}, 5, 6, 16, 17, 18, 21, *range(51, 65), 1001)  # fmt: skip
OLD_LAYER = _closed({
    1: ("layer", V0_LAYER), 2: ("bottom", TEXT), 3: ("top", TEXT), 4: ("name", TEXT),
    5: ("type", Enum(NUMBERED)), 6: ("blobs", BLOB), 32: ("include", RULE),
    33: ("exclude", RULE), 1001: ("param", TEXT),
    **{number: (name, fields) for name, (_, number, fields) in SETTINGS.items() if number},
}, 7, 8, 35, 1002)  # fmt: skip

# Other scalars of a network configure how it is computed; a layer is a message.
NET = Schema({
    1: ("name", TEXT), 2: ("layers", OLD_LAYER), 3: ("input", TEXT), 4: ("input_dim", INT),
    5: ("force_backward", SKIP), 6: ("state", STATE), 7: ("debug_info", SKIP),
    8: ("input_shape", SHAPE), 100: ("layer", layer),
}, closed=True, scalars=False)  # fmt: skip
