"""Receptive fields through ops on sequences and indices, against what a brute-force run saw."""

from __future__ import annotations

import pytest

from layerscope import Builder
from layerscope.analysis.fields import Field, fields
from layerscope.analysis.shapes import infer
from layerscope.graph import attributes as at
from tests.brute.seen import check_fields


def seen(b: Builder, *names: str) -> list[Field]:
    """The one field of each, after every field of the network was found to be what is seen."""
    graph = b.build(*names)
    check_fields(graph)
    found = fields(graph, infer(graph))
    return [field for name in names for field in found[name]]


def started(*shape: int) -> tuple[Builder, str]:
    b = Builder("fields")
    return b, b.input("data", shape)


def test_a_reduction_sees_all_of_its_axes_and_keeps_the_others() -> None:
    b, x = started(1, 2, 6, 7)
    x = b.conv(x, 2, 3, padding=1)
    kept, dropped, channels, most = seen(
        b,
        b.reduce("mean", x, (2,), keep=True),
        b.reduce("sum", x, (2,)),
        b.reduce("l2", x, (1,)),
        b.add_node("arg_max", (x,), at.Reduce((-1,)))[0],
    )
    assert kept.size == dropped.size == ("everything", 3)
    assert [axis.carrier for axis in kept.axes] == [None, 3]
    assert [axis.carrier for axis in dropped.axes] == [None, 2]
    assert channels.size == (3, 3)
    assert [axis.carrier for axis in channels.axes] == [1, 2]
    assert most.size == (3, "everything")


def test_repeating_an_axis_of_one_moves_the_others() -> None:
    b, x = started(1, 1, 6)
    x = b.conv(x, 1, 3, padding=1)
    more, wide = seen(b, b.expand(x, (4, 1, 5, 6)), b.expand(x, (1, 5, 6)))
    assert [axis.carrier for axis in (*more.axes, *wide.axes)] == [3, 2]
    assert more.size == wide.size == (3,)


def test_rolling_may_bring_anything_anywhere() -> None:
    b, x = started(1, 2, 6, 5)
    (rolled,) = seen(b, b.roll(b.conv(x, 2, 3, padding=1)))
    assert rolled.size == ("everything", "everything")


def test_gathering_sees_all_of_its_axis_only() -> None:
    b, x = started(1, 3, 6)
    index = b.input("index", (2, 2))
    (channels,) = seen(b, b.gather(x, index, axis=1))
    assert (channels.size, channels.axes[0].carrier) == ((1,), 3)
    graph = b.build(b.gather(x, index, axis=2))  # which places, data decides
    assert fields(graph, infer(graph))[graph.outputs[0]][0].size == ("everything",)


def test_scattering_keeps_what_it_writes_into() -> None:
    b, x = started(1, 3, 6)
    index, update = b.input("index", (1, 2, 4)), b.input("update", (1, 2, 4))
    (into,) = b.add_node("scatter", (x, index, update), at.Scatter(1, add=True))
    graph = b.build(into)
    found = {field.input: field for field in fields(graph, infer(graph))[into]}
    assert (found["data"].size, found["data"].stride) == ((1,), (1,))
    assert [found["update"].axes[0].at(i) for i in (0, 3, 4)] == [(0, 0), (3, 3), None]


def test_a_query_sees_itself_and_all_keys() -> None:
    b = Builder("cross")
    q, k, v = (b.input(name, (1, 2, n, 4)) for name, n in (("q", 3), ("k", 5), ("v", 5)))
    mask = b.input("mask", (1, 1, 3, 5))
    fields_of = {f.input: f.size for f in seen(b, b.attention(q, k, v, heads=2, mask=mask))}
    assert fields_of == {
        "q": (1, "everything"),
        "k": ("everything", "everything"),
        "v": ("everything", 1),
        "mask": (1, "everything"),
    }
    b, x = started(1, 4, 6)  # from one source, and packed: all features of all
    (alone,) = seen(b, b.attention(x, x, x, heads=2))
    assert alone.size == ("everything",)


def test_a_mask_of_two_axes_tells_queries_and_not_the_batch() -> None:
    b = Builder("mask")
    q = b.input("q", (2, 3, 4))
    mask = b.reshape(b.input("mask", (1, 1, 3, 3)), (3, 3))
    sizes = {f.input: f for f in seen(b, b.attention(q, q, q, heads=1, mask=mask))}
    assert [axis.carrier for axis in sizes["mask"].axes] == [1, None]


