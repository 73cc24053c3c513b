"""Sizes of caches and states that runtimes printed, to the printed digit."""

from __future__ import annotations

import pytest

from layerscope.llm.cache import CacheOptions, LayerCache, Rule, layer_caches
from layerscope.llm.description import LanguageModel, Recurrence
from layerscope.llm.families import describe
from layerscope.llm.runtimes import RUNTIMES
from tests.llm.published_rows import WRITTEN, Config, Row, needs_shared, rows, stored_config

KINDS = ("kv", "state")
ROWS = [row for row in rows("kv_cache.csv") if row["kind"].startswith(KINDS)]
UNITS = {"MiB": 2**20, "MB": 2**20, "GiB": 2**30, "GB": 2**30}
STORED = {
    "gpt-oss": "openai--gpt-oss-120b_config.json",
    "qwen3moe": "Qwen--Qwen3-235B-A22B_config.json",
    "qwen35": "Qwen--Qwen3.5-27B_config.json",
    "qwen35moe": "Qwen--Qwen3.5-35B-A3B_config.json",
    "kimi_k25": "moonshotai--Kimi-K2.5_config.json",
    "deepseek_v32": "deepseek-ai--DeepSeek-V3.2_config.json",
}
MAMBA: Config = {
    "model_type": "mamba", "hidden_size": 2048, "num_hidden_layers": 48, "state_size": 16,
    "expand": 2, "conv_kernel": 4, "vocab_size": 50280,
}  # fmt: skip


def _heads(row: Row) -> Config:
    """A decoder with the keys and values of a row, in as many layers as are cached."""
    is_listed = row["kv_heads"].startswith("per-layer")
    layers = row["layers_cached"] if is_listed else row["layers_total"]
    heads = 8 if is_listed else int(row["kv_heads"])
    return {
        "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": int(layers),
        "num_attention_heads": heads, "num_key_value_heads": heads,
        "head_dim": int(row["head_dim_k"]), "intermediate_size": 8, "vocab_size": 8,
    }  # fmt: skip


def _gemma4(row: Row) -> Config:
    is_small = row["layers_total"] != "48"  # 42 layers, of which the last 18 share keys and values
    return {
        "model_type": "gemma4_text", "num_hidden_layers": 42 if is_small else 48,
        "num_key_value_heads": 2 if is_small else 8, "head_dim": 256, "global_head_dim": 512,
        "num_global_key_value_heads": 2 if is_small else 1, "attention_k_eq_v": True,
        "num_kv_shared_layers": 18 if is_small else 0,
        "sliding_window": 512 if is_small else 1024,
    }  # fmt: skip


def _deepseek(row: Row) -> Config:
    if "kimi" in row["model"].lower():
        return stored_config("moonshotai--Kimi-K2-Instruct_config.json")
    if row["layers_total"].startswith("61"):
        return stored_config("deepseek-ai--DeepSeek-R1_config.json")
    lite = "Lite" if row["layers_total"] == "27" else ""
    return WRITTEN["deepseek_v2"]({**row, "model": lite})


def config_of(row: Row) -> Config:
    arch, model = row["arch"], row["model"]
    if "9B" in model and arch == "qwen35":
        return {"model_type": "qwen3_5_text"}
    if arch in STORED:
        return stored_config(STORED[arch])
    if arch == "deepseek2":
        return _deepseek(row)
    if arch == "longcat_flash":  # two attention blocks in each of its 28 layers
        found = stored_config("deepseek-ai--DeepSeek-R1_config.json")
        return {**found, "num_hidden_layers": 56}
    if arch == "gemma4":
        return _gemma4(row)
    if arch == "mamba":
        return MAMBA
    if "iSWA" in model:  # every fourth layer sees all keys
        return {**_heads(row), "model_type": "cohere2", "sliding_window": 2048}
    return _heads(row)


# What the log of a row says beside its columns: a larger micro-batch, a build that rounds less.
ASKED: dict[str, dict[str, object]] = {"K097": {"micro_batch": 1024}, "K085": {"cell_step": 32}}


def _latent(row: Row) -> str:
    """How a row stores latents: as its keys and values are printed."""
    if row["kind"] == "kv" and row["head_dim_k"] != "576":
        return "expanded"
    sizes = row["k_size"], row["v_size"]
    return "copied" if sizes[1] and sizes[0] != sizes[1] else "latent"


