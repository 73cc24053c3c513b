"""Names that people know from other counters, and operators of their own."""

from __future__ import annotations

from typing import Any

import pytest

import layerscope
from layerscope.errors import UsageError
from tests.formats.torch.torch_nets import Reused, nn, torch

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean((2, 3)))


MACS = {"body": 64 * 8 * 27, "head": 80}


def test_summary_takes_what_torchinfos_does() -> None:
    report = layerscope.summary(
        Net(), input_size=(1, 3, 8, 8), col_names=("output_size", "num_params", "mult_adds"),
        depth=1, device="cpu", verbose=0, mode="eval",
    )  # fmt: skip
    text = str(report)
    titles = ["Output", "Shape", "Param", "#", "Mult-Adds"]
    assert text.splitlines()[1].split()[3:] == titles
    assert "Total params: 330\nTrainable params: 330\n" in text
    assert "Total mult-adds: 13,904\n" in text
    assert report.total_mult_adds == report.total_macs == sum(MACS.values())
    assert report.total_flops == report.totals.flops
    assert isinstance(report, layerscope.Report)


def test_summary_leaves_the_mode() -> None:
    net = Net().train()
    layerscope.summary(net, (1, 3, 8, 8), mode="eval", verbose=0)
    assert net.training
    assert net.body[1].training


def test_inputs_in_every_form() -> None:
    x = torch.zeros(2, 3, 8, 8)
    macs = {
        layerscope.summary(Net(), input_size=[(2, 3, 8, 8)], verbose=0).total_macs,
        layerscope.summary(Net(), input_size={"x": (2, 3, 8, 8)}, verbose=0).total_macs,
        layerscope.summary(Net(), input_data=x, verbose=0).total_macs,
        layerscope.summary(Net(), input_data={"x": x}, verbose=0).total_macs,
        layerscope.summary(Net(), input_data=(x,), verbose=0).total_macs,
        layerscope.analyze(Net(), input=(2, 3, 8, 8), batch=2).total_macs,
        layerscope.profile(Net(), inputs=(x,), verbose=False)[0],
    }
    assert macs == {2 * sum(MACS.values())}
    with pytest.raises(UsageError, match="2 dtypes for 1 inputs"):
        layerscope.summary(Net(), (1, 3, 8, 8), dtypes=[torch.float32, torch.int64], verbose=0)


def test_profile() -> None:
    assert layerscope.profile(Reused(), inputs=(torch.zeros(1, 100),)) == (30_000, 10_100)


def test_flop_count_analysis() -> None:
    counted = layerscope.FlopCountAnalysis(Net(), torch.zeros(1, 3, 8, 8))
    assert counted.total() == sum(MACS.values())
    assert counted.total("body") == MACS["body"]
    assert counted.by_module()["body.0"] == MACS["body"]
    assert counted.by_module()["body.1"] == 0
    assert counted.by_operator() == {"conv": MACS["body"], "linear": MACS["head"]}
    assert counted.by_module_and_operator()["head"] == {"linear": MACS["head"]}
    assert not counted.unsupported_ops()


@pytest.fixture
def operator() -> Any:
    """An operator of one's own, gone after the test."""
    with torch.library._scoped_library("layerscope_test", "DEF") as library:
        library.define("twist(Tensor x, int times) -> Tensor")
        library.impl("twist", lambda x, times: x * times, "CompositeExplicitAutograd")
        yield torch.ops.layerscope_test.twist


class Twisted(nn.Module):  # type: ignore[misc]
    def __init__(self, operator: Any) -> None:
        super().__init__()
        self.operator = operator
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.operator(self.linear(x), 3)


def test_unknown_operators_are_named(operator: Any) -> None:
    report = layerscope.summary(Twisted(operator), (2, 4), verbose=0)
    assert report.coverage.unknown == {"layerscope_test.twist": 1}
    assert report.layers[-1].output == (2, 4)
    assert report.total_macs == 32
    assert (report.total_params, report.params_complete) == (20, True)  # the model has all of them
    counted = layerscope.FlopCountAnalysis(Twisted(operator), torch.zeros(2, 4))
    assert counted.unsupported_ops() == {"layerscope_test.twist": 1}


def test_operators_can_be_taught(operator: Any) -> None:
    def rule(x: Any, times: int, *, out_shape: Any) -> int:
        assert (x, out_shape) == ((2, 4), (2, 4))
        return 100 * times

    report = layerscope.summary(
        Twisted(operator), (2, 4), rules={"layerscope_test::twist": rule}, verbose=0
    )
    assert report.total_macs == 32 + 300
    assert not report.coverage.unknown
    assert report.layers[-1].node.source is not None
    assert report.layers[-1].node.source.op == "layerscope_test.twist"
    kinds = layerscope.summary(
        Twisted(operator),
        (2, 4),
        rules={"layerscope_test.twist": lambda *_, **__: {"add": 5}},
        verbose=0,
    )
    assert kinds.layers[-1].ops.add == 5