def test_letters_of_the_result_are_followed() -> None:
    b = Builder("einsum")
    x, y = b.input("x", (1, 2, 3, 4)), b.input("y", (1, 2, 4, 5))
    found = seen(b, b.einsum("bcij,bcjk->bcik", x, y), b.matmul(x, y))
    assert found[:2] == found[2:]
    assert [f.size for f in found[:2]] == [(1, "everything"), ("everything", 1)]
    (turned,) = seen(b, b.einsum("bcij->jbi", x))
    assert [axis.carrier for axis in turned.axes] == [2, 0]


def test_a_rotation_mixes_features_and_a_recurrence_steps() -> None:
    b, x = started(1, 2, 3, 4)
    (turned,) = seen(b, b.rotary(x, heads=2))
    assert turned.size == (1, "everything")
    b, x = started(1, 1, 4, 3)
    rows = b.reshape(x, (4, 3, 1))  # steps, sequences, features
    sequence, last, cells = seen(b, *b.recurrent("lstm", rows, 2))
    assert sequence.size == last.size == cells.size == ("everything", 1)


def test_a_grid_tells_where_to_look() -> None:
    b = Builder("grid")
    x, grid = b.input("x", (1, 1, 2, 2)), b.input("grid", (1, 3, 5, 2))
    graph = b.build(b.add_node("grid_sample", (x, grid), at.GridSample())[0])
    found = {f.input: f for f in fields(graph, infer(graph))[graph.outputs[0]]}
    assert found["x"].size == ("everything", "everything")
    assert found["grid"].size == (1, "everything")  # of h x w x 2, the last two count as places
    assert found["grid"].axes[0].carrier == 3


def test_the_best_of_an_axis_see_all_of_it() -> None:
    b, x = started(1, 2, 4, 5)
    (values, indices) = seen(b, *b.top_k(x, 2, axis=2))
    assert values.size == indices.size == ("everything", 1)


def test_turned_round_is_seen_from_the_other_end() -> None:
    b, x = started(1, 2, 6, 5)
    x = b.conv(x, 2, (3, 1), stride=(2, 1))
    (turned,) = seen(b, b.add_node("flip", (x,), at.Flip((2,)))[0])
    assert (turned.size, turned.stride, turned.offset) == ((3, 1), (-2, 1), (3, 0))


def test_copies_see_any_part_and_leave_other_axes_alone() -> None:
    b, x = started(1, 2, 4, 5)
    (copied,) = seen(b, b.add_node("repeat", (x,), at.Repeat((1, 1, 1, 1)))[0])
    assert copied.size == (1, 1)
    graph = b.build(b.add_node("repeat", (x,), at.Repeat((1, 1, 2, 1)))[0])
    assert fields(graph, infer(graph))[graph.outputs[0]][0].size == ("everything", 1)


def test_places_told_by_data_may_be_anywhere_and_what_is_behind_stays() -> None:
    b, x = started(1, 3, 4, 5)
    index, update = b.input("index", (2, 2)), b.input("update", (2, 4, 5))
    graph = b.build(
        b.add_node("gather_nd", (x, index), at.GatherND())[0],
        b.add_node("scatter_nd", (x, index, update), at.Scatter())[0],
    )
    found = fields(graph, infer(graph))
    taken = {f.input: f for f in found[graph.outputs[0]]}
    assert [axis.carrier for axis in taken["data"].axes] == [1, 2]
    written = {f.input: f for f in found[graph.outputs[1]]}
    assert written["data"].size == (1, 1)
    assert [axis.carrier for axis in written["update"].axes] == [3]


def test_a_softmax_over_a_tail_and_a_new_axis() -> None:
    b, x = started(1, 2, 4, 5)
    soft, hard, hot = seen(
        b,
        b.add_node("softmax", (x,), at.Softmax(3, tail=True))[0],
        b.add_node("hardmax", (x,), at.Softmax(2, tail=True))[0],
        b.add_node("one_hot", (x,), at.OneHot(3, 2))[0],
    )
    assert (soft.size, hard.size) == ((1, "everything"), ("everything", "everything"))
    assert [axis.carrier for axis in hot.axes] == [3, 4]


@pytest.mark.parametrize("op", ["table", "positions"])
def test_what_reads_only_a_shape_sees_nothing(op: str) -> None:
    b, x = started(1, 4, 6)
    made = b.table(x, (1, 4, 6)) if op == "table" else b.positions(x)
    seen(b, b.add(b.conv(x, 4, 3, padding=1), made) if op == "table" else made)
