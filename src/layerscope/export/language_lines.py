"""A language model in use, in sentences: active parameters, cache by kind of layer, what fits."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from layerscope.export.grid import Cell, Grid
from layerscope.llm.account import DeployedMemory, Deployment, memory_use
from layerscope.llm.block_formats import block_format
from layerscope.llm.cache import LayerCache, cache_bytes, needed
from layerscope.llm.description import LatentAttention
from layerscope.llm.devices import Parallelism, stage_memory
from layerscope.llm.fit import MOST, LanguageFit, Largest
from layerscope.llm.macs import MacCount, macs
from layerscope.llm.parameters import (
    active_params,
    expected_experts,
    predictor_params,
    total_params,
)
from layerscope.llm.runtimes import allocation
from layerscope.llm.weight_bytes import format_lines
from layerscope.report.numbers import bytes_text, exact_text

USES = ("weights", "cache", "activations", "workspace")
MOST_TOKENS = 100_000  # more tokens are sent to all experts
NAMES = {
    "full": "full attention",
    "sliding": "sliding windows",
    "chunked": "chunked attention",
    "latent": "latent attention",
    "mamba": "Mamba states",
    "mamba2": "Mamba-2 states",
    "delta": "gated delta nets",
    "shared": "attention that shares a cache",
    "none": "no cache",
}


class LanguageResults(Struct, frozen=True):
    """A language model in use, and what fits in a memory if that is requested."""

    deployment: Deployment
    fit: LanguageFit | None = None
    decodes: bool = False  # one token after the cache, not all of them at once
    split: Parallelism | None = None

    def lines(self) -> tuple[str, ...]:
        """One sentence for each result."""
        found = [*_params(self.deployment), *_attention(self.deployment, self.decodes)]
        found += [*cache_lines(self.deployment), memory_line(self.deployment)]
        found += format_notes(self.deployment)
        found += fit_lines(self.fit) if self.fit is not None else []
        return (*found, *([] if self.split is None else device_lines(self.deployment, self.split)))

    def table(self) -> Grid | None:
        """The longest context by batch size, if a fit is requested."""
        return None if self.fit is None else fit_table(self.deployment, self.fit)


def _params(deployment: Deployment) -> list[str]:
    model = deployment.model
    found = []
    if any(layer.experts for layer in model.layers):
        counts = ", ".join(f"{exact_text(c.params)} {c.convention}" for c in active_params(model))
        total = exact_text(total_params(model))
        found.append(f"Active per token, of {total} parameters: {counts}.")
        found.append(_experts(deployment))
    more = predictor_params(model)
    if more:
        found.append(
            f"Multi-token prediction, {_count_text(len(model.predictors), 'layer')}, has "
            f"{exact_text(more)} further parameters in the checkpoint."
        )
    return [*(f"Counted here is {note}." for note in model.notes), *found]


def _experts(deployment: Deployment) -> str:
    """How many experts a decoding step of the batch reads, of the layers with the most."""
    layers = [each.experts for each in deployment.model.layers if each.experts is not None]
    widest = max(layers, key=lambda each: each.count)
    batch = deployment.cache.sequences
    read = float(expected_experts(widest, min(batch, MOST_TOKENS)))
    return (
        f"A decoding step of batch {batch} reads {read:.4g} of {widest.count} experts of a layer, "
        "on average, if all are as likely."
    )


def attention_macs(deployment: Deployment, decodes: bool) -> MacCount | None:
    """Multiply-adds of the prompt, or of one token after the cache; None if they are unknown."""
    options = deployment.cache
    tokens, past = (1, options.tokens) if decodes else (options.tokens, 0)
    return macs(deployment.model, tokens, past, options.sequences)


def _attention(deployment: Deployment, decodes: bool) -> list[str]:
    """Multiply-adds of attention over all pairs, and over those that masks leave."""
    found = attention_macs(deployment, decodes)
    if found is None or found.needed == found.attention:
        return []
    return [
        f"Attention takes {exact_text(found.attention)} MACs over all pairs, "
        f"{exact_text(found.needed)} over those that masks and windows leave."
    ]


def _size(size: int) -> str:
    return f"{bytes_text(size)} ({exact_text(size)} bytes)"


def _count_text(number: int, what: str) -> str:
    return f"{exact_text(number)} {what}{'' if number == 1 else 's'}"


def cache_lines(deployment: Deployment) -> list[str]:
    """The cache by kind of layer, and what changes its size."""
    options, layers = deployment.cache, deployment.layers()
    formats = options.keys if options.keys == options.values else f"{options.keys}/{options.values}"
    total = sum(each.total for each in layers)
    how = f"as {deployment.program} allocates it" if deployment.program else "as it is needed"
    whose = (
        f"{_count_text(options.sequences, 'sequence')} of {_count_text(options.tokens, 'token')}"
    )
    if deployment.model.encoder:
        whose = f"{whose}, and {exact_text(options.encoded)} of the encoder,"
    found = [f"Cache of {whose} in {formats}, {how}: {_size(total)}{_kinds(layers)}."]
    if deployment.program:
        found.append(f"{deployment.program}: {allocation(deployment.program, options)}.")
        least = cache_bytes(deployment.model, options, needed)
        if least != total:
            found.append(f"The mathematics needs {_size(least)} of it.")
        found += _states(deployment)
    per_token = bytes_per_token(deployment)
    if per_token:
        found.append(f"Each further token of a sequence adds {_size(per_token)}.")
    if any(isinstance(layer.mixer, LatentAttention) for layer in deployment.model.layers):
        found.append(_latent(deployment))
    return found


def _states(deployment: Deployment) -> list[str]:
    """What llama.cpp keeps of recurrent states."""
    states = sum(each.state for each in deployment.layers())
    if not states or deployment.program != "llama.cpp":
        return []
    copies = deployment.cache.copies
    each = bytes_text(states // (1 + copies))
    return [
        "States are kept in f32, whatever the format of the cache is; each copy that speculative "
        f"decoding rolls back to takes {each} more."
    ]


def _kinds(layers: tuple[LayerCache, ...]) -> str:
    """Layers of each kind with their cells and bytes."""
    if not any(each.total for each in layers):
        return ""
    counts = Counter(layers)
    parts = []
    for each, number in counts.items():
        cells = f", {exact_text(each.cells)} cells" if each.cells else ""
        size = bytes_text(each.total)
        cross = f", {bytes_text(each.cross)} of it for the encoder" if each.cross else ""
        parts.append(
            f"{_count_text(number, 'layer')} of {NAMES[each.kind]}{cells}, {size} each{cross}"
        )
    return " = " + "; ".join(parts)


def bytes_per_token(deployment: Deployment) -> int:
    """Bytes of the keys and values of one more token, far behind all windows."""
    far = deployment.sized(1, 1 << 30)
    one = replace(far, program="")
    more = one.sized(1, (1 << 30) + 1)
    growth = sum(b.total - a.total for a, b in zip(one.layers(), more.layers(), strict=True)
                 if a.kind != "chunked")  # fmt: skip
    return max(growth, 0)


def _latent(deployment: Deployment) -> str:
    sizes = []
    for kind, name in (("copied", "with the latent again as values"), ("expanded", "expanded")):
        changed = replace(deployment, cache=replace(deployment.cache, latent=kind))
        size = sum(each.total for each in changed.layers())
        sizes.append(f"{bytes_text(size)} {name}")
    return f"Keys and values are cached as latents; builds that store more take {', '.join(sizes)}."


def _memory_text(use: DeployedMemory) -> str:
    parts = {
        "weights": use.weights,
        "cache": use.cache,
        "activations": use.activations,
        "workspace": use.workspace,
    }
    listed = " + ".join(f"{name} {bytes_text(size)}" for name, size in parts.items() if size)
    return f"{bytes_text(use.total)} = {listed}"


def memory_line(deployment: Deployment) -> str:
    """Bytes by use."""
    use = memory_use(deployment)
    bits = 8 * use.weights / max(total_params(deployment.model), 1)
    batch = deployment.cache.sequences
    return (
        f"Memory at batch {batch} with weights in {deployment.weights} ({bits:.2f} bits each on "
        f"average): {_memory_text(use)}.{_profiled(deployment)}"
    )


def format_notes(deployment: Deployment) -> list[str]:
    """What the formats of weights and cache leave open."""
    found = []
    if deployment.stored is None:
        plain = deployment.activations
        found += format_lines(block_format(deployment.weights), plain)
        if deployment.model.quantized:
            found.append(
                f"The configuration is of a checkpoint in {deployment.model.quantized}, whose "
                f"files have their own bytes; these are of weights in {deployment.weights}."
            )
    for name in dict.fromkeys((deployment.cache.keys, deployment.cache.values)):
        found += format_lines(block_format(name), name, "the cache")
    return found


def _profiled(deployment: Deployment) -> str:
    """What vLLM's own peak is measured with."""
    run = deployment.profile
    if run is None:
        return ""
    return (
        f" Activations and workspace are those of vLLM's profile run, {exact_text(run.tokens)} "
        f"tokens of {exact_text(run.sequences)} sequences; the CUDA context, CUDA graphs and "
        "copies that sampling takes are not counted."
    )


