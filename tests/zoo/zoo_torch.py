"""Every model of torchvision and timm against their published figures: run by `make test-zoo`.

Parameters are compared exactly, multiply-adds at the printed precision. timm's are counted as
`--like timm` does. Rows that are not compared are listed with the reason; the exit code tells
whether any of the others differs.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

SHARED = Path(__file__).parents[3] / "shared" / "truth"
Row = dict[str, str]
Adjust = Callable[[Any], tuple[int, int]]  # operations and activations too many, of a report
BATCH = 100


def without(op: str) -> Adjust:
    """The operations of these layers; what they make stays."""
    return lambda report: (
        sum(layer.convention_ops for layer in report.layers if layer.op == op),
        0,
    )


# Rows that differ by something that can be told exactly: it is taken off before they are compared.
# The installed timm and fvcore give our figures of these (2.04 and 22.99 G): the table is older.
NORMS = "its batch norms, published as if folded"
TIMM_EXPLAINED: dict[str, tuple[str, Adjust]] = {
    "tiny_vit_11m_224": (NORMS, without("batch_norm")),
    "tresnet_m_448": (NORMS, without("batch_norm")),
    "tresnet_xl_448": (NORMS, without("batch_norm")),
}


# A quantised model has its norms folded: the factor of a channel is in the weights, and what is
# added stays as the bias of the convolution before. Published are the parameters before that, one
# more for every channel of a norm.
QUANTISED = "one number a channel of a norm, published as if not folded"


# What a detector does behind its proposals depends on what it finds in the image: its figure is
# that of the part before, and of its heads on as many proposals and detections as it may find,
# unless they stand here. Detectors of the first generation were trained with norms that stand
# still, whose two numbers a channel are then no parameters.
FOUND = {
    "FasterRCNN_MobileNet_V3_Large_320_FPN_Weights.COCO_V1": (0, 0),
    "FasterRCNN_MobileNet_V3_Large_FPN_Weights.COCO_V1": (0, 0),
    "KeypointRCNN_ResNet50_FPN_Weights.COCO_V1": (1000, 1),
    "MaskRCNN_ResNet50_FPN_V2_Weights.COCO_V1": (1000, 100),
}
DETECTORS = "their heads on as many proposals as they keep, or as their published figure is of"
PAIR = (1, 3, 512, 512)  # of both frames: the size that gives the figures of both RAFT networks


def detector_row(row: Row) -> str:
    import layerscope
    from layerscope.formats.torch.capture import capture, the_torch
    from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models
    from layerscope.formats.torch.module_table import ModuleTable
    from tests.formats.torch.torch_nets import DetectorParts

    torch = the_torch()
    home = torchvision_models(torch).detection
    with torch.device("meta"):
        model = getattr(home, row["builder"])(weights=None, weights_backbone=None)
    table = ModuleTable(torch, model, {}).params
    params = sum(t.numel() for t in table.tensors.values() if id(t) not in table.buffers)
    if not row["builder"].startswith("ssd") and not row["builder"].endswith("_v2"):
        norms = [n for n in model.backbone.modules() if isinstance(n, torch.nn.BatchNorm2d)]
        params -= sum(2 * norm.num_features for norm in norms)
    found = []
    if params != int(row["num_params"]):
        found.append(f"params {params:,}, published {int(row['num_params']):,}")
    parts = DetectorParts(model.eval(), *FOUND.get(row["weights"], ()))
    x = torch.empty(1, 3, parts.side, parts.side, device="meta")
    report = layerscope.analyze(capture(parts, (x,)))
    macs = f"{report.total_macs / 1e9:.3f}"
    if macs != f"{float(row['gmacs_called_ops']):.3f}":
        found.append(f"GMACs {macs}, published {row['gmacs_called_ops']}")
    if report.coverage.unknown:
        found.append(str(report.coverage))
    return "; ".join(found)


def published(name: str) -> list[Row]:
    with open(SHARED / f"{name}.csv", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def torchvision_row(row: Row) -> str:
    """Empty if all figures are the published ones, else what differs."""
    import layerscope
    from layerscope.formats.torch.capture import capture, the_torch
    from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models

    if row["task"] == "detection":
        return detector_row(row)
    torch = the_torch()
    models = torchvision_models(torch)
    name = row["builder"]
    homes = {each: each for each in ("segmentation", "video", "optical_flow")}
    home = getattr(models, homes[row["task"]]) if row["task"] in homes else models
    shape = (
        tuple(map(int, (row["input_confirmed"] or "").split()[0].split("x")))
        if row["input_confirmed"]
        else (1, 3, int(row["eval_crop_size"] or 224), int(row["eval_crop_size"] or 224))
    )
    told: dict[str, Any] = {"weights": None}
    if row["task"] == "segmentation":
        told["weights_backbone"] = None
        if "lraspp" not in name:
            told["aux_loss"] = True
    folded = 0
    if row["task"] == "quantization":
        name, home = name.removeprefix("quantized_"), models.quantization
        told["quantize"] = True
        torch.backends.quantized.engine = row["quant_backend"]
    if name in ("googlenet", "inception_v3"):
        told["init_weights"] = False
    if name == "googlenet":
        told["aux_logits"] = False
    if name.startswith("vit_"):
        told["image_size"] = shape[-1]
    if row["task"] == "quantization":
        with torch.device("meta"):
            whole = getattr(home, name)(**{**told, "quantize": False})
        norms = [each for each in whole.modules() if isinstance(each, torch.nn.BatchNorm2d)]
        folded = sum(each.num_features for each in norms)
        if not norms:
            return "no norms to fold"
    real = name.startswith("regnet") or row["task"] == "quantization"
    with torch.device("cpu" if real else "meta"):
        model = getattr(home, name)(**told).eval()
    given: tuple[Any, ...] = (torch.empty(shape, device="meta"),)
    if row["task"] == "optical_flow":
        given = (torch.empty(PAIR, device="meta"), torch.empty(PAIR, device="meta"))
    graph = capture(model, given)
    report = layerscope.analyze(graph)
    found = []
    if report.total_params + folded != int(row["num_params"]):
        found.append(f"params {report.total_params:,}, published {int(row['num_params']):,}")
        if folded:
            found[-1] += f" with {folded:,} for {len(norms)} norms"
    macs = f"{report.total_macs / 1e9:.3f}"
    if macs != f"{float(row['gmacs_called_ops']):.3f}":
        found.append(f"GMACs {macs}, published {row['gmacs_called_ops']}")
    if report.coverage.unknown:
        found.append(str(report.coverage))
    return "; ".join(found)


def timm_row(row: Row) -> str:
    import layerscope
    from layerscope.formats.torch.capture import capture, the_torch
    from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models

    torch = the_torch()
    torchvision_models(torch)
    import timm

    with torch.device("meta"):
        model = timm.create_model(row["model"], pretrained=False).eval()
    channels = model.default_cfg.get("input_size", (3,))[0]
    side = int(row["img_size"])
    graph = capture(model, (torch.empty(1, channels, side, side, device="meta"),))
    report = layerscope.analyze(graph, like="timm")
    found = []
    params = sum(p.numel() for p in model.parameters())
    if report.total_params != params:
        found.append(f"params {report.total_params:,}, the model's own {params:,}")
    ops, activations = report.totals.convention_ops or 0, report.totals.convention_activations
    if row["model"] in TIMM_EXPLAINED:
        less = TIMM_EXPLAINED[row["model"]][1](report)
        ops, activations = ops - less[0], activations - less[1]
    for what, ours, theirs in (
        ("Mparams", params / 1e6, row["param_count_m"]),
        ("GMACs", ops / 1e9, row["gmacs"]),
        ("macts", activations / 1e6, row["macts"]),
    ):
        if abs(ours - float(theirs)) > 0.00501 + 1e-9:
            found.append(f"{what} {ours:.2f}, published {theirs}")
    if report.coverage.unknown:
        found.append(str(report.coverage))
    return "; ".join(found)


def checked(kind: str, row: Row) -> tuple[str, str, float]:
    warnings.simplefilter("ignore")
    name = row["builder"] if kind == "torchvision" else row["model"]
    start = time.process_time()
    try:
        told = torchvision_row(row) if kind == "torchvision" else timm_row(row)
    except Exception as error:
        told = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return name, told, time.process_time() - start


def reason(kind: str, row: Row) -> str:
    return f"the table says: {row['note']}" if kind == "timm" and row["note"] else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("torchvision", "timm"))
    parser.add_argument("--every", type=int, default=1, help="look at every n-th row only")
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    jobs = []
    aside: dict[str, int] = {}
    for kind in ("torchvision", "timm"):
        for row in published(kind)[:: asked.every] if asked.only in (None, kind) else ():
            why = reason(kind, row)
            if why:
                aside[f"{kind}: {why}"] = aside.get(f"{kind}: {why}", 0) + 1
            else:
                jobs.append((kind, row))
    differing = []
    spent = 0.0
    done = 0
    for start in range(
        0, len(jobs), BATCH
    ):  # new processes now and then: models leave memory behind
        with ProcessPoolExecutor(asked.workers) as pool:
            running = [pool.submit(checked, *job) for job in jobs[start : start + BATCH]]
            for future in as_completed(running):
                name, told, seconds = future.result()
                done += 1
                spent += seconds
                if told:
                    differing.append(f"{name}: {told}")
                    print(f"\r{differing[-1]:<80}", flush=True)
                print(f"\r{done} of {len(jobs)}, {len(differing)} differ", end="", flush=True)
    print(f"\n{len(jobs) - len(differing)} of {len(jobs)} as published, {spent:.0f} CPU s")
    for name, (why, _) in TIMM_EXPLAINED.items():
        print(f"compared without {why}: {name}")
    tasks = [row["task"] for kind, row in jobs if kind == "torchvision"]
    print(f"compared with {QUANTISED}: {tasks.count('quantization')} quantised rows of torchvision")
    print(f"compared by {DETECTORS}: {tasks.count('detection')} detectors of torchvision")
    for why, count in sorted(aside.items()):
        print(f"not compared, {count}: {why}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
