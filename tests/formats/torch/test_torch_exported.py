"""Programs that PyTorch exports and saves: figures as of the live module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import layerscope
from tests.formats.test_pt2 import figures
from tests.formats.torch.torch_nets import nn, torch, vision

pytestmark = pytest.mark.filterwarnings("ignore")


def models() -> dict[str, Any]:
    class Words(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            self.lstm = nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(64, 5)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(self.embed(x))[0][:, -1])

    class Written(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(50, 16)
            self.head = nn.Linear(16, 50, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                y = self.embed(x).clone()
            y[:, 0] = 0
            y[..., :4].mul_(2)
            a, b = y.chunk(2, -1)
            return self.head(torch.cat([b, a], -1))

    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    image, ids = torch.zeros(1, 3, 64, 64), torch.zeros(2, 7, dtype=torch.long)
    vit = vision().VisionTransformer(64, 16, 2, 4, 64, 128, num_classes=10)
    return {
        "resnet18": (vision().resnet18(), image),
        "mobilenet_v2": (vision().mobilenet_v2(), image),
        "vit": (vit, image),
        "lstm": (Words(), ids),
        "encoder": (nn.TransformerEncoder(layer, 2), torch.zeros(2, 9, 32)),
        "written": (Written(), ids),
    }


@pytest.mark.parametrize("decomposed", [False, True], ids=["whole", "decomposed"])
@pytest.mark.parametrize("which", ["resnet18", "mobilenet_v2", "vit", "lstm", "encoder", "written"])
def test_figures_are_those_of_the_module(tmp_path: Path, which: str, decomposed: bool) -> None:
    model, data = models()[which]
    model.eval()
    program = torch.export.export(model, (data,))
    if decomposed:
        program = program.run_decompositions()
    path = str(tmp_path / "model.pt2")
    torch.export.save(program, path)
    live, read = layerscope.analyze(model, input_data=data), layerscope.analyze(path)
    assert figures(read) == figures(live)
    if not decomposed and which != "written":
        assert [(r.name, r.op, r.params, r.ops) for r in read.layers] == [
            (r.name, r.op, r.params, r.ops) for r in live.layers
        ]


def test_sizes_that_a_program_asks_for(tmp_path: Path) -> None:
    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(16, 4)

        def forward(self, x: Any) -> Any:
            return self.head(x.view(x.shape[0] * 2, -1)).reshape(x.shape[0], 2, 4)

    model, data = Net().eval(), torch.zeros(3, 32)
    batch = torch.export.Dim("batch", min=2, max=64)
    path = str(tmp_path / "model.pt2")
    torch.export.save(torch.export.export(model, (data,), dynamic_shapes=({0: batch},)), path)
    live, read = layerscope.analyze(model, input_data=data), layerscope.analyze(path)
    assert [(r.name, r.op, r.ops) for r in read.layers] == [
        (r.name, r.op, r.ops) for r in live.layers
    ]
