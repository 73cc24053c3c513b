"""Every type of layer on small blobs: shapes by Caffe's own rules, figures worked out by hand."""

from __future__ import annotations

import re

import pytest

from layerscope import analyze
from layerscope.errors import ShapeError
from layerscope.formats.caffe.layers import LAYERS
from layerscope.formats.caffe.names import key
from layerscope.ops import Ops
from tests.formats.caffe.caffe_forks import FORKS
from tests.formats.caffe.caffe_nets import DATA, inputs, layer, net, one

SAME = (2, 6, 9, 7)  # as DATA is
SIZE = 2 * 6 * 9 * 7
NONE = Ops()
IMAGES = inputs((1, 4, 8, 6))  # a
CONV = "convolution_param"
POOL = "pooling_param"

Case = tuple[str, str, tuple[int, ...], Ops, int]  # type, settings, output, operations, params


def n(count: int, **kinds: int) -> Ops:
    return Ops(**kinds) * count


ON_DATA: list[Case] = [
    # windows: floor for convolution, ceil for pooling
    ("Convolution", CONV + " { num_output: 4 kernel_size: 3 }", (2, 4, 7, 5),
     n(280, mac=54, add=1), 220),
    ("Convolution", CONV + " { num_output: 4 kernel_size: 3 stride: 2 pad: 1 bias_term: false }",
     (2, 4, 5, 4), n(160, mac=54), 216),
    ("Convolution", CONV + " { num_output: 4 kernel_size: 3 dilation: 2 group: 2 }", (2, 4, 5, 3),
     n(120, mac=27, add=1), 112),
    ("Convolution", CONV + " { num_output: 2 kernel_h: 1 kernel_w: 5 pad_h: 0 pad_w: 2 "
     "stride_h: 2 stride_w: 1 }", (2, 2, 5, 7), n(140, mac=30, add=1), 62),
    ("Convolution", CONV + " { num_output: 2 kernel_size: 1 kernel_size: 3 stride: 2 stride: 1 }",
     (2, 2, 5, 5), n(100, mac=18, add=1), 38),
    ("Convolution", CONV + " { num_output: 2 kernel_size: [3, 3] pad: 1 }", (2, 2, 9, 7),
     n(252, mac=54, add=1), 110),
    ("ConvolutionDepthwise", CONV + " { num_output: 6 kernel_size: 3 pad: 1 }", SAME,
     n(SIZE, mac=9, add=1), 60),
    ("DepthwiseConvolution", CONV + " { num_output: 6 kernel_size: 3 pad: 1 group: 6 }",
     SAME, n(SIZE, mac=9, add=1), 60),
    ("CuDNNConvolution", CONV + " { num_output: 1 kernel_size: 1 }", (2, 1, 9, 7),
     n(126, mac=6, add=1), 7),
    ("Deconvolution", CONV + " { num_output: 3 kernel_size: 4 stride: 2 pad: 1 bias_term: false }",
     (2, 3, 18, 14), n(SIZE, mac=48), 288),
    ("Deconvolution", CONV + " { num_output: 6 group: 6 kernel_size: 4 stride: 2 bias_term: f }",
     (2, 6, 20, 16), n(SIZE, mac=16), 96),
    ("Pooling", POOL + " { pool: MAX kernel_size: 2 stride: 2 }", (2, 6, 5, 4), n(240, comp=3), 0),
    ("Pooling", POOL + " { kernel_size: 3 stride: 2 pad: 1 }", (2, 6, 5, 4), n(240, comp=8), 0),
    ("Pooling", POOL + " { pool: AVE kernel_h: 2 kernel_w: 3 stride_h: 2 }", (2, 6, 5, 5),
     n(300, add=5, div=1), 0),
    ("Pooling", POOL + " { pool: 1 kernel_size: 9 stride: 1 pad: 1 }", (2, 6, 3, 1),
     n(36, add=80, div=1), 0),
    ("Pooling", POOL + " { pool: AVE global_pooling: t }", (2, 6, 1, 1), n(12, add=62, div=1), 0),
    ("Pooling", POOL + " { global_pooling: true }", (2, 6, 1, 1), n(12, comp=62), 0),
    ("Pooling", POOL + " { kernel_size: 2 stride: 2 round_mode: FLOOR }", (2, 6, 4, 3),
     n(144, comp=3), 0),
    ("Pooling", POOL + " { kernel_size: 2 stride: 2 ceil_mode: false }", (2, 6, 4, 3),
     n(144, comp=3), 0),
    ("Pooling", POOL + " { pool: STOCHASTIC kernel_size: 2 stride: 2 }", (2, 6, 5, 4),
     n(240, mul=4, add=6, div=1), 0),
    ("Im2col", CONV + " { kernel_size: 3 stride: 2 }", (2, 54, 4, 3), NONE, 0),
    ("SPP", "spp_param { pyramid_height: 2 pool: AVE }", (2, 30),
     n(12, add=62, div=1) + n(48, add=19, div=1), 0),
    ("SPP", "spp_param { pyramid_height: 1 }", (2, 6, 1, 1), n(12, comp=62), 0),
    ("Upsample", "upsample_param { scale: 2 }", (2, 6, 18, 14), NONE, 0),
    ("Interp", "interp_param { zoom_factor: 4 }", (2, 6, 33, 25), n(12 * 33 * 25, mul=4, add=3), 0),
    ("Interp", "interp_param { shrink_factor: 2 }", (2, 6, 5, 4), n(240, mul=4, add=3), 0),
    ("Interp", "interp_param { shrink_factor: 2 zoom_factor: 3 }", (2, 6, 13, 10),
     n(1560, mul=4, add=3), 0),
    ("Interp", "interp_param { height: 17 width: 13 pad_beg: 0 pad_end: -1 }", (2, 6, 17, 13),
     n(2652, mul=4, add=3), 0),
    ("Interp", "interp_param { height: 9 width: 7 }", SAME, NONE, 0),
    # products
    ("InnerProduct", "inner_product_param { num_output: 10 }", (2, 10),
     n(20, mac=378, add=1), 3790),
    ("InnerProduct", "inner_product_param { num_output: 10 bias_term: false transpose: true }",
     (2, 10), n(20, mac=378), 3780),
    ("InnerProduct", "inner_product_param { num_output: 10 axis: 2 }", (2, 6, 10),
     n(120, mac=63, add=1), 640),
    ("InnerProduct", "inner_product_param { num_output: 10 axis: -1 }", (2, 6, 9, 10),
     n(1080, mac=7, add=1), 80),
    # norms
    ("BatchNorm", "", SAME, n(SIZE, mul=1, add=1), 0),
    ("BatchNorm", "batch_norm_param { scale_bias: true }", SAME, n(SIZE, mul=1, add=1), 12),
    ("BN", "", SAME, n(SIZE, mul=1, add=1), 12),
    ("Scale", "", SAME, n(SIZE, mul=1), 6),
    ("Scale", "scale_param { bias_term: true }", SAME, n(SIZE, mul=1, add=1), 12),
    ("Scale", "scale_param { axis: 1 num_axes: 2 }", SAME, n(SIZE, mul=1), 54),
    ("Scale", "scale_param { num_axes: 0 }", SAME, n(SIZE, mul=1), 1),
    ("Scale", "scale_param { axis: 2 num_axes: -1 }", SAME, n(SIZE, mul=1), 63),
    ("Bias", "", SAME, n(SIZE, add=1), 6),
    ("Bias", "bias_param { axis: 2 num_axes: -1 }", SAME, n(SIZE, add=1), 63),
    ("LRN", "", SAME, n(SIZE, mul=2, add=5, exp=1, div=1), 0),
    ("LRN", "lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }", SAME,
     n(SIZE, mul=2, add=9, exp=1, div=1), 0),
    ("MVN", "", SAME, n(SIZE, add=3, mul=2) + n(12, div=2, add=1, exp=1), 0),
    ("MVN", "mvn_param { across_channels: true }", SAME,
     n(SIZE, add=3, mul=2) + n(2, div=2, add=1, exp=1), 0),
    ("MVN", "mvn_param { normalize_variance: false }", SAME, n(SIZE, add=2) + n(12, div=1), 0),
    ("Normalize", "norm_param { across_spatial: false channel_shared: false }", SAME,
     n(SIZE, mul=2, add=1, div=1) + n(126, exp=1), 6),
    ("Normalize", "", SAME, n(SIZE, mul=2, add=1, div=1) + n(2, exp=1), 1),
    ("L2Normalization", "", SAME, n(SIZE, mul=1, add=1, div=1) + n(126, exp=1), 0),
    # element by element
    ("ReLU", "", SAME, n(SIZE, comp=1), 0),
    ("ReLU", "relu_param { negative_slope: 0.1 }", SAME, n(SIZE, comp=1, mul=1), 0),
    ("ReLU6", "", SAME, n(SIZE, comp=2), 0),
    ("PReLU", "", SAME, n(SIZE, comp=1, mul=1), 6),
    ("PReLU", "prelu_param { channel_shared: true }", SAME, n(SIZE, comp=1, mul=1), 1),
    ("ELU", "", SAME, n(SIZE, comp=1, exp=1, add=1, mul=1), 0),
    ("Sigmoid", "", SAME, n(SIZE, exp=1, add=1, div=1), 0),
    ("TanH", "", SAME, n(SIZE, exp=1, add=2, div=1), 0),
    ("Swish", "", SAME, n(SIZE, exp=1, add=1, div=1, mul=1), 0),
    ("BNLL", "", SAME, n(SIZE, exp=2, add=1), 0),
    ("AbsVal", "", SAME, n(SIZE, comp=1), 0),
    ("Clip", "clip_param { min: 0 max: 6 }", SAME, n(SIZE, comp=2), 0),
    ("Threshold", "threshold_param { threshold: 2 }", SAME, n(SIZE, comp=1), 0),
    ("Dropout", "dropout_param { dropout_ratio: 0.4 }", SAME, NONE, 0),
    ("Power", "power_param { power: 2 scale: 3 shift: 1 }", SAME,
     n(SIZE, mul=1, add=1, exp=1), 0),
    ("Power", "power_param { shift: 1 }", SAME, n(SIZE, add=1), 0),
    ("Power", "", SAME, NONE, 0),
    ("Exp", "", SAME, n(SIZE, exp=1), 0),
    ("Log", "", SAME, n(SIZE, exp=1), 0),
    # joins, cuts, shapes
    ("Eltwise", "", SAME, n(SIZE, add=1), 0),
    ("Concat", "", SAME, NONE, 0),
    ("Split", "", SAME, NONE, 0),
    ("implicit", "", SAME, NONE, 0),
    ("Flatten", "", (2, 378), NONE, 0),
    ("Flatten", "flatten_param { axis: 2 }", (2, 6, 63), NONE, 0),
    ("Flatten", "flatten_param { axis: 0 end_axis: -2 }", (108, 7), NONE, 0),
    ("Reshape", "reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 7 } }", (2, 2, 27, 7), NONE, 0),
    ("Reshape", "reshape_param { shape { dim: -1 } axis: 1 }", (2, 378), NONE, 0),
    ("Reshape", "reshape_param { shape { dim: 3 dim: 2 } axis: 1 num_axes: 1 }", (2, 3, 2, 9, 7),
     NONE, 0),
    ("Reshape", "reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }", (*SAME, 1), NONE, 0),
    ("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }", (2, 9, 7, 6), NONE, 0),
    ("Permute", "permute_param { order: 1 }", (6, 2, 9, 7), NONE, 0),
    ("Transpose", "transpose_param { dim: [3, 0, 1, 2] }", (7, 2, 6, 9), NONE, 0),
    ("Tile", "tile_param { axis: 1 tiles: 3 }", (2, 18, 9, 7), NONE, 0),
    ("ShuffleChannel", "shuffle_channel_param { group: 3 }", SAME, NONE, 0),
    ("Reduction", "", (), n(1, add=755), 0),
    ("Reduction", "reduction_param { operation: MEAN axis: 1 }", (2,), n(2, add=377, div=1), 0),
    ("Reduction", "reduction_param { operation: ASUM axis: 3 }", SAME[:3],
     n(108, comp=7, add=6), 0),
    ("Reduction", "reduction_param { operation: SUMSQ axis: 2 }", (2, 6), n(12, mul=63, add=62), 0),
    ("ArgMax", "argmax_param { axis: 1 }", (2, 1, 9, 7), n(126, comp=5), 0),
    # measures
    ("Softmax", "", SAME, n(SIZE, comp=1, add=2, exp=1, div=1), 0),
    ("Softmax", "softmax_param { axis: 3 }", SAME, n(SIZE, comp=1, add=2, exp=1, div=1), 0),
    ("SoftmaxWithLoss", "", (), n(SIZE, comp=1, add=3, exp=1) + n(126, exp=1, mul=1)
     + Ops(add=125, div=1), 0),
    ("Accuracy", "", (), Ops(comp=756 + 126, add=125, div=1), 0),
    ("EuclideanLoss", "", (), n(SIZE, add=1, mul=1) + Ops(add=755, div=1), 0),
    ("HingeLoss", "", (), n(SIZE, mul=1, add=1, comp=1) + Ops(add=755, div=1), 0),
    ("SigmoidCrossEntropyLoss", "", (), n(SIZE, comp=2, mul=2, add=3, exp=2)
     + Ops(add=755, div=1), 0),
    ("L1Loss", "", (), n(SIZE, add=1, comp=1) + Ops(add=755, div=1), 0),
    ("SmoothL1Loss", "", (), n(SIZE, add=2, comp=2, mul=2) + Ops(add=755, div=1), 0),
    ("MultinomialLogisticLoss", "", (), n(126, comp=1, exp=1, mul=1) + Ops(add=125, div=1), 0),
    ("InfogainLoss", "", (), n(SIZE, comp=2, add=3, exp=2, div=1, mul=1) + Ops(div=1), 0),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "told", "shape", "ops", "params"), ON_DATA)
