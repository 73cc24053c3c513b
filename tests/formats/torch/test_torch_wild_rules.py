"""The reasons of make test-wild: what they add up, and that nothing else passes."""

from __future__ import annotations

from typing import Any

import pytest

import layerscope
from tests.formats.torch.torch_nets import Doing, nn, on, torch
from tests.wild import compare_torch, reference_torch
from tests.wild.compare_torch import Built, Result, compare, limited
from tests.wild.rules import REASONS, Call, Row, explain
from tests.wild.run_torch import table, verdict


def of_call(operator: str, *shapes: tuple[int, ...], macs: int = 0, **more: Any) -> Call:
    return Call(operator, shapes, (), macs, more.pop("constant", False), **more)


@pytest.mark.parametrize(
    ("reason", "call", "macs"),
    [
        ("no formula", of_call("aten::mv", (3, 5), (5,)), 15),
        ("no formula", of_call("aten::dot", (7,), (7,)), 7),
        ("no formula", of_call("aten::addmv", (3,), (3, 5), (5,)), 15),
        ("no formula", of_call("aten::addbmm", (3, 4), (2, 3, 5), (2, 5, 4)), 120),
        ("no formula", of_call("aten::_grouped_mm", (6, 8), (2, 8, 10), (2,)), 480),
        ("no formula", of_call("aten::_int_mm", (3, 5), (5, 4)), 60),
        (
            "no formula",
            Call("aten::_trilinear", ((3, 4), (6, 4, 5), (3, 5)), (3, 6), 0, False),
            450,
        ),
        ("constants", of_call("aten::mm", (2, 3), (3, 4), macs=24, constant=True), -24),
        ("complex", of_call("aten::mm", (2, 3), (3, 4), macs=24, complex_arguments=2), 72),
    ],
)
def test_reasons_by_closed_form(reason: str, call: Call, macs: int) -> None:
    assert explain(macs, [call], []) == ({reason: macs}, 0)
    assert explain(macs + 1, [call], []) == ({reason: macs}, 1)


def test_every_reason_is_applied() -> None:
    """A reason that applies counts also where a subset of the reasons would fit."""
    calls = [of_call("aten::dot", (7,), (7,)), of_call("aten::mm", macs=7, constant=True)]
    assert explain(0, calls, []) == ({"no formula": 7, "constants": -7}, 0)
    assert explain(7, calls, [])[1] == 7


def test_einsum_over_axes_of_size_1() -> None:
    rows = [Row("einsum", 12, 12), Row("einsum", 24, 12), Row("linear", 12, 12)]
    assert explain(12, [], rows) == ({"einsum over axes of size 1": 12}, 0)


def test_rows_of_linear_algebra_that_the_reference_ran() -> None:
    rows = [Row("solve", 12, 4), Row("qr", 5, 4), Row("linear", 7, 7)]
    calls = [of_call("aten::_linalg_solve_ex", (2, 2), (2, 2))]
    assert explain(12, calls, rows) == ({"linear algebra": 12}, 0)
    assert explain(12, [], rows) == ({}, 12)


def test_distances_that_are_one_operator() -> None:
    """Checked against the row that a capture has for them."""
    many, few = (torch.rand(rows, 3, device="meta") for rows in (40, 4))
    for x in (many, few):
        rows = x.shape[0]
        report = layerscope.summary(Doing(lambda x: torch.cdist(x, x)), input_data=x, verbose=0)
        call = Call("aten::_cdist_forward", ((rows, 3), (rows, 3)), (rows, rows), 0, False)
        macs = sum(explain(0, [call], [])[0].values())
        assert macs == report.total_macs == (40 * 40 * 5 if rows == 40 else 0)


def test_a_constant_has_no_reason_of_its_own() -> None:
    """Neither a formula that lacks nor a complex product: it is not counted at all."""
    call = of_call("aten::mv", (3, 5), (5,), constant=True, complex_arguments=2)
    assert explain(0, [call], []) == ({}, 0)


def test_a_grouped_product_of_other_ranks_is_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        REASONS["no formula"]([of_call("aten::_grouped_mm", (2, 6, 8), (2, 8, 10))], [])


def called(forward: Any, *given: Any) -> list[Call]:
    return reference_torch.calls(Doing(forward), given, {})