WRONG_RULES: dict[str, Any] = {
    "no dict": 5,
    "no function": {"layerscope_test::twist": 5},
    "below 0": {"layerscope_test::twist": lambda *_, **__: -7},
    "no whole number": {"layerscope_test::twist": lambda *_, **__: 1.5},
    "nothing": {"layerscope_test::twist": lambda *_, **__: None},
    "text": {"layerscope_test::twist": lambda *_, **__: "7"},
    "an unknown kind": {"layerscope_test::twist": lambda *_, **__: {"macs": 7}},
    "a kind below 0": {"layerscope_test::twist": lambda *_, **__: {"add": -7}},
}


@pytest.mark.parametrize("name", WRONG_RULES)
def test_a_wrong_rule_is_refused(operator: Any, name: str) -> None:
    """Its count would be in the totals, or make them fail later."""
    with pytest.raises(UsageError, match=r"rule"):
        layerscope.summary(Twisted(operator), (2, 4), rules=WRONG_RULES[name], verbose=0)


def test_a_rule_may_return_a_whole_float(operator: Any) -> None:
    rules = {"layerscope_test::twist": lambda *_, **__: 7.0}
    found = layerscope.summary(Twisted(operator), (2, 4), rules=rules, verbose=0)
    counts = [layer.ops.mac for layer in found.layers if layer.op == "custom"]
    assert counts == [7]
    assert type(counts[0]) is int


def test_formulas_of_pytorchs_counter_are_heeded(operator: Any) -> None:
    flop_counter = pytest.importorskip("torch.utils.flop_counter")
    flop_counter.register_flop_formula(operator)(lambda x, times, **told: 2 * 7 * times)
    try:
        assert layerscope.summary(Twisted(operator), (2, 4), verbose=0).total_macs == 32 + 21
    finally:
        flop_counter.flop_registry.pop(operator)


def test_frozen_parameters() -> None:
    net = Net()
    net.body.requires_grad_(False)
    report = layerscope.summary(net, (1, 3, 8, 8), verbose=0)
    assert (report.total_params, report.trainable_params) == (330, 90)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("layerscope_test::twst", "did you mean layerscope_test::twist"),
        ("aten::qqqqqqqqqqqqqqqqqqqqqqqqq", "aten has aten::"),
        ("nobodys_library::zzzzzzzz", "no library with it is imported"),
    ],
)
def test_a_rule_for_an_operator_that_does_not_exist(operator: Any, name: str, says: str) -> None:
    rules = {name: lambda *_, **__: 7}
    with pytest.raises(UsageError, match="unknown operator in rules") as raised:
        layerscope.analyze(Twisted(operator), input_size=(2, 4), rules=rules)
    assert says in str(raised.value)


@pytest.mark.parametrize("name", ["aten::bmm", "aten.bmm", "bmm", "flex_attention.score_mod"])
def test_a_rule_for_an_operator_that_the_model_does_not_call(operator: Any, name: str) -> None:
    rules = {name: lambda *_, **__: 7}
    found = layerscope.analyze(Twisted(operator), input_size=(2, 4), rules=rules)
    assert found.coverage.unknown


def test_sizes_of_a_module_contradict_other_options() -> None:
    with pytest.raises(UsageError, match="batch 2 cannot be combined with input 1x3x8x8"):
        layerscope.analyze(Net(), input=(1, 3, 8, 8), batch=2)
    with pytest.raises(UsageError, match="batch 2 cannot be combined with input 1x3x8x8"):
        layerscope.analyze(Net(), input_size=[(1, 3, 8, 8)], batch=2)
    with pytest.raises(UsageError, match="batch 2 cannot be combined with input x=1x3x8x8"):
        layerscope.analyze(Net(), input_size={"x": (1, 3, 8, 8)}, batch=2)
    with pytest.raises(UsageError, match="dtype fp32 cannot be combined with dtypes fp16"):
        layerscope.analyze(Net(), input=(1, 3, 8, 8), dtype="fp32", dtypes=[torch.float16])
    embedding = nn.Sequential(nn.Embedding(10, 4))
    with pytest.raises(UsageError, match="tokens 7 cannot be combined with input 1x5"):
        layerscope.analyze(embedding, input_size=(1, 5), tokens=7)
    assert layerscope.analyze(embedding, input_size=(1, 7), tokens=7).inputs[0].shape == (1, 7)


def test_sizes_of_a_named_model_contradict_other_options() -> None:
    with pytest.raises(UsageError, match="batch 4 cannot be combined with input 2x3x64x64"):
        layerscope.analyze("torchvision:resnet18", input=(2, 3, 64, 64), batch=4)
    with pytest.raises(UsageError, match="phase has no effect: torchvision:resnet18 is the name"):
        layerscope.analyze("torchvision:resnet18", phase="train")
