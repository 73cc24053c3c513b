"""Zip archives of PyTorch: members by name, checked for overlaps and read within limits."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from layerscope.errors import FormatError
from layerscope.formats.torch.checkpoints.stored_array import ByteSpan, check_spans, short
from layerscope.limits import MOST_SIZE, ZIP_ENTRIES, Limit

LOCAL_HEADER = 30  # bytes before the name of a member, which its data follows
ERRORS = (
    zipfile.BadZipFile, RuntimeError, ValueError, EOFError, OverflowError, struct.error, zlib.error,
)  # fmt: skip


class ZipArchive:
    """An open archive; its members are those of the central directory."""

    def __init__(self, path: str, file: zipfile.ZipFile, size: int) -> None:
        self.path, self._file = path, file
        self.members: dict[str, zipfile.ZipInfo] = {}
        infos = file.infolist()
        ZIP_ENTRIES.check(len(infos), path)
        spans = []
        for info in infos:
            if self.members.setdefault(info.filename, info) is not info:
                raise FormatError(f"{path}: two members are named {short(info.filename)}")
            begin = info.header_offset
            end = begin + LOCAL_HEADER + len(info.orig_filename) + info.compress_size
            if not 0 <= info.file_size <= MOST_SIZE:
                raise FormatError(
                    f"{path}: {short(info.filename)}: {info.file_size} bytes, which no file has"
                )
            if info.compress_type == zipfile.ZIP_STORED and info.compress_size != info.file_size:
                raise FormatError(
                    f"{path}: {short(info.filename)}: {info.file_size:,} bytes stored as "
                    f"{info.compress_size:,} without compression"
                )
            spans.append(ByteSpan(begin, end, info.filename))
        check_spans(path, spans, size)

    def read(self, name: str, limit: Limit, packed_limit: Limit | None = None) -> bytes:
        """Bytes of a member. A compressed member is refused unless `packed_limit` is given."""
        info = self.members[name]
        where = f"{self.path}: {short(name)}"
        if info.compress_type == zipfile.ZIP_DEFLATED and packed_limit is not None:
            limit = packed_limit
        elif info.compress_type != zipfile.ZIP_STORED:
            raise FormatError(f"{where}: compressed, expected it to be stored uncompressed")
        limit.check(info.file_size, where)
        with self._file.open(info) as member:
            data = member.read(limit.most + 1)
        limit.check(len(data), where)
        return data


@contextmanager
def open_archive(path: str, expected: str) -> Iterator[ZipArchive]:
    """Open the archive at a path; any error becomes one line that says what was expected."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            yield ZipArchive(path, archive, os.fstat(file.fileno()).st_size)
    except FormatError:
        raise
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror or error}") from None
    except ERRORS as error:
        message = " ".join(str(error)[:200].split())
        raise FormatError(f"{path}: {message}; expected {expected}") from None
