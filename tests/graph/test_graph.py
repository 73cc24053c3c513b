"""The graph: what is refused, how things are named, how inputs are bound, what is unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from layerscope import Builder, Graph, Node, Param, Tensor, analyze
from layerscope.analysis.shapes import infer
from layerscope.errors import GraphError, ShapeError, UnknownName, UsageError
from layerscope.graph import attributes as at
from layerscope.graph.edits import bind
from layerscope.graph.serialize import from_plain, to_plain
from layerscope.graph.types import Autograd, Shape, Source
from layerscope.ops import FREE, SPECS, Call, Ops
from tests.brute.case import window

DATA = Tensor("data", (1, 3, 8, 8))


def relu(name: str, source: str, *made: str) -> Node:
    return Node(name, "relu", (source,), made or (name,), at.Activation())


# -- structure


@pytest.mark.parametrize(
    "nodes, outputs, says",
    [
        ((relu("a", "data"), relu("a", "a", "b")), ("a",), "g: two nodes are named 'a'"),
        ((relu("a", "nothing"),), ("a",), "g: a reads 'nothing', which is produced by no node"),
        (
            (relu("a", "b"), relu("b", "data")),
            ("a",),
            "g: a reads 'b', which is produced only later, by b",
        ),
        ((relu("a", "a"),), ("a",), "g: a reads 'a', which is produced only later, by a"),
        ((relu("a", "data"),), ("b",), "g: output 'b' is produced by no node"),
        (
            (relu("a", "data", "t"), relu("b", "data", "t")),
            ("t",),
            "g: b: tensor 't' is produced twice",
        ),
        ((relu("a", "data", "data"),), ("data",), "g: a: tensor 'data' is produced twice"),
        ((Node("a", "relu", ("data",), ()),), ("data",), "g: a has no output"),
    ],
)
def test_broken_structure_is_told(
    nodes: tuple[Node, ...], outputs: tuple[str, ...], says: str
) -> None:
    with pytest.raises(GraphError) as error:
        Graph("g", (DATA,), nodes, outputs)
    assert str(error.value) == says


def test_inputs_and_params_share_their_names() -> None:
    with pytest.raises(GraphError, match="g: input 'data' is declared twice"):
        Graph("g", (DATA, DATA), (), ())
    with pytest.raises(GraphError, match="g: param 'data' is declared twice"):
        Graph("g", (DATA,), (), (), (Param("data", (1,)),))
    with pytest.raises(GraphError, match="g: a graph needs at least one input"):
        Graph("g", (), (), ())


def test_an_input_may_be_an_output_and_a_param_may_be_read() -> None:
    table = Param("table", (3, 1, 1), "scale")
    graph = Graph(
        "g", (DATA,), (Node("m", "mul", ("data", "table"), ("m",)),), ("data", "m"), (table,)
    )
    report = analyze(graph)
    assert report.tensors["m"].shape == (1, 3, 8, 8)
    assert report.totals.params == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda: setattr(DATA, "name", "x"),
        lambda: setattr(relu("a", "data"), "op", "tanh"),
        lambda: setattr(Graph("g", (DATA,), (), ()), "name", "h"),
        lambda: setattr(Param("w", (1,)), "shape", (2,)),
        lambda: setattr(at.Conv(window([1]), 1), "groups", 2),
        lambda: setattr(window([1]), "kernel", (2,)),
        lambda: setattr(Ops(), "mac", 1),
        lambda: setattr(Call(None, ()), "inputs", ((1,),)),
        lambda: setattr(SPECS["conv"], "family", "x"),
    ],
)
def test_everything_is_frozen(change: Callable[[], None]) -> None:
    with pytest.raises(AttributeError):
        change()


# -- the Builder


def test_names_count_up_by_op_and_scopes_stand_before_them() -> None:
    b = Builder("net", "Net")
    x = b.input("data", (1, 3, 8, 8))
    x = b.relu(b.conv(x, 4, 1))
    with b.scope("stage", "Stage"):
        x = b.conv(x, 4, 1)
        with b.scope("block", "Block"):
            x = b.conv(b.conv(x, 4, 1), 4, 1, name="last")
    x = b.conv(x, 4, 1)
    graph = b.build()
    assert [node.name for node in graph.nodes] == [
        "conv1", "relu1", "stage.conv1", "stage.block.conv1", "stage.block.last", "conv2",
    ]  # fmt: skip
    assert [node.scope for node in graph.nodes][2:5] == [
        ("stage",), ("stage", "block"), ("stage", "block"),
    ]  # fmt: skip
    assert graph.outputs == (x,)
    assert graph.modules[""] == "Net"
    assert graph.modules["stage.block"] == "Block"


def test_a_scope_ends_even_if_what_is_inside_fails() -> None:
    b = Builder("net")
    x = b.input("data", (1, 3, 8, 8))
    with pytest.raises(ShapeError), b.scope("stage"):
        b.conv(x, 4, 0)
    assert b.relu(x) == "relu1"


def test_the_separator_is_the_formats() -> None:
    b = Builder("net", separator="/")
    x = b.input("data", (1, 3, 8, 8))
    with b.scope("inception", "Inception"):
        assert b.relu(x, name="relu") == "inception/relu"


def test_a_module_without_params_called_again_is_numbered() -> None:
    b = Builder("net")
    x = b.input("data", (1, 3, 8, 8))
    calls = [b.relu(x, name="relu"), b.relu(x, name="relu"), b.relu(x, name="relu")]
    assert calls == ["relu", "relu_1", "relu_2"]
    assert b.dropout(x, name="drop") != b.dropout(x, name="drop")
    b.add(x, x, name="sum")
    assert b.add(x, x, name="sum") == "sum_1"
    graph = b.build()
    assert {node.module for node in graph.nodes if node.op == "relu"} == {"relu"}
    assert all(node.module == "" for node in graph.nodes if node.op == "add")  # a bare call


def test_a_number_that_is_taken_is_passed_over() -> None:
    b = Builder("net")
    x = b.input("data", (1, 3, 8, 8))
    b.relu(x, name="relu_1")
    b.relu(x, name="relu")
    assert b.relu(x, name="relu") == "relu_2"


@pytest.mark.parametrize(
    "make",
    [
        lambda b, x: b.conv(x, 4, 1, name="twice"),
        lambda b, x: b.batch_norm(x, name="twice"),
        lambda b, x: b.prelu(x, name="twice"),
        lambda b, x: b.linear(x, 4, name="twice"),
    ],
)
def test_a_node_with_params_cannot_be_there_twice(make: Callable[[Builder, str], str]) -> None:
    b = Builder("net")
    x = b.input("data", (1, 3, 8, 8))
    make(b, x)
    with pytest.raises(GraphError, match="net: two nodes are named 'twice'"):
        make(b, x)


def test_modules_are_told_in_the_order_of_declaration() -> None:
    b = Builder("net", "Net", order=("head", "body"))
    x = b.input("data", (1, 3, 8, 8))
    with b.scope("body", "Body", order=("second", "first")):
        x = b.relu(b.conv(x, 3, 1, name="first"), name="second")
    with b.scope("head", "Head"):
        b.conv(x, 3, 1, name="fc")
    graph = b.build()
    assert list(graph.modules) == ["", "head", "body", "body.second", "body.first", "head.fc"]
    assert [node.name for node in graph.nodes] == ["body.first", "body.second", "head.fc"]


def test_what_nobody_reads_is_an_output() -> None:
    b = Builder("net")
    x = b.input("data", (1, 4, 8, 8))
    first, second = b.split(x, (1, 3))
    assert (first, second) == ("split1:0", "split1:1")
    last = b.relu(first)
    assert b.build().outputs == (second, last)
    assert b.build(first).outputs == (first,)


@pytest.mark.parametrize(
    "shape, kernel, padding, expected",
    [
        ((1, 3, 9), 3, 1, window([3], 1, 1)),
        ((1, 3, 9, 9), 3, "same", window([3, 3], 1, "same_upper")),
        ((1, 3, 9, 9), (3, 1), (1, 0), window([3, 1], 1, [1, 0])),
        ((1, 3, 9, 9), 3, [(0, 1), (2, 3)], window([3, 3], 1, [(0, 1), (2, 3)])),
        ((1, 3, 9, 9, 9), 2, 0, window([2, 2, 2])),
    ],
)
def test_one_number_stands_for_every_axis(
    shape: Shape, kernel: Any, padding: Any, expected: at.Window
) -> None:
    b = Builder("net")
    b.input("data", shape)
    assert b.window(kernel, padding=padding) == expected


@pytest.mark.parametrize(
    "told, says",
    [
        (lambda: at.Window((), (), (), ()), "a window needs at least one axis"),
        (lambda: window([0]), "kernel size 0, expected at least 1"),
        (lambda: window([1], 0), "stride 0, expected at least 1"),
        (lambda: window([1], 1, 0, 0), "dilation 0, expected at least 1"),
        (lambda: window([1], 1, -1), r"pads \(\(-1, -1\),\), expected none below 0"),
        (lambda: window([1, 1], [1]), r"stride \(1,\) has 1 axes, the kernel 2"),
        (lambda: window([1, 1], 1, [1]), r"pads \(\(1, 1\),\) have 1 axes, the kernel 2"),
    ],
)
def test_a_window_that_cannot_be(told: Callable[[], at.Window], says: str) -> None:
    with pytest.raises(ShapeError, match=says):
        told()


# -- binding inputs


def two() -> Graph:
    b = Builder("two")
    x, y = b.input("image", (2, 3, 8, 8)), b.input("mask", (2, 1, 8, 8), "int8")
    return b.build(b.mul(x, y))


@pytest.mark.parametrize(
    "shapes, batch, expected",
    [
        ({"image": (5, 3, 9, 9)}, None, (5, 3, 9, 9)),  # the declared rank: the batch is in it
        ({"image": (3, 9, 9)}, None, (2, 3, 9, 9)),  # one less: it is not, and stays
        ({"": (3, 9, 9)}, None, (2, 3, 9, 9)),  # no name: the first input
        ({"image": (5, 3, 9, 9)}, 7, (7, 3, 9, 9)),  # --batch wins
        ({"image": (3, 9, 9)}, 7, (7, 3, 9, 9)),
        ({}, 7, (7, 3, 8, 8)),
        (None, None, (2, 3, 8, 8)),
    ],
)
def test_a_shape_with_or_without_the_batch(
    shapes: dict[str, Shape] | None, batch: int | None, expected: Shape
) -> None:
    graph = two()
    bound = bind(graph, shapes, batch)
    assert bound.inputs[0].shape == expected
    assert bound.inputs[1].shape == (batch or 2, 1, 8, 8)
    assert graph == two()  # the original is as it was
    assert (bound is graph) == (expected == (2, 3, 8, 8))


@pytest.mark.parametrize(
    "shapes, says",
    [
        (
            {"image": (9, 9)},
            "input image: 2 sizes, expected 4 as in 2x3x8x8, or 3 without the batch",
        ),
        (
            {"image": (1, 1, 1, 9, 9)},
            "input image: 5 sizes, expected 4 as in 2x3x8x8, or 3 without",
        ),
        ({"image": (3, 0, 9)}, "input image: 3x0x9, expected every size to be at least 1"),
        ({"image": (-1, 3, 9, 9)}, "input image: -1x3x9x9, expected every size to be at least 1"),
        ({"image": ()}, "input image: , expected every size to be at least 1"),
    ],
)
def test_shapes_that_cannot_be_meant(shapes: dict[str, Shape], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        bind(two(), shapes)


def test_names_that_are_not_there() -> None:
    with pytest.raises(UnknownName, match="unknown input 'imge'; did you mean image"):
        bind(two(), {"imge": (3, 9, 9)})
    with pytest.raises(UnknownName, match="unknown input 'qqq'; two has image, mask"):
        bind(two(), {"qqq": (3, 9, 9)})
    with pytest.raises(UnknownName, match="unknown dtype 'fp31'; did you mean fp32"):
        bind(two(), dtype="fp31")
    with pytest.raises(UsageError, match="batch 0, expected at least 1"):
        bind(two(), batch=0)


def test_only_floating_inputs_change_their_number_type() -> None:
    bound = bind(two(), dtype="fp16")
    assert [tensor.dtype for tensor in bound.inputs] == ["fp16", "int8"]


# -- what is unknown, and what is wrong


def test_an_unknown_op_is_unknown_and_so_is_what_follows() -> None:
    b = Builder("net")
    x = b.input("data", (1, 3, 8, 8))
    known = b.conv(x, 4, 3, name="known")
    (what,) = b.add_node("mystery", (known,), name="what")
    after = b.conv(what, 4, 3, name="after")
    report = analyze(b.build(b.relu(known, name="beside"), after))
    status = {layer.name: layer.status for layer in report.layers}
    assert status == {"known": "exact", "what": "unknown", "after": "unknown", "beside": "exact"}
    assert report.costs["what"].note == "no rule for op mystery"
    assert report.costs["after"].note == "shape of what is unknown"
    assert report.tensors["what"].shape is None
    assert report.tensors["after"].shape is None
    for name in ("what", "after"):  # nothing is counted, and never without saying so
        cost = report.costs[name]
        assert (cost.ops, cost.status, report.by_name[name].output) == (FREE, "unknown", None)
    assert report.coverage.unknown == {"mystery": 1, "conv": 1}
    assert (report.coverage.known, report.coverage.total) == (2, 4)
    assert str(report.coverage) == "ops known: 2 of 4; unknown: mystery ×1, conv ×1"
    assert not report.memory.complete
    assert report.fields["after"] == ()


def test_a_zero_that_is_meant_is_exact() -> None:
    b = Builder("net")
    report = analyze(b.build(b.flatten(b.input("data", (1, 3, 8, 8)), name="flat")))
    cost = report.costs["flat"]
    assert (cost.ops, cost.status, cost.read_bytes, cost.write_bytes) == (FREE, "exact", 0, 0)


def test_a_bound_is_an_estimate() -> None:
    b = Builder("net")
    x, regions = b.input("data", (1, 3, 8, 8)), b.input("regions", (5, 5))
    (pooled,) = b.add_node("roi_pool", (x, regions), at.RoIPool((2, 2)), name="roi")
    report = analyze(b.build(pooled))
    assert report.by_name["roi"].status == "estimate"
    assert "bound" in report.costs["roi"].note
    assert report.coverage.estimated == 1


def test_params_of_an_unknown_op_count_if_its_format_states_them() -> None:
    stored = (Param("w", (3, 5)),)
    node = Node("what", "mystery", ("data",), ("what",), params=stored)
    report = analyze(Graph("g", (DATA,), (node,), ("what",)))
    assert (report.costs["what"].param_count, report.costs["what"].status) == (15, "unknown")


@pytest.mark.parametrize(
    "op, attributes, shapes, says",
    [
        ("conv", at.Conv(window([9, 9]), 4), [(1, 3, 8, 8)],
         "kernel 9x9 does not fit input 8x8 padded to 8x8"),
        ("conv", at.Conv(window([1, 1]), 4, 2), [(1, 3, 8, 8)],
         "3 input channels cannot be cut into 2 groups"),
        ("conv", at.Conv(window([1, 1]), 3, 2), [(1, 4, 8, 8)],
         "3 output channels cannot be cut into 2 groups"),
        ("conv", at.Conv(window([1]), 3), [(1, 4, 8, 8)],
         r"a window of 1 axes over 2 spatial axes \(8, 8\)"),
        ("conv", at.Conv(window([1]), 3), [(1, 4)],
         "convolution needs an input of at least 3 axes"),
        ("conv_transpose", at.TransposedConv(window([1], 1, 3), 3), [(1, 4, 5)],
         "pads 3, 3 leave nothing"),
        ("conv_transpose", at.TransposedConv(window([2], 2), 3, output_padding=(2,)), [(1, 4, 5)],
         r"output padding \(2,\), expected from 0 to below stride or dilation"),
        ("add", None, [(1, 3, 8, 8), (1, 4, 8, 8)], "shapes 1x3x8x8 and 1x4x8x8 do not agree"),
        ("concat", at.Concat(1), [(1, 3, 8), (1, 3, 9)],
         "joining 1x3x8, 1x3x9 along axis 1: the other axes do not agree"),
        ("matmul", None, [(2, 3), (4, 5)], "matrix product of 2x3 by 4x5: 3 and 4 do not agree"),
        ("reshape", at.Reshape((7, -1)), [(1, 3, 8)], "1x3x8 cannot be reshaped to"),
        ("split", at.Split(1, (1, 1)), [(1, 3)], "cutting 3 into"),
        ("slice", at.Slice((1,), (3,), (2,)), [(1, 5)], "slice 3:2:1 of 5 elements is empty"),
        ("crop", at.Crop(2, (1,)), [(1, 1, 5), (1, 1, 5)], "axis 2 has 5, 6 needed"),
        ("permute", at.Permute((0, 0)), [(1, 5)], "order"),
        ("softmax", at.Softmax(4), [(1, 5)], "axis 4 of a tensor with 2 axes"),
        ("group_norm", at.GroupNorm(2), [(1, 3, 4)], "3 channels cannot be cut into 2 groups"),
        ("pixel_shuffle", at.PixelShuffle(2), [(1, 3, 4, 4)], "3 channels cannot be moved"),
        ("resize", at.Resize("nearest", (), ((2, 1), (3, 1))), [(1, 1, 2, 2, 2)],
         "2 scales for 3 spatial axes"),
        ("resize", at.Resize("nearest", (2, 3)), [(1, 1, 2, 2, 2)], "resizing"),
        ("mse_loss", None, [(1, 3), (1, 4)], "a loss of 1x3 and 1x4: the two do not agree"),
        ("softmax_loss", None, [(2, 3), (3,)], "expected one label for each of 2 rows"),
        ("roi_pool", at.RoIPool((2, 2)), [(1, 3, 4, 4), (2, 4)], "RoI pooling takes"),
        ("relu", at.Activation(), [(1, 3), (1, 3)], "relu of 2 inputs, expected 1"),
        ("matmul", None, [(2, 3)], "matmul of 1 inputs, expected 2"),
    ],
)  # fmt: skip
def test_shape_errors_name_the_node(
    op: str, attributes: Any, shapes: list[Shape], says: str
) -> None:
    inputs = tuple(Tensor(f"x{n}", shape) for n, shape in enumerate(shapes))
    names = tuple(tensor.name for tensor in inputs)
    node = Node("stage.bad", op, names, ("y",), attributes)
    with pytest.raises(ShapeError, match=f"^net: stage.bad: .*{says}"):
        infer(Graph("net", inputs, (node,), ("y",)))


def test_a_shape_error_points_to_the_file_where_there_is_one() -> None:
    node = Node("pool", "max_pool", ("data",), ("y",), at.Pool(window([9, 9])),
                source=Source("net.prototxt", 41))  # fmt: skip
    with pytest.raises(ShapeError, match=r"^net.prototxt:41: pool: kernel 9x9 does not fit"):
        infer(Graph("net", (DATA,), (node,), ("y",)))


def test_an_op_of_more_outputs_than_are_named() -> None:
    node = Node("cut", "split", ("data",), ("y",), at.Split(1, (1, 2)))
    with pytest.raises(ShapeError, match="net: cut: split has 2 outputs, 1 are named"):
        infer(Graph("net", (DATA,), (node,), ("y",)))


def test_an_op_of_more_outputs_than_are_named_the_second_time() -> None:
    """Nodes alike share a call, and the check with it."""
    told = at.Split(1, (1, 2))
    good = Node("good", "split", ("data",), ("a", "b"), told)
    bad = Node("bad", "split", ("data",), ("c",), told)
    with pytest.raises(ShapeError, match="net: bad: split has 2 outputs, 1 are named"):
        infer(Graph("net", (DATA,), (good, bad), ("a",)))


def test_an_input_of_no_elements() -> None:
    with pytest.raises(ShapeError, match=r"net: input data has shape \(1, 0\)"):
        infer(Graph("net", (Tensor("data", (1, 0)),), (), ("data",)))


def test_three_sizes_for_an_input_of_no_declared_shape_are_an_image() -> None:
    graph = Graph("net", (Tensor("data", None),), (Node("r", "relu", ("data",), ("r",)),), ("r",))
    assert bind(graph, {"": (3, 8, 8)}).inputs[0].shape == (1, 3, 8, 8)
    assert bind(graph, {"": (3, 8, 8)}, batch=5).inputs[0].shape == (5, 3, 8, 8)
    assert bind(graph, {"": (2, 3, 8, 8)}).inputs[0].shape == (2, 3, 8, 8)


# -- bounds


SIZED: dict[str, Callable[[Builder, Any], object]] = {
    "input": lambda b, size: b.input("more", (1, size)),
    "stored": lambda b, size: b.stored("table", (size,), "weight"),
    "features": lambda b, size: b.linear("data", size),
    "channels": lambda b, size: b.conv("data", size, 3),
    "kernel": lambda b, size: b.conv("data", 4, size),
    "stride": lambda b, size: b.conv("data", 4, 3, stride=size),
}


@pytest.mark.parametrize("size", [2**63, 2**64, 10**400, 2.0, "3", None])
@pytest.mark.parametrize("part", SIZED)
def test_the_builder_takes_sizes_that_int64_has(size: Any, part: str) -> None:
    b = Builder("net")
    b.input("data", (1, 3, 8, 8))
    with pytest.raises(ShapeError) as error:
        SIZED[part](b, size)
    assert len(str(error.value)) < 200


def test_figures_beyond_int64_are_exact() -> None:
    b = Builder("net")
    x = b.input("data", (1, 2**40))
    most = 2**63 - 1
    x = b.linear(x, most, bias=False)
    report = analyze(b.build(b.linear(x, most, bias=False)))
    assert report.total_params == 2**40 * most + most * most
    assert f"{report.total_params:,}" in report.to_text()


def test_inputs_beyond_int64_are_refused() -> None:
    with pytest.raises(GraphError, match=r"an axis of 9,223,372,036,854,775,808, expected at most"):
        Graph("g", (Tensor("data", (1, 2**63)),), (), ())


def test_sets_are_serialized_in_order() -> None:
    """Else the JSON of one model would differ from process to process."""
    names = frozenset(f"layer{n}" for n in range(50))

    def filled(struct: msgspec.Struct) -> dict[str, frozenset[str]]:
        fields = struct.__struct_fields__
        return {name: names for name in fields if isinstance(getattr(struct, name), frozenset)}

    autograd = Autograd(training=False)
    graph = Graph("g", (DATA,), (relu("a", "data"),), ("a",))
    graph = replace(graph, autograd=replace(autograd, **filled(autograd)))
    graph = replace(graph, **filled(graph))
    plain = to_plain(graph)
    for struct, values in ((graph, plain), (graph.autograd, plain["autograd"])):
        assert struct is not None
        for name in filled(struct):
            assert values[name] == sorted(names), name
    assert from_plain(plain) == graph
