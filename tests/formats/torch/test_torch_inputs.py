"""What a model may be called with, and what it raises itself."""

from __future__ import annotations

import pickle
import traceback
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.cli import run
from layerscope.errors import ModelError, UnknownName, UsageError
from tests.formats.torch.torch_nets import Doing, nn, on, torch

np: Any = pytest.importorskip("numpy", reason="numpy is not installed")

Pair = namedtuple("Pair", "a b")
X = torch.zeros(2, 4)


@dataclass(frozen=True)
class Frozen:
    a: Any
    count: int = 1


@pytest.mark.parametrize(
    "kind", [torch.float16, "float16", "torch.float16", "fp16", "half", np.float16,
             np.dtype("float16")],
)  # fmt: skip
def test_dtypes_in_every_form(kind: Any) -> None:
    report = layerscope.summary(nn.Linear(4, 3), (2, 4), dtype=kind, verbose=0)
    assert {tensor.dtype for tensor in report.inputs} == {"fp16"}
    half = nn.Linear(4, 3).half()
    for dtypes in (kind, [kind]):
        report = layerscope.summary(half, (2, 4), dtypes=dtypes, verbose=0)
        assert [tensor.dtype for tensor in report.inputs] == ["fp16"]
    report = layerscope.summary(half, input_data=X, dtypes=[kind], verbose=0)
    assert [tensor.dtype for tensor in report.inputs] == ["fp16"]


@pytest.mark.parametrize("kind", ["nonsense", 3, object])
def test_no_dtype(kind: Any) -> None:
    with pytest.raises(UsageError, match=r"dtype .*, expected a torch.dtype"):
        layerscope.summary(nn.Linear(4, 3), (2, 4), dtypes=kind, verbose=0)
    with pytest.raises(UnknownName, match="unknown dtype"):
        layerscope.summary(nn.Linear(4, 3), (2, 4), dtype=kind, verbose=0)


@pytest.mark.parametrize(
    ("call", "data"),
    [
        (lambda d: d.a + d.b, [Pair(X, X.clone())]),
        (lambda d: d.a + d.b, Pair(X, X.clone())),
        (lambda d: d.a * d.count, Frozen(X)),
        (lambda d: d["x"] + d["more"][0][1], [OrderedDict(x=X, more=[(None, X.clone())])]),
        (lambda a, none, n, flag: a * n if flag and none is None else a, (X, None, 3, True)),
        (lambda row: sum(row), [{X, X.clone()}]),
        (lambda a, array: a + torch.from_numpy(array), (X, np.ones((2, 4), np.float32))),
    ],
)
def test_nests_of_inputs(call: Any, data: Any) -> None:
    report = layerscope.summary(Doing(call), input_data=data, verbose=0)
    assert {tensor.shape for tensor in report.inputs} == {(2, 4)}
    assert {layer.op for layer in report.layers} & {"add", "mul"}


