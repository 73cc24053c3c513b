"""What the numbers of Caffe's binary fields mean, as caffe.proto says.

Only what tells of shapes and counts is listed; the rest is skipped unread. The types that forks of
Caffe add number their settings as each fork likes, so those are known by the type of the layer:
whatever number such a layer's own message has, it is the one under `OF_TYPE`.
"""

from __future__ import annotations

from layerscope.codecs.protobuf import SPAN, Wire
from layerscope.codecs.schema import (
    BOOL,
    BYTES,
    DOUBLES,
    FLOAT,
    FLOATS,
    INT,
    TEXT,
    Enum,
    Holds,
    Schema,
)
from layerscope.errors import FormatError
from layerscope.formats.caffe.names import NUMBERED, key

SHAPE = Schema({1: ("dim", INT)})
BLOB = Schema({
    1: ("num", INT), 2: ("channels", INT), 3: ("height", INT), 4: ("width", INT),
    5: ("data", FLOATS), 7: ("shape", SHAPE), 8: ("double_data", DOUBLES),
    10: ("raw_data_type", Enum(("DOUBLE", "FLOAT", "FLOAT16"))), 12: ("raw_data", BYTES),
})  # fmt: skip
PHASE = Enum(("TRAIN", "TEST"))
STATE = Schema({1: ("phase", PHASE), 2: ("level", INT), 3: ("stage", TEXT)})
RULE = Schema({
    1: ("phase", PHASE), 2: ("min_level", INT), 3: ("max_level", INT), 4: ("stage", TEXT),
    5: ("not_stage", TEXT),
})  # fmt: skip
PARAM = Schema({1: ("name", TEXT), 2: ("share_mode", Enum(("STRICT", "PERMISSIVE")))})
TRANSFORM = Schema({
    3: ("crop_size", INT), 6: ("force_color", BOOL), 7: ("force_gray", BOOL),
    8: ("resize_param", Schema({3: ("height", INT), 4: ("width", INT)})),
    11: ("crop_h", INT), 12: ("crop_w", INT),
})  # fmt: skip

