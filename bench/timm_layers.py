"""Layers of timm's networks as one JSON line a network, for bench/fit_machines.py.

    python bench/timm_layers.py ../shared/truth/timm_speed.csv layers.jsonl

Needs torch and timm; no weights are made. A network that cannot be captured is left out.
"""

from __future__ import annotations

import csv
import sys
from typing import Any

import msgspec

import layerscope
from layerscope.prediction.features import features_of


def record(name: str, size: int) -> dict[str, Any]:
    import torch

    from layerscope.formats.torch.capture import capture
    from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models

    torchvision_models(torch)  # timm imports it, and a build of it without operators fails
    import timm

    with torch.device("meta"), torch.no_grad():
        try:
            model = timm.create_model(name, img_size=size)
        except TypeError:
            model = timm.create_model(name)
        model.eval()
        channels = model.pretrained_cfg["input_size"][0]
        graph = capture(model, (torch.empty(1, channels, size, size),))
    report = layerscope.analyze(graph)
    features = [msgspec.structs.astuple(features_of(layer)) for layer in report.layers]
    return {"model": name, "img_size": size, "layers": features}


def main() -> None:
    speeds, target = sys.argv[1:3]
    with open(speeds, encoding="utf-8") as file:
        wanted = sorted({(row["model"], int(row["img_size"])) for row in csv.DictReader(file)})
    with open(target, "wb") as out:
        for n, (name, size) in enumerate(wanted):
            if n % 100 == 0:
                print(f"{n} of {len(wanted)}", file=sys.stderr)
            try:
                made = record(name, size)
            except Exception as error:
                print(f"{name} {size}: {type(error).__name__}: {error}"[:120], file=sys.stderr)
                continue
            out.write(msgspec.json.encode(made) + b"\n")


if __name__ == "__main__":
    main()
