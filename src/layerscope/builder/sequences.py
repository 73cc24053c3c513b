"""The Builder's ops on sequences: tables, attention, recurrence, reductions, indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from layerscope.builder.assembly import Assembly
from layerscope.graph import attributes as at

Reduction = Literal["sum", "mean", "max", "min", "prod", "l1", "l2"]


class Sequences(Assembly):
    """Ops of language models and of whatever else reads tokens."""

    def embedding(
        self,
        ids: str,
        rows: int,
        features: int,
        *,
        tied: str = "",
        name: str | None = None,
        module: bool = True,
    ) -> str:
        """Vectors looked up by index; `tied` names the storage it shares."""
        ties = {"weight": tied} if tied else None
        attributes = at.Embedding(rows, features)
        return self.add_node("embedding", (ids,), attributes, name=name, module=module, ties=ties)[
            0
        ]

    def table(
        self, x: str, shape: Sequence[int], *, batched: bool = False, name: str | None = None
    ) -> str:
        """A learned array as it is; `batched` repeats its first axis of one for the batch of x."""
        attributes = at.Table(tuple(shape), batched)
        return self.add_node("table", (x,), attributes, name=name, module=False)[0]

    def positions(self, ids: str, *, name: str | None = None) -> str:
        """The numbers 0, 1, 2 … of N x T tokens, as 1 x T."""
        return self.add_node("positions", (ids,), None, name=name, module=False)[0]

    def attention(
        self,
        q: str,
        k: str,
        v: str,
        *,
        heads: int,
        kv_heads: int = 0,
        mask: str | None = None,
        causal: bool = False,
        cached: bool = False,
        scaled: bool = True,
        name: str | None = None,
    ) -> str:
        """softmax(Q·Kᵀ·scale + mask)·V per head; `cached` lets keys of earlier steps be put in."""
        inputs = (q, k, v) if mask is None else (q, k, v, mask)
        attributes = at.Attention(heads, kv_heads, causal, cached, scaled=scaled)
        return self.add_node("attention", inputs, attributes, name=name, module=False)[0]

    def rotary(self, x: str, *, heads: int, name: str | None = None) -> str:
        """Rotation of features by position."""
        return self.add_node("rotary", (x,), at.Rotary(heads), name=name, module=False)[0]

    def rms_norm(
        self, x: str, *, axis: int = -1, eps: float = 1e-6, name: str | None = None
    ) -> str:
        """Division by the root of the mean square over the axes from `axis` on."""
        return self.add_node("rms_norm", (x,), at.RMSNorm(axis, True, eps), name=name)[0]

    def einsum(self, equation: str, *xs: str, name: str | None = None) -> str:
        """A product in Einstein notation."""
        return self.add_node("einsum", xs, at.Einsum(equation), name=name, module=False)[0]

    def recurrent(
        self,
        kind: Literal["rnn", "lstm", "gru"],
        x: str,
        hidden: int,
        *,
        layers: int = 1,
        bidirectional: bool = False,
        bias: bool = True,
        batch_first: bool = False,
        name: str | None = None,
    ) -> tuple[str, ...]:
        """RNN, LSTM or GRU: the sequence, the last states, and for LSTM the last cells."""
        attributes = at.Recurrent(hidden, layers, bidirectional, bias, batch_first)
        outputs = 3 if kind == "lstm" else 2
        return self.add_node(kind, (x,), attributes, name=name, outputs=outputs)

    def reduce(
        self,
        kind: Reduction,
        x: str,
        axes: Sequence[int] = (),
        *,
        keep: bool = False,
        name: str | None = None,
    ) -> str:
        """Reduction over axes, all of them if none is named."""
        attributes = at.Reduce(tuple(axes), keep)
        return self.add_node(f"reduce_{kind}", (x,), attributes, name=name, module=False)[0]

    def gather(self, x: str, indices: str, *, axis: int = 0, name: str | None = None) -> str:
        """Slices of one axis by index."""
        return self.add_node("gather", (x, indices), at.Gather(axis), name=name, module=False)[0]

    def expand(self, x: str, shape: Sequence[int], *, name: str | None = None) -> str:
        """Axes of one repeated; -1 keeps an axis."""
        return self.add_node("expand", (x,), at.Expand(tuple(shape)), name=name, module=False)[0]

    def top_k(self, x: str, k: int, *, axis: int = -1, name: str | None = None) -> tuple[str, ...]:
        """The k largest along one axis, and their indices."""
        return self.add_node("top_k", (x,), at.TopK(k, axis), name=name, outputs=2, module=False)

    def roll(self, x: str, *, name: str | None = None) -> str:
        """Elements moved around along their axes."""
        attributes: Any = None
        return self.add_node("roll", (x,), attributes, name=name, module=False)[0]