ACCURACY = Schema({1: ("top_k", INT), 2: ("axis", INT)})
ARGMAX = Schema({1: ("out_max_val", BOOL), 2: ("top_k", INT), 3: ("axis", INT)})
BATCH_NORM = Schema({1: ("use_global_stats", BOOL), 3: ("eps", FLOAT)})
BIAS = Schema({1: ("axis", INT), 2: ("num_axes", INT)})
CLIP = Schema({1: ("min", FLOAT), 2: ("max", FLOAT)})
CONCAT = Schema({1: ("concat_dim", INT), 2: ("axis", INT)})
CONVOLUTION = Schema({
    1: ("num_output", INT), 2: ("bias_term", BOOL), 3: ("pad", INT), 4: ("kernel_size", INT),
    5: ("group", INT), 6: ("stride", INT), 9: ("pad_h", INT), 10: ("pad_w", INT),
    11: ("kernel_h", INT), 12: ("kernel_w", INT), 13: ("stride_h", INT), 14: ("stride_w", INT),
    16: ("axis", INT), 17: ("force_nd_im2col", BOOL), 18: ("dilation", INT),
})  # fmt: skip
CROP = Schema({1: ("axis", INT), 2: ("offset", INT)})
DATA = Schema({1: ("source", TEXT), 4: ("batch_size", INT), 5: ("crop_size", INT)})
NMS = Schema({1: ("nms_threshold", FLOAT), 2: ("top_k", INT)})
DETECTION = Schema({
    1: ("num_classes", INT), 2: ("share_location", BOOL), 3: ("background_label_id", INT),
    4: ("nms_param", NMS), 7: ("keep_top_k", INT), 9: ("confidence_threshold", FLOAT),
})  # fmt: skip
DROPOUT = Schema({1: ("dropout_ratio", FLOAT)})
DUMMY = Schema({
    2: ("num", INT), 3: ("channels", INT), 4: ("height", INT), 5: ("width", INT),
    6: ("shape", SHAPE),
})  # fmt: skip
ELTWISE = Schema({1: ("operation", Enum(("PROD", "SUM", "MAX"))), 2: ("coeff", FLOAT)})
ELU = Schema({1: ("alpha", FLOAT)})
EMBED = Schema({1: ("num_output", INT), 2: ("input_dim", INT), 3: ("bias_term", BOOL)})
EXP = Schema({1: ("base", FLOAT), 2: ("scale", FLOAT), 3: ("shift", FLOAT)})
FLATTEN = Schema({1: ("axis", INT), 2: ("end_axis", INT)})
HDF5 = Schema({1: ("source", TEXT), 2: ("batch_size", INT)})
IMAGE = Schema({
    1: ("source", TEXT), 4: ("batch_size", INT), 5: ("crop_size", INT), 9: ("new_height", INT),
    10: ("new_width", INT), 11: ("is_color", BOOL),
})  # fmt: skip
INNER_PRODUCT = Schema({
    1: ("num_output", INT), 2: ("bias_term", BOOL), 5: ("axis", INT), 6: ("transpose", BOOL),
})  # fmt: skip
INPUT = Schema({1: ("shape", SHAPE)})
LRN = Schema({
    1: ("local_size", INT), 2: ("alpha", FLOAT), 3: ("beta", FLOAT),
    4: ("norm_region", Enum(("ACROSS_CHANNELS", "WITHIN_CHANNEL"))), 5: ("k", FLOAT),
})  # fmt: skip
MEMORY = Schema({
    1: ("batch_size", INT), 2: ("channels", INT), 3: ("height", INT), 4: ("width", INT),
})  # fmt: skip
MVN = Schema({1: ("normalize_variance", BOOL), 2: ("across_channels", BOOL), 3: ("eps", FLOAT)})
NORMALIZE = Schema({1: ("across_spatial", BOOL), 3: ("channel_shared", BOOL), 4: ("eps", FLOAT)})
PERMUTE = Schema({1: ("order", INT)})
POOLS = Enum(("MAX", "AVE", "STOCHASTIC"))
POOLING = Schema({
    1: ("pool", POOLS), 2: ("kernel_size", INT), 3: ("stride", INT), 4: ("pad", INT),
    5: ("kernel_h", INT), 6: ("kernel_w", INT), 7: ("stride_h", INT), 8: ("stride_w", INT),
    9: ("pad_h", INT), 10: ("pad_w", INT), 12: ("global_pooling", BOOL),
    13: ("round_mode", Enum(("CEIL", "FLOOR"))), 1013: ("ceil_mode", BOOL),
})  # fmt: skip
POWER = Schema({1: ("power", FLOAT), 2: ("scale", FLOAT), 3: ("shift", FLOAT)})
PRELU = Schema({2: ("channel_shared", BOOL)})
PRIOR_BOX = Schema({
    1: ("min_size", FLOAT), 2: ("max_size", FLOAT), 3: ("aspect_ratio", FLOAT), 4: ("flip", BOOL),
    5: ("clip", BOOL), 6: ("variance", FLOAT), 7: ("img_size", INT), 8: ("img_h", INT),
    9: ("img_w", INT), 10: ("step", FLOAT), 11: ("step_h", FLOAT), 12: ("step_w", FLOAT),
    13: ("offset", FLOAT),
})  # fmt: skip
PYTHON = Schema({1: ("module", TEXT), 2: ("layer", TEXT), 3: ("param_str", TEXT)})
RECURRENT = Schema({1: ("num_output", INT), 5: ("expose_hidden", BOOL)})
REDUCTION = Schema({
    1: ("operation", Enum(("", "SUM", "ASUM", "SUMSQ", "MEAN"))), 2: ("axis", INT),
    3: ("coeff", FLOAT),
})  # fmt: skip
RELU = Schema({1: ("negative_slope", FLOAT)})
RESHAPE = Schema({1: ("shape", SHAPE), 2: ("axis", INT), 3: ("num_axes", INT)})
SCALE = Schema({1: ("axis", INT), 2: ("num_axes", INT), 4: ("bias_term", BOOL)})
SLICE = Schema({1: ("slice_dim", INT), 2: ("slice_point", INT), 3: ("axis", INT)})
SOFTMAX = Schema({2: ("axis", INT)})
SPP = Schema({1: ("pyramid_height", INT), 2: ("pool", POOLS)})
SWISH = Schema({1: ("beta", FLOAT)})
THRESHOLD = Schema({1: ("threshold", FLOAT)})
TILE = Schema({1: ("axis", INT), 2: ("tiles", INT)})
WINDOW_DATA = Schema({1: ("source", TEXT), 4: ("batch_size", INT), 5: ("crop_size", INT)})

ROI_POOLING = Schema({
    1: ("pooled_h", INT), 2: ("pooled_w", INT), 3: ("spatial_scale", FLOAT),
    4: ("sampling_ratio", INT),
})  # fmt: skip
PSROI = Schema({1: ("spatial_scale", FLOAT), 2: ("output_dim", INT), 3: ("group_size", INT)})
INTERP = Schema({
    1: ("height", INT), 2: ("width", INT), 3: ("zoom_factor", INT), 4: ("shrink_factor", INT),
    5: ("pad_beg", INT), 6: ("pad_end", INT),
})  # fmt: skip
BN = Schema({3: ("momentum", FLOAT), 4: ("eps", FLOAT), 5: ("frozen", BOOL)})
SHUFFLE = Schema({1: ("group", INT)})
REORG = Schema({1: ("stride", INT), 2: ("reverse", BOOL)})
UPSAMPLE = Schema({
    1: ("scale", INT), 2: ("scale_h", INT), 3: ("scale_w", INT), 4: ("pad_out_h", BOOL),
    5: ("pad_out_w", BOOL), 6: ("upsample_h", INT), 7: ("upsample_w", INT),
})  # fmt: skip

