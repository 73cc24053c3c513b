"""Shape arithmetic: every folded operator against onnx's reference evaluator, and whole chains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID251
import pytest
from numpy.random import Generator  # noqa: TID251
from onnx import helper  # noqa: TID251
from onnx.reference import ReferenceEvaluator  # noqa: TID251

import layerscope
from layerscope.formats.onnx.arrays import NotFoldable, SmallArray, cast
from layerscope.formats.onnx.folding import EVALUATE
from tests.formats.onnx.onnx_contrib import DTYPES
from tests.formats.onnx.onnx_files import array, graph, model, node, zeros

Case = tuple[list[Any], dict[str, Any], int]  # inputs, None for one left out; attributes; outputs
INTS = ("int64", "int32", "uint8")


def shape_of(r: Generator, least: int = 0, most: int = 3) -> tuple[int, ...]:
    return tuple(int(n) for n in r.integers(1, 5, r.integers(least, most + 1)))


def numbers(r: Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "bool":
        return r.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.startswith("u") else -9
    found = r.integers(low, 10, shape)
    return (found * 0.25).astype(dtype) if dtype.startswith("float") else found.astype(dtype)


def some(r: Generator, dtypes: tuple[str, ...]) -> str:
    return str(r.choice(dtypes))


def pair(*dtypes: str, nonzero: bool = False) -> Callable[[Generator], Case]:
    """Two arrays that broadcast."""

    def make(r: Generator) -> Case:
        dtype, shape = some(r, dtypes), shape_of(r)
        other = tuple(n if r.random() < 0.7 else 1 for n in shape)[int(r.integers(0, 2)) :]
        left, right = numbers(r, shape, dtype), numbers(r, other, dtype)
        return [left, np.where(right == 0, 3, right).astype(dtype) if nonzero else right], {}, 1

    return make


def single(*dtypes: str, low: float | None = None, **attributes: Any) -> Callable[..., Case]:
    def make(r: Generator) -> Case:
        x = numbers(r, shape_of(r), some(r, dtypes))
        return [x if low is None else (np.abs(x) + low).astype(x.dtype)], dict(attributes), 1

    return make


def bounded(r: Generator) -> Case:
    x = (r.random(shape_of(r, 1)) * 1.8 - 0.9).astype("float32")
    return [x], {}, 1


def reduced(*dtypes: str, positive: bool = False) -> Callable[[Generator], Case]:
    def make(r: Generator) -> Case:
        x = numbers(r, shape_of(r, 1), some(r, dtypes))
        x = np.abs(x) + np.array(1, x.dtype) if positive else x
        axes = np.array([int(r.integers(-x.ndim, x.ndim))])
        more = {"keepdims": int(r.integers(0, 2))}
        return [x, *([axes] if r.random() < 0.7 else [])], more, 1

    return make


def clip(r: Generator) -> Case:
    dtype = some(r, (*INTS, "float32"))
    low, high = np.array(2, dtype), np.array(5, dtype)
    return [
        numbers(r, shape_of(r), dtype), low if r.random() < 0.7 else None,
        high if r.random() < 0.7 else None,
    ], {}, 1  # fmt: skip


def cast_case(r: Generator) -> Case:
    kinds = ("float32", "float16", "float64", "int64", "int32", "int8", "uint8", "bool", "int16")
    x = numbers(r, shape_of(r), some(r, kinds))
    x = np.abs(x) if x.dtype.kind == "f" else x  # negative floats as unsigned are undefined
    to = helper.np_dtype_to_tensor_dtype(np.dtype(some(r, kinds)))
    return [x], {"to": to}, 1


def gather(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), some(r, (*INTS, "float32")))
    axis = int(r.integers(-x.ndim, x.ndim))
    size = x.shape[axis]
    return [x, r.integers(-size, size, shape_of(r, 0, 2))], {"axis": axis}, 1


def gather_elements(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), "int64")
    axis = int(r.integers(0, x.ndim))
    shape = [int(r.integers(1, 5)) if n == axis else m for n, m in enumerate(x.shape)]
    return [x, r.integers(-x.shape[axis], x.shape[axis], shape)], {"axis": axis}, 1


def gather_nd(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 2), "int64")
    batch = int(r.integers(0, x.ndim - 1))
    depth = int(r.integers(1, x.ndim - batch + 1))
    lead = (*x.shape[:batch], int(r.integers(1, 4)))
    index = np.stack([r.integers(0, x.shape[batch + n], lead) for n in range(depth)], -1)
    return [x, index], {"batch_dims": batch}, 1


def scatter_elements(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1, 2), "int64")
    axis = int(r.integers(0, x.ndim))
    shape = tuple(1 if n == axis else int(r.integers(1, m + 1)) for n, m in enumerate(x.shape))
    index = r.integers(0, x.shape[axis], shape)
    how = some(r, ("none", "add", "mul", "max", "min"))
    return [x, index, numbers(r, shape, "int64")], {"axis": axis, "reduction": how}, 1


def scatter(r: Generator) -> Case:
    inputs, attributes, _ = scatter_elements(r)
    return inputs, {"axis": attributes["axis"]}, 1


def scatter_nd(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), "int64")
    depth = int(r.integers(1, x.ndim + 1))
    places = [(int(r.integers(0, x.shape[0])), *[0] * (depth - 1))]
    index = np.array(places, np.int64)
    how = some(r, ("none", "add", "mul", "max", "min"))
    return [x, index, numbers(r, (1, *x.shape[depth:]), "int64")], {"reduction": how}, 1


def concat(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), "int64")
    axis = int(r.integers(-x.ndim, x.ndim))
    return [x, x, x], {"axis": axis}, 1


def slice_(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), "int64")
    axis = int(r.integers(-x.ndim, x.ndim))
    step = int(r.choice([-2, -1, 1, 2]))
    start, end = (int(n) for n in r.choice([-100, -2, -1, 0, 1, 2, 100], 2))
    return [x, *(np.array([n]) for n in (start, end, axis, step))], {}, 1


def split(r: Generator) -> Case:
    x = numbers(r, (int(r.integers(2, 6)), 2), "int64")
    first = int(r.integers(0, x.shape[0] + 1))
    return [x, np.array([first, x.shape[0] - first])], {"axis": 0}, 2


def reshape(r: Generator) -> Case:
    x = numbers(r, (2, 3, 4), "int64")
    return [x, np.array([[0, -1], [-1], [4, 0, 2], [24, 1], [0, 0, 4]][r.integers(0, 5)])], {}, 1


def squeeze(r: Generator) -> Case:
    x = numbers(r, (1, int(r.integers(1, 3)), 1), "int64")
    return [x, *([np.array([0, -1])] if r.random() < 0.6 else [])], {}, 1


def unsqueeze(r: Generator) -> Case:
    return (
        [numbers(r, shape_of(r, 1, 2), "int64"), np.array([[0], [-1], [0, 2]][r.integers(3)])],
        {},
        1,
    )


def range_(r: Generator) -> Case:
    dtype = some(r, ("int64", "int32", "float32"))
    step = int(r.choice([-3, -1, 1, 2]))
    given = [int(r.integers(-5, 6)), int(r.integers(-5, 6)), step]
    return [np.array(n, dtype) for n in given], {}, 1


def filled(r: Generator) -> Case:
    value = helper.make_tensor("v", 7, [1], [int(r.integers(-5, 6))])
    return [np.array(shape_of(r), np.int64)], {"value": value} if r.random() < 0.7 else {}, 1


def expand(r: Generator) -> Case:
    x = numbers(r, (int(r.integers(1, 3)), 1), "int64")
    return [x, np.array([2, x.shape[0], 3])], {}, 1


def tile(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), "int64")
    return [x, r.integers(0, 3, x.ndim)], {}, 1


def pad(r: Generator) -> Case:
    x = numbers(r, (3, 4), some(r, ("int64", "float32")))
    mode = some(r, ("constant", "edge", "reflect", "wrap"))
    more = [np.array(7, x.dtype) if r.random() < 0.5 else None]
    if r.random() < 0.4:
        return [x, r.integers(0, 3, 2), more[0], np.array([-1])], {"mode": mode}, 1
    return [x, r.integers(0, 3, 4), *more], {"mode": mode}, 1


def transpose(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), "int64")
    return [x], {"perm": [int(n) for n in r.permutation(x.ndim)]}, 1


def trilu(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 2), "int64")
    k = [np.array(int(r.integers(-3, 4)))] if r.random() < 0.7 else []
    return [x, *k], {"upper": int(r.integers(0, 2))}, 1


def eye(r: Generator) -> Case:
    return [numbers(r, (int(r.integers(1, 5)), 3), "int32")], {"k": int(r.integers(-3, 4))}, 1


def top_k(r: Generator) -> Case:
    shape = shape_of(r, 1)
    x = r.permutation(int(np.prod(shape))).reshape(shape).astype("float32")
    axis = int(r.integers(-x.ndim, x.ndim))
    k = np.array([int(r.integers(1, x.shape[axis] + 1))])
    return [x, k], {"axis": axis, "largest": int(r.integers(0, 2))}, 2


def one_hot(r: Generator) -> Case:
    x = r.integers(-4, 4, shape_of(r, 1, 2))
    axis = int(r.integers(-x.ndim - 1, x.ndim + 1))
    return [x, np.array(4), np.array([2, 5])], {"axis": axis}, 1


def compress(r: Generator) -> Case:
    x = numbers(r, (2, 3), "int64")
    return [x, np.array([True, False])], {"axis": 0} if r.random() < 0.5 else {}, 1


def unique(r: Generator) -> Case:
    x = r.integers(0, 3, (int(r.integers(1, 6)), 2))
    return [x], {"axis": 0, "sorted": 1} if r.random() < 0.5 else {"sorted": 1}, 4


def cumulated(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), some(r, ("int64", "float32")))
    flags = {"exclusive": int(r.integers(0, 2)), "reverse": int(r.integers(0, 2))}
    return [x, np.array(int(r.integers(-x.ndim, x.ndim)))], flags, 1


def best(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), some(r, ("int64", "float32")))
    more = {"axis": int(r.integers(-x.ndim, x.ndim)), "keepdims": int(r.integers(0, 2))}
    return [x], {**more, "select_last_index": int(r.integers(0, 2))}, 1


def matmul(r: Generator) -> Case:
    k = int(r.integers(1, 4))
    left = [(k,), (2, k), (3, 2, k), (1, 2, k)][r.integers(0, 4)]
    right = [(k,), (k, 3), (3, k, 2)][r.integers(0, 3)]
    return [numbers(r, left, "int64"), numbers(r, right, "int64")], {}, 1


def soft(r: Generator) -> Case:
    x = numbers(r, shape_of(r, 1), "float32")
    return [x], {"axis": int(r.integers(-x.ndim, x.ndim))}, 1


def many(r: Generator) -> Case:
    [left, right], _, _ = pair("float32")(r)
    return [left, right, left][: int(r.integers(1, 4))], {}, 1


def shifts(r: Generator) -> Case:
    dtype = some(r, ("uint8", "uint32"))
    x = numbers(r, (4,), dtype)
    return [x, numbers(r, (4,), dtype) % 8], {"direction": some(r, ("LEFT", "RIGHT"))}, 1


def where(r: Generator) -> Case:
    [left, right], _, _ = pair("int64", "float32")(r)
    return [numbers(r, left.shape, "bool"), left, right], {}, 1


def modulo(r: Generator) -> Case:
    inputs, _, _ = pair("int64", "int32", nonzero=True)(r)
    return inputs, {"fmod": int(r.integers(0, 2))}, 1


def power(r: Generator) -> Case:
    x = numbers(r, shape_of(r), "int64")
    return [x, r.integers(0, 4, x.shape)], {}, 1


def blocks(r: Generator) -> Case:
    return [numbers(r, (1, 8, 2, 3), "int64")], {"blocksize": 2, "mode": some(r, ("DCR", "CRD"))}, 1


def crop_pad(r: Generator) -> Case:
    return [numbers(r, (5, 4), "float32"), r.integers(1, 8, 2)], {}, 1


def reverse(r: Generator) -> Case:
    lengths = r.integers(1, 5, 3)
    return [numbers(r, (4, 3), "float32"), lengths], {"time_axis": 0, "batch_axis": 1}, 1


def divided(r: Generator) -> Case:
    """Quotients of which integers are positive: the reference evaluator rounds others down."""
    [left, right], _, _ = pair("int64", "float32", nonzero=True)(r)
    return [left, right] if left.dtype.kind == "f" else [np.abs(left), np.abs(right)], {}, 1


FLOAT, BOTH = ("float32", "float64"), (*INTS, "float32", "float64")
WIDE = ("int64", *FLOAT)
CASES: dict[str, Callable[[Generator], Case]] = {
    **dict.fromkeys(("Add", "Sub", "Mul"), pair(*BOTH)),
    **dict.fromkeys(("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"), pair(*BOTH)),
    **dict.fromkeys(("Max", "Min", "Sum", "Mean"), many),
    **dict.fromkeys(("And", "Or", "Xor"), pair("bool")),
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), pair("int64", "uint8")),
    **dict.fromkeys(("Neg", "Abs", "Sign"), single("int64", "int32", "float32")),
    **dict.fromkeys(("Floor", "Ceil", "Round"), single("float32", "float64")),
    **dict.fromkeys(("Identity", "Size", "Shape", "Flatten"), single(*BOTH)),
    **dict.fromkeys(("Sqrt", "Log", "Reciprocal"), single(*FLOAT, low=0.5)),
    **dict.fromkeys(("Exp", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Tanh", "Erf",
                     "Sigmoid", "Softplus", "LeakyRelu", "Elu", "Celu", "Selu",
                     "HardSigmoid", "HardSwish", "Mish", "Gelu", "ThresholdedRelu", "Shrink"),
                    single("float32")),
    **dict.fromkeys(("Asin", "Acos", "Atanh"), bounded),
    **dict.fromkeys(("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin"), reduced(*WIDE)),
    **dict.fromkeys(("ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare"), reduced(*FLOAT)),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), reduced(*FLOAT, positive=True)),
    **dict.fromkeys(("ArgMax", "ArgMin"), best),
    **dict.fromkeys(("CumSum", "CumProd"), cumulated),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), soft),
    "Acosh": single("float32", low=1.0), "Relu": single("float32", "int64"),
    "Softsign": bounded, "Swish": single("float32"), "PRelu": pair("float32"),
    "Not": single("bool"),
    "BitwiseNot": single("int64", "uint8"), "BitShift": shifts, "IsNaN": single("float32"),
    "IsInf": single("float32"), "Div": divided, "Mod": modulo, "Pow": power, "Where": where,
    "Clip": clip, "Cast": cast_case, "CastLike": pair("int64", "float32"),
    "Dropout": single("float32"), "Gather": gather, "GatherElements": gather_elements,
    "GatherND": gather_nd, "Scatter": scatter, "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd, "NonZero": single("int64"), "TopK": top_k, "OneHot": one_hot,
    "Compress": compress, "Unique": unique, "Concat": concat, "Slice": slice_, "Split": split,
    "Reshape": reshape, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Transpose": transpose,
    "Expand": expand, "Tile": tile, "Pad": pad, "Range": range_, "ConstantOfShape": filled,
    "Trilu": trilu, "EyeLike": eye, "DepthToSpace": blocks, "SpaceToDepth": blocks,
    "CenterCropPad": crop_pad, "ReverseSequence": reverse, "MatMul": matmul,
}  # fmt: skip
OPSETS = {"Swish": 24, "CumProd": 26}
SAME_AS = {"Scatter": "ScatterElements"}  # what the reference evaluator no longer has


def known(array_: np.ndarray | None) -> SmallArray | None:
    if array_ is None:
        return None
    return SmallArray(
        array_.shape, array_.ravel().tolist(), DTYPES.get(array_.dtype.name, array_.dtype.name)
    )


def test_every_folded_operator_has_a_case() -> None:
    assert set(CASES) == set(EVALUATE)


@pytest.mark.parametrize("op", sorted(CASES))
def test_folded_as_the_reference_evaluator_computes_it(op: str) -> None:
    random = np.random.default_rng(sum(map(ord, op)))
    opset = OPSETS.get(op, 22)
    for _ in range(40):
        inputs, attributes, outputs = CASES[op](random)
        names = ["" if x is None else f"x{n}" for n, x in enumerate(inputs)]
        if op == "SpaceToDepth":
            inputs, attributes = [np.arange(48).reshape(1, 3, 4, 4)], {"blocksize": 2}
        made = [f"y{n}" for n in range(outputs)]
        one = helper.make_node(SAME_AS.get(op, op), names, made, **attributes)
        feeds = {name: x for name, x in zip(names, inputs, strict=True) if x is not None}
        proto = helper.make_model(
            helper.make_graph(
                [one], "g",
                [helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
                ) for name, x in feeds.items()],
                [helper.make_empty_tensor_value_info(name) for name in made],
            ),
            opset_imports=[helper.make_opsetid("", opset)],
        )  # fmt: skip
        with np.errstate(all="ignore"):
            wanted = ReferenceEvaluator(proto).run(None, feeds)
        told: dict[str, Any] = {**attributes, "outputs": outputs, "opset": opset}
        if "value" in told:
            told["value"] = SmallArray((1,), list(told["value"].int64_data), "int64")
        found = EVALUATE[op](told, [known(x) for x in inputs])
        for ours, theirs in zip(found, wanted, strict=False):
            theirs = np.asarray(theirs)
            assert ours.shape == theirs.shape, (op, attributes, inputs)
            assert ours.dtype == DTYPES.get(theirs.dtype.name, theirs.dtype.name), op
            values = np.array(ours.values, theirs.dtype).reshape(theirs.shape)
            near = np.testing.assert_allclose if theirs.dtype.kind == "f" else None
            if near is not None:
                near(values, theirs, rtol=3e-3 if theirs.itemsize == 2 else 2e-5, atol=1e-5)
            else:
                assert (values == theirs).all(), (op, attributes, inputs, values, theirs)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (300, "uint8", 44), (-1, "uint8", 255), (200, "int8", -56), (3.9, "int32", 3),
        (2**31, "int32", -(2**31)), (1 / 3, "bf16", 0.333984375), (1e6, "fp16", float("inf")),
        (-3.7, "int64", -3), (2**63 - 1, "int64", 2**63 - 1),
    ],
)  # fmt: skip
def test_numbers_of_narrow_types(value: float, dtype: str, expected: float) -> None:
    assert cast(value, dtype) == expected


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, float("nan"), float("inf"), 1e300])
def test_numbers_that_an_int64_does_not_hold(value: float) -> None:
    with pytest.raises(NotFoldable):
        cast(value, "int64")


def test_negative_pads_cut() -> None:
    x = SmallArray((2, 3), [0, 1, 2, 3, 4, 5], "int64")
    [made] = EVALUATE["Pad"]({"pads": (0, -1, 1, 0), "value": 7.0}, [x])
    assert (made.shape, made.values) == ((3, 2), [1, 2, 4, 5, 7, 7])


def test_integers_are_divided_towards_zero() -> None:
    given = [SmallArray((4,), [7, -7, 7, -7], "int64"), SmallArray((4,), [2, 2, -2, -2], "int64")]
    assert EVALUATE["Div"]({}, given)[0].values == [3, -3, -3, 3]


# -- chains, as exporters write them


def test_padding_that_is_clipped_at_zero(tmp_path: Path) -> None:
    """The "same" padding of TensorFlow as PyTorch's TorchScript exporter writes it."""
    nodes = [
        node("s = Shape x"), node("h = Gather s two"), node("hf = Cast h", to=1),
        node("q = Div hf stride"), node("c = Ceil q"), node("ci = Cast c", to=7),
        node("less = Sub ci one"), node("by = Mul less two"), node("more = Add by three"),
        node("pads = Sub more h"), node("low = Clip pads zero"),
        node("rest = Relu low"), node("p1 = Unsqueeze rest axis"),
        node("p = Concat z2 p1 p1 z2 p1 p1", axis=0), node("padded = Pad x p"),
        node("y = Conv padded w", strides=[2, 2]),
    ]  # fmt: skip
    stored = [
        array("two", 2), array("one", 1), array("three", 3), array("zero", 0), array("axis", [0]),
        array("z2", [0, 0]), array("stride", 2.0, "float32"), zeros("w", 4, 3, 3, 3),
    ]  # fmt: skip
    path = tmp_path / "same.onnx"
    path.write_bytes(model(nodes, "x 1x3x224x224", "y", stored).SerializeToString())
    report = layerscope.analyze(str(path))
    assert not report.coverage.unknown
    assert report.tensors["y"].shape == (1, 4, 112, 112)


