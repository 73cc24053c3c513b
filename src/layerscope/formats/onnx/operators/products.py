"""Matrix products."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.operators.activations import activated
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at


def matmul(s: Site) -> None:
    """MatMul: by an array of the file it is a linear layer."""
    right = s.given(1)
    if s.stored(1) and right.shape is not None and len(right.shape) == 2:
        rows, columns = right.shape
        if s.shape(0)[-1:] != (rows,):
            raise ShapeError(f"matrix product of {s.shape(0)} by {right.shape}")
        linear(s, s.given(0), columns, (1,))
        return
    s.emit("matmul", (s.given(0), right))


def linear(
    s: Site,
    x: Known,
    features: int,
    arrays: tuple[int, ...],
    *,
    part: str = "",
) -> Known:
    """A linear layer by inputs that are arrays: the matrix, and a bias if there are two."""
    params = [s.param(arrays[0], "weight", "weight")]
    if len(arrays) > 1:
        params.append(s.param(arrays[1], "bias", "bias"))
    told = at.Linear(features, bias=len(arrays) > 1)
    return s.emit("linear", (x,), told, params=params, part=part)[0]


def gemm(s: Site) -> None:
    """Gemm: alpha · A · B + beta · C; by arrays of the file it is a linear layer."""
    product(s)


def product(s: Site, *, part: str = "") -> Known:
    """What a Gemm makes, as the operator's output or as a part of it."""
    x, w = s.shape(0), s.shape(1)
    if s.opset < 7 and len(x) > 2 and not s.operator.domain:
        raise ShapeError(f"a matrix product of {x}")
    if len(x) != 2 or len(w) != 2:
        raise ShapeError(f"a matrix product of {x} by {w}, expected two axes each")
    across, down = bool(s.whole("transA")), bool(s.whole("transB"))
    inner, features = (w[1], w[0]) if down else (w[0], w[1])
    if x[0 if across else 1] != inner:
        raise ShapeError(f"matrix product of {x} by {w}: {inner} does not agree")
    alpha, beta = s.real("alpha", 1.0), s.real("beta", 1.0)
    biased = s.has(2)
    plain = not across and s.stored(1) and alpha == 1
    vector = biased and s.stored(2) and beta == 1 and s.shape(2)[-1:] == (features,)
    vector = vector and max(s.shape(2)[:-1], default=1) == 1
    if plain and (vector or not biased):
        return linear(s, s.given(0), features, (1, 2) if biased else (1,), part=part)
    inside = part if alpha == 1 and not biased else "product"
    if plain:
        made = linear(s, s.given(0), features, (1,), part=inside)
    else:
        told = at.MatMul(across, down) if across or down else None
        made = s.emit("matmul", (s.given(0), s.given(1)), told, part=inside)[0]
    if alpha != 1:
        made = s.emit("mul", (made,), part="alpha" if biased else part)[0]
    if biased:
        added = s.given(2)
        if beta != 1:
            added = s.emit("mul", (added,), part="beta", roles="bias")[0]
        made = s.emit("add", (made, added), part=part, roles="bias")[0]
    return made


def fused_matmul(s: Site) -> None:
    """A product with transposed sides and a factor; an activation may stand behind it."""
    sides = [
        _turned(s, n, part) if s.whole(f"transBatch{part.upper()}") else s.given(n)
        for n, part in enumerate("ab")
    ]
    across, down = bool(s.whole("transA")), bool(s.whole("transB"))
    told = at.MatMul(across, down) if across or down else None
    scaled = s.real("alpha", 1.0) != 1.0
    named = s.text("activation")
    part = "product" if scaled or named else ""
    right = s.given(1)
    stored = s.stored(1) and right.shape is not None and len(right.shape) == 2
    if stored and sides[1] is right and not across:
        assert right.shape is not None
        rows, columns = right.shape[::-1] if down else right.shape
        if s.shape(0)[-1:] != (rows,):
            raise ShapeError(f"matrix product of {s.shape(0)} by {right.shape}")
        made = linear(s, sides[0], columns, (1,), part=part)
    else:
        made = s.emit("matmul", sides, told, part=part)[0]
    if scaled:
        made = s.emit("mul", (made,), part="alpha" if named else "")[0]
    if named:
        activated(s, named, made)


def _turned(s: Site, n: int, side: str) -> Known:
    """A side whose first axis goes behind those of the batch."""
    rank = len(s.shape(n))
    order = (*range(1, rank - 1), 0, rank - 1)
    return s.emit("permute", (s.given(n),), at.Permute(order), part=f"batch_{side}")[0]


def einsum(s: Site) -> None:
    """Einsum."""
    known = [known for known in s.inputs if known is not None]
    s.emit("einsum", known, at.Einsum(s.text("equation").replace(" ", "")))


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "MatMul"): matmul,
    ("", "Gemm"): gemm,
    ("", "Einsum"): einsum,
    ("com.microsoft", "FusedMatMul"): fused_matmul,
    ("com.microsoft", "FusedMatMulActivation"): fused_matmul,
    ("com.microsoft", "TransposeMatMul"): fused_matmul,
}
