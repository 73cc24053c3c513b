"""All exceptions that layerscope raises, each with its exit code on the command line.

LayerscopeError                 3
├── UsageError                  2   an invalid argument
│   ├── UnknownName             2   no such network, column or form; suggests close names
│   └── OutputError             2   the result cannot be written to its file
├── InputError                  3   a file or network that cannot be read
│   ├── FormatError             3   a file is invalid; the message has the position
│   │   └── NoTable             3   a document without a table of layers
│   ├── GraphError              3   an invalid graph: names, order, missing tensors
│   ├── ShapeError              3   shapes do not agree, or a window does not fit
│   ├── ModelError              3   a live model that raises when it runs; names module and shapes
│   ├── CannotLower             3   a network that cannot be written as ONNX; names op and node
│   └── EngineError             3   an engine refuses a network, or fails in a layer
├── MissingExtra                4   an optional dependency is needed; the message is the pip command
├── MissingPage                 4   the report page is not built
├── MissingOperator             4   a package is built without an operator that a model calls
├── StrictError                 1   --strict, and something is unknown
├── OverBudget                  1   a figure is above its limit, or is unknown
└── WrongCells                  1   an audit has findings
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self


class TextSpan(NamedTuple):
    """Where the value of an error is in its text, from 1, and a text that would mend it."""

    line: int
    column: int
    length: int = 0
    fix: str | None = None


class LayerscopeError(Exception):
    """An error that the user can act on, with a message of one line."""

    exit_code = 3

    @property
    def line(self) -> str:
        """The line that the command line prints."""
        return str(self)


class UsageError(LayerscopeError):
    """An invalid argument."""

    exit_code = 2


class UnknownName(UsageError):
    """A name that does not exist; the message suggests the closest names."""

    def __init__(self, kind: str, name: str, names: Iterable[str], hint: str = "") -> None:
        from difflib import get_close_matches

        near = get_close_matches(str(name).lower(), list(names), n=3, cutoff=0.6)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"unknown {kind} {name!r}{meant}{hint if not near else ''}")
        self.name = name
        self.near = near


class OutputError(UsageError):
    """The result cannot be written to its file."""


class InputError(LayerscopeError):
    """A file or network that cannot be read."""


class FormatError(InputError):
    """An invalid file: `file:line:column: found, expected`; in a text, `span` is the value."""

    span: TextSpan | None = None

    @classmethod
    def at(cls, name: str, span: TextSpan, what: str) -> Self:
        """The error of a value of a text with that name."""
        error = cls(f"{name}:{span.line}:{span.column}: {what}")
        error.span = span
        return error


class NoTable(FormatError):
    """A document in which no table of layers is recognised."""


class GraphError(InputError):
    """A graph with an invalid structure."""


class ShapeError(InputError):
    """Shapes that do not agree, or a window that does not fit its input."""

    node = ""  # its name, where the shapes are those of a node


class ModelError(InputError):
    """A live model whose forward raises: the message, the module, and the shapes of its inputs.

    The error is also an instance of the type of the model's own exception.
    """

    text = ""  # the message, where `args` are those of the model's own exception
    raised = ""  # the type of the model's own exception

    def __str__(self) -> str:
        return self.text or super().__str__()

    @property
    def line(self) -> str:
        """The line that the command line prints."""
        return f"{self.raised}: {self}" if self.raised else str(self)


class CannotLower(InputError):
    """A network that cannot be written as ONNX, the form that engines run."""


class EngineError(InputError):
    """An engine refuses a network, or fails while it runs."""


class MissingExtra(LayerscopeError):
    """An optional dependency is needed."""

    exit_code = 4

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'layerscope[{extra}]'")


class MissingPage(LayerscopeError):
    """The report page, which `report` fills with data, is not built."""

    exit_code = 4


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
    """A figure is unknown and the caller asked for `--strict`."""

    exit_code = 1


class OverBudget(LayerscopeError):
    """A figure of a network is above its budget, or is unknown."""

    exit_code = 1


class WrongCells(LayerscopeError):
    """An audit of a document has findings."""

    exit_code = 1
