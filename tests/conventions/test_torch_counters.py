"""Conventions of other counters on calls of PyTorch: products, einsum, what a tool refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from layerscope import Report, analyze
from layerscope.cli import run
from tests.formats.torch.torch_nets import Doing, nn, torch


def captured(forward: Any, *shapes: tuple[int, ...], like: str = "fvcore") -> Report:
    given = [torch.empty(shape, device="meta") for shape in shapes]
    return analyze(Doing(forward), input_data=given, like=like)


@pytest.mark.parametrize("name", ["fvcore", "timm", "mmengine"])
def test_a_product_that_broadcasts(name: str) -> None:
    """Of which fvcore counts the first tensor and the columns of the second, as it prints."""
    for one, two, figure, made in (
        ((196, 1), (24, 1, 32), 6_272, 24 * 196 * 32),
        ((5, 196), (3, 196, 7), 6_860, 3 * 5 * 7),
        ((4,), (3, 4, 2), 8, 6),
        ((2, 3, 4), (4, 5), 120, 30),
    ):
        report = captured(lambda a, b: a @ b, one, two, like=name)
        assert report.totals.convention_ops == figure
        assert report.totals.convention_activations == made
        assert report.notes == ()


def test_einsum_as_numpy_counts_it() -> None:
    for equation, shapes, figure in (
        ("ij,jk,kl->il", [(3, 5), (5, 2), (2, 1)], 25),
        ("i,j->ij", [(3,), (3,)], 5),
        ("ij->i", [(5, 2)], 10),
        ("ii->i", [(5, 5)], 3),
    ):
        report = captured(lambda *x, e=equation: torch.einsum(e, *x), *shapes)
        assert report.totals.convention_ops == figure


def test_where_a_tool_has_no_figure_the_report_says_so() -> None:
    report = captured(lambda a, b: a @ b, (3, 4), (4,))
    [note] = report.notes
    assert note.startswith("fvcore raises an error here: its formula for matmul")
    assert json.loads(report.to_json())["notes"] == [note]
    assert captured(lambda a, b: a @ b, (3, 4), (4,), like="exact").notes == ()


def test_mmengine_counts_a_product_with_a_vector() -> None:
    for one, two, figure in (((3, 4), (4,), 12), ((4,), (4,), 4), ((2, 3, 4), (4,), 24)):
        report = captured(lambda a, b: a @ b, one, two, like="mmengine")
        assert report.notes == ()
        assert report.totals.convention_ops == figure
    report = analyze(nn.LayerNorm(4), input_data=torch.empty(4, device="meta"), like="mmengine")
    [note] = report.notes
    assert note.startswith("mmengine raises an error here: its formula for layer_norm")


def test_a_caveat_on_the_command_line(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n\nclass Net(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x @ x[0, 0, 0]\n"
    )
    told = ["show", f"{tmp_path}/net.py:Net", "--input", "1x3x4x4"]
    assert run([*told, "--like", "fvcore"]) == 0
    assert "fvcore raises an error here" in capsys.readouterr().out
    assert run(told) == 0
    assert "raises an error" not in capsys.readouterr().out


def test_differential_attention_written_out() -> None:
    """Scores of both maps, and one product with the values: timm's code without fused kernels."""

    class DiffAttention(nn.Module):  # type: ignore[misc]
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            attend = torch.nn.functional.scaled_dot_product_attention
            return attend(q, k, v) - attend(q, k, v)

    given = [torch.empty(2, 3, 5, size, device="meta") for size in (4, 4, 8)]
    report = analyze(DiffAttention(), input_data=given, like="timm")
    scores = 2 * (2 * 3 * 5 * 5)
    assert report.totals.convention_ops == scores * 4 + scores // 2 * 8
    assert report.totals.convention_activations == scores + 2 * 3 * 5 * 8