# Type, as `names.key` spells it -> name and fields of the message that only its fork knows.
OF_TYPE: dict[str, tuple[str, Holds]] = {
    "bn": ("bn_param", BN),
    "detectionoutput": ("detection_output_param", DETECTION),
    "interp": ("interp_param", INTERP),
    "normalize": ("norm_param", NORMALIZE),
    "permute": ("permute_param", PERMUTE),
    "priorbox": ("prior_box_param", PRIOR_BOX),
    "psroipooling": ("psroi_pooling_param", PSROI),
    "reorg": ("reorg_param", REORG),
    "roialign": ("roi_align_param", ROI_POOLING),
    "roipooling": ("roi_pooling_param", ROI_POOLING),
    "shufflechannel": ("shuffle_channel_param", SHUFFLE),
    "upsample": ("upsample_param", UPSAMPLE),
}

# Settings of a type: their name -> number in `layer`, number in `layers` (0: none), fields.
SETTINGS: dict[str, tuple[int, int, Holds]] = {
    "transform_param": (100, 36, TRANSFORM),
    "accuracy_param": (102, 27, ACCURACY),
    "argmax_param": (103, 23, ARGMAX),
    "concat_param": (104, 9, CONCAT),
    "convolution_param": (106, 10, CONVOLUTION),
    "data_param": (107, 11, DATA),
    "dropout_param": (108, 12, DROPOUT),
    "dummy_data_param": (109, 26, DUMMY),
    "eltwise_param": (110, 24, ELTWISE),
    "exp_param": (111, 41, EXP),
    "hdf5_data_param": (112, 13, HDF5),
    "image_data_param": (115, 15, IMAGE),
    "inner_product_param": (117, 17, INNER_PRODUCT),
    "lrn_param": (118, 18, LRN),
    "memory_data_param": (119, 22, MEMORY),
    "mvn_param": (120, 34, MVN),
    "pooling_param": (121, 19, POOLING),
    "power_param": (122, 21, POWER),
    "relu_param": (123, 30, RELU),
    "softmax_param": (125, 39, SOFTMAX),
    "slice_param": (126, 31, SLICE),
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
    "swish_param": (147, 0, SWISH),
    "clip_param": (148, 0, CLIP),
}
TYPE = 2  # the field of a layer that tells its type
FIRST_SETTING = 102  # what has a lower number, a layer of any type may have

LAYER = Schema({
    1: ("name", TEXT), TYPE: ("type", TEXT), 3: ("bottom", TEXT), 4: ("top", TEXT),
    6: ("param", PARAM), 7: ("blobs", BLOB), 8: ("include", RULE), 9: ("exclude", RULE),
    10: ("phase", PHASE),
    **{number: (name, fields) for name, (number, _, fields) in SETTINGS.items()},
})  # fmt: skip


def layer(wire: Wire, start: int, end: int) -> Schema:
    """The fields of a layer, which its type decides."""
    spans = [field for field in wire.fields(start, end) if field[1] == SPAN]
    types = [wire.text(*span) for number, _, *span in spans if number == TYPE]
    own = OF_TYPE.get(key(types[-1])) if types else None
    if own is None:
        return LAYER
    return Schema({
        **LAYER.fields,
        **{n: own for n, _, *span in spans if n >= FIRST_SETTING and _is_message(wire, *span)},
    })  # fmt: skip


def _is_message(wire: Wire, start: int, end: int) -> bool:
    """Whether a span holds fields; some forks have a text, such as the engine, among settings."""
    try:
        return all(True for _ in wire.fields(start, end))
    except FormatError:
        return False


V0_LAYER = Schema({
    1: ("name", TEXT), 2: ("type", TEXT), 3: ("num_output", INT), 4: ("biasterm", BOOL),
    7: ("pad", INT), 8: ("kernelsize", INT), 9: ("group", INT), 10: ("stride", INT),
    11: ("pool", POOLS), 12: ("dropout_ratio", FLOAT), 13: ("local_size", INT),
    14: ("alpha", FLOAT), 15: ("beta", FLOAT), 19: ("batchsize", INT), 20: ("cropsize", INT),
    22: ("k", FLOAT), 50: ("blobs", BLOB), 65: ("concat_dim", INT),
})  # fmt: skip
OLD_LAYER = Schema({
    1: ("layer", V0_LAYER), 2: ("bottom", TEXT), 3: ("top", TEXT), 4: ("name", TEXT),
    5: ("type", Enum(NUMBERED)), 6: ("blobs", BLOB), 32: ("include", RULE),
    33: ("exclude", RULE), 1001: ("param", TEXT),
    **{number: (name, fields) for name, (_, number, fields) in SETTINGS.items() if number},
})  # fmt: skip

NET = Schema({
    1: ("name", TEXT), 2: ("layers", OLD_LAYER), 3: ("input", TEXT), 4: ("input_dim", INT),
    6: ("state", STATE), 8: ("input_shape", SHAPE), 100: ("layer", layer),
})  # fmt: skip
