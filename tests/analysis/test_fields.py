"""Receptive fields against what a brute-force run saw, and against figures worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from layerscope import Builder, Graph
from layerscope.analysis import fields as module
from layerscope.analysis.fields import MOST_PHASES, Field, FieldAxis, fields
from layerscope.analysis.shapes import infer
from layerscope.graph import attributes as at
from layerscope.graph.types import Shape
from tests.brute.random_graphs import lines, planes
from tests.brute.seen import check_fields


def started(*shape: int) -> tuple[Builder, str]:
    b = Builder("fields")
    return b, b.input("data", shape)


def field(b: Builder, name: str) -> Field:
    """The field of a tensor, after every field of its network was found to be what is seen."""
    graph = b.build(name)
    check_fields(graph)
    (found,) = fields(graph, infer(graph))[name]
    return found


def axis(b: Builder, name: str) -> FieldAxis:
    (only,) = field(b, name).axes
    return only


def test_random_networks_see_what_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    """See `check_fields` for when a prediction has to be exact."""
    counts = {"exact": 0, "border": 0}

    def measure(graph: Graph) -> None:
        exact, loose = check_fields(graph)
        counts["exact"] += exact
        counts["border"] += loose

    steady = settings(max_examples=400, derandomize=True)
    steady(given(lines())(measure))()
    settings(steady, max_examples=60)(given(planes())(measure))()
    assert counts["exact"] > 20_000
    assert counts["exact"] > 4 * counts["border"]
    with capsys.disabled():
        print(f"\nfields: {counts['exact']} places exact, {counts['border']} at borders within")


def test_a_chain_follows_the_sum_of_kernels() -> None:
    """1 + Σ (k − 1)·Π of the strides before, and the centre Σ Π·((k − 1)/2 − pad)."""
    b, x = started(1, 1, 64)
    size, step, centre = 1, 1, Fraction(0)
    layers = [(3, 1, 1), (3, 1, 1), (2, 2, 0), (3, 1, 1), (5, 2, 2), (3, 1, 0), (2, 2, 0)]
    for kernel, stride, pad in layers:
        x = b.conv(x, 1, kernel, stride=stride, padding=pad)
        size += (kernel - 1) * step
        centre += step * (Fraction(kernel - 1, 2) - pad)
        step *= stride
        found = axis(b, x)
        assert (found.size, found.stride, found.offset) == (size, step, centre)
        assert found.aligned
    assert (size, step, centre) == (30, 8, Fraction(13, 2))


def test_vgg16_sees_212_of_its_input_before_the_first_linear_layer() -> None:
    b, x = started(1, 1, 224, 224)
    for convolutions in (2, 2, 3, 3, 3):
        for _ in range(convolutions):
            x = b.conv(x, 1, 3, padding=1)
        x = b.max_pool(x, 2)
    graph = b.build(x)
    (found,) = fields(graph, infer(graph))[x]
    assert (found.size, found.stride, found.offset) == ((212, 212), (32, 32), (15.5, 15.5))


def test_dilation_widens_and_rectangles_are_told_per_axis() -> None:
    b, x = started(1, 1, 14, 12)
    x = b.conv(x, 1, (3, 5), padding=((2, 2), (0, 0)), dilation=(2, 1), stride=(1, 2))
    found = field(b, x)
    assert (found.size, found.stride, found.offset) == ((5, 5), (1, 2), (0, 2))


def test_a_join_sees_what_any_branch_sees() -> None:
    b, x = started(1, 1, 12)
    narrow, wide = b.conv(x, 1, 1), b.conv(x, 1, 5, padding=2)
    for joined in (b.concat(narrow, wide), b.add(narrow, wide)):
        found = axis(b, joined)
        assert (found.size, found.stride, found.offset, found.aligned) == (5, 1, 0, True)


def test_unequal_centres_are_misaligned() -> None:
    b, x = started(1, 1, 12)
    ahead = b.conv(x, 1, 3, padding=[(0, 2)])
    found = axis(b, b.add(x, ahead))
    assert (found.size, found.stride, found.aligned) == (3, 1, False)
    assert not axis(b, b.relu(b.add(x, ahead))).aligned  # and stay so


def test_unequal_strides_are_misaligned_and_have_no_stride() -> None:
    b, x = started(1, 1, 12)
    halved = b.max_pool(x, 2)
    (cut,) = b.add_node("slice", (x,), at.Slice((2,), (0,), (6,)))
    found = axis(b, b.add(halved, cut))
    assert (found.stride, found.aligned) == (None, False)
    assert [found.at(i) for i in range(6)] == [(i, 2 * i + 1) for i in range(6)]


@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_upsampling_has_a_fractional_stride(factor: int, mode: at.Sampling) -> None:
    b, x = started(1, 1, 8)
    found = axis(b, b.resize(x, factor, mode=mode))
    assert found.stride == Fraction(1, factor)
    assert axis(b, b.max_pool(b.resize(x, factor, mode=mode), factor)).stride == 1


def test_upsampling_phases_differ() -> None:
    b, x = started(1, 1, 8)
    found = axis(b, b.conv(b.resize(x, 2), 1, 3, padding=1))
    assert [found.at(i) for i in range(4)] == [(-1, 0), (0, 1), (0, 1), (1, 2)]
    assert (found.size, found.stride, found.offset) == (2, Fraction(1, 2), Fraction(-1, 2))


def test_transposed_convolution_spreads_its_input() -> None:
    b, x = started(1, 1, 8)
    found = axis(b, b.conv_transpose(x, 1, 4, stride=2, padding=1))
    assert [found.at(i) for i in range(4)] == [(-1, 0), (0, 1), (0, 1), (1, 2)]
    holes = axis(b, b.conv_transpose(x, 1, 1, stride=2))
    assert [holes.at(i) for i in range(4)] == [(0, 0), None, (1, 1), None]
    assert holes.stride == Fraction(1, 2)


def test_everything_is_seen_after_global_layers() -> None:
    b, x = started(1, 2, 6, 5)
    x = b.conv(x, 2, 3, padding=1)
    pooled = b.global_pool(x)
    for name in (pooled, b.linear(b.flatten(x), 3), b.linear(x, 3, flatten=True),
                 b.group_norm(x, 2), b.conv(b.mul(x, pooled), 2, 3)):  # fmt: skip
        found = field(b, name)
        assert found.size == ("everything", "everything")
        assert found.offset == found.stride == (None, None)
    assert field(b, b.linear(x, 3)).size == (3, "everything")  # the last axis only


def test_a_window_as_large_as_the_map_is_not_everything_but_its_size() -> None:
    b, x = started(1, 1, 7)
    found = axis(b, b.conv(x, 1, 7))
    assert (found.size, found.everything, found.stride) == (7, False, 1)


def test_squeeze_and_excite_of_a_part_sees_that_part() -> None:
    b, x = started(1, 1, 12)
    (cut,) = b.add_node("slice", (x,), at.Slice((2,), (2,), (6,)))
    found = axis(b, b.mul(x, b.global_pool(cut)))
    assert [found.at(i) for i in (0, 3, 11)] == [(0, 5), (2, 5), (2, 11)]
    assert found.stride is None


def test_a_reversed_slice_runs_backwards() -> None:
    b, x = started(1, 1, 10)
    (back,) = b.add_node("slice", (x,), at.Slice((2,), (-1,), (-11,), (-1,)))
    found = axis(b, back)
    assert (found.stride, found.at(0), found.at(9)) == (-1, (9, 9), (0, 0))
    after = axis(b, b.conv(back, 1, 3, stride=2))
    assert (after.size, after.stride, after.at(0), after.at(1)) == (3, -2, (7, 9), (5, 7))


def test_joining_along_a_spatial_axis_keeps_the_parts_apart() -> None:
    b, x = started(1, 1, 4)
    joined = b.concat(x, b.conv(x, 1, 3, padding=1), axis=2)
    found = axis(b, joined)
    assert [found.at(i) for i in range(8)] == [
        (0, 0), (1, 1), (2, 2), (3, 3), (-1, 1), (0, 2), (1, 3), (2, 4),
    ]  # fmt: skip
    assert (found.stride, found.aligned) == (None, True)
    beside = axis(b, b.concat(x, b.global_pool(x), axis=2))
    assert [beside.at(i) for i in (0, 3, 4)] == [(0, 0), (3, 3), (0, 3)]


def test_splitting_along_a_spatial_axis_tells_each_piece() -> None:
    b, x = started(1, 1, 10)
    pieces = b.split(b.conv(x, 1, 3), (3, 5), axis=2)
    first, second = (axis(b, piece) for piece in pieces)
    assert (first.at(0), second.at(0), second.at(4)) == ((0, 2), (3, 5), (7, 9))
    assert first.stride == second.stride == 1


def test_permuted_axes_are_followed() -> None:
    b, x = started(1, 2, 6, 8)
    x = b.conv(x, 2, (3, 1), stride=(1, 2))
    turned = b.permute(x, (0, 2, 3, 1))
    found = field(b, turned)
    assert (found.size, found.stride) == ((3, 1), (1, 2))
    assert [a.carrier for a in found.axes] == [1, 2]
    assert field(b, b.linear(turned, 3)).size == (3, 1)  # channels last: a linear layer is 1 x 1
    assert field(b, b.softmax(turned, axis=1)).size == ("everything", 1)
    assert field(b, b.max_pool(turned, (2, 1))).size == (3, 3)  # pools W and keeps H


def test_within_channel_norms_stay_in_their_channel() -> None:
    b, x = started(1, 3, 6)
    turned = b.permute(x, (0, 2, 1))  # the input's positions are channels now
    assert axis(b, b.lrn(turned, 3, within_channel=True)).size == 1
    assert axis(b, b.lrn(turned, 3)).everything


def test_a_vector_of_positions_is_mixed_by_a_linear_layer() -> None:
    b, x = started(1, 1, 6)
    row = b.reshape(x, (1, 6))
    assert axis(b, row).stride == 1
    assert axis(b, b.linear(row, 3)).everything


def test_adding_axes_that_were_swapped_sees_both() -> None:
    b, x = started(1, 1, 4, 4)
    (top,) = b.add_node("slice", (b.permute(x, (0, 1, 3, 2)),), at.Slice((2, 3), (0, 0), (4, 2)))
    (left,) = b.add_node("slice", (x,), at.Slice((2, 3), (0, 0), (4, 2)))
    graph = b.build(b.add(top, left))
    (found,) = fields(graph, infer(graph))[graph.outputs[0]]
    assert [a.at(0) for a in found.axes] == [(0, 3), (0, 3)]


def test_channel_shuffle_keeps_fields() -> None:
    b, x = started(1, 4, 6, 5)
    x = b.conv(x, 4, 3, padding=1)
    shuffled = b.reshape(b.permute(b.reshape(x, (0, 2, 2, 6, 5)), (0, 2, 1, 3, 4)), (0, 4, 6, 5))
    assert field(b, shuffled) == field(b, x)


def test_cutting_an_axis_in_two_sees_all_of_it() -> None:
    """No single axis is left that the input's could be followed along."""
    b, x = started(1, 1, 6)
    assert axis(b, b.reshape(x, (1, 1, 2, 3))).everything


