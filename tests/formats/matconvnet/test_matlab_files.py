"""MATLAB's files: read as scipy reads them, never their weights, and whatever bytes they are."""

from __future__ import annotations

import os
import struct
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import h5py
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from layerscope import analyze, load
from layerscope.codecs import confined, mat5, mat73, matlab
from layerscope.errors import FormatError, LayerscopeError
from layerscope.limits import CHILD_SECONDS, UNPACKED_BYTES, UNPACKED_RATIO
from tests.formats.matconvnet.matfiles import Zeros, write
from tests.formats.matconvnet.matnets import patch32, simple_conv

VERSIONS = ("5", "7", "7.3")

# -- weights are never read


def test_a_huge_array_of_version_73_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "net.mat"
    write(path, {"layers": [simple_conv("fc", (256, 256, 64, 64))], "meta": {
        "inputSize": (256, 256, 64)}}, "7.3")  # fmt: skip
    assert path.stat().st_size < 100_000  # of 1 GiB nothing is there to be read
    report = analyze(str(path))
    assert report.totals.params == 256 * 256 * 64 * 64 + 64
    tracemalloc.start()
    begin = time.process_time()
    found = mat73.read_here(str(path))
    took = time.process_time() - begin
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["layers"][0]["weights"][0] == matlab.MatArray((256, 256, 64, 64))  # type: ignore
    assert took < 0.5
    assert peak < 10_000_000


@pytest.mark.parametrize("version", ["5", "7"])
def test_weights_of_version_7_do_not_fill_memory(version: str, tmp_path: Path) -> None:
    path = write(tmp_path / "net.mat", {"net": patch32()}, version)  # 75 MB of weights
    load(path)
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000


def test_data_outside_the_file_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"s\0e\0c\0r\0e\0t\0" + bytes(500))
    path = tmp_path / "net.mat"
    write(path, {"layers": [{"type": "relu"}], "meta": {"inputSize": (8, 8, 3)}}, "7.3")
    with h5py.File(path, "r+") as file:
        file["away"] = h5py.ExternalLink(str(secret), "/x")
        outside = file.create_dataset("text", (6, 1), dtype="u2", external=[(str(secret), 0, 12)])
        outside.attrs["MATLAB_class"] = b"char"
    assert len(load(str(path)).nodes) == 1
    found = mat73.load(str(path))
    assert found["text"] == matlab.MatOpaque("text")
    assert "away" not in found


# -- the codecs, against scipy and against broken bytes


def plain(value: Any) -> Any:
    """What scipy loads, as our values."""
    if isinstance(value, scipy.io.matlab.mat_struct):
        return {name: plain(getattr(value, name)) for name in value._fieldnames}
    if value.dtype == object:
        cells = [plain(each) for each in value.ravel(order="F")]
        structs = value.size and isinstance(value.flat[0], scipy.io.matlab.mat_struct)
        return cells[0] if structs and value.size == 1 else cells
    if value.dtype.kind == "U":
        return str(value.item()) if value.size else ""
    numbers = tuple(value.ravel(order="F").tolist()) if value.size <= 64 else None
    return matlab.MatArray(value.shape, numbers)