def test_one_layer(kind: str, told: str, shape: tuple[int, ...], ops: Ops, params: int) -> None:
    report = one(kind, told)
    assert len(report.layers) == 1
    found = report.layers[0]
    assert (found.output, found.ops, found.params) == (shape, ops, params)
    assert not report.coverage.unknown


# type, settings, shapes of bottoms, output, operations, params
SEVERAL: list[tuple[str, str, tuple[tuple[int, ...], ...], tuple[int, ...], Ops, int]] = [
    ("Eltwise", "", ((2, 3, 4),) * 3, (2, 3, 4), n(24, add=2), 0),
    ("Eltwise", "eltwise_param { operation: PROD }", ((2, 3, 4),) * 2, (2, 3, 4), n(24, mul=1), 0),
    ("Eltwise", "eltwise_param { operation: 2 }", ((2, 3, 4),) * 2, (2, 3, 4), n(24, comp=1), 0),
    ("Eltwise", "eltwise_param { coeff: 1 coeff: -1 }", ((2, 3),) * 2, (2, 3), n(6, add=1), 0),
    ("Eltwise", "eltwise_param { coeff: 0.5 coeff: 2 }", ((2, 3),) * 2, (2, 3),
     n(6, add=1, mul=2), 0),
    ("Concat", "", ((2, 3, 4), (2, 5, 4)), (2, 8, 4), NONE, 0),
    ("Concat", "concat_param { axis: -1 }", ((2, 3, 4), (2, 3, 1)), (2, 3, 5), NONE, 0),
    ("Concat", "concat_param { concat_dim: 0 }", ((2, 3), (5, 3)), (7, 3), NONE, 0),
    ("Crop", "", ((1, 3, 9, 8), (1, 7, 5, 4)), (1, 3, 5, 4), NONE, 0),
    ("Crop", "crop_param { axis: 1 offset: 1 offset: 2 offset: 3 }", ((1, 8, 9, 8), (1, 7, 5, 4)),
     (1, 7, 5, 4), NONE, 0),
    ("Scale", "scale_param { axis: 0 }", ((2, 3, 4, 5), (2, 3)), (2, 3, 4, 5), n(120, mul=1), 0),
    ("Scale", "scale_param { bias_term: true }", ((2, 3, 4), (3,)), (2, 3, 4),
     n(24, mul=1, add=1), 3),
    ("Bias", "", ((2, 3, 4), (3,)), (2, 3, 4), n(24, add=1), 0),
    ("Axpy", "", ((2, 3), (2, 3, 4, 5), (2, 3, 4, 5)), (2, 3, 4, 5), n(120, mul=1, add=1), 0),
    ("BatchReindex", "", ((5, 3, 2), (7,)), (7, 3, 2), NONE, 0),
    ("ContrastiveLoss", "", ((4, 3), (4, 3), (4,)), (),
     n(12, add=2, mul=1) + n(4, exp=1, comp=1, mul=1) + Ops(add=3, div=1), 0),
    ("SoftmaxWithLoss", "", ((4, 3), (4,)), (),
     n(12, comp=1, add=3, exp=1) + n(4, exp=1, mul=1) + Ops(add=3, div=1), 0),
    ("Accuracy", "accuracy_param { top_k: 5 }", ((4, 3), (4,)), (),
     Ops(comp=16, add=3, div=1), 0),
    ("EuclideanLoss", "", ((4, 3), (4, 3)), (), n(12, add=1, mul=1) + Ops(add=11, div=1), 0),
    ("Upsample", "upsample_param { scale: 2 }", ((1, 2, 3, 4),) * 2, (1, 2, 6, 8), NONE, 0),
    ("Upsample", "upsample_param { scale: 2 pad_out_h: true }", ((1, 2, 3, 4),) * 2, (1, 2, 5, 8),
     NONE, 0),
    ("Upsample", "upsample_param { upsample_h: 7 upsample_w: 9 }", ((1, 2, 3, 4),) * 2,
     (1, 2, 7, 9), NONE, 0),
    ("PriorBox", "prior_box_param { min_size: 30 max_size: 60 aspect_ratio: 2 flip: true }",
     ((1, 8, 3, 2), (1, 3, 300, 300)), (1, 2, 96), n(6, add=2, mul=2) + n(24, add=4, div=4), 0),
    ("PriorBox", "prior_box_param { min_size: 30 min_size: 40 aspect_ratio: 1 aspect_ratio: 3 "
     "flip: false }", ((1, 8, 1, 1), (1, 3, 8, 8)), (1, 2, 16), n(1, add=2, mul=2)
     + n(4, add=4, div=4), 0),
    ("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 3 spatial_scale: 0.0625 }",
     ((1, 4, 6, 6), (10, 5)), (10, 4, 2, 3), Ops(comp=40 * 36 - 240), 0),
    ("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 3 }",
     ((1, 4, 6, 6), (10, 5, 1, 1)), (10, 4, 2, 3), Ops(comp=40 * 36 - 240), 0),
    ("ROIAlign", "roi_align_param { pooled_h: 2 pooled_w: 2 sampling_ratio: 1 }",
     ((1, 4, 6, 6), (10, 5)), (10, 4, 2, 2), n(160, mul=4, add=3, div=1), 0),
    ("PSROIPooling", "psroi_pooling_param { output_dim: 2 group_size: 3 spatial_scale: 0.5 }",
     ((1, 18, 6, 6), (10, 5)), (10, 2, 3, 3), Ops(add=20 * 36 - 180, div=180), 0),
    ("LSTM", "recurrent_param { num_output: 3 }", ((5, 2, 4), (5, 2)), (5, 2, 3),
     n(10, mac=12 * 7, add=24 + 3 * 8, mul=15, exp=15, div=15), 12 * 4 + 12 + 12 * 3),
    ("LSTM", "recurrent_param { num_output: 3 }", ((5, 2, 4), (5, 2), (2, 6)), (5, 2, 3),
     n(10, mac=12 * 7, add=36 + 3 * 8, mul=15, exp=15, div=15) + Ops(mac=12 * 6 * 2),
     12 * 4 + 12 + 12 * 6 + 12 * 3),
    ("RNN", "recurrent_param { num_output: 3 }", ((5, 2, 4), (5, 2)), (5, 2, 3),
     n(10, mac=3 * 7 + 9, add=6 + 3 * 5, mul=3, exp=6, div=6), 3 * 4 + 3 + 9 + 9 + 3),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "told", "given", "shape", "ops", "params"), SEVERAL)
