"""Models on which summaries are compared with torchinfo's."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
nn: Any = torch.nn


class Classifier(nn.Module):  # type: ignore[misc]
    """Grouped and plain convolutions, frozen and partly frozen modules, modules without effect."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Identity()
        )
        self.body = nn.Sequential(
            nn.Sequential(nn.Conv2d(8, 8, (3, 1), groups=8), nn.GELU()),
            nn.Sequential(nn.Conv2d(8, 16, 1, groups=2), nn.Dropout(0.1)),
            nn.MaxPool2d(2),
        )
        self.unused = nn.Linear(7, 7)
        self.head = nn.Linear(16, 10)
        self.stem.requires_grad_(False)
        self.body[0][0].weight.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class Reused(nn.Module):  # type: ignore[misc]
    """Modules that are called twice, in lists that are not called; parameters of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.Tanh())])
        self.rnn = nn.LSTM(6, 5, batch_first=True)
        self.out = nn.Linear(5, 6)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x) * self.scale
        x = self.layers[0](x)
        x, _ = self.rnn(x)
        return self.layers[1](torch.relu(self.out(x)))


class Pair(nn.Module):  # type: ignore[misc]
    """Named inputs, an embedding, attention, a norm and a result in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.convs = nn.ModuleDict({"a": nn.Conv1d(5, 4, 3), "b": nn.ConvTranspose1d(4, 5, 2)})

    def forward(self, x: Any, y: Any, scale: float = 1.0) -> Any:
        x = self.embed(x)
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        y = self.convs["b"](self.convs["a"](y))
        return {"first": x.sum() * scale, "last": y}


MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "classifier": (Classifier, {"input_size": (2, 3, 8, 8)}),
    "reused": (Reused, {"input_data": torch.zeros(2, 3, 6)}),
    "pair": (
        Pair,
        {"input_data": {"x": torch.zeros(2, 4, dtype=torch.int64), "y": torch.zeros(2, 5, 9)}},
    ),
}
