"""Hypothesis strategies for small networks with branches, on which fields are measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from layerscope.errors import ShapeError
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Node, Shape, Tensor
from layerscope.ops import SPECS, Call
from tests.brute.case import window

LONGEST = 48


class Growing:
    """A graph under construction; a step that does not fit is left out."""

    def __init__(self, shape: Shape, draw: Any) -> None:
        self.draw = draw
        self.input = Tensor("data", shape)
        self.shapes: dict[str, Shape] = {"data": shape}
        self.nodes: list[Node] = []

    def whole(self, least: int, most: int) -> int:
        number: int = self.draw(st.integers(least, most))
        return number

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def tensor(self) -> str:
        """Any tensor there is, of the rank of the input and all its channels."""
        return str(self.pick(*self.shapes))

    @property
    def channels(self) -> int:
        return self.shapes["data"][1]

    @property
    def rank(self) -> int:
        return len(self.shapes["data"]) - 2

    def add(self, op: str, inputs: tuple[str, ...], attributes: Any = None) -> tuple[str, ...]:
        """The outputs' names, or none if the op does not fit or grows too long."""
        try:
            made = SPECS[op].shape(Call(attributes, tuple(self.shapes[name] for name in inputs)))
        except ShapeError:
            return ()
        if any(size > LONGEST for shape in made for size in shape):
            return ()
        name = f"{op}{len(self.nodes)}"
        names = (name,) if len(made) == 1 else tuple(f"{name}:{n}" for n in range(len(made)))
        self.nodes.append(Node(name, op, inputs, names, attributes))
        self.shapes.update(zip(names, made, strict=True))
        return names

    def keep_channels(self, names: tuple[str, ...]) -> None:
        """Bring a tensor of other channels back to the common number."""
        for name in names:
            self.add("conv", (name,), at.Conv(window([1] * self.rank), self.channels))
            del self.shapes[name]

    def build(self) -> Graph:
        read = {name for node in self.nodes for name in node.inputs}
        made = [name for node in self.nodes for name in node.outputs]
        ends = tuple(name for name in made if name not in read) or ("data",)
        return Graph("random", (self.input,), tuple(self.nodes), ends)


Step = Callable[[Growing], object]


def _window(g: Growing, most: int, *, rounding: at.Rounding = "floor") -> at.Window:
    kernel = [g.whole(1, most) for _ in range(g.rank)]
    pads: Any = [(g.whole(0, k - 1), g.whole(0, k - 1)) for k in kernel]
    if g.whole(0, 4) == 0 and rounding == "floor":
        pads = g.pick("same_upper", "same_lower")
    return window(kernel, g.whole(1, 3), pads, g.whole(1, 2), rounding)


def conv(g: Growing) -> None:
    g.add("conv", (g.tensor(),), at.Conv(_window(g, 5), g.channels, g.pick(1, 2)))


def pool(g: Growing) -> None:
    rounding = g.pick("floor", "ceil", "caffe", "torch")
    g.add(g.pick("max_pool", "avg_pool", "lp_pool"), (g.tensor(),),
          at.Pool(_window(g, 3, rounding=rounding)))  # fmt: skip


def transposed(g: Growing) -> None:
    w = _window(g, 4)
    extra = tuple(g.whole(0, step - 1) for step in w.stride)
    if g.rank > 1:  # no holes: on one axis they hide what the other sees
        w = at.Window(tuple(map(max, w.kernel, w.stride)), w.stride, w.pads, (1,) * g.rank)
    g.add("conv_transpose", (g.tensor(),),
          at.TransposedConv(w, g.channels, g.pick(1, 2), output_padding=extra))  # fmt: skip


def resize(g: Growing) -> None:
    mode = g.pick("nearest", "bilinear", "bicubic")
    if g.whole(0, 2):
        scale = g.pick((2, 1), (3, 1), (3, 2), (7, 4), (1, 2), (2, 3))
        attributes = at.Resize(mode, (), (scale,), g.pick(True, False))
    else:
        attributes = at.Resize(mode, (g.whole(1, 30),), (), g.pick(True, False))
    g.add("resize", (g.tensor(),), attributes)