def test_a_layer_of_several_bottoms(
    kind: str,
    told: str,
    given: tuple[tuple[int, ...], ...],
    shape: tuple[int, ...],
    ops: Ops,
    params: int,
) -> None:
    report = one(kind, told, inputs(*given), bottom=" ".join("abcdef"[: len(given)]))
    found = report.layers[-1]
    assert (found.output, found.ops, found.params) == (shape, ops, params)


def test_every_type_has_a_case() -> None:
    tested = {key(case[0]) for case in ON_DATA} | {key(case[0]) for case in SEVERAL}
    below = {
        "slice", "embed", "python", "proposal", "detectionoutput", "convolution3d", "pooling3d",
        "padding", "reorg", "depthwisedeconvolution",
    }  # fmt: skip
    simple = {"selu", "hardswish", "hardsigmoid", "gelu", "softplus"}
    forks = {key(kind) for fork in FORKS for kind in re.findall(r"""type: ["'](\w+)""", fork.text)}
    assert set(LAYERS) == tested | below | simple | (forks & set(LAYERS))


def test_unpooling_of_volumes_by_two_scales_is_refused() -> None:
    volume = inputs((1, 2, 2, 3, 3), (1, 2, 2, 3, 3))
    with pytest.raises(ShapeError, match="expected one for each spatial axis"):
        one("Upsample", "upsample_param { scale: 2 }", volume, bottom="a b")


