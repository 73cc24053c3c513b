"""Modules of narrow numbers: figures by closed form, arrays in the types they are kept in."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError
from layerscope.formats.torch.capture import capture
from tests.formats.torch.torch_nets import nn, torch

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's own, of what is to be deprecated
if "fbgemm" not in torch.backends.quantized.supported_engines:
    pytest.skip("this PyTorch has no engine for narrow numbers", allow_module_level=True)
nnq: Any = torch.ao.nn.quantized


def quantised(x: Any) -> Any:
    return torch.quantize_per_tensor(x, 0.1, 128, torch.quint8)


def read(model: Any, *inputs: Any) -> Any:
    """The report, equal with and without shortcuts and the second time, and the model as it was."""
    before = {name: copy.deepcopy(value) for name, value in model.state_dict().items()}
    engine = torch.backends.quantized.engine
    graph = capture(model, inputs)
    assert capture(model, inputs, shortcuts=False) == graph
    assert capture(model, inputs) == graph
    assert torch.backends.quantized.engine == engine
    after = model.state_dict()
    assert list(before) == list(after)
    for name, value in before.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(value, after[name]), name
    return layerscope.analyze(graph)


def ops_of(report: Any) -> list[str]:
    return [layer.op for layer in report.layers]


def stored(report: Any) -> dict[str, tuple[tuple[int, ...], str, str]]:
    return {
        param.storage: (param.shape, param.role, param.dtype)
        for layer in report.layers
        for param in layer.node.params or ()
    }


class Small(nn.Module):  # type: ignore[misc]
    """A convolution with norm and rectifier, a sum, a mean, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.quant = torch.ao.quantization.QuantStub()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU()
        self.again = nn.Conv2d(8, 8, 1, groups=2)
        self.sum = nnq.FloatFunctional()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8, 5)
        self.dequant = torch.ao.quantization.DeQuantStub()

    def forward(self, x: Any) -> Any:
        x = self.relu(self.norm(self.conv(self.quant(x))))
        x = self.sum.add(x, self.again(x))
        return self.dequant(self.fc(torch.flatten(self.pool(x), 1)))


def converted(engine: str) -> Any:
    model = Small().eval()
    fuse = torch.ao.quantization
    model = fuse.fuse_modules(model, [["conv", "norm", "relu"]])
    model.qconfig = fuse.get_default_qconfig(engine)
    fuse.prepare(model, inplace=True)
    model(torch.randn(1, 3, 6, 6))
    return fuse.convert(model)


def test_a_converted_network() -> None:
    report = read(converted("fbgemm"), torch.randn(2, 3, 6, 6))
    assert report.total_macs == 2 * (36 * 8 * 27 + 36 * 8 * 4 + 8 * 5)
    assert report.total_params == (8 * 27 + 8) + (8 * 4 + 8) + (8 * 5 + 5)
    assert not report.coverage.unknown
    assert ops_of(report) == [
        "quantize",
        *("conv", "relu", "quantize"),
        *("conv", "quantize"),
        *("dequantize", "dequantize", "add", "quantize"),
        *("adaptive_avg_pool", "quantize"),
        "flatten",
        *("linear", "quantize"),
        "dequantize",
    ]
    arrays = stored(report)
    assert arrays["conv.weight"] == ((8, 3, 3, 3), "weight", "int8")
    assert arrays["conv.bias"] == ((8,), "bias", "fp32")
    assert arrays["fc.weight"] == ((5, 8), "weight", "int8")
    assert arrays["conv.weight_scale"] == ((8,), "statistic", "fp64")
    assert arrays["conv.weight_zero_point"] == ((8,), "statistic", "int64")
    assert report.graph.notes == (
        "computed with real numbers: aten.quantize_per_tensor has no kernel without them, in quant",
    )
    assert "fc._packed_params" not in report.graph.modules


def test_scales_of_whole_arrays_are_numbers_of_the_call() -> None:
    arrays = stored(read(converted("qnnpack"), torch.randn(1, 3, 6, 6)))
    assert sorted(arrays) == sorted(
        f"{name}.{own}" for name in ("conv", "again", "fc") for own in ("weight", "bias")
    )


def test_as_onnx_is_counted() -> None:
    """Rounding after a convolution: a division, a sum and two comparisons an element."""
    report = read(nnq.Conv2d(3, 4, 3), quantised(torch.randn(1, 3, 8, 8)))
    assert report.graph.notes == ("computed with real numbers: an input is quantised",)
    [conv, rounded] = report.layers
    assert (conv.ops.mac, conv.ops.add) == (36 * 4 * 27, 36 * 4)
    ops = rounded.ops
    assert (ops.div, ops.add, ops.comp, ops.mac) == (144, 144, 288, 0)


