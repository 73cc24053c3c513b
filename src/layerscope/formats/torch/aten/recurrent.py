"""LSTM, GRU and RNN: whole sequences, and cells of one time step."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.formats.torch.aten.layout import reshape
from layerscope.formats.torch.aten.signatures import Converter, takes
from layerscope.formats.torch.lowering import Lowering, TensorRef, Unsupported
from layerscope.formats.torch.lowering import same_dtypes as one_dtype
from layerscope.graph import attributes as at

GATES = {"rnn": 1, "lstm": 4, "gru": 3}
State = TensorRef | Sequence[TensorRef]  # hidden state; an LSTM has a cell state besides


class RecurrentArgs(Struct, frozen=True):
    """Arguments of aten::lstm, gru, rnn_tanh and rnn_relu."""

    input: TensorRef
    hx: State
    params: Sequence[TensorRef]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool


def recurrent(op: str, activation: str = "tanh") -> Converter:
    """A converter of a whole sequence, all layers and directions in one node."""

    @takes(RecurrentArgs)
    def convert(d: Lowering, args: RecurrentArgs) -> list[TensorRef]:
        if args.input.rank not in (2, 3):
            raise Unsupported(f"a sequence of rank {args.input.rank}")
        if isinstance(args.params, TensorRef):  # the overload data, batch_sizes, hx, params
            raise Unsupported("a packed sequence")
        hidden = args.params[0].shape[0] // GATES[op]
        directions = 2 if args.bidirectional else 1
        per_cell = len(args.params) // (args.num_layers * directions)
        projected = per_cell in (3, 5)
        names = ["weight_ih", "weight_hh"]
        names += ["bias_ih", "bias_hh"] if args.has_biases else []
        names += ["weight_hr"] if projected else []
        each = iter(args.params)
        named = {
            f"{name}_l{layer}{end}": next(each)
            for layer in range(args.num_layers)
            for end in ("", "_reverse")[:directions]
            for name in names
        }
        attrs = at.Recurrent(
            hidden,
            args.num_layers,
            args.bidirectional,
            args.has_biases,
            args.batch_first,
            args.params[per_cell - 1].shape[0] if projected else 0,
            "relu" if activation == "relu" else "tanh",
            dropout=args.dropout if args.train else 0.0,
        )
        return list(d.several(op, args.input, at=attrs, holds=named))

    return convert


class CellArgs(Struct, frozen=True):
    """Arguments of aten::lstm_cell, gru_cell, rnn_tanh_cell and rnn_relu_cell."""

    input: TensorRef
    hx: State
    w_ih: TensorRef
    w_hh: TensorRef
    b_ih: TensorRef | None = None
    b_hh: TensorRef | None = None


def cell(op: str) -> Converter:
    """A converter of one time step, as a sequence of length 1."""

    @takes(CellArgs)
    def convert(d: Lowering, args: CellArgs) -> TensorRef | list[TensorRef]:
        if any(not ref.stored for ref in (args.w_ih, args.w_hh)):
            raise Unsupported("a cell with computed weights")
        params = {"weight_ih_l0": args.w_ih, "weight_hh_l0": args.w_hh}
        if args.b_ih is not None and args.b_hh is not None:
            params |= {"bias_ih_l0": args.b_ih, "bias_hh_l0": args.b_hh}
        hidden = args.w_ih.shape[0] // GATES[op]
        step = reshape(d, args.input, (1, *args.input.shape))
        attrs = at.Recurrent(hidden, bias=args.b_ih is not None)
        outputs = d.several(op, step, at=attrs, holds=params)
        shape = (*args.input.shape[:-1], hidden)
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
