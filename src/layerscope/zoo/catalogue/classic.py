"""The classic convolutional networks, 1998 to 2015."""

from __future__ import annotations

from layerscope.zoo.entry import Entry

CLASSIC = {
    "lenet5": Entry(
        "lenet", "lenet5", "digit reader of 1998, with full connections and average pools"
    ),
    "alexnet": Entry(
        "alexnet", "alexnet", "AlexNet as torchvision has it: one tower, no normalisation"
    ),
    "alexnet-caffe": Entry(
        "alexnet", "alexnet_caffe", "AlexNet of 2012 as Caffe has it: groups and LRN"
    ),
    "zfnet": Entry(
        "alexnet", "zfnet", "AlexNet's successor of 2013: smaller first windows, no groups"
    ),
    "vgg11": Entry("vgg", "vgg11", "VGG configuration A: 8 convolutions, 3 linear layers"),
    "vgg13": Entry("vgg", "vgg13", "VGG configuration B: 10 convolutions, 3 linear layers"),
    "vgg16": Entry("vgg", "vgg16", "VGG configuration D: 13 convolutions, 3 linear layers"),
    "vgg19": Entry("vgg", "vgg19", "VGG configuration E: 16 convolutions, 3 linear layers"),
    "vgg11_bn": Entry("vgg", "vgg11_bn", "VGG configuration A with batch norm"),
    "vgg13_bn": Entry("vgg", "vgg13_bn", "VGG configuration B with batch norm"),
    "vgg16_bn": Entry("vgg", "vgg16_bn", "VGG configuration D with batch norm"),
    "vgg19_bn": Entry("vgg", "vgg19_bn", "VGG configuration E with batch norm"),
    "nin": Entry(
        "nin", "nin", "Network in Network for ImageNet: 1x1 layers after each convolution"
    ),
    "nin-nopad": Entry(
        "nin", "nin_nopad", "Network in Network without any padding, as Boda runs it"
    ),
    "mtcnn-pnet": Entry("mtcnn", "pnet", "face detection cascade, first net: proposes on 12x12"),
    "mtcnn-rnet": Entry("mtcnn", "rnet", "face detection cascade, second net: refines on 24x24"),
    "mtcnn-onet": Entry(
        "mtcnn", "onet", "face detection cascade, third net: box and points on 48x48"
    ),
    "patch32": Entry(
        "patch32", "patch32", "classifier of 32-channel patches, as MatConvNet displays it"
    ),
    "googlenet": Entry(
        "googlenet", "googlenet", "Inception v1 as torchvision has it: batch norm, no 5x5"
    ),
    "googlenet-caffe": Entry(
        "googlenet", "googlenet_caffe", "Inception v1 as Caffe has it: LRN and 5x5"
    ),
    "resnet18": Entry("resnet", "resnet18", "ResNet of 8 basic blocks"),
    "resnet34": Entry("resnet", "resnet34", "ResNet of 16 basic blocks"),
    "resnet50": Entry("resnet", "resnet50", "ResNet of 16 bottlenecks, stride in the 3x3"),
    "resnet101": Entry("resnet", "resnet101", "ResNet of 33 bottlenecks, stride in the 3x3"),
    "resnet152": Entry("resnet", "resnet152", "ResNet of 50 bottlenecks, stride in the 3x3"),
    "resnet50-v1": Entry(
        "resnet", "resnet50_v1", "ResNet-50 of the paper: stride in the first 1x1"
    ),
}
