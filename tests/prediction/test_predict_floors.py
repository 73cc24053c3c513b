"""Predictions are never faster than the machine: operations at the peak, weights from DRAM."""

from __future__ import annotations

from functools import cache

import pytest

import layerscope
from layerscope.api.networks import analyze
from layerscope.api.timing import predict
from layerscope.engines.accelerators import ACCELERATORS
from layerscope.graph.types import DTYPE_BITS
from layerscope.prediction.floors import Floors, Limits, stored_reads
from layerscope.prediction.other_machines import machines, predict_on
from layerscope.report import Report
from layerscope.report.prediction import Prediction

NETWORKS = (
    "lenet5", "alexnet", "vgg16", "nin", "googlenet", "resnet18", "resnet50", "inception_v3",
    "squeezenet1_1", "resnext50_32x4d", "densenet121", "mobilenet_v2", "shufflenet_v2_x1_0",
    "efficientnet_b0", "regnet_y_400mf", "convnext_tiny", "unet", "vit_b_16", "swin_t",
    "bert_base", "gpt2", "t5-small", "llama-3-8b",
)  # fmt: skip
BATCHES = (1, 8, 256)
ALMOST = 1 - 1e-9  # sums in another order


@cache
def account(network: str, batch: int, dtype: str) -> Report:
    return analyze(network, batch=batch, dtype="fp32" if dtype == "tf32" else dtype)


def sheet_figures(machine: str, dtype: str) -> tuple[float, float, float]:
    """FLOP/s, bytes a second, bytes of the cache."""
    sheet = ACCELERATORS[machine.removesuffix("-compiled")]
    return sheet.tflops[dtype] * 1e12, sheet.gb_s * 1e9, sheet.cache_mb * 1e6


