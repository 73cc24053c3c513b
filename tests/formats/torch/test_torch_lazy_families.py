"""Converters of rare ATen operators are imported with the first model that calls one."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")


def test_rare_families_are_loaded_on_first_use() -> None:
    """By an operator of one of them; not by those that read values, and not by random ones."""
    program = (
        "import sys, torch\n"
        "from layerscope import analyze\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.attention = torch.nn.MultiheadAttention(8, 2)\n"
        "        self.conv = torch.nn.Conv1d(4, 4, 3)\n"
        "    def forward(self, x):\n"
        "        x = self.conv(self.attention(x, x, x)[0] + torch.rand_like(x)).relu()\n"
        "        return x if torch.ones(()).item() else x.sort()[0]\n"
        "print(analyze(Net(), input_size=(2, 4, 8)).total_macs > 0)\n"
        "print([n for n in sys.modules if n.endswith(('aten.table', 'aten.search'))])\n"
        "class Sorted(Net):\n"
        "    def forward(self, x):\n"
        "        return x.sort()[0]\n"
        "print(analyze(Sorted(), input_size=(2, 4, 8)).layers[0].op)\n"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed.splitlines() == ["True", "[]", "top_k"]
