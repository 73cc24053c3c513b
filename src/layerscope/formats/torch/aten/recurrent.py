"""LSTM, GRU and RNN: whole sequences, and cells of one time step."""

from __future__ import annotations

from collections.abc import Sequence

from layerscope.formats.torch.aten.layout import reshape
from layerscope.formats.torch.aten.signatures import Converter
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.formats.torch.lowering import same_dtypes as one_dtype
from layerscope.graph import attributes as at

GATES = {"rnn": 1, "lstm": 4, "gru": 3}
State = TensorRef | Sequence[TensorRef]  # hidden state; an LSTM has a cell state besides


def recurrent(op: str, activation: str = "tanh") -> Converter:
    """A converter of a whole sequence, all layers and directions in one node."""

    def convert(
        d: Lowering,
        input: TensorRef,
        hx: State,
        params: Sequence[TensorRef],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
        *_: object,
    ) -> list[TensorRef]:
        if input.rank not in (2, 3):
            raise Unsupported(f"a sequence of rank {input.rank}")
        if isinstance(params, TensorRef):  # of a packed sequence: data, batch_sizes, hx, params
            raise Unsupported("a packed sequence")
        hidden = params[0].shape[0] // GATES[op]
        directions = 2 if bidirectional else 1
        per_cell = len(params) // (num_layers * directions)
        projected = per_cell in (3, 5)
        names = ["weight_ih", "weight_hh"]
        names += ["bias_ih", "bias_hh"] if has_biases else []
        names += ["weight_hr"] if projected else []
        each = iter(params)
        named = {
            f"{name}_l{layer}{end}": next(each)
            for layer in range(num_layers)
            for end in ("", "_reverse")[:directions]
            for name in names
        }
        attrs = at.Recurrent(
            hidden,
            num_layers,
            bidirectional,
            has_biases,
            batch_first,
            params[per_cell - 1].shape[0] if projected else 0,
            "relu" if activation == "relu" else "tanh",
            dropout=dropout if train else 0.0,
        )
        return list(d.several(op, input, at=attrs, holds=named))

    return convert


def cell(op: str) -> Converter:
    """A converter of one time step, as a sequence of length 1."""

    def convert(
        d: Lowering,
        input: TensorRef,
        hx: State,
        w_ih: TensorRef,
        w_hh: TensorRef,
        b_ih: TensorRef | None = None,
        b_hh: TensorRef | None = None,
    ) -> TensorRef | list[TensorRef]:
        if any(not ref.stored for ref in (w_ih, w_hh)):
            raise Unsupported("a cell with computed weights")
        params = {"weight_ih_l0": w_ih, "weight_hh_l0": w_hh}
        if b_ih is not None and b_hh is not None:
            params |= {"bias_ih_l0": b_ih, "bias_hh_l0": b_hh}
        hidden = w_ih.shape[0] // GATES[op]
        step = reshape(d, input, (1, *input.shape))
        attrs = at.Recurrent(hidden, bias=b_ih is not None)
        outputs = d.several(op, step, at=attrs, holds=params)
        shape = (*input.shape[:-1], hidden)
        if op == "lstm":
            return [reshape(d, outputs[1], shape), reshape(d, outputs[2], shape)]
        return reshape(d, outputs[1], shape)

    return convert


TABLE: dict[str, Converter] = {
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "rnn_tanh": recurrent("rnn"),
    "rnn_relu": recurrent("rnn", "relu"),
    "lstm_cell": one_dtype(cell("lstm")),
    "gru_cell": one_dtype(cell("gru")),
    "rnn_tanh_cell": one_dtype(cell("rnn")),
    "rnn_relu_cell": one_dtype(cell("rnn")),
}
