"""Rates of families of machines for language models, written by bench/fit_language.py."""

from __future__ import annotations

from msgspec import Struct


class SpeedRates(Struct, frozen=True, kw_only=True):
    """Multiples of the time at the limits of a data sheet, and what the fit leaves open.

    Errors are relative: two of three published speeds that were left out of the fit lie within.
    """

    weights: float
    cache: float
    half: float
    quantized: float
    experts: float
    attention: float
    product: float  # microseconds of one product beside its bytes and operations
    launch: float  # microseconds that it takes more in a decode step of several sequences
    prompt: float  # microseconds that it takes more in a prompt
    decode_error: float
    prefill_error: float
    skew: float  # tokens of a batch choose the expert of rank i in proportion to i^-skew
    speeds: int  # published ones that were fitted

    def values(self) -> tuple[float, ...]:
        """The rates, in the order of `language.amounts`."""
        return (
            self.weights, self.cache, self.half, self.quantized, self.experts, self.attention,
            self.product, self.launch, self.prompt,
        )  # fmt: skip


SOURCE = "published speeds of llama.cpp"
FAMILIES = {
    "apple": SpeedRates(
        weights=1.25,
        cache=2.91,
        half=1.33,
        quantized=1.33,
        experts=1.64,
        attention=2.05,
        product=15.2,
        launch=0,
        prompt=0,
        decode_error=0.23,
        prefill_error=0.25,
        skew=0,
        speeds=312,
    ),
    "datacenter": SpeedRates(
        weights=1.6,
        cache=4.91,
        half=1.16,
        quantized=2.64,
        experts=2.64,
        attention=17.9,
        product=12.1,
        launch=13,
        prompt=55.3,
        decode_error=0.23,
        prefill_error=0.21,
        skew=1.2,
        speeds=168,
    ),
    "geforce": SpeedRates(
        weights=1.06,
        cache=2.12,
        half=0.664,
        quantized=1.18,
        experts=1.18,
        attention=9.13,
        product=11.1,
        launch=13,
        prompt=32,
        decode_error=0.07,
        prefill_error=0.24,
        skew=1.2,
        speeds=242,
    ),
    "radeon": SpeedRates(
        weights=1.15,
        cache=1.27,
        half=2.43,
        quantized=4.38,
        experts=9.42,
        attention=6.56,
        product=15.9,
        launch=0,
        prompt=0,
        decode_error=0.21,
        prefill_error=0.88,
        skew=1.2,
        speeds=897,
    ),
    "spark": SpeedRates(
        weights=1.13,
        cache=1.27,
        half=3.54,
        quantized=3.54,
        experts=2.66,
        attention=2.76,
        product=10.5,
        launch=13,
        prompt=323,
        decode_error=0.06,
        prefill_error=0.11,
        skew=1.2,
        speeds=214,
    ),
    "workstation": SpeedRates(
        weights=1.1,
        cache=1.71,
        half=1.15,
        quantized=2.3,
        experts=2.3,
        attention=20.8,
        product=10.1,
        launch=13,
        prompt=109,
        decode_error=0.06,
        prefill_error=0.43,
        skew=1.2,
        speeds=304,
    ),
}
