"""Optional libraries: an error that names the extra where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from layerscope.errors import MissingExtra


def installed(*libraries: str) -> bool:
    """Whether all these libraries can be imported; none is imported by asking."""
    return all(find_spec(library) is not None for library in libraries)


def need(purpose: str, extra: str, *libraries: str) -> None:
    """Raise MissingExtra, which names the extra to install, unless all libraries are installed."""
    if not installed(*libraries):
        raise MissingExtra(purpose, extra)
