"""Transformers of the zoo against torchvision, published figures and closed forms."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from layerscope import analyze, load
from layerscope.errors import ShapeError
from layerscope.graph.edits import with_cache, with_tokens
from layerscope.zoo import bert, build, gpt2, llama, swin, t5, vit

Rows = list[dict[str, str]]


def table(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# -- torchvision

# Not in the shared table: as torchvision 0.29.2 states them in its own metadata.
ABSENT = {"swin_t": (28_288_354, "4.491")}


@pytest.mark.parametrize("name", [*vit.CONFIGS, *swin.CONFIGS])
def test_params_and_macs_are_torchvisions(name: str, shared: Path) -> None:
    rows = [row for row in table(shared / "truth/torchvision.csv") if row["builder"] == name]
    assert bool(rows) != (name in ABSENT)
    stated = {
        row["input_confirmed"]: (int(row["num_params"]), f"{float(row['gmacs_called_ops']):.3f}")
        for row in rows
    }
    for shape, figures in (stated or {"1x3x224x224": ABSENT[name]}).items():
        report = analyze(name, input=tuple(map(int, shape.split("x"))))
        assert "x".join(map(str, report.inputs[0].shape or ())) == shape
        assert (report.totals.params, f"{report.totals.macs / 1e9:.3f}") == figures


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("vit_b_16", r"vit_b_16 \(([\d,]+)\)"),
        ("swin_t", r"swin_t \(([\d,]+)\)"),
        ("bert_base", r"bert_base \(128 tokens\) ([\d,]+)"),
        ("llama-7b", r"Llama-7B shape \(128 tokens\) ([\d,]+),"),
    ],
)
def test_macs_are_the_confirmed_ones_to_the_unit(name: str, told: str, shared: Path) -> None:
    stated = re.search(told, (shared / "PEERS.md").read_text(encoding="utf-8"))
    assert stated is not None
    assert analyze(name).totals.macs == int(stated[1].replace(",", ""))


def test_a_graph_keeps_the_image_it_was_built_for() -> None:
    """The name is built anew for another image; a Graph has its table of positions already."""
    with pytest.raises(ShapeError, match=r"encoder\.add"):
        analyze(load("vit_b_16"), input=(3, 384, 384))
    with pytest.raises(ShapeError, match="cannot be reshaped"):
        analyze(load("swin_t"), input=(3, 256, 256))
    assert load("vit_b_16", inputs={"": (3, 384, 384)}).inputs[0].shape == (1, 3, 384, 384)


def test_swin_pads_what_windows_do_not_divide() -> None:
    """At 256 the maps are 64, 32, 16 and 8 wide: padded to 70, 35, 21 and 14."""
    report = analyze("swin_t", input=(3, 256, 256))
    pads = [layer.output for layer in report.layers if layer.op == "pad"]
    assert [(shape or ())[1:3] for shape in pads] == [
        *[(70, 70)] * 2, *[(35, 35)] * 2, *[(21, 21)] * 6, *[(14, 14)] * 2,
    ]  # fmt: skip
    assert report.totals.params == analyze("swin_t").totals.params
    assert len([layer for layer in report.layers if layer.op == "roll"]) == 2 * 6


def test_swin_shifts_every_other_block_but_where_one_window_is_all() -> None:
    report = analyze("swin_t", batch=3)
    rolled = {".".join(layer.scope[:3]) for layer in report.layers if layer.op == "roll"}
    assert rolled == {f"features.{n}" for n in ("1.1", "3.1", "5.1", "5.3", "5.5")}
    plain, shifted = (report.by_name[f"features.1.{n}.attn.attention"] for n in (0, 1))
    scores = 3 * 64 * 3 * 49 * 49  # batch, windows, heads, tokens, tokens
    assert [tensor.shape for tensor in shifted.inputs][3] == (3 * 64, 3, 49, 49)
    assert [tensor.shape for tensor in plain.inputs][3] == (3, 49, 49)
    assert plain.ops == shifted.ops
    assert plain.ops.mac == scores * 2 * 32
    assert plain.ops.add == 3 * scores  # two of the softmax, one of the bias
    assert report.totals.buffers == 12 * 49 * 49  # an index in every block


def test_an_encoder_block_runs_as_torchvision_runs_it() -> None:
    names = [
        node.name.rpartition("encoder_layer_0.")[2]
        for node in build("vit_b_16").nodes
        if "encoder_layer_0" in node.scope
    ]
    assert names == [
        "ln_1",
        *(f"self_attention.{part}" for part in ("in_proj", "split", "attention", "out_proj")),
        *("dropout", "add1", "ln_2", "mlp.0", "mlp.1", "mlp.2", "mlp.3", "mlp.4", "add2"),
    ]
    modules = build("vit_b_16").modules
    assert modules["encoder.layers.encoder_layer_0.self_attention"] == "MultiheadAttention"
    assert "encoder.layers.encoder_layer_0.self_attention.in_proj" not in modules


# -- closed forms: T tokens after P others in N sequences


def gpt2_figures(name: str, n: int, t: int, past: int = 0) -> tuple[int, int]:
    s = gpt2.CONFIGS[name]
    matrices = s.layers * 12 * s.width**2 + s.width * 50257
    vectors = s.layers * (4 * s.width + 9 * s.width) + 2 * s.width + 1024 * s.width
    return matrices + vectors, n * t * (matrices + 2 * s.layers * (past + t) * s.width)


def llama_figures(name: str, n: int, t: int, past: int = 0) -> tuple[int, int]:
    s = llama.CONFIGS[name]
    narrow = s.width * s.kv_heads // s.heads
    layer = 2 * s.width**2 + 2 * s.width * narrow + 3 * s.width * s.hidden
    matrices = s.layers * layer + s.vocabulary * s.width
    params = matrices + s.vocabulary * s.width + (2 * s.layers + 1) * s.width
    return params, n * t * (matrices + 2 * s.layers * (past + t) * s.width)


def bert_figures(name: str, n: int, t: int) -> tuple[int, int]:
    s = bert.CONFIGS[name]
    layer = 4 * s.width**2 + 2 * s.width * s.hidden
    biases = 4 * s.width + s.hidden + s.width + 4 * s.width
    tables = (30522 + 512 + 2) * s.width + 2 * s.width
    pooler = s.width**2
    params = s.layers * (layer + biases) + tables + pooler + s.width
    macs = n * t * s.layers * (layer + 2 * t * s.width) + n * pooler
    return params, macs


def t5_figures(name: str, n: int, read: int, written: int) -> tuple[int, int]:
    s = t5.CONFIGS[name]
    inner = s.heads * s.head_size
    attention, hidden = 4 * s.width * inner, 2 * s.width * s.hidden
    vectors = 2 * (32 * s.heads + s.width) + s.layers * (2 + 3) * s.width
    params = s.layers * (3 * attention + 2 * hidden) + vectors + 32128 * s.width
    encoder = read * (attention + hidden) + 2 * read**2 * inner
    own = written * (attention + hidden) + 2 * written**2 * inner
    across = (read + written) * attention // 2 + 2 * read * written * inner
    macs = s.layers * (encoder + own + across) + written * s.width * 32128
    return params, n * macs


@pytest.mark.parametrize(("n", "t"), [(1, 128), (1, 512), (3, 7), (2, 1)])
def test_figures_are_the_closed_forms(n: int, t: int) -> None:
    """Any number of tokens: no shape is fixed at 128."""
    expected = {name: gpt2_figures(name, n, t) for name in gpt2.CONFIGS}
    expected |= {name: llama_figures(name, n, t) for name in llama.CONFIGS}
    expected |= {name: bert_figures(name, n, t) for name in bert.CONFIGS}
    for name, figures in expected.items():
        report = analyze(name, input=(n, t))
        assert (report.totals.params, report.totals.macs) == figures, name
        assert report.coverage.unknown == {}


@pytest.mark.parametrize(("n", "read", "written"), [(1, 128, 128), (2, 300, 5), (1, 1, 77)])
def test_t5_reads_and_writes_texts_of_any_lengths(n: int, read: int, written: int) -> None:
    shapes = {"input_ids": (n, read), "decoder_input_ids": (n, written)}
    totals = analyze("t5-small", input=shapes).totals
    assert (totals.params, totals.macs) == t5_figures("t5-small", n, read, written)


@pytest.mark.parametrize("name", [*gpt2.CONFIGS, *llama.CONFIGS])
@pytest.mark.parametrize(("n", "past"), [(1, 0), (1, 1000), (4, 1)])
def test_a_decoding_step_is_its_closed_form(name: str, n: int, past: int) -> None:
    """One token through every matrix, attending to the kept ones and to itself."""
    figures = gpt2_figures if name in gpt2.CONFIGS else llama_figures
    totals = analyze(with_cache(build(name), past), batch=n).totals
    assert (totals.params, totals.macs) == figures(name, n, 1, past)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("bert_base", 109_482_240),
        ("gpt2", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("t5-small", 60_506_624),
        ("llama-7b", 6_738_415_616),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-405b", 405_853_388_800),
    ],
)
def test_params_are_those_hugging_face_counts(name: str, params: int) -> None:
    assert analyze(name).totals.params == params


# -- shared arrays


def test_a_tied_head_is_counted_once_and_multiplied_by() -> None:
    report = analyze("gpt2")
    head, first = report.by_name["lm_head"], report.by_name["transformer.wte"]
    assert (first.params, head.params, head.param_bytes) == (50257 * 768, 0, 0)
    assert head.ops.mac == 128 * 768 * 50257
    assert head.cost.note == "shares transformer.wte.weight"
    assert head.cost.read_bytes == 4 * (128 * 768 + 50257 * 768)


def test_one_table_serves_both_texts_and_the_head_of_t5() -> None:
    report = analyze("t5-small")
    users = [
        layer.name
        for layer in report.layers
        if any(param.storage == "shared.weight" for param in layer.cost.params)
    ]
    assert users == ["encoder.embed_tokens", "decoder.embed_tokens", "lm_head"]
    assert [report.by_name[name].params for name in users] == [32128 * 512, 0, 0]
    biases = [layer for layer in report.layers if layer.name.endswith("relative_attention_bias")]
    assert [layer.params for layer in biases] == [32 * 8] * 2
    scores = report.by_name["encoder.block.5.layer.0.SelfAttention.attention"]
    assert scores.inputs[3].shape == (8, 128, 128)
    assert scores.ops.mul == 0  # T5 does not scale


def test_only_the_head_of_llama_is_not_shared() -> None:
    report = analyze("llama-3-8b")
    assert report.by_name["lm_head"].params == report.by_name["model.embed_tokens"].params
    keys = report.by_name["model.layers.0.self_attn.k_proj"]
    assert (keys.output, keys.params) == ((1, 128, 1024), 4096 * 1024)


# -- the papers' and their readers' figures


def published(shared: Path) -> dict[tuple[str, str], str]:
    rows = table(shared / "truth/papers.csv")
    return {(row["model"], row["quantity"]): row["value"] for row in rows}


def test_params_are_the_published_ones(shared: Path) -> None:
    told = published(shared)
    exact = {"Llama-2-7B": "llama-7b", "Llama-7B": "llama-7b"}
    millions = {"GPT-2 large": "gpt2-large", "GPT-2 XL": "gpt2-xl", "Swin-S": "swin_s"}
    for theirs, ours in exact.items():
        totals = analyze(ours).totals
        assert totals.params == int(told[theirs, "params"])
        assert round(totals.macs / 1e9) == int(told[theirs, "macs"])
    for theirs, ours in millions.items():
        assert round(analyze(ours).totals.params / 1e6) == int(told[theirs, "params"])
    assert round(analyze("bert_base").totals.params, -7) == int(told["BERT-Base", "params"]) * 10**6
    assert f"{analyze('swin_s').totals.macs / 1e9:.1f}" == told["Swin-S", "macs"]
    assert f"{analyze('llama-3-8b').totals.params / 1e9:.5f}" == told["Llama3-8B", "params"]


def test_parts_of_gpt2_are_those_of_nanogpt(shared: Path) -> None:
    """A page that sizes GPT-2 on 1024 tokens, layer by layer, without biases."""
    told = {
        model.removeprefix("GPT-2 124M without biases: "): int(value)
        for (model, quantity), value in published(shared).items()
        if quantity == "flops_2_per_mac"
    }
    report = analyze(with_tokens(build("gpt2"), 1024))
    block = "transformer.h.0."
    parts = {
        "attention/kqv": "attn.c_attn",
        "attention/proj": "attn.c_proj",
        "mlp/ffw1": "mlp.c_fc",
        "mlp/ffw2": "mlp.c_proj",
    }
    for theirs, ours in parts.items():
        assert 2 * report.by_name[block + ours].ops.mac == told[theirs]
    # the weighted sum of values is one of the two products
    assert report.by_name[block + "attn.attention"].ops.mac == told["attention/reduce"]
    inside = sum(layer.ops.mac for layer in report.layers if layer.name.startswith(block))
    assert 2 * inside == told["block"]
    assert 2 * report.by_name["lm_head"].ops.mac == told["dense (lm head)"]
    assert 2 * report.totals.macs == told["forward_total"]
