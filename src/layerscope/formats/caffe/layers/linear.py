"""Inner products and products of two blobs."""

from __future__ import annotations

from layerscope.formats.caffe.layer import CaffeLayer, Converter, Tensors
from layerscope.formats.caffe.layers.activation import fused_relu
from layerscope.graph import attributes as at

PRODUCTS = ("inner_product_param", "squeeze_inner_product_param", "cinner_product_param")
MASKED = ("squeezeinnerproduct", "cinnerproduct")  # which store a mask behind each array


def _inner_product(layer: CaffeLayer) -> Tensors:
    """Axes from `axis` on are flattened; `transpose` only says how the matrix is stored."""
    param = layer.param(*PRODUCTS)
    bias, axis = param.flag("bias_term", True), param.whole("axis", 1)
    features = layer.positive(param, "num_output")
    result = layer.add("linear", at.Linear(features, bias, flatten=True, axis=axis))
    if layer.kind in MASKED:
        layer.name_blobs(("weight", "bias", "", ""))
    return fused_relu(layer, param, result)


def _margin_product(layer: CaffeLayer) -> Tensors:
    """Large-margin softmax changes the product at the label's class, in training only."""
    param = layer.param("largemargin_inner_product_param", "margin_inner_product_param")
    features = layer.positive(param, "num_output")
    if layer.kind == "largemargininnerproduct" and layer.options.phase == "test":
        return layer.add("linear", at.Linear(features, False, flatten=True))
    return layer.unknown(infer="features", sizes=(features,), why="angles beside the products")


def _matmul(layer: CaffeLayer) -> Tensors:
    """The product of two blobs over their last two axes, times alpha."""
    param = layer.param("gemm_param", "matmul_param", "mat_mul_param")
    if len(layer.bottoms) != 2:
        return layer.unknown(why=f"a product of {len(layer.bottoms)} blobs, expected 2")
    attrs = at.MatMul(
        param.flag("transA") or param.flag("transpose_a"),
        param.flag("transB") or param.flag("transpose_b"),
    )
    if layer.param("gemm_param").number("alpha", 1.0) == 1:
        return layer.add("matmul", attrs, layer.bottoms)
    return layer.add("mul", None, layer.add("matmul", attrs, layer.bottoms, part="product"))


LAYERS: dict[str, Converter] = {
    "innerproduct": _inner_product,
    "squeezeinnerproduct": _inner_product,
    "cinnerproduct": _inner_product,
    "largemargininnerproduct": _margin_product,
    "margininnerproduct": _margin_product,
    "matmul": _matmul,
    "gemm": _matmul,
}
