"""Memory of training by hand, and the batch that fits by trying them all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

import layerscope
from layerscope import Builder, Graph
from layerscope.analysis.costs import storage_of
from layerscope.analysis.training import kept, sharded
from layerscope.api.fitting import train_adapters
from layerscope.cli import run
from layerscope.errors import UnknownName, UsageError


def small(in_place: bool = False) -> Graph:
    """1x2x4x4 → conv to 3 → bn → relu → max pool → dropout → linear to 5."""
    b = Builder("small")
    x = b.conv(b.input("data", (1, 2, 4, 4)), 3, 3, padding=1, name="conv")
    x = b.relu(b.batch_norm(x, name="bn"), in_place=in_place, name="relu")
    x = b.dropout(b.flatten(b.max_pool(x, 2, name="pool"), name="flat"), name="drop")
    return b.build(b.linear(x, 5, name="fc"))


def keeps(graph: Graph) -> dict[str, int]:
    report = layerscope.analyze(graph)
    return kept(report.graph, report.shapes, report.costs).by_node


def test_what_each_layer_keeps() -> None:
    assert keeps(small()) == {
        "conv": 4 * 32,  # its input
        "bn": 4 * 48 + 4 * 2 * 3,  # its input, mean and deviation
        "relu": 4 * 48,  # its output
        "pool": 8 * 12,  # its input is relu's output already; places of the maxima
        "flat": 0,
        "drop": 4 * 12,  # a factor for each element
        "fc": 4 * 12,  # its input, which dropout made
    }


def test_in_place_shares_the_storage() -> None:
    """The norm's output is overwritten: relu keeps it as its own result, once."""
    assert sum(keeps(small(in_place=True)).values()) == sum(keeps(small()).values())
    b = Builder("net")
    x = b.conv(b.input("data", (1, 2, 4, 4)), 3, 1, name="conv")
    x = b.activation("hard_swish", x, in_place=True, name="act")
    b.conv(x, 2, 1, name="conv2")
    assert keeps(b.build())["act"] == 4 * 48  # a copy: its gradient needs the input
    assert keeps(b.build())["conv2"] == 4 * 48


def test_nothing_is_kept_before_the_first_parameter() -> None:
    b = Builder("net")
    x = b.relu(b.input("data", (1, 2, 4, 4)), name="relu")
    b.conv(x, 3, 1, name="conv")
    assert keeps(b.build()) == {"relu": 0, "conv": 4 * 32}


def test_optimizers_and_mixed_precision() -> None:
    report = layerscope.analyze("resnet18")
    params, buffers = report.totals.params, report.totals.buffers
    for optimizer, states in {"sgd": 0, "momentum": 1, "adam": 2, "adamw": 2}.items():
        step = report.training(optimizer)
        assert step.weights_bytes == 4 * (params + buffers)
        assert step.gradient_bytes == 4 * params
        assert step.state_bytes == 4 * params * states
        assert step.half_copy_bytes == 0
    half = layerscope.analyze("resnet18", dtype="fp16").training("adam", mixed=True)
    assert half.weights_bytes == 4 * (params + buffers)
    assert half.half_copy_bytes == 2 * params
    assert half.gradient_bytes == 4 * params
    pure = layerscope.analyze("resnet18", dtype="fp16").training("adam")
    assert pure.weights_bytes == 2 * (params + buffers)
    assert pure.kept_bytes == half.kept_bytes < report.training("adam").kept_bytes
    with pytest.raises(UnknownName, match="did you mean adam"):
        report.training("adm")


