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
        weights=1.24,
        cache=3.06,
        half=1.34,
        quantized=1.41,
        experts=1.61,
        attention=2.03,
        product=15.3,
        launch=0,
        prompt=0,
        decode_error=0.21,
        prefill_error=0.18,
        skew=0,
        speeds=292,
    ),
    "datacenter": SpeedRates(
        weights=1.59,
        cache=5.47,
        half=1.17,
        quantized=2.64,
        experts=2.64,
        attention=17.8,
        product=13.8,
        launch=11.6,
        prompt=53.9,
        decode_error=0.24,
        prefill_error=0.20,
        skew=1.2,
        speeds=168,
    ),
    "geforce": SpeedRates(
        weights=1.06,
        cache=2.21,
        half=0.664,
        quantized=1.17,
        experts=1.17,
        attention=9.16,
        product=12.8,
        launch=11.6,
        prompt=31.1,
        decode_error=0.07,
        prefill_error=0.31,
        skew=1.2,
        speeds=242,
    ),
    "radeon": SpeedRates(
        weights=1.19,
        cache=1.21,
        half=2.41,
        quantized=4.42,
        experts=9.54,
        attention=6.39,
        product=16,
        launch=0,
        prompt=0,
        decode_error=0.20,
        prefill_error=0.92,
        skew=1.2,
        speeds=762,
    ),
    "spark": SpeedRates(
        weights=1.11,
        cache=1.32,
        half=3.44,
        quantized=3.44,
        experts=2.18,
        attention=2.59,
        product=12.4,
        launch=11.6,
        prompt=465,
        decode_error=0.11,
        prefill_error=0.03,
        skew=1.2,
        speeds=194,
    ),
    "workstation": SpeedRates(
        weights=1.1,
        cache=1.85,
        half=1.15,
        quantized=2.3,
        experts=2.3,
        attention=20.8,
        product=11.4,
        launch=11.6,
        prompt=108,
        decode_error=0.08,
        prefill_error=0.13,
        skew=1.2,
        speeds=304,
    ),
}
