"""Names of Caffe's layer types: V1's numbers, today's spelling, aliases in forks."""

from __future__ import annotations

# V1's `layers { type: CONVOLUTION }` as numbers, in the order of the enumeration.
NUMBERED = (
    "NONE", "ACCURACY", "BNLL", "CONCAT", "CONVOLUTION", "DATA", "DROPOUT", "EUCLIDEAN_LOSS",
    "FLATTEN", "HDF5_DATA", "HDF5_OUTPUT", "IM2COL", "IMAGE_DATA", "INFOGAIN_LOSS",
    "INNER_PRODUCT", "LRN", "MULTINOMIAL_LOGISTIC_LOSS", "POOLING", "RELU", "SIGMOID", "SOFTMAX",
    "SOFTMAX_LOSS", "SPLIT", "TANH", "WINDOW_DATA", "ELTWISE", "POWER",
    "SIGMOID_CROSS_ENTROPY_LOSS", "HINGE_LOSS", "MEMORY_DATA", "ARGMAX", "THRESHOLD",
    "DUMMY_DATA", "SLICE", "MVN", "ABSVAL", "SILENCE", "CONTRASTIVE_LOSS", "EXP",
    "DECONVOLUTION", "CROP",
)  # fmt: skip

# Types as Caffe and its forks spell them today.
WORDS = (
    # Caffe's own catalogue
    "AbsVal", "Accuracy", "ArgMax", "BatchNorm", "BatchReindex", "Bias", "BNLL", "Clip", "Concat",
    "ContrastiveLoss", "Convolution", "Crop", "Data", "Deconvolution", "Dropout", "DummyData",
    "Eltwise", "ELU", "Embed", "EuclideanLoss", "Exp", "Filter", "Flatten", "HDF5Data",
    "HDF5Output", "HingeLoss", "Im2col", "ImageData", "InfogainLoss", "InnerProduct", "Input",
    "Log", "LRN", "LSTM", "LSTMUnit", "MemoryData", "MultinomialLogisticLoss", "MVN", "Parameter",
    "Pooling", "Power", "PReLU", "Python", "Recurrent", "Reduction", "ReLU", "Reshape", "RNN",
    "Scale", "Sigmoid", "SigmoidCrossEntropyLoss", "Silence", "Slice", "Softmax",
    "SoftmaxWithLoss", "Split", "SPP", "Swish", "TanH", "Threshold", "Tile", "WindowData",
    # forks
    "AnnotatedData", "Axpy", "BN", "Convolution3D", "ConvolutionDepthwise", "DepthwiseConvolution",
    "DetectionOutput", "GELU", "HardSigmoid", "HardSwish", "Interp", "L2Normalize", "Normalize",
    "Padding", "Permute", "Pooling3D", "PriorBox", "Proposal", "PSROIPooling", "ReLU6", "Reorg",
    "ROIAlign", "ROIPooling", "SELU", "ShuffleChannel", "SmoothL1Loss", "Softplus", "Unpooling",
    "Upsample",
)  # fmt: skip

# Other names of the same type, without underscores and in lower case.
ALIASES = {
    "softmaxloss": "softmaxwithloss",
    "softmaxwithlossweighted": "softmaxwithloss",
    # V0's
    "conv": "convolution",
    "pool": "pooling",
    "images": "imagedata",
    # forks'
    "convolutiondepthwise": "depthwiseconvolution",
    "depthwiseconv": "depthwiseconvolution",
    "depthwise": "depthwiseconvolution",
    "deconvolutiondepthwise": "depthwisedeconvolution",
    "cudnnconvolution": "convolution",
    "cudnnbatchnorm": "batchnorm",
    "cudnnrelu": "relu",
    "cudnnpooling": "pooling",
    "syncbatchnorm": "batchnorm",
    "bnsync": "bn",
    "syncbn": "bn",
    "l2normalization": "l2normalize",
    "l2norm": "l2normalize",
    "normalizel2": "l2normalize",
    "leakyrelu": "relu",
    "hswish": "hardswish",
    "hsigmoid": "hardsigmoid",
    "silu": "swish",
    "channelshuffle": "shufflechannel",
    "unpooling": "upsample",
    "transpose": "permute",
    "tensortranspose": "permute",
    "cudnndeconvolution": "deconvolution",
    "deconvolutionristretto": "deconvolution",
    "lrnristretto": "lrn",
    "convolutiondw": "depthwiseconvolution",
    "dwconvolution": "depthwiseconvolution",
    "depthwiseconvolutional": "depthwiseconvolution",
    "dilatedconvolution": "convolution",
    "fullyconnected": "innerproduct",
    "darknetreorg": "reorg",
    "yoloreorg": "reorg",
    "pixelshuffler": "pixelshuffle",
    "subpixel": "pixelshuffle",
    "nearestupsample": "upsample",
    "upsamplenearest": "upsample",
    "abs": "absval",
    "batchmatmul": "matmul",
    "smoothl1lossparam": "smoothl1loss",
    "gradientscale": "gradientscaler",
    "proposallayer": "proposal",
    "proposaltargetlayer": "proposaltarget",
    "anchortargetlayer": "anchortarget",
    "spatialdropout": "dropout",
    "convolutionristretto": "convolution",
    "fcristretto": "innerproduct",
}


def key(word: str) -> str:
    """The key of a type in the table of layers, from any spelling of it."""
    if word.isascii() and word.isdigit() and len(word) < 4 and int(word) < len(NUMBERED):
        word = NUMBERED[int(word)]
    plain = word.replace("_", "").lower()
    return ALIASES.get(plain, plain)
