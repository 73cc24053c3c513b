"""Models of torchvision and timm by name, with the inputs that they usually take."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from layerscope.errors import LayerscopeError, MissingExtra, MissingOperator, UnknownName
from layerscope.formats.torch.capture import the_torch
from layerscope.graph.types import Shape

IMAGE: Shape = (1, 3, 224, 224)
FRAMES: Shape = (1, 3, 512, 512)  # each of the two that an optical flow network takes
CLIP = 16  # frames of a video
INITIALISED = ("googlenet", "inception_v3")  # slow to fill with random weights
RANDOM = (
    "what a detector finds depends on its weights and on the image: the layers behind its "
    "proposals are those of random weights (seed 0) and a blank image"
)


def build(
    make: Callable[[], Any],
    *,
    meta: bool = True,
    guard: Callable[[bool], AbstractContextManager[object]] = nullcontext,
) -> Any:
    """A model in eval mode, on the meta device unless it cannot be built or run there.

    Random weights are those of seed 0; the random state of the process stays as it was. `guard` is
    entered around each attempt, and is given whether that allocates weights.
    """
    torch = the_torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if not meta:
            return make().eval()
        try:
            with guard(False), torch.device("meta"):
                return make().eval()
        except LayerscopeError:
            raise
        except Exception:
            with guard(True):
                return make().eval()


def torchvision_models(torch: Any) -> Any:
    """Models of torchvision; a build without its own operators is given their names first."""
    try:
        torch.ops.torchvision.nms  # noqa: B018
    except (AttributeError, RuntimeError):
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)
    try:
        return importlib.import_module("torchvision.models")
    except ImportError:
        raise MissingExtra("a torchvision model", "torchvision") from None


_KEPT: list[Any] = []  # names of operators live as long as what declared them


def torchvision_model(name: str) -> tuple[Any, Mapping[str, Shape], bool]:
    """The model, the shapes of its inputs, and whether it is a detector."""
    models = torchvision_models(the_torch())
    known = models.list_models()
    if name not in known:
        raise UnknownName("torchvision model", name, known)
    builder = models.get_model_builder(name)
    options: dict[str, Any] = {"weights": None}
    if "weights_backbone" in inspect.signature(builder).parameters:
        options["weights_backbone"] = None
    if name in INITIALISED:
        options["init_weights"] = False
    if name == "googlenet":
        options["aux_logits"] = False
    detects = name in models.list_models(module=models.detection)
    # A detector chooses its proposals by their scores: it needs numbers.
    model = build(lambda: builder(**options), meta=not detects)
    if detects:
        return model, {"": (1, 3, *_detected_size(model.transform))}, True
    frames = [each for each in inspect.signature(model.forward).parameters if "image" in each]
    if len(frames) == 2:
        return model, dict.fromkeys(frames, FRAMES), False
    return model, {"": _usual_image(models, name, model)}, False


def _detected_size(transform: Any) -> tuple[int, int]:
    """The size that a detector resizes images to: a square image is then taken as it is."""
    if transform.fixed_size:
        width, height = transform.fixed_size
        return height, width
    side = transform.min_size[-1]
    return side, side


def _usual_image(models: Any, name: str, model: Any) -> Shape:
    """The size that the model was built for, else the one its weights are evaluated at."""
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


def timm_model(name: str) -> tuple[Any, Mapping[str, Shape]]:
    """The model and the shape of its input."""
    torchvision_models(the_torch())
    try:
        timm = importlib.import_module("timm")
    except ImportError:
        raise MissingExtra("a timm model", "timm") from None
    known = timm.list_models()
    if name.partition(".")[0] not in known:
        raise UnknownName("timm model", name, known)
    model = build(lambda: timm.create_model(name, pretrained=False))
    sizes = (getattr(model, "default_cfg", None) or {}).get("input_size", IMAGE[1:])
    return model, {"": (1, *sizes)}


MISSING = re.compile(r"torchvision::(\w+)|'torchvision' object has no attribute '(\w+)'")
NO_LIBRARY = "load custom C++ ops"  # what torchvision says of a build without its operators


def missing_operator(spec: str, error: BaseException | None) -> MissingOperator | None:
    """The error for an operator that this build of torchvision lacks, if that is the cause."""
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
    """The function of torchvision.ops that found its operator missing."""
    trace, name = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        inside = "torchvision/ops" in code.co_filename.replace("\\", "/")
        if inside and not code.co_name.startswith("_"):
            name = code.co_name
        trace = trace.tb_next
    return name or "nms"
