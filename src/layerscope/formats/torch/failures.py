"""Exceptions of a model's forward: of its own type and ours, with the module they come from."""

from __future__ import annotations

import re
from contextlib import suppress
from types import MemberDescriptorType
from typing import Any

from layerscope.errors import ModelError
from layerscope.formats.torch.lowering import Refused

# What PyTorch says where Python asks a tensor without numbers for some, and no operator is called.
LACKS_NUMBERS = re.compile(
    r"\bmeta\b|unallocated storage|Tensor\.__format__|do not have strides|fake impl"
    r"|unsupported scalarType",
    re.IGNORECASE,
)
AUTOGRAD = re.compile(r"nference tensor|does not require grad|requires_grad")
NAMES = {
    "tolist": "Tensor.tolist", "to numpy": "Tensor.numpy", "__format__": "Tensor.__format__",
    "strides": "a sparse layout", "Sparse": "a sparse layout", "dlpack": "torch.from_dlpack",
    "scalarType": "torch.autocast of the device of a tensor",
}  # fmt: skip


def model_error(error: Exception, where: str) -> ModelError:
    """A ModelError that is of the model's exception type as well, where Python allows it.

    The text begins with that of the exception; arguments, attributes and traceback are its own.
    """
    kind = type(error)
    if kind is Refused:  # what PyTorch says itself where it has numbers
        error = RuntimeError(*error.args).with_traceback(error.__traceback__)
        kind = RuntimeError
    text = f"{str(error) or kind.__name__}; {where}"
    made = None if isinstance(error, ModelError) else _of_both(error, kind)
    if made is None:
        made = ModelError(text)
        made.__cause__ = error
    else:
        made.__cause__, made.__context__ = error.__cause__, error.__context__
        made.__suppress_context__ = error.__suppress_context__
    made.text, made.raised = text, kind.__name__
    return made.with_traceback(error.__traceback__)


def _of_both(error: Exception, kind: type[Exception]) -> ModelError | None:
    own = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__reduce__": _reduce}
    try:
        both = type(kind.__name__, (ModelError, kind), own)
        made: ModelError = kind.__new__(both, *error.args)
    except TypeError:  # a layout, metaclass or constructor of its own
        return None
    made.args = error.args
    made.__dict__.update(vars(error))
    for base in kind.__mro__:
        for name, slot in vars(base).items():
            if isinstance(slot, MemberDescriptorType):
                with suppress(AttributeError, TypeError):
                    setattr(made, name, getattr(error, name))
    return made


def _reduce(self: ModelError) -> tuple[Any, ...]:
    """Pickled as a plain ModelError: the class was made for one exception."""
    return _plain, (str(self), self.raised)


def _plain(text: str, raised: str) -> ModelError:
    made = ModelError(text)
    made.text, made.raised = text, raised
    return made


def lack_of_numbers(error: Exception) -> str:
    """What asked for numbers where a run without any failed for that alone; "" if it did not."""
    text = str(error).rpartition("; in ")[0] or str(error)
    text = text.replace("device='meta'", "")  # of a tensor that the model's own message prints
    if not LACKS_NUMBERS.search(text):
        return ""
    first = text.strip().splitlines()[0]
    for part, name in NAMES.items():
        if part in first:
            return f"{name} ({first})"
    return first


def needs_autograd(error: Exception) -> bool:
    """Whether a forward failed because it computes gradients itself."""
    return AUTOGRAD.search(str(error)) is not None
