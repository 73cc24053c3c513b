"""`summary` beside torchinfo's: every argument, row by row, on three models."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

import pytest

import layerscope
import layerscope.dropins
from layerscope.errors import UsageError
from tests.dropins.summary_models import MODELS, Classifier, Pair, Reused, nn, torch

torchinfo: Any = pytest.importorskip("torchinfo", reason="torchinfo is not installed")

BOTH = ("depth", "var_names")
TORCHINFO_COLUMNS = (
    "input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds",
    "trainable",
)  # fmt: skip
Captured = pytest.CaptureFixture[str]


def theirs(model: Any, **options: Any) -> str:
    return str(torchinfo.summary(model, **{"verbose": 0, "row_settings": BOTH, **options}))


def ours(model: Any, **options: Any) -> str:
    return str(layerscope.summary(model, **{"verbose": 0, "like": "torchinfo", **options}))


def rows(text: str) -> list[str]:
    """Rows of a table without containers that are not called.

    torchinfo marks the first row of such a container as recursive if there is another, and prints
    no mult-adds for it.
    """
    lines = text.split("\nTotal params")[0].splitlines()[3:-1]
    assert lines
    containers = ("─Module", "+ Module")
    kept = [line for line in lines if not any(each in line for each in containers)]
    return [line.replace(" 0 ", " --") for line in kept]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        *[{"col_names": (column,)} for column in TORCHINFO_COLUMNS],
        {"col_names": TORCHINFO_COLUMNS, "col_width": 17},
        {"col_names": ["trainable", "kernel_size"], "col_width": 3},
        *[{"depth": depth, "col_names": TORCHINFO_COLUMNS} for depth in (0, 1, 2, 9)],
        {"row_settings": ()},
        {"row_settings": ["depth"]},
        {"row_settings": {"var_names"}},
        {"row_settings": ("ascii_only", "depth")},
        {"row_settings": ("hide_recursive_layers", "depth")},
        {"mode": "eval"},
        {"mode": "train"},
        {"device": "cpu"},
        {"device": torch.device("cpu")},
        {"cache_forward_pass": False},
        {"verbose": 2, "col_names": ("kernel_size", "num_params")},
    ],
    ids=repr,
)
def test_arguments_have_the_effect_that_they_have_in_torchinfo(
    name: str, options: dict[str, Any]
) -> None:
    make, inputs = MODELS[name]
    model = make()
    assert rows(ours(model, **inputs, **options)) == rows(theirs(model, **inputs, **options))


@pytest.mark.parametrize("name", MODELS)
def test_figures_of_rows(name: str) -> None:
    make, inputs = MODELS[name]
    model = make()
    found = layerscope.summary(
        model, **inputs, verbose=0, like="torchinfo", col_names=("kernel_size", "groups")
    )
    expected = torchinfo.summary(model, **inputs, verbose=0)
    called = [row for row in found.summary_list if row.executed]
    layers = [layer for layer in expected.summary_list if layer.executed]
    assert [row.class_name for row in called] == [layer.class_name for layer in layers]
    modules = dict(model.named_modules())
    for row, layer in zip(called, layers, strict=True):
        for field in (
            "class_name", "depth", "is_leaf_layer", "is_recursive", "input_size", "output_size",
            "kernel_size", "num_params", "trainable_params", "trainable",
        ):  # fmt: skip
            assert getattr(row, field) == getattr(layer, field), (row.path, field)
        assert row.groups == getattr(modules[row.path], "groups", None)
        if row.is_leaf_layer:
            assert sum(x.convention_ops or 0 for x in row.own) == layer.macs, row.path
    assert found.total_mult_adds == expected.total_mult_adds
    assert found.total_params == expected.total_params
    assert found.trainable_params == expected.trainable_params
    assert found.total_input == sum(x.numel() * x.element_size() for x in tensors(inputs))


def tensors(inputs: dict[str, Any]) -> list[Any]:
    data = inputs.get("input_data", torch.zeros(inputs.get("input_size", ())))
    return list(data.values()) if isinstance(data, dict) else [data]


def test_exact_multiply_adds_are_torchinfos_without_biases() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.ReLU(), nn.Conv2d(4, 5, 2, bias=False))
    options: dict[str, Any] = {
        "input_size": (2, 3, 9, 9), "col_names": ("mult_adds",), "verbose": 0
    }  # fmt: skip
    found = str(layerscope.summary(model, **options))
    assert rows(found) == rows(str(torchinfo.summary(model, **options, row_settings=BOTH)))
    assert "Mult-Adds" in found.splitlines()[1]


def test_groups_and_kernels() -> None:
    found = layerscope.summary(
        Classifier(), (1, 3, 8, 8), col_names=("kernel_size", "groups"), verbose=0
    )
    lines = {line.split(":")[0].strip("│├└─ "): line.split() for line in str(found).splitlines()}
    columns = iter(("kernel_size", "groups"))
    again = layerscope.summary(Classifier(), (1, 3, 8, 8), col_names=columns, verbose=0)
    assert str(again) == str(found)
    assert lines["MaxPool2d (2)"][-2:] == ["2", "--"]
    convolutions = [line.split()[-3:] for line in str(found).splitlines() if "Conv2d" in line]
    assert convolutions == [["[3,", "3]", "1"], ["[3,", "1]", "8"], ["[1,", "1]", "2"]]


@pytest.mark.parametrize("model", [Classifier(), Reused(), Pair()], ids=lambda m: type(m).__name__)
def test_without_an_input_there_are_parameters_only(model: Any) -> None:
    found = layerscope.summary(model, verbose=0)
    expected = torchinfo.summary(model, verbose=0, row_settings=BOTH)
    lines = str(found).split("\nTotal params")[0].splitlines()
    assert lines == str(expected).split("\nTotal params")[0].splitlines()
    assert (found.total_params, found.trainable_params) == (
        expected.total_params, expected.trainable_params,
    )  # fmt: skip
    assert "macs" in found.lower_bounds
    assert "mult-adds" not in str(found)
    with pytest.raises(UsageError, match="column mult_adds needs an input"):
        layerscope.summary(model, col_names=("num_params", "mult_adds"))
    with pytest.raises(UsageError, match="x needs input_size or input_data"):
        layerscope.summary(model, x=torch.zeros(1))


def test_positional_arguments_are_torchinfos() -> None:
    own, other = inspect.signature(layerscope.summary), inspect.signature(torchinfo.summary)
    assert [*own.parameters][:-1] == [*other.parameters][:-1]
    for name, parameter in own.parameters.items():
        if name in other.parameters:
            assert parameter.default == other.parameters[name].default, name
    assert layerscope.summary is layerscope.dropins.summary


# Printing


def test_it_prints_as_torchinfo_does(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    model, size = Classifier(), (1, 3, 8, 8)
    found = layerscope.summary(model, size)
    assert capsys.readouterr().out == f"{found}\n"
    for verbose, printed in ((0, False), (1, True), (2, True)):
        layerscope.summary(model, size, verbose=verbose)
        assert bool(capsys.readouterr().out) == printed
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)  # as IPython does
    found = layerscope.summary(model, size)
    assert capsys.readouterr().out == ""
    assert repr(found) == str(found)
    assert re.match(r"<pre style=\"[^<>]+\">====", found._repr_html_())
    layerscope.summary(model, size, verbose=1)
    assert capsys.readouterr().out


def test_the_columns_add_up_to_the_totals() -> None:
    for make, inputs in MODELS.values():
        for depth in (1, 2, 9):
            found = layerscope.summary(
                make(), **inputs, depth=depth, verbose=0, col_names=("mult_adds", "num_params")
            )
            lines = str(found).split("\nTotal params")[0].splitlines()[3:-1]
            cells = [[cell.replace(",", "").strip("()") for cell in line.split()[-2:]]
                     for line in lines]  # fmt: skip
            sums = [sum(int(row[n]) for row in cells if row[n].isdecimal()) for n in (0, 1)]
            assert sums == [found.total_macs, found.total_params], (depth, str(found))


def test_ascii_only() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    model.add_module("données\x1b[31m", nn.Linear(3, 3))
    found = layerscope.summary(model, (1, 3), row_settings=("ascii_only", "var_names"), verbose=0)
    assert str(found).isascii()
    assert "donn\\xe9es\\x1b[31m" in str(found)
    text = str(layerscope.summary(model, (1, 3), verbose=0))
    assert "Linear (données\\x1b[31m): 1-2" in text


def test_columns_of_layerscope() -> None:
    found = layerscope.summary(
        Classifier(), (1, 3, 8, 8), col_names=("window", "macs", "memory", "status"), verbose=0
    )
    line = next(line for line in str(found).splitlines() if "Conv2d (0): 2-1" in line)
    assert line.split()[-5:] == ["3x3", "13,824", "2.05", "kB", "exact"]


def test_unknown_operators_are_marked() -> None:
    with torch.library._scoped_library("layerscope_summary", "DEF") as library:
        library.define("twist(Tensor x) -> Tensor")
        library.impl("twist", lambda x: x * 2, "CompositeExplicitAutograd")

        class Twist(nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return torch.ops.layerscope_summary.twist(x)

        model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(Twist(), nn.Linear(4, 2)))
        found = layerscope.summary(model, (3, 4), col_names=("mult_adds",), depth=1, verbose=0)
        deep = layerscope.summary(model, (3, 4), col_names=("mult_adds",), verbose=0)
    assert "Sequential (1): 1-2                    ≥24" in str(found)
    assert "Total mult-adds: ≥72\n" in str(found)
    assert "unknown: layerscope_summary.twist ×1" in str(found)
    assert next(line for line in str(deep).splitlines() if "Twist" in line).split()[-1] == "?"


def test_tied_parameters_are_in_both_rows_and_once_in_the_total() -> None:
    class Tied(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(9, 4)
            self.head = nn.Linear(4, 9, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x: Any) -> Any:
            return self.head(self.embed(x))

    data = torch.zeros(1, 3, dtype=torch.int64)
    found = layerscope.summary(Tied(), input_data=data, verbose=0)
    assert rows(str(found)) == rows(theirs(Tied(), input_data=data))
    assert found.total_params == 36
    assert "36 tied parameters are in several rows, and once in the totals" in str(found)


# Inputs, modes, caching


class Moody(nn.Module):  # type: ignore[misc]
    """Another head in train mode; counts how often its forward runs."""

    runs = 0

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        Moody.runs += 1
        return self.b(self.a(x)) if self.training else self.a(x)


def test_modes() -> None:
    model = Moody()
    for mode, count in ((None, 2), ("eval", 2), ("train", 3)):
        found = layerscope.summary(model, (1, 4), mode=mode, verbose=0, like="torchinfo")
        assert rows(str(found)) == rows(theirs(model, input_size=(1, 4), mode=mode))
        assert len(found.summary_list) == count
    assert len(layerscope.summary(model, (1, 4), mode="same", verbose=0).summary_list) == 3
    assert len(layerscope.summary(model.eval(), (1, 4), mode="same", verbose=0).summary_list) == 2
    assert not model.training


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_batch_dim(axis: int) -> None:
    class Sized(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: Any, y: Any) -> Any:
            return self.act(x + y)

    sizes = [(5, 6), (5, 6)]
    found = layerscope.summary(Sized(), input_size=sizes, batch_dim=axis, verbose=0)
    shape = torch.zeros(5, 6).unsqueeze(axis).shape
    assert found.summary_list[1].output_size == list(shape)
    if axis >= 0:  # torchinfo prints inputs of a negative axis with an axis more
        assert rows(str(found)) == rows(theirs(Sized(), input_size=sizes, batch_dim=axis))
    named = layerscope.summary(
        Sized(), input_size={"x": (5, 6), "y": (5, 6)}, batch_dim=axis, verbose=0
    )
    assert rows(str(named)) == rows(str(found))


def test_dtypes_and_arguments_of_forward() -> None:
    options: dict[str, Any] = {
        "input_size": [(2, 4), (2, 5, 9)], "dtypes": [torch.int64, torch.float32], "scale": 2.0
    }  # fmt: skip
    assert rows(ours(Pair(), **options)) == rows(theirs(Pair(), **options))


def test_a_dict_that_is_the_only_argument_is_wrapped_in_a_list() -> None:
    class Takes(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, batch: Any) -> Any:
            return self.inner(batch["x"])

    data = [{"x": torch.zeros(4, 3)}]
    assert rows(ours(Takes(), input_data=data))[1:] == rows(theirs(Takes(), input_data=data))[1:]


def test_the_forward_is_cached_on_request() -> None:
    model, x = Moody(), torch.zeros(2, 4)
    before = Moody.runs
    first = layerscope.summary(model, input_data=x, cache_forward_pass=True, verbose=0)
    again = layerscope.summary(
        model, input_data=x + 1, cache_forward_pass=True, verbose=0, depth=0,
    )  # fmt: skip
    assert Moody.runs == before + 1
    assert first.total_macs == again.total_macs == 32
    assert len(rows(str(again))) == 1
    other = layerscope.summary(model, (5, 4), cache_forward_pass=True, verbose=0)
    assert other.total_macs == 80
    assert layerscope.summary(model, (2, 4), mode="train", verbose=0,
                              cache_forward_pass=True).total_macs == 64  # fmt: skip
    runs = Moody.runs
    layerscope.summary(model, input_data=x, verbose=0)
    assert Moody.runs == runs + 1
    another = Moody()  # torchinfo would print the first model for any of this class
    another.a = nn.Linear(4, 8)
    found = layerscope.summary(another, input_data=x, cache_forward_pass=True, verbose=0)
    assert found.total_macs == 64


@pytest.mark.parametrize(
    "options, message",
    [
        ({"col_names": ("kernel",)}, r"unknown column 'kernel'; choose from kernel_size, groups, "),
        ({"col_names": "num_params"}, r"unknown column 'num_params' \(a text, expected a list"),
        ({"row_settings": ("ascii",)},
         "unknown row setting 'ascii'; choose from ascii_only, depth, hide_recursive_layers, "),
        ({"mode": "test"}, "unknown mode 'test'; choose from train, eval, same"),
        ({"verbose": 3}, "verbose 3, expected 0"),
        ({"col_width": 0}, "col_width 0, expected at least 1"),
        ({"depth": -1}, "depth -1, expected at least 0"),
        ({"device": "nonsense"}, "device 'nonsense': "),
        ({"batch_dim": 7}, "batch_dim 7, expected an axis"),
        ({"input_data": torch.zeros(1, 4)}, "say either input_size"),
        ({"input_size": None, "input_data": torch.zeros(1, 4), "batch_dim": 0},
         "batch_dim is for input_size, and input_data has its batch"),
    ],
)  # fmt: skip
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        layerscope.summary(Moody(), **{"input_size": (1, 4), **options})


SCRIPT = """
import torch
from torch import nn
{imported}

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters())
losses = []
for epoch in range(3):
    {called}
    x, y = torch.randn(16, 4), torch.randint(2, (16,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
state = {{name: array.clone() for name, array in model.state_dict().items()}}
"""


def trained(imported: str, called: str) -> tuple[list[float], dict[str, Any]]:
    names: dict[str, Any] = {}
    exec(SCRIPT.format(imported=imported, called=called), names)
    assert names["model"].training
    return names["losses"], names["state"]


@pytest.mark.parametrize(
    "package, call",
    [
        ("torchinfo", "summary(model, input_data=torch.zeros(16, 4))"),
        ("layerscope", "summary(model, input_data=torch.zeros(16, 4))"),
        ("layerscope", "summary(model, (16, 4))"),  # torchinfo draws random numbers for this
        ("layerscope", "summary(model, (16, 4), mode='train', verbose=0)"),
        ("layerscope.dropins", "summary(model, (16, 4), verbose=2)"),
    ],
)
def test_a_training_script_goes_on_as_without_a_summary(package: str, call: str) -> None:
    losses, state = trained("", "pass")
    found, arrays = trained(f"from {package} import summary", call)
    assert found == losses
    assert all(torch.equal(arrays[name], state[name]) for name in state)


class Split(nn.Module):  # type: ignore[misc]
    """A module of a container is also the model's own and runs first; another one is unused."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.inner = nn.Sequential(nn.Linear(8, 8), self.first, nn.BatchNorm1d(8))
        self.unused = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        return self.inner(self.first(x))


class Twice(nn.Module):  # type: ignore[misc]
    """Two modules with one weight, in a container."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
        self.inner[1].weight = self.inner[0].weight

    def forward(self, x: Any) -> Any:
        return self.inner(x)


def quantized() -> Any:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4, bias=False))
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [Split, Twice, quantized, lambda: nn.Linear(8, 8)])
@pytest.mark.parametrize("depth", [1, None])
def test_the_params_of_the_rows_add_up_to_the_total(make: Any, depth: int | None) -> None:
    """Tied ones are in several rows, and the note has their number."""
    model = make()
    found = layerscope.summary(model, (2, 8), verbose=0, depth=depth)
    rows = [row for row in found.summary_list if not row.is_recursive]
    assert all(row.own_params >= 0 for row in rows)
    every = model.named_parameters(remove_duplicate=False)
    tied = sum(array.numel() for _, array in every) - sum(p.numel() for p in model.parameters())
    assert sum(row.own_params for row in rows) == found.total_params + tied
    notes = re.findall(r"^([\d,]+) tied parameters", str(found), re.MULTILINE)
    assert notes == ([str(tied)] if tied else [])


@pytest.mark.filterwarnings("ignore")
def test_packed_params_of_a_quantized_module_are_in_its_row() -> None:
    found = layerscope.summary(quantized(), (2, 8), verbose=0)
    assert [row.num_params for row in found.summary_list] == [104, 72, 0, 32]
    assert "(72)" in str(found)
    assert found.total_params == 104
    layerscope.summary(quantized(), (2, 8), verbose=2)
    declared = layerscope.summary(quantized(), verbose=0)  # not run
    assert (declared.total_params, declared.trainable_params) == (104, found.trainable_params)


@pytest.mark.parametrize("like", ["cs231n", "netscope", "thop"])
def test_a_convention_that_leaves_out_params_ties_none(like: str) -> None:
    found = layerscope.summary(nn.Linear(8, 8), (2, 8), verbose=0, like=like)
    assert "tied parameters are" not in str(found)
