"""Readers of model files: the table of formats, and how the format of a file is recognised."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, Protocol, cast

from msgspec import Struct

from layerscope.errors import FormatError, UnknownName, UsageError
from layerscope.formats import documents, foreign
from layerscope.formats.sources import HEAD_BYTES as HEAD_BYTES
from layerscope.formats.sources import head_of, split_number
from layerscope.graph.types import Graph, Shape


class Format(Struct, frozen=True):
    """A file format: the module of its reader, and its suffixes.

    The module has `recognise(head: bytes) -> bool` and `read(path: str, options: ReadOptions)`.
    """

    name: str
    module: str
    suffixes: tuple[str, ...]
    says: str
    binds: bool = False  # the reader needs the shapes of inputs, which decide what it reads


class ReadOptions(Struct, frozen=True):
    """ReadOptions of a reader; each format uses those that apply to it."""

    phase: Literal["test", "train"] = "test"
    proposals: int = 300  # number of region proposals per image
    weights: str | None = None  # file of the weights, where they are in another file
    keep_going: bool = False  # tolerate errors that the framework itself refuses
    inputs: Mapping[str, Shape] = {}  # shapes of inputs by name; "" is the first
    dims: Mapping[str, int] = {}  # symbolic sizes of the file
    batch: int | None = None


FORMATS = (
    Format("caffe", "caffe.prototxt", (".prototxt", ".prototext", ".pbtxt"), "Caffe's text"),
    Format("builder", "builder_text", (".builder",), "Builder calls"),
    Format("caffemodel", "caffe.caffemodel", (".caffemodel",), "Caffe's weights"),
    Format("matconvnet", "matconvnet", (".mat",), "MatConvNet's networks"),
    Format("onnx", "onnx", (".onnx",), "ONNX models", binds=True),
    Format(
        "safetensors",
        "torch.checkpoints.safetensors",
        (".safetensors", ".safetensors.index.json"),
        "weights of PyTorch models",
    ),
    Format("gguf", "gguf", (".gguf",), "weights of llama.cpp"),
    Format("pt2", "torch.pt2", (".pt2",), "exported programs of PyTorch", binds=True),
    Format(
        "pickle",
        "torch.checkpoints.torch_save",
        (".pt", ".pth", ".bin", ".ckpt"),
        "what torch.save wrote",
    ),
    Format("document", "document", foreign.DOCUMENTS, "tables of layers in a text", binds=True),
)
DOCUMENT = FORMATS[-1]
# other files can begin with the same bytes
WEAK = [DOCUMENT, *(kind for kind in FORMATS if kind.name == "caffemodel")]
INDEXED = next(
    kind for kind in FORMATS if kind.name == "safetensors"
)  # also reads the files of a weight index
# Models in Python by name: torchvision:NAME, timm:NAME, hf:config.json, file.py:make, package:name.
MODEL = r"(torchvision|timm|hf):.+|.+\.py:[\w.]+|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*"
PHASES = ("test", "train")
DEFAULTS = ReadOptions()


def options_of(**values: Any) -> ReadOptions:
    """The options of a reader; raises for an unknown name or an invalid value."""
    names = ReadOptions.__struct_fields__
    for name in values:
        if name not in names:
            raise UnknownName("option", name, names, f"; known: {', '.join(names)}")
    options = ReadOptions(**values)
    if options.phase not in PHASES:
        raise UsageError(f"phase {options.phase!r}, expected test or train")
    if not 1 <= options.proposals < 1 << 31:
        raise UsageError(f"{options.proposals} proposals, expected at least 1")
    return options


def looks_like_a_file(name: str) -> bool:
    """Whether a string is a path, or names a model in Python, rather than a network of the zoo."""
    suffixes = tuple(suffix for kind in FORMATS for suffix in kind.suffixes)
    name = split_number(name)[0]
    if names_a_model(name) or os.path.sep in name or is_file(name) or foreign.has_suffix(name):
        return True
    if name.lower().endswith((*suffixes, ".json")):
        return True
    return os.path.isdir(name) and foreign.of_folder(name) is not None


def is_file(path: str) -> bool:
    """Whether a path exists and is no folder."""
    return os.path.exists(path) and not os.path.isdir(path)


def names_a_model(name: str) -> bool:
    """Whether a string names a model in Python, such as torchvision:resnet50."""
    return ":" in name and bool(re.fullmatch(MODEL, name)) and not os.path.isfile(name)


def kind_of_json(name: str) -> documents.Kind | None:
    """The kind of a JSON file, by its content; None for a name, or another format."""
    if names_a_model(name) or not is_file(name):
        return None
    return documents.kind_of(name, _head(name))


def is_run(name: str) -> bool:
    """Whether a file is a run of `layerscope measure`, by its content."""
    return kind_of_json(name) == "run"


class Recognised(Struct, frozen=True):
    """A file whose format is recognised, or the name of a model, before it is read."""

    path: str
    head: bytes = b""
    format: Format | None = None  # None: JSON, or the name of a model
    binds: bool = False  # its reader must know the shapes of inputs


def recognise_file(path: str) -> Recognised:
    """Open a file and recognise its format, which `read` then need not do again."""
    file, number = split_number(path)
    if names_a_model(file):
        return Recognised(path, binds=True)
    head = _head(file)
    if number is None and documents.is_json(head):  # `read` finds out which kind
        return Recognised(path, head)
    kind = recognise(file, head)
    if number is not None and kind is not DOCUMENT:
        raise UsageError(f"{path}: # gives the number of a network in a document; {kind.says}")
    return Recognised(path, head, kind, kind.binds)


def _head(path: str) -> bytes:
    if os.path.isdir(path):
        line = foreign.of_folder(path)
        if line is not None:
            raise FormatError(line)
        raise UsageError(f"{path}: a folder, expected a file{_inside(path)}")
    try:
        return head_of(path)
    except OSError as error:
        raise FormatError(f"{path}: {error.strerror}{near_files(path)}") from None
    except ValueError as error:  # a NUL in the name
        raise FormatError(f"{path}: {error}") from None


def _inside(folder: str) -> str:
    """The end of a message: files of a folder that can be given instead of it."""
    found: list[str] = []
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return f" ({error.strerror})"
    for name in names:
        path = os.path.join(folder, name)
        if name == "config.json":
            found.insert(0, f"hf:{path}")
        elif name.endswith(tuple(suffix for kind in FORMATS for suffix in kind.suffixes)):
            found.append(path)
    return f", such as {' or '.join(found[:3])}" if found else ""


def near_files(path: str) -> str:
    """The end of a message: files with a name close to that of a missing one."""
    from difflib import get_close_matches

    folder, name = os.path.split(path)
    try:
        there = os.listdir(folder or ".")
    except OSError:
        return ""
    near = [each for each in get_close_matches(name, there, n=3, cutoff=0.7) if each != name]
    meant = " or ".join(os.path.join(folder, each) for each in near)
    return f"; did you mean {meant}?" if near else ""


def read(path: str, options: ReadOptions = DEFAULTS, found: Recognised | None = None) -> Graph:
    """The network in a file, whose format is recognised by its first bytes, else by its suffix.

    `found` is the file if it has been recognised already.
    """
    if names_a_model(path):
        from layerscope.formats.torch import model_names

        return model_names.read(path, options.inputs, options.batch)
    found = found or recognise_file(path)
    kind = found.format
    if kind is None:
        document = documents.kind_of(path, found.head)
        if document is not None and document != "index":
            raise documents.refusal(path, document)
        kind = recognise(path, found.head) if document is None else INDEXED
    return _module(kind).read(path, options)


def recognise(path: str, head: bytes) -> Format:
    """The format of a file: of those with its suffix the one that recognises it, else the first.

    Unsupported formats are refused, by their bytes before and by their suffix after the supported
    ones.
    """
    line = foreign.refusal(path, head)
    if line is not None:
        raise FormatError(line)
    named = [kind for kind in FORMATS if path.lower().endswith(kind.suffixes)]
    first = [kind for kind in named if kind is not DOCUMENT]
    for kind in (*first, *(kind for kind in FORMATS if kind not in WEAK)):
        if _module(kind).recognise(head):
            return kind
    if not head and not named:
        raise FormatError(f"{path}: the file is empty")
    line = foreign.by_suffix(path)
    if line is not None:
        raise FormatError(line)
    for kind in WEAK:
        if kind is DOCUMENT and first:  # the reader of its suffix says what is wrong
            continue
        if _module(kind).recognise(head):
            return kind
    if named:
        return named[0]
    suffixes = ", ".join(suffix for each in FORMATS for suffix in each.suffixes)
    raise FormatError(f"{path}: not a supported model file; suffixes of those are {suffixes}")


def suffix_of(path: str, head: bytes) -> str:
    """The suffix of a file with these first bytes; raises if they are not recognised."""
    if documents.is_json(head) and not recognised_text(head):
        return ".json"
    return recognise(path, head).suffixes[0]


def recognised_text(head: bytes) -> bool:
    """Whether the head is that of a prototxt, which may begin with a brace like JSON."""
    return _module(FORMATS[0]).recognise(head)


class FormatModule(Protocol):
    """The module of a format."""

    def recognise(self, head: bytes) -> bool:
        """Whether a file with these first bytes is of the format."""

    def read(self, path: str, options: ReadOptions) -> Graph:
        """The network in a file."""


def _module(kind: Format) -> FormatModule:
    return cast("FormatModule", import_module(f"layerscope.formats.{kind.module}"))
