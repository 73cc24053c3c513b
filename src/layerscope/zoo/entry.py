"""Entries of the catalogue: the function that builds a network, and one line about it."""

from __future__ import annotations

from msgspec import Struct


class Entry(Struct, frozen=True):
    """The function in a file of this folder that builds a network, and what to call it with."""

    file: str
    function: str
    says: str
    arguments: tuple[object, ...] = ()
    sized: bool = False  # it takes height and width of the image too: its layers depend on them
