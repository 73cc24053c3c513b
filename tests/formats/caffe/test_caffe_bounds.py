"""Files of up to 1 MB, whatever is in them, end: in a child with limits of time and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from layerscope import analyze
from layerscope.errors import LayerscopeError
from tests.codecs.wire import dims, field
from tests.codecs.wire import layer as binary
from tests.formats.caffe.caffe_nets import layer, net

MEGABYTE = 1 << 20
SECONDS, BYTES = 60, 1 << 30  # for all of them together, and for each
DATA = "input: 'data' input_shape { dim: 1 dim: 20000 dim: 2 dim: 2 }\n"
MANY = 20_000


def names(letter: str, count: int) -> str:
    return " ".join(f"{letter}{n}" for n in range(count))


def chain(kind: str, told: str, count: int) -> str:
    return "".join(layer(kind, told, top="data", name=f"n{n}") for n in range(count))


def relus(count: int, name: str = "n{}", top: str = "data") -> str:
    return "".join(layer("ReLU", name=name.format(n), top=top.format(n)) for n in range(count))


TEXTS = {
    "many tops of Split": DATA + layer("Split", top=names("t", MANY)),
    "many tops of Slice": DATA + layer("Slice", top=names("t", MANY)),
    "many points": DATA + layer(
        "Slice", f"slice_param {{ slice_point: {list(range(1, MANY))} }}", top=names("t", MANY)
    ),
    "many bottoms": DATA + layer("Concat", bottom=" ".join(["data"] * 20_000)),
    "many readers of one blob": DATA + relus(5_000, top="t{}"),
    "many layers in place": DATA + relus(5_000),
    "many layers of one name": DATA + relus(3_000, "a") + relus(3_000, "a#{}"),
    "many inputs of one name": "input: 'x' input_shape { dim: 1 } " * 30_000
    + layer("ReLU", bottom="x"),
    "many unknown fields": DATA + relus(1).replace("type", " ".join(
        f"f{n}: 1" for n in range(40_000)) + " type"),
    "many unknown fields of the network": "".join(f"f{n} {{ }}\n" for n in range(30_000)) + DATA
    + relus(1),
    "a long name": DATA + layer("ReLU", name="x" * 100_000),
    "a deep name": DATA + layer("ReLU", name="/".join("x" * 400_000)),
    "a name like many": DATA + relus(2_000, top="t" * 120 + "{}")
    + layer("ReLU", bottom="t" * 130, top="y"),
    "many sizes": f"input: 'data' input_shape {{ {'dim: 1 ' * 140_000} }}" + relus(1),
    "many sizes of a reshape": DATA + layer(
        "Reshape", f"reshape_param {{ shape {{ {'dim: 1 ' * 140_000} }} }}"),
    "many axes": "input: 'data' input_shape { dim: 1 dim: 2 }"
    + chain("ExpandDims", "expand_dims_param { axis: 1 }", 2_000),
    "sizes that double": "input: 'data' input_shape { dim: 1 dim: 2 }"
    + chain("Tile", "tile_param { tiles: 2 }", 2_000),
    "sizes that grow": "input: 'data' input_shape { dim: 1 dim: 2 }"
    + chain("Tile", "tile_param { tiles: 2147483647 }", 2_000),
    "many digits": DATA + layer("Tile", f"tile_param {{ tiles: {'9' * 900_000} }}"),
    "many digits of a float": DATA + layer("ELU", f"elu_param {{ alpha: .{'9' * 900_000} }}"),
    "many ratios": DATA + layer("PriorBox", "prior_box_param { min_size: 1 "
        + " ".join(f"aspect_ratio: {n}.5" for n in range(2, 9_000)) + " }", "data data"),
    "deep messages": "a {" * 300_000,
    "many orders": DATA + layer("Permute", f"permute_param {{ {'order: 1 ' * 90_000} }}"),
    "many kernels": DATA + layer(
        "Pooling", f"pooling_param {{ {'kernel_size: 1 ' * 60_000} }}"),
}  # fmt: skip
SHAPE = field(3, "data") + field(8, dims(1, 4, 8, 8))
FILES = {
    "many layers": SHAPE + b"".join(binary("a", "ReLU", "data", "data") for _ in range(10_000)),
    "many empty layers": SHAPE + field(100, b"") * 60_000,
    "many old layers": SHAPE + field(2, b"\x28\x12") * 40_000,
    "many unknown numbers": SHAPE + binary("c", "ReLU", "data", "y", field(
        123, b"".join(field(1_000 + n, 1) for n in range(200_000)))),
    "many unknown numbers of the network": SHAPE + binary("a", "ReLU", "data", "y")
    + b"".join(field(200 + n, b"a") for n in range(100_000)),
    "a shape of many sizes": field(3, "data") + field(8, field(1, b"\x01" * 1_000_000)),
    "a size of 63 bits": field(3, "data") + field(8, dims(2**63 - 1))
    + binary("a", "ReLU", "data", "y"),
    "many empty arrays": SHAPE + binary("c", "ReLU", "data", "y", field(7, b"") * 200_000),
}  # fmt: skip
SCRIPT = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
resource.setrlimit(resource.RLIMIT_AS, ({BYTES}, {BYTES}))
from layerscope.cli import run
for path in sys.argv[1:]:
    print(path, flush=True)
    code = run(["show", path, "--as", "csv", "-o", path + ".csv"])
    assert code in (0, 3), (path, code)
"""


@pytest.mark.parametrize("form", ["prototxt", "caffemodel"])
def test_any_file_ends_within_limits(form: str, tmp_path: Path) -> None:
    texts = [text.encode() for text in TEXTS.values()]
    paths = []
    for number, data in enumerate(texts if form == "prototxt" else FILES.values()):
        path = tmp_path / f"{number}.{form}"
        path.write_bytes(data[:MEGABYTE])
        paths.append(str(path))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *paths], capture_output=True, text=True, check=False
    )
    last = done.stdout.splitlines()[-1:] or ["nothing"]
    assert done.returncode == 0, (last, done.stderr[-500:])
    assert all(len(line) < 2000 for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("many sizes", "a shape of 140000 axes, expected at most 32"),
        ("many sizes of a reshape", "it: a shape of 140000 axes, expected at most 32"),
        ("many axes", "a tensor of 65 axes, expected at most 64"),
        ("sizes that double", "an axis of 9,223,372,036,854,775,808 elements, expected at most"),
        ("many digits", "expected at most 400 digits, not 900000"),
        ("many digits of a float", "expected at most 400 digits, not 900001"),
        ("many ratios", "8998 aspect ratios, expected at most 256"),
        ("deep messages", "messages nested deeper than 100"),
        ("many orders", "an order of 90000 axes, expected at most 32"),
        ("many kernels", "a window of 60000 axes, expected at most 32"),
    ],
)  # fmt: skip
def test_a_bound_has_a_name(case: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text(TEXTS[case])
    with pytest.raises(LayerscopeError) as error:
        analyze(str(path))
    assert said in str(error.value)
    assert error.value.exit_code == 3


def test_deep_names_keep_their_name() -> None:
    """A name of more folders than any network has is only a name."""
    deep = "/".join("x" * 1_000)
    [node] = net(DATA + layer("ReLU", name=deep)).nodes
    assert (node.name, node.scope) == (deep, ())
    [node] = net(DATA + layer("ReLU", name="a/b/c")).nodes
    assert node.scope == ("a", "b")