def device_lines(deployment: Deployment, split: Parallelism) -> list[str]:
    """Bytes of the fullest device, and of all of them."""
    stages = stage_memory(deployment, split)
    fullest = max(stages, key=lambda use: use.total)
    kinds = {"tensor": split.tensor, "pipeline": split.pipeline, "expert": split.expert}
    named = ", ".join(f"{name} {count}" for name, count in kinds.items() if count > 1)
    where = f" (stage {stages.index(fullest) + 1} of {len(stages)})" if len(stages) > 1 else ""
    total = sum(use.total for use in stages) * split.tensor * split.expert
    return [
        f"On {_count_text(split.devices, 'device')}{f' ({named})' if named else ''} the fullest one"
        f"{where} takes {_memory_text(fullest)}; all take {bytes_text(total)}."
    ]


def fit_lines(fit: LanguageFit) -> list[str]:
    """The largest batch, the longest context, and the longest context by batch."""
    room = bytes_text(fit.memory_bytes)
    if fit.usable_bytes < fit.memory_bytes:
        share = 100 * fit.usable_bytes / fit.memory_bytes
        room = f"{bytes_text(fit.usable_bytes)} ({share:.0f} % of {room})"
    if not fit.contexts:
        return [f"Nothing fits in {room}: one token takes {_memory_text(fit.longest_context.use)}."]
    batch = _largest(fit.largest_batch, "Batch", f"at {_count_text(fit.tokens, 'token')}", room)
    context = _largest(fit.longest_context, "A context of", f"at batch {fit.batch}", room)
    return [batch, context]