@pytest.mark.parametrize("size", [[2, 4], X.shape, tuple(np.array([2, 4])), np.array([2, 4])])
def test_sizes_in_every_form(size: Any) -> None:
    assert layerscope.summary(nn.Linear(4, 3), size, verbose=0).total_macs == 24


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"input_size": (2.0, 4)}, "whole numbers"),
        ({"input_size": "2x4"}, "expected sizes"),
        ({"input_size": 4}, "expected sizes"),
        ({"input_size": {"input": None}}, "whole numbers"),
        ({"input_size": (2, -4)}, "at least 1"),
        ({"input_data": np.zeros((2, 4))}, r"torch\.from_numpy"),
        ({"input_data": {"input": [np.zeros((2, 4))]}}, r"torch\.from_numpy"),
        ({"input_data": [None]}, "no tensor is given"),
    ],
)
def test_inputs_that_cannot_be_meant(given: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        layerscope.summary(nn.Linear(4, 3), **given, verbose=0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_refused(layout: Any) -> None:
    data = torch.nested.nested_tensor([X, X[:1]], layout=layout)
    with pytest.raises(UsageError, match="nested tensor"):
        layerscope.summary(nn.Linear(4, 3), input_data=data, verbose=0)


# Exceptions of a model's own


class Coded(Exception):
    def __init__(self, code: int, *, detail: str) -> None:
        super().__init__(code)
        self.detail = detail


class Slotted(ValueError):
    __slots__ = ("code",)


def slotted() -> Any:
    error: Any = Slotted("bad")
    error.code = 7
    return error


ERRORS = [
    KeyError(1), KeyError("name"), ValueError(), IndexError("no such row"), AssertionError("no"),
    OSError(2, "no such", "weights.bin"), StopIteration(3), Coded(5, detail="why"), slotted(),
    UnicodeDecodeError("utf8", b"x", 0, 1, "bad"), NotImplementedError("later"),
    AttributeError("gone", name="x"), ZeroDivisionError("division by zero"),
]  # fmt: skip


def inner(error: Exception) -> Any:
    def this_line_fails(x: Any) -> Any:
        raise error

    return nn.Sequential(nn.ReLU(), Doing(this_line_fails))


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_exception_of_the_model_keeps_its_type(error: Exception, device: str) -> None:
    model = on(device, lambda: inner(error))
    with pytest.raises(type(error)) as found:
        layerscope.summary(model, (2, 4), verbose=0)
    raised: Any = found.value
    assert isinstance(raised, ModelError)
    assert raised.args == error.args
    assert str(raised).startswith(str(error) or type(error).__name__)
    assert str(raised).endswith("in Sequential: 1 (Doing) on 2x4 fp32")
    assert "this_line_fails" in "".join(traceback.format_exception(raised))
    for name in ("errno", "filename", "detail", "code", "name", "value", "start"):
        assert getattr(raised, name, None) == getattr(error, name, None)
    again = pickle.loads(pickle.dumps(raised))
    assert str(again) == str(raised)
    assert again.line.startswith(type(error).__name__)


def test_the_cause_of_an_exception_is_its_own() -> None:
    def fails(x: Any) -> Any:
        try:
            return dict[str, int]()["missing"]
        except KeyError as error:
            raise ValueError("no such layer") from error

    with pytest.raises(ValueError, match=r"^no such layer; in Doing") as found:
        layerscope.summary(Doing(fails), (2, 4), verbose=0)
    assert isinstance(found.value.__cause__, KeyError)


def test_a_type_that_cannot_be_shared_is_the_cause() -> None:
    class Single(Exception):
        def __init_subclass__(cls) -> None:
            raise TypeError("no subclasses")

    with pytest.raises(ModelError, match=r"^alone; in ") as found:
        layerscope.summary(inner(Single("alone")), (2, 4), verbose=0)
    assert isinstance(found.value.__cause__, Single)


def test_the_command_line_says_type_text_and_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.py").write_text(
        "from torch import nn\n"
        "class Net(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return {}[1]\n"
        "def make():\n"
        "    return nn.Sequential(nn.ReLU(), Net())\n"
    )
    assert run(["show", f"{tmp_path}/net.py:make", "--input", "2x4"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("layerscope: KeyError: 1; in ")
    assert said.endswith(f": 1 (Net) on 2x4 fp32, at {tmp_path}/net.py:4\n")


def test_a_module_whose_print_fails() -> None:
    class Shy(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x + 1

        def __repr__(self) -> str:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    assert "Shy" in layerscope.summary(nn.Sequential(Shy()), (2, 4), verbose=0).graph.modules["0"]


class Masked(nn.Module):  # type: ignore[misc]
    def forward(self, ids: Any, mask: Any) -> Any:
        return torch.where(mask, ids, ids)


SIZES = {"ids": (1, 7), "mask": (1, 7)}


@pytest.mark.parametrize(
    "dtypes", [[torch.int64, torch.bool], {"ids": "int64", "mask": "bool"}, ("int64", np.bool_)]
)
def test_dtypes_of_named_inputs(dtypes: Any) -> None:
    """A list has one for each of them, in order."""
    report = layerscope.analyze(Masked(), input_size=SIZES, dtypes=dtypes)
    assert [tensor.dtype for tensor in report.inputs] == ["int64", "bool"]


@pytest.mark.parametrize("dtypes", [[torch.int64], [torch.int64] * 3, {"id": torch.int64}])
def test_dtypes_of_other_inputs_are_refused(dtypes: Any) -> None:
    with pytest.raises(UsageError):
        layerscope.analyze(Masked(), input_size=SIZES, dtypes=dtypes)