def cut(g: Growing) -> None:
    x = g.tensor()
    axis = g.whole(2, 1 + g.rank)
    size = g.shapes[x][axis]
    start, step = g.whole(0, size // 2), g.pick(1, 1, 2, 3)
    ends = g.whole(size // 2 + 1, size)
    if g.whole(0, 3) == 0:
        start, ends, step = ends - 1, -size - 1, -step
    g.add("slice", (x,), at.Slice((axis,), (start,), (ends,), (step,)))


def pad(g: Growing) -> None:
    pads = tuple((g.whole(-2, 3), g.whole(-2, 3)) for _ in range(g.rank))
    g.add("pad", (g.tensor(),), at.Pad(((0, 0), (0, 0), *pads)))


def join(g: Growing) -> None:
    """Two tensors, cropped alike, added or stacked."""
    a, b = g.tensor(), g.tensor()
    if any(x < y for x, y in zip(g.shapes[a], g.shapes[b], strict=True)):
        a, b = b, a
    offsets = tuple(
        g.whole(0, max(x - y, 0)) for x, y in zip(g.shapes[a][2:], g.shapes[b][2:], strict=True)
    )
    cropped = g.add("crop", (a, b), at.Crop(2, offsets))
    if not cropped:
        return
    if g.pick(True, False):
        g.add("add", (*cropped, b))
    else:
        g.keep_channels(g.add("concat", (*cropped, b), at.Concat(1)))


def stack_along(g: Growing) -> None:
    g.add("concat", (g.tensor(), g.tensor()), at.Concat(2))


def split(g: Growing) -> None:
    x = g.tensor()
    size = g.shapes[x][2]
    if size > 1:
        first = g.whole(1, size - 1)
        g.add("split", (x,), at.Split(2, (first, size - first)))


def squeeze_excite(g: Growing) -> None:
    x = g.tensor()
    gate = g.add(g.pick("global_avg_pool", "global_max_pool"), (x,))
    g.add("mul", (x, *gate))
    for name in gate:
        del g.shapes[name]


def adaptive(g: Growing) -> None:
    bins = tuple(g.pick(None, 1, 2, 3, 5) for _ in range(g.rank))
    g.add(g.pick("adaptive_max_pool", "adaptive_avg_pool"), (g.tensor(),), at.AdaptivePool(bins))


def plain(g: Growing) -> None:
    op, attributes = g.pick(
        ("relu", at.Activation()),
        ("batch_norm", at.BatchNorm()),
        ("softmax", at.Softmax(1)),
        ("l2_norm", at.L2Norm()),
        ("lrn", at.LocalResponseNorm(3)),
        ("lrn", at.LocalResponseNorm(4, within_channel=True)),
        ("group_norm", at.GroupNorm(2)),
        ("layer_norm", at.LayerNorm(affine=False)),
        ("dropout", at.Dropout()),
        ("instance_norm", at.InstanceNorm()),
        ("rms_norm", at.RMSNorm(scale=False)),
        ("roll", None),
        ("reduce_mean", at.Reduce((-1,), keep=True)),
        ("reduce_max", at.Reduce((2,), keep=True)),
    )
    g.add(op, (g.tensor(),), attributes)


def shuffle(g: Growing) -> None:
    """Channels moved into space, or space into channels."""
    attributes = at.PixelShuffle(2, inverse=g.pick(True, False))
    g.keep_channels(g.add("pixel_shuffle", (g.tensor(),), attributes))


ONE: tuple[Step, ...] = (
    conv, conv, conv, pool, transposed, resize, cut, pad, join, join, stack_along, split,
    squeeze_excite, adaptive, plain,
)  # fmt: skip
TWO: tuple[Step, ...] = (
    conv, conv, pool, transposed, resize, cut, pad, join, join, squeeze_excite, adaptive, plain,
    shuffle,
)  # fmt: skip


@st.composite
def lines(draw: Any) -> Graph:
    """A 1-D network with branches."""
    g = Growing((1, 2, draw(st.integers(8, 40))), draw)
    for step in draw(st.lists(st.sampled_from(ONE), min_size=1, max_size=7)):
        step(g)
    return g.build()


@st.composite
def planes(draw: Any) -> Graph:
    """A 2-D network with branches."""
    sizes = draw(st.tuples(st.integers(5, 12), st.integers(5, 12)))
    g = Growing((1, 4, *sizes), draw)  # four channels make a 2 x 2 block
    for step in draw(st.lists(st.sampled_from(TWO), min_size=1, max_size=4)):
        step(g)
    return g.build()