def test_the_size_a_crop_is_cut_to_is_not_seen() -> None:
    b, x = started(1, 1, 9)
    (cropped,) = b.add_node("crop", (x, b.conv(x, 1, 5)), at.Crop(2, (3,)))
    found = axis(b, cropped)
    assert (found.size, found.stride, found.offset) == (1, 1, 3)


def test_each_input_has_its_field() -> None:
    b = Builder("two")
    x, y = b.input("x", (1, 1, 8)), b.input("y", (1, 1, 8))
    graph = b.build(b.add(b.conv(x, 1, 3, padding=1), b.conv(y, 1, 5, padding=2)))
    check_fields(graph)
    found = fields(graph, infer(graph))[graph.outputs[0]]
    assert [(f.input, f.size) for f in found] == [("x", (3,)), ("y", (5,))]


def test_a_scale_steps_by_itself_where_the_size_was_rounded() -> None:
    """The engines divide by the scale they were told: 5 · 7/4 is 8, position 5 is ⌊5 · 4/7⌋."""
    b, x = started(1, 1, 5)
    (by_scale,) = b.add_node("resize", (x,), at.Resize("nearest", (), ((7, 4),)))
    (by_size,) = b.add_node("resize", (x,), at.Resize("nearest", (8,)))
    assert axis(b, by_scale).at(5) == (2, 2)
    assert axis(b, by_size).at(5) == (3, 3)


