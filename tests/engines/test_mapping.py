"""Engine nodes back to source layers, on programs written by hand."""

from __future__ import annotations

from layerscope.engines.mapping import LayerMapping, map_nodes, owners_of
from layerscope.engines.memory_plan import TensorSize, plan_memory
from layerscope.engines.onnx_nodes import EngineGraph, EngineNode
from layerscope.engines.onnxruntime_profile import Event, TraceEvent, node_indices, profile_of

NCHWC = "com.microsoft.nchwc"


def op(kind: str, name: str, inputs: str, outputs: str, **more: str) -> EngineNode:
    return EngineNode(kind, name, tuple(inputs.split()), tuple(outputs.split()), **more)


def program(*operators: EngineNode, stored: str = "", outputs: str = "") -> EngineGraph:
    return EngineGraph(operators, ("data",), frozenset(stored.split()), tuple(outputs.split()))


def mapped(source: EngineGraph, engine: EngineGraph) -> LayerMapping:
    return map_nodes(source, [each.name for each in source.nodes], engine)


def names(found: LayerMapping) -> list[str]:
    return [("layout " if group.layout else "") + "+".join(group.shown) for group in found.groups]


BLOCK = program(
    op("Conv", "conv1", "data w1", "conv1"),
    op("BatchNormalization", "bn1", "conv1 g b m v", "bn1"),
    op("Relu", "relu1", "bn1", "relu1"),
    op("Conv", "conv2", "relu1 w2", "conv2"),
    op("Conv", "down", "data w3", "down"),
    op("Add", "add", "conv2 down", "add"),
    op("Relu", "relu2", "add", "relu2"),
    op("Conv", "conv3", "relu2 w4", "conv3"),
    op("Dropout", "drop", "conv3", "drop"),
    op("Flatten", "flat", "drop", "flat"),
    stored="w1 w2 w3 w4 g b m v",
    outputs="flat",
)


def test_nothing_changed_is_one_row_a_layer() -> None:
    found = mapped(BLOCK, BLOCK)
    assert names(found) == [each.name for each in BLOCK.nodes]
    assert found.removed == ()


def test_fused_and_renamed_in_blocks_of_channels() -> None:
    engine = program(
        op("Conv", "relu1_nchwc", "data reorder fused_b", "token_0", domain=NCHWC),
        op("Conv", "down_nchwc", "data token_1", "token_2", domain=NCHWC),
        op("Conv", "conv2_nchwc", "token_0 token_3 none token_2", "token_4", domain=NCHWC,
           activation="Relu"),
        op("Conv", "conv3_nchwc", "token_4 token_5", "token_6", domain=NCHWC),
        op("ReorderOutput", "ReorderOutput", "token_6", "conv3", domain=NCHWC),
        op("Flatten", "flat", "conv3", "flat"),
        outputs="flat",
    )  # fmt: skip
    assert names(mapped(BLOCK, engine)) == [
        "conv1+bn1+relu1", "down", "conv2+add+relu2", "conv3", "layout conv3", "flat",
    ]  # fmt: skip


def test_a_dropped_layer_has_no_row_and_no_name_in_one() -> None:
    engine = program(
        *BLOCK.nodes[:8], op("Flatten", "flat", "conv3", "flat"), stored="w1 w2 w3 w4 g b m v"
    )
    found = mapped(BLOCK, engine)
    assert names(found)[-1] == "flat"
    assert "drop" in found.groups[-1].layers


def test_a_product_and_its_bias_are_one_layer_with_reshapes_around_it() -> None:
    source = program(
        op("LayerNormalization", "ln", "data s", "ln"),
        op("Transpose", "fc/transpose", "fc.weight", "fc/transpose"),
        op("MatMul", "fc/matmul", "ln fc/transpose", "fc/matmul"),
        op("Add", "fc", "fc/matmul fc.bias", "fc"),
        op("Gelu", "gelu", "fc", "gelu"),
        stored="s fc.weight fc.bias",
    )
    owners = owners_of(source, {"ln": "ln", "fc": "fc", "gelu": "gelu"}, ("ln", "fc", "gelu"))
    assert owners == ["ln", "fc", "fc", "fc", "gelu"]
    engine = program(
        op("LayerNormalization", "ln", "data s", "ln"),
        op("Reshape", "gemm_input_reshape", "ln shape", "gemm_in"),
        op("Gemm", "fc/matmul/MatMulAddFusion", "gemm_in fc/transpose fc.bias", "gemm_out"),
        op("Reshape", "gemm_output_reshape", "gemm_out shape2", "fc"),
        op("Gelu", "gelu", "fc", "gelu"),
        stored="s fc/transpose fc.bias",
    )
    found = map_nodes(source, owners, engine)
    rows = {group.layers: len(group.nodes) for group in found.groups}
    assert set(rows) == {("ln",), ("fc",), ("gelu",)}
    assert rows["fc",] >= 2


