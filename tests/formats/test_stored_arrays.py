"""Files of stored arrays: what is read, what is refused by name, what hostile files may take."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope import limits
from layerscope.errors import FormatError, GraphError, LayerscopeError
from layerscope.formats import DEFAULTS
from layerscope.formats.torch import pt2
from layerscope.formats.torch.checkpoints import safetensors as reader
from layerscope.formats.torch.checkpoints import torch_save
from layerscope.formats.torch.checkpoints.pickled_tensors import TensorUnpickler
from tests.bounded import refused, run_bounded
from tests.formats.stored_files import (
    archive,
    entries,
    imported,
    integer,
    legacy,
    pair,
    raw_safetensors,
    safetensors,
    saved,
    state_dict,
    storage,
    tensor,
    text,
)
from tests.formats.test_pt2 import call, tiny
from tests.formats.test_pt2 import name as tensor_name
from tests.formats.test_pt2 import saved as exported
from tests.formats.test_pt2 import tensor as described

ARRAYS = {"net.0.weight": ("F16", (4, 3)), "net.0.bias": ("F16", (4,)), "scale": ("F32", ())}
SHAPES = {"net.0.weight": (4, 3), "net.0.bias": (4,), "head.weight": (2, 4)}


def params(path: object) -> int:
    return layerscope.analyze(str(path)).total_params


# -- safetensors


def changed(tmp_path: Path, **entry: Any) -> str:
    """A file with one array, of which these fields are changed; None leaves a field out."""
    header = entries({"a.weight": ("F32", (2, 3))})
    header["a.weight"] |= entry
    header["a.weight"] = {key: v for key, v in header["a.weight"].items() if v is not None}
    return raw_safetensors(tmp_path / "net.safetensors", json.dumps(header), 24)


@pytest.mark.parametrize(
    "entry, message",
    [
        ({"shape": [-2, 3]}, "a size of -2"),
        ({"shape": [True, 6]}, "a size of True"),
        ({"shape": [2.0, 3]}, r"a size of 2\.0"),
        ({"shape": ["2", 3]}, "a size of '2'"),
        ({"shape": [None]}, "a size of None"),
        ({"shape": [2**63, 0]}, "a size of 9,223,372,036,854,775,808"),
        ({"shape": [10**350]}, "a size of a number of 1,163 bits"),
        ({"shape": [10**500]}, "NUMBER_DIGITS"),
        ({"shape": [2**62, 4]}, "ARRAY_ELEMENTS"),
        ({"shape": [1] * 65}, "ARRAY_RANK"),
        ({"shape": 6}, "expected a list as shape"),
        ({"shape": None}, "no shape"),
        ({"dtype": None}, "no dtype"),
        ({"data_offsets": None}, "no data_offsets"),
        ({"dtype": 7}, "dtype is a number"),
        ({"dtype": "F31"}, "unknown dtype 'F31'"),
        ({"dtype": "F64"}, "expected the 48 bytes of 2x3 F64"),
        ({"data_offsets": [0, 20]}, "data_offsets 0 to 20, expected the 24 bytes"),
        ({"data_offsets": [24, 0]}, "data_offsets 24 to 0"),
        ({"data_offsets": [4, 28]}, "within the 24 bytes of data"),
        ({"data_offsets": [-24, 0]}, "a data_offsets of -24"),
        ({"data_offsets": [0, 24, 48]}, "two numbers as data_offsets"),
    ],
)
def test_an_array_that_cannot_be_is_refused(
    tmp_path: Path, entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(FormatError, match=message) as error:
        params(changed(tmp_path, **entry))
    assert "net.safetensors" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "header, message",
    [
        ('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
         '"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', "duplicate key 'a'"),
        ('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
         '"\\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', "duplicate key 'a'"),
        ('{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}', "key 'dtype'"),
        ('{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
         '"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}', "from 1 on belong to a too"),
        ('{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
         '"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', "from 1 on belong to a too"),
        (b'{"a\xff": {}}', "no JSON"),
        ('{"a":' * 50_000, "nested too deep"),
        ('{"a":{"x":' + "[" * 50_000 + "]" * 50_000 + "}}", "nested too deep"),
        ("[1, 2]", "is an array"),
        ('{"a": 3}', "without dtype or shape"),
    ],
)  # fmt: skip
def test_a_header_that_cannot_be_is_refused(
    tmp_path: Path, header: str | bytes, message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        params(raw_safetensors(tmp_path / "net.safetensors", header, 8))


def test_a_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = Path(safetensors(tmp_path / "net.safetensors", ARRAYS))
    data = path.read_bytes()
    assert params(path) == 17
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(LayerscopeError, match=r"net\.safetensors"):
            params(path)


def test_modules_may_have_any_name(tmp_path: Path) -> None:
    named = {f"{name}.weight": ("F32", (2,)) for name in ("input", "parameters", "a", "a.b")}
    path = safetensors(tmp_path / "net.safetensors", {**named, "weight": ("F32", (3,))})
    assert params(path) == 11


def test_every_dtype_has_its_bytes(tmp_path: Path) -> None:
    for dtype, name in reader.DTYPES.items():
        size = layerscope.graph.types.storage_bytes(6, name)
        header = {"a": {"dtype": dtype, "shape": [6], "data_offsets": [0, size]}}
        path = raw_safetensors(tmp_path / "net.safetensors", json.dumps(header), size)
        assert layerscope.analyze(path).totals.param_bytes == size


# -- an index opens files of its own folder alone


@pytest.mark.parametrize(
    "name", ["../a.safetensors", "sub/../../a.safetensors", "{}/a.safetensors", "", "a\0b", "..\\a"]
)
def test_an_index_names_files_of_its_folder(tmp_path: Path, name: str) -> None:
    safetensors(tmp_path / "a.safetensors", ARRAYS)
    folder = tmp_path / "net"
    (folder / "sub").mkdir(parents=True)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": name.format(tmp_path)}}))
    with pytest.raises(FormatError, match="expected one in its own folder"):
        params(index)


def test_links_out_of_the_folder_of_an_index(tmp_path: Path) -> None:
    blobs, folder = tmp_path / "blobs", tmp_path / "snapshots"
    blobs.mkdir()
    folder.mkdir()
    safetensors(blobs / "a.safetensors", ARRAYS)
    os.symlink(blobs / "a.safetensors", folder / "a.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors"}}))
    with pytest.raises(FormatError, match="links out of its folder"):
        params(index)
    index.rename(blobs / "index")  # a cache of downloads links to all of its files
    os.symlink(blobs / "index", index)
    assert params(index) == 17


@pytest.mark.parametrize("location", ["../x", "{}/x", "sub/../../x"])
def test_external_data_of_onnx_is_not_linked_out_of_a_folder(tmp_path: Path, location: str) -> None:
    onnx = pytest.importorskip("onnx")
    from layerscope.engines.workload import _with_unique_names

    array = onnx.TensorProto(name="w", data_type=1, dims=[4], data_location=1)
    array.external_data.add(key="location", value=location.format(tmp_path))
    node = onnx.helper.make_node("Relu", ["x"], ["y"])  # without a name, so that it is renamed
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [1]) for name in "xy")
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y], [array]))
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "net.onnx").write_bytes(model.SerializeToString())
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FormatError, match="expected one in its own folder"):
        _with_unique_names(str(folder / "net.onnx"), str(folder))
    assert sorted(tmp_path.rglob("*")) == before


def test_an_index_of_odd_values(tmp_path: Path) -> None:
    safetensors(tmp_path / "a.safetensors", ARRAYS)
    safetensors(tmp_path / "b.safetensors", ARRAYS)
    index = tmp_path / "model.safetensors.index.json"
    odd: list[Any] = [{"x": 3}, [], "a.safetensors", {"x": ["a.safetensors"]}]
    for told in odd:
        index.write_text(json.dumps({"weight_map": told}))
        with pytest.raises(FormatError, match="an index with a weight_map"):
            params(index)
    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}))
    with pytest.raises(FormatError, match=r"is both in a\.safetensors and in b\.safetensors"):
        params(index)
    index.write_text(json.dumps({"weight_map": {"x": "missing.safetensors"}}))
    with pytest.raises(FormatError, match=r"missing\.safetensors: No such file"):
        params(index)
    os.mkfifo(tmp_path / "fifo.safetensors")
    index.write_text(json.dumps({"weight_map": {"x": "fifo.safetensors"}}))
    with pytest.raises(FormatError, match="no regular file"):
        params(index)


# -- pickles


def test_state_dicts_of_both_forms(tmp_path: Path) -> None:
    for make in (saved, legacy):
        report = layerscope.analyze(make(tmp_path / "net.pt", SHAPES))
        assert report.total_params == 24
        assert report.totals.param_bytes == 96
        assert [layer.name for layer in report.layers] == ["net.0", "head"]


def test_pickles_of_a_large_file_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(legacy(tmp_path / "net.pt", {f"layers.{n}.weight": (2,) for n in range(30_000)}))
    assert path.stat().st_size > 5 << 20
    loads: list[object] = []
    load = TensorUnpickler.persistent_load

    def counted(self: TensorUnpickler, pid: object) -> object:
        loads.append(pid)
        return load(self, pid)

    monkeypatch.setattr(TensorUnpickler, "persistent_load", counted)
    assert len(torch_save.torch_save_arrays(str(path))) == len(loads) == 30_000


def test_legacy_files_by_their_bytes(tmp_path: Path) -> None:
    """Without a suffix; with many arrays; cut anywhere."""
    path = Path(legacy(tmp_path / "net", {f"layers.{n}.weight": (2,) for n in range(9000)}))
    assert path.stat().st_size > 1 << 20
    assert params(path) == 18_000
    path = Path(legacy(tmp_path / "net.pth", SHAPES))
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(LayerscopeError):
            params(path)


@pytest.mark.parametrize(
    "part, opcodes, message",
    [
        ("size", pair(integer(-2), integer(-3)), "a size of -2"),
        ("size", pair(b"\x88", integer(6)), "a size of True"),
        ("size", pair(b"G" + struct.pack(">d", 2.0)), r"a size of 2\.0"),
        ("size", pair(text("2"), integer(3)), "a size of '2'"),
        ("size", pair(integer(2**63), integer(0)), "a size of 9,223"),
        ("size", pair(*[integer(1)] * 65), "ARRAY_RANK"),
        ("size", text("2x3"), "a tuple as size"),
        ("size", pair(integer(2), integer(4)), "element 6 is beyond its 6"),
        ("size", pair(integer(6)), "1 sizes and 2 strides"),
        ("stride", pair(integer(3), integer(-1)), "a stride of -1"),
        ("offset", integer(2), "element 7 is beyond its 6"),
        ("offset", b"N", "a storage offset of None"),
        ("storage", storage("0", 2**64), "a count of 18,446"),
        ("storage", storage("0", 7), "storage 0 has 24 bytes, expected 28"),
        ("storage", storage("1", 6), "storage 1 is not in it"),
        ("storage", storage("0", 6, "NoStorage"), r"torch\.NoStorage, which is code"),
        ("storage", b"N", "a tensor without storage"),
        ("storage", text("0") + b"Q", "a storage without class"),
    ],
)
def test_a_tensor_that_cannot_be_is_refused(
    tmp_path: Path, part: str, opcodes: bytes, message: str
) -> None:
    program = state_dict({"a.weight": tensor("0", (2, 3), False, **{part: opcodes})})
    with pytest.raises(FormatError, match=message) as error:
        params(archive(tmp_path / "net.pt", program, {"0": 24}))
    assert str(error.value).startswith(str(tmp_path))


def test_what_stands_twice_counts_once(tmp_path: Path) -> None:
    one = tensor("0", (2, 3)) + b"q\x01"
    items = {"a": one, "tied": b"h\x01", "list": b"](h\x01" + tensor("1", (5,)) + b"e"}
    path = archive(tmp_path / "net.pt", state_dict(items), {"0": 24, "1": 20})
    assert params(path) == 11


def test_plain_values_beside_arrays_are_gone_past(tmp_path: Path) -> None:
    items = {
        "model": state_dict({"w": tensor("0", (2, 3))}),
        "args": imported("argparse", "Namespace") + b")\x81}(" + text("lr") + integer(1) + b"ub",
        "path": imported("pathlib", "PosixPath") + pair(text("/")) + b"R",
        "seen": imported("__builtin__", "set") + pair(b"](" + integer(1) + b"e") + b"R",
        "odd": b"}" + pair(integer(1), integer(2)) + text("x") + b"s",
    }  # fmt: skip
    assert params(archive(tmp_path / "net.pt", state_dict(items), {"0": 24})) == 6


def test_a_script_is_read_as_parameters(tmp_path: Path) -> None:
    inner = imported("__torch__.torch.nn", "Linear") + b")\x81"
    state = state_dict({"weight": tensor("0", (2, 3)), "training": b"\x88"})
    root = imported("__torch__", "Net") + b")\x81}(" + text("fc") + inner + state + b"bub"
    path = Path(archive(tmp_path / "net.pt", root, {"0": 24}))
    report = layerscope.analyze(str(path))
    assert report.total_params == 6
    assert report.layers[0].name == "fc"
    assert "TorchScript" in report.graph.notes[0]


@pytest.mark.parametrize(
    "data, message",
    [
        (pickle.dumps({"a": 1}), "a pickle of other values"),
        (b"", "an empty file"),
        (b"storages\0".ljust(257, b"\0") + b"ustar", "a tar archive, as PyTorch 0.1 wrote"),
        (b"PK\x03\x04nothing", "not a zip file"),
        (bytes(100), "neither zip archive nor pickle"),
    ],
)
def test_what_is_no_file_of_torch(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "net.pt"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message) as error:
        params(path)
    assert "torch.save" in str(error.value)


@pytest.mark.parametrize("member, message", [
    ("model.json", "a TorchScript archive of PyTorch before 1.4"),
    ("models/model.json", r"the suffix \.pt2"),
    (".data/extern_modules", r"a torch\.package archive"),
    ("other", r"a zip archive without data\.pkl"),
])  # fmt: skip
def test_archives_of_other_kinds(tmp_path: Path, member: str, message: str) -> None:
    path = tmp_path / "net.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"net/{member}", b"x")
    with pytest.raises(FormatError, match=message):
        torch_save.read(str(path), DEFAULTS)


# -- hostile files, within 1 GB and 10 s


def doubled(times: int) -> bytes:
    """A tuple of two equal tuples of two equal tuples …"""
    return b")q\x000" + b"h\x00h\x00\x86q\x000" * times + b"h\x00"


def pickles() -> dict[str, tuple[bytes, str]]:
    """Opcodes that made a reader take all memory or time, and what is said of them."""
    value = b"N" + b"0"
    return {
        "memo of 4 GB": (b"Nr\xff\xff\xff\xef", "no arrays"),
        "doubled tuples": (doubled(60), "no arrays"),
        "doubled tuples as a key": (b"}" + doubled(60) + b"Ns", "no arrays"),
        "doubled tuples as a size": (tensor("0", (2,), size=doubled(60)), "a size of"),
        "a long number": (b"\x8b" + struct.pack("<i", 500_000) + b"\x7f" * 500_000, "DIGITS"),
        "a long decimal": (b"I" + b"9" * 60_000 + b"\n", "NUMBER_DIGITS"),
        "a claim of bytes": (b"B\xff\xff\xff\xff", "bytes expected"),
        "a claim of text": (b"\x8d" + b"\xff" * 8, "bytes expected"),
        "deep lists": (b"]" * 450_000 + b"a" * 449_999, "NAME_DEPTH"),
        "many values": (value * 450_000 + b"N", "no arrays"),
        "many dicts": (b"(" + b"}" * 900_000 + b"t", "no arrays"),
        "one list for many dicts": (
            b"](" + b"N" * 100_000 + b"eq\x00"
            + imported("collections", "OrderedDict") + b"q\x01(h\x00tq\x020"
            + b"h\x01h\x02R0" * 100_000,
            "a dict item that is no pair",
        ),
        "arguments for many calls": (
            imported("builtins", "set") + b"q\x01(" + b"N" * 100_000 + b"tq\x020"
            + b"h\x01h\x02R0" * 140_000 + b"N",
            "no arrays",
        ),
        "numbers that hash alike": (
            b"}(" + b"".join([integer(n * (2**61 - 1)) + b"N" for n in range(1, 70_000)]) + b"u",
            "expected an int64",
        ),
        "a long name for many arrays": (
            b"}(" + text("x" * 300_000)
            + state_dict({str(n): tensor("0", (1,), size=integer(0)) for n in range(2)}) + b"u",
            "a tuple as size",
        ),
        "one array under a long name": (
            b"}(" + text("x" * 300_000) + state_dict({"w": tensor("0", (1,))}) + b"u",
            "NAME_CHARACTERS",
        ),
        "code": (imported("os", "system") + pair(text("true")) + b"R", r"os.system"),
        "an extension": (b"\x82\x01", "opcode 0x82"),
        "nothing to take": (b"R", "pops from an empty stack"),
    }  # fmt: skip


PICKLES = pickles()


@pytest.mark.parametrize("name", PICKLES)
def test_hostile_pickles(tmp_path: Path, name: str) -> None:
    program, message = PICKLES[name]
    assert len(program) <= 1_000_000
    path = tmp_path / "net.pt"
    archive(path, program, {"0": 8})
    assert message in refused(path)


def test_hostile_zip_archives(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    for size, message in ((100_000_000, "UNPACKED_PICKLE"), (4_000_000, "no arrays")):
        program = b"N" + b"0N" * (size // 2)
        archive(path, program, {}, compress_type=zipfile.ZIP_DEFLATED)
        assert path.stat().st_size < 1_000_000
        assert message in refused(path)
    archive(path, bytes(2 << 20), {}, compress_type=zipfile.ZIP_LZMA)
    assert "compressed" in refused(path)


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    path = Path(saved(tmp_path / "net.pt", SHAPES))
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    first = data.index(b"PK\x01\x02")
    data[at + 42 : at + 46] = data[first + 42 : first + 46]  # the last begins where the first does
    path.write_bytes(data)
    with pytest.raises(FormatError, match="belong to"):
        params(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"\x80\x02N.")
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("archive/data.pkl", b"\x80\x02N.")
    with pytest.raises(FormatError, match="two members are named"):
        params(path)


def test_a_claim_of_zip64_is_not_believed(tmp_path: Path) -> None:
    path = Path(saved(tmp_path / "net.pt", SHAPES))
    data = bytearray(path.read_bytes())
    for at in (data.rindex(b"PK\x01\x02"), data.index(b"PK\x01\x02")):
        broken = bytearray(data)
        broken[at + 20 : at + 28] = b"\xfe\xff\xff\xff" * 2
        path.write_bytes(broken)
        with pytest.raises(FormatError, match="within the"):
            params(path)
    end = data.rindex(b"PK\x05\x06")
    data[end + 12 : end + 20] = b"\xfe\xff\xff\xff" * 2
    path.write_bytes(data)
    with pytest.raises(FormatError, match="expected"):
        params(path)


def test_hostile_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    safetensors(path, {"." * 100_000: ("U8", (1,))})
    assert "NAME_CHARACTERS" in refused(path)
    safetensors(path, {"a" * 100_000: ("U8", (1,))})
    assert "NAME_CHARACTERS" in refused(path)
    safetensors(path, {".".join("a" * 450): ("U8", (1,))})
    assert "NAME_DEPTH" in refused(path)
    deep = {f"{n}{'.a' * 100}.{n}": ("U8", (1,)) for n in range(2500)}
    safetensors(path, deep)
    assert path.stat().st_size < 1_100_000
    assert "SCOPES" in refused(path)
    flat = {f"{n:x}": ("U8", (1,)) for n in range(17_000)}
    safetensors(path, flat)
    code, output, _ = run_bounded("show", str(path))
    assert code == 0
    assert "17,000" in output
    safetensors(path, {f"a.{n:x}.{n:x}.b.w": ("U8", (1,)) for n in range(14_000)})
    assert run_bounded("show", str(path))[0] == 0


def test_views_that_are_made_anew_by_every_write(tmp_path: Path) -> None:
    """A chain of views, and writes after each of which its end is read."""
    shapes = {"x": described(2, 3), "b": described(2, 3)}
    nodes = [call("torch.ops.aten.relu.default", "b", ("self", tensor_name("x")))]
    last = "b"
    for n in range(300):
        axes = ("dim0", {"as_int": 0}), ("dim1", {"as_int": 1})
        source = ("self", tensor_name(last))
        last = f"v{n}"
        nodes.append(call("torch.ops.aten.transpose.int", last, source, *axes))
        shapes[last] = described(3, 2) if n % 2 == 0 else described(2, 3)
    for n in range(1500):
        nodes.append(call("torch.ops.aten.relu_.default", f"r{n}", ("self", tensor_name("b"))))
        nodes.append(call("torch.ops.aten.neg.default", f"n{n}", ("self", tensor_name(last))))
        shapes |= {f"r{n}": described(2, 3), f"n{n}": described(2, 3)}
    program = tiny()
    graph = {"inputs": [], "outputs": [tensor_name("n0")], "nodes": nodes, "tensor_values": shapes}
    signature = {"input_specs": [{"user_input": {"arg": tensor_name("x")}}], "output_specs": []}
    program["graph_module"] = {"graph": graph, "signature": signature}
    path = exported(tmp_path, program)
    assert Path(path).stat().st_size < 1_200_000
    assert "CALL_NODES" in refused(path)


@pytest.mark.parametrize(
    "sizes, message",
    [
        ((2**62, 4), "ARRAY_ELEMENTS"),
        ((1,) * 65, "ARRAY_RANK"),
        ((2**63, 1), "a size of 9,223"),
        ((True, 3), "a size of True"),
        ((-1, 3), "a size of -1"),
    ],
)
def test_sizes_of_exported_programs(tmp_path: Path, sizes: tuple[int, ...], message: str) -> None:
    program = tiny()
    program["graph_module"]["graph"]["tensor_values"]["conv_weight"] = described(*sizes)
    with pytest.raises(FormatError, match=message):
        params(exported(tmp_path, program))


def test_names_of_exported_programs(tmp_path: Path) -> None:
    for name, message in (("a." * 450 + "w", "NAME_DEPTH"), ("a" * 2000, "NAME_CHARACTERS")):
        program = tiny()
        spec = program["graph_module"]["signature"]["input_specs"][0]
        spec["parameter"]["parameter_name"] = name
        with pytest.raises(FormatError, match=message):
            params(exported(tmp_path, program))


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"sizes": [{"as_int": 4}, {"as_int": 4}, {"as_int": 3}, {"as_int": 3}]},
            "is the file cut",
        ),
        ({"storage_offset": {"as_int": 1}}, "436 bytes in weight_0, which has 432"),
        ({"storage_offset": {"as_int": -1}}, "a size of -1"),
        ({"dtype": 8}, "864 bytes in weight_0"),
        ({"dtype": "float"}, "Expected `int`"),
        ({}, ""),
    ],
)
def test_payloads_of_exported_programs(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    meta = {**described(4, 3, 3, 3), "storage_offset": {"as_int": 0}, **change}
    config = {"config": {"conv.weight": {"path_name": "weight_0", "tensor_meta": meta}}}
    path = exported(tmp_path, tiny())
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("net/data/weights/model_weights_config.json", json.dumps(config))
        file.writestr("net/data/weights/weight_0", bytes(432))
    if not message:
        assert params(path) == 402
        return
    with pytest.raises(FormatError, match=message):
        params(path)


def test_a_payload_that_stands_twice(tmp_path: Path) -> None:
    path = exported(tmp_path, tiny())
    entry = '"conv.weight": {"path_name": "weight_0"}'
    with zipfile.ZipFile(path, "a") as file:
        text = '{"config": {' + f"{entry}, {entry}" + "}}"
        file.writestr("net/data/weights/model_weights_config.json", text)
    with pytest.raises(FormatError, match=r"duplicate key 'conv\.weight'"):
        params(path)


# -- duplicate keys

TARGET = '"target": "torch.ops.aten.relu_.default"'
DUPLICATES = {  # old text of a program -> new text with a duplicate key
    "a field of a call": (TARGET, f"{TARGET}, {TARGET}"),
    "a space before the colon": (TARGET, f'"target" : "torch.ops.aten.sigmoid.default", {TARGET}'),
    "an escaped letter": (TARGET, f'"t\\u0061rget": "torch.ops.aten.sigmoid.default", {TARGET}'),
    "a tensor": ('"x": {"dtype"', '"x": {"dtype": 7, "sizes": [{"as_int": 9}]}, "x": {"dtype"'),
    "a kind of argument": ('{"as_int": 1}', '{"as_int": 1, "as_int": 2}'),
    "what is not read": ('"schema_version": {}', '"schema_version": {"major": 8, "major": 9}'),
    "the program": ('"schema_version": {}', '"schema_version": {}, "schema_version": {}'),
    "beside an escaped quote": (TARGET, f'"note": "\\u0022:", {TARGET}, {TARGET}'),
}


@pytest.mark.parametrize("old, new", DUPLICATES.values(), ids=DUPLICATES)
def test_a_program_with_a_duplicate_key_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = json.dumps(tiny())
    assert text.count(old) >= 1
    with pytest.raises(FormatError, match=r"net\.pt2: net/models/model\.json: duplicate key"):
        params(exported(tmp_path, text.replace(old, new, 1)))


def test_texts_that_look_like_keys_are_no_duplicates(tmp_path: Path) -> None:
    text = json.dumps(tiny())
    notes = (
        r'"note": "\"target\": 1, \"target\": 2", "escaped": "\u0022:\u0022:", "n":{"note":""}, '
    )
    assert params(exported(tmp_path, text.replace(TARGET, notes + TARGET))) == 402


@pytest.mark.parametrize(
    "text",
    ['{"weight_map": {"x": "a.safetensors", "x": "b.safetensors"}}',
     '{"weight_map": {"x": "b.safetensors"}, "weight_map": {"x": "a.safetensors"}}'],
)  # fmt: skip
def test_an_index_with_a_duplicate_key_is_refused(tmp_path: Path, text: str) -> None:
    for name in ("a", "b"):
        safetensors(tmp_path / f"{name}.safetensors", {"x": ("F32", (2,))})
    index = tmp_path / "net.safetensors.index.json"
    index.write_text(text)
    with pytest.raises(FormatError, match=r"duplicate key '(x|weight_map)' in a JSON object"):
        params(index)


def test_scopes_of_any_graph_are_bounded() -> None:
    from layerscope import Graph, Node, Tensor

    def graph(depth: int) -> Graph:
        nodes = [
            Node(f"n{n}", "relu", ("x",), (f"n{n}",), scope=(str(n), *"a" * (depth - 1)))
            for n in range(2000)
        ]
        return Graph("g", (Tensor("x", (1,)),), tuple(nodes), ())

    graph(4)
    with pytest.raises(GraphError, match="SCOPES"):
        graph(5)
    with pytest.raises(FormatError, match="NAME_DEPTH"):
        graph(limits.NAME_DEPTH.most + 1)


# -- any bytes


def mutated(data: bytes, seed: int) -> bytes:
    """The bytes cut, changed, or spliced with themselves."""
    source = random.Random(seed)
    broken = bytearray(data)
    kind = source.randrange(4)
    if kind == 0:
        del broken[source.randrange(len(broken)) :]
    elif kind == 1:
        for _ in range(source.randrange(1, 5)):
            broken[source.randrange(len(broken))] = source.randrange(256)
    elif kind == 2:
        first, second = source.randrange(len(data)), source.randrange(len(data))
        size = source.randrange(1, 40)
        broken[first : first + size] = data[second : second + size]
    else:
        broken[source.randrange(len(broken))] ^= 1 << source.randrange(8)
    return bytes(broken)


def refusal(read: Any, path: Path) -> list[str]:
    """What a reader or the analysis says of a file that it refuses, if it does."""
    try:
        layerscope.analyze(read(str(path), DEFAULTS))
    except LayerscopeError as error:
        return [str(error)]
    return []


def exported_program(path: Path) -> str:
    return exported(path.parent, tiny())


@pytest.mark.parametrize(
    "name, make, read",
    [
        ("net.safetensors", lambda path: safetensors(path, ARRAYS), reader.read),
        ("net.pt", lambda path: saved(path, SHAPES), torch_save.read),
        ("old.pt", lambda path: legacy(path, SHAPES), torch_save.read),
        ("net.pt2", exported_program, pt2.read),
    ],
)
def test_any_bytes_give_arrays_or_a_named_error(
    tmp_path: Path, name: str, make: Any, read: Any
) -> None:
    path = tmp_path / name
    data = Path(make(path)).read_bytes()
    path = tmp_path / name
    refusals = []
    for seed in range(800):
        path.write_bytes(mutated(data, seed))
        refusals += refusal(read, path)
    assert 100 < len(refusals) < 800
    assert max(map(len, refusals)) < 1000
    assert "\n" not in "".join(refusals)


def test_programs_of_pickles_of_any_bytes(tmp_path: Path) -> None:
    """Mutations of the opcodes themselves, under a right zip archive."""
    items = {name: tensor(str(n), shape) for n, (name, shape) in enumerate(SHAPES.items())}
    program = state_dict(items)
    path = tmp_path / "net.pt"
    for seed in range(1000):
        archive(path, mutated(program, seed), {str(n): 64 for n in range(3)})
        assert "\n" not in "".join(refusal(torch_save.read, path))


def test_every_limit_is_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
    for limit in vars(limits).values():
        if isinstance(limit, limits.Limit):
            assert f"| {limit.name} | {limit.most:,} | {limit.unit} | {limit.why} |\n" in page


def test_every_limit_has_a_name_and_a_reason() -> None:
    found = {name: value for name, value in vars(limits).items() if isinstance(value, limits.Limit)}
    assert len(found) > 15
    for name, limit in found.items():
        assert limit.name == name
        assert limit.why
        with pytest.raises(FormatError, match=name):
            limit.check(limit.most + 1, "net")
        limit.check(limit.most, "net")
    assert "too many elements" in limits.ARRAY_ELEMENTS.refusal(10**5000)