def test_a_hundred_phases_stay_bounded() -> None:
    b, x = started(1, 1, 100)
    x = b.resize(x, 100)
    found = axis_alone(b, x)
    assert (found.stride, len(found.stretches)) == (Fraction(1, 100), 100)
    for size in (9_901, 9_887, 9_871):  # primes: phases would multiply
        (x,) = b.add_node("resize", (x,), at.Resize("bilinear", (size,)))
        found = axis_alone(b, x)
        assert len(found.stretches) <= MOST_PHASES
    assert found.everything  # summed up as one stretch that holds every other


def axis_alone(b: Builder, name: str) -> FieldAxis:
    """The axis of a tensor too long to measure."""
    graph = b.build(name)
    (found,) = fields(graph, infer(graph))[name]
    return found.axes[0]


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_mirrored_padding_is_told_as_the_place_where_it_stands(mode: str) -> None:
    """Every engine fills it from inside the map; the field says where, not from where.

    So a position wholly in the padding is predicted off the input, while one that a window covers
    together with the edge is still within what is predicted.
    """
    b, x = started(1, 1, 8)
    (padded,) = b.add_node("pad", (x,), at.Pad(((0, 0), (0, 0), (2, 2)), mode))  # type: ignore[arg-type]
    assert axis_alone(b, padded).at(0) == (-2, -2)
    found = axis_alone(b, b.conv(padded, 1, 5))
    assert (found.size, found.stride, found.offset) == (5, 1, 0)


