"""Every rule against a loop that does its arithmetic, and against onnxruntime, which runs it."""

from __future__ import annotations

from itertools import product

import pytest

from layerscope.graph import attributes as at
from layerscope.graph.types import elements
from layerscope.ops import SPECS
from tests.brute import BRUTE, CASES, linalg, search
from tests.brute.attention import cache_shape
from tests.brute.case import Case, moved, window
from tests.brute.engine import Model, farthest
from tests.brute.linear import letters
from tests.brute.onnx_models import MODELS

# Rules that cannot be tested one way or the other, and why.
BOUND = "a bound on what data decides: by hand in test_caffe_detectors"
OWN = "counted as its owner says: in test_torch_api"
ITERATED = "a lower bound of what numbers decide: in test_torch_coverage"
COMPLEX = "of complex numbers, which the loops have none of: in test_torch_coverage"
NOT_COUNTED = {
    "custom": OWN,
    "proposals": BOUND,
    "detections": BOUND,
    **dict.fromkeys(("svd", "eig", "eigh", "matrix_exp"), ITERATED),
    **dict.fromkeys(("fft", "complex", "view"), COMPLEX),
}
NO_OPERATOR = "ONNX has no operator for it"
NOT_RUN = {
    **dict.fromkeys(linalg.BRUTE.keys() - {"det"}, NO_OPERATOR),
    **dict.fromkeys(search.BRUTE.keys() - {"top_k", "cum_sum", "cum_prod"}, NO_OPERATOR),
    **dict.fromkeys(("special", "binary_cross_entropy", "huber", "smooth_l1"), NO_OPERATOR),
    "psroi_pool": "no operator, nor a few of them, has its bins",
    "random": "drawn anew at every run",
    **NOT_COUNTED,
}

every_case = pytest.mark.parametrize("case", CASES, ids=str)


@every_case
def test_counts_are_those_of_the_loop(case: Case) -> None:
    run = case.run()
    made = BRUTE[case.op](run)
    assert case.call.outputs == tuple(y.shape for y in made)
    assert SPECS[case.op].ops(case.call) == run.tally.ops()


@every_case
def test_shape_and_numbers_are_those_of_onnxruntime(case: Case) -> None:
    if case.op in NOT_RUN:
        pytest.skip(NOT_RUN[case.op])
    run = case.run()
    made = BRUTE[case.op](run)
    model = Model(case.attributes, run.inputs, run.params, case.whole)
    written = MODELS[case.op](model)
    results = model.run((written,) if isinstance(written, str) else written)
    assert case.call.outputs == tuple(shape for shape, _ in results)
    for ours, (_, theirs) in zip(made, results, strict=True):
        assert farthest(ours.values(), theirs) < 1e-5


# That their shapes are right, onnxruntime shows: it refuses any other, and what it has no use for.
ROLES = {
    "conv": {"weight": "weight", "bias": "bias"},
    "conv_transpose": {"weight": "weight", "bias": "bias"},
    "linear": {"weight": "weight", "bias": "bias"},
    "deform_conv": {"weight": "weight", "bias": "bias"},
    "batch_norm": {
        "weight": "scale",
        "bias": "bias",
        "running_mean": "statistic",
        "running_var": "statistic",
    },
    "layer_norm": {"weight": "scale", "bias": "bias"},
    "group_norm": {"weight": "scale", "bias": "bias"},
    "l2_norm": {"weight": "scale"},
    "scale": {"weight": "scale", "bias": "bias"},
    "bias": {"bias": "bias"},
    "caffe_lstm": {"weight_x": "weight", "bias": "bias", "weight_h": "weight"},
    "caffe_rnn": {
        "weight_x": "weight",
        "bias": "bias",
        "weight_h": "weight",
        "weight_o": "weight",
        "bias_o": "bias",
    },
    "prelu": {"weight": "slope"},
    "embedding_bag": {"weight": "embedding"},
    "instance_norm": {"weight": "scale", "bias": "bias"},
    "rms_norm": {"weight": "scale"},
    "embedding": {"weight": "embedding"},
    "table": {"weight": "embedding"},
    "quantize": {"scale": "statistic", "zero_point": "statistic"},
    "dequantize": {"scale": "statistic", "zero_point": "statistic"},
}
RECURRENT = ("rnn", "lstm", "gru")


@every_case
def test_params_have_the_role_they_play(case: Case) -> None:
    roles = _recurrent_roles(case.attributes) if case.op in RECURRENT else ROLES.get(case.op, {})
    if getattr(case.attributes, "static", False):
        roles = {**roles, "weight_static": "weight"}
    params = SPECS[case.op].params(case.call)
    assert {p.name: p.role for p in params} == {
        name: role for name, role in roles.items() if name in _wanted(case)
    }
    assert all(p.learnable == (p.role != "statistic") for p in params)
    assert not any("." in p.name for p in params)  # the last dot of a storage ends a node's name


