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
    decode_error: float
    prefill_error: float
    skew: float  # tokens of a batch choose the expert of rank i in proportion to i^-skew
    speeds: int  # published ones that were fitted

    def values(self) -> tuple[float, ...]:
        """The rates, in the order of `language.amounts`."""
        return (
            self.weights, self.cache, self.half, self.quantized, self.experts, self.attention,
            self.product,
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
        decode_error=0.21,
        prefill_error=0.18,
        skew=0,
        speeds=292,
    ),
    "datacenter": SpeedRates(
        weights=1.6,
        cache=4.89,
        half=1.91,
        quantized=3.17,
        experts=3.17,
        attention=18.9,
        product=14,
        decode_error=0.24,
        prefill_error=0.66,
        skew=1.2,
        speeds=168,
    ),
    "geforce": SpeedRates(
        weights=1.06,
        cache=2.17,
        half=0.774,
        quantized=1.26,
        experts=1.26,
        attention=9.47,
        product=12.8,
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
        decode_error=0.20,
        prefill_error=0.92,
        skew=1.2,
        speeds=762,
    ),
    "spark": SpeedRates(
        weights=1.19,
        cache=1.32,
        half=3.91,
        quantized=3.91,
        experts=3.7,
        attention=2.75,
        product=11,
        decode_error=0.20,
        prefill_error=0.06,
        skew=1.2,
        speeds=194,
    ),
    "workstation": SpeedRates(
        weights=1.09,
        cache=1.7,
        half=1.68,
        quantized=2.98,
        experts=2.98,
        attention=22.1,
        product=11.7,
        decode_error=0.08,
        prefill_error=0.19,
        skew=1.2,
        speeds=304,
    ),
}
