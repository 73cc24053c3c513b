"""Attributes of RNN, LSTM and GRU."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Recurrent(Struct, frozen=True, gc=False):
    """RNN, LSTM or GRU over T x N x features (N first with `batch_first`).

    Further inputs are the initial states (LSTM: and cells), then others such as sequence lengths.
    """

    hidden: int
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True
    batch_first: bool = False
    projection: int = 0  # LSTM: size its output is projected to, 0 for none
    activation: Literal["tanh", "relu"] = "tanh"
    reset_after: bool = True  # GRU: reset gate applied after the product with the state
    peepholes: bool = False  # LSTM: gates read the cell state
    dropout: float = 0.0  # between layers, in training
