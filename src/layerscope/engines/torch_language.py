"""Steps of a language model through PyTorch: the model of transformers, and its own cache.

The model is built from a configuration with random weights. A prompt is timed with an empty cache.
For decoding the cache is filled by running the model on random tokens, and each timed run adds a
token to it, as generating does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

from layerscope.engines import Progress
from layerscope.engines.clock import Clock, RunSample, contention
from layerscope.engines.workload import WARM_UPS, MeasureOptions, first_line
from layerscope.errors import EngineError, LayerscopeError
from layerscope.extras import need
from layerscope.formats.torch.capture import the_torch
from layerscope.formats.torch.decoding import CACHES, check_positions
from layerscope.formats.torch.model_names.building import build
from layerscope.formats.torch.model_names.hugging_face import hugging_face_model
from layerscope.llm.cache import CacheOptions, cache_bytes
from layerscope.llm.description import LanguageModel, Recurrence
from layerscope.llm.runtimes import runtime
from layerscope.llm.work import Step, phase_of
from layerscope.report.generation_runs import MeasuredStep

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

CHUNK = 512  # tokens at once that fill a cache
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class TorchSteps:
    """A model of transformers with random weights, and what its forward takes."""

    def __init__(self, path: str, described: LanguageModel, dtype: str) -> None:
        need("measuring a language model with torch", "hf", "torch", "transformers")
        self.torch, self.described, self.dtype = the_torch(), described, dtype
        self.path = path
        self.model = self._built()
        taken = inspect.signature(self.model.forward).parameters
        found = next((each for each in CACHES if each in taken), None)
        if found is None:
            kind = type(self.model).__name__
            raise EngineError(f"{path}: {kind}.forward takes no cache ({', '.join(CACHES)})")
        self.cache_name = found
        self.last_alone = {"logits_to_keep": 1} if "logits_to_keep" in taken else {}

    def _built(self) -> PreTrainedModel:
        """The model of the configuration with a head, on the CPU."""
        import transformers

        shell = hugging_face_model(self.path)[0]
        kind, config = type(shell), shell.config
        if shell.get_output_embeddings() is None:
            heads = transformers.MODEL_FOR_CAUSAL_LM_MAPPING
            kind = heads.get(type(config), kind)
        before = self.torch.get_default_dtype()
        self.torch.set_default_dtype(getattr(self.torch, DTYPES[self.dtype]))
        try:
            return build(lambda: kind(config), meta=False)
        finally:
            self.torch.set_default_dtype(before)

    def tokens(self, step: Step, count: int) -> Tensor:
        """Random tokens."""
        shape = step.batch, count
        return self.torch.randint(0, self.described.vocabulary, shape, dtype=self.torch.int64)

    def run(self, ids: Tensor, cache: object = None) -> object:
        """One forward pass; returns the cache that it leaves."""
        given = {} if cache is None else {self.cache_name: cache}
        result = self.model(input_ids=ids, use_cache=True, **given, **self.last_alone)
        return getattr(result, self.cache_name, None)

    def filled(self, step: Step, length: int, progress: Callable[[int], None]) -> object:
        """A cache of so many tokens; recurrent layers read them all at once."""
        is_recurrent = any(isinstance(each.mixer, Recurrence) for each in self.described.layers)
        size = length if is_recurrent else CHUNK
        cache: object = None
        for start in range(0, length, max(size, 1)):
            progress(start)
            cache = self.run(self.tokens(step, min(size, length - start)), cache)
        return cache


class StepProgress(Struct):
    """The steps of a measurement that are done."""

    show: Progress
    total: int
    done: int = 0

    def next(self, what: str) -> None:
        """Show the next one."""
        self.show(what, self.done, self.total)
        self.done += 1


def measure_steps(
    steps: Sequence[Step],
    described: tuple[str, LanguageModel, str],
    options: MeasureOptions,
    progress: Progress,
) -> list[MeasuredStep]:
    """Times of each step; `described` is the path of a configuration, its model and a dtype."""
    path = described[0]
    shown = StepProgress(progress, 1 + len(steps) * (WARM_UPS + options.runs))
    shown.next("build the model")
    try:
        found = TorchSteps(*described)
        for step in steps:
            last = step.past + options.runs if step.past else step.tokens
            check_positions(found.model, last, path)
        before = found.torch.get_num_threads()
        found.torch.set_num_threads(options.threads)
        try:
            with found.torch.random.fork_rng(devices=[]), found.torch.inference_mode():
                found.torch.manual_seed(0)
                return [_measured(found, step, options, shown) for step in steps]
        finally:
            found.torch.set_num_threads(before)
    except LayerscopeError:
        raise
    except Exception as error:  # what a model of a stranger's configuration raises
        raise EngineError(f"{path}: torch: {type(error).__name__}: {first_line(error)}") from error
    finally:
        progress("done", shown.total, shown.total)


def _measured(
    model: TorchSteps, step: Step, options: MeasureOptions, shown: StepProgress
) -> MeasuredStep:
    phase, empty = phase_of(step), step.past == 0
    samples: list[RunSample] = []
    cache: object = None
    size: int | None = None
    if not empty:
        # warm-up runs add tokens too
        start = max(step.past - WARM_UPS, 0)
        cache = model.filled(
            step, start, lambda n: shown.show(f"cache of {n:,} tokens", shown.done, shown.total)
        )
    warm_ups = 1 if empty else min(WARM_UPS, step.past)
    for n in range(warm_ups + options.runs):
        shown.next(f"{phase}: {'run' if n >= warm_ups else 'warm up'}")
        ids = model.tokens(step, step.tokens)
        if n == warm_ups and not empty:
            size = tensor_bytes(cache, model.torch, set())
        clock = Clock()
        left = model.run(ids, cache)
        passed = clock.stop()
        cache = None if empty else left
        if n >= warm_ups:
            samples.append(passed)
    return MeasuredStep(
        engine="torch",
        engine_version=str(model.torch.__version__),
        phase=phase,
        tokens=step.tokens,
        past=step.past,
        batch=step.batch,
        runs_s=tuple(sample.wall_s for sample in samples),
        contention=contention(samples, options.threads),
        cache_bytes=size,
        expected_cache_bytes=None if empty else _expected(model, step),
    )


def _expected(model: TorchSteps, step: Step) -> int:
    options = CacheOptions(
        tokens=step.past, sequences=step.batch, keys=model.dtype, values=model.dtype
    )
    return cache_bytes(model.described, options, runtime("transformers"))


def tensor_bytes(value: object, torch: ModuleType, seen: set[int]) -> int:
    """Bytes of all tensors in a cache of transformers: keys, values and states of its layers."""
    if isinstance(value, torch.Tensor):
        is_new = id(value) not in seen and value.dim() > 1
        seen.add(id(value))
        return int(value.numel() * value.element_size()) if is_new else 0
    if isinstance(value, (list, tuple)):
        return sum(tensor_bytes(each, torch, seen) for each in value)
    if isinstance(value, dict):
        return sum(tensor_bytes(each, torch, seen) for each in value.values())
    if hasattr(value, "__dict__") and type(value).__module__.startswith("transformers."):
        inside = {name: each for name, each in vars(value).items() if name != "config"}
        return tensor_bytes(inside, torch, seen)
    return 0
