"""A small protobuf writer, and Caffe's binary networks made with it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Value = int | float | str | bytes


def varint(value: int) -> bytes:
    """The shortest varint; a negative number takes ten bytes, as int64 does."""
    value %= 1 << 64
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def field(number: int, *values: Value) -> bytes:
    """A field once for every value: varints, float32, or bytes with their length."""
    made = b""
    for value in values:
        if isinstance(value, int):
            made += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            made += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            payload = value.encode() if isinstance(value, str) else value
            made += varint(number << 3 | 2) + varint(len(payload)) + payload
    return made


def dims(*sizes: int) -> bytes:
    """A BlobShape, packed as Caffe writes it."""
    return field(1, b"".join(map(varint, sizes)))


def count(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def blob(*sizes: int) -> bytes:
    """A BlobProto full of zeros."""
    return field(7, dims(*sizes)) + field(5, bytes(4 * count(sizes)))


def old_blob(*sizes: int) -> bytes:
    """A BlobProto as it was before shapes: four sizes."""
    four = (1,) * (4 - len(sizes)) + sizes
    named = b"".join(field(n, size) for n, size in enumerate(four, 1))
    return named + field(5, bytes(4 * count(sizes)))


def layer(name: str, kind: str, bottoms: str, tops: str, *more: bytes) -> bytes:
    """A LayerParameter in its field of the net; `more` are fields, `bottoms` names with spaces."""
    made = field(1, name) + field(2, kind) + field(3, *bottoms.split()) + field(4, *tops.split())
    return field(100, made + b"".join(more))


def old_layer(name: str, kind: int, bottoms: str, tops: str, *more: bytes) -> bytes:
    """A V1LayerParameter in its field of the net."""
    made = field(2, *bottoms.split()) + field(3, *tops.split()) + field(4, name) + field(5, kind)
    return field(2, made + b"".join(more))


def conv(channels: int, kernel: int, number: int = 106, *more: bytes) -> bytes:
    """A convolution_param."""
    return field(number, field(1, channels) + field(4, kernel) + b"".join(more))


def lenet() -> bytes:
    """LeNet with its weights: 431,080 parameters."""
    return (
        field(1, "LeNet")
        + layer("data", "Input", "", "data", field(143, field(1, dims(64, 1, 28, 28))))
        + layer("conv1", "Convolution", "data", "conv1", conv(20, 5), blobs((20, 1, 5, 5), (20,)))
        + layer("pool1", "Pooling", "conv1", "pool1", pool(2, 2))
        + layer("conv2", "Convolution", "pool1", "conv2", conv(50, 5), blobs((50, 20, 5, 5), (50,)))
        + layer("pool2", "Pooling", "conv2", "pool2", pool(2, 2))
        + layer("ip1", "InnerProduct", "pool2", "ip1", linear(500), blobs((500, 800), (500,)))
        + layer("relu1", "ReLU", "ip1", "ip1")
        + layer("ip2", "InnerProduct", "ip1", "ip2", linear(10), blobs((10, 500), (10,)))
        + layer("prob", "Softmax", "ip2", "prob")
    )


def old_lenet() -> bytes:
    """The same as a file of 2014: enum types, four sizes a blob, input_dim."""
    return (
        field(1, "LeNet")
        + old_layer("conv1", 4, "data", "conv1", conv(20, 5, 10), old((20, 1, 5, 5), (20,)))
        + old_layer("pool1", 17, "conv1", "pool1", pool(2, 2, 19))
        + old_layer("conv2", 4, "pool1", "conv2", conv(50, 5, 10), old((50, 20, 5, 5), (50,)))
        + old_layer("pool2", 17, "conv2", "pool2", pool(2, 2, 19))
        + old_layer("ip1", 14, "pool2", "ip1", linear(500, 17), old((500, 800), (500,)))
        + old_layer("relu1", 18, "ip1", "ip1")
        + old_layer("ip2", 14, "ip1", "ip2", linear(10, 17), old((10, 500), (10,)))
        + old_layer("prob", 20, "ip2", "prob")
        + field(3, "data")
        + field(4, 64, 1, 28, 28)
    )


def pool(kernel: int, stride: int, number: int = 121) -> bytes:
    return field(number, field(1, 0) + field(2, kernel) + field(3, stride))


def linear(features: int, number: int = 117) -> bytes:
    return field(number, field(1, features))


def blobs(*shapes: tuple[int, ...]) -> bytes:
    return b"".join(field(7, blob(*shape)) for shape in shapes)


def old(*shapes: tuple[int, ...]) -> bytes:
    return b"".join(field(6, old_blob(*shape)) for shape in shapes)
