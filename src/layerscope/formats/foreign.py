"""Formats that are not supported: how to recognise them, and how to convert them.

A file is recognised by its bytes first and by its suffix second. One table each, one entry per
format.
"""

from __future__ import annotations

import os
import re

from msgspec import Struct


class UnsupportedFormat(Struct, frozen=True):
    """A format that is not supported: its name, and what the user can do.

    {path} is the file quoted for a shell, {literal} quoted for Python, {folder} its folder.
    """

    what: str
    how: str


FROM_TENSORFLOW = "python -m tf2onnx.convert {} --output model.onnx, then show model.onnx"
TFLITE = UnsupportedFormat("a TensorFlow Lite model", FROM_TENSORFLOW.format("--tflite {path}"))
GRAPH_DEF = UnsupportedFormat(
    "a frozen graph of TensorFlow",
    FROM_TENSORFLOW.format("--graphdef {path} --inputs NAME:0 --outputs NAME:0"),
)
SAVED_MODEL = UnsupportedFormat(
    "a SavedModel of TensorFlow", FROM_TENSORFLOW.format("--saved-model {folder}")
)
CHECKPOINT = UnsupportedFormat(
    "a checkpoint of TensorFlow",
    FROM_TENSORFLOW.format("--checkpoint NAME.meta --inputs NAME:0 --outputs NAME:0"),
)
KERAS = UnsupportedFormat(
    "a Keras model",
    "in Python, keras.models.load_model({literal}).export('model.onnx', format='onnx')",
)
HDF5 = UnsupportedFormat("an HDF5 file, such as a Keras model", KERAS.how)
GGML = UnsupportedFormat(
    "a GGML file of llama.cpp",
    "convert it to GGUF, or show the model that it was converted from: hf:config.json",
)
DARKNET = UnsupportedFormat(
    "a Darknet configuration",
    "convert it to ONNX, such as with pytorch-YOLOv4's demo_darknet2onnx.py {path} NAME.weights",
)
DARKNET_WEIGHTS = UnsupportedFormat(
    "weights of Darknet, which tell no operations", "convert its NAME.cfg to ONNX"
)
NCNN = UnsupportedFormat(
    "an ncnn model",
    "give what it was converted from, the ONNX or Caffe file, or the PyTorch model of its pnnx.py",
)
OPENVINO = UnsupportedFormat(
    "an OpenVINO IR",
    "give the ONNX file that it was converted from: OpenVINO writes no ONNX",
)
ARRAYS = UnsupportedFormat(
    "an array file of numbers alone",
    "give the network: .bin beside .xml is of OpenVINO, beside .param of ncnn",
)
PADDLE = UnsupportedFormat(
    "a PaddlePaddle model",
    "paddle2onnx --model_dir {folder} --model_filename {path} --save_file model.onnx",
)
COREML = UnsupportedFormat(
    "a Core ML model",
    "give the PyTorch or ONNX model that it was converted from: coremltools only reads",
)
TENSORRT = UnsupportedFormat(
    "an engine of TensorRT for one GPU", "give the ONNX file that trtexec --onnx was given"
)
RKNN = UnsupportedFormat("an RKNN model of Rockchip", "give the model that rknn-toolkit2 was given")
MNN = UnsupportedFormat(
    "an MNN model", "give the ONNX, Caffe or TensorFlow model that MNNConvert was given"
)
CAFFE2 = UnsupportedFormat(
    "a Caffe2 network", "python -m caffe2.python.onnx.bin.conversion caffe2-to-onnx {path}"
)
MOBILE = UnsupportedFormat(
    "a PyTorch Mobile model (.ptl)",
    "torch.export.save(torch.export.export(model, inputs), 'model.pt2') of the model in Python",
)
EXECUTORCH = UnsupportedFormat("a program of ExecuTorch (.pte)", MOBILE.how)
ORT = UnsupportedFormat(
    "a model in onnxruntime's own format (.ort)", "give the .onnx file that it was converted from"
)
MXNET = UnsupportedFormat(
    "an MXNet network", "in Python, mxnet.onnx.export_model(symbol, params, shapes, types, file)"
)
FLAX = UnsupportedFormat(
    "weights of JAX or Flax", "optimum-cli export onnx --model NAME FOLDER, or show hf:config.json"
)
TORCH7 = UnsupportedFormat("a model of Torch7 (Lua)", "convert it with convert_torch_to_pytorch")
TFJS = UnsupportedFormat("a TensorFlow.js model", FROM_TENSORFLOW.format("--tfjs {path}"))
KERAS_JSON = UnsupportedFormat(
    "the architecture of a Keras model",
    "in Python, keras.models.model_from_json(open({literal}).read()).export('model.onnx', "
    "format='onnx')",
)
ONNX_TEXT = UnsupportedFormat(
    "an ONNX model as text",
    "in Python, onnx.save(onnx.load({literal}, format='textproto'), 'model.onnx')",
)
TF_TEXT = UnsupportedFormat(
    "a graph of TensorFlow as text", GRAPH_DEF.how.replace("{path}", "graph.pb")
)
NUMPY = UnsupportedFormat("NumPy arrays without a network", "give the network that they are of")
SKLEARN = UnsupportedFormat(
    "a pickle of Python", "of scikit-learn, skl2onnx.to_onnx(model, X) writes ONNX"
)
PYTHON = UnsupportedFormat("Python source", "name what makes the model: {path}:NAME")
NOTEBOOK = UnsupportedFormat(
    "a Jupyter notebook", "layerscope.summary(model, input_size=…) inside it"
)
HTML = UnsupportedFormat("an HTML page", "if it was downloaded, download it again as a raw file")
XML = UnsupportedFormat("XML", "if a download answered with an error, download it again")
OLD_TORCH = UnsupportedFormat(
    "a tar archive, as PyTorch 0.1 wrote", "load it with PyTorch and torch.save its state_dict()"
)
ARCHIVE = UnsupportedFormat("an archive", "unpack it, and give the model in it")
UTF16 = UnsupportedFormat("text in UTF-16", "save it as UTF-8")
MINDSPORE = UnsupportedFormat("a MindSpore model", "mindspore.export(net, x, file_format='ONNX')")
DLC = UnsupportedFormat(
    "a compiled model of an NPU", "give the ONNX file that its compiler was given"
)
NNEF = UnsupportedFormat("an NNEF graph", "convert it to ONNX with nnef_tools")
MEAN = UnsupportedFormat(
    "a mean image of Caffe (.binaryproto)", "give the .prototxt of the network"
)
NOT_A_MODEL = UnsupportedFormat("no model", "give the model's own file")

