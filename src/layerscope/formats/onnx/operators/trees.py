"""Classical learning (ai.onnx.ml): what was learned stands in attributes, not in arrays."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.operators.depths import depths
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role, Shape

BOUND = "a bound: every tree followed to its deepest leaf"


def told_param(s: Site, name: str, shape: Shape, role: Role = "weight") -> Param:
    """Numbers of an attribute as an array of the node's own."""
    return Param(name, shape, role, "fp32", f"{s.label}.{name}")


def _listed(s: Site, name: str, role: Role = "weight") -> list[Param]:
    """An attribute of numbers, also in its form as a tensor."""
    for key in (name, f"{name}_as_tensor"):
        if s.count(key):
            return [told_param(s, key, (s.count(key),), role)]
    return []


def _rows(s: Site) -> tuple[Known, int, int]:
    """The input as samples x features."""
    x = s.given(0)
    shape = s.shape(0)
    if len(shape) == 1:
        told = at.DeclaredOutputs(((1, shape[0]),), (x.dtype,))
        return s.emit("select", (x,), told, part="row")[0], 1, shape[0]
    if len(shape) != 2:
        raise ShapeError(f"samples of {shape}, expected samples x features")
    return x, shape[0], shape[1]


def _classes(s: Site) -> tuple[int, str]:
    """How many classes there are, and what they are named by."""
    for name, dtype in (
        ("classlabels_strings", "string"), ("classlabels_ints", "int64"),
        ("classlabels_int64s", "int64"),
    ):  # fmt: skip
        if s.count(name):
            return s.count(name), dtype
    return 0, "int64"


TRANSFORMS = {"LOGISTIC": "sigmoid", "SOFTMAX": "softmax", "SOFTMAX_ZERO": "softmax"}


def _transformed(s: Site, made: Known, n: int, *, width: int = 0, part: str = "") -> Known:
    """Scores as they are handed out, the n-th output; two for two classes of one score."""
    op = TRANSFORMS.get(s.text("post_transform", "NONE"))
    kind = s.text("post_transform", "NONE")
    assert made.shape is not None
    wider = width and width != made.shape[-1]
    names = s.operator.outputs[n : n + 1]
    if wider:
        told = at.DeclaredOutputs(((*made.shape[:-1], width),), (made.dtype,))
        last = not op and kind != "PROBIT"
        made = s.emit(
            "select", (made,), told, part=part if last else "both", outputs=names if last else None
        )[0]
        if last:
            return made
    if kind == "PROBIT":
        made = s.emit("erf", (made,), part="probit")[0]
        op = "mul"
    attributes = at.Softmax(-1) if op == "softmax" else None
    return s.emit(op or "identity", (made,), attributes, part=part, outputs=names)[0]


def _chosen(s: Site, scores: Known, dtype: str) -> None:
    """The class of the best score."""
    names = s.operator.outputs[:1]
    if not names or not names[0]:
        return
    best = s.emit("arg_max", (scores,), at.Reduce((-1,)), part="best")[0]
    assert best.shape is not None
    s.told_node("select", (best,), (best.shape,), (dtype,), outputs=names)


def linear_classifier(s: Site) -> None:
    """LinearClassifier: a matrix, intercepts, a class."""
    x, _, features = _rows(s)
    targets = s.count("intercepts") or s.count("coefficients") // max(features, 1)
    if targets < 1 or targets * features > s.count("coefficients"):
        raise ShapeError(f"{s.count('coefficients')} coefficients for {features} features")
    made = _linear(s, x, targets, features)
    classes, dtype = _classes(s)
    width = 2 if targets == 1 and classes in (0, 2) else targets
    scores = _transformed(s, made, 1, width=width, part="scores")
    _chosen(s, scores, dtype)


def linear_regressor(s: Site) -> None:
    """LinearRegressor."""
    x, _, features = _rows(s)
    targets = s.whole("targets", 1)
    if targets < 1 or targets * features != s.count("coefficients"):
        raise ShapeError(f"{s.count('coefficients')} coefficients for {features} x {targets}")
    _transformed(s, _linear(s, x, targets, features), 0)


