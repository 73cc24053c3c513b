"""A model that was built by its name, and its graph on inputs of given shapes.

Apart from model_names/, whose modules a network that is given as a module does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import ModelError, UsageError
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.decoding import capture_tokens, check_positions
from layerscope.graph.types import Graph, Shape

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from layerscope.formats.torch.model_names.user_errors import UserCode

IDS = ("input_ids", "decoder_input_ids", "token_ids", "tokens", "ids", "idx")  # inputs of tokens


class InputOptions(Struct, frozen=True):
    """Inputs to run a model on; fields left out keep the model's default inputs."""

    shapes: Mapping[str, Shape] = {}  # by input name; "" is the first input
    batch: int | None = None
    tokens: int | None = None  # in every input of tokens
    decode: int | None = None  # tokens in the cache before a single new one


class NamedModel(Struct, frozen=True):
    """A model found by its name, with the shapes of its default inputs."""

    spec: str
    module: Module
    defaults: Mapping[str, Shape]  # by parameter name; "" is a positional argument
    images: bool = False  # the positional argument is a list of images, C x H x W each
    notes: tuple[str, ...] = ()
    code: UserCode | None = None  # the user's own code that it is built by

    def graph(self, options: InputOptions) -> Graph:
        """Capture the graph of one forward pass."""
        shapes = self._shapes(options)
        for name, shape in shapes.items():
            if self._is_ids(name) and len(shape) == 2:
                check_positions(self.module, shape[1], self.spec)
        tensors = {name: self._tensor(name, shape) for name, shape in shapes.items()}
        args: tuple[object, ...] = ()
        if list(tensors) == [""]:
            only = tensors.pop("")
            args = (list(only),) if self.images else (only,)
        from layerscope.formats.torch.model_names.torchvision_operators import python_operators

        try:
            with python_operators():
                graph = capture_tokens(self.module, args, tensors, options.decode, self.spec)
        except ModelError as error:
            where = "" if self.code is None else self.code.where(error)
            if where:
                error.text = f"{error}, at {where}"
            from layerscope.formats.torch.model_names.torchvision_timm import missing_operator

            missing = missing_operator(self.spec, error)
            if missing is not None:
                raise missing from error
            if options.shapes:
                raise
            listed = ", ".join(
                f"{name or 'input'} {'x'.join(map(str, shape))}" for name, shape in shapes.items()
            )
            error.text = (
                f"{error} — {listed} was a guess; give the shape with --input 1x3x224x224 or "
                "NAME=SHAPE"
            )
            raise
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            if self.code is None:
                raise
            from layerscope.formats.torch.model_names.user_errors import ended_forward

            raise ended_forward(error, self.code) from error
        batch = shapes[""][0] if self.images else 0
        return replace(graph, notes=(*graph.notes, *self.notes), batch=batch)

    def _shapes(self, options: InputOptions) -> dict[str, Shape]:
        """Shapes of all inputs: those in the options, defaults for the others."""
        shapes = dict(self.defaults)
        names = list(shapes)
        for name, shape in options.shapes.items():
            key = name or names[0]
            default = shapes.get(key, shapes.get(""))
            if default is not None and len(shape) == len(default) - 1:
                shape = (default[0], *shape)
            if key not in shapes:
                shapes.pop("", None)
            shapes[key] = tuple(shape)
        if options.batch is not None:
            if options.batch < 1:
                raise UsageError(f"batch {options.batch}, expected at least 1")
            shapes = {name: (options.batch, *shape[1:]) for name, shape in shapes.items()}
        if options.tokens is None:
            return shapes
        if options.tokens < 1:
            raise UsageError(f"{options.tokens} tokens, expected at least 1")
        ids = [name for name, shape in shapes.items() if self._is_ids(name) and len(shape) == 2]
        if not ids:
            raise UsageError(f"{self.spec} takes no tokens: it has no input of int64, N x T")
        return {**shapes, **{name: (shapes[name][0], options.tokens) for name in ids}}

    def _is_ids(self, name: str) -> bool:
        return name in IDS or name.endswith(("_ids", "_mask"))

    def _tensor(self, name: str, shape: Shape) -> Tensor:
        torch = the_torch()
        first = next((p.dtype for p in self.module.parameters() if p.is_floating_point()), None)
        dtype = torch.int64 if self._is_ids(name) else first or torch.float32
        return torch.empty(shape, dtype=dtype, device="meta")
