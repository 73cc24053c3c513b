"""Layers of detectors whose counts are bounds, worked out by hand."""

from __future__ import annotations

from layerscope import analyze
from layerscope.ops import Ops
from tests.formats.caffe.caffe_nets import inputs, layer, net, one


def n(count: int, **kinds: int) -> Ops:
    return Ops(**kinds) * count


RPN = inputs((1, 18, 5, 4), (1, 36, 5, 4), (1, 3))
PROPOSAL = "python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer' }"


def test_proposals_are_as_many_as_told() -> None:
    text = RPN + layer("Python", PROPOSAL, "a b c", "rois")
    report = analyze(net(text))
    found = report.by_name["it"]
    assert (found.output, found.status) == ((300, 5), "estimate")
    anchors, pairs = 9 * 20, 180 * 180
    assert found.ops == n(anchors, add=12, mul=8, exp=2, comp=6 + 8) + n(
        pairs, comp=7, add=4, mul=1, div=1
    )
    assert analyze(net(text, proposals=50)).by_name["it"].output == (50, 5)
    again = RPN + layer("Proposal", "", "a b c", "rois scores")
    assert analyze(net(again)).tensors["rois"].shape == (300, 5)


def test_proposals_as_netscope_counts_them() -> None:
    """Its own formula: pairs 300·299/2, nine anchors at each of 20 places."""
    report = analyze(net(RPN + layer("Python", PROPOSAL, "a b c", "rois")), like="netscope")
    pairs, anchors = 44850, 180
    assert report.by_name["it"].convention_kinds == Ops(
        mac=8 * anchors + 2 * pairs,
        add=10 * anchors + 6 * pairs,
        comp=6 * anchors + 180**2 + 7 * pairs,
        exp=2 * anchors,
        div=pairs,
    )
    assert report.by_name["it"].convention_activations == 1500


def test_other_python_layers_are_unknown_by_their_own_name() -> None:
    told = "python_param { module: 'rpn.anchor_target_layer' layer: 'AnchorTargetLayer' }"
    graph = net(RPN + layer("Python", told, "a c", "labels targets"))
    assert graph.nodes[0].op == "Python.AnchorTargetLayer"
    target = "python_param { module: 'rpn.proposal_target_layer' layer: 'ProposalTargetLayer' }"
    text = inputs((1, 8, 6, 6), (300, 5)) + layer("Python", target, "b", "rois labels w", "target")
    text += layer("ROIPooling", "roi_pooling_param { pooled_h: 2 pooled_w: 2 }", "a rois")
    report = analyze(net(text, phase="train", proposals=128))
    assert report.by_name["target"].status == "unknown"
    assert report.by_name["it"].output == (128, 8, 2, 2)


def test_detections() -> None:
    """8 boxes of 2 images, 3 classes: 2 comparisons a box keep the 4 best, which make 6 pairs."""
    told = (
        "detection_output_param { num_classes: 3 share_location: true keep_top_k: 5 "
        "nms_param { nms_threshold: 0.45 top_k: 4 } }"
    )
    report = one("DetectionOutput", told, inputs((2, 32), (2, 24), (1, 2, 32)), bottom="a b c")
    found = report.layers[0]
    assert (found.output, found.status) == ((1, 1, 10, 7), "estimate")
    assert found.ops == n(16, add=10, mul=8, exp=2) + n(6, comp=16) + n(
        36, comp=7, add=4, mul=1, div=1
    )


# -- whole detectors in small


FASTER = """
name: 'faster'
input: 'data' input_shape { dim: 1 dim: 3 dim: 64 dim: 96 }
input: 'im_info' input_shape { dim: 1 dim: 3 }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 stride: 16 } }
layer { name: 'rpn_cls_score' type: 'Convolution' bottom: 'conv' top: 'rpn_cls_score'
  convolution_param { num_output: 18 kernel_size: 1 } }
layer { name: 'rpn_bbox_pred' type: 'Convolution' bottom: 'conv' top: 'rpn_bbox_pred'
  convolution_param { num_output: 36 kernel_size: 1 } }
layer { bottom: 'rpn_cls_score' top: 'rpn_cls_score_reshape' name: 'rpn_cls_score_reshape'
  type: 'Reshape' reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } } }
layer { name: 'rpn_cls_prob' type: 'Softmax' bottom: 'rpn_cls_score_reshape' top: 'rpn_cls_prob' }
layer { name: 'rpn_cls_prob_reshape' type: 'Reshape' bottom: 'rpn_cls_prob'
  top: 'rpn_cls_prob_reshape' reshape_param { shape { dim: 0 dim: 18 dim: -1 dim: 0 } } }
layer { name: 'proposal' type: 'Python' bottom: 'rpn_cls_prob_reshape' bottom: 'rpn_bbox_pred'
  bottom: 'im_info' top: 'rois' python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer'
  param_str: "'feat_stride': 16" } }
layer { name: 'roi_pool5' type: 'ROIPooling' bottom: 'conv' bottom: 'rois' top: 'pool5'
  roi_pooling_param { pooled_w: 7 pooled_h: 7 spatial_scale: 0.0625 } }
layer { name: 'fc6' type: 'InnerProduct' bottom: 'pool5' top: 'fc6'
  inner_product_param { num_output: 16 } }
layer { name: 'cls_score' type: 'InnerProduct' bottom: 'fc6' top: 'cls_score'
  inner_product_param { num_output: 21 } }
layer { name: 'cls_prob' type: 'Softmax' bottom: 'cls_score' top: 'cls_prob' }
"""


