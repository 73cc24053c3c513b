"""What an engine does on this processor is read from its graphs, and rows and layouts follow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import pytest

from layerscope.api.networks import analyze
from layerscope.api.timing import measure
from layerscope.engines.mapping import LayerMapping, map_nodes
from layerscope.engines.onnx_nodes import EngineGraph, engine_graph
from layerscope.engines.onnxruntime_sessions import optimised_model
from layerscope.engines.workload import prepare_workload
from layerscope.graph import Graph
from layerscope.lower.onnx import lower
from layerscope.prediction import microbenchmarks
from layerscope.prediction.calibration import engine_rules
from layerscope.prediction.engine_rules import NO_RULES, EngineRules, rules_of
from layerscope.prediction.fusion import fused_rows
from layerscope.prediction.layout import layouts_of
from layerscope.prediction.row_features import reorder_of
from layerscope.report import Report
from layerscope.report.build import report_of
from tests.engines.test_measure import residual
from tests.prediction.engine_rules import NO_BLOCKS, blocks_of

NETWORKS = ("mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x1_0",
            "squeezenet1_1", "googlenet", "densenet121", "resnext50_32x4d", "regnet_y_400mf",
            "shufflenet_v2_x0_5", "vgg11", "resnet18", "unet")  # fmt: skip
WAYS = {"as it is": (), "without blocks": ("NchwcTransformer",)}


def optimise(graph: Graph, disabled: Sequence[str] = ()) -> Any:
    report = report_of(graph)
    model = lower(report.graph, report.shapes, report.costs)
    return optimised_model(model.SerializeToString(), disabled)


@cache
def rules(way: str) -> EngineRules:
    return rules_of(partial(optimise, disabled=WAYS[way]))


def test_calibration_finds_the_rules_of_this_machine() -> None:
    assert engine_rules("onnxruntime") == rules("as it is")
    assert engine_rules("openvino") == NO_RULES


def test_an_engine_without_blocks_is_seen_to_have_none() -> None:
    """As on a processor that ONNX Runtime has no blocked kernels for."""
    found = rules("without blocks")
    assert found == NO_BLOCKS


def test_the_rules_that_tests_assume_are_those_of_the_engine() -> None:
    found = rules("as it is")
    assert found == (blocks_of(found.block) if found.block else NO_BLOCKS)


@cache
def ran(name: str, way: str) -> tuple[Report, EngineGraph, LayerMapping]:
    """The report of a network, what the engine makes of it, and how its operators map."""
    from tempfile import TemporaryDirectory

    report = analyze(name)
    with TemporaryDirectory() as folder:
        workload = prepare_workload(report, folder)
        assert isinstance(workload.model, bytes)
        engine = engine_graph(optimised_model(workload.model, WAYS[way]))
    return report, engine, map_nodes(workload.graph, workload.owners, engine)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_layouts_change_where_the_engine_changes_them(name: str, way: str) -> None:
    """Against the graph that ONNX Runtime writes: rows in blocks, and what is reordered."""
    report, engine, mapped = ran(name, way)
    rows = fused_rows(report, rules(way))
    row_of = {layer.name: row[0].name for row in rows for layer in row}
    for group in mapped.groups:  # what is dropped belongs to the row that the engine has it in
        for layer in group.layers if not group.layout else ():
            row_of.setdefault(layer, next((row_of[n] for n in group.layers if n in row_of), layer))
    reordered: list[str] = []
    in_blocks: set[str] = set()
    for group in mapped.groups:
        operators = [engine.nodes[index] for index in group.nodes]
        if operators[0].op_type.startswith("Reorder"):
            reordered += [row_of.get(layer, layer) for layer in group.layers[:1]]
        elif any(operator.domain.endswith("nchwc") for operator in operators):
            in_blocks |= {row_of.get(layer, layer) for layer in group.layers}
    found = layouts_of(report, rows, rules(way))
    ours = [row_of.get(name, name) for name, moved in found.reordered.items() for _ in moved]
    assert sorted(ours) == sorted(reordered)
    known_to = {row[0].name for row in rows if row[0].op in ("conv", *rules("as it is").pools)}
    assert {row_of[name] for name in found.blocked} & known_to == in_blocks & known_to


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NETWORKS)
def test_convolutions_are_fused_as_the_engine_does(name: str, way: str) -> None:
    report, _, mapped = ran(name, way)
    rows = {row[0].name: {layer.name for layer in row} for row in fused_rows(report, rules(way))}
    groups = [set(group.layers) for group in mapped.groups if not group.layout]
    dropped = {layer.name for layer in report.layers if layer.op in ("dropout", "identity")}
    for first, layers in rows.items():
        if report.by_name[first].op == "conv":
            [theirs] = [group for group in groups if first in group]
            assert layers - dropped == theirs - dropped


def test_rows_are_fused_as_the_engine_measures_them() -> None:
    report = analyze(residual())
    rows = {tuple(layer.name for layer in row) for row in fused_rows(report, rules("as it is"))}
    run = measure(residual(), threads=1).runs[0]
    measured = {
        row.layers for row in run.rows if row.kind == "layer" and row.layers != ("flatten",)
    }
    assert rows == measured


def test_the_engine_shuffles_channels_in_one_exchange() -> None:
    report, engine, _ = ran("shufflenet_v2_x1_0", "as it is")
    found = [operator.op_type for operator in engine.nodes]
    rows = [row for row in fused_rows(report, rules("as it is")) if row[0].op == "permute"]
    assert found.count("Transpose") == len(rows) == 16


class Blocks:
    """An engine of made-up blocks that writes graphs of convolutions, pools and what is between."""

    def __init__(self, block: int, multiple: int) -> None:
        self.block, self.multiple = block, multiple

    def __call__(self, graph: Graph) -> Any:
        """The graph with reorders, and weights filled up to blocks."""
        self.report = report_of(graph)
        self.nodes: list[Any] = []
        self.sizes: list[Any] = []
        self.blocked: dict[str, str] = {}  # the tensor in blocks, by its plain name
        self.copies: set[str] = set()  # of tensors that were made plain
        self.plain: set[str] = {tensor.name for tensor in graph.inputs}
        for layer in self.report.layers:
            self._layer(layer)
        for name in graph.outputs:
            self._plain(name)
        return SimpleNamespace(graph=SimpleNamespace(node=self.nodes, initializer=self.sizes))

    def _emit(self, op: str, given: list[str], out: str, blocked: bool = False) -> None:
        domain = "com.microsoft.nchwc" if blocked else ""
        self.nodes.append(SimpleNamespace(op_type=op, domain=domain, input=given, output=[out]))

    def _plain(self, name: str) -> str:
        if name not in self.plain:
            self._emit("ReorderOutput", [self.blocked[name]], name, blocked=True)
            self.plain.add(name)
        return name

    def _blocks(self, name: str) -> str:
        if name not in self.blocked:
            self._emit("ReorderInput", [name], f"{name}*", blocked=True)
            self.copies.add(name)
            self.blocked[name] = f"{name}*"
        return self.blocked[name]

    def _layer(self, layer: Any) -> None:
        out, given, call = layer.node.outputs[0], list(layer.node.inputs), layer.call
        kind = {"max_pool": "MaxPool", "concat": "Concat"}.get(layer.op, layer.op.title())
        all_in = all(name in self.blocked and name not in self.copies for name in given)
        fits = all(shape[1] % self.block == 0 for shape in call.inputs if len(shape) == 4)
        if layer.op == "conv" and self._takes(layer):
            few = call.x[1] < self.block
            weight = f"{layer.name}.weight"
            filled = -(-call.y[1] // self.block) * self.block
            self.sizes.append(SimpleNamespace(name=weight, dims=[filled, call.x[1], 1, 1]))
            read = self._plain(given[0]) if few else self._blocks(given[0])
            self._emit("Conv", [read, weight], f"{out}*", blocked=True)
            self.blocked[out] = f"{out}*"
        elif all_in and ("pool" in layer.op or layer.op == "concat") and fits:
            pool = "pool" in layer.op
            self._emit(kind, [self.blocked[n] for n in given], f"{out}*", blocked=pool)
            self.blocked[out] = f"{out}*"
        elif all_in and layer.op in ("relu", "add", "mul", "sigmoid"):
            self._emit(kind, [self.blocked[n] for n in given], f"{out}*")
            self.blocked[out] = f"{out}*"
        else:
            self._emit(kind, [self._plain(name) for name in given], out)
            self.plain.add(out)

    def _takes(self, layer: Any) -> bool:
        channels, made, groups = layer.call.x[1], layer.call.y[1], layer.node.attributes.groups
        if groups == 1:
            return bool(channels < self.block or channels % self.multiple == 0)
        if groups == channels == made:
            return bool(made % self.multiple == 0)
        return bool(channels // groups % self.block == 0 == made // groups % self.block)


@pytest.mark.parametrize(
    ("block", "multiple"), [(8, 4), (16, 4), (16, 8), (4, 4), (32, 16), (8, 1)]
)
def test_blocks_of_any_size_are_found(block: int, multiple: int) -> None:
    """Of made-up engines: the size, what channels must be divisible by, what stays in blocks."""
    found = rules_of(Blocks(block, multiple))
    assert (found.block, found.direct) == (block, block)
    assert (found.conv_multiple, found.depthwise_multiple) == (multiple, multiple)
    assert (found.group_multiple, found.pool_multiple, found.concat_multiple) == (block,) * 3
    assert {"max_pool", "avg_pool"} <= set(found.pools)
    assert set(found.by_element) == {"relu", "sigmoid", "add", "mul"}
    assert found.after_conv == ()
    assert found.sums_in_blocks == found.sums_plain == ""


@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize("name", ["mobilenet_v2", "googlenet", "densenet121", "regnet_y_400mf"])
def test_layouts_follow_blocks_of_any_size(name: str, block: int) -> None:
    """Against the reorders that a made-up engine writes into its graph."""
    engine = Blocks(block, 4)
    report = analyze(name)
    graph = engine(report.graph).graph
    reorders = [node for node in graph.node if node.op_type.startswith("Reorder")]
    inputs = {tensor.name for tensor in report.inputs}
    theirs = sorted(
        (node.input[0].rstrip("*"), node.op_type)
        for node in reorders
        if node.input[0] not in inputs
    )
    rows = [(layer,) for layer in report.layers]
    found = layouts_of(report, rows, rules_of(Blocks(block, 4)))
    ours = sorted(
        (tensor.name, "ReorderOutput" if name in found.blocked else "ReorderInput")
        for name in found.reordered
        for tensor in report.by_name[name].outputs
    )
    assert ours == theirs
    assert ours


def test_without_blocks_nothing_is_reordered() -> None:
    report = analyze("efficientnet_b0")
    found = layouts_of(report, fused_rows(report, NO_BLOCKS), NO_BLOCKS)
    assert not found.blocked
    assert not found.reordered
    assert found.filled("features.0.0", 30) == 30


def networks(rules: EngineRules) -> Iterator[Report]:
    yield from map(report_of, microbenchmarks.networks(rules))


@pytest.mark.parametrize("make", [blocks_of, lambda block: NO_BLOCKS])
@pytest.mark.parametrize("block", [8, 16])
def test_micro_networks_have_channels_of_every_kind(
    block: int, make: Callable[[int], EngineRules]
) -> None:
    """Whole blocks, blocks that are partly empty, channels in no block; reorders both ways."""
    chosen = make(block)
    kinds: set[str] = set()
    reorders: set[tuple[float, ...]] = set()
    for report in networks(chosen):
        layouts = layouts_of(report, fused_rows(report, chosen), chosen)
        for name, moved in layouts.reordered.items():
            reorders.add(reorder_of(moved, name in layouts.blocked).coordinates[1:])
        for layer in report.layers:
            if layer.op != "conv" or layer.call is None:
                continue
            channels = layer.call.y[1]
            if layer.name not in layouts.blocked:
                kinds.add("plain")
            else:
                kinds.add("partly" if channels % block else "whole")
    assert kinds == ({"plain", "partly", "whole"} if chosen.block else {"plain"})
    assert len(reorders) == (2 if chosen.block else 0)