@pytest.mark.parametrize(
    ("make", "shape", "macs", "params"),
    [
        (lambda: nnq.Conv1d(4, 6, 3, stride=2, padding=1), (2, 4, 9), 2 * 5 * 6 * 12, 6 * 12 + 6),
        (lambda: nnq.Conv3d(2, 4, 3, bias=False), (1, 2, 5, 5, 5), 27 * 4 * 54, 4 * 54),
        (
            lambda: nnq.Conv2d(4, 6, (3, 2), dilation=2, groups=2),
            (1, 4, 8, 8),
            4 * 6 * 6 * 2 * 6,
            6 * 2 * 6 + 6,
        ),
        (lambda: nnq.ConvTranspose2d(3, 4, 2, stride=2), (1, 3, 5, 5), 25 * 3 * 16, 3 * 16 + 4),
        (lambda: nnq.Linear(6, 7), (3, 5, 6), 15 * 42, 42 + 7),
        (lambda: torch.ao.nn.intrinsic.quantized.LinearReLU(6, 7), (3, 6), 3 * 42, 42 + 7),
        (
            lambda: torch.ao.nn.intrinsic.quantized.ConvReLU2d(3, 4, 1),
            (1, 3, 5, 5),
            25 * 12,
            12 + 4,
        ),
    ],
)
def test_modules_by_closed_form(make: Any, shape: Any, macs: int, params: int) -> None:
    model = make()
    x = quantised(torch.randn(shape))
    report = read(model, x)
    assert (report.total_macs, report.total_params) == (macs, params)
    assert not report.coverage.unknown
    assert report.shapes.ends[report.layers[-1].node.name][1][0].shape == tuple(model(x).shape)
    weight = model.weight()
    assert stored(report)["weight"] == (tuple(weight.shape), "weight", "int8")


def test_a_linear_layer_that_rounds_its_input_on_the_way() -> None:
    """No number is needed: what goes in and comes out are floats."""
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3))
    model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    report = read(model, torch.randn(5, 6))
    assert report.total_macs == 5 * (24 + 12)
    assert report.total_params == 24 + 4 + 12 + 3
    assert ops_of(report)[:5] == ["reduce_min", "reduce_max", "quantize", "linear", "dequantize"]
    assert report.graph.notes == ()
    assert stored(report)["0.weight"] == ((4, 6), "weight", "int8")


def test_weights_of_sixteen_bits() -> None:
    model = nn.Sequential(nn.Linear(6, 4))
    model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.float16)
    report = read(model, torch.randn(5, 6))
    assert (report.total_macs, report.total_params) == (120, 28)
    assert ops_of(report) == ["linear"]
    assert stored(report)["0.weight"] == ((4, 6), "weight", "fp16")


@pytest.mark.parametrize(("kind", "gates"), [(nn.LSTM, 4), (nn.GRU, 3)])
def test_recurrent_layers_of_narrow_weights(kind: Any, gates: int) -> None:
    model = nn.ModuleDict({"rnn": kind(5, 6, num_layers=2, bidirectional=True)})
    plain = layerscope.analyze(capture(model["rnn"], (torch.randn(3, 2, 5),)))
    model = torch.ao.quantization.quantize_dynamic(model, {kind}, dtype=torch.qint8)
    report = read(model["rnn"], torch.randn(3, 2, 5))
    assert report.total_macs == plain.total_macs
    assert report.total_params == plain.total_params
    assert report.total_params == 2 * gates * 6 * ((5 + 6 + 2) + (12 + 6 + 2))
    assert not report.coverage.unknown
    kinds = {dtype for _, role, dtype in stored(report).values() if role == "weight"}
    assert kinds == {"int8"}


