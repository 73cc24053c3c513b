"""Steps of language models on this machine, measured: reading a prompt, and generating a token."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from layerscope.api.generating import model_name, steps_of
from layerscope.api.networks import analyze, need_operations
from layerscope.engines import Progress, quiet
from layerscope.engines.free_memory import check_memory
from layerscope.engines.machine import identity
from layerscope.engines.measuring import MeasureRequest, NetworkSource
from layerscope.engines.measuring import measure as measure_report
from layerscope.engines.workload import MeasureOptions
from layerscope.errors import EngineError, LayerscopeError, UsageError
from layerscope.interrupts import acknowledge
from layerscope.llm.account import PREFIX, layer_width, read_language_model
from layerscope.llm.block_formats import block_format
from layerscope.llm.cache import CacheOptions, cache_bytes
from layerscope.llm.description import LanguageModel
from layerscope.llm.parameters import total_params
from layerscope.llm.runtimes import runtime
from layerscope.llm.weight_bytes import weight_bytes
from layerscope.llm.work import Step, phase_of
from layerscope.report.generation_runs import GenerationRuns, MeasuredStep
from layerscope.version import __version__

if TYPE_CHECKING:
    from layerscope.report.measurement import Run

OWN_CACHE = "torch"  # the engine that runs the model of transformers with its cache
DTYPES = ("fp32", "bf16", "fp16")
LOWERED_COPIES = 3  # of the weights: the model that is written, its bytes, and those of the engine
NOTES = {
    True: "torch runs the model of transformers with its cache, which grows by a token each run; "
    "the head is computed for the last token.",
    False: "Other engines run the captured network with the cache as an input; the head is "
    "computed for all tokens.",
}


def measure_generation(
    network: str,
    steps: Sequence[Step] = (),
    request: MeasureRequest | None = None,
    dtype: str = "fp32",
    progress: Progress = quiet,
) -> GenerationRuns:
    """Time how long a language model reads a prompt and generates a token on this machine.

    `network` is `hf:config.json` or a folder with one, whose model gets random weights. `steps` are
    those of `steps_of`. With the engine torch the model of transformers runs with its own cache;
    other engines run the captured network. A model that does not fit into memory is refused.
    """
    request = request or MeasureRequest()
    model = read_language_model(network)
    if model.encoder:
        raise UsageError(f"{network}: {model.model_type} has an encoder; a decoder was expected")
    if dtype not in DTYPES:
        raise UsageError(f"dtype {dtype}: steps are measured in {', '.join(DTYPES)}")
    steps = steps or steps_of()
    tasks = request.tasks()
    for name, options in tasks:
        for step in steps:
            check_memory(f"{network}, {name}", bytes_by_use(model, step, (name, options), dtype))
    found: list[MeasuredStep] = []
    failures: list[str] = []
    code = 0
    for name, options in tasks:
        try:
            found += _on_engine(network, steps, (name, options, dtype), progress)
        except KeyboardInterrupt:
            acknowledge()
            if not found:
                raise
            failures.append(f"{name}: interrupted")
            code = 130
            break
        except LayerscopeError as error:
            if len(tasks) == 1:
                raise
            failures.append(f"{name}: {error}")
    if not found:
        raise EngineError("; ".join(failures))
    return GenerationRuns(
        network=model_name(network),
        machine=identity(),
        params=total_params(model),
        dtype=dtype,
        threads=tasks[0][1].threads,
        steps=tuple(found),
        version=__version__,
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        notes=tuple(NOTES[own] for own in sorted({each.engine == OWN_CACHE for each in found})),
        failures=tuple(failures),
        code=code,
    )


def bytes_by_use(
    model: LanguageModel, step: Step, engine: tuple[str, MeasureOptions], dtype: str
) -> dict[str, int]:
    """Bytes that measuring a step takes at least, by use."""
    name, options = engine
    number = block_format(dtype).row_bytes(1)
    rows = step.all_tokens
    different = {id(layer): layer for layer in model.layers}.values()
    widest = max((layer_width(layer, model.hidden) for layer in different), default=model.hidden)
    is_own = name == OWN_CACHE
    copies = 1 if is_own else LOWERED_COPIES
    kept = step.past + step.tokens + (options.runs if is_own else 0)
    cached = CacheOptions(tokens=kept, sequences=step.batch, keys=dtype, values=dtype)
    return {
        "weights": copies * weight_bytes(model, block_format(dtype)),
        "cache": cache_bytes(model, cached, runtime("transformers")),
        "activations": rows * (widest + model.hidden) * number,
        "logits": (step.batch if is_own else rows) * model.vocabulary * number,
    }


def _on_engine(
    network: str,
    steps: Sequence[Step],
    task: tuple[str, MeasureOptions, str],
    progress: Progress,
) -> list[MeasuredStep]:
    name, options, dtype = task
    if name == OWN_CACHE:
        from layerscope.engines.torch_language import measure_steps

        described = network.removeprefix(PREFIX), read_language_model(network), dtype
        return measure_steps(steps, described, options, progress)
    request = MeasureRequest(name, options.threads, options.runs, options.fusion)
    found = []
    for step in steps:
        progress(f"capture {phase_of(step)}", 0, 1)
        decode, tokens = (step.past, None) if step.past else (None, step.tokens)
        report = analyze(network, batch=step.batch, dtype=dtype, tokens=tokens, decode=decode)
        need_operations(report, "measure")
        (run,) = measure_report(report, request, NetworkSource(), progress).runs
        found.append(_of_run(run, step))
    return found


def _of_run(run: Run, step: Step) -> MeasuredStep:
    """The whole of a run that was also timed by layer, without the time of profiling."""
    timing = run.timing
    return MeasuredStep(
        engine=run.engine,
        engine_version=run.engine_version,
        phase=phase_of(step),
        tokens=step.tokens,
        past=step.past,
        batch=step.batch,
        runs_s=timing.unprofiled_s or timing.runs_s,
        contention=timing.contention,
    )