@pytest.mark.parametrize("scale", ["inf", "nan", "1.5", "0", "1e30"])
def test_factors_that_are_no_whole_numbers(scale: str) -> None:
    told = f"resize_bilinear_param {{ scale_height: {scale} }}"
    assert one("ResizeBilinear", told).layers[-1].status == "unknown"


# -- those of several nodes, several tops, or others besides


def test_slice() -> None:
    for told, shapes in (
        ("slice_param { slice_point: 1 slice_point: 4 }", [(2, 1), (2, 3), (2, 2)]),
        ("", [(2, 2)] * 3),
    ):
        report = one("Slice", told, top="p q r")
        assert [report.tensors[name].shape for name in "pqr"] == [(*s, 9, 7) for s in shapes]
    report = one("Slice", "slice_param { axis: 2 slice_point: 4 }", top="p q")
    assert [report.tensors[name].shape for name in "pq"] == [(2, 6, 4, 7), (2, 6, 5, 7)]
    assert one("Slice", "slice_param { slice_dim: 0 }", top="p q").tensors["p"].shape == (
        1,
        6,
        9,
        7,
    )


def test_copies_are_one_tensor() -> None:
    graph = net(DATA + layer("Split", top="p q") + layer("Eltwise", "", "p q", "z", "z"))
    assert [(node.op, node.inputs) for node in graph.nodes] == [
        ("identity", ("data",)),
        ("add", ("p", "p")),
    ]


