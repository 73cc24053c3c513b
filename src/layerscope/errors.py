"""Every error layerscope raises on purpose, each with the exit code the command line gives it.

LayerscopeError                 3
├── UsageError                  2   an argument that cannot be meant
│   ├── UnknownName             2   no such network, column or form; says what is near
│   └── OutputError             2   the result cannot be written where it was asked for
├── InputError                  3   a file or network that cannot be read
│   ├── FormatError             3   a file is not what it should be; says where
│   ├── GraphError              3   the structure is broken: names, order, missing tensors
│   ├── ShapeError              3   shapes do not agree, or a window does not fit
│   ├── ModelError              3   a live model that raises when it runs; names module and shapes
│   ├── CannotLower             3   a network that has no form an engine runs; names op and node
│   └── EngineError             3   an engine refuses a network, or fails in a layer
├── MissingExtra                4   an optional dependency is needed; the message is the pip command
├── MissingOperator             4   a package is built without an operator that a model calls
├── StrictError                 1   --strict, and something is unknown
└── OverBudget                  1   a figure exceeds its limit, or is unknown
"""

from __future__ import annotations

from collections.abc import Iterable


class LayerscopeError(Exception):
    """Anything that went wrong in a way the user can act on, told in one line."""

    exit_code = 3

    @property
    def line(self) -> str:
        """What the command line prints."""
        return str(self)


class UsageError(LayerscopeError):
    """An argument that cannot be meant."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that is not in a table; the message offers the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        from difflib import get_close_matches

        near = get_close_matches(name.lower(), list(known), n=3, cutoff=0.6)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}{meant}{hint if not near else ''}")
        self.name = name
        self.near = near


class OutputError(UsageError):
    """The result cannot be written where it was asked for."""


class InputError(LayerscopeError):
    """A file or network that cannot be read."""


class FormatError(InputError):
    """A file that is not what it should be: `file:line:column: found, expected`."""


class GraphError(InputError):
    """A graph whose structure is broken."""


class ShapeError(InputError):
    """Shapes that do not agree, or a window that does not fit its input."""


class ModelError(InputError):
    """A live model whose forward fails: what it said, the module, and what that was given.

    Where the model raised an exception, the error is also of that exception's type.
    """

    text = ""  # all of it, where the arguments are those of the model's own exception
    raised = ""  # the type of the model's own exception

    def __str__(self) -> str:
        return self.text or super().__str__()

    @property
    def line(self) -> str:
        """What the command line prints."""
        return f"{self.raised}: {self}" if self.raised else str(self)


class CannotLower(InputError):
    """A network that cannot be written in a form that an engine runs."""


class EngineError(InputError):
    """An engine refuses a network, or fails while it runs."""


class MissingExtra(LayerscopeError):
    """An optional dependency is needed."""

    exit_code = 4

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'layerscope[{extra}]'")


class MissingOperator(LayerscopeError):
    """A package is installed without a compiled operator that a model calls."""

    exit_code = 4

    def __init__(self, model: str, package: str, operator: str) -> None:
        super().__init__(
            f"{model}: this {package} has no compiled operator {package}::{operator}, which the "
            f"model calls; install a {package} that is built for this PyTorch: "
            f"pip install --force-reinstall {package}"
        )


class StrictError(LayerscopeError):
    """Something is unknown and the caller asked for none of it."""

    exit_code = 1


class OverBudget(LayerscopeError):
    """A network exceeds a limit, or what is limited is not wholly known."""

    exit_code = 1