def fit_rows(deployment: Deployment, fit: LanguageFit) -> list[tuple[str, ...]]:
    """For each batch size the longest context, its bytes by use, and their sum."""
    weights = memory_use(deployment).weights
    found: list[tuple[str, ...]] = []
    for batch, tokens in fit.contexts:
        if tokens >= MOST:
            found.append((exact_text(batch), "any", *[""] * len(USES), ""))
            continue
        use = memory_use(deployment.sized(batch, tokens), weights)
        sizes = (use.weights, use.cache, use.activations, use.workspace)
        texts = [bytes_text(size) if size else "" for size in sizes]
        found.append((exact_text(batch), exact_text(tokens), *texts, bytes_text(use.total)))
    return found


def fit_table(deployment: Deployment, fit: LanguageFit) -> Grid | None:
    """The longest context by batch size, with its bytes by use; None if nothing fits."""
    rows = fit_rows(deployment, fit)
    if not rows:
        return None
    titles = [Cell("batch"), Cell("longest context"), *(Cell(name, drop=1) for name in USES)]
    body = [[Cell(text) for text in row] for row in rows]
    return Grid([[*titles, Cell("memory")], *body])


def _largest(found: Largest, what: str, where: str, room: str) -> str:
    if not found.number:
        return f"{what} 1 does not fit in {room} {where}: it takes {_memory_text(found.use)}."
    if found.number >= MOST:
        return f"{what} any size fits in {room} {where}."
    number = exact_text(found.number)
    return f"{what} {number} is the largest in {room} {where}: {_memory_text(found.use)}."
