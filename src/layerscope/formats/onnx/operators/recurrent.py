"""RNN, LSTM, GRU: one layer of ours each, its outputs in the axes of ONNX."""

from __future__ import annotations

from layerscope.errors import ShapeError
from layerscope.formats.onnx.known import Known
from layerscope.formats.onnx.site import Convert, Site
from layerscope.graph import attributes as at
from layerscope.graph.types import Param, Role

GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


def recurrent(s: Site) -> None:
    """X, W, R, B, lengths, first states, peepholes."""
    kind = {"DynamicQuantizeLSTM": "LSTM"}.get(s.op, s.op)
    quantized = s.op == "DynamicQuantizeLSTM"
    hidden = s.whole("hidden_size")
    first = s.whole("layout") == 1
    both = s.text("direction", "forward") == "bidirectional"
    x = s.shape(0)
    matrix = s.shape(1)
    hidden = hidden or (s.shape(2)[1 if quantized else 2])
    if len(x) != 3 or len(matrix) != 3:
        raise ShapeError(f"a recurrent layer over {x} by {matrix}, expected three axes each")
    rows = matrix[2] if quantized else matrix[1]
    if rows != GATES[kind] * hidden or matrix[0] != 1 + both:
        raise ShapeError(f"matrices {matrix} for {kind} of {hidden}")
    wanted: list[tuple[int, str, Role]] = [(1, "W", "weight"), (2, "R", "weight"), (3, "B", "bias")]
    if kind == "LSTM":
        wanted.append((7, "P", "weight"))
    if quantized:
        wanted += [(n, f"scale_or_zero{n}", "statistic") for n in range(8, 12)]
    params: list[Param] = []
    given: list[Known] = []
    for n, name, role in wanted:
        if s.stored(n):
            params.append(s.param(n, name, role))
        elif s.has(n):
            given.append(s.given(n))
    for n in (4, 5, 6):  # lengths and first states, often zeros that are written out
        s.reader.uses(s.given(n) if s.has(n) else None)
    steps, batch = (x[1], x[0]) if first else (x[0], x[1])
    ways = 1 + both
    state = (batch, ways, hidden) if first else (ways, batch, hidden)
    for n in (5, 6):
        if s.has(n) and s.shape(n) != state:
            raise ShapeError(f"a first state of {s.shape(n)}, expected {state}")
    told = at.Recurrent(
        hidden,
        bidirectional=both,
        bias=s.has(3),
        batch_first=first,
        activation="relu" if "Relu" in (s.told.get("activations") or ()) else "tanh",
        peepholes=kind == "LSTM" and s.has(7),
        reset_after=kind != "GRU" or bool(s.whole("linear_before_reset")),
    )
    made = s.emit(kind.lower(), (s.given(0), *given), told, params=params, part=kind.lower())
    out = (batch, steps, ways, hidden) if first else (steps, ways, batch, hidden)
    names = s.operator.outputs
    for n, (known, shape) in enumerate(zip(made, (out, state, state), strict=False)):
        name = names[n] if n < len(names) else ""
        if name:
            part = ("Y", "Y_h", "Y_c")[n]
            s.emit(
                "select",
                (known,),
                at.DeclaredOutputs((shape,), (known.dtype,)),
                part=part,
                outputs=[name],
            )


OPERATORS: dict[tuple[str, str], Convert] = {
    ("", "RNN"): recurrent,
    ("", "LSTM"): recurrent,
    ("", "GRU"): recurrent,
    ("com.microsoft", "DynamicQuantizeLSTM"): recurrent,
}
