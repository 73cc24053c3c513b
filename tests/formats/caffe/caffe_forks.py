"""Small networks as forks of Caffe write them, with figures worked out by hand.

The fields, words and types are those of public forks; sizes are small, so that every figure is a
short product.
"""

from __future__ import annotations

from tests.formats.caffe.caffe_fork import IMAGE, Fork, Row, unknown
from tests.formats.caffe.caffe_fork_detectors import DETECTORS
from tests.formats.caffe.caffe_fork_layers import LAYERS_OF_FORKS
from tests.formats.caffe.caffe_fork_windows import RESAMPLING, WINDOWS

SYNTAX = [
    Fork("braces and colons", IMAGE + """
layer: < name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param: < num_output: 4; kernel_size: 3, pad: 1; > >
""", {"c": Row((1, 4, 8, 8), 64 * 4 * 27, 4 * 28)}),
    Fork("strings in pieces", IMAGE + """
layer { name: "co" 'n' "v" type: 'Convo' "lution" bottom: "data" top: "\\143"
  convolution_param { num_output: 0x2 kernel_size: 03 } } # a comment {
""", {"conv": Row((1, 2, 6, 6), 36 * 2 * 27, 2 * 28)}),
    Fork("mark and line ends of Windows", "\ufeff" + (IMAGE + """
layer {
  name: "r"
  type: "ReLU"
  bottom: "data"
  top: "data"
}
""").replace("\n", "\r\n"), {"r": Row((1, 3, 8, 8))}),
    Fork("lists", """
name: "lists" input: "data" input_shape { dim: [1, 3, 8, 8] }
layer [{ name: "a" type: "ReLU" bottom: ["data"] top: ["a"] },
       { name: "b" type: "Concat" bottom: ["data", "a"] top: "b" }]
""", {"a": Row((1, 3, 8, 8)), "b": Row((1, 6, 8, 8))}),
    Fork("types in any case", IMAGE + """
layer { name: "a" type: "RELU" bottom: "data" top: "data" }
layer { name: "b" type: "max_pool" bottom: "data" top: "b" }
layer { name: "c" type: "INNER_PRODUCT" bottom: "data" top: "c"
  inner_product_param { num_output: 2 bias_term: False } }
""", {"a": Row((1, 3, 8, 8)), "b": unknown(), "c": Row((1, 2), 2 * 192, 2 * 192)}),
    Fork("layers by words", IMAGE + """
layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1. blobs_lr: 2.
  weight_decay: 1 weight_decay: 0 convolution_param { num_output: 2 kernel_size: 1 } }
layers { name: "p" type: POOLING bottom: "c" top: "p"
  pooling_param { pool: AVE kernel_size: 3 stride: 2 } }
layers { name: "l" type: SOFTMAX_LOSS bottom: "p" bottom: "label" top: "l"
  include: { phase: TRAIN } }
""", {"c": Row((1, 2, 8, 8), 64 * 2 * 3, 8), "p": Row((1, 2, 4, 4))}),
    Fork("layers within layers", """
input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { layer { name: "c" type: "conv" num_output: 4 kernelsize: 3 stride: 2 pad: 1 biasterm: false
  weight_filler { type: "gaussian" std: .01 } blobs_lr: 1. } bottom: "data" top: "c" }
layers { layer { name: "r" type: "relu" } bottom: "c" top: "c" }
layers { layer { name: "f" type: "innerproduct" num_output: 2 } bottom: "c" top: "f" }
""", {"c": Row((1, 4, 4, 4), 16 * 4 * 27, 108), "r": Row((1, 4, 4, 4)),
      "f": Row((1, 2), 2 * 64, 2 * 65)}),
    Fork("a phase that Caffe does not have", IMAGE + """
layer { name: "a" type: "ReLU" bottom: "data" top: "a" include { phase: DEPLOY } }
layer { name: "b" type: "ReLU" bottom: "data" top: "b" exclude { phase: 7 } }
""", {"b": Row((1, 3, 8, 8))}),
]  # fmt: skip

FIELDS = [
    Fork("a misspelled field", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 3 strde: 2 } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
""", {"c": unknown(), "r": unknown()}),
    Fork("a misspelled filler", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 2 kernel_size: 1 weight_filler { tpye: "xavier" stdd: 3 } } }
""", {"c": Row((1, 2, 8, 8), 64 * 6, 8)}),
    Fork("a misspelled rule", IMAGE + """
layer { name: "r" type: "ReLU" bottom: "data" top: "r" include { phse: TRAIN } }
""", {"r": unknown()}),
    Fork("a misspelled name of weights", IMAGE + """
layer { name: "c" type: "Convolution" bottom: "data" top: "c" param { nme: "w" }
  convolution_param { num_output: 2 kernel_size: 1 } }
""", {"c": unknown()}),
    Fork("a misspelled size", IMAGE + """
layer { name: "r" type: "Reshape" bottom: "data" top: "r" reshape_param { shape { dim: 0 dims: 3
  dim: -1 } } }
""", {"r": unknown()}),
    Fork("a misspelled layer", IMAGE + """
layer { name: "r" type: "ReLU" bottom: "data" top: "r" }
layre { name: "s" type: "ReLU" bottom: "r" top: "s" }
""", {"r": Row((1, 3, 8, 8)), "layre@4": unknown()}),
    Fork("settings of another layer", IMAGE + """
layer { name: "r" type: "ReLU" bottom: "data" top: "r" pooling_param { kernel_size: 3 } }
layer { name: "s" type: "ReLU" bottom: "data" top: "s" sparsity_param { ratio: 3 } }
""", {"r": Row((1, 3, 8, 8)), "s": unknown()}),
]  # fmt: skip

FORKS = [*SYNTAX, *WINDOWS, *RESAMPLING, *DETECTORS, *LAYERS_OF_FORKS, *FIELDS]
