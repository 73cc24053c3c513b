"""What PyTorch itself writes, read without it; and wrong configurations of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import layerscope
from layerscope.errors import FormatError, LayerscopeError

torch = pytest.importorskip("torch")


def network() -> Any:
    nn = torch.nn
    parts = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(4, 5))
    parts.tied = nn.Linear(4, 5)
    parts.tied.weight = parts[2].weight
    return parts


def own_params(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def params(path: Path) -> int:
    return layerscope.analyze(str(path)).total_params


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_state_dicts_of_every_protocol(tmp_path: Path, zipped: bool, protocol: int) -> None:
    model, path = network(), tmp_path / "net.pt"
    torch.save(
        model.state_dict(), path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped
    )
    report = layerscope.analyze(str(path))
    assert report.total_params == own_params(model)
    assert [layer.name for layer in report.layers] == ["0", "1", "2", "tied"]


@pytest.mark.parametrize("zipped", [True, False])
def test_whole_models_are_told_as_code(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "net.pt"
    torch.save(network(), path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(FormatError, match=r"Sequential, which is code .* state_dict\(\)"):
        params(path)


@pytest.mark.filterwarnings("ignore")
def test_scripts_are_read_as_parameters(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "net.pt"
    torch.jit.save(torch.jit.script(model), path)
    report = layerscope.analyze(str(path))
    assert report.total_params == own_params(model)
    assert "a TorchScript archive" in report.graph.notes[0]


def test_tensors_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "net.pt"
    kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.complex64,
             torch.float8_e4m3fn, torch.uint16, torch.bool]  # fmt: skip
    stored = {str(kind).rpartition(".")[2]: torch.zeros(6, dtype=kind) for kind in kinds}
    numbers = {
        "size": torch.zeros(2, 3).size(),
        "view": torch.zeros(10)[3:5],
        "transposed": torch.zeros(2, 3).t(),
        "meta": torch.empty(3, device="meta"),
        "parameter": torch.nn.Parameter(torch.zeros(7)),
        "array": torch.zeros(2, 4).numpy(),
    }  # fmt: skip
    torch.save({**stored, **numbers}, path)
    report = layerscope.analyze(str(path))
    assert report.total_params == 6 * len(kinds) + 2 + 6 + 3 + 7 + 8
    sizes = sum(tensor.nbytes for tensor in stored.values())
    assert report.totals.param_bytes == sizes + 4 * (2 + 6 + 3 + 7 + 8)


def test_checkpoints_with_an_optimizer(tmp_path: Path) -> None:
    model, path = network(), tmp_path / "net.ckpt"
    optimizer = torch.optim.Adam(model.parameters())
    model[0](torch.zeros(1, 3, 4, 4)).sum().backward()
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path)
    names = [layer.name for layer in layerscope.analyze(str(path)).layers]
    assert names[:4] == ["model.0", "model.1", "model.2", "model.tied"]
    assert "optimizer.state.0" in names


# -- configurations

LLAMA: dict[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4,
    "vocab_size": 1000, "num_hidden_layers": 2,
}  # fmt: skip
VIT: dict[str, Any] = {
    "model_type": "vit", "architectures": ["ViTModel"], "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 4, "num_hidden_layers": 2,
}  # fmt: skip


def config(tmp_path: Path, settings: Any) -> str:
    path = tmp_path / "config.json"
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return f"hf:{path}"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"hidden_size": 2**63}, r"hidden_size above 2\^63 - 1"),
        ({"extra": {"sizes": [[2**64]]}}, r"above 2\^63 - 1"),
        ({"vocab_size": 10**390}, r"vocab_size above 2\^63 - 1"),
        ({"vocab_size": 10**450}, "NUMBER_DIGITS"),
        ({"hidden_size": 2**62}, "MODEL_BYTES"),
        ({"num_hidden_layers": 5000}, "MODEL_LAYERS is 512; give the model as my_file"),
        ({"architectures": ["pipeline"]}, "pipeline, which is no model class"),
        ({"architectures": ["Trainer"]}, "Trainer, which is no model class"),
        ({"architectures": ["LlamaConfig"]}, "no model class of transformers"),
        ({"architectures": ["AutoModel"]}, "no model class of transformers"),
        ({"architectures": ["__class__"]}, "no model class of transformers"),
        ({"architectures": ["logging"]}, "no model class of transformers"),
        ({"architectures": ["PreTrainedModel"]}, "no model of model_type llama"),
        ({"architectures": ["GPT2Model"]}, "no model of model_type llama"),
        ({"architectures": [3]}, "no list of names"),
        ({"architectures": "LlamaModel"}, "no list of names"),
        ({"model_type": 3}, "model_type is no text"),
        ({"model_type": ["llama"]}, "model_type is no text"),
        ({"model_type": "mine", "auto_map": {"AutoModel": "x.Y"}}, "needs remote code"),
        ({"attn_implementation": "someone/kernel"}, "is remote code"),
        ({"max_position_embeddings": -1}, "max_position_embeddings -1, expected"),
    ],
)
def test_configurations_that_cannot_be(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(FormatError, match=message) as error:
        layerscope.analyze(config(tmp_path, {**LLAMA, **change}))
    assert "config.json" in str(error.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("field", ["hidden_size", "num_attention_heads", "vocab_size"])
@pytest.mark.parametrize("value", [-1, 0, "x", None, 1.5, [1], {}, True, 2**40])
def test_nonsense_is_told_in_one_line(tmp_path: Path, field: str, value: Any) -> None:
    pytest.importorskip("transformers")
    told = [refusal(config(tmp_path, {**base, field: value})) for base in (LLAMA, VIT)]
    assert "\n" not in "".join(told)
    assert len("".join(told)) < 2500


def refusal(spec: str) -> str:
    """What is said of a configuration that is refused, "" of one that is not."""
    try:
        layerscope.analyze(spec)
    except LayerscopeError as error:
        return error.line
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("field", ["image_size", "num_channels", "patch_size"])
@pytest.mark.parametrize("value", [-1, 0, "x", [1, 2, 3], {}, 1.5, 2**40])
def test_nonsense_images_are_told_in_one_line(tmp_path: Path, field: str, value: Any) -> None:
    pytest.importorskip("transformers")
    told = refusal(config(tmp_path, {**VIT, field: value}))
    assert told or (field, value) == ("patch_size", [1, 2, 3])  # which transformers takes
    assert "\n" not in told


def test_code_of_others_is_not_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    remote = {"auto_map": {"AutoModel": "someone/else--modeling.Model"}}
    report = layerscope.analyze(config(tmp_path, {**LLAMA, **remote, "architectures": None}))
    assert report.total_params == 146_240


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "\x00", "[]", "{}", ""])
def test_what_is_no_configuration(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"config\.json"):
        layerscope.analyze(config(tmp_path, text))
