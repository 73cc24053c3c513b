"""Other counters, installed and asked: under their conventions our figures are theirs, exactly.

Run by make test-peers. Where a counter breaks its own rules, both figures stand in DIFFERENT with
the reason.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import pytest
from msgspec.structs import replace

from layerscope.conventions import COUNTERS, convention
from tests.conventions.peers.models import MODULES, NETWORKS, Built, the_torchvision
from tests.conventions.peers.tools import TOOLS, Said, ask

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("ignore"),
]

FUSED = "as installed it skips fused attention; timm publishes figures with attention written out"
PLACES = "parameters of a module in three places are counted once a place, and once more"
NAMED = "LocalResponseNorm calls mul() and add() by name, which looks like * and + afterwards"
SIZE = "interpolate to a size is taken for that size alone, one of a batch and channel"

# (model, tool) -> why, ours, the tool's: params, figure, FLOPs, activations
DIFFERENT: dict[tuple[str, str], tuple[str, Said, Said]] = {
    ("vit_b_16", "timm"): (
        FUSED,
        Said(86_567_656, 17_582_740_224, None, 23_895_544),
        Said(86_567_656, 11_290_036_992, None, 9_229_288),
    ),
    ("attention", "timm"): (
        FUSED,
        Said(4224, 59_136, None, 2352),
        Said(4224, 57_344, None, 1792),
    ),
    ("attention batch first", "timm"): (
        FUSED,
        Said(4224, 63_616, None, 2632),
        Said(4224, 0, None, 0),
    ),
    ("attention with weights batch first", "timm"): (
        FUSED,
        Said(4224, 63_616, None, 2632),
        Said(4224, 0, None, 0),
    ),
    ("encoder layer", "timm"): (
        FUSED,
        Said(8545, 125_440, None, 3976),
        Said(8545, 119_168, None, 3136),
    ),
    ("encoder layer batch first", "timm"): (
        FUSED,
        Said(8545, 125_440, None, 3976),
        Said(8545, 61_824, None, 1344),
    ),
    ("attention function", "timm"): (FUSED, Said(1, 6272, None, 840), Said(1, 0, None, 0)),
    ("linear in three places", "torchinfo"): (PLACES, Said(10_100, 30_300), Said(40_400, 30_300)),
    ("local_response_norm", "ptflops"): (NAMED, Said(1, 200), Said(1, 650)),
    ("local_response_norm", "calflops"): (NAMED, Said(1, 0, 200), Said(1, 0, 650)),
    ("local_response_norm", "deepspeed"): (NAMED, Said(1, 0, 200), Said(1, 0, 650)),
    ("interpolate bilinear", "calflops"): (SIZE, Said(1, 0, 768), Said(1, 0, 144)),
    ("interpolate bilinear", "deepspeed"): (SIZE, Said(1, 0, 1728), Said(1, 0, 144)),
}
TIMM = ("vit_tiny_patch16_224",)


@pytest.fixture(autouse=True)
def _needed(tool: str, name: str) -> None:
    """Skip by name what is not installed."""
    package = TOOLS[tool][0] if tool in TOOLS else tool
    needs = [package]
    if name in NETWORKS:
        needs.append("timm" if name in TIMM else "torchvision")
    if package in ("ptflops", "timm"):
        needs.append("torchvision")
    for need in needs:
        if find_spec(need) is None:
            pytest.skip(f"{need} is not installed")
    return


@lru_cache(maxsize=1)
def built(name: str) -> Built:
    return (NETWORKS.get(name) or MODULES[name])()


@lru_cache(maxsize=1)
def counted(name: str) -> Any:
    from layerscope import analyze

    model, args = built(name)
    return analyze(model.eval(), input_data=args)


def ours(name: str, tool: str, like: Said) -> Said:
    """Our figures under the tool's convention, those that it has."""
    totals = replace(counted(name), convention=convention(tool)).totals
    assert totals.convention_ops is not None
    return Said(
        None if like.params is None else totals.params,
        totals.convention_ops,
        None if like.flops is None else totals.convention_kinds.flops,
        None if like.activations is None else totals.convention_activations,
    )


