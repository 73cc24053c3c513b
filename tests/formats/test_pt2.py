"""Exported programs read without PyTorch, and files that are not what they should be."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.errors import FormatError, UsageError
from layerscope.formats.torch import pt2

Program = dict[str, Any]


def tensor(*sizes: Any, dtype: int = 7, grad: bool = False) -> Program:
    """What a file says of a tensor."""
    told = [{"as_int": size} if isinstance(size, int) else size for size in sizes]
    return {"dtype": dtype, "sizes": told, "requires_grad": grad}


def call(target: str, out: str, *inputs: tuple[str, Program], stack: str = "") -> Program:
    named = [{"name": name, "arg": arg, "kind": 1} for name, arg in inputs]
    about = {"nn_module_stack": stack} if stack else {}
    outputs = [{"as_tensor": {"name": out}}]
    return {"target": target, "inputs": named, "outputs": outputs, "metadata": about}


def name(of: str) -> Program:
    return {"as_tensor": {"name": of}}


def array(of: str, kind: str = "parameter") -> Program:
    return {kind: {"arg": {"name": of.replace(".", "_")}, f"{kind}_name": of}}


def tiny() -> Program:
    """Conv2d(3, 4, 3), ReLU in place, flatten, Linear(144, 2)."""
    root = "L__self__,,mine.Net"
    conv = f"{root};L__self__conv,conv,torch.nn.modules.conv.Conv2d"
    relu = f"{root};L__self__relu,relu,torch.nn.modules.activation.ReLU"
    head = f"{root};L__self__head,head,torch.nn.modules.linear.Linear"
    nodes = [
        call(
            "torch.ops.aten.conv2d.default", "c",
            ("input", name("x")), ("weight", name("conv_weight")), ("bias", name("conv_bias")),
            stack=conv,
        ),
        call("torch.ops.aten.relu_.default", "r", ("self", name("c")), stack=relu),
        call(
            "torch.ops.aten.flatten.using_ints", "f",
            ("self", name("c")), ("start_dim", {"as_int": 1}), stack=root,
        ),
        call(
            "torch.ops.aten.linear.default", "y",
            ("input", name("f")), ("weight", name("head_weight")), ("bias", name("head_bias")),
            stack=head,
        ),
    ]  # fmt: skip
    values = {
        "conv_weight": tensor(4, 3, 3, 3, grad=True), "conv_bias": tensor(4, grad=True),
        "head_weight": tensor(2, 144, grad=True), "head_bias": tensor(2), "x": tensor(1, 3, 8, 8),
        "c": tensor(1, 4, 6, 6), "r": tensor(1, 4, 6, 6), "f": tensor(1, 144), "y": tensor(1, 2),
    }  # fmt: skip
    arrays = [array(each) for each in ("conv.weight", "conv.bias", "head.weight", "head.bias")]
    specs = [*arrays, {"user_input": {"arg": name("x")}}]
    graph = {"inputs": [], "outputs": [name("y")], "nodes": nodes, "tensor_values": values}
    signature = {"input_specs": specs, "output_specs": [{"user_output": {"arg": name("y")}}]}
    return {"graph_module": {"graph": graph, "signature": signature}, "schema_version": {}}


def graph_of(program: Program) -> Program:
    found: Program = program["graph_module"]["graph"]
    return found


def saved(folder: Path, program: Any, member: str = "net/models/model.json", **more: Any) -> str:
    path = folder / "net.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/archive_format", "pt2")
        text = program if isinstance(program, (str, bytes)) else json.dumps(program)
        archive.writestr(member, text, **more)
    return str(path)


def figures(report: Any) -> tuple[int, int]:
    return sum(r.params for r in report.layers), sum(r.ops.mac for r in report.layers)


def test_program_is_read_without_torch(tmp_path: Path) -> None:
    report = layerscope.analyze(saved(tmp_path, tiny()))
    assert figures(report) == (112 + 290, 4 * 36 * 27 + 288)
    told = [(r.name, r.op) for r in report.layers]
    assert told == [("conv", "conv"), ("relu", "relu"), ("flatten1", "flatten"), ("head", "linear")]
    graph = report.graph
    assert graph.kinds == {
        "": "mine.Net", "conv": "Conv2d", "relu": "ReLU", "head": "Linear"
    }  # fmt: skip
    assert graph.frozen == {"head.bias"}
    # what is written in place is read under its old name too
    assert graph.nodes[2].inputs == ("relu",)


def test_old_archive(tmp_path: Path) -> None:
    program = tiny()
    for node in graph_of(program)["nodes"]:
        for each in node["inputs"]:
            del each["kind"]
    path = saved(tmp_path, program, "serialized_exported_program.json")
    assert figures(layerscope.analyze(path)) == (402, 4176)


def test_arrays_of_one_storage_count_once(tmp_path: Path) -> None:
    program = tiny()
    graph = graph_of(program)
    again = call(
        "torch.ops.aten.linear.default", "z", ("input", name("f")), ("weight", name("tied_weight"))
    )
    graph["nodes"].append(again)
    graph["tensor_values"] |= {"tied_weight": tensor(2, 144, grad=True), "z": tensor(1, 2)}
    program["graph_module"]["signature"]["input_specs"].insert(0, array("tied.weight"))
    path = saved(tmp_path, program)
    assert figures(layerscope.analyze(path)) == (402 + 288, 4176 + 288)
    places = {"tied.weight": {"path_name": "weight_2"}, "head.weight": {"path_name": "weight_2"}}
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(
            "net/data/weights/model_weights_config.json", json.dumps({"config": places})
        )
    assert figures(layerscope.analyze(path)) == (402, 4176 + 288)


def test_unknown_operator_keeps_its_name_and_shape(tmp_path: Path) -> None:
    program = tiny()
    graph_of(program)["nodes"][2]["target"] = "torch.ops.mine.fold.default"
    report = layerscope.analyze(saved(tmp_path, program))
    assert [(r.op, r.output) for r in report.layers][2] == ("mine.fold", (1, 144))
    assert figures(report) == (402, 4176)


def test_words_that_make_another_shape_are_not_believed(tmp_path: Path) -> None:
    program = tiny()
    graph_of(program)["nodes"][1] = call(
        "torch.ops.aten.max_pool2d.default", "r", ("self", name("c")), ("k", {"as_ints": [2, 2]})
    )
    report = layerscope.analyze(saved(tmp_path, program))
    assert report.layers[1].op == "aten.max_pool2d"


def test_part_without_gradients_is_opened(tmp_path: Path) -> None:
    program = tiny()
    graph = graph_of(program)
    inner = {
        "inputs": [name("a"), name("b"), name("c")], "outputs": [name("d")],
        "nodes": [call("torch.ops.aten.linear.default", "d", ("input", name("a")),
                       ("weight", name("b")), ("bias", name("c")))],
        "tensor_values": {"d": tensor(1, 2)},
    }  # fmt: skip
    graph["nodes"][3] = call(
        "torch.ops.higher_order.wrap_with_set_grad_enabled", "y",
        ("enabled", {"as_bool": False}), ("g", {"as_graph": {"name": "g", "graph": inner}}),
        ("a", name("f")), ("b", name("head_weight")), ("c", name("head_bias")),
    )  # fmt: skip
    assert figures(layerscope.analyze(saved(tmp_path, program))) == (402, 4176)


def test_open_sizes_are_the_examples(tmp_path: Path) -> None:
    program = tiny()
    symbol = {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 1}}
    values = graph_of(program)["tensor_values"]
    for each in "xcrfy":
        values[each]["sizes"][0] = {"as_expr": symbol}
    report = layerscope.analyze(saved(tmp_path, program))
    assert figures(report) == (402, 4176)
    assert any("s0=1" in note for note in report.graph.notes)
    values["x"]["sizes"][0] = {"as_expr": {**symbol, "hint": None}}
    with pytest.raises(FormatError, match="x: size s0 is open"):
        layerscope.analyze(saved(tmp_path, program))


def test_other_sizes_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, tiny())
    assert layerscope.analyze(path, input=(1, 3, 8, 8)).batch == 1
    with pytest.raises(UsageError, match="exported for x of 1x3x8x8"):
        layerscope.analyze(path, input=(1, 3, 16, 16))
    with pytest.raises(UsageError, match="a batch of 4"):
        layerscope.analyze(path, batch=4)


# Files that are not what they should be


def test_truncated_archive(tmp_path: Path) -> None:
    path = Path(saved(tmp_path, tiny()))
    whole = path.read_bytes()
    for end in (0, 3, 40, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:end])
        with pytest.raises(FormatError):
            layerscope.analyze(str(path))


@pytest.mark.parametrize("claim", [1 << 29, (1 << 32) - 2])
def test_claims_of_size_are_not_believed(tmp_path: Path, claim: int) -> None:
    path = Path(saved(tmp_path, tiny()))
    raw = bytearray(path.read_bytes())
    at = raw.rindex(b"PK\x01\x02")  # the program's entry of the directory
    raw[at + 20 : at + 28] = claim.to_bytes(4, "little") * 2
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"within the .* bytes of data"):
        layerscope.analyze(str(path))


def test_compressed_program_is_not_unpacked(tmp_path: Path) -> None:
    path = saved(tmp_path, b" " * (1 << 24), compress_type=zipfile.ZIP_DEFLATED)
    with pytest.raises(FormatError, match="compressed"):
        layerscope.analyze(path)


def test_archive_without_a_program(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no program in it"):
        layerscope.analyze(saved(tmp_path, tiny(), "net/other.json"))
    with pytest.raises(FormatError, match="no program in it"):
        layerscope.analyze(saved(tmp_path, tiny(), "net/models/model.txt"))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"graph_module": 3}', "\x00\xff", "[" * 100_000, '{"a":' * 100_000],
)
def test_wrong_json(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"model\.json"):
        layerscope.analyze(saved(tmp_path, text))


def broken(change: str) -> Program:
    program = tiny()
    graph, signature = graph_of(program), program["graph_module"]["signature"]
    values, nodes = graph["tensor_values"], graph["nodes"]
    if change == "nothing makes it":
        nodes[2]["inputs"][0]["arg"] = name("elsewhere")
    elif change == "no sizes for this tensor":
        del values["f"]
    elif change == "unknown dtype":
        values["c"]["dtype"] = 99
    elif change == "a size of -1":
        values["c"]["sizes"][1] = {"as_int": -1}
    elif change == "a size of None":
        values["c"]["sizes"][1] = {"as_text": "4"}
    elif change == "takes no tensor":
        signature["input_specs"].pop()
    elif change == "without its name":
        del signature["input_specs"][0]["parameter"]["parameter_name"]
    elif change == "a parameter without a name":
        signature["input_specs"][0]["parameter"]["arg"] = 7
    return program


@pytest.mark.parametrize(
    "change",
    ["nothing makes it", "no sizes for this tensor", "unknown dtype", "a size of -1",
     "a size of None", "takes no tensor", "without its name", "a parameter without a name"],
)  # fmt: skip
def test_broken_program(tmp_path: Path, change: str) -> None:
    with pytest.raises(FormatError, match=change):
        layerscope.analyze(saved(tmp_path, broken(change)))


def test_what_pytorch_would_refuse_stays_unknown(tmp_path: Path) -> None:
    """A file may say anything: a weight of 4 channels for an input of 3 is no call of ours."""
    program = tiny()
    graph = graph_of(program)
    graph["nodes"][0]["target"] = "torch.ops.aten.conv_transpose2d.input"
    report = layerscope.analyze(saved(tmp_path, program))
    assert report.by_name["conv"].op == "aten.conv_transpose2d"
    assert report.by_name["conv"].status == "unknown"


@pytest.mark.parametrize(
    ("target", "inputs"),
    [
        ("unbind.int", [("dim", {"as_int": 0})]),
        ("split.Tensor", [("size", {"as_int": 1})]),
        ("chunk.default", [("chunks", {"as_int": 1 << 40})]),
        ("tensor_split.sections", [("parts", {"as_int": 1 << 40})]),
        ("split.Tensor", [("size", {"as_int": 0})]),
        ("view.default", [("size", {"as_ints": "what"})]),
        ("permute.default", [("dims", {"as_ints": [9, 9]})]),
        ("lstm.input", [("hx", {"as_tensors": []}), ("params", {"as_tensors": []})]),
        ("to.dtype", [("dtype", {"as_scalar_type": []})]),
    ],
)
def test_hostile_arguments_stay_unknown(tmp_path: Path, target: str, inputs: Any) -> None:
    program = tiny()
    graph = graph_of(program)
    graph["tensor_values"] |= {"big": tensor(1 << 40, 2), "x": tensor(1 << 40, 2), "y": tensor(3)}
    graph["nodes"] = [call(f"torch.ops.aten.{target}", "y", ("self", name("x")), *inputs)]
    report = layerscope.analyze(saved(tmp_path, program))
    assert report.layers[-1].op == f"aten.{target.partition('.')[0]}"


def test_recognised_by_what_it_begins_with(tmp_path: Path) -> None:
    path = Path(saved(tmp_path, tiny()))
    assert pt2.recognise(path.read_bytes())
    assert not pt2.recognise(b"PK\x03\x04" + b"\0" * 30)
    assert not pt2.recognise(b"")
    other = path.rename(tmp_path / "net.zip")
    assert figures(layerscope.analyze(str(other))) == (402, 4176)
