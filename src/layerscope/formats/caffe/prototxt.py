"""Caffe's networks as text: deploy and training files, of every generation of the format."""

from __future__ import annotations

import re
from mmap import ACCESS_READ, mmap
from os.path import getsize

from layerscope.codecs.message import Message
from layerscope.codecs.prototxt import parse
from layerscope.errors import FormatError
from layerscope.formats import Options
from layerscope.formats.caffe.caffemodel import stored_blobs
from layerscope.formats.caffe.network import graph_of
from layerscope.graph.types import Graph

MAPPED_BYTES = 1 << 20  # from here on a file is mapped, not read
BLOBS = ("blobs", "blobs_lr", "weight_decay")  # weights in text: never needed
BEGINS = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s++|#[^\n]*+)*+[A-Za-z_]\w*+\s*+[:{<]")
HOLDS = re.compile(rb"^[^#\n]*?\b(?:layers?\s*+:?\s*+[{<\[]|input(?:_dim|_shape)?\s*+[:{<])", re.M)


def recognise(head: bytes) -> bool:
    """Whether a file begins with fields of text, a layer or an input among them."""
    return b"\0" not in head and bool(BEGINS.match(head)) and bool(HOLDS.search(head))


def read(path: str, options: Options) -> Graph:
    """The network that a prototxt describes."""
    stored = stored_blobs(options.weights) if options.weights is not None else None
    return graph_of(message(path), path, options, stored)


def message(path: str) -> Message:
    """The fields of a prototxt, weights left out."""
    try:
        with open(path, "rb") as file:
            if getsize(path) < MAPPED_BYTES:
                return parse(file.read(), path, BLOBS)
            return parse(mmap(file.fileno(), 0, access=ACCESS_READ), path, BLOBS)
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"{path}: {told}") from None
