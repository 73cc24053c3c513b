"""Accelerators by their data sheets: dense peaks by dtype, bandwidth, last-level cache.

TFLOP/s are without sparsity. Those of GPUs in fp16 and bf16 are of tensor cores with fp32
accumulation where the sheet states it (GeForce cards do that at half the rate of fp16).
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from layerscope.errors import UnknownName
from layerscope.report.measurement import Level, Machine, Peak, Rate

Family = Literal["geforce", "workstation", "datacenter", "apple", "radeon", "spark", "other"]


class Accelerator(Struct, frozen=True):
    """A data sheet: TFLOP/s (TOP/s of int8) by dtype, GB/s, MB of last-level cache, watts.

    Accelerators keep their power below these watts; processors (`turbo`) exceed them for a while.
    Machines of one `family` run language models at similar shares of their peaks.
    """

    says: str
    tflops: dict[str, float]
    gb_s: float
    cache_mb: float
    watts: int  # 0: not in the data sheet
    turbo: bool = False
    family: Family = "other"


ACCELERATORS = {
    "v100": Accelerator("NVIDIA V100 SXM2 32 GB", {"fp64": 7.8, "fp32": 15.7, "fp16": 125}, 900, 6, 300, family="datacenter"),
    "t4": Accelerator("NVIDIA T4", {"fp32": 8.1, "fp16": 65, "int8": 130}, 320, 4, 70, family="workstation"),
    "a10": Accelerator("NVIDIA A10", {"fp32": 31.2, "tf32": 62.5, "fp16": 125, "bf16": 125, "int8": 250}, 600, 6, 150, family="workstation"),
    "a100": Accelerator("NVIDIA A100 SXM 80 GB", {"fp64": 9.7, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624}, 2039, 40, 400, family="datacenter"),
    "a100-pcie": Accelerator("NVIDIA A100 PCIe 80 GB", {"fp64": 9.7, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624}, 1935, 40, 300, family="datacenter"),
    "a40": Accelerator("NVIDIA A40", {"fp32": 37.4, "tf32": 74.8, "fp16": 149.7, "bf16": 149.7, "int8": 299.3}, 696, 6, 300, family="workstation"),
    "rtx-a6000": Accelerator("NVIDIA RTX A6000", {"fp32": 38.7, "tf32": 77.4, "fp16": 154.8, "bf16": 154.8, "int8": 309.7}, 768, 6, 300, family="workstation"),
    "l4": Accelerator("NVIDIA L4", {"fp32": 30.3, "tf32": 60, "fp16": 121, "bf16": 121, "fp8": 242, "int8": 242}, 300, 48, 72, family="workstation"),
    "l40s": Accelerator("NVIDIA L40S", {"fp32": 91.6, "tf32": 183, "fp16": 362, "bf16": 362, "fp8": 733, "int8": 733}, 864, 96, 350, family="workstation"),
    "rtx4000ada": Accelerator("NVIDIA RTX 4000 Ada", {"fp32": 26.7, "fp16": 106.8, "bf16": 106.8, "fp8": 213.6, "int8": 213.6}, 360, 48, 130, family="workstation"),
    "rtx5000ada": Accelerator("NVIDIA RTX 5000 Ada", {"fp32": 65.3, "fp16": 261.1, "bf16": 261.1, "fp8": 522.1, "int8": 522.1}, 576, 72, 250, family="workstation"),
    "rtx6000ada": Accelerator("NVIDIA RTX 6000 Ada", {"fp32": 91.1, "fp16": 364.2, "bf16": 364.2, "fp8": 728.5, "int8": 728.5}, 960, 96, 300, family="workstation"),
    "h100-pcie": Accelerator("NVIDIA H100 PCIe", {"fp64": 26, "fp32": 51, "tf32": 378, "fp16": 756, "bf16": 756, "fp8": 1513, "int8": 1513}, 2000, 50, 350, family="datacenter"),
    "h100": Accelerator("NVIDIA H100 SXM", {"fp64": 34, "fp32": 67, "tf32": 495, "fp16": 989, "bf16": 989, "fp8": 1979, "int8": 1979}, 3350, 50, 700, family="datacenter"),
    "h200": Accelerator("NVIDIA H200 SXM", {"fp64": 34, "fp32": 67, "tf32": 495, "fp16": 989, "bf16": 989, "fp8": 1979, "int8": 1979}, 4800, 50, 700, family="datacenter"),
    "b200": Accelerator("NVIDIA B200", {"fp64": 37, "fp32": 75, "tf32": 1100, "fp16": 2250, "bf16": 2250, "fp8": 4500, "int8": 4500}, 8000, 126, 1000, family="datacenter"),
    "rtx3070": Accelerator("NVIDIA GeForce RTX 3070", {"fp32": 20.3, "tf32": 20.3, "fp16": 40.6, "bf16": 40.6, "int8": 162.6}, 448, 4, 220, family="geforce"),
    "rtx3080": Accelerator("NVIDIA GeForce RTX 3080 10 GB", {"fp32": 29.8, "tf32": 29.8, "fp16": 59.5, "bf16": 59.5, "int8": 238}, 760, 5, 320, family="geforce"),
    "rtx3080ti": Accelerator("NVIDIA GeForce RTX 3080 Ti", {"fp32": 34.1, "tf32": 34.1, "fp16": 68.2, "bf16": 68.2, "int8": 273}, 912, 6, 350, family="geforce"),
    "rtx3090": Accelerator("NVIDIA GeForce RTX 3090", {"fp32": 35.6, "tf32": 35.6, "fp16": 71, "bf16": 71, "int8": 284}, 936, 6, 350, family="geforce"),
    "rtx4070ti": Accelerator("NVIDIA GeForce RTX 4070 Ti", {"fp32": 40.1, "tf32": 40.1, "fp16": 80.2, "bf16": 80.2, "fp8": 160.4, "int8": 320.7}, 504, 48, 285, family="geforce"),
    "rtx4080": Accelerator("NVIDIA GeForce RTX 4080", {"fp32": 48.7, "tf32": 48.7, "fp16": 97.5, "bf16": 97.5, "fp8": 194.9, "int8": 389.9}, 717, 64, 320, family="geforce"),
    "rtx4090": Accelerator("NVIDIA GeForce RTX 4090", {"fp32": 82.6, "tf32": 82.6, "fp16": 165.2, "bf16": 165.2, "fp8": 330.3, "int8": 660.6}, 1008, 72, 450, family="geforce"),
    "rtx5090": Accelerator("NVIDIA GeForce RTX 5090", {"fp32": 104.8, "tf32": 104.8, "fp16": 209.5, "bf16": 209.5, "fp8": 419, "int8": 838}, 1792, 96, 575, family="geforce"),
    "pro6000maxq": Accelerator("NVIDIA RTX PRO 6000 Blackwell Max-Q", {"fp32": 109.7, "fp16": 438.9, "bf16": 438.9, "fp8": 877.9, "int8": 877.9}, 1792, 128, 300, family="workstation"),
    "gb10": Accelerator("NVIDIA GB10 (DGX Spark)", {"fp32": 31, "fp16": 125, "bf16": 125, "fp8": 250, "int8": 250}, 273, 24, 140, family="spark"),
    "strix-halo": Accelerator("AMD Ryzen AI Max+ 395, its Radeon 8060S", {"fp32": 29.7, "fp16": 59.4, "bf16": 59.4, "int8": 59.4}, 256, 32, 120, family="radeon"),
    "mi250x": Accelerator("AMD Instinct MI250X", {"fp64": 47.9, "fp32": 47.9, "fp16": 383, "bf16": 383, "int8": 383}, 3277, 16, 560, family="datacenter"),
    "mi300x": Accelerator("AMD Instinct MI300X", {"fp64": 81.7, "fp32": 163.4, "fp16": 1307, "bf16": 1307, "fp8": 2615, "int8": 2615}, 5300, 256, 750, family="datacenter"),
    "tpu-v4": Accelerator("Google TPU v4", {"bf16": 275, "int8": 275}, 1228, 128, 192),
    "tpu-v5e": Accelerator("Google TPU v5e", {"bf16": 197, "int8": 394}, 819, 128, 0),
    "tpu-v5p": Accelerator("Google TPU v5p", {"bf16": 459, "int8": 918}, 2765, 112, 0),
    "jetson-orin": Accelerator("NVIDIA Jetson AGX Orin 64 GB", {"fp32": 5.3, "fp16": 42.5, "int8": 85}, 205, 4, 60),
    "m1": Accelerator("Apple M1, its 8-core GPU", {"fp32": 2.6, "fp16": 2.6}, 68, 8, 15, family="apple"),
    "m1-max": Accelerator("Apple M1 Max, its 32-core GPU", {"fp32": 10.4, "fp16": 10.4}, 400, 48, 0, family="apple"),
    "m2-ultra": Accelerator("Apple M2 Ultra, its 76-core GPU", {"fp32": 27.2, "fp16": 27.2}, 800, 96, 0, family="apple"),
    "m3-max": Accelerator("Apple M3 Max, its 40-core GPU", {"fp32": 14.1, "fp16": 14.1}, 400, 48, 0, family="apple"),
    "i9-10940x": Accelerator("Intel Core i9-10940X, 14 cores, AVX-512", {"fp32": 2.9}, 94, 19.25, 165, turbo=True),
    "i7-12700h": Accelerator("Intel Core i7-12700H, 6+8 cores, AVX2", {"fp32": 1.3}, 77, 24, 45, turbo=True),
}  # fmt: skip


def machine_of(name: str) -> Machine:
    """The limits of an accelerator as its data sheet states them."""
    if name not in ACCELERATORS:
        names = ", ".join(ACCELERATORS)
        raise UnknownName("machine", name, ACCELERATORS, f"; known: this, {names}")
    sheet = ACCELERATORS[name]
    peaks = tuple(
        Peak(dtype, 1, Rate(value * 1e12, value * 1e12, 0), "data sheet")
        for dtype, value in sheet.tflops.items()
    )
    dram = Rate(sheet.gb_s * 1e9, sheet.gb_s * 1e9, 0)
    levels = (Level("DRAM", 1, 0, dram),)
    return Machine(sheet.says, 1, peaks, levels, source="data sheet")
