"""Well-known networks by name, each written with the Builder; a family loads on first use."""

from __future__ import annotations

from importlib import import_module

from layerscope.errors import UnknownName
from layerscope.graph.types import Graph

# name -> (file in this folder, function in it, what the network is)
ZOO: dict[str, tuple[str, str, str]] = {
    "lenet5": ("lenet", "lenet5", "digit reader of 1998, with full connections and average pools"),
    "alexnet": ("alexnet", "alexnet", "AlexNet as torchvision has it: one tower, no normalisation"),
    "alexnet-caffe": (
        "alexnet",
        "alexnet_caffe",
        "AlexNet of 2012 as Caffe has it: groups and LRN",
    ),
    "zfnet": ("alexnet", "zfnet", "AlexNet's successor of 2013: smaller first windows, no groups"),
    "vgg11": ("vgg", "vgg11", "VGG configuration A: 8 convolutions, 3 linear layers"),
    "vgg13": ("vgg", "vgg13", "VGG configuration B: 10 convolutions, 3 linear layers"),
    "vgg16": ("vgg", "vgg16", "VGG configuration D: 13 convolutions, 3 linear layers"),
    "vgg19": ("vgg", "vgg19", "VGG configuration E: 16 convolutions, 3 linear layers"),
    "vgg11_bn": ("vgg", "vgg11_bn", "VGG configuration A with batch norm"),
    "vgg13_bn": ("vgg", "vgg13_bn", "VGG configuration B with batch norm"),
    "vgg16_bn": ("vgg", "vgg16_bn", "VGG configuration D with batch norm"),
    "vgg19_bn": ("vgg", "vgg19_bn", "VGG configuration E with batch norm"),
    "nin": ("nin", "nin", "Network in Network for ImageNet: 1x1 layers after each convolution"),
    "nin-nopad": ("nin", "nin_nopad", "Network in Network without any padding, as Boda runs it"),
    "mtcnn-pnet": ("mtcnn", "pnet", "face detection cascade, first net: proposes on 12x12"),
    "mtcnn-rnet": ("mtcnn", "rnet", "face detection cascade, second net: refines on 24x24"),
    "mtcnn-onet": ("mtcnn", "onet", "face detection cascade, third net: box and points on 48x48"),
    "patch32": (
        "patch32",
        "patch32",
        "classifier of 32-channel patches, as MatConvNet displays it",
    ),
    "googlenet": (
        "googlenet",
        "googlenet",
        "Inception v1 as torchvision has it: batch norm, no 5x5",
    ),
    "googlenet-caffe": (
        "googlenet",
        "googlenet_caffe",
        "Inception v1 as Caffe has it: LRN and 5x5",
    ),
    "resnet18": ("resnet", "resnet18", "ResNet of 8 basic blocks"),
    "resnet34": ("resnet", "resnet34", "ResNet of 16 basic blocks"),
    "resnet50": ("resnet", "resnet50", "ResNet of 16 bottlenecks, stride in the 3x3"),
    "resnet101": ("resnet", "resnet101", "ResNet of 33 bottlenecks, stride in the 3x3"),
    "resnet152": ("resnet", "resnet152", "ResNet of 50 bottlenecks, stride in the 3x3"),
    "resnet50-v1": ("resnet", "resnet50_v1", "ResNet-50 of the paper: stride in the first 1x1"),
}

NAMES = tuple(ZOO)


def build(name: str) -> Graph:
    """The network of that name; case, `-` and `_` matter only where two names would be alike."""
    family, function, _ = ZOO[_find(name)]
    network: Graph = getattr(import_module(f"layerscope.zoo.{family}"), function)()
    return network


def describe(name: str) -> str:
    """What the network of that name is, in one line."""
    return ZOO[_find(name)][2]


def _find(name: str) -> str:
    if name in ZOO:
        return name
    alike = [known for known in NAMES if _bare(known) == _bare(name)]
    if len(alike) != 1:
        raise UnknownName("network", name, NAMES, "; `layerscope zoo` lists them")
    return alike[0]


def _bare(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


__all__ = ["NAMES", "ZOO", "build", "describe"]
