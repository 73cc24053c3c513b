"""Files of stored arrays, written by hand: safetensors, GGUF, and pickles opcode by opcode."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from layerscope.graph.block_dtypes import GGML_DTYPES

SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "U8": 1, "I64": 8, "BOOL": 1}
Shapes = Mapping[str, tuple[str, Sequence[int]]]
MAGIC = 0x1950A86A20F9469CFC6C


def entries(arrays: Shapes) -> dict[str, Any]:
    """The header of arrays one after the other."""
    header: dict[str, Any] = {}
    at = 0
    for name, (dtype, shape) in arrays.items():
        end = at + SIZES[dtype] * prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    return header


def raw_safetensors(path: Path, header: str | bytes, data: int = 0) -> str:
    """A file of this header and so many bytes of data."""
    told = header.encode() if isinstance(header, str) else header
    path.write_bytes(struct.pack("<Q", len(told)) + told + bytes(data))
    return str(path)


def safetensors(path: Path, arrays: Shapes) -> str:
    """A file of zeros."""
    header = entries(arrays)
    size = max((entry["data_offsets"][1] for entry in header.values()), default=0)
    return raw_safetensors(path, json.dumps({"__metadata__": {"format": "pt"}, **header}), size)


# Opcodes


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes((value,))
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes((len(data),)) + data


def imported(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def pair(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"t"


def storage(key: str, count: int, kind: str = "FloatStorage", *, legacy: bool = False) -> bytes:
    more = [b"N"] if legacy else []
    named = (text("storage"), imported("torch", kind), text(key), text("cpu"), integer(count))
    return pair(*named, *more) + b"Q"


def tensor(key: str, shape: Sequence[int], legacy: bool = False, **changes: bytes) -> bytes:
    """A tensor that has a storage of its own; `changes` are opcodes in place of its parts."""
    strides = [prod(shape[n + 1 :]) for n in range(len(shape))]
    parts = {
        "storage": storage(key, prod(shape), legacy=legacy), "offset": integer(0),
        "size": pair(*map(integer, shape)), "stride": pair(*map(integer, strides)),
        "grad": b"\x89", "hooks": imported("collections", "OrderedDict") + b")R", **changes,
    }  # fmt: skip
    return imported("torch._utils", "_rebuild_tensor_v2") + pair(*parts.values()) + b"R"


def state_dict(items: Mapping[str, bytes]) -> bytes:
    """Opcodes of a dict, without the STOP."""
    parts = b"".join([text(name) + value for name, value in items.items()])
    return imported("collections", "OrderedDict") + b")R(" + parts + b"u"


def archive(path: Path, program: bytes, storages: Mapping[str, int], **more: Any) -> str:
    """A zip archive as torch.save writes it: the pickle, and storages of so many bytes."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02" + program + b".", **more)
        for key, size in storages.items():
            file.writestr(f"archive/data/{key}", bytes(size))
    return str(path)


def saved(path: Path, shapes: Mapping[str, Sequence[int]]) -> str:
    """A state dict of zeros in fp32."""
    items = {name: tensor(str(n), shape) for n, (name, shape) in enumerate(shapes.items())}
    sizes = {str(n): 4 * prod(shape) for n, shape in enumerate(shapes.values())}
    return archive(path, state_dict(items), sizes)


def legacy(path: Path, shapes: Mapping[str, Sequence[int]]) -> str:
    """The same in the form before PyTorch 1.6."""
    items = {name: tensor(str(n), s, legacy=True) for n, (name, s) in enumerate(shapes.items())}
    keys = b"](" + b"".join(text(str(n)) for n in range(len(shapes))) + b"e"
    info = b"}(" + text("little_endian") + b"\x88u"
    pickles = (integer(MAGIC), integer(1001), info, state_dict(items), keys)
    head = b"".join([b"\x80\x02" + each + b"." for each in pickles])
    stored = [struct.pack("<q", prod(s)) + bytes(4 * prod(s)) for s in shapes.values()]
    path.write_bytes(head + b"".join(stored))
    return str(path)


GGUF_TYPES = {name: (number, block, size) for name, block, size, number in GGML_DTYPES}


def gguf_text(text: str) -> bytes:
    """A text of a GGUF file, after its length."""
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf_value(value: int | str | list[str]) -> bytes:
    """A value of metadata with its type: uint32, text or a list of texts."""
    if isinstance(value, list):
        items = b"".join(map(gguf_text, value))
        return struct.pack("<IIQ", 9, 8, len(value)) + items
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    return struct.pack("<II", 4, value)


def gguf(
    path: Path, arrays: Shapes, metadata: Mapping[str, int | str | list[str]] | None = None
) -> str:
    """Write a GGUF file of version 3 with arrays of zeros; returns its path."""
    metadata = metadata or {}
    pairs = b"".join(gguf_text(key) + gguf_value(value) for key, value in metadata.items())
    infos, position = b"", 0
    for name, (dtype, shape) in arrays.items():
        number, block, size = GGUF_TYPES[dtype]
        axes = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        infos += gguf_text(name) + struct.pack("<I", len(shape)) + axes
        infos += struct.pack("<IQ", number, position)
        position += -(-(prod(shape) // block * size) // 32) * 32
    header = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), len(metadata)) + pairs + infos
    header += bytes(-len(header) % 32)
    path.write_bytes(header + bytes(position))
    return str(path)
