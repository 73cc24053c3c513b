"""Sources of a sweep as networks: files, globs, folders, lists, patterns of names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from errno import ENOENT
from fnmatch import fnmatchcase
from glob import glob, has_magic

from layerscope.errors import FormatError, UnknownName, UsageError
from layerscope.formats import FORMATS, is_file, looks_like_a_file, names_a_model
from layerscope.formats.sources import split_number

LIBRARIES = ("torchvision", "timm")
LIST_SUFFIXES = (".txt", ".lst", ".list")
# documents in a folder are notes rather than networks: name them one by one
NETWORK_SUFFIXES = tuple(
    suffix for kind in FORMATS if kind.name != "document" for suffix in kind.suffixes
)
MOST_LISTED = 1_000_000  # lines of a list
CHUNK = 1 << 20


def networks_of(sources: tuple[str, ...]) -> Iterator[str]:
    """The networks of all sources in their order, each once, as `analyze` takes them."""
    seen: set[str] = set()
    for source in sources:
        for network in _expanded(source):
            if network not in seen:
                seen.add(network)
                yield network


def _expanded(source: str, nested: bool = False) -> Iterator[str]:
    """The networks of one source; raises if there is none."""
    prefix, _, rest = source.partition(":")
    if prefix in LIBRARIES and has_magic(rest):
        yield from _matching(source, _library(prefix), rest, f"{prefix}:")
    elif prefix == "hf" and has_magic(rest):
        yield from (f"hf:{path}" for path in _files(rest, source))
    elif ".py:" in source:
        yield source
    elif os.path.isdir(source):
        yield from _folder(source)
    elif has_magic(source) and not is_file(source):
        yield from _pattern(source)
    elif source.lower().endswith(LIST_SUFFIXES) and is_file(source) and not nested:
        yield from _listed(source)
    else:
        if not nested:  # a wrong name in a list is a row of the results
            _check_exists(source)
        yield source


def _check_exists(source: str) -> None:
    """Raise for a file or a name of the zoo that does not exist."""
    if names_a_model(source):
        return
    if looks_like_a_file(source):
        path = split_number(source)[0]
        if not os.path.exists(path):
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), path)
        return
    from layerscope.zoo import describe

    describe(source)  # raises for an unknown name


def _pattern(source: str) -> list[str]:
    """Zoo names that match a pattern; files if it has a folder or suffix, or no name matches."""
    from layerscope.zoo import NAMES

    is_path = os.sep in source or "." in source
    found = [] if is_path else [name for name in NAMES if fnmatchcase(name, source)]
    if found or is_path:
        return found or _files(source, source)
    return sorted(filter(is_file, glob(source))) or _matching(source, NAMES, source, "")


def _library(package: str) -> list[str]:
    from layerscope.formats.torch.model_names.torchvision_timm import names_of

    return names_of(package)


def _matching(
    source: str, names: tuple[str, ...] | list[str], pattern: str, prefix: str
) -> list[str]:
    found = [f"{prefix}{name}" for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise UnknownName("network", source, names, ": no name matches the pattern")
    return found


def _files(pattern: str, source: str) -> list[str]:
    found = sorted(path for path in glob(pattern, recursive=True) if is_file(path))
    if not found:
        raise FormatError(f"{source}: no file matches the pattern")
    return found


def _folder(folder: str) -> Iterator[str]:
    """Files of a folder and its subfolders that have the suffix of a format, sorted."""
    found = False
    for where, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            if name.lower().endswith(NETWORK_SUFFIXES):
                found = True
                yield os.path.join(where, name)
    if not found:
        raise FormatError(
            f"{folder}: no file in it has the suffix of a network: {', '.join(NETWORK_SUFFIXES)}"
        )


def _listed(path: str) -> Iterator[str]:
    """Sources in a text file, one per line; `#` starts a comment."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if number > MOST_LISTED:
                raise FormatError(f"{path}: more than {MOST_LISTED:,} lines")
            source = line.split(" #", 1)[0].strip()
            if not source or source.startswith("#"):
                continue
            if any(sign.isspace() for sign in source):
                raise FormatError(
                    f"{path}:{number}: {source[:60]!r}, expected one network per line"
                )
            yield from _expanded(source, nested=True)


def content_of(network: str) -> str:
    """What identifies the content of a network: a hash of its file, or its name and version.

    The versions of PyTorch packages are part of it: another version may build another model.
    """
    prefix, _, rest = network.partition(":")
    if prefix in LIBRARIES:
        return f"{network}@{_version(prefix)}"
    path = rest if prefix == "hf" else network.rpartition(":")[0] if ".py:" in network else network
    if prefix == "hf":
        return f"{_hashed(path)}@{_version('transformers')}"
    if is_file(path):
        return _hashed(path) + (network if ".py:" in network else "")
    return network


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _hashed(path: str) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    return digest.hexdigest()
