"""Which arrays of an ONNX file are parameters: by what it says, what reads them, their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import pytest
from onnx import helper, numpy_helper  # noqa: TID251

from layerscope import Report, analyze
from tests.formats.onnx.onnx_files import model, node, value, zeros

KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
FOLDED = "pkg.onnxscript.optimizer.folded_from"
LUCK = np.random.default_rng(0)


def random(name: str, *shape: int) -> Any:
    return numpy_helper.from_array(LUCK.normal(size=shape).astype(np.float32), name)


def full(name: str, number: float, *shape: int) -> Any:
    return numpy_helper.from_array(np.full(shape, number, np.float32), name)


def constant(name: str, array: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=array)


@pytest.fixture
def account(tmp_path: Path) -> Any:
    """The report of a model of these nodes and arrays, as PyTorch would have written it."""

    def made(
        nodes: Sequence[Any],
        stored: Sequence[Any],
        said: dict[str, tuple[str, str]] | None = None,
        *,
        inputs: str = "x 1x8x6x6",
        producer: str = "pytorch",
    ) -> Report:
        proto = model(nodes, inputs, "y", stored)
        proto.producer_name = producer
        for name, (key, text) in (said or {}).items():
            info = value(name)
            helper.set_metadata_props(info, {key: text})
            proto.graph.value_info.append(info)
        path = tmp_path / "m.onnx"
        path.write_bytes(proto.SerializeToString())
        return analyze(str(path))

    return made


def notes(report: Report, word: str) -> list[str]:
    return [note for note in report.graph.notes if word in note]


# -- literals of the program

GROUP_NORM = [
    constant("/norm/Constant_output_0", numpy_helper.from_array(np.array([0, 4, -1]), "")),
    constant("/norm/Constant_1_output_0", full("", 1, 4)),
    constant("/norm/Constant_2_output_0", full("", 0, 4)),
    constant("/norm/Constant_3_output_0", numpy_helper.from_array(np.array([1, 8, 6, 6]), "")),
    node("c = Conv x conv.weight conv.bias"),
    node("g = Reshape c /norm/Constant_output_0"),
    node("n = InstanceNormalization g /norm/Constant_1_output_0 /norm/Constant_2_output_0"),
    node("m = Reshape n /norm/Constant_3_output_0"),
    node("s = Mul m norm.weight"),
    node("y = Add s norm.bias"),
]


def affine() -> list[Any]:
    return [
        random("conv.weight", 8, 8, 1, 1), random("conv.bias", 8),
        random("norm.weight", 8, 1, 1), random("norm.bias", 8, 1, 1),
    ]  # fmt: skip


def test_a_group_norm_has_no_dummy_parameters(account: Any) -> None:
    report = account(GROUP_NORM, affine())
    assert report.totals.params == 64 + 8 + 8 + 8
    assert report.stored["constants"]["fp32"] == 8


def test_literals_of_other_writers_are_weights_where_layers_have_them(account: Any) -> None:
    """A file of which nothing is known may keep some of its weights in Constant nodes."""
    report = account(GROUP_NORM, affine(), producer="")
    assert report.totals.params == 64 + 8 + 8 + 8 + 8


def test_all_weights_in_constants_are_weights(account: Any) -> None:
    nodes = [constant("w", random("", 4, 8, 3, 3)), node("y = Conv x w")]
    assert account(nodes, []).totals.params == 4 * 8 * 9


# -- filters and masks, by their numbers

BLUR = np.outer([1, 2, 1], [1, 2, 1]).astype(np.float32) / 16


def blurs(name: str, kernel: Any = BLUR) -> Any:
    return numpy_helper.from_array(np.tile(kernel, (8, 1, 1, 1)).astype(np.float32), name)


@pytest.mark.parametrize("name", ["aa.filt", "onnx::Conv_12"])
def test_one_filter_for_all_channels_is_not_learned(account: Any, name: str) -> None:
    nodes = [node("c = Conv x conv.weight"), node(f"y = Conv c {name}", group=8)]
    report = account(nodes, [random("conv.weight", 8, 8, 1, 1), blurs(name)])
    assert report.totals.params == 64
    assert report.stored["constants"]["fp32"] == 72
    assert notes(report, "not learned") == [
        f"masks and filters that are not learned, by their numbers: {name} (72 numbers)"
    ]


def test_a_filter_in_a_constant_needs_no_look(account: Any) -> None:
    nodes = [
        constant("/aa/Constant_output_0", blurs("", np.ones((3, 3)))),
        node("c = Conv x conv.weight"),
        node("y = Conv c /aa/Constant_output_0", group=8),
    ]
    report = account(nodes, [random("conv.weight", 8, 8, 1, 1)])
    assert report.totals.params == 64
    assert not notes(report, "not learned")


@pytest.mark.parametrize(
    "array", [random("w", 8, 1, 3, 3), zeros("w", 8, 1, 3, 3), full("w", 0.5, 8, 1, 3, 3)]
)
def test_other_kernels_are_learned(account: Any, array: Any) -> None:
    """Also fresh ones of one number: nothing tells that they will not be trained."""
    assert account([node("y = Conv x w", group=8)], [array]).totals.params == 72


def mask(name: str, low: float = -100.0) -> Any:
    array = np.zeros((1, 1, 6, 6), np.float32)
    array[..., 3:] = low
    return numpy_helper.from_array(array, name)


@pytest.mark.parametrize("low", [-100.0, -np.inf, np.finfo(np.float32).min])
def test_a_mask_is_not_learned(account: Any, low: float) -> None:
    nodes = [node("c = Conv x conv.weight"), node("y = Add c blocks.1.attn_mask")]
    report = account(nodes, [random("conv.weight", 8, 8, 1, 1), mask("blocks.1.attn_mask", low)])
    assert report.totals.params == 64
    assert notes(report, "blocks.1.attn_mask (36 numbers)")


@pytest.mark.parametrize("array", [random("pos_embed", 1, 1, 6, 6), zeros("pos_embed", 1, 1, 6, 6)])
def test_what_a_file_cannot_tell_is_counted_and_named(account: Any, array: Any) -> None:
    nodes = [node("c = Conv x conv.weight"), node("y = Add c pos_embed")]
    report = account(nodes, [random("conv.weight", 8, 8, 1, 1), array])
    assert report.totals.params == 64 + 36
    assert notes(report, "does not tell") == [
        "the file does not tell whether these are learned, they count as parameters: "
        "pos_embed (36 numbers)"
    ]


def positions(heads: int, side: int) -> Any:
    """A table of (2 side - 1)^2 numbers a head, looked up for each pair of positions."""
    where = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij")).reshape(2, -1)
    rows, columns = where[:, :, None] - where[:, None, :] + side - 1
    return LUCK.normal(size=(heads, 2 * side - 1, 2 * side - 1)).astype(np.float32)[
        :, rows, columns
    ][None]


def with_table(account: Any, table: Any) -> list[str]:
    wide = table.shape[-3] if table.ndim > 3 else 1
    nodes = [node("c = Conv x conv.weight"), node("y = Add c table")]
    stored = [random("conv.weight", wide, 8, 1, 1), numpy_helper.from_array(table, "table")]
    size = "x".join(map(str, (1, 8, *table.shape[-2:])))
    report = account(nodes, stored, {"table": (FOLDED, "['a.table', 'val_1']")}, inputs=f"x {size}")
    assert report.totals.params == 8 * wide + table.size  # as stored
    return [str(note) for note in report.graph.notes]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), None])
@pytest.mark.parametrize(("heads", "side"), [(8, 2), (2, 3), (8, 7)])
def test_expanded_position_tables_are_named_with_their_parameters(
    account: Any, heads: int, side: int, order: Any
) -> None:
    table = positions(heads, side)[0].transpose(order or (1, 2, 0))
    if order is None:  # the two axes of positions are one
        table = table.reshape(-1, heads)
    count = heads * (2 * side - 1) ** 2
    [note] = with_table(account, np.ascontiguousarray(table)[None])
    assert note == (
        f"position tables of {count:,} parameters are stored expanded and count as stored: "
        f"table (of a.table) ({heads * side**4:,} numbers)"
    )


def test_other_square_tables_are_not_position_tables(account: Any) -> None:
    table = positions(8, 3)
    table[0, 7, 4, 5] += 1
    for other in (table, np.zeros((1, 8, 9, 9), np.float32), table[:, :, :8, :8].copy()):
        [note] = with_table(account, other)
        assert "does not tell" in note


def test_biases_and_scales_need_no_note(account: Any) -> None:
    nodes = [
        node("a = MatMul x onnx::MatMul_7"), node("b = Add a fc.bias"), node("y = Mul b gamma"),
    ]  # fmt: skip
    stored = [random("onnx::MatMul_7", 6, 6), random("fc.bias", 6), random("gamma", 1, 8, 1, 1)]
    report = account(nodes, stored)
    assert report.totals.params == 36 + 6 + 8
    assert not report.graph.notes


# -- every array once


def test_scale_and_variance_of_one_norm(account: Any) -> None:
    report = account([node("y = BatchNormalization x s b m s")], [zeros(n, 8) for n in "sbm"])
    assert (report.totals.params, report.totals.buffers) == (16, 8)
    assert report.totals.param_bytes == 3 * 8 * 4
    assert report.stored == {"parameters": {"fp32": 16}, "buffers": {"fp32": 8}}


@pytest.mark.parametrize("turned", [False, True])
def test_an_array_that_anything_learns_is_learned_once(account: Any, turned: bool) -> None:
    """Exporters merge equal arrays: ones of a scale and a variance, zeros of a bias and a mean."""
    first = node("h = BatchNormalization x s b m v")
    second = node("y = BatchNormalization h v m b s")
    if turned:
        first, second = (
            node("h = BatchNormalization x v m b s"),
            node("y = BatchNormalization h s b m v"),
        )
    report = account([first, second], [zeros(n, 8) for n in "sbmv"])
    assert (report.totals.params, report.totals.buffers) == (32, 0)
    assert report.stored == {"parameters": {"fp32": 32}}


def test_weights_that_two_kinds_of_layers_share(account: Any) -> None:
    nodes = [
        node("c = Conv x w"), node("f = Flatten w", axis=1), node("s = ReduceSum f"),
        node("y = Mul c s"),
    ]  # fmt: skip
    assert account(nodes, [random("w", 8, 8, 1, 1)]).totals.params == 64


def test_other_names_of_an_array_are_noted(account: Any) -> None:
    nodes = [
        node("b.bias = Identity a.bias"),
        node("c = Conv x a.weight a.bias"), node("y = Conv c b.weight b.bias"),
    ]  # fmt: skip
    stored = [random("a.weight", 8, 8, 1, 1), random("b.weight", 8, 8, 1, 1), zeros("a.bias", 8)]
    report = account(nodes, stored)
    assert report.totals.params == 64 + 64 + 8
    assert notes(report, "count once: b.bias")


# -- what torch.export says


def said(**kinds: str) -> dict[str, tuple[str, str]]:
    return {name.replace("__", "."): (KIND, kind) for name, kind in kinds.items()}


def test_parameters_buffers_and_constants_as_the_exporter_says(account: Any) -> None:
    nodes = [
        node("c = Conv x conv.weight"), node("d = Mul c gain"), node("e = Add d table"),
        node("f = Add e grid"), node("y = Add f val_3"),
    ]  # fmt: skip
    stored = [
        random("conv.weight", 8, 8, 1, 1), random("gain"), random("table", 6, 6),
        random("grid", 6, 6), random("val_3", 6, 6),
    ]  # fmt: skip
    kinds = said(conv__weight="PARAMETER", gain="PARAMETER", table="BUFFER", grid="CONSTANT_TENSOR")
    report = account(nodes, stored, kinds)
    assert (report.totals.params, report.totals.buffers) == (64 + 1, 36)
    assert report.stored["constants"]["fp32"] == 72
    assert not report.graph.notes


@pytest.mark.parametrize(
    ("sources", "params", "noted"),
    [
        ("['conv.weight', 'val_1']", 36, False),
        ("['add', 'arange_1', 'val_1']", 0, False),
        ("['attn.table', 'attn.index', 'val_1']", 36, True),  # both are gone from the file
        ("['conv.mask', 'val_1']", 0, False),
        ("['pos_embed', 'view_2', 'val_1']", 36, True),  # named as no operator: a parameter's name
        ("['attn.lifted_tensor_0', 'clone_10', 'fill', 'value_0', 'shape']", 0, False),
    ],
)
def test_folded_arrays_are_what_they_were_folded_from(
    account: Any, sources: str, params: int, noted: bool
) -> None:
    nodes = [
        node("c = Conv x conv.weight"), node("d = Add c conv.mask"), node("y = Add d val_9"),
    ]  # fmt: skip
    stored = [random("conv.weight", 8, 8, 1, 1), random("conv.mask", 6, 6), random("val_9", 6, 6)]
    kinds = said(conv__weight="PARAMETER", conv__mask="BUFFER") | {"val_9": (FOLDED, sources)}
    report = account(nodes, stored, kinds)
    assert report.totals.params == 64 + params
    assert bool(notes(report, "does not tell")) is noted


def test_rewritten_weights_keep_the_path_of_their_module(account: Any) -> None:
    """Norms folded into convolutions: new arrays, of which nothing is said but their names."""
    nodes = [node("c = Conv x conv.weight conv.weight_bias"), node("y = Conv c fc.weight")]
    stored = [
        random("conv.weight", 8, 8, 1, 1), random("conv.weight_bias", 8),
        random("fc.weight", 4, 8, 1, 1),
    ]  # fmt: skip
    assert account(nodes, stored, said(fc__weight="PARAMETER")).totals.params == 64 + 8 + 32


def test_dummies_of_the_exporter_are_constants(account: Any) -> None:
    nodes = [node("c = Conv x conv.weight"), node("y = InstanceNormalization c val_1 val_2")]
    stored = [random("conv.weight", 8, 8, 1, 1), full("val_1", 1, 8), full("val_2", 0, 8)]
    kinds = said(conv__weight="PARAMETER") | {"val_1": (FOLDED, "['val_0']")}
    assert account(nodes, stored, kinds).totals.params == 64


# -- lone numbers


@pytest.mark.parametrize(
    ("name", "params"), [("block.skip_gain", 1), ("onnx::Mul_12", 0), ("12", 0), ("val_12", 0)]
)
def test_a_lone_number_is_learned_where_it_is_named_as_of_a_module(
    account: Any, name: str, params: int
) -> None:
    nodes = [node("c = Conv x conv.weight"), node(f"y = Mul c {name}")]
    report = account(nodes, [random("conv.weight", 8, 8, 1, 1), random(name)])
    assert report.totals.params == 64 + params


def test_of_other_writers_a_lone_number_is_a_constant(account: Any) -> None:
    nodes = [node("c = Conv x w"), node("y = Mul c block.gain")]
    stored = [random("w", 8, 8, 1, 1), random("block.gain")]
    assert account(nodes, stored, producer="tf2onnx").totals.params == 64
