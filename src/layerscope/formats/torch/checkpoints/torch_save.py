"""Files of torch.save and torch.jit.save: names and shapes of tensors; no code of theirs is run.

Files of PyTorch 1.6 and later are zip archives with a pickle in them. Older files are a sequence of
pickles (a magic number, a version, system information, the data, the keys of storages), followed
by the storages.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from layerscope.codecs.pickles import PickleValue, TruncatedPickle, load
from layerscope.codecs.seeking import bytes_of
from layerscope.errors import FormatError
from layerscope.formats import ReadOptions
from layerscope.formats.torch.checkpoints.pickled_tensors import TensorUnpickler, collect_arrays
from layerscope.formats.torch.checkpoints.stored_array import StoredArray, check_name, short
from layerscope.formats.torch.checkpoints.zip_archive import ZipArchive, open_archive
from layerscope.formats.torch.weights import NOTE, parameters_only
from layerscope.graph.types import Graph
from layerscope.limits import PICKLE_BYTES, UNPACKED_PICKLE

ZIP = b"PK\x03\x04"
MAGIC = 0x1950A86A20F9469CFC6C  # first pickle of a file before PyTorch 1.6
MAGICS = (MAGIC.to_bytes(10, "little"), str(MAGIC).encode())  # in binary and in text protocols
TAR = b"ustar"  # files before PyTorch 0.1.10 are tar archives
FIRST = ("data.pkl", "constants.pkl", "version", "byteorder", ".format_version", ".data/version")
SCRIPT_NOTE = (
    "a TorchScript archive: parameters only; for operations give what makes the model "
    "(my_file.py:make_model) or export it to .pt2 or .onnx"
)
SAVE = "load it in PyTorch and save its state_dict() as safetensors"
EXPECTED = f"a file of torch.save; {SAVE}"


def recognise(head: bytes) -> bool:
    """Whether a file begins as the zip archives and the pickles of torch.save do."""
    if head[:4] == ZIP:
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")].decode("utf-8", "replace")
        _, slash, own = name.partition("/")
        return bool(slash) and (own in FIRST or own.startswith("code/"))
    return any(magic in head[:40] for magic in MAGICS)


def read(path: str, options: ReadOptions) -> Graph:
    """The tensors of a state dict, a checkpoint or a TorchScript archive."""
    arrays, script = _arrays(path)
    return parameters_only(path, arrays, SCRIPT_NOTE if script else NOTE)


def torch_save_arrays(path: str) -> list[StoredArray]:
    """Names, shapes and dtypes of the tensors in a file of torch.save."""
    return _arrays(path)[0]


def _arrays(path: str) -> tuple[list[StoredArray], bool]:
    """The tensors of a file, and whether it is a TorchScript archive."""
    unpickler = TensorUnpickler(path)
    try:
        with open(path, "rb") as file:
            head = file.read(512)
            if head[:4] == ZIP:
                root = _from_zip(path, unpickler)
            elif any(magic in head[:40] for magic in MAGICS):
                root = _from_pickles(path, file, unpickler)
            else:
                raise FormatError(f"{path}: {_describe(head)}, expected {EXPECTED}")
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror or error}") from None
    arrays = collect_arrays(path, root)
    for array in arrays:
        check_name(path, array.name)
    return arrays, unpickler.script


def _describe(head: bytes) -> str:
    """What a file is that torch.save did not write."""
    if head[257:262] == TAR:
        return "a tar archive, as PyTorch 0.1 wrote"
    if not head:
        return "an empty file"
    return "a pickle of other values" if head[:1] == b"\x80" else "neither zip archive nor pickle"


def _from_zip(path: str, unpickler: TensorUnpickler) -> PickleValue:
    with open_archive(path, f"the zip archive that torch.save writes; {SAVE}") as archive:
        names = [name for name in archive.members if name.endswith("/data.pkl")]
        if not names:
            raise FormatError(f"{path}: {_inside(archive)}")
        name = min(names, key=len)
        program = archive.read(name, PICKLE_BYTES, UNPACKED_PICKLE)
        try:
            root, _ = load(program, 0, unpickler)
        except FormatError as error:
            raise _where(path, error) from None
        _check_members(archive, name.removesuffix("data.pkl"), unpickler)
    return root


def _inside(archive: ZipArchive) -> str:
    """What an archive without a state dict is, and what the user can do."""
    ends = {name.partition("/")[2] for name in archive.members}
    if "model.json" in ends:
        return f"a TorchScript archive of PyTorch before 1.4; {SAVE}"
    if "models/model.json" in ends:
        return "an exported program of PyTorch; give it the suffix .pt2"
    if any(name.startswith((".data/", "_extern_modules")) for name in ends):
        return f"a torch.package archive, which is code and is not run; {SAVE}"
    return f"a zip archive without data.pkl, expected {EXPECTED}"


def _check_members(archive: ZipArchive, folder: str, unpickler: TensorUnpickler) -> None:
    """Raise if a storage is not in the archive, or has fewer bytes than the pickle declares."""
    for key, storage in unpickler.storages.items():
        info = archive.members.get(f"{folder}data/{key}")
        count = -1 if info is None else info.file_size
        if count < storage.bytes:
            found = "is not in it" if info is None else f"has {count:,} bytes"
            raise FormatError(
                f"{archive.path}: storage {short(key)} {found}, expected {storage.bytes:,}; "
                "is the file cut short?"
            )


def _from_pickles(path: str, file: BinaryIO, unpickler: TensorUnpickler) -> PickleValue:
    """The data of a file before PyTorch 1.6; only as much of it is read as its pickles need."""
    whole = os.fstat(file.fileno()).st_size
    found, at = [], 0
    try:
        with bytes_of(file, PICKLE_BYTES.most) as data:
            for _ in range(5):
                value, at = load(data, at, unpickler)
                found.append(value)
    except TruncatedPickle as error:
        if whole > PICKLE_BYTES.most:
            raise FormatError(f"{path}: {PICKLE_BYTES.refusal()}") from None
        raise _where(path, error) from None
    except FormatError as error:
        raise _where(path, error) from None
    magic, version, _, root, keys = found
    if magic != MAGIC or version != 1001 or not isinstance(keys, list):
        raise FormatError(f"{path}: version {str(version)[:20]}, expected 1001 of torch.save")
    for key in keys:
        storage = unpickler.storages.get(key) if isinstance(key, str) else None
        if storage is None:
            raise FormatError(f"{path}: storage {str(key)[:80]!r}, which no tensor has")
        file.seek(at)
        count = int.from_bytes(file.read(8), "little")
        at += 8 + storage.bytes
        if at > whole or count != storage.count:
            raise FormatError(
                f"{path}: storage {short(key)}: {count:,} elements up to byte {at:,} of {whole:,}, "
                f"expected {storage.count:,}; is the file cut short?"
            )
    missing = unpickler.storages.keys() - set(map(str, keys))
    if missing:
        raise FormatError(f"{path}: storage {short(min(missing))} is not in it")
    return root


def _where(path: str, error: FormatError) -> FormatError:
    text = str(error)
    return error if text.startswith(path) else FormatError(f"{path}: {text}")