def compared(name: str, tool: str) -> None:
    model, args = built(name)
    said = ask(tool, model, args)
    found = ours(name, tool, said)
    if (name, tool) in DIFFERENT:
        _, expected, theirs = DIFFERENT[name, tool]
        assert (found, said) == (expected, theirs)
    else:
        assert found == said


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, tool: str) -> None:
    compared(name, tool)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", MODULES)
def test_layers(name: str, tool: str) -> None:
    compared(name, tool)


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", ["resnet18", "swin_t", "vit_b_16"])
def test_reasons_add_up(name: str, tool: str) -> None:
    from layerscope import explain

    found = explain(counted(name), counters=(tool,))
    (said,) = found.opinions
    assert sum(part.count for part in said.parts) == said.macs - found.macs
    assert sum(part.count for part in said.param_parts) == said.params - found.params


TEN = ("resnet18", "resnet50", "mobilenet_v2", "densenet121", "vgg16", "alexnet",
       "efficientnet_b0", "convnext_tiny", "swin_t", "vit_tiny_patch16_224")  # fmt: skip


def told(name: str, tool: str) -> int | None:
    """The real tool's figure; torchvision's is in the metadata of its weights, in G."""
    if tool != "torchvision":
        model, args = built(name)
        return ask(tool, model, args).ops
    if name in TIMM:
        return None
    models = the_torchvision().models
    gmacs = models.get_model_weights(name).DEFAULT.meta["_ops"]
    return round(float(gmacs) * 1000)


@pytest.mark.parametrize("tool", COUNTERS)
@pytest.mark.parametrize("name", TEN)
def test_column_total_drop_in_and_json_are_the_tool_s_figure(name: str, tool: str) -> None:
    import json

    import layerscope

    model, args = built(name)
    report = replace(counted(name), convention=convention(tool))
    figure = report.totals.convention_ops
    assert figure is not None
    said = told(name, tool)
    if tool == "torchvision":
        assert said in (None, round(figure / 1e6))
    else:
        assert figure == said
    word = convention(tool).figure
    rows = report.to_text(columns=("name", "convention_ops"), fold=False).splitlines()
    assert rows[0].split()[-1] == word
    total = next(row for row in rows if row.startswith("total"))
    assert total.split()[-1] == f"{figure:,}"
    flat = report.to_csv(columns=("convention_ops",)).split()[1:]
    assert sum(map(int, flat)) == figure
    document = json.loads(report.to_json())
    assert document["totals"]["convention_ops"] == figure
    assert sum(layer["convention_ops"] or 0 for layer in document["layers"]) == figure
    assert document["stamp"]["figure"] == word
    assert document["totals"]["macs"] == counted(name).totals.macs
    assert (
        layerscope.summary(model, input_data=args, like=tool, verbose=0).total_mult_adds == figure
    )
    assert layerscope.profile(model, args, like=tool)[0] == figure
    analysis = layerscope.FlopCountAnalysis(model, args, like=tool)
    assert analysis.total() == sum(analysis.by_operator().values()) == figure


@pytest.mark.parametrize("tool", ["fvcore", "mmengine"])
@pytest.mark.parametrize("name", ["resnet18", "densenet121", "swin_t"])
def test_figures_of_modules_are_the_tool_s(name: str, tool: str) -> None:
    import layerscope

    if tool == "fvcore":
        from fvcore.nn import FlopCountAnalysis as Analysis
    else:
        from mmengine.analysis import FlopAnalyzer as Analysis

    model, args = built(name)
    theirs = Analysis(model.eval(), tuple(args))
    theirs = theirs.unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    ours = layerscope.FlopCountAnalysis(model, args, like=tool).by_module()
    found = dict(theirs.by_module())
    assert {path: ours[path] for path in found} == found
