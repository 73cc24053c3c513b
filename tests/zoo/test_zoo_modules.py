"""Convolutional networks since 2015 as PyTorch prints them: classes, arguments, order."""

from __future__ import annotations

from hashlib import sha256

import pytest

from layerscope import analyze
from layerscope.zoo import build

# SHA-256, cut to 64 bits, of what torchvision 0.29.2 with torch 2.13 prints: repr(model()).
# Inception v3 is without its training head.
PRINTED = {
    "inception_v3": "1732f195d92fb119",
    "squeezenet1_0": "8b319b5bfbc68eec",
    "squeezenet1_1": "db09563d9ff04db0",
    "resnext50_32x4d": "d87d3de8a4f26dde",
    "resnext101_32x8d": "8c3edcfc7fd4238c",
    "wide_resnet50_2": "8dfeb5afc91029e6",
    "wide_resnet101_2": "ef25943054748a9d",
    "densenet121": "86b22cc67387a261",
    "densenet161": "dc4f327189dbcb4c",
    "densenet169": "648eb480a9e2f25f",
    "densenet201": "4197f53101994ee8",
    "mobilenet_v2": "e80e6fd178749cf5",
    "mobilenet_v3_small": "2006301fc14c8b5d",
    "mobilenet_v3_large": "07026afe76bac88f",
    "shufflenet_v2_x0_5": "f6064216ec0d8d4a",
    "shufflenet_v2_x1_0": "efdfbc1bf0781d1f",
    "shufflenet_v2_x1_5": "e9e4b348fc5e9255",
    "shufflenet_v2_x2_0": "4493a494d9863bf0",
    "mnasnet0_5": "3ccc87c83bc492f7",
    "mnasnet0_75": "4849fe45bdc0ac5a",
    "mnasnet1_0": "c13d5806b5c4c74f",
    "mnasnet1_3": "bc12edd6bb709e47",
    "efficientnet_b0": "a756298deb234ba9",
    "efficientnet_b1": "e49b85379c3f3c92",
    "efficientnet_b2": "373a28c5538e2d5a",
    "efficientnet_b3": "c71fbe43bd0255bf",
    "efficientnet_b4": "de8b135241e9ea11",
    "efficientnet_b5": "16f85b61294ac559",
    "efficientnet_b6": "9dfbdbf289c4fd03",
    "efficientnet_b7": "e4cc02e6af32f048",
    "efficientnet_v2_s": "2264545f3946dd19",
    "efficientnet_v2_m": "9b47250b3e472132",
    "efficientnet_v2_l": "1fbbb57dfa36f61a",
    "regnet_x_400mf": "2bcfb0f057ea7eb3",
    "regnet_y_400mf": "ba1e9fc1bab23369",
    "convnext_tiny": "a7b04350cb5cbfaf",
    "convnext_small": "3e1ff21dd96af350",
    "convnext_base": "c9b515034bd444c8",
    "convnext_large": "2fdbaac120871d06",
}


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_module_is_torchvisions(name: str) -> None:
    text = analyze(name).to_notation("module").removesuffix("\n")
    assert sha256(text.encode()).hexdigest()[:16] == PRINTED[name]


def test_lines_that_no_op_tells_are_printed() -> None:
    lines = {
        name: [line.strip() for line in analyze(name).to_notation("module").splitlines()]
        for name in ("efficientnet_b0", "convnext_tiny", "shufflenet_v2_x0_5", "mnasnet0_5")
    }
    for name, line in (
        ("efficientnet_b0", "(stochastic_depth): StochasticDepth(p=0.0125, mode=row)"),
        ("efficientnet_b0", "(avgpool): AdaptiveAvgPool2d(output_size=1)"),
        (
            "convnext_tiny",
            "(0): LayerNorm2d((768,), eps=1e-06, elementwise_affine=True, bias=True)",
        ),
        ("convnext_tiny", "(1): Permute()"),
        ("convnext_tiny", "(1): Flatten(start_dim=1, end_dim=-1)"),
        ("shufflenet_v2_x0_5", "(branch1): Sequential()"),
        (
            "mnasnet0_5",
            "(1): BatchNorm2d(16, eps=1e-05, momentum=0.00029999999999996696, affine=True, "
            "bias=True, track_running_stats=True)",
        ),
    ):
        assert line in lines[name]
    squeeze = lines["efficientnet_b0"].index("(1): SqueezeExcitation(")
    parts = [line.split(":")[0] for line in lines["efficientnet_b0"][squeeze + 1 : squeeze + 6]]
    assert parts == ["(avgpool)", "(fc1)", "(fc2)", "(activation)", "(scale_activation)"]


def test_stochastic_depth_runs_only_beside_a_shortcut() -> None:
    graph = build("efficientnet_b0")
    declared = {path for path in graph.modules if path.endswith(".stochastic_depth")}
    run = {node.name for node in graph.nodes if node.op == "identity"}
    assert len(declared) == 16
    assert run < declared
    assert declared - run == {f"features.{n}.0.stochastic_depth" for n in range(1, 8)}