# Suffixes of documents, which may have tables of layers; HTML and UTF-16 are read in these.
DOCUMENTS = (
    ".md", ".txt", ".csv", ".tsv", ".tex", ".html", ".htm", ".log", ".rst", ".markdown", ".text",
)  # fmt: skip
# Offset and magic bytes of a file.
MAGIC: tuple[tuple[int, bytes, UnsupportedFormat], ...] = (
    (4, b"TFL3", TFLITE), (0, b"lmgg", GGML), (0, b"tjgg", GGML),
    (0, b"fmgg", GGML), (0, b"RKNN", RKNN), (0, b"ftrt", TENSORRT), (0, b"ptrt", TENSORRT),
    (4, b"ORTM", ORT), (4, b"ET12", EXECUTORCH), (0, b"7767517\n", NCNN), (0, b"7767517\r", NCNN),
    (0, b"\xdd\x85\x76\x00", NCNN), (0, b"\x93NUMPY", NUMPY), (0, b"IMOD", DLC),
    (0, b"\x1f\x8b", ARCHIVE), (0, b"BZh", ARCHIVE), (0, b"\xfd7zXZ\0", ARCHIVE),
    (0, b"7z\xbc\xaf'\x1c", ARCHIVE), (0, b"Rar!", ARCHIVE), (0, b"\x28\xb5\x2f\xfd", ARCHIVE),
    (0, b"storages\0", OLD_TORCH), (0, b"tensors\0", OLD_TORCH), (0, b"pickle\0", OLD_TORCH),
    (0, b"sys_info\0", OLD_TORCH), (257, b"ustar", ARCHIVE), (0, b"\xff\xfe", UTF16),
    (0, b"\xfe\xff", UTF16),
    (0, b"\x89PNG", NOT_A_MODEL), (0, b"%PDF", NOT_A_MODEL), (0, b"\x7fELF", NOT_A_MODEL),
    (0, b"\xff\xd8\xff", NOT_A_MODEL), (0, b"GIF8", NOT_A_MODEL),
)  # fmt: skip
SUFFIXES: dict[str, UnsupportedFormat] = {
    ".tflite": TFLITE, ".lite": TFLITE, ".ggml": GGML, ".h5": HDF5, ".hdf5": HDF5,
    ".keras": KERAS, ".cfg": DARKNET, ".weights": DARKNET_WEIGHTS, ".param": NCNN, ".xml": OPENVINO,
    ".pb": GRAPH_DEF, ".meta": CHECKPOINT, ".index": CHECKPOINT, ".pdmodel": PADDLE,
    ".pdiparams": PADDLE, ".pdparams": PADDLE, ".mlmodel": COREML, ".mlpackage": COREML,
    ".mlmodelc": COREML, ".engine": TENSORRT, ".plan": TENSORRT, ".trt": TENSORRT, ".rknn": RKNN,
    ".mnn": MNN, ".ptl": MOBILE, ".pte": EXECUTORCH, ".ort": ORT, ".params": MXNET,
    ".msgpack": FLAX, ".t7": TORCH7, ".npy": NUMPY, ".npz": NUMPY, ".joblib": SKLEARN,
    ".pkl": SKLEARN, ".py": PYTHON, ".ipynb": NOTEBOOK, ".mindir": MINDSPORE, ".ms": MINDSPORE,
    ".dlc": DLC, ".hef": DLC, ".om": DLC, ".blob": DLC, ".nnef": NNEF, ".binaryproto": MEAN,
    ".zip": ARCHIVE, ".tar": ARCHIVE, ".gz": ARCHIVE, ".tgz": ARCHIVE,
}  # fmt: skip
# Keys of a JSON object.
JSON: tuple[tuple[frozenset[str], UnsupportedFormat], ...] = (
    (frozenset({"modelTopology"}), TFJS), (frozenset({"weightsManifest"}), TFJS),
    (frozenset({"class_name", "config"}), KERAS_JSON),
    (frozenset({"nodes", "arg_nodes", "heads"}), MXNET),
    (frozenset({"cells", "nbformat"}), NOTEBOOK), (frozenset({"base_code", "program"}), PADDLE),
)  # fmt: skip
# A file inside a folder.
FOLDERS: tuple[tuple[str, UnsupportedFormat], ...] = (
    ("saved_model.pb", SAVED_MODEL), ("saved_model.pbtxt", SAVED_MODEL),
    ("keras_metadata.pb", SAVED_MODEL), ("Manifest.json", COREML), ("coremldata.bin", COREML),
    ("graph.nnef", NNEF), ("inference.pdmodel", PADDLE), ("__model__", PADDLE),
    ("predict_net.pb", CAFFE2),
)  # fmt: skip