def test_a_module_called_twice_is_stored_once() -> None:
    class Twice(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.fc = nnq.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.fc(self.fc(x))

    report = read(Twice(), quantised(torch.randn(3, 4)))
    assert (report.total_macs, report.total_params) == (2 * 3 * 16, 20)
    assert len(stored(report)) == 2


def test_modules_that_are_never_called_are_told() -> None:
    class Spare(nn.Module):  # type: ignore[misc]
        def __init__(self, used: Any) -> None:
            super().__init__()
            self.used = used
            self.conv = nnq.Conv1d(3, 4, 5)
            self.fc = nnq.Linear(6, 7)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    for used, x, own in (
        (nn.ReLU(), torch.randn(1, 4), 0),
        (nnq.Linear(4, 4), quantised(torch.randn(1, 4)), 20),
    ):
        report = read(Spare(used), x)
        unused = {param.name: (param.shape, param.dtype) for param in report.graph.unused}
        assert unused == {
            "conv.weight": ((4, 3, 5), "int8"),
            "conv.bias": ((4,), "fp32"),
            "fc.weight": ((7, 6), "int8"),
            "fc.bias": ((7,), "fp32"),
        }
        assert sum(layer.params for layer in report.layers) == own
        assert report.totals.params == report.total_params == own + 64 + 49
        assert "113 parameters that this forward does not use" in report.graph.notes[0]


class Functions(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.do = nnq.QFunctional()
        self.norm = nnq.BatchNorm2d(4)
        self.rest = nn.Sequential(
            nnq.ReLU6(), nnq.Hardswish(0.1, 0), nnq.LeakyReLU(0.1, 0), nnq.Sigmoid(0.1, 0),
            nnq.ELU(0.1, 0), nn.MaxPool2d(2),
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        y = self.do.add_relu(x, x)
        y = self.do.mul(y, x)
        y = self.do.mul_scalar(self.do.add_scalar(y, 2.0), 3.0)
        y = self.do.cat([y, x], 1)
        y = self.rest(self.norm(y))
        y = y.view(1, 2, 2, 4, 4).transpose(1, 2).contiguous().view(1, 4, 4, 4)
        return torch.relu(y).mean([2, 3]).dequantize()


def test_functions_of_narrow_numbers() -> None:
    report = read(Functions(), quantised(torch.randn(1, 2, 8, 8)))
    assert not report.coverage.unknown
    between = [("dequantize", op, "quantize") for op in ("mul", "add", "mul")]
    after = [
        ("dequantize", op, "quantize") for op in ("hard_swish", "leaky_relu", "sigmoid", "elu")
    ]
    assert ops_of(report) == [
        *("dequantize", "dequantize", "add", "relu", "quantize"),
        *("dequantize", *between[0]),
        *between[1],
        *between[2],
        *("concat", "quantize"),
        *("dequantize", "batch_norm", "quantize"),
        "relu6",
        *[op for each in after for op in each],
        "max_pool",
        *("reshape", "permute", "reshape"),
        *("relu", "reduce_mean", "quantize", "dequantize"),
    ]
    assert report.total_params == 8  # of the norm, which is not narrow
    [norm] = [layer for layer in report.layers if layer.op == "batch_norm"]
    assert {param.dtype for param in norm.cost.params} == {"fp32"}


def test_tables_of_narrow_numbers() -> None:
    for dtype, ours in ((torch.quint8, "uint8"), (torch.quint4x2, "uint4")):
        ones, zeros = torch.ones(10), torch.zeros(10)
        table = torch.quantize_per_channel(torch.ones(10, 12), ones, zeros, 0, dtype)
        model = nnq.Embedding(10, 12, _weight=table, dtype=dtype)
        report = read(model, torch.zeros(2, 3, dtype=torch.long))
        assert (report.total_params, report.totals.buffers) == (120, 20)
        assert ops_of(report) == ["select", "dequantize"]
        assert stored(report)["weight"] == ((10, 12), "embedding", ours)


def test_a_range_looked_up_on_the_way() -> None:
    class Ranged(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.quantize_per_tensor_dynamic(x, torch.quint8, False).dequantize()

    report = read(Ranged(), torch.randn(4, 5))
    assert ops_of(report)[:2] == ["reduce_min", "reduce_max"]
    assert ops_of(report)[-2:] == ["quantize", "dequantize"]
    assert not report.coverage.unknown


def test_an_unknown_operator_is_named_and_its_arrays_are_counted() -> None:
    report = read(nnq.EmbeddingBag(10, 12), torch.zeros(2, 3, dtype=torch.long))
    assert ops_of(report) == ["quantized.embedding_bag_byte"]
    assert report.coverage.unknown
    assert report.total_params == 120


def test_arrays_unpacked_by_the_model_itself() -> None:
    class Unpacking(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.fc = nnq.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return nn.functional.linear(x, self.fc.weight().dequantize(), self.fc.bias())

    report = read(Unpacking(), torch.randn(2, 4))
    assert (report.total_macs, report.total_params) == (24, 15)


def test_an_engine_that_is_missing_is_told() -> None:
    class Homeless(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            raise RuntimeError("Didn't find engine for operation quantized::conv2d NoQEngine")

    with pytest.raises(ModelError, match=r"quantized::conv2d NoQEngine.*this PyTorch has .*fbgemm"):
        capture(Homeless(), (torch.randn(1),))