def _recurrent_roles(told: at.Recurrent) -> dict[str, str]:
    """By torch's names: two matrices a layer and direction, two biases, and a projection."""
    kinds = {"weight_ih": "weight", "weight_hh": "weight"}
    kinds |= {"bias_ih": "bias", "bias_hh": "bias"} if told.bias else {}
    kinds |= {"weight_hr": "weight"} if told.projection else {}
    kinds |= {"peephole": "weight"} if told.peepholes else {}
    tails = ["", "_reverse"] if told.bidirectional else [""]
    return {
        f"{kind}_l{layer}{tail}": role
        for layer in range(told.layers)
        for tail in tails
        for kind, role in kinds.items()
    }


DEFAULTS = {"scale": at.Scale(), "l2_norm": at.L2Norm(), "instance_norm": at.InstanceNorm()}


def _wanted(case: Case) -> set[str]:
    """The params that an op has under what it was told."""
    if case.op in RECURRENT:
        return set(_recurrent_roles(case.attributes))
    told = case.attributes or DEFAULTS.get(case.op)
    names = set(ROLES.get(case.op, ()))
    if getattr(told, "static", False):
        names.add("weight_static")
    if case.op in ("scale", "bias") and len(case.inputs) == 2:
        names -= {"weight"} if case.op == "scale" else {"bias"}
    if SPECS[case.op].arrays:  # the first of them are given
        names -= set(list(ROLES[case.op])[: len(case.inputs) - 1])
    if getattr(told, "affine", True) is False or getattr(told, "scale", True) is False:
        names -= {"weight", "bias"}
    if getattr(told, "bias", True) is False:
        names -= {"bias"}
    return names


PRODUCTS = ("conv", "conv_transpose", "deform_conv", "linear", "matmul", "affine_grid")
UNROLLED = ("caffe_lstm", "caffe_rnn")
FACTORED = (
    "lu", "slogdet", "inverse", "solve", "lu_solve", "triangular_solve", "cholesky",
    "cholesky_solve", "qr", "householder_product",
)  # fmt: skip
NO_ONE_PRODUCT = dict.fromkeys(
    (*RECURRENT, *UNROLLED, *FACTORED), "products of unlike sizes, step after step"
)


def _parts_of_products(case: Case) -> tuple[int, int] | None:
    """Which part of all products the GEMM of a case is, as a fraction; None if it has none."""
    if case.op == "attention":  # the first of two, over the size of keys; the other over values'
        told: at.Attention = case.attributes
        heads = (told.kv_heads or told.heads) if len(case.inputs[0]) == 3 else 1
        key, value = case.inputs[1][-1] // heads, case.inputs[2][-1] // heads
        return key, key + value
    if case.op == "einsum":  # of two operands that sum over letters of both, and of none alone
        terms, right = letters(case.attributes.equation, case.inputs)
        if len(terms) != 2:
            return None
        gone = (set(terms[0]) | set(terms[1])) - set(right)
        return (1, 1) if gone and gone <= set(terms[0]) & set(terms[1]) else None
    return (1, 1) if case.op in PRODUCTS else None


@every_case
def test_a_gemm_has_as_many_products_as_the_loop(case: Case) -> None:
    run = case.run()
    BRUTE[case.op](run)
    gemm = SPECS[case.op].gemm(case.call)
    macs = run.tally.ops().mac
    part = _parts_of_products(case)
    assert (gemm is not None) == (part is not None)
    if case.op != "einsum":
        assert (macs > 0) == (part is not None or case.op in NO_ONE_PRODUCT)
    if gemm is not None and part is not None:
        assert gemm.m * gemm.n * gemm.k * gemm.count * part[1] == macs * part[0]


VIEWS = ("reshape", "flatten", "identity", "dropout", "select")
PARTIAL = ("slice", "crop", "gather", "gather_nd", "embedding")  # read only what they give on
SHAPES_ONLY = ("positions", "prior_box", "shape_of", "random")


@every_case
def test_elements_read_and_written(case: Case) -> None:
    """All of every input once, all of every output once; a view moves nothing."""
    rule = SPECS[case.op]
    read = sum(map(elements, case.inputs))
    written = sum(map(elements, case.call.outputs))
    if case.op in VIEWS or case.op == "constant":
        read = written = 0
    if case.op in PARTIAL:
        read = written
    if case.op in ("gather", "gather_nd", "embedding"):  # and the indices
        read += elements(case.inputs[0 if case.op == "embedding" else 1])
    if case.op == "embedding_bag":  # and the rows that are looked up
        read += case.inputs[0][0] * case.attributes.features
    if case.op in SHAPES_ONLY:
        read = 0
    if case.op == "interp":  # of a second input only the shape matters
        read = elements(case.inputs[0])
    if case.op == "table":  # the array, not what it stands beside
        read = elements(case.attributes.shape)
    if case.op == "attention":  # and keys and values of earlier steps
        read += sum(elements(cache_shape(case.attributes, shape)) for shape in case.inputs[1:3])
    if case.op == "insert":  # in place: only the part is read
        read, written = elements(case.inputs[1]), 0
    assert rule.view == (case.op in (*VIEWS, "insert"))
    assert moved(case.call, rule) == (read, written)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("pad", [0, 1, 2])
