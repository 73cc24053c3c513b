"""Detectors as forks of Caffe write them."""

from __future__ import annotations

from tests.formats.caffe.caffe_fork import Fork, Row, bound, unknown

DETECTORS = [
    Fork("AnchorTarget", """
input: "score" input: "gt_boxes" input: "im_info"
input_shape { dim: 1 dim: 18 dim: 4 dim: 5 } input_shape { dim: 3 dim: 5 }
input_shape { dim: 1 dim: 3 }
layer { name: 'rpn-data' type: 'Python' bottom: 'score' bottom: 'gt_boxes' bottom: 'im_info'
  top: 'rpn_labels' top: 'rpn_bbox_targets' top: 'inside' top: 'outside'
  python_param { module: 'rpn.anchor_target_layer' layer: 'AnchorTargetLayer'
  param_str: "'feat_stride': 16" } }
layer { name: "again" type: "AnchorTarget" bottom: "score" bottom: "gt_boxes" top: "labels" }
layer { name: "third" type: "AnchorTargetLayer" bottom: "score" top: "t" }
layer { name: "r" type: "Reshape" bottom: "score" top: "r"
  reshape_param { shape { dim: 0 dim: 2 dim: -1 dim: 0 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "r" bottom: "rpn_labels" top: "loss"
  propagate_down: 1 propagate_down: 0 loss_weight: 1 loss_param { ignore_label: -1
  normalize: true } }
""", {"rpn-data": unknown((1, 1, 36, 5)), "again": unknown((1, 1, 36, 5)),
      "third": unknown((1, 1, 36, 5)), "r": Row((1, 2, 36, 5)), "loss": Row(())}),
    Fork("ProposalTarget", """
input: "maps" input: "rpn_rois" input: "gt_boxes"
input_shape { dim: 1 dim: 2 dim: 8 dim: 8 } input_shape { dim: 300 dim: 5 }
input_shape { dim: 3 dim: 5 }
layer { name: "roi-data" type: "Python" bottom: "rpn_rois" bottom: "gt_boxes" top: "rois"
  top: "labels" top: "bbox_targets" top: "bbox_inside_weights" top: "bbox_outside_weights"
  python_param { module: "rpn.proposal_target_layer" layer: "ProposalTargetLayer"
  param_str: "'num_classes': 3" } }
layer { name: "cpp" type: "ProposalTarget" bottom: "rpn_rois" bottom: "gt_boxes" top: "rois_2nd"
  proposal_target_param { cls_num: 21 batch_size: 4 fg_fraction: 0.25 }
  bbox_reg_param { cls_aware: false } propagate_down: 0 propagate_down: 0 }
layer { name: "named" type: "ProposalTargetLayer" bottom: "rpn_rois" top: "rois_3rd" }
layer { name: "pool" type: "ROIPooling" bottom: "maps" bottom: "rois" top: "pool"
  roi_pooling_param { pooled_w: 2 pooled_h: 2 spatial_scale: 0.0625 pad_ratio: 0 } }
layer { name: "bbox" type: "InnerProduct" bottom: "pool" top: "bbox"
  inner_product_param { num_output: 12 } }
layer { name: "loss" type: "SmoothL1Loss" bottom: "bbox" bottom: "bbox_targets"
  bottom: "bbox_inside_weights" bottom: "bbox_outside_weights" top: "loss"
  smooth_l1_loss_param { sigma: 3.0 } }
""", {"roi-data": unknown((10, 5)), "cpp": unknown((4, 5)), "named": unknown((10, 5)),
      "pool": bound((10, 2, 2, 2)), "bbox": Row((10, 12), 10 * 12 * 8, 12 * 9),
      "loss": Row(())}, {"proposals": 10, "phase": "train"}),
    Fork("Proposal", """
input: "prob" input: "bbox" input: "im_info"
input_shape { dim: 1 dim: 6 dim: 4 dim: 4 } input_shape { dim: 1 dim: 12 dim: 4 dim: 4 }
input_shape { dim: 1 dim: 3 }
layer { name: "p" type: "Proposal" bottom: "prob" bottom: "bbox" bottom: "im_info" top: "rois"
  top: "scores" proposal_param { feat_stride: 16 base_size: 16 min_size: 16 ratio: 0.5 ratio: 1.0
  ratio: 2.0 scale: 8 pre_nms_topn: 40 post_nms_topn: 20 nms_thresh: 0.7 } }
layer { name: "q" type: "Proposal" bottom: "prob" bottom: "bbox" bottom: "im_info" top: "q"
  proposal_param { feat_stride: 16 anchor_base_size: 16 anchor_scale: 3 anchor_ratio: 3
  max_rois: 30 } }
layer { name: "x" type: "BoxGroupOutput" bottom: "prob" bottom: "bbox" top: "x"
  box_group_output_param { fg_thr: 0.01 iou_thr: 0.7 nms_type: "IOU" max_nms_num: 50 } }
layer { name: "y" type: "BoxOutput" bottom: "prob" top: "y" }
layer { name: "z" type: "DecodeBBox" bottom: "bbox" bottom: "rois" top: "z" }
""", {"p": bound((20, 5)), "p/scores": Row((20, 1)), "q": bound((30, 5)), "x": unknown((50, 5)),
      "y": unknown((300, 5)), "z": unknown((20, 5))}),
    Fork("hard examples", """
input: "cls_score" input: "bbox_pred" input: "rois" input: "labels" input: "weights"
input_shape { dim: 6 dim: 3 dim: 1 dim: 1 } input_shape { dim: 6 dim: 8 dim: 1 dim: 1 }
input_shape { dim: 6 dim: 5 } input_shape { dim: 6 } input_shape { dim: 6 dim: 8 dim: 1 dim: 1 }
layer { name: "cls" type: "SoftmaxWithLossOHEM" bottom: "cls_score" bottom: "labels" top: "l"
  top: "prob" top: "each_cls" loss_weight: 0 loss_weight: 0 loss_weight: 0 propagate_down: false
  propagate_down: false }
layer { name: "box" type: "SmoothL1LossOHEM" bottom: "bbox_pred" bottom: "weights" top: "m"
  top: "each_box" loss_weight: 0 loss_weight: 0 }
layer { name: "sum" type: "Eltwise" bottom: "each_cls" bottom: "each_box" top: "sum" }
layer { name: "pick" type: "BoxAnnotatorOHEM" bottom: "rois" bottom: "sum" bottom: "labels"
  bottom: "weights" top: "labels_ohem" top: "weights_ohem"
  box_annotator_ohem_param { roi_per_img: 4 ignore_label: -1 } }
layer { name: "silence" type: "Silence" bottom: "l" bottom: "prob" bottom: "m" }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "cls_score" bottom: "labels_ohem" top: "loss" }
layer { name: "only" type: "SmoothL1LossOHEM" bottom: "bbox_pred" bottom: "weights"
  bottom: "weights_ohem" top: "only" loss_weight: 1
  loss_param { normalization: PRE_FIXED pre_fixed_normalizer: 128 } }
layer { name: "soft" type: "SoftmaxWithLossOHEM" bottom: "cls_score" bottom: "labels" top: "soft" }
""", {"cls/prob": Row((6, 3, 1, 1)), "cls": Row(()), "cls/regions": Row((6, 1, 1, 1)),
      "box": Row(()), "box/regions": Row((6, 1, 1, 1)), "sum": Row((6, 1, 1, 1)),
      "pick": unknown((6,)), "loss": Row(()), "only": Row(()), "soft": Row(())}),
    Fork("R-FCN", """
input: "maps" input: "rois"
input_shape { dim: 1 dim: 18 dim: 6 dim: 6 } input_shape { dim: 7 dim: 5 }
layer { bottom: "maps" bottom: "rois" top: "a" name: "a" type: "PSROIPooling"
  psroi_pooling_param { spatial_scale: 0.0625 output_dim: 2 group_size: 3 } }
layer { name: "b" type: "Pooling" bottom: "a" top: "b"
  pooling_param { pool: AVE kernel_size: 3 stride: 3 } }
layer { bottom: "maps" bottom: "rois" top: "c" name: "c" type: "PSROIAlign"
  psroi_align_param { spatial_scale: 0.0625 output_dim: 2 group_size: 3 sample_num: 2 } }
layer { bottom: "maps" bottom: "rois" top: "d" name: "d" type: "DeformablePSROIPooling"
  deformable_psroi_pooling_param { spatial_scale: 0.0625 output_dim: 2 group_size: 3 } }
layer { bottom: "maps" bottom: "rois" top: "e" name: "e" type: "ROIAlign"
  roi_align_param { pooled_w: 2 pooled_h: 3 spatial_scale: 0.0625 } }
layer { bottom: "maps" bottom: "rois" top: "f" name: "f" type: "ROIWarping"
  roi_warping_param { pooled_w: 2 pooled_h: 3 spatial_scale: 0.0625 } }
layer { bottom: "maps" bottom: "rois" top: "g" name: "g" type: "ROIWarpingTest"
  roi_warping_test_param { pooled_w: 2 pooled_h: 3 spatial_scale: 0.0625 } }
""", {"a": bound((7, 2, 3, 3)), "b": Row((7, 2, 1, 1)), "c": unknown((7, 2, 3, 3)),
      "d": unknown((7, 2, 3, 3)), "e": Row((7, 18, 3, 2)), "f": unknown((7, 18, 3, 2)),
      "g": unknown((7, 18, 3, 2))}),
    Fork("SSD in training", """
layer { name: "data" type: "AnnotatedData" top: "data" top: "label" include { phase: TRAIN }
  transform_param { mirror: true mean_value: 104 force_color: true resize_param { prob: 1
  resize_mode: WARP height: 8 width: 8 interp_mode: LINEAR interp_mode: AREA }
  emit_constraint { emit_type: CENTER } distort_param { brightness_prob: 0.5 } }
  data_param { source: "x" batch_size: 8 backend: LMDB }
  annotated_data_param { batch_sampler { max_sample: 1 max_trials: 1 } label_map_file: "y" } }
layer { name: "n" type: "Normalize" bottom: "data" top: "n"
  norm_param { across_spatial: false scale_filler { type: "constant" value: 20 }
  channel_shared: false } }
layer { name: "loc" type: "Convolution" bottom: "n" top: "loc"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 } }
layer { name: "perm" type: "Permute" bottom: "loc" top: "perm"
  permute_param { order: 0 order: 2 order: 3 order: 1 } }
layer { name: "flat" type: "Flatten" bottom: "perm" top: "flat" flatten_param { axis: 1 } }
layer { name: "prior" type: "PriorBox" bottom: "loc" bottom: "data" top: "prior"
  prior_box_param { min_size: 30.0 max_size: 60.0 aspect_ratio: 2.0 flip: true clip: false
  variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 step: 8 offset: 0.5 } }
layer { name: "mbox_loss" type: "MultiBoxLoss" bottom: "flat" bottom: "flat" bottom: "prior"
  bottom: "label" top: "mbox_loss" include { phase: TRAIN } propagate_down: true
  propagate_down: true propagate_down: false propagate_down: false
  loss_param { normalization: VALID } multibox_loss_param { loc_loss_type: SMOOTH_L1
  conf_loss_type: SOFTMAX loc_weight: 1.0 num_classes: 4 share_location: true
  match_type: PER_PREDICTION overlap_threshold: 0.5 use_prior_for_matching: true
  background_label_id: 0 use_difficult_gt: true neg_pos_ratio: 3.0 neg_overlap: 0.5
  code_type: CENTER_SIZE mining_type: MAX_NEGATIVE } }
""", {"n": Row((1, 3, 8, 8), 0, 3), "loc": Row((1, 16, 8, 8), 64 * 16 * 27, 16 * 28),
      "perm": Row((1, 8, 8, 16)), "flat": Row((1, 1024)), "prior": Row((1, 2, 1024)),
      "mbox_loss": unknown(())}, {"phase": "train"}),
    Fork("SSD evaluated", """
input: "loc" input: "conf" input: "prior" input: "label"
input_shape { dim: 1 dim: 16 } input_shape { dim: 1 dim: 12 } input_shape { dim: 1 dim: 2 dim: 16 }
input_shape { dim: 1 dim: 1 dim: 2 dim: 8 }
layer { name: "out" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "prior" top: "out"
  include { phase: TEST } detection_output_param { num_classes: 3 share_location: true
  background_label_id: 0 nms_param { nms_threshold: 0.45 top_k: 400 eta: 1.0 }
  save_output_param { output_directory: "x" output_name_prefix: "y" output_format: "VOC"
  label_map_file: "z" name_size_file: "w" num_test_image: 4952 } code_type: CENTER_SIZE
  keep_top_k: 5 confidence_threshold: 0.01 visualize: false } }
layer { name: "eval" type: "DetectionEvaluate" bottom: "out" bottom: "label" top: "eval"
  include { phase: TEST } detection_evaluate_param { num_classes: 3 background_label_id: 0
  overlap_threshold: 0.5 evaluate_difficult_gt: false name_size_file: "x" } }
layer { name: "arm" type: "DetectionOutput" bottom: "loc" bottom: "conf" bottom: "prior"
  bottom: "conf" bottom: "loc" top: "arm" detection_output_param { num_classes: 3
  objectness_score: 0.01 } }
""", {"out": bound((1, 1, 5, 7)), "eval": unknown(), "arm": unknown()}),
    Fork("prior boxes by their sides", """
input: "maps" input: "data"
input_shape { dim: 1 dim: 4 dim: 3 dim: 3 } input_shape { dim: 1 dim: 3 dim: 30 dim: 30 }
layer { name: "p" type: "PriorBox" bottom: "maps" bottom: "data" top: "p"
  prior_box_param { box_width: 4 box_width: 8 box_height: 4 box_height: 6 yx_order: true } }
layer { name: "f" type: "PriorBox" bottom: "maps" bottom: "data" top: "f"
  prior_box_param { min_size: 32 faceboxes: true } }
""", {"p": Row((1, 2, 72)), "f": unknown()}),
    Fork("YOLO", """
input: "data" input_shape { dim: 1 dim: 30 dim: 4 dim: 4 } input: "label" input_shape {
  dim: 1 dim: 5 }
layer { name: "loss" type: "RegionLoss" bottom: "data" bottom: "label" top: "loss"
  region_loss_param { side: 13 num_class: 1 coords: 4 num: 5 biases: 1.08 biases: 1.19 } }
layer { name: "v3" type: "Yolov3" bottom: "data" bottom: "label" top: "v3"
  yolov3_param { side: 13 num_class: 20 num: 9 mask: 6 anchors_scale: 32 } }
layer { name: "region" type: "Region" bottom: "data" top: "region" }
layer { name: "eval" type: "EvalDetection" bottom: "data" bottom: "label" top: "eval"
  eval_detection_param { side: 13 num_class: 20 num_object: 5 score_type: MULTIPLY nms: 0.5 } }
layer { name: "out" type: "YoloDetectionOutput" bottom: "data" top: "out"
  yolo_detection_output_param { num_classes: 20 confidence_threshold: 0.01 } }
layer { name: "out3" type: "Yolov3DetectionOutput" bottom: "data" top: "out3"
  yolov3_detection_output_param { num_classes: 20 mask_group_num: 2 } }
""", {"loss": unknown(()), "v3": unknown(()), "region": unknown(), "eval": unknown(),
      "out": unknown(), "out3": unknown()}),
    Fork("DetectNet", """
layer { name: "train_data" type: "Data" top: "data" data_param { backend: LMDB source: "x"
  batch_size: 10 } include: { phase: TRAIN } }
layer { name: "train_label" type: "Data" top: "label" data_param { source: "y" batch_size: 10 }
  include: { phase: TRAIN } }
layer { name: "train_transform" type: "DetectNetTransformation" bottom: "data" bottom: "label"
  top: "transformed_data" top: "transformed_label" detectnet_groundtruth_param: { stride: 16
  scale_cvg: 0.4 gridbox_type: GRIDBOX_MIN coverage_type: RECTANGULAR min_cvg_len: 20 obj_norm: true
  image_size_x: 16 image_size_y: 8 crop_bboxes: true object_class: { src: 1 dst: 0 } }
  detectnet_augmentation_param: { crop_prob: 1.0 flip_prob: 0.5 }
  transform_param: { mean_value: 127 } include: { phase: TRAIN } }
layer { name: "conv" type: "Convolution" bottom: "transformed_data" top: "conv"
  convolution_param { num_output: 2 kernel_size: 1 } }
""", {"train_transform": unknown((1, 3, 8, 16)), "conv": Row((1, 2, 8, 16), 128 * 6, 8)},
         {"phase": "train"}),
]  # fmt: skip
