"""Models by name on the command line: `torchvision:resnet50`, `timm:…`, `hf:…`, `file.py:make`.

Models are built on the meta device, where no weight is allocated. One that cannot be built or run
there is built on the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping

from layerscope.errors import LayerscopeError, ModelError
from layerscope.formats.torch.model_names.hugging_face import hugging_face_model
from layerscope.formats.torch.model_names.python_code import default_inputs, python_model
from layerscope.formats.torch.model_names.torchvision_timm import (
    RANDOM_NOTE,
    timm_model,
    torchvision_model,
)
from layerscope.formats.torch.named_model import InputOptions, NamedModel
from layerscope.graph.types import Graph, Shape


def read(spec: str, shapes: Mapping[str, Shape] | None = None, batch: int | None = None) -> Graph:
    """Capture a named model on inputs of these shapes, or on its default inputs."""
    return find(spec).graph(InputOptions(shapes or {}, batch))


def find(spec: str) -> NamedModel:
    """Build the model of that name."""
    try:
        return _find(spec)
    except LayerscopeError:
        raise
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise ModelError(f"{spec}: cannot be built: {what[:400]}") from error


def _find(spec: str) -> NamedModel:
    kind, _, name = spec.partition(":")
    if kind == "torchvision":
        model, shapes, detects = torchvision_model(name)
        return NamedModel(spec, model, shapes, detects, (RANDOM_NOTE,) if detects else ())
    if kind == "timm":
        return NamedModel(spec, *timm_model(name))
    if kind == "hf":
        model, shapes, notes = hugging_face_model(name)
        return NamedModel(spec, model, shapes, notes=notes)
    model, code = python_model(spec)
    return NamedModel(spec, model, default_inputs(model), code=code)
