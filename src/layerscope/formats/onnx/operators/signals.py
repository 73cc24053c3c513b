"""Spectra, windows over signals, grids, and matrices as a whole."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import NeedsValue
from layerscope.formats.onnx.numbers import DTYPES
from layerscope.formats.onnx.operators.moving import pad
from layerscope.formats.onnx.operators.windows import window
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops.spec import axis_of, broadcast


def transform(s: Site) -> None:
    """DFT; since opset 20 the axis is an input."""
    axis = s.whole("axis", 1)
    if s.opset >= 20:
        told = s.need(2) if s.has(2) else None
        axis = int(told.item) if told is not None else -2
    length = int(s.need(1).item) if s.has(1) else 0
    rank = len(s.shape(0))
    told_all = at.DFT(
        axis_of(axis, rank) - rank, bool(s.whole("inverse")), bool(s.whole("onesided")), length
    )
    s.emit("dft", (s.given(0),), told_all)


def short_transform(s: Site) -> None:
    """STFT: frames by a window, which tells their length as well."""
    step = int(s.need(1).item)
    frame = int(s.need(3).item) if s.has(3) else s.shape(2)[0]
    x = s.given(0)
    shape = s.shape(0)
    if len(shape) == 2:
        x = s.told_node("select", (x,), ((*shape, 1),), (x.dtype,), part="real")[0]
    more = []
    if s.has(2):
        s.reader.uses(s.given(2))
        more.append(s.given(2))
    told = at.STFT(frame, step, bool(s.whole("onesided", 1)))
    s.emit("stft", (x, *more), told, roles="constant")


def taper(s: Site) -> None:
    """HannWindow and its kin: worked out once."""
    size = int(s.need(0).item)
    s.told_node("constant", (), ((size,),), (DTYPES.get(s.whole("output_datatype", 1), "fp32"),))


def mel(s: Site) -> None:
    """MelWeightMatrix: worked out once."""
    bins, length = int(s.need(0).item), int(s.need(1).item)
    for n in (2, 3, 4):
        s.value(n)
    dtype = DTYPES.get(s.whole("output_datatype", 1), "fp32")
    s.told_node("constant", (), ((length // 2 + 1, bins),), (dtype,))


def affine_grid(s: Site) -> None:
    """AffineGrid."""
    told = at.AffineGrid(s.need(1).ints(), bool(s.whole("align_corners")))
    s.emit("affine_grid", (s.given(0),), told)


def col2im(s: Site) -> None:
    """Col2Im: what stands in blocks is added where they overlap."""
    x = s.shape(0)
    sizes, block = s.need(1).ints(), s.need(2).ints()
    count = elements(block)
    if len(x) != 3 or count < 1 or x[1] % count:
        raise ShapeError(f"blocks of {block} in {x}")
    slides = window(s, block).slide(sizes)
    if elements(slides) != x[2]:
        raise ShapeError(f"{x[2]} blocks of {block} over {sizes}, expected {elements(slides)}")
    made = s.emit("add", (s.given(0),), part="sums")[0]
    s.told_node("select", (made,), ((x[0], x[1] // count, *sizes),), (s.dtype(0),))


def det(s: Site) -> None:
    """Det."""
    s.emit("det", (s.given(0),))


def inverse(s: Site) -> None:
    """Inverse of square matrices."""
    x = s.shape(0)
    if len(x) < 2 or x[-1] != x[-2]:
        raise ShapeError(f"the inverse of {x}")
    note = "n³ products for n x n, as elimination takes"
    s.emit("matmul", (s.given(0), s.given(0)), estimate=True, note=note)


def real_transform(s: Site) -> None:
    """Rfft and Irfft of com.microsoft, along the last axis."""
    if s.whole("signal_ndim", 1) != 1 or not s.whole("onesided", 1):
        raise NeedsValue("only transforms of one axis with one side are counted")
    x, shape = s.given(0), s.shape(0)
    if s.op == "Rfft":
        x = s.told_node("select", (x,), ((*shape, 1),), (x.dtype,), part="real")[0]
        s.emit("dft", (x,), at.DFT(-2, onesided=True))
        return
    made = s.emit("dft", (x,), at.DFT(-2, inverse=True, onesided=True), part="inverse")[0]
    assert made.shape is not None
    s.told_node("select", (made,), (made.shape[:-1],), (made.dtype,))


def crop_resize(s: Site) -> None:
    """CropAndResize: one sample at each place of each region."""
    height, width = s.need(3).ints()
    told = at.RoIAlign((height, width), 1)
    s.emit("roi_align", (s.given(0), s.given(1)), told)


def complex_mul(s: Site) -> None:
    """ComplexMul and with the conjugate: four products and two sums each."""
    broadcast((s.shape(0), s.shape(1)))
    left = s.emit("mul", (s.given(0), s.given(1)), part="straight")[0]
    right = s.emit("mul", (s.given(0), s.given(1)), part="across")[0]
    s.emit("add", (left, right))


def distances(s: Site) -> None:
    """CDist: every row of one with every row of the other."""
    a, b = s.shape(0), s.shape(1)
    if len(a) != 2 or len(b) != 2 or a[1] != b[1]:
        raise ShapeError(f"distances of {a} and {b}")
    sides = [
        s.told_node("select", (s.given(n),), (shape,), (s.dtype(n),), part=f"rows{n}")[0]
        for n, shape in enumerate(((a[0], 1, a[1]), (1, *b)))
    ]
    made = s.emit("sub", sides, part="differences")[0]
    root = s.text("metric", "sqeuclidean") == "euclidean"
    op = "reduce_l2" if root else "reduce_sum_square"
    s.emit(op, (made,), at.Reduce((2,)))


def expand_dims(s: Site) -> None:
    """ExpandDims: one more axis."""
    x = list(s.shape(0))
    axis = axis_of(int(s.need(1).item), len(x) + 1)
    x.insert(axis, 1)
    s.emit("reshape", (s.given(0),), at.Reshape(tuple(x)))


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "DFT"): transform,
    ("", "STFT"): short_transform,
    ("", "HannWindow"): taper,
    ("", "HammingWindow"): taper,
    ("", "BlackmanWindow"): taper,
    ("", "MelWeightMatrix"): mel,
    ("", "AffineGrid"): affine_grid,
    ("", "Col2Im"): col2im,
    ("", "Det"): det,
    ("com.microsoft", "Rfft"): real_transform,
    ("com.microsoft", "Irfft"): real_transform,
    ("com.microsoft", "Inverse"): inverse,
    ("com.microsoft", "CropAndResize"): crop_resize,
    ("com.microsoft", "ComplexMul"): complex_mul,
    ("com.microsoft", "ComplexMulConj"): complex_mul,
    ("com.microsoft", "CDist"): distances,
    ("com.microsoft", "ExpandDims"): expand_dims,
    ("com.microsoft", "Pad"): pad,
}
