"""Times of language models on machines: prefill and decode, for one batch size or several."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

from msgspec import Struct

from layerscope.engines.accelerators import Accelerator
from layerscope.graph.types import Shape
from layerscope.llm.account import PREFIX, is_gguf, read_language_model
from layerscope.llm.block_formats import FORMATS, block_format
from layerscope.llm.cache import CacheOptions, cache_bytes
from layerscope.llm.description import LanguageModel
from layerscope.llm.gguf_model import file_bits
from layerscope.llm.parameters import BUFFERS
from layerscope.llm.weight_bytes import format_lines, stored_bytes
from layerscope.llm.work import SizeOf, Step, layer_works, phase_of
from layerscope.prediction.language import NO_FLASH, limits_of, rates_of, step_times
from layerscope.prediction.language_rates import FAMILIES, SOURCE
from layerscope.prediction.other_machines import sheet_of
from layerscope.report.generation import GenerationTimes, StepPrediction
from layerscope.report.numbers import bytes_text
from layerscope.version import __version__

DEFAULT_TOKENS = 512  # of a prompt, where no length is given
PLAIN = "bf16"  # of what a format does not quantize
FILE_NOTE = (
    "Weights of the file are counted with the mean bits of embedding, head, experts and the rest."
)
NO_FLASH_NOTE = (
    "These speeds are of builds from May 2024 without flash attention: newer ones take less time "
    "for long contexts."
)
LAYERS_ALONE = "Layers were not timed one by one: their sum is what was fitted."


def steps_of(
    tokens: int | None = None, decode: int | None = None, batches: Sequence[int] = (1,)
) -> tuple[Step, ...]:
    """For each batch size a prompt of `tokens`, and one token after `decode` in the cache."""
    if tokens is None and decode is None:
        tokens = DEFAULT_TOKENS
    found = []
    for batch in batches:
        if tokens is not None:
            found.append(Step(tokens=tokens, batch=batch))
        if decode is not None:
            found.append(Step(tokens=1, past=decode, batch=batch))
    return tuple(found)


def predict_generation(
    network: str,
    steps: Sequence[Step] = (),
    *,
    on: str,
    formats: tuple[str, str] = ("bf16", "f16"),
) -> GenerationTimes:
    """Predict how long a language model reads a prompt and generates a token on a machine.

    `network` is `hf:config.json`, a folder with one, or a GGUF file. `steps` are those of
    `steps_of`; without them a prompt of 512 tokens. `formats` are those of the weights and of the
    cache, such as q4_k and f16; weights of a file have its own types.
    """
    model, sheet = read_language_model(network), sheet_of(on)
    weights, notes = _weights(network, model, formats[0])
    steps = steps or steps_of()
    found = (_predicted(model, step, sheet, (weights, formats[1])) for step in steps)
    return GenerationTimes(
        network=model_name(network),
        machine=sheet.says,
        weights=weights.says,
        cache=formats[1],
        steps=tuple(found),
        source=SOURCE,
        version=__version__,
        notes=(
            *_notes(sheet, on),
            *notes,
            *model.notes,
            _memory_note(model, (weights, formats[1]), steps),
        ),
    )


def model_name(network: str) -> str:
    """The name of the file without its suffix; of a config.json that of its folder."""
    path = Path(network.removeprefix(PREFIX))
    if path.suffix != ".json":  # a folder, whose name may have a version such as 3.1
        return path.name or network
    name = path.parent.name if path.name == "config.json" else path.stem.removesuffix("_config")
    return name or network


class StoredWeights(Struct, frozen=True):
    """How large weights are: a text, bytes of each of them, and the bits of most."""

    says: str
    size_of: SizeOf
    bits: float


def _weights(
    network: str, model: LanguageModel, wanted: str
) -> tuple[StoredWeights, Sequence[str]]:
    """The weights in a format, or as a GGUF file has them, and notes."""
    if is_gguf(network):
        parts = file_bits(network)
        bits = parts["layers"]

        def of_file(part: str, name: str, shape: Shape) -> float:
            return prod(shape) * parts.get(part, bits) / 8

        return StoredWeights("the types of the file", of_file, bits), (FILE_NOTE,)
    chosen = block_format(wanted)

    def size_of(part: str, name: str, shape: Shape) -> float:
        return stored_bytes(model, (part, name, shape), (chosen, FORMATS[PLAIN]))

    stored = StoredWeights(wanted, size_of, float(chosen.bits))
    return stored, format_lines(chosen, PLAIN)


def _predicted(
    model: LanguageModel, step: Step, sheet: Accelerator, formats: tuple[StoredWeights, str]
) -> StepPrediction:
    weights, cache = formats
    rates = rates_of(sheet)
    works = layer_works(model, step, weights.size_of, cache, rates.skew)
    phase = phase_of(step)
    return StepPrediction(
        phase=phase,
        tokens=step.tokens,
        past=step.past,
        batch=step.batch,
        rows=step_times(works, step, limits_of(sheet, weights.bits), rates),
        error=rates.prefill_error if phase == "prefill" else rates.decode_error,
    )


def _memory_note(
    model: LanguageModel, formats: tuple[StoredWeights, str], steps: Sequence[Step]
) -> str:
    """What the steps need of the machine's memory, which data sheets here do not have."""
    (weights, cache), parts = formats, [model.outer]
    parts += [layer.parts for layer in (*model.encoder, *model.layers)]
    stored = sum(
        weights.size_of(part, name, shape)
        for each in parts
        for part, arrays in each.items()
        if part != BUFFERS
        for name, shape in arrays.items()
    )
    kept = max(
        cache_bytes(
            model,
            CacheOptions(
                tokens=step.past + step.tokens, sequences=step.batch, keys=cache, values=cache
            ),
        )
        for step in steps
    )
    return (
        f"Weights take {bytes_text(round(stored))}, and the largest cache {bytes_text(kept)}: "
        "whether the machine has that memory is not checked."
    )


def _notes(sheet: Accelerator, name: str) -> list[str]:
    """What the figures rest on."""
    notes = [LAYERS_ALONE, "Attention counts the pairs that mask and window need."]
    if sheet.family in FAMILIES:
        rates = FAMILIES[sheet.family]
        notes.insert(0, f"Rates of the family {sheet.family}: {rates.speeds:,} published speeds.")
    else:
        notes.insert(
            0, f"No speeds of language models on {name} are known: rates of workstation cards."
        )
    if sheet.family not in FAMILIES or sheet.family in NO_FLASH:
        notes.append(NO_FLASH_NOTE)
    return notes