def _linear(s: Site, x: Known, targets: int, features: int) -> Known:
    held = s.count("coefficients")
    params = [told_param(s, "coefficients", (targets, held // targets))]
    biased = s.count("intercepts") > 0
    if biased:
        params.append(told_param(s, "intercepts", (s.count("intercepts"),), "bias"))
    return s.emit("linear", (x,), at.Linear(targets, bias=biased), params=params, part="linear")[0]


def scaler(s: Site) -> None:
    """Scaler: an offset taken off, a factor; both were read off data."""
    made = _floats(s, s.given(0))
    offset, scale = _listed(s, "offset", "statistic"), _listed(s, "scale", "statistic")
    if offset:
        made = s.emit("sub", (made,), params=offset, part="offset" if scale else "")[0]
    if scale or not offset:
        s.emit("mul" if scale else "identity", (made,), params=scale)


def _floats(s: Site, x: Known) -> Known:
    if x.dtype == "fp32":
        return x
    return s.emit("cast", (x,), at.Cast("fp32"), part="floats")[0]


def normalizer(s: Site) -> None:
    """Normalizer: each sample divided by its largest, its sum or its length."""
    x = _floats(s, s.given(0))
    op = {"MAX": "reduce_max", "L1": "reduce_l1", "L2": "reduce_l2"}[s.text("norm", "MAX")]
    norm = s.emit(op, (x,), at.Reduce((-1,), keep=True), part="norm")[0]
    s.emit("div", (x, norm))


def binarizer(s: Site) -> None:
    """Binarizer: whether above a threshold, as a number."""
    made = s.emit("compare", (s.given(0),), part="compare")[0]
    s.emit("cast", (made,), at.Cast(s.dtype(0)))


def imputer(s: Site) -> None:
    """Imputer: what is missing is put in."""
    x = s.given(0)
    missing = s.emit("compare", (x,), part="missing")[0]
    name = "imputed_value_floats" if s.count("imputed_value_floats") else "imputed_value_int64s"
    put = _listed(s, name, "statistic")
    told = at.DeclaredOutputs(((s.count(name),),), (x.dtype,))
    values = s.emit("constant", (), told, params=put, part="values")[0]
    s.emit("where", (missing, values, x))


def features(s: Site) -> None:
    """ArrayFeatureExtractor: some columns."""
    x, places = s.shape(0), s.given(1)
    s.reader.uses(places)
    count = 1
    for size in s.shape(1):
        count *= size
    shape = (*x[:-1], count) if len(x) > 1 else (1, count)
    s.told_node("select", (s.given(0),), (shape,), (s.dtype(0),))


def vectorizer(s: Site) -> None:
    """FeatureVectorizer: columns side by side, as floats."""
    sides = []
    for n, known in enumerate(s.inputs):
        if known is None or known.shape is None:
            continue
        if len(known.shape) == 1:
            told = at.DeclaredOutputs(((1, known.shape[0]),), (known.dtype,))
            known = s.emit("select", (known,), told, part=f"row{n}")[0]
        if known.dtype != "fp32":
            known = s.emit("cast", (known,), at.Cast("fp32"), part=f"floats{n}")[0]
        sides.append(known)
    s.emit("concat", sides, at.Concat(1))


def label_encoder(s: Site) -> None:
    """LabelEncoder, CategoryMapper: one label for another, looked up."""
    dtype = s.dtype(0)
    for name, kind in (
        ("values_strings", "string"), ("values_int64s", "int64"), ("values_floats", "fp32"),
    ):  # fmt: skip
        if s.count(name):
            dtype = kind
    table = s.attributes.get("values_tensor")
    if table is not None:
        dtype = table.value.dtype
    if s.op == "CategoryMapper" or s.count("classes_strings"):
        dtype = "int64" if s.dtype(0) == "string" else "string"
    s.told_node("select", (s.given(0),), (s.shape(0),), (dtype,))


def one_hot(s: Site) -> None:
    """OneHotEncoder: a new axis, one of the categories set."""
    depth = s.count("cats_int64s") or s.count("cats_strings")
    s.emit("one_hot", (s.given(0),), at.OneHot(depth, -1, "fp32"))


def zip_map(s: Site) -> None:
    """ZipMap: scores with names on, which is no tensor; nothing is worked out."""
    name = s.operator.outputs[0]
    s.env[name] = Known(name, None, s.dtype(0), items=[s.given(0)] if s.given(0).tensor else [])


# -- support vectors ---------------------------------------------------------------------------


def _kernel(s: Site, x: Known, rows: int, features: int) -> tuple[Known, int]:
    """Every sample with every support vector."""
    vectors = s.count("support_vectors") // max(features, 1)
    if vectors < 1 or vectors * features != s.count("support_vectors"):
        raise ShapeError(f"{s.count('support_vectors')} numbers for vectors of {features}")
    params = [told_param(s, "support_vectors", (vectors, features))]
    kind = s.text("kernel_type", "LINEAR")
    if kind == "RBF":
        told = at.DeclaredOutputs(((rows, vectors, features),), (x.dtype,))
        made = s.emit("select", (x,), told, part="pairs")[0]
        made = s.emit("sub", (made,), params=params, part="differences")[0]
        made = s.emit("reduce_sum_square", (made,), at.Reduce((2,)), part="distances")[0]
        made = s.emit("mul", (made,), part="gamma")[0]
        return s.emit("exp", (made,), part="kernel")[0], vectors
    linear = at.Linear(vectors, bias=False)
    made = s.emit("linear", (x,), linear, params=params, part="products")[0]
    if kind in ("POLY", "SIGMOID"):
        made = s.emit("mul", (made,), part="gamma")[0]
        made = s.emit("add", (made,), part="coef0")[0]
        made = s.emit("pow" if kind == "POLY" else "tanh", (made,), part="kernel")[0]
    return made, vectors


def svm_regressor(s: Site) -> None:
    """SVMRegressor: a sum over support vectors, or a linear function."""
    x, rows, features = _rows(s)
    x = _floats(s, x)
    if s.whole("n_supports") > 0:
        x, features = _kernel(s, x, rows, features)
    params = [told_param(s, "coefficients", (1, s.count("coefficients")))]
    if s.count("coefficients") != features:
        raise ShapeError(f"{s.count('coefficients')} coefficients for {features}")
    biased = s.count("rho") > 0
    if biased:
        params.append(told_param(s, "rho", (s.count("rho"),), "bias"))
    told = at.Linear(1, bias=biased)
    made = s.emit("linear", (x,), told, params=params, part="sum")[0]
    if s.whole("one_class"):
        made = s.emit("sign", (made,), part="side")[0]
    _transformed(s, made, 0)


def svm_classifier(s: Site) -> None:
    """SVMClassifier: every two classes against each other, then votes or chances."""
    x, rows, features = _rows(s)
    x = _floats(s, x)
    classes, dtype = _classes(s)
    rho = _listed(s, "rho", "bias")
    if not s.count("vectors_per_class"):  # one vector a class
        width = s.count("coefficients") // max(features, 1)
        params = [told_param(s, "coefficients", (width, features)), *rho]
        told = at.Linear(width, bias=bool(rho))
        made = s.emit("linear", (x,), told, params=params, part="sum")[0]
        _chosen(s, _transformed(s, made, 1, width=classes, part="scores"), dtype)
        return
    made, vectors = _kernel(s, x, rows, features)
    pairs = classes * (classes - 1) // 2
    params = [told_param(s, "coefficients", (classes - 1, vectors))]
    if s.count("coefficients") != (classes - 1) * vectors:
        raise ShapeError(f"{s.count('coefficients')} coefficients for {vectors} vectors")
    told = at.Linear(classes - 1, bias=False)
    made = s.emit("linear", (made,), told, params=params, part="sums")[0]
    shape = at.DeclaredOutputs(((rows, pairs),), (made.dtype,))
    made = s.emit("select", (made,), shape, part="pairs_of_classes")[0]
    made = s.emit("add", (made,), params=rho, part="rho")[0]
    width = pairs
    chances = _listed(s, "prob_a") + _listed(s, "prob_b", "bias")
    if chances:
        made = s.emit("mul", (made,), params=chances[:1], part="prob_a")[0]
        made = s.emit("add", (made,), params=chances[1:], part="prob_b")[0]
        made = s.emit("sigmoid", (made,), part="chances")[0]
        width = classes
    width = 2 if width == 1 else width
    scores = _transformed(s, made, 1, width=width, part="scores")
    _chosen(s, scores, dtype)


# -- trees -------------------------------------------------------------------------------------


def ensemble(s: Site) -> None:
    """TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""
    x, rows, _ = _rows(s)
    classifies = s.op == "TreeEnsembleClassifier"
    classes, dtype = _classes(s)
    targets = classes if classifies else s.whole("n_targets", 1)
    prefix = "class" if classifies else "target"
    weights = f"{prefix}_weights"
    splits = _listed(s, "nodes_values")
    leaves = _listed(s, weights)
    if s.op == "TreeEnsemble":
        splits, leaves = _listed(s, "nodes_splits"), _listed(s, "leaf_weights")
        splits += _listed(s, "membership_values")
    deep = depths(s)
    steps = sum(deep)
    binary = classifies and targets == 2 and len(set(s.wholes("class_ids"))) == 1
    summed = 1 if binary else targets
    if targets < 1 or not deep:
        raise ShapeError(f"{len(deep)} trees for {targets} targets")
    made = x
    if steps:
        told = at.DeclaredOutputs(((rows, steps),), (x.dtype,))
        made = s.emit("select", (x,), told, part="features")[0]
        made = s.emit(
            "compare", (made,), params=splits, part="splits", estimate=True, note=BOUND
        )[0]  # fmt: skip
    told = at.DeclaredOutputs(((rows, len(deep), summed),), ("fp32",))
    made = s.emit("select", (made,), told, params=leaves, part="leaves")[0]
    op = {"AVERAGE": "reduce_mean", "MIN": "reduce_min", "MAX": "reduce_max"}
    number = {0: "AVERAGE", 1: "SUM", 2: "MIN", 3: "MAX"}
    kind = s.told.get("aggregate_function", "SUM")
    kind = kind if isinstance(kind, str) else number.get(kind, "SUM")
    reduce = op.get(kind, "reduce_sum")
    made = s.emit(reduce, (made,), at.Reduce((1,)), part="mixed")[0]
    base = _listed(s, "base_values", "bias")
    if base:
        made = s.emit("add", (made,), params=base, part="base")[0]
    if classifies:
        _chosen(s, _transformed(s, made, 1, width=targets, part="scores"), dtype)
    else:
        _transformed(s, made, 0)


OPERATORS: dict[tuple[str, str], Convert] = {
    ("ai.onnx.ml", "LinearClassifier"): linear_classifier,
    ("ai.onnx.ml", "LinearRegressor"): linear_regressor,
    ("ai.onnx.ml", "Scaler"): scaler,
    ("ai.onnx.ml", "Normalizer"): normalizer,
    ("ai.onnx.ml", "Binarizer"): binarizer,
    ("ai.onnx.ml", "Imputer"): imputer,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): features,
    ("ai.onnx.ml", "FeatureVectorizer"): vectorizer,
    ("ai.onnx.ml", "LabelEncoder"): label_encoder,
    ("ai.onnx.ml", "CategoryMapper"): label_encoder,
    ("ai.onnx.ml", "OneHotEncoder"): one_hot,
    ("ai.onnx.ml", "ZipMap"): zip_map,
    ("ai.onnx.ml", "SVMRegressor"): svm_regressor,
    ("ai.onnx.ml", "SVMClassifier"): svm_classifier,
    ("ai.onnx.ml", "TreeEnsembleClassifier"): ensemble,
    ("ai.onnx.ml", "TreeEnsembleRegressor"): ensemble,
    ("ai.onnx.ml", "TreeEnsemble"): ensemble,
}
