"""Attention, recurrence, tables."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Einsum(Struct, frozen=True, gc=False):
    """A product of tensors told by letters for their axes, such as `bij,bjk->bik`."""

    equation: str


class Attention(Struct, frozen=True, gc=False):
    """softmax(Q·Kᵀ·scale)·V per head, on N x T x (heads · size) or N x heads x T x size.

    With fewer `kv_heads` each serves several query heads. `past` is the length of a cache of keys
    and values that stand before the given ones; `cached` says that such a cache may be put in.
    """

    heads: int
    kv_heads: int = 0  # 0: as many as heads
    causal: bool = False
    cached: bool = False
    past: int = 0
    scaled: bool = True  # False: scores are taken as they are
    mask: Literal["", "add", "bool"] = ""  # what a fourth input does: it is added unless of flags
    softcap: float = 0.0  # scores s are brought to softcap·tanh(s / softcap), 0 for as they are
    dropout: float = 0.0  # of the weights, in training
    fused: bool = True  # False: PyTorch computes it by single operators


class Rotary(Struct, frozen=True, gc=False):
    """Rotation of pairs of features of each head by their position."""

    heads: int


class Embedding(Struct, frozen=True, gc=False):
    """A table of `rows` vectors of `features`, looked up by index."""

    rows: int
    features: int


class EmbeddingBag(Struct, frozen=True, gc=False):
    """A table of `rows` vectors looked up by index (first input), those of each bag combined.

    The second input is where each bag begins, a third one the weight of each index.
    """

    rows: int
    features: int
    bags: int
    mode: Literal["sum", "mean", "max"] = "sum"


class Table(Struct, frozen=True, gc=False):
    """A learned array that is no weight of a product, repeated for the batch if `batched`."""

    shape: tuple[int, ...]
    batched: bool = False


class Recurrent(Struct, frozen=True, gc=False):
    """RNN, LSTM or GRU over T x N x features (N first with `batch_first`).

    Further inputs are the first states and for LSTM cells, as many as there are last ones; then
    whatever else tells it something, such as lengths.
    """

    hidden: int
    layers: int = 1
    bidirectional: bool = False
    bias: bool = True
    batch_first: bool = False
    projection: int = 0  # LSTM: size its output is projected to, 0 for none
    activation: Literal["tanh", "relu"] = "tanh"
    reset_after: bool = True  # GRU: the reset comes after the product with the state, not before
    peepholes: bool = False  # LSTM: gates see the cell, each unit its own
    dropout: float = 0.0  # between layers, in training


class Unrolled(Struct, frozen=True, gc=False):
    """Caffe's recurrent layers over T x N x features, and marks T x N of where sequences go on.

    With `static` a third input, N x features, is seen at every step.
    """

    hidden: int
    static: bool = False


class Opaque(Struct, frozen=True, gc=False):
    """Of an op without a rule: what its outputs are, where that is known all the same."""

    shapes: tuple[tuple[int, ...] | None, ...]
    dtypes: tuple[str, ...] = ()  # left out: that of the first input
    declared: tuple[bool, ...] = ()  # whether a shape is only what a file declares
    why: str = ""  # why it has no figures; left out: there is no rule for it
    infer: str = (
        ""  # the function of ops.uncounted_shapes that infers the shapes, instead of `shapes`
    )
    sizes: tuple[int, ...] = ()  # its arguments beside the shapes of the inputs
