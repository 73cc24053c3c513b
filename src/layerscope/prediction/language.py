"""Times of steps of language models on machines, by rates fitted to published speeds.

A layer takes the time of its bytes at a share of the bandwidth and of its operations at a share of
the peak, and something for each product; never less than its floor.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from msgspec import Struct

from layerscope.engines.accelerators import ACCELERATORS, Accelerator
from layerscope.llm.work import Step, Work
from layerscope.prediction.language_rates import FAMILIES, SpeedRates
from layerscope.report.generation import LayerStep, Roof

MICRO_BATCH = 512  # tokens that runtimes compute at once, reading the weights anew
MICRO = 1e-6
NO_FLASH = ("datacenter", "geforce", "workstation")  # families whose speeds are of May 2024
# Tensor cores of Hopper reach their peak by wgmma. Kernels of llama.cpp use mma.sync, which all
# generations have and which reaches this share of it (arXiv 2402.13499).
HOPPER, HOPPER_SHARE = ("h100", "h100-pcie", "h200"), 0.63


class SpeedLimits(Struct, frozen=True):
    """What of a data sheet bounds a step."""

    bytes_s: float
    flops_s: float  # of half precision, as far as kernels reach it
    most_flops_s: float  # of any dtype: quantized weights may be multiplied as integers
    is_quantized: bool = False  # products with weights of less than 16 bits


def limits_of(sheet: Accelerator, weight_bits: float) -> SpeedLimits:
    """The limits for weights of so many bits."""
    most = max(sheet.tflops.values())
    peak = max(sheet.tflops.get(each, 0.0) for each in ("fp16", "bf16")) or most
    if any(sheet is ACCELERATORS[name] for name in HOPPER):
        peak *= HOPPER_SHARE
    return SpeedLimits(sheet.gb_s * 1e9, peak * 1e12, most * 1e12, weight_bits < 16)


def rates_of(sheet: Accelerator) -> SpeedRates:
    """The rates of a machine's family; those of workstation cards for a family without speeds."""
    return FAMILIES.get(sheet.family, FAMILIES["workstation"])


def passes(step: Step, micro_batch: int = MICRO_BATCH) -> int:
    """How often a step reads the weights."""
    return ceil(step.all_tokens / micro_batch)


def amounts(work: Work, step: Step, limits: SpeedLimits, reads: int) -> tuple[float, ...]:
    """Seconds at the limits, in the order of the fields of `SpeedRates`.

    llama.cpp replays a step of one token as a CUDA graph, and launches the kernels of a batch one
    by one. Products of a prompt first convert their inputs, and weights that are not multiplied as
    they are stored.
    """
    dense = (work.flops - work.expert_flops) / limits.flops_s
    experts = work.expert_flops / limits.flops_s
    half, quantized = (0.0, dense) if limits.is_quantized else (dense, 0.0)
    return (
        reads * work.weight_bytes / limits.bytes_s,
        reads * work.cache_bytes / limits.bytes_s,
        half,
        quantized,
        experts,
        work.attention_flops / limits.flops_s,
        reads * work.products * MICRO,
        reads * work.products * MICRO if step.tokens == 1 and step.batch > 1 else 0.0,
        reads * work.products * MICRO if step.tokens > 1 else 0.0,
    )


def floor_of(work: Work, limits: SpeedLimits) -> tuple[float, Roof]:
    """The least seconds of a layer, and what sets them: memory or compute."""
    memory = (work.least_weight_bytes + work.cache_bytes) / limits.bytes_s
    compute = (work.flops + work.attention_flops) / limits.most_flops_s
    return (memory, "memory") if memory >= compute else (compute, "compute")


def step_times(
    works: Iterable[Work], step: Step, limits: SpeedLimits, rates: SpeedRates
) -> tuple[LayerStep, ...]:
    """The time of each layer."""
    found, reads = [], passes(step)
    for work in works:
        seconds = sum(
            rate * amount
            for rate, amount in zip(rates.values(), amounts(work, step, limits, reads), strict=True)
        )
        floor, roof = floor_of(work, limits)
        found.append(LayerStep(work.name, work.kind, max(seconds, floor), floor, roof))
    return tuple(found)
