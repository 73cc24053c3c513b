"""The converter of a Caffe layer type is in the file of its op's family, as in ops/.

Read off small networks of every type: one node of a layer is of the family, and a layer that
becomes a single node is of no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import pytest

from layerscope import Graph, Node
from layerscope.formats.caffe import layers
from layerscope.formats.caffe.layers import LAYERS
from layerscope.formats.caffe.names import key
from layerscope.ops import SPECS
from tests.families import FAMILIES
from tests.formats.caffe.caffe_forks import FORKS
from tests.formats.caffe.caffe_nets import DATA, inputs, layer, net
from tests.formats.caffe.test_caffe_layers import ON_DATA, SEVERAL

# Files of layers that emit no op of ops/, as no rule counts them.
WITHOUT_OPS = ("flownet", "uncounted")
# Types that can also become a single node of another family: the op, and why.
OTHERWISE = {
    ("argmax", "top_k"): "top_k or out_max_val along an axis",
    ("eltwise", "bias"): "a sum along an axis of Synopsys's fork is Caffe's Bias",
    ("eltwise", "scale"): "a product along an axis of Synopsys's fork is Caffe's Scale",
    ("python", "pixel_shuffle"): "Darknet's reorg, written in Python",
    ("reshape", "pixel_shuffle"): "pixelshuffler of forks for super-resolution",
}
# Types that no rule counts, beside others of their family: why.
UNCOUNTED = {"margininnerproduct": "angles beside the products of largemargininnerproduct"}
MORE = [  # types that the other tables do not have, or have with several nodes only
    *(DATA + layer(kind) for kind in (
        "SELU", "HardSwish", "HardSigmoid", "GELU", "Softplus", "Slice", "Split", "ArgMax",
        "Swish", "Exp", "Log", "Reduction", "SoftmaxWithLoss",
    )),
    DATA + layer("ArgMax", "argmax_param { axis: 1 }"),
    DATA + layer("ArgMax", "argmax_param { axis: 1 top_k: 2 }"),
    inputs((5, 2)) + layer("Embed", "embed_param { input_dim: 9 num_output: 4 }", "a"),
    inputs((1, 3, 8, 12, 10)) + layer(
        "Convolution3D", "convolution_param { num_output: 4 kernel_size: 3 kernel_depth: 2 }", "a"
    ),
    inputs((1, 3, 8, 12, 10)) + layer(
        "Pooling3D", "pooling_param { kernel_size: 2 kernel_depth: 1 }", "a"
    ),
    DATA + layer("DeconvolutionDepthwise", "convolution_param { num_output: 6 kernel_size: 4 }"),
    inputs((1, 4, 8, 6)) + layer("Reorg", "reorg_param { stride: 2 }", "a"),
    inputs((1, 18, 4, 4), (1, 36, 4, 4), (1, 3)) + layer(
        "Proposal", "proposal_param { feat_stride: 16 }", "a b c"
    ),
    inputs((1, 18, 4, 4), (1, 36, 4, 4), (1, 3)) + layer(
        "Python", "python_param { module: 'rpn.proposal_layer' layer: 'ProposalLayer' }", "a b c"
    ),
    inputs((1, 16), (1, 12), (1, 2, 16)) + layer(
        "DetectionOutput", "detection_output_param { num_classes: 3 }", "a b c"
    ),
    DATA + layer("Padding", "padding_param { pad: 1 }"),
]  # fmt: skip


@cache
def files() -> dict[str, str]:
    """Layer type -> the file of its converter."""
    names = [each.name for each in iter_modules(layers.__path__)]
    modules = {name: import_module(f"layerscope.formats.caffe.layers.{name}") for name in names}
    return {kind: name for name, module in modules.items() for kind in module.LAYERS}


def graphs() -> Iterator[Graph]:
    for kind, settings, *_ in ON_DATA:
        yield net(DATA + layer(kind, settings))
    for kind, settings, shapes, *_ in SEVERAL:
        bottoms = " ".join("abcdef"[: len(shapes)])
        yield net(inputs(*shapes) + layer(kind, settings, bottoms))
    for fork in FORKS:
        yield net(fork.text, **{k: v for k, v in fork.options.items() if k != "inputs"})
    for text in MORE:
        yield net(text)


@cache
def emitted() -> dict[str, list[list[str]]]:
    """Layer type -> the ops of each layer of it, without those that no rule counts."""
    found: dict[str, list[list[str]]] = {}
    for graph in graphs():
        nodes: dict[int, list[Node]] = {}
        for node in graph.nodes:
            nodes.setdefault(id(node.source), []).append(node)
        for several in nodes.values():
            source = several[0].source
            counted = [node.op for node in several if node.op in SPECS]
            if source is not None and counted:
                found.setdefault(key(source.op), []).append(counted)
    return found


def test_every_type_is_in_one_file() -> None:
    assert files().keys() == LAYERS.keys()


@pytest.mark.parametrize("kind", LAYERS)
def test_a_converter_is_in_the_file_of_its_family(kind: str) -> None:
    file = files()[kind]
    if file in WITHOUT_OPS or kind in UNCOUNTED:
        assert kind not in emitted()
        return
    alone = set()
    for several in emitted()[kind]:
        if len(several) == 1 and FAMILIES[several[0]] != file:
            alone.add((kind, several[0]))
        elif len(several) > 1:
            assert any(FAMILIES[op] == file for op in several), several
    assert alone <= OTHERWISE.keys()
    assert any(FAMILIES[op] == file for several in emitted()[kind] for op in several)


def test_other_ops_have_a_reason_and_a_case() -> None:
    for kind, op in OTHERWISE:
        assert files()[kind] != FAMILIES[op]
        assert [op] in emitted()[kind], (kind, op)