def options_of(row: Row, **changed: object) -> CacheOptions:
    sequences, _, streams = (row["n_seq"] or "1").partition("/")
    found: dict[str, object] = {
        "tokens": int(row["n_ctx"] or row["cells"] or 0),
        "sequences": int(sequences),
        "is_unified": streams == "1" and sequences != "1",
        "keys": _dtype(row["type_k"]),
        "values": _dtype(row["type_v"]),
        "latent": _latent(row),
    }
    if streams not in ("", "1"):  # the context of a log is that of all streams
        found["tokens"] = int(row["n_ctx"]) // int(sequences)
    elif found["is_unified"]:
        found["tokens"] = -(-int(row["n_ctx"]) // int(sequences))
    found.update(ASKED.get(row["id"], {}))
    return CacheOptions(**{**found, **changed})  # type: ignore[arg-type]


def _dtype(name: str) -> str:
    return "f16" if name in ("", "16bit", "tq_v_4b") else name


def rule_of(row: Row) -> Rule:
    return RUNTIMES["mlx" if row["runtime"].startswith("MLX") else "llama.cpp"]


def part_of(row: Row, caches: tuple[LayerCache, ...]) -> int:
    """The bytes that a row prints: of one kind of layers, or of all."""
    kind = row["kind"]
    if kind == "kv-mtp-draft":  # the one layer of multi-token prediction
        return next(each.total for each in caches if each.kind == "full")
    if kind in ("kv-iswa-global", "kv-iswa-window"):
        wanted = "full" if kind == "kv-iswa-global" else "sliding"
        return sum(each.total for each in caches if each.kind == wanted)
    if kind == "state":
        return sum(each.state for each in caches)
    return sum(each.keys + each.values for each in caches)


def printed(size: int, row: Row) -> str:
    """Bytes in the unit and with the digits of a row."""
    digits = len(row["printed_size"].partition(".")[2])
    return f"{size / UNITS[row['unit']]:.{digits}f}"


def wanted(row: Row) -> str:
    return row["printed_size"]


def _is_equal(row: Row, **changed: object) -> bool:
    model = describe(config_of(row), row["model"])
    if row["id"] == "K129":  # keys alone, of eight layers and one of multi-token prediction
        layers = layer_caches(model, options_of(row), rule_of(row))
        keys = sum(each.keys for each in layers)
        return printed(keys + max(each.keys for each in layers), row) == wanted(row)
    size = part_of(row, layer_caches(model, options_of(row, **changed), rule_of(row)))
    return printed(size, row) == wanted(row)


@needs_shared
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["checked"] == "yes"], ids=lambda row: f"{row['id']}"
)
def test_printed_sizes(row: Row) -> None:
    assert _is_equal(row)


# Rows that a simple formula contradicts: what the runtime was asked for.
EXPLAINED: dict[str, dict[str, object]] = {
    "K088": {"is_full_window": True, "tokens": 131072},
    "K104": {"copies": 6},
    "K107": {"copies": 2},
    "K165": {"copies": 3},
    "K166": {"copies": 3},
    "K158": {"latent": "expanded"},
    "K159": {"latent": "expanded"},
}
TABLE = {"K155", "K156", "K157"}  # twice the keys and values of the released configuration


@needs_shared
@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["checked"] == "contradicts"], ids=lambda row: f"{row['id']}"
)
def test_contradicting_sizes_are_explained(row: Row) -> None:
    if row["id"] in TABLE:
        doubled = {**row, "kv_heads": str(2 * int(row["kv_heads"]))}
        # The table has as many tokens as it says, and rounds none up.
        options = options_of(doubled)
        sizes = layer_caches(describe(config_of(doubled)), options)
        assert abs(sum(each.total for each in sizes) / 2**30 - float(row["printed_size"])) < 0.006
        return
    if row["id"] in ("K158", "K159"):  # in parts of 0.01 GiB, and rounded down or up
        model = describe(config_of(row))
        caches = layer_caches(model, options_of(row, latent="expanded"), rule_of(row))
        size = sum(each.total for each in caches) / 2**30
        assert abs(size - float(row["printed_size"])) < 0.06
        return
    assert not _is_equal(row)
    assert _is_equal(row, **EXPLAINED[row["id"]])


def test_a_state_does_not_grow_with_the_context() -> None:
    model = describe(MAMBA)
    short, long = (CacheOptions(tokens=tokens) for tokens in (1, 1 << 20))
    for rule in RUNTIMES.values():
        assert layer_caches(model, short, rule) == layer_caches(model, long, rule)


def _state(model: LanguageModel) -> list[Recurrence]:
    return [each.mixer for each in model.layers if isinstance(each.mixer, Recurrence)]


def test_mamba_has_a_state_in_every_layer() -> None:
    assert len(_state(describe(MAMBA))) == 48
