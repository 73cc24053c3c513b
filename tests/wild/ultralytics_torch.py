"""ultralytics: every architecture file in its two smallest scales."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.wild.compare_torch import Built


def names() -> list[str]:
    """Names of architectures with a scale, as ultralytics writes them: `yolov8n-seg.yaml`."""
    import ultralytics
    import yaml

    folder = Path(ultralytics.__file__).parent / "cfg" / "models"
    found = []
    for path in sorted(folder.rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        if "TorchVision" in text:  # a backbone whose weights are downloaded
            continue
        scales = list(yaml.safe_load(text).get("scales", "-"))
        found += [f"{path.relative_to(folder)} {scale}" for scale in scales[:2]]
    return found


def build(name: str) -> Built:
    """A model on an image."""
    import ultralytics
    import yaml

    file, scale = name.split()
    path = Path(ultralytics.__file__).parent / "cfg" / "models" / file
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config.update({"yaml_file": str(path), "scale": "" if scale == "-" else scale, "channels": 3})
    model = _class(config)(config, ch=3, verbose=False)
    return Built(model, (torch.zeros(1, 3, 128, 128),))


def _class(config: dict[str, Any]) -> Any:
    """The class whose head the architecture ends with."""
    from ultralytics.nn import tasks

    kinds = {
        "Classify": "ClassificationModel", "Segment": "SegmentationModel",
        "Segment26": "SegmentationModel", "Pose": "PoseModel", "Pose26": "PoseModel",
        "OBB": "OBBModel", "OBB26": "OBBModel", "RTDETRDecoder": "RTDETRDetectionModel",
        "WorldDetect": "WorldModel", "YOLOEDetect": "YOLOEModel", "YOLOESegment": "YOLOESegModel",
        "YOLOESegment26": "YOLOESegModel",
    }  # fmt: skip
    return getattr(tasks, kinds.get(config["head"][-1][2], "DetectionModel"))