def test_what_is_constant_is_followed_through_views_and_writes() -> None:
    ones = torch.ones(4, 4)

    def forward(x: Any) -> Any:
        written = torch.zeros(4, 4)
        written[0] = x[0]  # through a view
        return ones @ ones.t(), written @ ones, ones @ x

    assert [call.constant for call in called(forward, torch.ones(4, 4))] == [True, False, False]


def test_parameters_are_not_constant() -> None:
    layer = nn.Linear(3, 5)
    calls = reference_torch.calls(layer, (torch.zeros(2, 3),), {})
    assert [(call.operator, call.macs, call.constant) for call in calls] == [
        ("aten::addmm", 30, False)
    ]


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_attention_is_counted_in_both(device: str) -> None:
    """Fused attention and the fast path of an encoder layer hide products from the reference."""
    layer = on(device, lambda: nn.TransformerEncoderLayer(16, 2, 24, batch_first=True)).eval()
    x = torch.zeros(1, 5, 16, device=device)
    counted = reference_torch.count(layer, (x,), {})
    assert counted == layerscope.summary(layer, input_data=(x,), verbose=0).total_macs
    assert counted == 5 * (4 * 16 * 16 + 2 * 16 * 24) + 2 * 5 * 5 * 16
    assert all(param.requires_grad for param in layer.parameters())


def outcome(forward: Any, shape: tuple[int, ...]) -> Result:
    build = lambda name: Built(Doing(forward), (torch.ones(shape),))  # noqa: E731
    [result] = compare("package", "model", build, 60)
    return result


def test_outcomes() -> None:
    square = (4, 4)
    assert outcome(lambda x: x @ x, square).outcome == "equal"
    found = outcome(lambda x: x @ x[0], square)
    assert (found.outcome, found.reasons) == ("reason", {"no formula": 16})
    failing = outcome(lambda x: x @ x[:3], square)
    assert failing.outcome == "no reference"
    assert "meta: " in failing.message
    assert "cpu: " in failing.message
    looking = outcome(lambda x: x @ x if x.sum() > 0 else x, square)
    assert (looking.device, looking.outcome) == ("cpu", "equal")


def test_a_difference_without_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    count = reference_torch.count
    monkeypatch.setattr(reference_torch, "count", lambda *given: count(*given) + 3)
    found = outcome(lambda x: x @ x, (4, 4))
    assert (found.outcome, found.message) == ("different", "-3 of -3 without a reason")


def test_a_refusal_is_no_failure_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(layerscope, "summary", refuse)
    assert outcome(lambda x: x @ x, (4, 4)).outcome == "refused"


class Masked(nn.Module):  # type: ignore[misc]
    def forward(self, x: Any, mask: Any = None) -> Any:
        modes = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        if mask is not None and "FlopCounter" in str(modes):
            raise RuntimeError("fails in the reference alone")
        return x @ x


def test_the_reference_without_a_mask_where_it_fails_with_one() -> None:
    def build(name: str) -> Built:
        return Built(Masked(), (torch.ones(4, 4),), mask={"mask": torch.ones(4)})

    found = compare("package", "model", build, 60)
    assert [(result.name, result.outcome, result.reference) for result in found] == [
        ("model", "equal", 64),
        ("model + mask", "equal", 64),
    ]


def test_a_time_limit_is_no_exception_that_code_catches() -> None:
    def endless() -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:
                continue

    with pytest.raises(compare_torch.TimeLimit):
        limited(1, endless)


def results(**counts: int) -> list[Result]:
    return [
        Result("p", str(n), outcome.replace("_", " "))
        for outcome, count in counts.items()
        for n in range(count)
    ]


def test_limits() -> None:
    assert verdict(results(equal=199, refused=1, no_reference=50)) == []
    assert len(verdict(results(equal=98, refused=1, no_reference=50))) == 1
    assert len(verdict(results(equal=98, unknown=2))) == 1
    assert len(verdict(results(equal=1000, different=1))) == 1


def test_the_table_adds_up() -> None:
    lines = table(results(equal=3, unknown=1, no_reference=2)).splitlines()
    assert lines[1].split() == ["p", "6", "3", "0", "0", "0", "1", "2"]
    assert lines[2].split()[1:] == lines[1].split()[1:]