def test_max_pooling_tells_where_to_put_things_back() -> None:
    pool = layer("Pooling", "pooling_param { kernel_size: 2 stride: 2 }", "a", "p m", "pool")
    back = layer("Upsample", "upsample_param { scale: 2 }", "p m", "y")
    report = analyze(net(IMAGES + pool + back))
    assert report.tensors["m"].shape == report.tensors["p"].shape == (1, 4, 4, 3)
    assert report.by_name["it"].output == (1, 4, 8, 6)


def test_embed() -> None:
    told = "embed_param { input_dim: 9 num_output: 4 %s }"
    report = one("Embed", told % "", inputs((5, 2)), bottom="a")
    assert [(x.name, x.op, x.output, x.params) for x in report.layers] == [
        ("it", "embedding", (5, 2, 4), 36),
        ("it/bias", "bias", (5, 2, 4), 4),
    ]
    assert report.totals.params == 40
    assert one("Embed", told % "bias_term: false", inputs((5, 2)), bottom="a").totals.params == 36


def test_exponentials_and_logarithms_of_any_base() -> None:
    def ops(kind: str, told: str) -> Ops:
        report = one(kind, told)
        assert report.layers[-1].output == SAME
        return sum((x.ops for x in report.layers), Ops())

    assert ops("Exp", "exp_param { base: 2 }") == n(SIZE, mul=1, exp=1)
    assert ops("Exp", "exp_param { scale: 3 shift: 1 }") == n(SIZE, mul=2, exp=1)
    assert ops("Log", "log_param { scale: 3 shift: 1 }") == n(SIZE, mul=1, add=1, exp=1)
    assert ops("Log", "log_param { base: 10 }") == n(SIZE, mul=1, exp=1)
    assert ops("Swish", "swish_param { beta: 2 }") == n(SIZE, mul=2, exp=1, add=1, div=1)
    half = one("Reduction", "reduction_param { axis: 1 coeff: 0.5 }")
    assert sum((x.ops for x in half.layers), Ops()) == n(2, add=377, mul=1)


