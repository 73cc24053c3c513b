"""Exceptions of a model's forward: raised as both their own type and ModelError."""

from __future__ import annotations

import re
from contextlib import suppress
from types import MemberDescriptorType

from layerscope.errors import ModelError
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.lowering import Refused
from layerscope.formats.torch.torch_types import Arg, Torch
from layerscope.graph.types import Shape

# What PyTorch says where Python code reads values of a meta tensor without calling an operator.
LACKS_VALUES = re.compile(
    r"\bmeta\b|unallocated storage|Tensor\.__format__|do not have strides|fake impl"
    r"|unsupported scalarType",
    re.IGNORECASE,
)
AUTOGRAD = re.compile(r"nference tensor|does not require grad|requires_grad|use forward AD")
NAMES = {
    "tolist": "Tensor.tolist", "to numpy": "Tensor.numpy", "__format__": "Tensor.__format__",
    "strides": "a sparse layout", "Sparse": "a sparse layout", "dlpack": "torch.from_dlpack",
    "scalarType": "torch.autocast of the device of a tensor",
}  # fmt: skip


def forward_error(error: Exception, where: str) -> ModelError:
    """An exception of a forward as a subclass of both its type and ModelError, if Python allows it.

    The text begins with that of the exception. Arguments, attributes and traceback are the same.
    """
    kind = type(error)
    if kind is Refused:  # on real tensors PyTorch raises a RuntimeError
        error = RuntimeError(*error.args).with_traceback(error.__traceback__)
        kind = RuntimeError
    text = f"{str(error) or kind.__name__}; {where}"
    new = None if isinstance(error, ModelError) else _of_both(error, kind)
    if new is None:
        new = ModelError(text)
        new.__cause__ = error
    else:
        new.__cause__, new.__context__ = error.__cause__, error.__context__
        new.__suppress_context__ = error.__suppress_context__
    new.text, new.raised = text, kind.__name__
    return new.with_traceback(error.__traceback__)


def _of_both(error: Exception, kind: type[Exception]) -> ModelError | None:
    own = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__reduce__": _reduce}
    try:
        both = type(kind.__name__, (ModelError, kind), own)
        new: ModelError = kind.__new__(both, *error.args)
    except TypeError:  # a layout, metaclass or constructor of its own
        return None
    new.args = error.args
    new.__dict__.update(vars(error))
    for base in kind.__mro__:
        for name, slot in vars(base).items():
            if isinstance(slot, MemberDescriptorType):
                with suppress(AttributeError, TypeError):
                    setattr(new, name, getattr(error, name))
    return new


def _reduce(self: ModelError) -> tuple[object, ...]:
    """Pickle as a plain ModelError: the class exists for this one exception."""
    return _plain, (str(self), self.raised)


def _plain(text: str, raised: str) -> ModelError:
    new = ModelError(text)
    new.text, new.raised = text, raised
    return new


def lack_of_values(error: Exception) -> str:
    """What read values of a meta tensor, if a forward failed for that reason; else ""."""
    text = str(error).rpartition("; in ")[0] or str(error)
    text = text.replace("device='meta'", "")  # of a tensor that the model's own message prints
    if not LACKS_VALUES.search(text):
        return ""
    first = text.strip().splitlines()[0]
    for part, name in NAMES.items():
        if part in first:
            return f"{name} ({first})"
    return first


def reads_array(error: Exception) -> bool:
    """Whether a forward failed because it read a tensor as a list or as a NumPy array."""
    return lack_of_values(error).startswith(("Tensor.tolist", "Tensor.numpy"))


def fuses_script(error: Exception) -> bool:
    """Whether the compiler of TorchScript's first executor refused a script on the meta device."""
    return "for graph fuser" in str(error)


def needs_autograd(error: Exception) -> bool:
    """Whether a forward failed because it computes gradients itself."""
    return AUTOGRAD.search(str(error)) is not None


def shapes_in(arg: Arg, torch: Torch) -> list[tuple[Shape, str]]:
    """Shapes and dtypes of all tensors in a nest of arguments."""
    if isinstance(arg, torch.Tensor):
        return [(tuple(arg.shape), name_of(arg.dtype))]
    if isinstance(arg, dict):
        arg = list(arg.values())
    if isinstance(arg, (list, tuple)):
        return [shape for each in arg for shape in shapes_in(each, torch)]
    return []