# Patterns are compiled when they are used: most files need none of them.
POINTER = rb"version https://git-lfs\.github\.com/spec/v1\s"
ANNEX = rb"(\.\./)*(\.git/annex|/annex)/objects/"
SOLVER = rb"(?m)^\s*(base_lr|max_iter|lr_policy|solver_mode|snapshot_prefix)\s*:"
LAYERS = rb"(?m)^\s*(layers?\s*\{|input\s*:|input_dim\s*:)"
NETS = rb'(?m)^\s*(?:net|train_net|test_net)\s*:\s*["\']([^"\'\n]+)'
# Name and op of the first node of a GraphDef in protobuf's encoding.
NODE = rb"(?s)\x0a[\x01-\xff][\x01-\x7f]?\x0a.([\w./^:-]+)\x12.([A-Z]\w+)"
PROGRAM = rb"(?s)\x0a.{1,5}?\x08\x00\x10(\xff{9}\x01|\x00)"


def refusal(path: str, head: bytes) -> str | None:
    """The error line for a file that is unsupported by its bytes; None if it may be supported."""
    for look in (_pointer, _solver):
        line = look(path, head)
        if line is not None:
            return line
    found = next((kind for at, magic, kind in MAGIC if head[at:].startswith(magic)), None)
    if found is UTF16 and may_be_document(path):
        return None
    for judge in (_hdf5, _zip, _text, _protobuf):
        found = found or judge(path, head)
    return None if found is None else line_of(path, found)


def may_be_document(path: str) -> bool:
    """Whether a file has the suffix of a document, or none."""
    suffix = os.path.splitext(path.lower())[1]
    return not suffix or suffix in DOCUMENTS


def by_suffix(path: str) -> str | None:
    """The same by the suffix of a file whose bytes are not recognised."""
    found = SUFFIXES.get(os.path.splitext(path.lower().rstrip("/"))[1])
    if found is None and path.lower().endswith(".bin") and _beside(path):
        found = ARRAYS
    return None if found is None else line_of(path, found)


def has_suffix(name: str) -> bool:
    """Whether a name has the suffix of an unsupported format."""
    return os.path.splitext(name.lower().rstrip("/"))[1] in SUFFIXES