@pytest.mark.parametrize(
    ("told", "shape"),
    [
        ("", (2, 1, 1)),
        ("top_k: 3", (2, 1, 3)),
        ("top_k: 3 out_max_val: true", (2, 2, 3)),
        ("axis: 1 top_k: 2", (2, 2, 9, 7)),
        ("axis: 1 out_max_val: true", (2, 1, 9, 7)),
    ],
)
def test_arg_max(told: str, shape: tuple[int, ...]) -> None:
    report = one("ArgMax", f"argmax_param {{ {told} }}")
    assert report.tensors["y"].shape == shape
    if not told:
        assert sum((x.ops for x in report.layers), Ops()) == Ops(comp=2 * 377)


def test_a_loss_may_give_probabilities_too() -> None:
    report = one("SoftmaxWithLoss", "", top="loss prob")
    assert report.tensors["prob"].shape == SAME
    assert report.tensors["loss"].shape == ()


def test_reorg_moves_space_into_channels_and_back() -> None:
    report = one("Reorg", "reorg_param { stride: 2 }", IMAGES, bottom="a")
    assert report.layers[0].output == (1, 16, 4, 3)
    report = one("Reorg", "reorg_param { stride: 2 reverse: true }", IMAGES, bottom="a")
    assert report.layers[0].output == (1, 1, 16, 12)


