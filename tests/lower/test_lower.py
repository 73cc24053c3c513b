"""Networks as ONNX models: accepted, run, with our shapes, names and counts."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import onnx  # noqa: TID251
import onnxruntime
import pytest

import layerscope
from layerscope import Builder, Graph, Node, Tensor
from layerscope.cli import run as command
from layerscope.errors import CannotLower
from layerscope.graph import attributes as at
from layerscope.graph.edits import bind, with_cache
from layerscope.lower import onnx as lowering
from layerscope.lower.emitters import EMITTERS, REFUSED, attention
from layerscope.lower.onnx import lower, save
from layerscope.lower.weights import samples
from layerscope.ops import SPECS
from layerscope.zoo import NAMES, bert, build, gpt2, llama, swin, t5, vit
from tests.brute import BRUTE, roi
from tests.brute import CASES as ALL_CASES
from tests.brute.attention import angle
from tests.brute.case import Case, window
from tests.brute.engine import farthest
from tests.engines.lowered import accounted, graph_of, inferred, lowered, made, run, run_case
from tests.networks import waves

Captured = pytest.CaptureFixture[str]

CASES = [
    case
    for case in ALL_CASES
    if case.op not in REFUSED
    # of a lone power the graph tells no exponent: it is 2 here, 1.5 in the loop
    and (case.op, len(case.inputs)) != ("pow", 1)
    # onnx takes the 1 of a broadcast letter for its size; onnxruntime runs it
    and case.note != "i,i,i->i"
]

# Too many weights for 2 cores and a model in memory: told as zeros, shapes by onnx's inference.
GIANTS = (
    "gpt2-large", "gpt2-xl", "llama-7b", "llama-3-8b", "llama-3-405b", "vit_h_14",
)  # fmt: skip
QUICK = (
    "lenet5", "mtcnn-pnet", "mtcnn-onet", "nin", "googlenet-caffe", "squeezenet1_1",
    "mobilenet_v2", "shufflenet_v2_x0_5", "mobilenet_v1_025-slim", "resnet18", "efficientnet_b0",
)  # fmt: skip
# Every family of transformers in small, where the heads and layers are as many as matter.
SMALL = {
    "bert": bert.network("bert", bert.BertConfig(2, 2, 16, 32)),
    "gpt2": gpt2.network("gpt2", gpt2.Gpt2Config(2, 2, 16)),
    "llama": llama.network("llama", llama.LlamaConfig(2, 4, 2, 32, 48, 100)),
    "swin": swin.network("swin", swin.SwinConfig(12, 3, (2, 2, 2, 2))),
    "t5": t5.network("t5", t5.T5Config(2, 2, 8, 12, 24)),
    "vit": vit.network("vit", vit.VitConfig(16, 2, 2, 16, 32), 64, 64),
}


def test_every_rule_has_a_writer_or_a_reason() -> None:
    assert set(EMITTERS) | set(REFUSED) == set(SPECS)
    assert not set(EMITTERS) & set(REFUSED)
    assert set(EMITTERS) == {case.op for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_op_runs_to_the_numbers_of_the_loop(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "angle", lambda place, pair, pairs: angle(place, pair))
    expected = BRUTE[case.op](case.run())
    results = run_case(case)
    assert tuple(shape for shape, _ in results) == case.call.outputs
    for ours, (_, theirs) in zip(expected, results, strict=True):
        assert farthest(ours.values(), theirs) < 1e-5


@pytest.mark.parametrize("rounding", ["floor", "ceil", "caffe", "torch"])
@pytest.mark.parametrize("kind", ["max", "avg", "lp", "stochastic"])
def test_roundings_that_onnx_lacks_are_composed(kind: str, rounding: at.Rounding) -> None:
    """Placements wholly outside the input included, which a plain ceiling keeps."""
    for size, kernel, step, pad in ((5, 1, 3, 0), (3, 2, 2, 1), (6, 3, 2, 0), (7, 3, 4, 1)):
        told = at.Pool(window([kernel, 2], [step, 1], [(pad, pad), (0, 1)], 1, rounding))
        graph = graph_of(Case(f"{kind}_pool", told, ((1, 2, size, 4),)))
        (y,) = run(lowered(graph), graph).values()
        assert y.shape == accounted(graph)[1].tensors["y0"].shape
        assert np.isfinite(y).all()


def test_maxima_are_put_back_where_they_were() -> None:
    b = Builder("back")
    x = b.input("x", (2, 3, 4, 6))
    told = at.Pool(window([2, 2], 2), indices=True)
    y, places = b.add_node("max_pool", (x,), told, name="pool", outputs=2)
    (z,) = b.add_node("unpool", (y, places), at.Unpool(scale=(2, 2)), name="unpool")
    graph = b.build(b.max_pool(z, 2, name="again"))
    given = {"x": np.random.default_rng(1).random((2, 3, 4, 6), np.float32)}
    out = run(lowered(graph), graph, given)
    assert out["unpool"].shape == (2, 3, 4, 6)
    assert (out["again"] == out["pool:0"]).all()
    assert out["pool:1"].dtype == np.int64
    assert out["pool:1"].max() < 24


def check(graph: Graph) -> None:
    """The model is accepted, runs unoptimised and with finite numbers, all shapes being ours."""
    told = accounted(graph)
    model = lower(*told)
    onnx.checker.check_model(model)
    counted = sum(cost.param_count + cost.buffer_count for cost in told[2].values())
    assert sum(prod(tensor.dims) for tensor in model.graph.initializer) == counted
    tensors = told[1].tensors
    for name, y in run(model, graph, full=False).items():
        assert y.shape == tensors[name].shape, name
        assert y.dtype.kind != "f" or np.isfinite(y).all(), name


def check_inferred(graph: Graph) -> None:
    """With zeros for weights onnx infers our shapes, and the model is small."""
    told = accounted(graph)
    model = lower(*told, weights="zero")
    onnx.checker.check_model(model)
    assert not model.graph.initializer
    assert model.ByteSize() < 5_000_000
    found = inferred(model)
    for name in made(graph):
        if name not in graph.outputs:  # those are declared
            assert found[name] == told[1].tensors[name].shape, name
    for name, param in _stored(told).items():
        assert found[name] == param, name


def _stored(told: tuple[Any, ...]) -> dict[str, Any]:
    builder = lowering.emit(*told)
    return {name: param.shape for name, param in builder.params.items()}


@pytest.mark.parametrize("name", QUICK)
def test_networks_run(name: str) -> None:
    check(build(name))


@pytest.mark.parametrize("name", SMALL)
def test_transformers_run(name: str) -> None:
    check(SMALL[name])


@pytest.mark.parametrize("name", ["resnet50", "vit_b_16", "bert_base", "gpt2-xl", "llama-3-405b"])
def test_networks_are_inferred(name: str) -> None:
    check_inferred(build(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_whole_zoo(name: str) -> None:
    graph = build(name)
    if name not in GIANTS:
        check(graph)
    check_inferred(graph)


def test_a_network_of_one_axis_runs() -> None:
    check(waves())


def test_half_precision_runs() -> None:
    graph = bind(build("mobilenet_v2"), dtype="fp16")
    model = lowered(graph)
    assert {t.data_type for t in model.graph.initializer} == {onnx.TensorProto.FLOAT16}
    out = run(model, graph)
    assert {y.dtype for y in out.values()} == {np.dtype(np.float16)}
    check(graph)


def test_a_decoding_step_takes_its_cache_as_inputs() -> None:
    graph = with_cache(SMALL["llama"], 7)
    model = lowered(graph)
    layers = [
        f"model.layers.{n}.self_attn.attention/past_{which}" for n in (0, 1) for which in "kv"
    ]
    assert [each.name for each in model.graph.input] == ["input_ids", *layers]
    check(graph)


# -- names


def test_nodes_and_tensors_have_our_names() -> None:
    graph = SMALL["swin"]
    model = lowered(graph)
    named = {node.name: node for node in model.graph.node}
    assert len(named) == len(model.graph.node)
    ours = {node.name: node for node in graph.nodes}
    for name, node in ours.items():
        assert node.outputs[0] in named[name].output
    for name in set(named) - set(ours):  # helpers are named after their node
        assert name.rsplit("/", 1)[0] in {"constants", *ours}
    assert [x.name for x in model.graph.input] == [x.name for x in graph.inputs]
    assert [y.name for y in model.graph.output] == list(graph.outputs)


def test_a_helper_gives_way_to_a_node_of_its_name() -> None:
    b = Builder("names", separator="/")
    x = b.input("x", (2, 3, 4))
    y = b.linear(x, 5, name="fc")
    y = b.relu(y, name="fc/matmul")
    graph = b.build(b.permute(y, (0, 2, 1), name="fc/transpose"))
    check(graph)


def test_tied_arrays_are_stored_once_under_their_name() -> None:
    model = lowered(SMALL["t5"])
    names = [tensor.name for tensor in model.graph.initializer]
    assert names.count("shared.weight") == 1
    assert not any(name.startswith(("lm_head", "decoder.embed_tokens")) for name in names)
    readers = [node.name for node in model.graph.node if "shared.weight" in node.input]
    assert readers == ["encoder.embed_tokens", "decoder.embed_tokens", "lm_head/transpose"]


def test_arrays_are_named_after_their_node_and_have_our_shapes() -> None:
    model = lowered(build("resnet18"))
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    assert shapes["layer1.0.conv1.weight"] == (64, 64, 3, 3)
    assert shapes["bn1.running_var"] == (64,)
    assert shapes["fc.bias"] == (1000,)
    report = layerscope.analyze("resnet18")
    assert sum(map(prod, shapes.values())) == report.totals.params + report.totals.buffers


def test_weights_are_those_of_the_seed() -> None:
    told = accounted(build("lenet5"))
    first, again, other = (lower(*told, seed=seed) for seed in (0, 0, 1))
    assert first == again != other
    with pytest.raises(layerscope.LayerscopeError, match="unknown weights 'zeros'; did you mean"):
        lower(*told, weights="zeros")  # type: ignore[arg-type]


# -- what is large


def test_many_weights_go_to_a_file_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lowering, "INLINE_BYTES", 100_000)
    graph = build("lenet5")
    told = accounted(graph)
    with pytest.raises(CannotLower, match="save it"):
        lower(*told)
    path = tmp_path / "lenet5.onnx"
    save(str(path), *told)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["lenet5.onnx", "lenet5.onnx.data"]
    assert path.stat().st_size < 10_000
    onnx.checker.check_model(str(path))
    monkeypatch.undo()
    inside = lower(*told)
    apart = onnx.load(path)
    for one, other in zip(inside.graph.initializer, apart.graph.initializer, strict=True):
        assert (onnx.numpy_helper.to_array(one) == onnx.numpy_helper.to_array(other)).all()
    given = samples(inside, graph)
    (mine,) = _session(inside.SerializeToString()).run(None, given)
    (theirs,) = _session(str(path)).run(None, given)
    assert (mine == theirs).all()


def _session(model: bytes | str) -> Any:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def test_more_than_can_be_stored_is_refused_unless_it_is_zero(tmp_path: Path) -> None:
    told = accounted(build("llama-3-405b"))
    path = str(tmp_path / "llama.onnx")
    with pytest.raises(CannotLower, match=r"1,623\.4 GB, at most 40\.0 GB can be written; zero"):
        save(path, *told)
    assert not list(tmp_path.iterdir())
    save(path, *told, weights="zero")
    assert Path(path).stat().st_size < 2_000_000


def test_zero_weights_run() -> None:
    graph = build("resnet18")
    out = run(lowered(graph, "zero"), graph)
    assert all(y.shape == accounted(graph)[1].tensors[name].shape for name, y in out.items())
    assert not out["fc"].any()


# -- what cannot be lowered


def test_what_has_no_form_is_refused_by_name() -> None:
    b = Builder("odd")
    graph = b.build(*b.add_node("whirl", (b.input("x", (1, 3, 4, 4)),), name="spin"))
    with pytest.raises(CannotLower, match=r"^odd: spin \(whirl\): no rule for op whirl$"):
        lowered(graph)
    case = next(case for case in roi.CASES if case.op == "psroi_pool")
    with pytest.raises(
        CannotLower, match=r"node \(psroi_pool\): ONNX has no position-sensitive RoI pooling"
    ):
        lowered(graph_of(case))
    torchs = Case("einsum", at.Einsum("...i->i"), ((5, 2),))
    with pytest.raises(CannotLower, match=r"node \(einsum\): '...i->i' sums axes"):
        lowered(graph_of(torchs))


@pytest.mark.parametrize("dtype", ["fp64", "bf16", "int8", "int4"])
def test_number_types_that_engines_lack_are_refused(dtype: str) -> None:
    with pytest.raises(CannotLower, match=f"of dtype {dtype}; expected fp32 or fp16"):
        lowered(bind(build("lenet5"), dtype=dtype))


def test_arrays_that_do_not_fit_are_refused() -> None:
    weight = layerscope.Param("weight", (4, 2))
    node = Node("fc", "linear", ("x",), ("y",), at.Linear(4, bias=False), (weight,))
    graph = Graph("misfit", (Tensor("x", (1, 3)),), (node,), ("y",))
    with pytest.raises(CannotLower, match=r"fc \(linear\): its weight is \(4, 2\), expected"):
        lowered(graph)


# -- the command


def test_the_command(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "resnet18.onnx"
    assert command(["export", "resnet18", "--to", "onnx", "-o", str(path)]) == 0
    assert capsys.readouterr() == ("", "")
    model = onnx.load(path)
    assert (model.producer_name, model.opset_import[0].version) == ("layerscope", 21)
    session = _session(str(path))
    (y,) = session.run(None, samples(model, build("resnet18")))
    assert y.shape == (1, 1000)
    by_suffix = tmp_path / "again.onnx"
    args = ["export", "resnet18", "-o", str(by_suffix), "--zero-weights", "--batch", "2"]
    assert command(args) == 0
    small = onnx.load(by_suffix)
    assert small.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
    assert by_suffix.stat().st_size < 100_000


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["--to", "onnx"], 2, "--to onnx is a binary format: give a file with -o FILE"),
        (["--to", "onnx", "-o", "-"], 2, "-o FILE"),
        (["--to", "onnx", "-o", "/nowhere/net.onnx"], 2, "cannot write /nowhere/net.onnx"),
        (["--to", "onnx", "-o", "/"], 2, "it is a folder"),
        (["--to", "onnx", "-o", "x.onnx", "--dtype", "bf16"], 3, "of dtype bf16"),
        (
            ["--to", "onnx", "-o", "x.onnx", "--zero-weights", "--seed", "1"],
            2,
            "cannot be combined",
        ),
        (["--to", "dot", "--zero-weights"], 2, "--zero-weights needs --to onnx"),
        (["--to", "csv", "--seed", "1"], 2, "--seed needs --to onnx"),
    ],
)
def test_wrong_arguments(args: list[str], code: int, says: str, capsys: Captured) -> None:
    assert command(["export", "lenet5", *args]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err
