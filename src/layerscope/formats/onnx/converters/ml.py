"""Classical machine learning (ai.onnx.ml): learned numbers are attributes, not initializers."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.tree_depth import depths
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.tensor_info import TensorInfo
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role, Shape

BOUND = "a bound: every tree followed to its deepest leaf"


def attr_param(node: OnnxNode, name: str, shape: Shape, role: Role = "weight") -> Param:
    """An attribute as a parameter of the node."""
    return Param(name, shape, role, "fp32", f"{node.label}.{name}")


def _listed(node: OnnxNode, name: str, role: Role = "weight") -> list[Param]:
    """An attribute as a parameter, also in its form as a tensor."""
    for key in (name, f"{name}_as_tensor"):
        if node.attr_length(key):
            return [attr_param(node, key, (node.attr_length(key),), role)]
    return []


def _rows(node: OnnxNode) -> tuple[TensorInfo, int, int]:
    """The input as samples x features."""
    x = node.input()
    shape = node.shape()
    if len(shape) == 1:
        attrs = at.DeclaredOutputs(((1, shape[0]),), (x.dtype,))
        return node.emit("select", (x,), attrs, part="row")[0], 1, shape[0]
    if len(shape) != 2:
        raise ShapeError(f"samples of {shape}, expected samples x features")
    return x, shape[0], shape[1]


def _classes(node: OnnxNode) -> tuple[int, str]:
    """Number of classes, and the dtype of their labels."""
    for name, dtype in (
        ("classlabels_strings", "string"), ("classlabels_ints", "int64"),
        ("classlabels_int64s", "int64"),
    ):  # fmt: skip
        if node.attr_length(name):
            return node.attr_length(name), dtype
    return 0, "int64"


TRANSFORMS = {"LOGISTIC": "sigmoid", "SOFTMAX": "softmax", "SOFTMAX_ZERO": "softmax"}


def _transformed(
    node: OnnxNode, y: TensorInfo, n: int, *, width: int = 0, part: str = ""
) -> TensorInfo:
    """The n-th output: scores after `post_transform`, repeated to `width` columns."""
    op = TRANSFORMS.get(node.str_attr("post_transform", "NONE"))
    kind = node.str_attr("post_transform", "NONE")
    assert y.shape is not None
    wider = width and width != y.shape[-1]
    names = node.outputs[n : n + 1]
    if wider:
        attrs = at.DeclaredOutputs(((*y.shape[:-1], width),), (y.dtype,))
        last = not op and kind != "PROBIT"
        y = node.emit(
            "select", (y,), attrs, part=part if last else "both", outputs=names if last else None
        )[0]
        if last:
            return y
    if kind == "PROBIT":
        y = node.emit("erf", (y,), part="probit")[0]
        op = "mul"
    attributes = at.Softmax(-1) if op == "softmax" else None
    return node.emit(op or "identity", (y,), attributes, part=part, outputs=names)[0]


def _chosen(node: OnnxNode, scores: TensorInfo, dtype: str) -> None:
    """The output of labels: the class of the best score."""
    names = node.outputs[:1]
    if not names or not names[0]:
        return
    best = node.emit("arg_max", (scores,), at.Reduce((-1,)), part="best")[0]
    assert best.shape is not None
    node.emit_shaped("select", (best,), (best.shape,), (dtype,), outputs=names)


def linear_classifier(node: OnnxNode) -> None:
    """LinearClassifier."""
    x, _, features = _rows(node)
    targets = node.attr_length("intercepts") or node.attr_length("coefficients") // max(features, 1)
    if targets < 1 or targets * features > node.attr_length("coefficients"):
        raise ShapeError(f"{node.attr_length('coefficients')} coefficients for {features} features")
    y = _linear(node, x, targets, features)
    classes, dtype = _classes(node)
    width = 2 if targets == 1 and classes in (0, 2) else targets
    scores = _transformed(node, y, 1, width=width, part="scores")
    _chosen(node, scores, dtype)


def linear_regressor(node: OnnxNode) -> None:
    """LinearRegressor."""
    x, _, features = _rows(node)
    targets = node.int_attr("targets", 1)
    if targets < 1 or targets * features != node.attr_length("coefficients"):
        raise ShapeError(
            f"{node.attr_length('coefficients')} coefficients for {features} x {targets}"
        )
    _transformed(node, _linear(node, x, targets, features), 0)


def _linear(node: OnnxNode, x: TensorInfo, targets: int, features: int) -> TensorInfo:
    count = node.attr_length("coefficients")
    params = [attr_param(node, "coefficients", (targets, count // targets))]
    biased = node.attr_length("intercepts") > 0
    if biased:
        params.append(attr_param(node, "intercepts", (node.attr_length("intercepts"),), "bias"))
    return node.emit("linear", (x,), at.Linear(targets, bias=biased), params=params, part="linear")[
        0
    ]


def scaler(node: OnnxNode) -> None:
    """Scaler: an offset subtracted, a factor; both are statistics of data."""
    y = _floats(node, node.input())
    offset, scale = _listed(node, "offset", "statistic"), _listed(node, "scale", "statistic")
    if offset:
        y = node.emit("sub", (y,), params=offset, part="offset" if scale else "")[0]
    if scale or not offset:
        node.emit("mul" if scale else "identity", (y,), params=scale)


def _floats(node: OnnxNode, x: TensorInfo) -> TensorInfo:
    if x.dtype == "fp32":
        return x
    return node.emit("cast", (x,), at.Cast("fp32"), part="floats")[0]


def normalizer(node: OnnxNode) -> None:
    """Normalizer: each sample divided by its largest, its sum or its length."""
    x = _floats(node, node.input())
    op = {"MAX": "reduce_max", "L1": "reduce_l1", "L2": "reduce_l2"}[node.str_attr("norm", "MAX")]
    norm = node.emit(op, (x,), at.Reduce((-1,), keep=True), part="norm")[0]
    node.emit("div", (x, norm))


def binarizer(node: OnnxNode) -> None:
    """Binarizer: whether above a threshold, as a number."""
    y = node.emit("compare", (node.input(),), part="compare")[0]
    node.emit("cast", (y,), at.Cast(node.dtype()))


def imputer(node: OnnxNode) -> None:
    """Imputer: missing values are replaced."""
    x = node.input()
    missing = node.emit("compare", (x,), part="missing")[0]
    name = (
        "imputed_value_floats"
        if node.attr_length("imputed_value_floats")
        else "imputed_value_int64s"
    )
    put = _listed(node, name, "statistic")
    attrs = at.DeclaredOutputs(((node.attr_length(name),),), (x.dtype,))
    values = node.emit("constant", (), attrs, params=put, part="values")[0]
    node.emit("where", (missing, values, x))


def features(node: OnnxNode) -> None:
    """ArrayFeatureExtractor: some columns."""
    x = node.shape("X")
    node.mark_constant("Y")
    count = 1
    for size in node.shape("Y"):
        count *= size
    shape = (*x[:-1], count) if len(x) > 1 else (1, count)
    node.emit_shaped("select", (node.input("X"),), (shape,), (node.dtype("X"),))


def vectorizer(node: OnnxNode) -> None:
    """FeatureVectorizer: columns concatenated, as floats."""
    sides = []
    for n, tensor in enumerate(node.inputs):
        if tensor is None or tensor.shape is None:
            continue
        if len(tensor.shape) == 1:
            attrs = at.DeclaredOutputs(((1, tensor.shape[0]),), (tensor.dtype,))
            tensor = node.emit("select", (tensor,), attrs, part=f"row{n}")[0]
        if tensor.dtype != "fp32":
            tensor = node.emit("cast", (tensor,), at.Cast("fp32"), part=f"floats{n}")[0]
        sides.append(tensor)
    node.emit("concat", sides, at.Concat(1))


def label_encoder(node: OnnxNode) -> None:
    """LabelEncoder, CategoryMapper: labels looked up in a table."""
    dtype = node.dtype()
    for name, kind in (
        ("values_strings", "string"), ("values_int64s", "int64"), ("values_floats", "fp32"),
    ):  # fmt: skip
        if node.attr_length(name):
            dtype = kind
    table = node.attributes.get("values_tensor")
    if table is not None:
        dtype = table.value.dtype
    if node.op == "CategoryMapper" or node.attr_length("classes_strings"):
        dtype = "int64" if node.dtype() == "string" else "string"
    node.emit_shaped("select", (node.input(),), (node.shape(),), (dtype,))


def one_hot(node: OnnxNode) -> None:
    """OneHotEncoder: a new axis of categories."""
    depth = node.attr_length("cats_int64s") or node.attr_length("cats_strings")
    node.emit("one_hot", (node.input(),), at.OneHot(depth, -1, "fp32"))


def zip_map(node: OnnxNode) -> None:
    """ZipMap: a sequence of maps, which is no tensor and costs nothing."""
    name = node.outputs[0]
    node.env[name] = TensorInfo(
        name, None, node.dtype(), items=[node.input()] if node.input().tensor else []
    )


# -- support vectors ---------------------------------------------------------------------------


def _kernel(node: OnnxNode, x: TensorInfo, rows: int, features: int) -> tuple[TensorInfo, int]:
    """The kernel function of every sample with every support vector."""
    vectors = node.attr_length("support_vectors") // max(features, 1)
    if vectors < 1 or vectors * features != node.attr_length("support_vectors"):
        raise ShapeError(f"{node.attr_length('support_vectors')} numbers for vectors of {features}")
    params = [attr_param(node, "support_vectors", (vectors, features))]
    kind = node.str_attr("kernel_type", "LINEAR")
    if kind == "RBF":
        attrs = at.DeclaredOutputs(((rows, vectors, features),), (x.dtype,))
        y = node.emit("select", (x,), attrs, part="pairs")[0]
        y = node.emit("sub", (y,), params=params, part="differences")[0]
        y = node.emit("reduce_sum_square", (y,), at.Reduce((2,)), part="distances")[0]
        y = node.emit("mul", (y,), part="gamma")[0]
        return node.emit("exp", (y,), part="kernel")[0], vectors
    linear = at.Linear(vectors, bias=False)
    y = node.emit("linear", (x,), linear, params=params, part="products")[0]
    if kind in ("POLY", "SIGMOID"):
        y = node.emit("mul", (y,), part="gamma")[0]
        y = node.emit("add", (y,), part="coef0")[0]
        y = node.emit("pow" if kind == "POLY" else "tanh", (y,), part="kernel")[0]
    return y, vectors


def svm_regressor(node: OnnxNode) -> None:
    """SVMRegressor: a sum over support vectors, or a linear function."""
    x, rows, features = _rows(node)
    x = _floats(node, x)
    if node.int_attr("n_supports") > 0:
        x, features = _kernel(node, x, rows, features)
    params = [attr_param(node, "coefficients", (1, node.attr_length("coefficients")))]
    if node.attr_length("coefficients") != features:
        raise ShapeError(f"{node.attr_length('coefficients')} coefficients for {features}")
    biased = node.attr_length("rho") > 0
    if biased:
        params.append(attr_param(node, "rho", (node.attr_length("rho"),), "bias"))
    attrs = at.Linear(1, bias=biased)
    y = node.emit("linear", (x,), attrs, params=params, part="sum")[0]
    if node.int_attr("one_class"):
        y = node.emit("sign", (y,), part="side")[0]
    _transformed(node, y, 0)


def svm_classifier(node: OnnxNode) -> None:
    """SVMClassifier: all pairs of classes, then votes or probabilities."""
    x, rows, features = _rows(node)
    x = _floats(node, x)
    classes, dtype = _classes(node)
    rho = _listed(node, "rho", "bias")
    if not node.attr_length("vectors_per_class"):  # one vector a class
        width = node.attr_length("coefficients") // max(features, 1)
        params = [attr_param(node, "coefficients", (width, features)), *rho]
        attrs = at.Linear(width, bias=bool(rho))
        y = node.emit("linear", (x,), attrs, params=params, part="sum")[0]
        _chosen(node, _transformed(node, y, 1, width=classes, part="scores"), dtype)
        return
    y, vectors = _kernel(node, x, rows, features)
    pairs = classes * (classes - 1) // 2
    params = [attr_param(node, "coefficients", (classes - 1, vectors))]
    if node.attr_length("coefficients") != (classes - 1) * vectors:
        raise ShapeError(f"{node.attr_length('coefficients')} coefficients for {vectors} vectors")
    attrs = at.Linear(classes - 1, bias=False)
    y = node.emit("linear", (y,), attrs, params=params, part="sums")[0]
    shape = at.DeclaredOutputs(((rows, pairs),), (y.dtype,))
    y = node.emit("select", (y,), shape, part="pairs_of_classes")[0]
    y = node.emit("add", (y,), params=rho, part="rho")[0]
    width = pairs
    chances = _listed(node, "prob_a") + _listed(node, "prob_b", "bias")
    if chances:
        y = node.emit("mul", (y,), params=chances[:1], part="prob_a")[0]
        y = node.emit("add", (y,), params=chances[1:], part="prob_b")[0]
        y = node.emit("sigmoid", (y,), part="chances")[0]
        width = classes
    width = 2 if width == 1 else width
    scores = _transformed(node, y, 1, width=width, part="scores")
    _chosen(node, scores, dtype)


# -- trees -------------------------------------------------------------------------------------


def ensemble(node: OnnxNode) -> None:
    """TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble."""
    x, rows, _ = _rows(node)
    classifies = node.op == "TreeEnsembleClassifier"
    classes, dtype = _classes(node)
    targets = classes if classifies else node.int_attr("n_targets", 1)
    prefix = "class" if classifies else "target"
    weights = f"{prefix}_weights"
    splits = _listed(node, "nodes_values")
    leaves = _listed(node, weights)
    if node.op == "TreeEnsemble":
        splits, leaves = _listed(node, "nodes_splits"), _listed(node, "leaf_weights")
        splits += _listed(node, "membership_values")
    deep = depths(node)
    steps = sum(deep)
    binary = classifies and targets == 2 and len(set(node.ints_attr("class_ids"))) == 1
    summed = 1 if binary else targets
    if targets < 1 or not deep:
        raise ShapeError(f"{len(deep)} trees for {targets} targets")
    y = x
    if steps:
        attrs = at.DeclaredOutputs(((rows, steps),), (x.dtype,))
        y = node.emit("select", (x,), attrs, part="features")[0]
        y = node.emit(
            "compare", (y,), params=splits, part="splits", estimate=True, note=BOUND
        )[0]  # fmt: skip
    attrs = at.DeclaredOutputs(((rows, len(deep), summed),), ("fp32",))
    y = node.emit("select", (y,), attrs, params=leaves, part="leaves")[0]
    op = {"AVERAGE": "reduce_mean", "MIN": "reduce_min", "MAX": "reduce_max"}
    number = {0: "AVERAGE", 1: "SUM", 2: "MIN", 3: "MAX"}
    kind = node.attrs.get("aggregate_function", "SUM")
    kind = kind if isinstance(kind, str) else number.get(kind, "SUM")
    reduce = op.get(kind, "reduce_sum")
    y = node.emit(reduce, (y,), at.Reduce((1,)), part="mixed")[0]
    base = _listed(node, "base_values", "bias")
    if base:
        y = node.emit("add", (y,), params=base, part="base")[0]
    if classifies:
        _chosen(node, _transformed(node, y, 1, width=targets, part="scores"), dtype)
    else:
        _transformed(node, y, 0)


OPERATORS: ConverterTable = {
    ("ai.onnx.ml", "LinearClassifier"): Converter(linear_classifier, "X"),
    ("ai.onnx.ml", "LinearRegressor"): Converter(linear_regressor, "X"),
    ("ai.onnx.ml", "Scaler"): Converter(scaler, "X"),
    ("ai.onnx.ml", "Normalizer"): Converter(normalizer, "X"),
    ("ai.onnx.ml", "Binarizer"): Converter(binarizer, "X"),
    ("ai.onnx.ml", "Imputer"): Converter(imputer, "X"),
    ("ai.onnx.ml", "ArrayFeatureExtractor"): Converter(features, "X Y"),
    ("ai.onnx.ml", "FeatureVectorizer"): Converter(vectorizer, "X"),
    ("ai.onnx.ml", "LabelEncoder"): Converter(label_encoder, "X"),
    ("ai.onnx.ml", "CategoryMapper"): Converter(label_encoder, "X"),
    ("ai.onnx.ml", "OneHotEncoder"): Converter(one_hot, "X"),
    ("ai.onnx.ml", "ZipMap"): Converter(zip_map, "X"),
    ("ai.onnx.ml", "SVMRegressor"): Converter(svm_regressor, "X"),
    ("ai.onnx.ml", "SVMClassifier"): Converter(svm_classifier, "X"),
    ("ai.onnx.ml", "TreeEnsembleClassifier"): Converter(ensemble, "X"),
    ("ai.onnx.ml", "TreeEnsembleRegressor"): Converter(ensemble, "X"),
    ("ai.onnx.ml", "TreeEnsemble"): Converter(ensemble, "X"),
}
