"""Forms of NET that need PyTorch, in every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope.cli import run
from tests.formats.network_forms import COMMANDS, FORMS
from tests.formats.torch.torch_nets import vision

pytestmark = pytest.mark.filterwarnings("ignore")
LIVE = [name for name, form in FORMS.items() if form.torch]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", LIVE)
def test_a_form_in_a_command(
    form: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vision()
    for package in ("timm", "transformers"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    given, called = FORMS[form], COMMANDS[command]
    code = run(called.line(given.make(tmp_path), tmp_path))
    said = capsys.readouterr()
    if given.arrays_only and called.runs:
        assert (code, said.out) == (2, "")
        assert "has no operations" in said.err
    else:
        assert code == 0, said.err
        assert said.out or command == "export onnx"


@pytest.mark.parametrize(
    "network, code, words",
    [
        ("torchvision:resnet180", 2, "did you mean resnet18"),
        ("timm:resnet500", 2, "did you mean resnet50"),
        ("hf:{folder}", 3, "nothing is downloaded"),
        ("hf:bert-base-uncased", 3, "nothing is downloaded"),
        ("{folder}/my_file.py:make_modell", 2, "did you mean make_model"),
        ("{folder}/my_file.py:x", 2, "it has nn, Net, make_model, ready"),
        ("{folder}/my_fil.py:make_model", 3, "did you mean {folder}/my_file.py?"),
        (
            "torch.nn:Linear",
            3,
            "Linear() needs arguments: in_features, out_features; give defaults",
        ),
        ("torch.nn:functional", 3, "expected a torch.nn.Module or a function that returns one"),
        ("torch:no_grad", 3, "returned a no_grad, expected a torch.nn.Module"),
    ],
)
def test_wrong_names(
    network: str, code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vision()
    FORMS["file.py:function"].make(tmp_path)
    for command in COMMANDS.values():
        assert run(command.line(network.format(folder=tmp_path), tmp_path)) == code
        said = capsys.readouterr()
        assert words.format(folder=tmp_path) in said.err
        assert said.err.count("\n") == 1
