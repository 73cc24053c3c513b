"""Convolutional networks since 2015."""

from __future__ import annotations

from layerscope.zoo.entry import Entry


def _named(file: str, function: str, says: dict[str, str]) -> dict[str, Entry]:
    """Networks that one function builds by their name."""
    return {name: Entry(file, function, line, (name,)) for name, line in says.items()}


CONVOLUTIONAL: dict[str, Entry] = {
    "inception_v3": Entry(
        "inception",
        "inception_v3",
        "Inception v3 on 299x299: 7x7 windows cut into rows and columns",
    ),
    "squeezenet1_0": Entry(
        "squeezenet", "squeezenet1_0", "SqueezeNet 1.0: fire modules, few weights"
    ),
    "squeezenet1_1": Entry("squeezenet", "squeezenet1_1", "SqueezeNet 1.1: as 1.0 for less work"),
    "resnext50_32x4d": Entry("resnet", "resnext50_32x4d", "ResNeXt-50: 32 groups of 4 channels"),
    "resnext101_32x8d": Entry("resnet", "resnext101_32x8d", "ResNeXt-101: 32 groups of 8 channels"),
    "wide_resnet50_2": Entry("resnet", "wide_resnet50_2", "ResNet-50, bottlenecks twice as wide"),
    "wide_resnet101_2": Entry(
        "resnet", "wide_resnet101_2", "ResNet-101, bottlenecks twice as wide"
    ),
    **_named(
        "densenet",
        "densenet",
        {
            "densenet121": "DenseNet of 58 dense layers that grow by 32 channels",
            "densenet161": "DenseNet of 78 dense layers that grow by 48 channels",
            "densenet169": "DenseNet of 82 dense layers that grow by 32 channels",
            "densenet201": "DenseNet of 98 dense layers that grow by 32 channels",
        },
    ),
    "mobilenet_v1": Entry(
        "mobilenet", "mobilenet_v1", "MobileNet of 2017: depthwise separable convolutions"
    ),
    "mobilenet_v2": Entry(
        "mobilenet", "mobilenet_v2", "MobileNet v2: inverted residuals, linear bottlenecks"
    ),
    **_named(
        "mobilenet",
        "mobilenet_v3",
        {
            "mobilenet_v3_small": "MobileNet v3, small: searched blocks with excitation",
            "mobilenet_v3_large": "MobileNet v3, large: searched blocks with excitation",
        },
    ),
    **_named(
        "shufflenet",
        "shufflenet",
        {
            f"shufflenet_v2_x{size.replace('.', '_')}": f"ShuffleNet v2, {size} times the channels"
            for size in ("0.5", "1.0", "1.5", "2.0")
        },
    ),
    **{
        f"mnasnet{str(width).replace('.', '_')}": Entry(
            "mnasnet",
            "network",
            f"MNASNet B1, {width} times the channels",
            (f"mnasnet{str(width).replace('.', '_')}", width),
        )
        for width in (0.5, 0.75, 1.0, 1.3)
    },
    **_named(
        "efficientnet",
        "efficientnet",
        {
            **{
                f"efficientnet_b{n}": f"EfficientNet B{n} on {size}x{size}"
                for n, size in enumerate((224, 240, 288, 300, 380, 456, 528, 600))
            },
            "efficientnet_v2_s": "EfficientNet V2, small, on 384x384: fused blocks first",
            "efficientnet_v2_m": "EfficientNet V2, medium, on 480x480: fused blocks first",
            "efficientnet_v2_l": "EfficientNet V2, large, on 480x480: fused blocks first",
        },
    ),
    **_named(
        "regnet",
        "regnet",
        {
            "regnet_x_400mf": "RegNet X of about 400 million MACs: groups of 16 channels",
            "regnet_y_400mf": "RegNet Y of about 400 million MACs: groups of 8, excitation",
        },
    ),
    **_named(
        "convnext",
        "convnext",
        {
            "convnext_tiny": "ConvNeXt, tiny: 7x7 depthwise windows, layer norm, 18 blocks",
            "convnext_small": "ConvNeXt, small: 36 blocks of 96 to 768 channels",
            "convnext_base": "ConvNeXt, base: 36 blocks of 128 to 1024 channels",
            "convnext_large": "ConvNeXt, large: 36 blocks of 192 to 1536 channels",
        },
    ),
    "unet": Entry("unet", "unet", "U-Net of 2015: 572x572 in, two classes on 388x388 out"),
}
