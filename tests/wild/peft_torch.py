"""peft: adapters of many kinds on a small Llama, BERT and T5."""

from __future__ import annotations

from typing import Any

import torch

from tests.wild.compare_torch import Built

IDS = (2, 16)
ADAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "lora": ("LoraConfig", {"r": 4}),
    "lora all": ("LoraConfig", {"r": 4, "target_modules": "all-linear"}),
    "dora": ("LoraConfig", {"r": 4, "use_dora": True}),
    "rslora": ("LoraConfig", {"r": 4, "use_rslora": True}),
    "lora with bias": ("LoraConfig", {"r": 4, "bias": "all"}),
    "adalora": ("AdaLoraConfig", {"init_r": 4, "target_r": 2, "total_step": 10}),
    "ia3": ("IA3Config", {}),
    "loha": ("LoHaConfig", {"r": 4}),
    "lokr": ("LoKrConfig", {"r": 4}),
    "vera": ("VeraConfig", {"r": 4}),
    "fourierft": ("FourierFTConfig", {"n_frequency": 20}),
    "boft": ("BOFTConfig", {"boft_block_size": 4}),
    "oft": ("OFTConfig", {"oft_block_size": 4, "use_cayley_neumann": False}),
    "hra": ("HRAConfig", {"r": 4}),
    "ln tuning": ("LNTuningConfig", {}),
    "randlora": ("RandLoraConfig", {"r": 4}),
    "road": ("RoadConfig", {"group_size": 8}),
    "shira": ("ShiraConfig", {"r": 4}),
    "vblora": ("VBLoRAConfig", {"r": 4, "num_vectors": 16, "vector_length": 8}),
    "prompt tuning": ("PromptTuningConfig", {"num_virtual_tokens": 4}),
    "p tuning": ("PromptEncoderConfig", {"num_virtual_tokens": 4, "encoder_hidden_size": 16}),
    "prefix tuning": ("PrefixTuningConfig", {"num_virtual_tokens": 4}),
}
BASES = ("llama", "bert")
TARGETS = {"llama": ["q_proj", "v_proj"], "bert": ["query", "value"]}
NORMS = {"llama": ["input_layernorm"], "bert": ["LayerNorm"]}
PROMPTS = ("prompt tuning", "p tuning", "prefix tuning")


def names() -> list[str]:
    """Every adapter on both; those that put tokens in front, on the decoder alone."""
    return [
        f"{adapter} {base}"
        for adapter in ADAPTERS
        for base in BASES
        if base == "llama" or adapter not in PROMPTS
    ]


def build(name: str) -> Built:
    """An adapted model on tokens, with a mask of them where it takes one."""
    import peft

    adapter, base = name.rsplit(" ", 1)
    kind, options = ADAPTERS[adapter]
    options = dict(options)
    options["task_type"] = "CAUSAL_LM" if base == "llama" else "FEATURE_EXTRACTION"
    if adapter == "ia3":
        options |= {"target_modules": TARGETS[base], "feedforward_modules": []}
    elif adapter == "ln tuning":
        options["target_modules"] = NORMS[base]
    elif adapter not in PROMPTS:
        options.setdefault("target_modules", TARGETS[base])
    model = peft.get_peft_model(_base(base), getattr(peft, kind)(**options))
    ids = torch.zeros(IDS, dtype=torch.int64)
    return Built(model, (), {"input_ids": ids}, {"attention_mask": torch.ones_like(ids)})


def _base(name: str) -> Any:
    import transformers

    sizes = {
        "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "max_position_embeddings": 64,
    }  # fmt: skip
    if name == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
    return transformers.BertModel(transformers.BertConfig(**sizes))
