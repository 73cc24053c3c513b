"""Files that a file names: opened only if they are in its folder."""

from __future__ import annotations

import os

from layerscope.errors import FormatError
from layerscope.limits import NAME_CHARACTERS


def inside(path: str, name: str) -> str:
    """The path of a file that the file at `path` names, in its folder or below.

    Where `path` is a link, files of the folder it links to are taken as well: a cache of downloads
    has its files in one folder and links to them in another.
    """
    NAME_CHARACTERS.check(len(name), path)
    shown = repr(name[:200])
    parts = name.replace("\\", "/").split("/")
    if not name or "\0" in name or ".." in parts or os.path.isabs(name) or ":" in parts[0]:
        raise FormatError(f"{path}: names the file {shown}, expected one in its own folder")
    found = os.path.join(os.path.dirname(path), name)
    real = os.path.realpath(found)
    folders = (os.path.realpath(os.path.dirname(path)), os.path.dirname(os.path.realpath(path)))
    if not real.startswith(tuple(os.path.join(folder, "") for folder in folders)):
        raise FormatError(f"{path}: names the file {shown}, which links out of its folder")
    if os.path.exists(real) and not os.path.isfile(real):
        raise FormatError(f"{path}: names {shown}, which is no regular file")
    return found