def test_weights_of_a_weighted_sum_stay_parameters(tmp_path: Path) -> None:
    """A small float array that a Relu reads may be learned, and is not folded away."""
    nodes = [
        node("r = Relu gains"), node("a = Gather r zero"), node("b = Gather r one"),
        node("u = Mul x a"), node("v = Mul x b"), node("y = Add u v"),
    ]  # fmt: skip
    stored = [array("gains", [0.5, 0.25], "float32"), array("zero", 0), array("one", 1)]
    path = tmp_path / "gains.onnx"
    path.write_bytes(model(nodes, stored=stored).SerializeToString())
    assert layerscope.analyze(str(path)).total_params == 2


def test_numbers_pass_through_a_branch_that_is_known(tmp_path: Path) -> None:
    then = graph([node("t = Add n n")], "", "t () int64")
    other = graph([node("e = Identity n")], "", "e () int64")
    nodes = [
        node("s = Shape x"), node("n = Gather s zero"), node("odd = Equal n zero"),
        node("k = If odd", then_branch=then, else_branch=other),
        node("k1 = Unsqueeze k axis"), node("sizes = Concat k1 rest", axis=0),
        node("y = Reshape x sizes"),
    ]  # fmt: skip
    stored = [array("zero", 0), array("axis", [0]), array("rest", [-1])]
    path = tmp_path / "if.onnx"
    path.write_bytes(model(nodes, "x 2x6", "y", stored).SerializeToString())
    report = layerscope.analyze(str(path))
    assert not report.coverage.unknown
    assert report.tensors["y"].shape == (2, 6)