def test_shapes_without_spatial_axes_have_no_field() -> None:
    b, x = started(3, 7)
    graph = b.build(b.linear(x, 2))
    assert set(fields(graph, infer(graph)).values()) == {()}
    shape: Shape = (3, 2)
    assert infer(graph).tensors[graph.outputs[0]].shape == shape


def test_long_caches_are_not_walked_position_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decode step of a language model joins a cache of thousands of positions in every layer."""
    hulls = 0
    found = module._hull

    def counted(axis: FieldAxis, positions: range) -> tuple[int, int] | None:
        nonlocal hulls
        hulls += 1
        return found(axis, positions)

    monkeypatch.setattr(module, "_hull", counted)
    b, x = started(1, 2, 1, 4)
    for n in range(20):
        cache = b.input(f"cache{n}", (1, 2, 2 * MOST_PHASES, 4))
        x = b.max_pool(b.concat(cache, x, axis=2), (2 * MOST_PHASES + 1, 1))
    graph = b.build(x)
    assert len(fields(graph, infer(graph))[x]) == 21
    assert hulls < 20 * 20


def test_caches_have_no_fields() -> None:
    """Else every layer of a decode step lists a field in the cache of every layer before it."""
    b, x = started(1, 2, 8)
    caches = [b.input(f"cache{n}", (1, 2, 8)) for n in range(3)]
    for cache in caches:
        x = b.add(x, cache)
    graph = replace(b.build(x), cache=frozenset(caches))
    assert [field.input for field in fields(graph, infer(graph))[x]] == [graph.inputs[0].name]


def test_settled_fields_are_not_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that are the same for all positions pass residual blocks as they are."""
    calls = 0
    found = module._limit_to_parts

    def counted(*args: object) -> tuple[FieldAxis, ...]:
        nonlocal calls
        calls += 1
        return found(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_limit_to_parts", counted)
    b, x = started(1, 2, 8)
    for n in range(20):
        cache = b.global_pool(b.input(f"cache{n}", (1, 2, 8)))
        x = b.add(x, cache)
        for _ in range(3):
            x = b.add(x, b.relu(x))
    graph = b.build(x)
    (first, *others) = fields(graph, infer(graph))[x]
    assert [field.size for field in others] == [("everything",)] * 20
    assert first.size == (1,)
    assert calls < 100  # each pair of a cache and a later addition would be 20 * 60 / 2
