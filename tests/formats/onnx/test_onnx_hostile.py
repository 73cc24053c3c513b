"""Cut, corrupted and hostile ONNX files: a named error or a graph, in bounded time and memory."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from onnx import helper  # noqa: TID251
from onnxruntime import InferenceSession

import layerscope
from layerscope.errors import LayerscopeError
from tests.codecs.wire import field, varint
from tests.formats.onnx.onnx_files import array, graph, model, node, zeros
from tests.formats.onnx.onnx_models import DATA

SQUEEZENET = DATA / "light/light_squeezenet.onnx"
RESNET = DATA / "light/light_resnet50.onnx"
LENGTH = 2**62


def controlled() -> bytes:
    """A model of a branch, a loop, a function and a quantised weight."""
    then = graph([node("t = Relu x")], "", "t")
    other = graph([node("e = Conv x w1", pads=[1, 1, 1, 1])], "", "e")
    body = graph(
        [node("on = Identity going"), node("more = Add carried carried")],
        "n () int64, going () bool, carried", "on () bool, more",
    )  # fmt: skip
    twice = helper.make_function(
        "own", "Twice", ["a"], ["b"], [node("b = Add a a")], [helper.make_opsetid("", 20)]
    )
    nodes = [
        node("z = If choice", then_branch=then, else_branch=other),
        node("s = Loop count _ z", body=body),
        node("u = DequantizeLinear w2 scale"),
        node("v = Conv s u", pads=[1, 1, 1, 1]),
        node("r = Reshape v shape"),
        node("y = Twice r", domain="own"),
    ]
    stored = [
        zeros("w1", 3, 3, 3, 3), zeros("w2", 3, 3, 3, 3, dtype="int8"),
        array("scale", 0.5, "float32"), array("count", 4), array("shape", [0, -1]),
    ]  # fmt: skip
    made = model(
        nodes, "x Nx3x8x8, choice () bool", "y", stored, domains=["own"], functions=[twice]
    )
    data: bytes = made.SerializeToString()
    return data


def attempt(data: bytes, folder: Path) -> str:
    """Read bytes as a model; what is said of them, nothing of a graph."""
    path = folder / "made.onnx"
    path.write_bytes(data)
    try:
        layerscope.analyze(str(path))
    except LayerscopeError as error:
        return str(error)
    return ""


def test_the_model_to_be_broken_is_whole(tmp_path: Path) -> None:
    InferenceSession(controlled(), providers=["CPUExecutionProvider"])
    assert not attempt(controlled(), tmp_path)


@pytest.mark.parametrize("path", [SQUEEZENET, RESNET], ids=lambda path: path.stem)
def test_cut_anywhere(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    for n in range(50):
        said = attempt(data[: len(data) * n // 50], tmp_path)
        assert said
        assert said.startswith(str(tmp_path)), said


@pytest.mark.parametrize("source", ["controlled", "squeezenet", "inception_v1"])
def test_bits_flipped(source: str, tmp_path: Path) -> None:
    whole = controlled() if source == "controlled" else _light(source)
    random = Random(5)
    begin = time.process_time()
    count = 1200 if source == "controlled" else 400
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(random.choice((1, 1, 2, 5))):
            kind = random.randrange(4)
            at = random.randrange(len(data))
            if kind == 0:
                data[at] ^= 1 << random.randrange(8)
            elif kind == 1:
                data[at] = random.choice((0, 1, 127, 128, 255))
            elif kind == 2:
                del data[at : at + random.choice((1, 2, 8))]
            else:
                data[at:at] = data[(more := random.randrange(len(data))) : more + 8]
        attempt(bytes(data), tmp_path)
    assert time.process_time() - begin < 60


def _light(name: str) -> bytes:
    return (DATA / f"light/light_{name}.onnx").read_bytes()


# -- made to hurt


def raw(nodes: bytes, more: bytes = b"", stored: bytes = b"") -> bytes:
    """A model around nodes that no library would write."""
    shape = field(1, field(1, 1)) + field(1, field(1, 4))
    x = field(1, "x") + field(2, field(1, field(1, 1) + field(2, shape)))
    y = field(1, "y") + field(2, field(1, field(1, 1)))
    inside = nodes + stored + field(11, x) + field(12, y)
    return field(1, 8) + field(7, inside) + field(8, field(2, 17)) + more


def call(op: str, inputs: str = "x", outputs: str = "y", *attributes: bytes) -> bytes:
    """A node in its field of a graph."""
    made = b"".join(field(1, name) for name in inputs.split())
    made += b"".join(field(2, name) for name in outputs.split()) + field(4, op)
    return field(1, made + b"".join(field(5, attribute) for attribute in attributes))


def stored(name: str, dims: list[int], more: bytes = b"", kind: int = 1) -> bytes:
    sizes = b"".join(map(varint, dims))
    return field(5, field(1, sizes) + field(2, kind) + field(8, name) + more)


def sizes(name: str, *numbers: int) -> bytes:
    return stored(name, [len(numbers)], field(7, b"".join(map(varint, numbers))), 7)


def whole_number(name: str, number: int) -> bytes:
    return stored(name, [], field(7, varint(number)), 7)


def huge_tensor() -> bytes:
    return raw(call("Add", "x w"), stored=stored("w", [2**30, 2**30], field(9, bytes(64))))


def huge_external() -> bytes:
    told = field(13, field(1, "location") + field(2, "../../nowhere")) + field(14, 1)
    return raw(call("MatMul", "x w"), stored=stored("w", [4, 2**60], told))


def circle() -> bytes:
    return raw(call("Add", "x b", "a") + call("Relu", "a", "b") + call("Relu", "b", "y"))


def deep() -> bytes:
    """10,000 bodies, one in another, written from the innermost out."""
    last = field(12, field(1, "y"))
    before, after = [call("Relu", "x", "y") + last], []
    size = len(before[0])
    for _ in range(10_000):
        name, kind = field(1, "then_branch"), field(20, 5)
        head = name + varint(6 << 3 | 2) + varint(size)
        size += len(head) + len(kind)
        named = field(1, "x") + field(2, "y") + field(4, "If") + varint(5 << 3 | 2) + varint(size)
        size += len(named)
        opened = varint(1 << 3 | 2) + varint(size)
        before.append(opened + named + head)
        after.append(kind + last)
        size += len(opened) + len(last)
    return raw(b"".join(reversed(before)) + b"".join(after))


def function(name: str, nodes: bytes) -> bytes:
    """A function of the model: its nodes are in field 7 there."""
    made = field(1, name) + field(4, "x") + field(5, "y") + field(10, "own") + nodes
    return field(25, made)


def own(name: str, source: str, into: str) -> bytes:
    made = field(1, source) + field(2, into) + field(4, name) + field(7, "own")
    return field(7, made)


def calls_itself() -> bytes:
    top = field(1, field(1, "x") + field(2, "y") + field(4, "f") + field(7, "own"))
    return raw(top, function("f", own("f", "x", "y")))


def doubles() -> bytes:
    top = field(1, field(1, "x") + field(2, "y") + field(4, "f0") + field(7, "own"))
    made = b"".join(
        function(f"f{n}", own(f"f{n + 1}", "x", "m") + own(f"f{n + 1}", "m", "y"))
        for n in range(30)
    )
    last = field(7, field(1, "x") + field(2, "y") + field(4, "Relu"))
    return raw(top, made + function("f30", last))


def doubles_twice_as_deep() -> bytes:
    top = field(1, field(1, "x") + field(2, "y") + field(4, "f0") + field(7, "own"))
    made = b"".join(
        function(f"f{n}", own(f"f{n + 1}", "x", "m") + own(f"f{n + 1}", "m", "y"))
        for n in range(60)
    )
    last = field(7, field(1, "x") + field(2, "y") + field(4, "Relu"))
    return raw(top, made + function("f60", last))


def long_range() -> bytes:
    numbers = whole_number("a", 0) + whole_number("b", LENGTH) + whole_number("c", 1)
    return raw(call("Range", "a b c", "r") + call("Mul", "r r", "y"), stored=numbers)


def wide_expand() -> bytes:
    return raw(call("Expand", "x s"), stored=sizes("s", LENGTH, 1, 4))


def wide_tile() -> bytes:
    return raw(call("Tile", "x s"), stored=sizes("s", LENGTH, 3))


def wide_constant() -> bytes:
    return raw(call("ConstantOfShape", "s", "c") + call("Add", "c x"), stored=sizes("s", LENGTH, 4))


def endless_loop() -> bytes:
    body = call("Identity", "go", "on") + call("Relu", "v", "w")
    inputs = b"".join(field(11, field(1, name)) for name in ("n", "go", "v"))
    outputs = b"".join(field(12, field(1, name)) for name in ("on", "w"))
    attribute = field(1, "body") + field(6, body + inputs + outputs) + field(20, 5)
    # the condition is left out
    made = field(1, "count", "", "x") + field(2, "y") + field(4, "Loop") + field(5, attribute)
    return raw(field(1, made), stored=whole_number("count", LENGTH))


def counting_loop() -> bytes:
    """Its end is worked out round by round, of which there are 2^62."""
    body = call("Less", "n end", "on") + call("Relu", "v", "w")
    inputs = b"".join(field(11, field(1, name)) for name in ("n", "go", "v"))
    outputs = b"".join(field(12, field(1, name)) for name in ("on", "w"))
    attribute = field(1, "body") + field(6, body + inputs + outputs) + field(20, 5)
    made = field(1, "count", "", "x") + field(2, "y") + field(4, "Loop") + field(5, attribute)
    return raw(field(1, made), stored=whole_number("count", LENGTH) + whole_number("end", LENGTH))


def long_names() -> bytes:
    """Three of a megabyte each, and one longer still."""
    name = "n" * 1_000_000
    return raw(call("Relu", "x", name) + call("Relu", name, name + "m") + call("Relu", name, "y"))


def too_long_a_name() -> bytes:
    name = "n" * 3_000_000
    return raw(call("Relu", "x", name) + call("Relu", name, "y"))


def many_attributes() -> bytes:
    told = [field(1, f"a{n}") + field(3, n) + field(20, 2) for n in range(100_000)]
    return raw(call("Relu", "x", "y", *told))


def many_branches() -> bytes:
    """3,000 Ifs in a row: what is around a body must not be copied for each."""
    made = []
    for n in range(3_000):
        body = call("Relu", f"t{n}", f"b{n}") + field(12, field(1, f"b{n}"))
        told = [field(1, f"{which}_branch") + field(6, body) for which in ("then", "else")]
        made.append(call("If", "flag", f"t{n + 1}", *told))
    flag = field(11, field(1, "flag") + field(2, field(1, field(1, 9) + field(2, b""))))
    nodes = call("Relu", "x", "t0") + b"".join(made) + call("Relu", "t3000", "y")
    return raw(nodes + flag)


def nested_loops() -> bytes:
    """Loops in loops whose shapes change in every round: walked anew at every depth."""
    body = call("Concat", "v v", "w", field(1, "axis") + field(3, 1) + field(20, 2))
    for _ in range(35):
        inputs = b"".join(field(11, field(1, name)) for name in ("n", "go", "v"))
        outputs = b"".join(field(12, field(1, name)) for name in ("go", "w"))
        attribute = field(1, "body") + field(6, body + inputs + outputs) + field(20, 5)
        made = field(1, "count", "", "v") + field(2, "w") + field(4, "Loop") + field(5, attribute)
        body = field(1, made)
    nodes = call("Relu", "x", "v") + body + call("Relu", "w", "y")
    return raw(nodes, stored=whole_number("count", 3))


def same_names() -> bytes:
    """20,000 nodes of one name, whose names are made unique."""
    made = []
    for n in range(20_000):
        source = f"t{n - 1}" if n else "x"
        into = f"t{n}" if n < 19_999 else "y"
        made.append(field(1, field(1, source) + field(2, into) + field(3, "n") + field(4, "Relu")))
    return raw(b"".join(made))


def huge_axes() -> bytes:
    return raw(call("Add", "x w"), stored=stored("w", [1] * 100_000, field(9, bytes(4))))


def gather_beyond() -> bytes:
    return raw(
        call("Gather", "a i", "s") + call("Reshape", "x s"),
        stored=sizes("a", 1, 4) + whole_number("i", 2**62),
    )


def power_tower() -> bytes:
    """Numbers worked out before the run that would grow without end."""
    made = call("Mul", "a a", "p0")
    for n in range(200):
        made += call("Mul", f"p{n} p{n}", f"p{n + 1}")
    return raw(made + call("Add", "x p200"), stored=whole_number("a", 2**62))


def chained_sums() -> bytes:
    """What is folded has at most so many numbers, each at most so long."""
    made = call("Concat", "a a", "p0", field(1, "axis") + field(3, 0) + field(20, 2))
    for n in range(60):
        axis = field(1, "axis") + field(3, 0) + field(20, 2)
        made += call("Concat", f"p{n} p{n}", f"p{n + 1}", axis)
    return raw(made + call("Add", "x p60"), stored=sizes("a", 1, 2))


def many_numbers() -> bytes:
    """4,096 numbers worked out before the run, again and again."""
    made = call("Range", "a b c", "p0")
    for n in range(20_000):
        made += call("Add", f"p{n} p{n}", f"p{n + 1}")
    numbers = whole_number("a", 0) + whole_number("b", 4096) + whole_number("c", 1)
    return raw(made + call("Relu"), stored=numbers)


def many_loops() -> bytes:
    """Ends of 2^62 rounds that are worked out round by round, again and again."""
    body = call("Less", "n end", "on") + call("Relu", "v", "w")
    inputs = b"".join(field(11, field(1, name)) for name in ("n", "go", "v"))
    outputs = b"".join(field(12, field(1, name)) for name in ("on", "w"))
    attribute = field(1, "body") + field(6, body + inputs + outputs) + field(20, 5)
    made = b""
    for n in range(300):
        into = field(1, "count", "", "x") + field(2, f"y{n}") + field(4, "Loop")
        made += field(1, into + field(5, attribute))
    return raw(
        made + call("Relu"), stored=whole_number("count", LENGTH) + whole_number("end", LENGTH)
    )


def written(
    nodes: list[Any], outputs: str, stored: Sequence[Any] = (), inputs: str = "x 2x3"
) -> bytes:
    data: bytes = model(nodes, inputs, outputs, stored).SerializeToString()
    return data


def chain(text: str, count: int, **attributes: Any) -> list[Any]:
    """Nodes in a row; `<` stands for what the one before makes, `>` for what this one does."""
    names = ["x", *(f"t{n}" for n in range(count))]
    return [
        node(text.replace("<", source).replace(">", into), **attributes)
        for source, into in itertools.pairwise(names)
    ]


def doubling_tiles() -> bytes:
    """An axis that doubles 20,000 times."""
    return written(chain("> = Tile < r", 20_000), "t19999", [array("r", [2, 1])])


def doubling_joins() -> bytes:
    return written(chain("> = Concat < <", 5_000, axis=0), "t4999")


def both_axes() -> bytes:
    """Elements beyond 64 bits, though no axis is: printed exactly."""
    nodes = chain("> = Tile < r", 60)
    return written(nodes, "t59", [array("r", [2, 2])], "x 1x1")


def more_and_more_axes() -> bytes:
    return written(chain("> = Unsqueeze < a", 20_000), "t19999", [array("a", [0])])


def declared_axes() -> bytes:
    return written([node("y = Relu x")], "y", (), "x " + "x".join(["1"] * 50_000))


def growing_loops() -> bytes:
    """Loops in loops, 20 deep, that carry a tensor which grows in every round."""
    inner: list[Any] = []
    for n in range(20):
        nodes = [node(f"k{n} = Identity c{n}"), *inner, node(f"v{n} = Concat u{n} u{n}", axis=0)]
        body = graph(
            nodes, f"i{n} () int64, c{n} () bool, u{n}", f"k{n} () bool, v{n}"
        )  # fmt: skip
        inner = [node(f"w{n} = Loop rounds _ x", body=body)]
    return written(inner, "w19", [array("rounds", 8)])


def pieces() -> bytes:
    """20,000 outputs of one node, all read by another."""
    names = " ".join(f"s{n}" for n in range(20_000))
    nodes = [node(f"{names} = Split x sizes", axis=0), node(f"y = Concat {names}", axis=0)]
    return written(nodes, "y", [array("sizes", [1] * 20_000)], "x 20000x3")


def readers() -> bytes:
    """One tensor that 40,000 nodes read."""
    return written([node(f"t{n} = Relu x") for n in range(40_000)], "t0")


def sequences() -> bytes:
    """A sequence that grows by one, 20,000 times."""
    nodes = [node("s0 = SequenceConstruct x")]
    nodes += [node(f"s{n} = SequenceInsert s{n - 1} x") for n in range(1, 20_000)]
    return written([*nodes, node("y = ConcatFromSequence s19999", axis=0)], "y")


def unknown_chain() -> bytes:
    """What is unknown at the start stays so, 20,000 times, each with its reason."""
    nodes = [node("t0 = NonZero x")]
    nodes += [node(f"t{n} = Cast t{n - 1}", to=1) for n in range(1, 20_000)]
    return written(nodes, "t19999")


def computed_sizes() -> bytes:
    """12,000 sizes that are unknown, each at the end of a long chain."""
    nodes = chain("> = Relu <", 10_000)
    nodes += [node(f"y{n} = Reshape x t{9_999 - n % 1000}") for n in range(10_000)]
    return written(nodes, "y0", (), "x 4")


def small_products() -> bytes:
    """Products of 40 x 40 matrices that are known, again and again."""
    nodes = [node("p0 = Cast a", to=11)]
    nodes += [node(f"p{n} = MatMul p{n - 1} p0") for n in range(1, 10_000)]
    return written([*nodes, node("y = Relu x")], "y", [array("a", [[0] * 40] * 40)])


SAYS: dict[Callable[[], bytes], str | None] = {
    huge_tensor: "in 64 bytes, expected 4611686018427387904",
    huge_external: None,  # an array of that size elsewhere: the product is as wide
    circle: "the graph has a cycle",
    deep: "nested more than",
    calls_itself: "nested more than",
    doubles: "more than 10,000 nodes of functions",
    doubles_twice_as_deep: "nested more than",
    long_range: None,
    wide_expand: None,
    wide_tile: None,
    wide_constant: None,
    endless_loop: None,
    counting_loop: None,
    long_names: None,
    too_long_a_name: "a text of 3000000 bytes",
    many_attributes: None,
    many_branches: None,
    nested_loops: "",
    same_names: None,
    huge_axes: "expected sizes from 0 on",
    gather_beyond: "index 4611686018427387904 into an axis of 2",
    power_tower: "",
    chained_sums: "",
    many_numbers: None,
    many_loops: None,
    doubling_tiles: "t61 (Tile): an axis of 9,223,372,036,854,775,808 elements, expected at most",
    doubling_joins: "(Concat): an axis of 9,223,372,036,854,775,808 elements",
    both_axes: None,
    more_and_more_axes: "(Unsqueeze): a tensor of 65 axes, expected at most 64",
    declared_axes: "a shape of 50000 axes, expected at most 64",
    growing_loops: "more than 50,000 nodes of nested loops",
    pieces: None,
    readers: None,
    sequences: None,
    unknown_chain: None,
    computed_sizes: None,
    small_products: None,
}
MOST_BYTES, MOST_SECONDS = 1 << 30, 60


@cache
def limited() -> str:
    """A program that reads one file within limits, and says what is said of it."""
    return f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MOST_BYTES}, {MOST_BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, ({MOST_SECONDS}, {MOST_SECONDS}))
import layerscope
from layerscope.formats.onnx import reader
reader.MOST_INLINED = 10_000  # it takes some seconds to reach what it is
try:
    layerscope.analyze(sys.argv[1])
except layerscope.LayerscopeError as error:
    print(str(error)[-3000:])
spent = resource.getrusage(resource.RUSAGE_SELF)
print("spent", spent.ru_utime + spent.ru_stime, spent.ru_maxrss // 1024, file=sys.stderr)
"""


@pytest.mark.parametrize("make", SAYS, ids=lambda make: make.__name__)
def test_made_to_hurt(make: Callable[[], bytes], tmp_path: Path) -> None:
    path = tmp_path / "hostile.onnx"
    path.write_bytes(make())
    ran = subprocess.run(
        [sys.executable, "-c", limited(), str(path)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    says = SAYS[make]
    if says is None:
        assert not ran.stdout
    else:
        assert ran.stdout.startswith(str(path)) or not says
        assert says in ran.stdout
