"""Exported programs of PyTorch (.pt2), written by torch.export.save; needs no PyTorch.

A .pt2 file is a zip archive with uncompressed members. Only the JSON of the program and of the
weight locations is read; no code is executed.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from layerscope.errors import FormatError, GraphError, UsageError
from layerscope.formats import ReadOptions
from layerscope.formats.documents import check_unique_keys
from layerscope.formats.torch.checkpoints.stored_array import check_name, short
from layerscope.formats.torch.checkpoints.zip_archive import ZipArchive, open_archive
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.export_schema import (
    ExportedProgram,
    Meta,
    Payload,
    Payloads,
    SizeReader,
)
from layerscope.graph.types import Graph, storage_bytes
from layerscope.limits import JSON_BYTES, plain

OLD = "serialized_exported_program.json"
MARKS = (b"/data/weights/", b"/data/constants/", b"archive_format", b"/models/", OLD.encode())
T = TypeVar("T")


def recognise(head: bytes) -> bool:
    """Whether a file is a zip archive that begins with a member of an exported program."""
    if head[:4] != b"PK\x03\x04":
        return False
    name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    return any(mark in name for mark in MARKS) or OLD.encode() in head


def read(path: str, options: ReadOptions) -> Graph:
    """The network of an exported program."""
    from layerscope.formats.torch.exported_program import (
        ProgramReader,
    )  # here, as each reader is asked of each file

    with open_archive(path, "the zip archive that torch.export.save writes") as archive:
        members = archive.members
        program = _decoded(archive, _model(path, list(members)), ExportedProgram)
        configs = [name for name in members if name.endswith("/model_weights_config.json")]
        stored: dict[str, Payload] = {}
        if len(configs) == 1:
            stored = _payloads(archive, configs[0])
    try:
        graph = ProgramReader(path, program.graph_module, stored).graph()
    except RecursionError:
        raise FormatError(f"{path}: graphs in graphs, too deep") from None
    except GraphError as error:
        raise FormatError(f"{path}: {error}") from None
    _same_inputs(path, graph, options)
    return graph


def _model(path: str, names: list[str]) -> str:
    """Name of the member that contains the program."""
    found = [
        name
        for name in names
        if name.rpartition("/")[2] == OLD
        or (name.endswith(".json") and name.rpartition("/")[0].split("/")[-1] == "models")
    ]
    usual = [name for name in found if name.endswith(("models/model.json", OLD))]
    if len(usual) != 1 and len(found) != 1:
        listed = f"programs {', '.join(found[:5])}" if found else "no program"
        raise FormatError(f"{path}: {listed} in it, expected one models/model.json")
    return (usual if len(usual) == 1 else found)[0]


def _decoded(archive: ZipArchive, name: str, kind: type[T]) -> T:
    data = archive.read(name, JSON_BYTES)
    try:
        decoded = msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{archive.path}: {name}: {error}") from None
    check_unique_keys(data, f"{archive.path}: {name}")
    return decoded


def _payloads(archive: ZipArchive, name: str) -> dict[str, Payload]:
    """Locations of the stored arrays; raise if one exceeds its member of the archive."""
    found = _decoded(archive, name, Payloads).config
    folder = name.removesuffix("model_weights_config.json")
    sizes = SizeReader(archive.path)
    for array, payload in found.items():
        where = f"{archive.path}: {short(array)}"
        check_name(archive.path, array)
        member = archive.members.get(f"{folder}{payload.path_name}")
        if payload.tensor_meta is None or member is None or payload.use_pickle:
            continue
        try:
            meta = msgspec.convert(payload.tensor_meta, Meta)
        except msgspec.ValidationError as error:
            raise FormatError(f"{where}: {error}") from None
        tensor = sizes.tensor(array, {array: meta})
        offset = sizes.size(payload.tensor_meta.get("storage_offset", {"as_int": 0}), array)
        last = offset + sum(
            [(size - 1) * step for size, step in zip(tensor.shape, tensor.strides, strict=True)]
        )
        count = storage_bytes(last + 1 if 0 not in tensor.shape else 0, name_of(tensor.dtype))
        if count > member.file_size:
            raise FormatError(
                f"{where}: {plain(count)} bytes in {payload.path_name}, which has "
                f"{member.file_size:,}; is the file cut short?"
            )
    return found


def _same_inputs(path: str, graph: Graph, options: ReadOptions) -> None:
    """Raise for input sizes other than those the program was exported with."""
    if options.dims:
        raise UsageError(f"{path}: an exported program has fixed sizes; export it with others")
    own = {tensor.name: tensor.shape or () for tensor in graph.inputs}
    wanted = {name or graph.inputs[0].name: tuple(s) for name, s in options.inputs.items()}
    for name, shape in wanted.items():
        if name not in own:
            raise UsageError(f"{path}: no input {name}; it has {', '.join(own)}")
        if shape not in (own[name], own[name][1:]):
            raise UsageError(_other(path, name, own[name], "x".join(map(str, shape))))
    first = own[graph.inputs[0].name]
    if options.batch is not None and first[:1] != (options.batch,):
        raise UsageError(_other(path, graph.inputs[0].name, first, f"a batch of {options.batch}"))


def _other(path: str, name: str, own: tuple[int, ...], asked: str) -> str:
    shape = "x".join(map(str, own))
    return f"{path}: exported for {name} of {shape}, not {asked}; export it with other sizes"
