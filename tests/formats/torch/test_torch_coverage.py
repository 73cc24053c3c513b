"""How many functions of PyTorch have a rule, and what the rules of the rarer ones say."""

from __future__ import annotations

from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError
from layerscope.formats.torch.capture import capture
from layerscope.graph import attributes as at
from layerscope.ops import SPECS, Call, Ops
from tests.formats.torch import torch_coverage as coverage
from tests.formats.torch.torch_nets import Doing, f, nn, torch

pytestmark = pytest.mark.filterwarnings("ignore")
LEAST, LEAST_FUNCTIONAL = 0.94, 0.97  # of the functions, with a rule


def ops_of(call: Any, *given: Any) -> list[str]:
    return [node.op for node in capture(Doing(call), given).nodes]


def macs(call: Any, *given: Any) -> int:
    return layerscope.analyze(Doing(call), input_data=list(given)).total_macs


def test_functions_have_a_rule_or_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """All of PyTorch's own sample calls, and the rest of torch.nn.functional."""
    found = coverage.outcomes()
    missing = {each.name for each in found if each.unknown or each.refused}
    functional = [each for each in found if each.name.startswith("nn.functional.")]
    without = [each.name for each in functional if each.unknown or each.refused]
    with capsys.disabled():
        print(f"\n{len(found) - len(missing)} of {len(found)} functions of PyTorch have a rule, ")
        print(f"{len(functional) - len(without)} of {len(functional)} of torch.nn.functional")
    assert {name for name in missing if not coverage.reason(name)} == set()
    assert len(found) - len(missing) >= LEAST * len(found)
    assert len(functional) - len(without) >= LEAST_FUNCTIONAL * len(functional)


@pytest.mark.parametrize("name", sorted(coverage.FUNCTIONAL))
def test_the_rest_of_functional(name: str) -> None:
    made = coverage.outcome(
        name, [(coverage.FUNCTIONAL[name][0], coverage.FUNCTIONAL[name][1], {})]
    )
    assert (made.unknown, made.refused) == (set(), "")


@pytest.mark.parametrize("size", [1, 4, 5, 16])
def test_fft_is_counted_as_dft(size: int) -> None:
    """`dft` has real and imaginary parts on an axis of their own, `fft` in one number."""
    one = Call(at.DFT(1), ((3, size, 2),), ((3, size, 2),))
    other = Call(at.FFT((1,)), ((3, size),), ((3, size),))
    assert SPECS["fft"].ops(other) == SPECS["dft"].ops(one)
    both = Call(at.FFT((0, 1)), ((size, size),), ((size, size),))
    line = SPECS["fft"].ops(Call(at.FFT((0,)), ((size, size),), ((size, size),)))
    assert SPECS["fft"].ops(both) == line * 2


@pytest.mark.parametrize("op", ["svd", "eigh", "eig"])
def test_lower_bounds_grow_as_the_cube(op: str) -> None:
    def count(n: int) -> int:
        return SPECS[op].ops(Call(at.DeclaredOutputs(((n,),), ("fp32",)), ((n, n),), ((n,),))).mac

    assert 7 < count(400) / count(200) < 9
    assert SPECS[op].estimate.startswith("at least")


@pytest.mark.parametrize(
    ("call", "shapes", "expected"),
    [
        (torch.addbmm, ((3, 5), (2, 3, 4), (2, 4, 5)), 120),
        (lambda x, y: torch.cdist(x, y), ((30, 7), (20, 7)), 30 * 20 * 9),
        (lambda x, w, b: torch.conv_tbc(x, w, b, 1), ((5, 2, 3), (3, 3, 4), (4,)), 5 * 2 * 4 * 9),
        (f.bilinear, ((2, 3), (2, 4), (5, 3, 4)), 2 * 5 * 3 * 4 + 2 * 5 * 4),
    ],
)
def test_products_have_these_macs(call: Any, shapes: Any, expected: int) -> None:
    assert macs(call, *[torch.rand(shape) for shape in shapes]) == expected


def test_views_cost_nothing() -> None:
    for call in (
        lambda x: x.diagonal(), lambda x: x.as_strided((2, 3), (1, 1)),
        lambda x: torch.view_as_complex(x[:, :2].contiguous()), lambda x: x.view(torch.int32),
    ):  # fmt: skip
        report = layerscope.analyze(Doing(call), input_size=(4, 4))
        [row] = [layer for layer in report.layers if layer.op == "view"]
        assert (row.cost.ops.flops, row.cost.write_bytes, row.cost.status) == (0, 0, "exact")


def written(x: Any) -> Any:
    y = x.clone()
    y.diagonal().fill_(1.0)
    y.unfold(0, 2, 2).mul_(2)
    return y


def test_writes_through_any_view_are_followed() -> None:
    assert "insert" in ops_of(written, torch.rand(4, 4))
    assert set(ops_of(written, torch.rand(4, 4))) <= SPECS.keys()


def with_out(x: Any) -> Any:
    y, z = torch.empty(3, 5), torch.empty(0)
    torch.matmul(x, torch.ones(4, 5), out=y)
    values, places = torch.empty(3), torch.empty(3, dtype=torch.long)
    torch.max(y, 1, out=(values, places))
    torch.cumsum(values, 0, out=z)
    return z.exp()


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_out_forms_are_those_without(device: str) -> None:
    with torch.device(device):
        graph = capture(Doing(with_out), (torch.ones(3, 4),))
    made = [node.op for node in graph.nodes if node.op != "constant"]
    assert made == ["matmul", "reduce_max", "arg_max", "cum_sum", "exp"]
    assert macs(with_out, torch.ones(3, 4)) == 60


def sized(x: Any) -> Any:
    mask = torch.arange(4) > 0
    return x[:, mask], x.masked_select(mask), x + mask.nonzero().shape[0]


def test_sizes_that_known_values_decide() -> None:
    graph = capture(Doing(sized), (torch.rand(3, 4, device="meta"),))
    shapes = [node.attributes.shapes[0] for node in graph.nodes if node.op == "compress"]
    assert shapes == [(3, 3), (9,)]
    other = capture(Doing(lambda x: x[:, torch.arange(4) > 2]), (torch.rand(3, 4, device="meta"),))
    assert [n.attributes.shapes[0] for n in other.nodes if n.op == "compress"] == [(3, 1)]


def test_sizes_that_other_values_decide() -> None:
    """On a real device the model is run; on meta the operator is named."""
    x = torch.tensor([[1.0, -1.0], [2.0, 3.0]])
    graph = capture(Doing(lambda x: x[x > 0]), (x,))
    [node] = [node for node in graph.nodes if node.op == "compress"]
    assert node.attributes.shapes == ((3,),)
    report = layerscope.analyze(Doing(lambda x: x[x > 0]), input_data=[x])
    [row] = [layer for layer in report.layers if layer.op == "compress"]
    assert (row.cost.ops, row.cost.status) == (Ops(comp=4), "exact")
    net = nn.Sequential(nn.Linear(2, 2, device="meta"), Doing(lambda x: x[x > 0]))
    with pytest.raises(ModelError, match=r"aten\.index makes a tensor whose size depends"):
        capture(net, (torch.rand(2, 2, device="meta"),))
