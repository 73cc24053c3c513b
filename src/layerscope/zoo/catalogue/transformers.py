"""Transformers for images and text; those for text read 128 tokens by default."""

from __future__ import annotations

from layerscope.zoo.entry import Entry

IMAGES = {
    "vit_b_16": "ViT-Base on patches of 16x16, as torchvision has it",
    "vit_b_32": "ViT-Base on patches of 32x32, as torchvision has it",
    "vit_l_16": "ViT-Large on patches of 16x16, as torchvision has it",
    "vit_l_32": "ViT-Large on patches of 32x32, as torchvision has it",
    "vit_h_14": "ViT-Huge on patches of 14x14, as torchvision has it",
    "swin_t": "Swin Transformer, tiny, as torchvision has it",
    "swin_s": "Swin Transformer, small, as torchvision has it",
    "swin_b": "Swin Transformer, base, as torchvision has it",
}
TEXTS = {
    "bert_base": "BERT-Base, uncased, with its pooler: 12 layers of 768",
    "gpt2": "GPT-2 of 124M parameters: 12 layers of 768, tied head",
    "gpt2-medium": "GPT-2 of 355M parameters: 24 layers of 1024, tied head",
    "gpt2-large": "GPT-2 of 774M parameters: 36 layers of 1280, tied head",
    "gpt2-xl": "GPT-2 of 1.6B parameters: 48 layers of 1600, tied head",
    "t5-small": "T5 of 61M parameters: encoder and decoder, 6 layers of 512 each",
    "llama-7b": "Llama and Llama 2 of 7B parameters: 32 layers of 4096",
    "llama-3-8b": "Llama 3 of 8B parameters: 32 layers of 4096, 8 heads of keys",
    "llama-3-405b": "Llama 3.1 of 405B parameters: 126 layers of 16384, 8 heads of keys",
}
FAMILIES = ("vit", "swin", "bert", "gpt2", "t5", "llama")  # name of file and function


def _entry(name: str, says: str) -> Entry:
    family = next(family for family in FAMILIES if name.startswith(family))
    return Entry(family, family, says, (name,), sized=name in IMAGES)


TRANSFORMERS = {name: _entry(name, says) for name, says in (IMAGES | TEXTS).items()}