def test_a_network_of_proposals() -> None:
    report = analyze(net(FASTER))
    shapes = {x.name: x.output for x in report.layers}
    assert shapes["rpn_cls_score_reshape"] == (1, 2, 36, 6)
    assert shapes["rpn_cls_prob_reshape"] == (1, 18, 4, 6)
    assert shapes["proposal"] == (300, 5)
    assert shapes["roi_pool5"] == (300, 8, 7, 7)
    assert shapes["cls_prob"] == (300, 21)
    assert report.by_name["fc6"].ops.mac == 300 * 8 * 49 * 16
    assert not report.coverage.unknown
    assert [t.name for t in report.inputs] == ["data", "im_info"]
    fewer = analyze(net(FASTER, proposals=10))
    assert fewer.by_name["fc6"].ops.mac == 10 * 8 * 49 * 16


SSD = """
name: 'ssd'
layer { name: 'data' type: 'AnnotatedData' top: 'data' top: 'label' include { phase: TRAIN }
  transform_param { resize_param { height: 32 width: 32 } } }
layer { name: 'in' type: 'Input' top: 'data' input_param { shape { dim: [1, 3, 32, 32] } }
  include { phase: TEST } }
layer { name: 'f' type: 'Convolution' bottom: 'data' top: 'f'
  convolution_param { num_output: 8 kernel_size: 3 pad: 1 stride: 8 } }
layer { name: 'norm' type: 'Normalize' bottom: 'f' top: 'norm'
  norm_param { across_spatial: false scale_filler { type: 'constant' value: 20 }
  channel_shared: false } }
layer { name: 'loc' type: 'Convolution' bottom: 'norm' top: 'loc'
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: 'loc_perm' type: 'Permute' bottom: 'loc' top: 'loc_perm'
  permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: 'loc_flat' type: 'Flatten' bottom: 'loc_perm' top: 'loc_flat'
  flatten_param { axis: 1 } }
layer { name: 'conf' type: 'Convolution' bottom: 'norm' top: 'conf'
  convolution_param { num_output: 12 kernel_size: 3 pad: 1 } }
layer { name: 'conf_perm' type: 'Permute' bottom: 'conf' top: 'conf_perm'
  permute_param { order: [0, 2, 3, 1] } }
layer { name: 'conf_flat' type: 'Flatten' bottom: 'conf_perm' top: 'conf_flat' }
layer { name: 'prior' type: 'PriorBox' bottom: 'norm' bottom: 'data' top: 'prior'
  prior_box_param { min_size: 30.0 max_size: 60.0 aspect_ratio: 2 flip: true clip: false
  variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 step: 8 offset: 0.5 } }
layer { name: 'priors' type: 'Concat' bottom: 'prior' bottom: 'prior' top: 'priors'
  concat_param { axis: 2 } }
layer { name: 'mbox_loss' type: 'MultiBoxLoss' bottom: 'loc_flat' bottom: 'conf_flat'
  bottom: 'prior' bottom: 'label' top: 'mbox_loss' include { phase: TRAIN } }
layer { name: 'conf_rows' type: 'Reshape' bottom: 'conf_flat' top: 'conf_rows'
  reshape_param { shape { dim: 0 dim: -1 dim: 3 } } include { phase: TEST } }
layer { name: 'soft' type: 'Softmax' bottom: 'conf_rows' top: 'soft' softmax_param { axis: 2 }
  include { phase: TEST } }
layer { name: 'soft_flat' type: 'Flatten' bottom: 'soft' top: 'soft_flat'
  include { phase: TEST } }
layer { name: 'found' type: 'DetectionOutput' bottom: 'loc_flat' bottom: 'soft_flat'
  bottom: 'prior' top: 'found' include { phase: TEST }
  detection_output_param { num_classes: 3 share_location: true background_label_id: 0
  nms_param { nms_threshold: 0.45 top_k: 400 } code_type: CENTER_SIZE keep_top_k: 20 } }
"""


def test_a_network_of_prior_boxes() -> None:
    report = analyze(net(SSD))
    shapes = {x.name: x.output for x in report.layers}
    assert shapes["loc_flat"] == (1, 4 * 4 * 16)
    assert shapes["prior"] == (1, 2, 4 * 4 * 4 * 4)
    assert shapes["priors"] == (1, 2, 2 * 256)
    assert shapes["soft"] == (1, 64, 3)
    assert shapes["found"] == (1, 1, 20, 7)
    assert report.by_name["norm"].params == 8
    assert not report.coverage.unknown
    train = analyze(net(SSD, phase="train"))
    assert train.by_name["mbox_loss"].status == "unknown"
    assert len(train.coverage.unknown) == 1
