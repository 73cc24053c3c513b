"""The zoo against figures that others published, without any file beside the repository."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import pytest

from layerscope import Graph, Report, analyze
from layerscope.report.types import Layer
from layerscope.zoo import mnasnet, mobilenet, regnet, resnet
from tests.analysis import test_burden as burden
from tests.analysis import test_receptive_field as slim
from tests.zoo.published import FIGURES, Figure
from tests.zoo.test_zoo_convolutional import PAPERS_X
from tests.zoo.test_zoo_papers import XLARGE, norm_channels

# Networks under the names that the sources give them, where the zoo has them under another name or
# makes them with other numbers.
NETWORKS: dict[str, Callable[[], str | Graph]] = {
    "mnasnet_050": lambda: "mnasnet0_5",
    "mnasnet_075": lambda: "mnasnet0_75",
    "mnasnet_100": lambda: "mnasnet1_0",
    "mnasnet_140": lambda: mnasnet.network("x", 1.4),
    "mobilenetv1_100": lambda: "mobilenet_v1",
    "mobilenetv1_125": lambda: mobilenet.mobilenet_v1("x", 1.25),
    "mobilenetv2_035": lambda: mobilenet.mobilenet_v2("x", 0.35),
    "mobilenetv2_050": lambda: mobilenet.mobilenet_v2("x", 0.5),
    "mobilenetv2_100": lambda: "mobilenet_v2",
    "mobilenetv2_140": lambda: mobilenet.mobilenet_v2("x", 1.4),
    "mobilenetv3_small_100": lambda: "mobilenet_v3_small",
    "tf_mobilenetv3_large_100": lambda: "mobilenet_v3_large",
    "tf_efficientnet_b1": lambda: "efficientnet_b1",
    "tf_efficientnet_b6": lambda: "efficientnet_b6",
    "tf_efficientnetv2_m": lambda: "efficientnet_v2_m",
    "tf_efficientnetv2_l": lambda: "efficientnet_v2_l",
    "regnetx_004": lambda: regnet.network("x", PAPERS_X),
    "regnety_004": lambda: "regnet_y_400mf",
    "resnext101_32x4d": lambda: resnet.network("x", resnet.grouped(32, 4), (3, 4, 23, 3)),
    "resnext101_64x4d": lambda: resnet.network("x", resnet.grouped(64, 4), (3, 4, 23, 3)),
    "ResNet-101": lambda: burden.resnet_v1(3, 4, 23, 3),
    "ResNet-152": lambda: burden.resnet_v1(3, 8, 36, 3),
    "convnext_xlarge": lambda: XLARGE,
}


def network(name: str) -> str | Graph:
    family, _, width = name.partition("-")
    if family in ("MobileNetV1", "MobileNetV2"):
        make = mobilenet.mobilenet_v1 if family.endswith("1") else mobilenet.mobilenet_v2
        return make("x", float(width))
    return NETWORKS[name]() if name in NETWORKS else name


def shape(text: str) -> tuple[int, ...]:
    """`224` is 1x3x224x224 without the batch; two sizes are those of a text."""
    sizes = tuple(map(int, text.split("x")))
    return (3, *sizes, *sizes) if len(sizes) == 1 else sizes


@cache
def report(name: str, size: str, like: str = "exact") -> Report:
    return analyze(network(name), input=shape(size), like=like)


class Subject(NamedTuple):
    """What a figure is of."""

    network: str
    input: str
    layer: str

    def report(self, like: str = "exact") -> Report:
        return report(self.network, self.input, like)

    def row(self, like: str = "exact") -> Layer:
        return self.report(like).by_name[self.layer]


def macs(of: Subject) -> int:
    return of.row().ops.mac if of.layer else of.report().totals.macs


def params(of: Subject) -> int:
    return of.report().totals.params


def stored_for_1001_classes(of: Subject) -> int:
    width = float(of.network.partition("-")[2])
    return params(of) + norm_channels(of.report()) + int(1024 * width) + 1


def macs_where(keep: Callable[[Layer], bool]) -> Callable[[Subject], int]:
    return lambda of: sum(layer.ops.mac for layer in of.report().layers if keep(layer))


def pooled(of: Subject) -> int:
    """Additions of the last average pool."""
    return of.report().by_name["avgpool"].inputs[0].elements


def netscope(kind: str) -> Callable[[Subject], int]:
    def count(of: Subject) -> int:
        totals = of.report("netscope").totals
        ops = (of.row("netscope") if of.layer else totals).convention_kinds
        return int(getattr(ops, kind))

    return count


def netscope_activations(of: Subject) -> int:
    counted = of.row("netscope") if of.layer else of.report("netscope").totals
    return counted.convention_activations


def netscope_params(of: Subject) -> int:
    return (of.row("netscope") if of.layer else of.report("netscope").totals).params


def moved_bytes(of: Subject) -> int:
    """Of one convolution, or of all: Boda fuses what is between them."""
    layers = [of.row()] if of.layer else of.report().layers
    return sum(layer.moved_bytes for layer in layers if layer.op == "conv")


def gemm(side: str) -> Callable[[Subject], int]:
    return lambda of: int(getattr(of.row().gemm, side))


def field(of: Subject) -> int:
    found = of.row().field
    assert found is not None
    assert len(set(found.size)) == 1
    assert isinstance(found.size[0], int)
    return found.size[0]


def field_stride(of: Subject) -> Fraction:
    found = of.row().field
    assert found is not None
    return Fraction(found.stride[0] or 0)


def field_centre(of: Subject) -> Fraction:
    """Of the first position, counted from 0."""
    found = of.row().field
    assert found is not None
    assert found.offset[0] is not None
    return Fraction(found.offset[0])


def slim_flops(of: Subject) -> int:
    fused = of.network.startswith("resnet")
    return sum(slim.profiled(x, fused=fused) for x in slim.reached(of.report(), of.layer))


def burden_layers(of: Subject) -> list[Layer]:
    return list(burden.report(of.network, of.input, True).layers)


def burden_params(of: Subject) -> int:
    return burden.report(of.network, of.input, True).totals.param_bytes


def cs231n(what: str) -> Callable[[Subject], int]:
    def count(of: Subject) -> int:
        counted = of.row("cs231n") if of.layer else of.report("cs231n").totals
        return int(getattr(counted, what))

    return count


def timm(of: Subject) -> int:
    """As the convention counts, but squeezes are means in timm, which it does not count."""
    counted = of.report("timm")
    kinds = ("adaptive_avg_pool", "global_avg_pool")
    pools = [layer.inputs[0].elements for layer in counted.layers if layer.op in kinds]
    return (counted.totals.convention_ops or 0) - sum(pools[:-1])


def without_norms(of: Subject) -> int:
    return params(of) - 2 * norm_channels(of.report())


Count = Callable[[Subject], int | Fraction]
M, G = 10**6, 10**9
# Column of a table -> unit, count. Columns that end in _cut are cut, all others are rounded.
QUANTITIES: dict[str, tuple[int, Count]] = {
    "params": (1, params),
    "Mparams": (M, params),
    "Gparams": (G, params),
    "Mparams_cut": (M, params),
    "Mparams_without_norms": (M, without_norms),
    "Mparams_without_norms_cut": (M, without_norms),
    "Mparams_with_statistics": (M, lambda of: params(of) + 2 * norm_channels(of.report())),
    "Mparams_stored": (M, stored_for_1001_classes),
    "GMACs": (G, macs),
    "GMACs_cut": (G, macs),
    "MMACs": (M, macs),
    "MMACs_cut": (M, macs),
    "MMACs_with_pool": (M, lambda of: macs(of) + pooled(of)),
    "GMACs_without_shortcuts": (G, macs_where(lambda layer: "downsample" not in layer.name)),
    "GMACs_of_convolutions": (G, macs_where(lambda layer: layer.op == "conv")),
    "FLOPs_of_products": (1, lambda of: 2 * macs(of)),
    "timm_GMACs": (G, timm),
    "timm_Mactivations": (M, lambda of: of.report("timm").totals.convention_activations),
    "field": (1, field),
    "stride": (1, field_stride),
    "padding": (1, lambda of: Fraction(field(of) - 1, 2) - field_centre(of)),
    "slim_GFLOPs": (G, slim_flops),
    "param_MB": (2**20, burden_params),
    "feature_MB": (2**20, lambda of: burden.features(burden_layers(of))),
    "burden_MFLOPs": (M, lambda of: burden.operations(burden_layers(of))),
    "burden_GFLOPs": (G, lambda of: burden.operations(burden_layers(of))),
    "macc": (1, netscope("mac")),
    **{kind: (1, netscope(kind)) for kind in ("comp", "add", "div", "exp")},
    "activation": (1, netscope_activations),
    "param": (1, netscope_params),
    "boda_MF": (M, lambda of: 2 * macs(of)),
    "boda_GF": (G, lambda of: 2 * macs(of)),
    "boda_MB": (M, moved_bytes),
    "boda_AI": (1, lambda of: Fraction(2 * macs(of), moved_bytes(of))),
    **{side: (1, gemm(side.lower())) for side in "MNK"},
    "cs231n_elements": (1, cs231n("convention_activations")),
    "cs231n_weights": (1, cs231n("params")),
    "cs231n_Melements": (M, cs231n("convention_activations")),
    "cs231n_Mweights": (M, cs231n("params")),
    "matconvnet_stride": (1, field_stride),
    "matconvnet_offset": (1, lambda of: field_centre(of) + 1),
    "matconvnet_data_KB": (1024, lambda of: 4 * of.row("matconvnet").convention_activations),
}


def ours(figure: Figure) -> str:
    """Our figure with as many decimals as the published one."""
    unit, count = QUANTITIES[figure.quantity]
    exact = Fraction(count(Subject(figure.network, figure.input, figure.layer)), unit)
    way = ROUND_DOWN if figure.quantity.endswith("_cut") else ROUND_HALF_EVEN
    last = Decimal(1).scaleb(-len(figure.stated.partition(".")[2]))
    value = Decimal(exact.numerator) / Decimal(exact.denominator)
    return str(value.quantize(last, rounding=way))


@pytest.mark.parametrize("figure", FIGURES, ids=str)
def test_the_published_figure(figure: Figure) -> None:
    assert ours(figure) == figure.stated, figure.source


def test_at_least_300_figures_are_compared() -> None:
    """Each constant once, each equal to ours, none equal when its last digit is another."""
    compared = {figure[:-1] for figure in FIGURES if ours(figure) == figure.stated}
    assert len(compared) == len(FIGURES) >= 300
    assert {figure.quantity for figure in FIGURES} == set(QUANTITIES)
    assert len({figure.source for figure in FIGURES}) >= 12


def test_a_wrong_digit_is_found() -> None:
    for figure in FIGURES[::25]:
        digit = "1" if figure.stated[-1] != "1" else "2"
        wrong = figure._replace(stated=figure.stated[:-1] + digit)
        assert ours(wrong) != wrong.stated
