"""Times of steps of language models: floors hold on every machine, rates grow with the work."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest

from layerscope.engines.accelerators import ACCELERATORS
from layerscope.graph.types import Shape
from layerscope.llm.families import describe
from layerscope.llm.work import Step, Work, layer_works
from layerscope.prediction.language import amounts, limits_of, rates_of, step_times
from layerscope.prediction.language_rates import FAMILIES
from tests.llm.test_work import LLAMA_8B, MIXTRAL

CUDA = ("datacenter", "geforce", "spark", "workstation")
STEPS = (
    Step(tokens=1), Step(tokens=1, past=100_000), Step(tokens=1, past=500, batch=64),
    Step(tokens=7), Step(tokens=4096), Step(tokens=2048, past=8192, batch=4),
)  # fmt: skip


def seconds(
    config: dict[str, object], machine: str, step: Step, bits: float
) -> tuple[float, float]:
    """The time of a step and its floor."""

    def size_of(_part: str, _name: str, shape: Shape) -> float:
        return prod(shape) * bits / 8

    sheet = ACCELERATORS[machine]
    works = layer_works(describe(config), step, size_of, "f16")
    times = step_times(works, step, limits_of(sheet, bits), rates_of(sheet))
    assert all(each.time_s >= each.floor_s >= 0 for each in times)
    return sum(each.time_s for each in times), sum(each.floor_s for each in times)


@pytest.mark.parametrize("machine", ACCELERATORS)
def test_no_time_is_below_its_floor(machine: str) -> None:
    """The floor is that of this test: weights and cache from memory, operations at the peak."""
    sheet = ACCELERATORS[machine]
    dense = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128256
    for step, bits in product(STEPS, (16, 4.5)):
        found, floor = seconds(LLAMA_8B, machine, step, bits)
        read = dense * bits / 8 + 32 * 2 * 1024 * 2 * step.past * step.batch
        flops = 2 * (dense - 4096 * 128256) * step.all_tokens
        assert found >= read / (sheet.gb_s * 1e9)
        assert found >= flops / (max(sheet.tflops.values()) * 1e12)
        assert found >= floor > 0


@pytest.mark.parametrize("machine", ["rtx4090", "h100", "m2-ultra", "strix-halo", "gb10", "l40s"])
def test_more_work_takes_longer(machine: str) -> None:
    for config in (LLAMA_8B, MIXTRAL):
        batches = [
            seconds(config, machine, Step(tokens=1, past=999, batch=b), 16)[0] for b in (1, 8, 99)
        ]
        assert batches == sorted(batches)
        depths = [
            seconds(config, machine, Step(tokens=1, past=d), 16)[0] for d in (0, 1000, 90_000)
        ]
        assert depths == sorted(depths)
        lengths = [seconds(config, machine, Step(tokens=t), 16)[0] for t in (1, 100, 1000, 9000)]
        assert lengths == sorted(lengths)
        assert (
            seconds(config, machine, STEPS[0], 4.5)[0] < seconds(config, machine, STEPS[0], 16)[0]
        )


def test_kernels_of_larger_steps_are_launched_one_by_one() -> None:
    """A step of one token is a CUDA graph; Apple and Radeon have none."""
    work = Work(name="", kind="full", products=7)
    limits = limits_of(ACCELERATORS["gb10"], 16)
    each = pytest.approx(7e-6)
    for step, found in (
        (Step(tokens=1), (each, 0, 0)),
        (Step(tokens=1, batch=2), (each, each, 0)),
        (Step(tokens=2), (each, 0, each)),
    ):
        assert list(amounts(work, step, limits, reads=1)[-3:]) == list(found)
    assert all((rates.launch > 0) == (name in CUDA) for name, rates in FAMILIES.items())


@pytest.mark.parametrize(("machine", "share"), [
    ("h100", 0.63), ("h100-pcie", 0.63), ("h200", 0.63), ("a100", 1), ("rtx4090", 1), ("gb10", 1),
])  # fmt: skip
def test_kernels_reach_a_part_of_the_peak_of_hopper(machine: str, share: float) -> None:
    sheet = ACCELERATORS[machine]
    limits = limits_of(sheet, 16)
    assert limits.flops_s == pytest.approx(share * sheet.tflops["fp16"] * 1e12)
    assert limits.most_flops_s == max(sheet.tflops.values()) * 1e12  # floors stay


def test_roofs_of_layers() -> None:
    """One token is bound by memory, thousands by compute."""
    sheet = ACCELERATORS["h100"]
    for step, roof in ((STEPS[0], "memory"), (STEPS[4], "compute")):
        works = layer_works(describe(LLAMA_8B), step, lambda _p, _n, shape: 2 * prod(shape), "f16")
        times = step_times(works, step, limits_of(sheet, 16), rates_of(sheet))
        assert {each.roof for each in times if each.name.startswith("layers.")} == {roof}
