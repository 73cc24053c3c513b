"""TF-Slim forms, with SAME padding and the names of their end points."""

from __future__ import annotations

from layerscope.zoo.entry import Entry


def _mobilenet(hundredths: int) -> tuple[str, Entry]:
    name = "mobilenet_v1-slim" if hundredths == 100 else f"mobilenet_v1_{hundredths:03}-slim"
    says = f"MobileNet v1 of TF-Slim, {hundredths}% of its channels"
    return name, Entry("slim.mobilenet", "mobilenet_v1", says, (name, hundredths))


def _resnet(version: int, depth: int) -> tuple[str, Entry]:
    name = f"resnet_v{version}_{depth}-slim"
    norm = "after" if version == 1 else "before"
    says = f"ResNet-{depth} v{version} of TF-Slim: batch norm {norm} convolutions"
    return name, Entry("slim.resnet", "resnet", says, (version, depth))


def _inception_v2(name: str, says: str, separable: bool) -> tuple[str, Entry]:
    return name, Entry("slim.inception_v2", "inception_v2", says, (name, separable))


SLIM: dict[str, Entry] = dict((
    ("alexnet_v2-slim", Entry("slim.alexnet", "alexnet_v2", "AlexNet of 2014 as TF-Slim has it")),
    _inception_v2("inception_v2-slim", "Inception v2 of TF-Slim: separable first window", True),
    _inception_v2(
        "inception_v2-no-separable-conv-slim", "Inception v2 of TF-Slim: plain first window", False
    ),
    ("inception_v3-slim", Entry("slim.inception_v3", "inception_v3", "Inception v3 of TF-Slim")),
    ("inception_v4-slim", Entry("slim.inception_v4", "inception_v4", "Inception v4 of TF-Slim")),
    *(_mobilenet(hundredths) for hundredths in (100, 75, 50, 25)),
    *(_resnet(version, depth) for version in (1, 2) for depth in (50, 101, 152, 200)),
))  # fmt: skip
