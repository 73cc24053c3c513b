"""RNN, LSTM, GRU: one recurrent layer each, its outputs in the axes of ONNX."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.converters.normalization import arrays
from layerscope.formats.onnx.node import Converter, ConverterTable, OnnxNode
from layerscope.formats.onnx.node_view import InputId
from layerscope.graph import attributes as at
from layerscope.graph.types import Role

GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
OUTPUTS = ("Y", "Y_h", "Y_c")


def recurrent(node: OnnxNode) -> None:
    """RNN, LSTM, GRU, DynamicQuantizeLSTM."""
    quantized = node.op == "DynamicQuantizeLSTM"
    kind = "LSTM" if quantized else node.op
    first = node.int_attr("layout") == 1
    both = node.str_attr("direction", "forward") == "bidirectional"
    x, matrix = node.shape("X"), node.shape("W")
    hidden = node.int_attr("hidden_size") or node.shape("R")[1 if quantized else 2]
    if len(x) != 3 or len(matrix) != 3:
        raise ShapeError(f"a recurrent layer over {x} by {matrix}, expected three axes each")
    rows = matrix[2] if quantized else matrix[1]
    if rows != GATES[kind] * hidden or matrix[0] != 1 + both:
        raise ShapeError(f"matrices {matrix} for {kind} of {hidden}")
    wanted: list[tuple[InputId, str, Role]] = [
        ("W", "W", "weight"), ("R", "R", "weight"), ("B", "B", "bias"), ("P", "P", "weight"),
    ]  # fmt: skip
    if quantized:
        wanted += [(n, f"scale_or_zero{n}", "statistic") for n in range(8, 12)]
    params, given = arrays(node, wanted)
    node.mark_constant("sequence_lens", "initial_h", "initial_c")  # states are often stored zeros
    steps, batch = (x[1], x[0]) if first else (x[0], x[1])
    ways = 1 + both
    state = (batch, ways, hidden) if first else (ways, batch, hidden)
    for name in ("initial_h", "initial_c"):
        if node.has(name) and node.shape(name) != state:
            raise ShapeError(f"a first state of {node.shape(name)}, expected {state}")
    attrs = at.Recurrent(
        hidden,
        bidirectional=both,
        bias=node.has("B"),
        batch_first=first,
        activation="relu" if "Relu" in (node.attrs.get("activations") or ()) else "tanh",
        peepholes=node.has("P"),
        reset_after=kind != "GRU" or bool(node.int_attr("linear_before_reset")),
    )
    op = kind.lower()
    results = node.emit(op, (node.input("X"), *given), attrs, params=params, part=op)
    out = (batch, steps, ways, hidden) if first else (steps, ways, batch, hidden)
    shapes = (out, state, state)  # in the axes of ONNX
    for part, name, y, shape in zip(OUTPUTS, node.outputs, results, shapes, strict=False):
        if name:
            node.emit_shaped("select", (y,), (shape,), (y.dtype,), part=part, outputs=[name])


OPERATORS: ConverterTable = {
    ("", "RNN"): Converter(recurrent, "X W R B sequence_lens initial_h"),
    ("", "LSTM"): Converter(recurrent, "X W R B sequence_lens initial_h initial_c P"),
    ("", "GRU"): Converter(recurrent, "X W R B sequence_lens initial_h"),
    ("com.microsoft", "DynamicQuantizeLSTM"): Converter(
        recurrent,
        "X W R B sequence_lens initial_h initial_c P W_scale W_zero_point R_scale R_zero_point",
    ),
}
