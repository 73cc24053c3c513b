"""Names that modules and other tools have for the input are answered with ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from layerscope import analyze, compare, explain, fit, load, predict
from layerscope.api.networks import INPUT_NAMES
from layerscope.errors import UsageError

FUNCTIONS: dict[str, Callable[..., object]] = {
    "analyze": lambda **options: analyze("vgg16", **options),
    "analyze a graph": lambda **options: analyze(load("vgg16"), **options),
    "compare": lambda **options: compare("vgg16", "vgg19", **options),
    "explain": lambda **options: explain("vgg16", **options),
    "fit": lambda **options: fit("vgg16", 10**9, **options),
    "predict": lambda **options: predict("vgg16", on="a100", **options),
}


@pytest.mark.parametrize("name", INPUT_NAMES)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("value", [(1, 3, 64, 64), {"data": (1, 3, 64, 64)}, "3x64x64"])
def test_the_message_says_input(function: str, name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^{name}: the input shape of vgg16 is given as input="):
        FUNCTIONS[function](**{name: value})


def test_what_the_message_says_works() -> None:
    assert analyze("vgg16", input=(1, 3, 224, 224)).inputs[0].shape == (1, 3, 224, 224)
    assert analyze("vgg16", input={"data": (1, 3, 224, 224)}).inputs[0].shape == (1, 3, 224, 224)
