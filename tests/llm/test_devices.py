"""Bytes of each device under tensor, pipeline and expert parallelism."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layerscope.cli import run
from layerscope.cli.language import parallelism
from layerscope.errors import UsageError
from layerscope.export.language_json import deployment_json
from layerscope.export.language_lines import LanguageResults
from layerscope.llm.account import Deployment, memory_use
from layerscope.llm.cache import CacheOptions
from layerscope.llm.devices import Parallelism, stage_memory, stage_model
from layerscope.llm.families import describe
from layerscope.llm.parameters import total_params
from tests.llm.test_work import LLAMA_8B, MIXTRAL

MODELS = {"llama": describe(LLAMA_8B), "mixtral": describe(MIXTRAL)}


def deployment(name: str, batch: int = 4) -> Deployment:
    return Deployment(model=MODELS[name], cache=CacheOptions(tokens=4096, sequences=batch))


@pytest.mark.parametrize("name", MODELS)
def test_one_device_has_everything(name: str) -> None:
    whole = deployment(name)
    assert stage_memory(whole, Parallelism()) == (memory_use(whole),)


@pytest.mark.parametrize("stages", [2, 3, 5, 8, 32])
@pytest.mark.parametrize("name", MODELS)
def test_stages_have_all_layers_once(name: str, stages: int) -> None:
    model = MODELS[name]
    found = [stage_model(model, Parallelism(pipeline=stages), n) for n in range(stages)]
    assert sum(len(each.layers) for each in found) == len(model.layers)
    assert len({len(each.layers) for each in found}) <= 2
    assert sum(map(total_params, found)) == total_params(model)  # heads are not tied
    whole = deployment(name)
    split = stage_memory(whole, Parallelism(pipeline=stages))
    assert sum(each.cache for each in split) == memory_use(whole).cache


@pytest.mark.parametrize("parts", [2, 4, 8])
def test_tensors_are_cut_and_norms_copied(parts: int) -> None:
    """Llama 3 8B: 8 heads of keys, 32 layers with two norms of 4,096, and a last norm."""
    model = MODELS["llama"]
    norms = (2 * 32 + 1) * 4096
    cut = total_params(stage_model(model, Parallelism(tensor=parts), 0))
    assert cut == (total_params(model) - norms) // parts + norms
    (use,) = stage_memory(deployment("llama"), Parallelism(tensor=parts))
    assert use.cache == memory_use(deployment("llama")).cache // parts


def test_heads_of_keys_are_copied_where_devices_are_more() -> None:
    eight, sixteen = (
        stage_memory(deployment("llama"), Parallelism(tensor=parts))[0].cache for parts in (8, 16)
    )
    assert eight == sixteen  # 8 heads of keys: one each


def test_experts_are_dealt_out() -> None:
    model = MODELS["mixtral"]
    experts = sum(
        shape[0] * shape[1] * shape[2]
        for layer in model.layers
        for shape in layer.parts["experts"].values()
    )
    for parts in (2, 4, 8):
        one = stage_model(model, Parallelism(expert=parts), 0)
        assert total_params(one) == total_params(model) - experts + experts // parts
    (use,) = stage_memory(deployment("mixtral", batch=8), Parallelism(expert=8))
    assert use.cache == memory_use(deployment("mixtral", batch=1)).cache


@pytest.mark.parametrize(
    ("text", "expected"),
    [("tp=8", (8, 1, 1)), ("pp=2,tp=4", (4, 2, 1)), (" ep=4 , tp=2", (2, 1, 4))],
)
def test_numbers_of_parts(text: str, expected: tuple[int, int, int]) -> None:
    found = parallelism(text)
    assert (found.tensor, found.pipeline, found.expert) == expected
    assert found.devices == expected[0] * expected[1] * expected[2]


@pytest.mark.parametrize("text", ["", "tp", "tp=0", "tp=x", "dp=2", "tp=2,tp=4", "tp=-1", "tp=1e3"])
def test_wrong_numbers_of_parts(text: str) -> None:
    with pytest.raises(UsageError, match="--parallel"):
        parallelism(text)


@pytest.mark.parametrize(
    ("name", "split", "word"),
    [
        ("llama", Parallelism(pipeline=33), "32 layers"),
        ("llama", Parallelism(tensor=33), "32 heads"),
        ("llama", Parallelism(expert=2), "no experts"),
        ("mixtral", Parallelism(expert=9), "8 experts"),
    ],
)
def test_more_parts_than_there_are(name: str, split: Parallelism, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        stage_memory(deployment(name), split)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bytes of devices in the text and in JSON; wrong numbers are refused before all else."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8")
    for more, word in (
        (("--parallel", "tp=3x"), "--parallel"),
        (("--parallel", ""), "expected tp"),
    ):
        assert run(["show", f"hf:{path}", *more]) == 2
        assert word in capsys.readouterr().err
    assert run(["show", "lenet5", "--parallel", "tp=2"]) == 2
    assert "needs a language model" in capsys.readouterr().err


def test_lines_and_json() -> None:
    found = LanguageResults(deployment("llama"), split=Parallelism(4, 2))
    line = found.lines()[-1]
    assert line.startswith("On 8 devices (tensor 4, pipeline 2) the fullest one (stage ")
    devices = deployment_json(found).devices
    assert devices is not None
    uses = stage_memory(deployment("llama"), Parallelism(4, 2))
    assert [each.total for each in devices.stages] == [use.total for use in uses]
