"""Models of torchvision and timm by name, with the shapes of their default inputs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from layerscope.errors import MissingExtra, MissingOperator, UnknownName
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.model_names.building import build
from layerscope.formats.torch.model_names.torchvision_operators import declare_operators
from layerscope.graph.types import Shape

if TYPE_CHECKING:
    from torch.nn import Module
    from torchvision.models.detection.transform import GeneralizedRCNNTransform

IMAGE: Shape = (1, 3, 224, 224)
FRAMES: Shape = (1, 3, 512, 512)  # each of the two inputs of an optical flow network
CLIP = 16  # frames of a video
SLOW_TO_INITIALISE = ("googlenet", "inception_v3")  # their random weights are skipped
RANDOM_NOTE = (
    "what a detector finds depends on its weights and on the image: the layers behind its "
    "proposals are those of random weights (seed 0) and a blank image"
)


def torchvision_models(torch: ModuleType) -> ModuleType:
    """Import torchvision.models, also of a torchvision without its compiled operators."""
    declare_operators(torch)
    try:
        return importlib.import_module("torchvision.models")
    except ImportError:
        raise MissingExtra("a torchvision model", "torchvision") from None


def names_of(package: str) -> list[str]:
    """The names of all models of torchvision or timm, sorted."""
    models = torchvision_models(the_torch())
    if package == "torchvision":
        return sorted(models.list_models())
    return sorted(timm_package().list_models())


def torchvision_model(name: str) -> tuple[Module, Mapping[str, Shape], bool]:
    """The model, the shapes of its inputs, and whether it is a detector."""
    models = torchvision_models(the_torch())
    names = models.list_models()
    if name not in names:
        raise UnknownName("torchvision model", name, names)
    builder = models.get_model_builder(name)
    options: dict[str, bool | None] = {"weights": None}
    if "weights_backbone" in inspect.signature(builder).parameters:
        options["weights_backbone"] = None
    if name in SLOW_TO_INITIALISE:
        options["init_weights"] = False
    if name == "googlenet":
        options["aux_logits"] = False
    detects = name in models.list_models(module=models.detection)
    # A detector selects proposals by their scores, which need real weights.
    model = build(lambda: builder(**options), meta=not detects)
    if detects:
        return model, {"": (1, 3, *_detector_size(model.transform))}, True
    frames = [each for each in inspect.signature(model.forward).parameters if "image" in each]
    if len(frames) == 2:
        return model, dict.fromkeys(frames, FRAMES), False
    return model, {"": _default_image(models, name, model)}, False


def _detector_size(transform: GeneralizedRCNNTransform) -> tuple[int, int]:
    """Height and width that a detector resizes images to: such an image is not resized."""
    if transform.fixed_size:
        width, height = transform.fixed_size
        return height, width
    side = transform.min_size[-1]
    return side, side


def _default_image(models: ModuleType, name: str, model: Module) -> Shape:
    """The image size of the model, else the size its published weights are evaluated at."""
    built = getattr(model, "image_size", None)
    if isinstance(built, int):
        return (1, 3, built, built)
    try:
        weights = models.get_model_weights(name).DEFAULT
    except (ValueError, AttributeError):
        return IMAGE
    transforms = weights.transforms()
    size = getattr(transforms, "crop_size", None) or getattr(transforms, "resize_size", None)
    sizes = [size] if isinstance(size, int) else list(size or IMAGE[2:])
    sides = (sizes * 2)[:2] if len(sizes) == 1 else sizes[:2]
    if type(transforms).__name__ == "VideoClassification":
        return (1, 3, CLIP, *sides)
    return (1, 3, *sides)


def timm_package() -> ModuleType:
    """The package timm."""
    try:
        return importlib.import_module("timm")
    except ImportError:
        raise MissingExtra("a timm model", "timm") from None


def timm_model(name: str) -> tuple[Module, Mapping[str, Shape]]:
    """The model and the shape of its input."""
    torchvision_models(the_torch())
    timm = timm_package()
    names = timm.list_models()
    if name.partition(".")[0] not in names:
        raise UnknownName("timm model", name, names)
    model = build(lambda: timm.create_model(name, pretrained=False))
    sizes = (getattr(model, "default_cfg", None) or {}).get("input_size", IMAGE[1:])
    return model, {"": (1, *sizes)}


MISSING = re.compile(r"torchvision::(\w+)|'torchvision' object has no attribute '(\w+)'")
NO_LIBRARY = "load custom C++ ops"  # torchvision's error in a build without its operators


def missing_operator(spec: str, error: BaseException | None) -> MissingOperator | None:
    """Return the error for an operator missing from torchvision, if that is the cause."""
    while error is not None:
        text = str(error)
        found = MISSING.search(text)
        if found and ("Could not run" in text or found[2]):
            return MissingOperator(spec, "torchvision", found[1] or found[2])
        if NO_LIBRARY in text:
            return MissingOperator(spec, "torchvision", _called(error))
        error = error.__cause__
    return None


def _called(error: BaseException) -> str:
    """The function of torchvision.ops that raised because its operator is missing."""
    trace, name = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        inside = "torchvision/ops" in code.co_filename.replace("\\", "/")
        if inside and not code.co_name.startswith("_"):
            name = code.co_name
        trace = trace.tb_next
    return name or "nms"