def test_roundings_that_no_engine_has(kernel: int, step: int, pad: int) -> None:
    """Caffe's and the plain ceiling, position by position: `placements` in brute/convolution."""
    for size in range(max(kernel - 2 * pad, 1), 12):
        told = [window([kernel], step, pad, 1, rounding) for rounding in ("ceil", "caffe")]
        for asked in told:
            case = Case("max_pool", at.Pool(asked), ((1, 1, size),))
            run = case.run()
            assert (BRUTE["max_pool"](run)[0].shape,) == case.call.outputs
            assert SPECS["max_pool"].ops(case.call) == run.tally.ops()


def _caffe(size: int, kernel: int, step: int, pad: int) -> int:
    """As pooling_layer.cpp has it."""
    pooled = -(-(size + 2 * pad - kernel) // step) + 1
    if pad and (pooled - 1) * step >= size + pad:
        pooled -= 1
    return pooled


@pytest.mark.parametrize(
    "size, kernel, step, pad, rounding, length",
    [
        (6, 3, 2, 0, "floor", 2),
        (6, 3, 2, 0, "ceil", 3),  # the last hangs over by one
        (5, 1, 3, 0, "ceil", 3),  # the last starts past the end …
        (5, 1, 3, 0, "caffe", 3),  # … which Caffe allows where nothing is padded
        (5, 1, 3, 0, "torch", 2),  # and torch never
        (3, 2, 2, 1, "ceil", 3),
        (3, 2, 2, 1, "caffe", 2),  # starts in the end padding
        (3, 2, 2, 1, "torch", 2),
        (7, 3, 2, 1, "caffe", 4),
    ],
)
def test_roundings_by_hand(
    size: int, kernel: int, step: int, pad: int, rounding: at.Rounding, length: int
) -> None:
    assert window([kernel], step, pad, 1, rounding).slide((size,)) == (length,)
    if rounding == "caffe":
        assert _caffe(size, kernel, step, pad) == length


def test_caffe_clips_every_axis_once_any_is_padded() -> None:
    """Its condition is pad_h or pad_w, and then both are clipped."""
    asked = window([1, 2], [3, 2], [(0, 0), (1, 1)], 1, "caffe")
    assert asked.slide((5, 3)) == (2, 2)


@pytest.mark.parametrize("size, step", [(2, 2), (1, 3)])
@pytest.mark.parametrize("rounding", ["ceil", "caffe", "torch"])
def test_a_ceiling_keeps_even_a_first_placement_that_hangs_over(
    rounding: at.Rounding, size: int, step: int
) -> None:
    """ceil((size − 3) / step) + 1 is 1 here: so in Caffe, in torch and in onnxruntime."""
    case = Case("max_pool", at.Pool(window([3], step, 0, 1, rounding)), ((1, 1, size),))
    run = case.run()
    model = Model(case.attributes, run.inputs)
    ((shape, numbers),) = model.run([str(MODELS["max_pool"](model))])
    assert (shape, numbers) == ((1, 1, 1), [max(run.x.values())])
    assert case.call.outputs == (shape,)


def test_ceil_mode_is_torchs_rounding_everywhere() -> None:
    """A placement that starts in the end padding is dropped by onnxruntime 1.31 as by torch."""
    for k, step, d, begin, end, size in product((2, 3), (1, 2, 3, 4), (1, 2), (0, 1), (0, 1),
                                                range(3, 9)):  # fmt: skip
        if size + begin + end < (k - 1) * d + 1:
            continue
        told = window([k], step, [(begin, end)], d, "torch")
        case = Case("max_pool", at.Pool(told), ((1, 1, size),))
        run = case.run()
        model = Model(case.attributes, run.inputs)
        ((shape, numbers),) = model.run([str(MODELS["max_pool"](model))])
        assert case.call.outputs == (shape,)
        assert BRUTE["max_pool"](run)[0].values() == numbers


def test_same_transposed_below_the_stride_is_still_input_times_stride() -> None:
    """ONNX says input · stride, and so does TensorFlow. onnxruntime clamps the (negative) padding
    at nought and gives (input − 1)·stride + extent: 5 here, against its own specification."""
    case = Case("conv_transpose", at.TransposedConv(window([1], 2, "same_upper"), 1), ((1, 1, 3),))
    assert case.call.y == (1, 1, 6)
    run = case.run()
    assert BRUTE[case.op](run)[0].shape == (1, 1, 6)
    model = Model(case.attributes, run.inputs, run.params)
    ((shape, _),) = model.run([str(MODELS[case.op](model))])
    assert shape == (1, 1, 5)


def test_every_rule_was_counted_and_run(capsys: pytest.CaptureFixture[str]) -> None:
    tested = {case.op for case in CASES}
    counted = {op for op in SPECS if op in tested and op in BRUTE}
    ran = {op for op in SPECS if op in tested and op in MODELS}
    assert tested <= set(SPECS)
    assert set(SPECS) - counted == set(NOT_COUNTED)
    assert set(SPECS) - ran == set(NOT_RUN)
    with capsys.disabled():
        print(
            f"\n{len(counted)} of {len(SPECS)} rules counted against a loop, {len(ran)} run in "
            f"onnxruntime, in {len(CASES)} cases"
        )