def test_three_axes() -> None:
    video = inputs((1, 3, 8, 12, 10))
    told = "convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 }"
    assert one("Convolution", told, video, bottom="a").layers[0].output == (1, 4, 4, 6, 5)
    told = (
        "convolution_param { num_output: 4 kernel_size: 3 kernel_depth: 2 pad: 1 temporal_pad: 0 "
        "stride: 1 temporal_stride: 2 }"
    )
    flat = one("Convolution3D", told, video, bottom="a").layers[0]
    assert (flat.output, flat.params) == ((1, 4, 4, 12, 10), 4 * 3 * 18 + 4)
    told = "pooling_param { kernel_size: 2 kernel_depth: 1 stride: 2 temporal_stride: 1 }"
    assert one("Pooling3D", told, video, bottom="a").layers[0].output == (1, 3, 8, 6, 5)


def test_depthwise_the_other_way() -> None:
    told = "convolution_param { num_output: 6 kernel_size: 4 stride: 2 bias_term: false }"
    assert one("DeconvolutionDepthwise", told).layers[0].params == 96


def test_what_caffe_has_and_data_decides_is_unknown() -> None:
    for kind in ("Filter", "LSTMUnit", "Recurrent", "MultiBoxLoss", "CenterLoss", "Correlation"):
        report = one(kind, "", inputs((2, 3), (2, 3)), bottom="a b")
        assert report.layers[0].op == kind
        assert report.layers[0].status == "unknown"
    told = "recurrent_param { num_output: 3 expose_hidden: true }"
    assert one("LSTM", told, inputs((5, 2, 4), (5, 2)), bottom="a b").layers[0].op == "LSTM"
