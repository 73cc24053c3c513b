"""Attributes of Caffe's recurrent layers."""

from __future__ import annotations

from msgspec import Struct


class Unrolled(Struct, frozen=True, gc=False):
    """Caffe's recurrent layers over T x N x features, and sequence continuation markers T x N.

    With `static` a third input, N x features, is an input of every step.
    """

    hidden: int
    static: bool = False
