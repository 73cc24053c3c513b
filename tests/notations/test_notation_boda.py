"""Boda's account against its document and the exact integers, and on other networks."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from fractions import Fraction
from math import prod
from pathlib import Path

import pytest

from layerscope import Builder, Graph, Report, analyze
from layerscope.errors import UnknownName, UsageError
from layerscope.notations import write
from layerscope.notations.boda import si_text
from tests.networks import waves

NETWORKS: dict[str, str | Callable[[], Graph]] = {
    "resnet50": "resnet50",
    "googlenet": "googlenet",
    "waves": waves,
}


def account(name: str) -> Report:
    network = NETWORKS.get(name, name)
    return analyze(network if isinstance(network, str) else network(), like="boda")


def document(shared: Path) -> list[str]:
    (path,) = (shared / "seeds").glob("004_*")
    return path.read_text(encoding="utf-8").splitlines()


def test_layers_are_document_004(shared: Path) -> None:
    """24 lines; what follows `---` in the document was measured."""
    theirs = [line for line in document(shared) if " input " in line or " FWD " in line]
    layers = [line.split("  ---  ")[0] for line in theirs if "TOTALS" not in line]
    ours = write(analyze("nin-nopad", batch=5, like="boda"), "boda", parts=("info", "layers"))
    assert len(layers) == 24
    assert ours.splitlines() == layers


def test_totals_are_document_004(shared: Path) -> None:
    """Rates, energy and the inputs RUNTIME and POWER need a run, and are left out."""
    text = document(shared)
    start = next(n for n, line in enumerate(text) if line.startswith('-- "data"'))
    theirs = text[start : text.index("PROFILE:")]
    assert theirs.pop() == "1.59J 7.91GF/s/W"
    theirs = [re.sub(r" \S+(F|B)/s\b", "", line) for line in theirs]
    assert theirs[-2:] == ["12.6GF", "99.2MB AI=127F/B"]
    ours = write(analyze("nin-nopad", batch=5, like="boda"), "boda", parts=("totals",))
    assert ours.splitlines() == theirs


def test_figures_are_the_exact_integers(shared: Path) -> None:
    path = shared / "truth" / "boda" / "nin_imagenet_nopad.csv"
    with path.open(encoding="utf-8") as file:
        *rows, total = csv.DictReader(file)
    layers = analyze("nin-nopad", batch=5, like="boda").by_name
    for row in rows:
        layer = layers[row["name"]]
        gemm = layer.gemm
        assert gemm is not None
        assert (gemm.m, gemm.n, gemm.k) == tuple(int(row[axis]) for axis in "MNK")
        assert layer.convention_ops == int(row["flops_2_per_mac"])
        assert layer.moved_bytes == int(row["forward_bytes_with_bias"])
    report = analyze("nin-nopad", batch=5, like="boda")
    assert report.totals.convention_ops == int(total["flops_2_per_mac"])


@pytest.mark.parametrize("name", NETWORKS)
def test_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"boda/{name}.txt", write(account(name), "boda"))


@pytest.mark.parametrize("name", [*NETWORKS, "alexnet-caffe"])
def test_totals_add_up(name: str) -> None:
    """Sizes and matrix products are printed in full, so the totals follow from them exactly."""
    text = write(account(name), "boda")
    sums: dict[str, int] = {}
    for what, sizes, printed in re.findall(r" (input|filts|out) ([\d*]+)=(\S+)", text):
        held = 4 * prod(map(int, sizes.split("*")))
        assert printed == f"{si_text(held)}B"
        sums[what] = sums.get(what, 0) + held
    names = {"input": "input", "filts": "filt", "out": "output"}
    for what, held in sums.items():
        assert f"fwd_{names[what]}_bytes={si_text(held)}B" in text
    products = re.findall(r"MxNxK=(\d+)x(\d+)x(\d+)(?: x(\d+))?\n", text)
    flops = sum(2 * prod(int(size or 1) for size in product) for product in products)
    assert f"\n{si_text(flops)}F\n" in text
    biases = sum(
        param.bytes
        for layer in account(name).layers
        if layer.op in ("conv", "linear")
        for param in layer.cost.params
        if param.role == "bias"
    )
    moved = sum(sums.values()) + biases
    assert text.endswith(f"\n{si_text(moved)}B AI={si_text(Fraction(flops, moved))}F/B\n")


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0"),
        (1, "1.00"),
        (999, "999"),
        (1000, "1.00K"),
        (9_994, "9.99K"),
        (9_996, "10.00K"),  # scaled first, then rounded, as Boda does it
        (99_960, "100.0K"),
        (999_499, "999K"),
        (999_600, "1000K"),
        (1_000_000, "1.00M"),
        (1_125_000, "1.12M"),  # a half goes to the even digit
        (1_135_000, "1.14M"),
        (12_563_440_960, "12.6G"),
        (10**21, "1000000P"),
        (Fraction(1, 2), "500m"),
        (Fraction(465, 10**6), "465u"),
        (Fraction(61034, 1000), "61.0"),
    ],
)
def test_number_text(value: int | Fraction, text: str) -> None:
    assert si_text(value) == text


def mixed() -> Graph:
    """A grouped, a transposed and a linear layer."""
    b = Builder("mixed")
    x = b.conv(b.input("data", (1, 8, 16, 16)), 16, 3, padding=1, groups=4, bias=False, name="cut")
    x = b.conv_transpose(x, 4, 2, stride=2, bias=False, name="up")
    return b.build(b.linear(x, 10, flatten=True, bias=False, name="fc"))


def test_other_layers() -> None:
    text = write(analyze(mixed(), like="boda"), "boda", parts="info,layers")
    assert text.splitlines() == [
        "cut input 1*8*16*16=8.19KB filts 16*2*3*3=1.15KB out 1*16*16*16=16.4KB",
        "cut FWD 147KF 25.7KB  FWD_AI 5.73F/B  MxNxK=256x4x18 x4",
        "up input 1*16*16*16=16.4KB filts 4*16*2*2=1.02KB out 1*4*32*32=16.4KB",
        "up FWD 131KF 33.8KB  FWD_AI 3.88F/B  MxNxK=256x16x16",
        "fc input 1*4096*1*1=16.4KB filts 10*4096*1*1=164KB out 1*10*1*1=40.0B",
        "fc FWD 81.9KF 180KB  FWD_AI 454mF/B  MxNxK=1x10x4096",
    ]


def test_bytes_are_of_the_number_type() -> None:
    text = write(analyze(mixed(), dtype="fp16", like="boda"), "boda", parts=("info",))
    assert text.startswith("cut input 1*8*16*16=4.10KB filts 16*2*3*3=576B out 1*16*16*16=8.19KB\n")


def test_unknown_layers_are_marked() -> None:
    b = Builder("odd")
    x = b.conv(b.input("data", (1, 3, 8, 8)), 4, 3, name="conv")
    x = b.add_node("mystery", (x,), name="what")[0]
    text = write(analyze(b.build(b.conv(x, 4, 3, name="after")), like="boda"), "boda")
    assert "after input ? filts ? out ?\nafter FWD ? ?  FWD_AI ?  MxNxK=?\n" in text
    assert "fwd_input_bytes=768B+? " in text
    assert "\n7.78KF+?\n" in text


def test_parts() -> None:
    report = account("waves")
    assert write(report, "boda", parts=("totals",)).startswith('-- "data" node dims:  1*2*400=')
    with pytest.raises(UnknownName, match="did you mean layers"):
        write(report, "boda", parts=("layer",))
    for part in ("profile", "timers"):
        with pytest.raises(UsageError, match="needs a measured run"):
            write(report, "boda", parts=("layers", part))