def test_a_pattern_that_became_one_operator() -> None:
    source = program(
        op("Conv", "conv", "data w", "conv"),
        op("Sigmoid", "sigmoid", "conv", "sigmoid"),
        op("Mul", "mul", "conv sigmoid", "mul"),
        stored="w",
    )
    engine = program(
        op("Conv", "conv", "data w", "conv"),
        op("QuickGelu", "mul/QuickGeluFusion/", "conv", "mul"),
        stored="w",
    )
    assert names(mapped(source, engine)) == ["conv", "sigmoid+mul"]


def test_names_that_begin_alike_are_told_apart() -> None:
    source = program(
        op("Conv", "conv1", "data w1", "conv1"),
        op("Conv", "conv10", "conv1 w2", "conv10"),
        stored="w1 w2",
    )
    engine = program(
        op("Conv", "conv1_nchwc", "data a", "t0", domain=NCHWC),
        op("Conv", "conv10_nchwc", "t0 b", "t1", domain=NCHWC),
    )
    assert names(mapped(source, engine)) == ["conv1", "conv10"]


def test_fused_by_name_only() -> None:
    source = program(
        op("Conv", "conv1", "data w1", "conv1"), op("Relu", "relu1", "conv1", "relu1"), stored="w1"
    )
    engine = program(op("FusedConv", "fused conv1", "data w1", "relu1", activation="Relu"),
                     stored="w1")  # fmt: skip
    assert names(mapped(source, engine)) == ["conv1+relu1"]


def test_what_nobody_knows_is_a_group_without_layers() -> None:
    engine = program(op("Mystery", "mystery", "nowhere", "nothing"), *BLOCK.nodes)
    groups = [group for group in mapped(BLOCK, engine).groups if not group.layers]
    assert [engine.nodes[group.nodes[0]].name for group in groups] == ["mystery"]


def test_folded_arrays_are_removed_layers() -> None:
    source = program(
        op("Identity", "table", "w", "table"), op("Add", "add", "data table", "add"), stored="w"
    )
    engine = program(op("Add", "add", "data table", "add"), stored="table")
    found = mapped(source, engine)
    assert names(found) == ["add"]
    assert found.removed == ("table",)


def test_liveness_overwrites_reuses_and_shares() -> None:
    chain = program(
        op("Conv", "a", "data w", "a"),
        op("Relu", "b", "a", "b"),
        op("Conv", "c", "b w", "c"),
        op("Reshape", "d", "c s", "d"),
        op("Conv", "e", "d w", "e"),
        op("Add", "f", "e b", "f"),
        stored="w s",
        outputs="f",
    )
    size = {name: TensorSize((4, 5), 80) for name in "abcdef"}
    size["d"] = TensorSize((20,), 80)
    # a=b held for f; c=d; e anew; f overwrites e, b dead after it
    assert plan_memory(chain, range(6), size).alive_bytes == (80, 80, 160, 160, 240, 160)


def test_a_profile_is_cut_into_runs_and_counts_nothing_twice() -> None:
    def event(name: str, ts: int, dur: int, kind: str = "Conv") -> TraceEvent:
        return TraceEvent(f"{name}_kernel_time", ts, dur, "Node", {"op_name": kind})

    found = profile_of([
        TraceEvent("model_run", 0, 100, "Session"), event("a", 1, 40), event("if", 41, 50, "If"),
        event("inside", 42, 30), TraceEvent("model_run", 200, 90, "Session"), event("a", 201, 60),
        event("a", 300, 7),
    ])  # fmt: skip
    assert [[each.node for each in run] for run in found.runs] == [["a", "if"], ["a"], ["a"]]
    assert [each.time_s for each in found.runs[0]] == [40e-6, 50e-6]


def test_operators_without_a_name_are_found_by_kind_and_order() -> None:
    operators = [op("Relu", "", "x", "y"), op("Conv", "c", "y", "z"), op("Relu", "", "z", "u")]
    events = [Event(name, kind, 0.0, 0, 0, 0)
              for name, kind in (("Relu_7", "Relu"), ("c", "Conv"), ("Relu_9", "Relu"),
                                 ("Odd_3", "Odd"))]  # fmt: skip
    assert node_indices(events, operators) == [0, 1, 2, None]