def of_folder(path: str) -> str | None:
    """The error line for a folder that is a model of another program."""
    for name, kind in FOLDERS:
        if os.path.exists(os.path.join(path, name)):
            return line_of(path, kind)
    return by_suffix(path)


def of_json(path: str, keys: set[str]) -> str | None:
    """The error line for a JSON object of an unsupported format, by its keys."""
    found = next((kind for wanted, kind in JSON if wanted <= keys), None)
    return None if found is None else line_of(path, found)


def line_of(path: str, kind: UnsupportedFormat) -> str:
    """The error line for a file of an unsupported format."""
    import shlex

    folder = shlex.quote(path if os.path.isdir(path) else os.path.dirname(path) or ".")
    how = kind.how.format(path=shlex.quote(path), literal=repr(path), folder=folder)
    return f"{path}: {kind.what}, not read here; {how}"


def _pointer(path: str, head: bytes) -> str | None:
    if re.match(POINTER, head):
        size = re.search(rb"^size (\d{1,19})\s*$", head, re.M)
        shown = f" of {int(size[1]):,} bytes" if size else ""
        return (
            f"{path}: a Git LFS pointer to a file{shown}, not the file; fetch it with "
            f"git lfs pull --include {os.path.basename(path)}"
        )
    if re.match(ANNEX, head):
        return f"{path}: a git-annex pointer, not the file; fetch it with git annex get {path}"
    return None


def _solver(path: str, head: bytes) -> str | None:
    """The line for a solver of Caffe, which names the network that it trains."""
    if b"\0" in head or re.search(LAYERS, head) or not re.search(SOLVER, head):
        return None
    nets = [name.decode(errors="replace") for name in re.findall(NETS, head)]
    give = f"give the network that it names: {nets[0]}" if nets else "give the network it trains"
    return f"{path}: a solver of Caffe, which holds no layers; {give}"


def _hdf5(path: str, head: bytes) -> UnsupportedFormat | None:
    signed = head.startswith(b"\x89HDF\r\n\x1a\n")
    return HDF5 if signed and not path.lower().endswith((".mat", ".caffemodel")) else None


def _zip(path: str, head: bytes) -> UnsupportedFormat | None:
    """By the first member of a zip archive; archives of PyTorch have readers."""
    if not head.startswith(b"PK\x03\x04"):
        return None
    if path.lower().endswith(".ptl"):
        return MOBILE
    first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    if first in (b"metadata.json", b"config.json", b"model.weights.h5"):
        return KERAS
    return NUMPY if first.endswith(b".npy") else None


def _text(path: str, head: bytes) -> UnsupportedFormat | None:
    if b"\0" in head:
        return None
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    lower = start[:512].lower()
    if start.startswith(b"<"):
        if re.search(rb"<net\s[^>]*>", start):
            return OPENVINO
        if may_be_document(path) and not lower.startswith(b"<?xml"):
            return None
        return HTML if lower.startswith((b"<!doctype html", b"<html")) else XML
    if re.match(rb"(#[^\n]*\n\s*)*\[(net|network)\]\s", lower):
        return DARKNET
    if re.search(rb"^\s*ir_version\s*:", start, re.M) and b"graph" in start:
        return ONNX_TEXT
    node = re.match(rb"(#[^\n]*\n\s*)*node\s*:?\s*\{", start)
    return TF_TEXT if node and re.search(rb"^\s*op\s*:", start, re.M) else None


def _protobuf(path: str, head: bytes) -> UnsupportedFormat | None:
    if os.path.basename(path) in ("predict_net.pb", "init_net.pb"):
        return CAFFE2
    if re.match(NODE, head):
        return GRAPH_DEF
    if re.match(PROGRAM, head):
        return PADDLE
    if head[:1] != b"\x08" or head[2:3] != b"\x12":
        return None
    # A version, then a message where an ONNX model has the name of its producer.
    start = 3 + next((n + 1 for n, byte in enumerate(head[3:8]) if byte < 128), 0)
    if head[start : start + 1] >= b"\x20" or start == 3:
        return None
    tensorflow = os.path.basename(path) == "saved_model.pb" or b"serve" in head[:512]
    if head[start : start + 1] != b"\x0a":
        return None
    return SAVED_MODEL if tensorflow or path.lower().endswith(".pb") else COREML


def _beside(path: str) -> bool:
    stem = os.path.splitext(path)[0]
    return any(os.path.exists(stem + suffix) for suffix in (".xml", ".param"))