def read_bytes(report: Report) -> tuple[dict[str, int], int]:
    """Bytes of weights that each layer reads, and of all of them, shared ones once."""
    layers: dict[str, int] = {}
    storages: dict[str, int] = {}
    for layer in report.layers:
        for param in layer.cost.params:
            size = param.bytes
            if layer.op == "embedding":  # the rows that are looked up
                size = min(size, layer.outputs[0].elements * DTYPE_BITS[param.dtype] // 8)
            layers[layer.name] = layers.get(layer.name, 0) + size
            own = f"{layer.name}.{param.name}"
            name = (layer.node.ties or {}).get(param.name) or param.storage or own
            storages[name] = max(storages.get(name, 0), size)
    return layers, sum(storages.values())


def check(found: Prediction, report: Report, machine: str) -> None:
    peak, dram, cached = sheet_figures(machine, found.dtype)
    rows = {row.name: row.time_s for row in found.rows}
    read, stored = read_bytes(report)
    for layer in report.layers:
        floor = max(layer.cost.ops.flops / peak, (read.get(layer.name, 0) - cached) / dram)
        seconds = rows.get(layer.name, 0.0)
        assert seconds is not None
        assert seconds >= floor * ALMOST, (machine, found.network, layer.name)
    assert found.total_s >= report.totals.flops / peak * ALMOST
    assert found.total_s >= (stored - cached) / dram * ALMOST
    assert found.total_s >= (report.totals.param_bytes - cached) / dram * ALMOST
    assert found.low_s >= max(report.totals.flops / peak, (stored - cached) / dram) * ALMOST
    assert found.total_s == pytest.approx(sum(row.time_s or 0.0 for row in found.rows))


@pytest.mark.parametrize("machine", machines())
def test_nothing_is_below_its_floor(machine: str) -> None:
    """Every known machine, networks of the zoo, batches 1 to 256; floors from the data sheet."""
    for network in NETWORKS:
        for batch in BATCHES:
            default = predict(network, on=machine, batch=batch) if batch == 1 else None
            dtype = default.dtype if default else predict("lenet5", on=machine).dtype
            report = account(network, batch, dtype)
            check(default or predict_on(report, machine, dtype), report, machine)


@pytest.mark.parametrize("machine", ["l4", "a100", "rtx4090-compiled", "tpu-v4", "i7-12700h"])
def test_floors_are_those_of_the_dtype(machine: str) -> None:
    for dtype in ACCELERATORS[machine.removesuffix("-compiled")].tflops:
        for network in ("resnet50", "vgg16", "gpt2"):
            found = predict(network, on=machine, batch=1, dtype=dtype)
            check(found, account(network, 1, dtype), machine)


def test_a_language_model_reads_its_weights() -> None:
    """16 GB in half precision take over 50 ms at 300 GB/s, whatever was fitted."""
    assert predict("llama-3-8b", on="l4").total_s > 0.0499


LIMITS = Limits({"fp32": 1e12, "fp16": 2e12}, 1e9, 1000.0)


def linear_net(batch: int = 1, twice: bool = False) -> Report:
    """64 to 64 without a bias: 16,384 bytes; a second time with the same array."""
    b = layerscope.Builder("net")
    x = b.linear(b.input("data", (batch, 64)), 64, bias=False, name="one")
    if twice:
        x = b.linear(x, 64, bias=False, name="two")
    graph = b.build(x)
    if twice:
        from msgspec.structs import replace

        nodes = tuple(
            replace(node, ties={"weight": "one.weight"}) if node.name == "two" else node
            for node in graph.nodes
        )
        graph = replace(graph, nodes=nodes)
    return analyze(graph)


def test_weights_are_read_once_whatever_the_batch() -> None:
    for batch in (1, 100):
        floors = Floors(linear_net(batch), LIMITS)
        assert floors.total == floors.row(["one"]) == (16_384 - 1000) / 1e9


def test_operations_count_where_they_take_longer() -> None:
    floors = Floors(linear_net(10_000), LIMITS)
    assert floors.total == 2 * 64 * 64 * 10_000 / 1e12


def test_a_shared_array_counts_once_in_the_sum() -> None:
    report = linear_net(twice=True)
    floors = Floors(report, LIMITS)
    assert floors.total == pytest.approx((16_384 - 1000) / 1e9)
    assert floors.row(["two"]) == (16_384 - 1000) / 1e9  # alone it reads all of it again
    assert floors.row(["one", "two"]) >= floors.total


def test_a_cache_that_holds_all_weights_leaves_no_floor_of_reading() -> None:
    flops = 2 * 64 * 64
    floors = Floors(linear_net(), Limits({"fp32": 1e12}, 1e9, 20_000.0))
    assert floors.total == flops / 1e12
    unknown = Floors(linear_net(), Limits({"fp32": 1e12}, 1e9))
    assert unknown.total == flops / 1e12


def test_of_an_embedding_only_rows_looked_up_are_read() -> None:
    report = analyze("gpt2", tokens=3)
    sizes = {(name, storage): size for name, storage, size in stored_reads(report)}
    table = next(layer for layer in report.layers if layer.op == "embedding")
    rows = [size for (name, _), size in sizes.items() if name == table.name]
    assert rows == [3 * 768 * 4]
    # the same array is the matrix of the last layer, which reads all of it
    storage = next(storage for name, storage in sizes if name == table.name)
    assert max(size for (_, s), size in sizes.items() if s == storage) == 50257 * 768 * 4


def test_a_cache_of_keys_and_values_is_read_too() -> None:
    one = predict("llama-3-8b", on="h100", decode=1, batch=64)
    long = predict("llama-3-8b", on="h100", decode=8000, batch=64)
    kept = analyze("llama-3-8b", decode=8000, batch=64, dtype="fp16").cache_bytes
    assert kept > 60e9
    assert long.total_s > kept / 3.35e12 > one.total_s


@pytest.mark.parametrize(("dtype", "size"), [("int8", 4096), ("int4", 2048)])
def test_quantized_weights_count_the_bytes_they_are_stored_in(dtype: str, size: int) -> None:
    from msgspec.structs import replace

    graph = linear_net().graph
    [node] = graph.nodes
    params = (layerscope.Param("weight", (64, 64), dtype=dtype),)
    report = analyze(replace(graph, nodes=(replace(node, params=params),)))
    assert [read for _, _, read in stored_reads(report)] == [size]
    floors = Floors(report, LIMITS)
    assert floors.total == pytest.approx(max((size - 1000) / 1e9, 2 * 64 * 64 / 1e12))


def test_a_language_model_takes_as_long_as_its_weights_take_to_be_read() -> None:
    """Its 16.06 GB of fp16 at 300 GB/s, less a cache of 48 MB; it was said to take 19.7 ms."""
    found = layerscope.predict("llama-3-8b", on="l4")
    assert 0.0533 < found.total_s < 0.08
    assert found.total_s == pytest.approx(sum(row.time_s or 0.0 for row in found.rows))
    [rest] = [row for row in found.rows if row.name == "weights that no row reads"]
    assert rest.kind == "overhead"  # of an embedding one row is looked up
