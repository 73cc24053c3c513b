"""Type aliases for annotations. PyTorch is not imported: that takes a second.

Functions that need PyTorch take the module as an argument. Its classes (`Tensor`, `nn.Module`,
`OpOverload`) are imported under `TYPE_CHECKING` where a signature names them.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

Torch = ModuleType  # the module `torch`
Arg = Any  # an argument of an operator or a forward: tensor, number, dtype, list of these …
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Result = Any  # what an operator or a forward returns: a tensor, or a nest of tensors
Attrs = dict[str, Any]  # the `__dict__` of a module
Key = tuple[Any, ...]  # a hashable description of the arguments of a call
Dispatch = Callable[[Any, Args, Kwargs], Result]  # handles one call: operator, args, kwargs
Rule = Callable[..., Any]  # a cost function of the user's: shapes in, operation counts out
