"""Caffe's networks as text (.prototxt): deploy and training files of every version."""

from __future__ import annotations

import re
from mmap import ACCESS_READ, mmap
from os.path import getsize

from layerscope.codecs.message import Message
from layerscope.codecs.prototxt import parse
from layerscope.codecs.seeking import SEEKS
from layerscope.errors import FormatError
from layerscope.formats import ReadOptions
from layerscope.formats.caffe.caffemodel import stored_blobs
from layerscope.formats.caffe.network import graph_of
from layerscope.graph.types import Graph

MAPPED_BYTES = 1 << 20  # larger files are memory-mapped
BLOBS = ("blobs", "blobs_lr", "weight_decay")  # weights as text, which are not needed
BEGINS = re.compile(rb"\A(?:\xef\xbb\xbf)?(?:\s++|#[^\n]*+)*+[A-Za-z_]\w*+\s*+[:{<]")
HOLDS = re.compile(rb"^[^#\n]*?\b(?:layers?\s*+:?\s*+[{<\[]|input(?:_dim|_shape)?\s*+[:{<])", re.M)


def recognise(head: bytes) -> bool:
    """Whether a file begins with fields in text format, and a layer or an input is among them."""
    return b"\0" not in head and bool(BEGINS.match(head)) and bool(HOLDS.search(head))


def read(path: str, options: ReadOptions) -> Graph:
    """The network of a prototxt, with the weights of `options.weights`."""
    stored = stored_blobs(options.weights) if options.weights is not None else None
    return graph_of(message(path), path, options, stored)


def message(path: str) -> Message:
    """The fields of a prototxt without its weights."""
    try:
        with open(path, "rb") as file:
            if SEEKS or getsize(path) < MAPPED_BYTES:
                return parse(file.read(), path, BLOBS)
            return parse(mmap(file.fileno(), 0, access=ACCESS_READ), path, BLOBS)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise FormatError(f"{path}: {reason}") from None