NAMES = st.text("abcdefgh", min_size=1, max_size=6)
LEAVES = st.one_of(
    st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=70).map(tuple),
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(2, 3)).map(Zeros),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(variables=st.dictionaries(NAMES, TREES, min_size=1, max_size=3))
def test_version_5_is_read_as_scipy_reads_it(
    variables: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("mat") / "x.mat"
    for version in ("5", "7"):
        write(path, variables, version)
        theirs = scipy.io.loadmat(str(path), struct_as_record=False, squeeze_me=False)
        expected = {name: plain(theirs[name]) for name in variables}
        assert mat5.load(str(path)) == expected
    write(path, variables, "7.3")
    assert shapeless(mat73.read_here(str(path))) == shapeless(expected)


def shapeless(value: Any) -> Any:
    """Arrays by their numbers: those of a single column or row are alike in both versions."""
    if isinstance(value, dict):
        return {name: shapeless(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shapeless(each) for each in value]
    return (value.elements, value.numbers) if isinstance(value, matlab.MatArray) else value


def test_big_endian_and_short_elements(tmp_path: Path) -> None:
    """A file written by hand: a 1x1 double of two bytes, as older machines store it."""
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    flags = b"\x00\x00\x00\x06\x00\x00\x00\x08" + b"\x00\x00\x00\x06" + bytes(4)
    sizes = b"\x00\x00\x00\x05\x00\x00\x00\x08" + b"\x00\x00\x00\x01\x00\x00\x00\x01"
    name = b"\x00\x01\x00\x01x\x00\x00\x00"
    data = b"\x00\x02\x00\x03\x01\x02\x00\x00"
    whole = flags + sizes + name + data
    path = tmp_path / "x.mat"
    path.write_bytes(header + b"\x00\x00\x00\x0e" + len(whole).to_bytes(4, "big") + whole)
    assert mat5.load(str(path)) == {"x": matlab.MatArray((1, 1), (258,))}


def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "net.mat", patch32())
    few = replace(UNPACKED_BYTES, most=1 << 20)
    monkeypatch.setattr(mat5, "UNPACKED_BYTES", few)
    monkeypatch.setattr(mat5, "UNPACKED_RATIO", replace(UNPACKED_RATIO, most=1))
    with pytest.raises(FormatError, match=r"decompresses to more than .* UNPACKED_BYTES"):
        load(path)


def test_what_claims_more_than_it_has_is_refused_at_once(tmp_path: Path) -> None:
    cell = b"\x06\0\0\0\x08\0\0\0\x01\0\0\0\0\0\0\0"
    cell += b"\x05\0\0\0\x08\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f" + b"\x01\0\x01\0x\0\0\0"
    matrix = b"\x0e\0\0\0" + len(cell).to_bytes(4, "little") + cell
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\0\x01IM"
    path = tmp_path / "net.mat"
    for body in (matrix, b"\x0f\0\0\0" + len(zlib.compress(matrix)).to_bytes(4, "little")
                 + zlib.compress(matrix)):  # fmt: skip
        path.write_bytes(head + body)
        with pytest.raises(FormatError, match="MATLAB_VALUES"):
            load(str(path))


def test_references_in_a_circle_end(tmp_path: Path) -> None:
    path = tmp_path / "net.mat"
    write(path, {"layers": [{"type": "relu"}]}, "7.3")
    with h5py.File(path, "r+") as file:
        file["layers"][0, 0] = file["layers"].ref
    with pytest.raises(FormatError, match="MATLAB_DEPTH"):
        load(str(path))


SMALL = {"layers": [simple_conv("c", (3, 3, 2, 2), pad=1), {"type": "relu"}],
         "meta": {"inputSize": (8, 8, 2)}}  # fmt: skip


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("originals")
    return {v: Path(write(folder / f"{v}.mat", SMALL, v)).read_bytes() for v in VERSIONS}


CHANGES = st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=6)
CUT = st.one_of(st.none(), st.integers(0, 20_000))


def read_broken(data: bytes, cut: int | None, changes: list[tuple[int, int]], path: Path) -> None:
    """Change and cut the bytes of a file: they give an account or an error of one line."""
    broken = bytearray(data)
    for at_byte, value in changes:
        broken[at_byte % len(broken)] = value
    path.write_bytes(broken if cut is None else broken[:cut])
    told = ""
    try:
        analyze(load(str(path)))
    except FormatError as error:
        told = str(error)
    except LayerscopeError:  # of a network that is no longer a good one
        return
    assert not told or told.startswith(f"{path}: ")
    assert "\n" not in told


@settings(max_examples=400)
@given(version=st.sampled_from(["5", "7"]), cut=CUT, changes=CHANGES)
def test_any_bytes_give_a_network_or_a_named_error(
    version: str,
    cut: int | None,
    changes: list[tuple[int, int]],
    originals: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "broken.mat"
    read_broken(originals[version], cut, changes, path)


@settings(max_examples=15)  # each starts a process
@given(cut=CUT, changes=CHANGES)
def test_any_bytes_of_version_73(
    cut: int | None,
    changes: list[tuple[int, int]],
    originals: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.getbasetemp() / "broken73.mat"
    read_broken(originals["7.3"], cut, changes, path)


def test_a_file_on_which_hdf5_never_ends_is_refused(
    originals: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A free block of a heap that is its own successor: HDF5 2.0 lists it until memory ends."""
    monkeypatch.setattr(mat73, "CHILD_SECONDS", replace(CHILD_SECONDS, most=2))
    data = bytearray(originals["7.3"])
    for at_byte in range(len(data)):
        if data[at_byte : at_byte + 4] == b"HEAP":
            size, first, start = struct.unpack("<3Q", data[at_byte + 8 : at_byte + 32])
            if first < size:
                place = 512 + start + first  # past MATLAB's own block
                data[place : place + 8] = first.to_bytes(8, "little")
    path = tmp_path / "net.mat"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"net\.mat: (reading it|no readable HDF5)"):
        load(str(path))


def test_a_reader_that_crashes_is_told() -> None:
    with pytest.raises(FormatError, match="reading it failed: signal 6"):
        confined.confined(os.abort, [])