def test_checkpoints_keep_less_and_add_up() -> None:
    """Twenty equal blocks of 3: with k cuts k tensors between, and the longest run of blocks."""
    b = Builder("chain")
    x = b.input("data", (1, 4, 8, 8))
    for _ in range(20):
        x = b.activation("sigmoid", b.conv(x, 4, 3, padding=1))
    report = layerscope.analyze(b.build(x))
    tensor = 4 * 4 * 64
    plain = report.training("sgd")
    assert plain.kept_bytes == 21 * tensor  # the input and every sigmoid's output
    less = report.training("sgd", checkpoint=True)
    assert less.checkpoints > 0
    assert less.kept_bytes < plain.kept_bytes
    best = min(k * tensor + -(-21 // (k + 1)) * tensor for k in range(20))
    assert best <= less.kept_bytes <= best + 2 * tensor


@pytest.mark.parametrize("options", [{}, {"train": "adam"}, {"train": "sgd", "checkpoint": True}])
def test_fit_is_the_largest_batch(options: dict[str, object]) -> None:
    graph = small()
    memory = 20_000
    found = layerscope.fit(graph, memory, **options)  # type: ignore[arg-type]

    def needed(batch: int) -> int:
        report = layerscope.analyze(graph, batch=batch)
        if not options:
            return report.totals.param_bytes + report.totals.peak_activation_bytes
        step = report.training(str(options["train"]), checkpoint=bool(options.get("checkpoint")))
        return step.total_bytes

    assert found.batch == max(batch for batch in range(1, 60) if needed(batch) <= memory)
    assert (
        found.bytes == needed(found.batch) <= memory < found.next_bytes == needed(found.batch + 1)
    )


def test_nothing_fits_in_too_little() -> None:
    assert layerscope.fit("vgg16", 10**6).batch == 0
    with pytest.raises(UsageError):
        layerscope.fit("vgg16", 0)


def test_the_bytes_of_a_fit_are_bounds_where_a_layer_is_unknown() -> None:
    """In every form; a complete fit has no sign."""
    b = Builder("odd")
    x = b.linear(b.input("data", (1, 8)), 8)
    b.add_node("warp::drive", (x,), name="warp")
    graph = b.build(b.linear(x, 4))
    for options in ({}, {"train": "adam"}):
        found = layerscope.fit(graph, 10_000, **options)  # type: ignore[arg-type]
        assert not found.complete
        assert "at most" in repr(found)
        assert "largest that may fit" in str(found)
        assert str(found).count("≥") == 6  # of two rows and the sentence
        assert found.to_csv().splitlines()[1].split(",")[1] == f"≥{found.bytes}"
        assert list(found.to_pandas()["bytes"]) == [f"≥{found.bytes}", f"≥{found.next_bytes}"]
        assert json.loads(found.to_json())["complete"] is False
    known = layerscope.fit(small(), 20_000)
    assert "≥" not in str(known)
    assert "complete" not in json.loads(known.to_json())


@pytest.mark.parametrize(
    "options",
    [{"memory_bytes": "8GB"}, {"memory_bytes": 1.5}, {"batch": 3}, {"mixed": True},
     {"checkpoint": True}, {"memory_bytes": 2**62}],
)  # fmt: skip
def test_a_wrong_argument_of_fit_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        layerscope.fit(**{"network": "lenet5", "memory_bytes": 10**9, **options})


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "resnet18", "--total", "--train", "adam", "--fit", "8GB"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("Training with adam, batch 1: 216 MB = weights 46.8 MB + gradients")
    assert lines[2].startswith("Batch 273 is the largest that fits in 8.00 GB: training takes")
    assert run(["show", "resnet18", "--as", "json", "--train", "sgd", "--fit", "1GiB"]) == 0
    document = json.loads(capsys.readouterr().out)
    step = document["training"]
    assert step["total_bytes"] == sum(
        held for name, held in step.items() if name.endswith("_bytes") and name != "total_bytes"
    )
    assert document["fit"]["memory_bytes"] == 2**30
    assert run(["show", "vgg16", "--fit", "1MB", "--total"]) == 0
    assert "No batch fits in 1.00 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--train", "adm"], "did you mean adam"),
        (["--mixed"], "--mixed needs --train"),
        (["--train", "sgd", "--mixed", "--dtype", "int8"], "expected fp16 or bf16"),
        (["--fit", "much"], "--fit much: expected bytes such as"),
        (["--fit", "8GB", "--as", "boda"], "--fit cannot be combined with --as boda"),
    ],
)
def test_wrong_arguments(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "lenet5", *args]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("name", "status"), [("resnet18", "exact"), ("vit_b_16", "estimate")])
def test_kept_bytes_say_whether_they_are_exact(
    name: str, status: str, capsys: pytest.CaptureFixture[str]
) -> None:
    step = layerscope.analyze(name).training("sgd")
    assert (step.kept_status, bool(step.notes)) == (status, status == "estimate")
    assert run(["show", name, "--total", "--train", "sgd"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert ("Kept activations are exact" in line) == (status == "exact")
    assert all(note in line for note in step.notes)
    assert run(["show", name, "--as", "json", "--train", "sgd"]) == 0
    document = json.loads(capsys.readouterr().out)["training"]
    assert (document["kept_status"], tuple(document["notes"])) == (status, step.notes)


@pytest.mark.parametrize("name", ["efficientnet_b0", "convnext_tiny"])
def test_what_the_zoo_leaves_out_is_an_estimate(name: str) -> None:
    """Stochastic depth, which does nothing at inference, draws a factor for every example."""
    step = layerscope.analyze(name).training("sgd")
    assert step.kept_status == "estimate"
    assert "stochastic depth" in step.notes[0]


def test_an_unknown_layer_is_named() -> None:
    b = Builder("net")
    x = b.conv(b.input("data", (1, 2, 4, 4)), 3, 1, name="conv")
    b.add_node("mystery", (x,), name="odd")
    report = layerscope.analyze(b.build())
    saved = kept(report.graph, report.shapes, report.costs)
    assert (saved.complete, saved.status) == (False, "estimate")
    assert saved.notes == ("odd: what an unknown layer keeps is not counted",)


def test_products_keep_what_other_gradients_need() -> None:
    """A number keeps nothing; a pair keeps both; views keep the storage they are of."""
    b = Builder("net")
    x = b.conv(b.input("data", (1, 2, 4, 4)), 4, 1, name="conv")
    left, right = b.split(x, (2, 2), name="halves")
    y = b.add_node("mul", (left, right), name="gate")[0]
    b.add_node("mul", (y,), name="twice")
    assert keeps(b.build()) == {"conv": 4 * 32, "halves": 0, "gate": 4 * 64, "twice": 0}


def test_a_frozen_layer_does_not_keep_its_input() -> None:
    b = Builder("net")
    x = b.linear(b.input("data", (4, 8)), 8, name="first")
    b.linear(x, 8, name="second")
    graph = b.build()
    assert keeps(graph) == {"first": 4 * 32, "second": 4 * 32}
    assert keeps(replace(graph, frozen=frozenset(("second.weight", "second.bias")))) == {
        "first": 4 * 32,
        "second": 0,
    }


@pytest.mark.parametrize("optimizer", ["momentum8bit", "adam8bit", "adamw8bit"])
def test_states_of_eight_bits(optimizer: str) -> None:
    """A byte for each number and a scale for each 256; arrays below 4,096 numbers are fp32."""
    b = Builder("net")
    b.linear(b.input("data", (1, 70)), 100, name="fc")  # 7,000 weights and 100 biases
    found = layerscope.analyze(b.build()).training(optimizer)
    states = 1 if optimizer == "momentum8bit" else 2
    assert found.state_bytes == states * (7000 + 4 * 28 + 4 * 100)
    assert found.gradient_bytes == 4 * 7100


def test_the_command_takes_eight_bits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "lenet5", "--train", "adamw8bit", "--total"]) == 0
    assert "Training with adamw8bit" in capsys.readouterr().out


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_zero_cuts_state_then_gradients_then_weights(stage: int) -> None:
    whole = layerscope.analyze("lenet5").training("adam", mixed=True)
    found = sharded(whole, stage, 8)
    cut = {"state_bytes": 1, "gradient_bytes": 2, "weights_bytes": 3, "half_copy_bytes": 3}
    for name, first in cut.items():
        size = getattr(whole, name)
        assert getattr(found, name) == (-(-size // 8) if stage >= first else size)
    assert found.kept_bytes == whole.kept_bytes
    assert sharded(whole, stage, 1).total_bytes == whole.total_bytes


def test_the_command_takes_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "lenet5", "--train", "adam", "--zero", "3x8", "--total"]) == 0
    assert "each of 8 devices under ZeRO 3" in capsys.readouterr().out
    assert run(["show", "lenet5", "--train", "adam", "--zero", "2x4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["training"]
    assert (found["zero_stage"], found["devices"]) == (2, 4)
    for more in (("4x8",), ("3",), ("3x0",), ("3x8", "--fit", "8GB"), ("x",), ("3xx",)):
        assert run(["show", "lenet5", "--train", "adam", "--zero", *more]) == 2
        assert "--zero" in capsys.readouterr().err
    assert run(["show", "lenet5", "--zero", "3x8"]) == 2
    assert "--zero needs --train" in capsys.readouterr().err


def test_adapters_alone_are_trained() -> None:
    """7 -> 11 -> 13 with a head of 5: rank 2 beside the first two layers."""
    b = Builder("net")
    x = b.relu(b.linear(b.input("data", (3, 7)), 11, name="a"))
    b.linear(b.relu(b.linear(x, 13, name="b")), 5, name="head")
    report = layerscope.analyze(b.build())
    whole, found = report.training("adam"), train_adapters(report, 2)
    adapters = 2 * (7 + 11) + 2 * (11 + 13)
    assert found.gradient_bytes == 4 * adapters
    assert found.state_bytes == 8 * adapters
    assert found.weights_bytes == whole.weights_bytes + 4 * adapters
    # kept: inputs of A and of B beside each layer, results of both ReLUs, no input of the head
    assert found.kept_bytes == 4 * 3 * (7 + 2 + 11 + 2 + 13)


def test_the_command_takes_adapters(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["show", "gpt2", "--train", "adamw", "--lora", "8", "--total"]
    assert run(asked) == 0
    assert "Training adapters of rank 8 with adamw" in capsys.readouterr().out
    for more in (("--lora", "8"), ("--train", "adam", "--lora", "0")):
        assert run(["show", "gpt2", *more]) == 2
        assert "--lora" in capsys.readouterr().err
    assert run(["show", "gpt2", "--train", "adam", "--lora", "8", "--fit", "8GB"]) == 2
    assert "--lora cannot be combined with --fit" in capsys.readouterr().err


def test_frozen_arrays_get_no_gradient() -> None:
    report = layerscope.analyze("lenet5")
    graph = report.graph
    names = [storage_of(n, p, n.ties) for n in graph.nodes for p in report.costs[n.name].params]
    frozen = layerscope.analyze(replace(graph, frozen=frozenset(names[:1])))
    first = next(p for n in graph.nodes for p in report.costs[n.name].params)
    assert (
        frozen.training("sgd").gradient_bytes == report.training("sgd").gradient_bytes - first.bytes
    )
