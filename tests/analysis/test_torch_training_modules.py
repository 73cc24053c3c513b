"""What training keeps of live modules in train mode, against autograd's own count of each.

Run as a script it prints every row and how many are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

import pytest

import layerscope
from layerscope.analysis.training import Training
from layerscope.errors import MissingExtra
from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models
from tests.formats.torch.torch_nets import saved_bytes, torch

checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint
nn: Any = torch.nn
f: Any = torch.nn.functional

EXACT, ESTIMATE = "exact", "estimate"
FEWEST_EXACT, FEWEST, FEWEST_FAMILIES = 50, 60, 20


class Row(NamedTuple):
    """A module, what it is given, and whether its bytes are those of autograd."""

    family: str
    build: Callable[[], Any]
    given: Callable[[], tuple[Any, ...]]
    mark: str = EXACT
    ratio: float = 1.0  # of ours to autograd's, as seen
    onednn: bool = True


def image(size: int, batch: int = 2) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.rand(batch, 3, size, size),)


def numbers(*shape: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (torch.rand(shape),)


def tokens() -> tuple[Any, ...]:
    return (torch.zeros(2, 16, dtype=torch.long),)


def vision() -> Any:
    """torchvision's models, imported so that a build without operators of its own does too."""
    try:
        return torchvision_models(torch)
    except MissingExtra:
        pytest.skip("torchvision is not installed")


def torchvision(name: str, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(vision(), name)(weights=None, **options)


def segmentation(name: str) -> Callable[[], Any]:
    def build() -> Any:
        vision()
        models = pytest.importorskip("torchvision.models.segmentation")
        return getattr(models, name)(weights=None, weights_backbone=None)

    return build


def timm(name: str, **options: Any) -> Callable[[], Any]:
    def build() -> Any:
        vision()
        models = pytest.importorskip("timm", reason="timm is not installed")
        return models.create_model(name, pretrained=False, **options)

    return build


def transformers(kind: str, **options: Any) -> Callable[[], Any]:
    def build() -> Any:
        models = pytest.importorskip("transformers", reason="transformers is not installed")
        with suppress(MissingExtra):
            torchvision_models(torch)  # which it may import
        config = getattr(models, f"{kind.removesuffix('Encoder')}Config")(**options)
        return getattr(models, f"{kind}Model")(config)

    return build


SMALL = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "vocab_size": 100,
}  # fmt: skip
GPT2 = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}
VIT = {"image_size": 32, "patch_size": 8}
QUIET = {"aux_logits": False, "init_weights": False}


class Gated(nn.Module):  # type: ignore[misc]
    """Two halves of a projection, one the gate of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 16)

    def forward(self, x: Any) -> Any:
        a, b = self.linear(x).chunk(2, -1)
        return torch.sigmoid(a) * b


class Scaled(nn.Module):  # type: ignore[misc]
    """Products with a number, and a maximum along an axis."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return (self.linear(x * 2) * 0.5).max(1)[0]


class Loss(nn.Module):  # type: ignore[misc]
    """A classifier and its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 5)

    def forward(self, x: Any, target: Any) -> Any:
        return f.cross_entropy(self.linear(x), target)


class Frozen(nn.Module):  # type: ignore[misc]
    """A body that is not trained, evaluated without gradients in part, and a head that is."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(8, 16), nn.GELU())
        self.body = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))
        self.norm = nn.BatchNorm1d(16).requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.5), nn.Linear(16, 5))
        self.body.requires_grad_(False)

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            mask = torch.sigmoid(self.body(self.first(x)))
        return self.head(self.norm(self.body(self.first(x))) * mask)


class Square(torch.autograd.Function):  # type: ignore[misc]
    """A function with a gradient of its own, which keeps more than goes into it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, x.exp())
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2 * ctx.saved_tensors[0]


class Custom(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return Square.apply(self.linear(x))


class Product(torch.autograd.Function):  # type: ignore[misc]
    """A product with a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        return grad * weight, (grad * x).sum(0)


class CustomProduct(nn.Module):  # type: ignore[misc]
    """What it saves, autograd refuses of tensors that are not tracked."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.weight = nn.Parameter(torch.rand(8))

    def forward(self, x: Any) -> Any:
        return Product.apply(self.linear(x), self.weight)


class Detached(nn.Module):  # type: ignore[misc]
    """Rounding with the gradient of no rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        return (y + (y.exp() - y).detach()).square()


class Checkpointed(nn.Module):  # type: ignore[misc]
    """A body whose activations are computed again."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.body = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU())

    def forward(self, x: Any) -> Any:
        return checkpoint(self.body, self.first(x), use_reentrant=False).square()


def row_of(*modules: Any) -> Callable[[], Any]:
    return lambda: nn.Sequential(*[make() for make in modules])


ROWS: dict[str, Row] = {
    # torchvision
    "alexnet": Row("alexnet", torchvision("alexnet"), image(96)),
    "vgg11_bn": Row("vgg", torchvision("vgg11_bn"), image(64)),
    "resnet18": Row("resnet", torchvision("resnet18"), image(64)),
    "resnet50": Row("resnet", torchvision("resnet50"), image(64)),
    "resnext50_32x4d": Row("resnext", torchvision("resnext50_32x4d"), image(64)),
    "densenet121": Row("densenet", torchvision("densenet121"), image(64)),
    "googlenet": Row("googlenet", torchvision("googlenet", **QUIET), image(96)),
    "inception_v3": Row("inception", torchvision("inception_v3", **QUIET), image(96)),
    "squeezenet1_1": Row("squeezenet", torchvision("squeezenet1_1"), image(64)),
    "mobilenet_v2": Row("mobilenet", torchvision("mobilenet_v2"), image(64)),
    "mobilenet_v3_small": Row("mobilenet", torchvision("mobilenet_v3_small"), image(64)),
    "mnasnet0_5": Row("mnasnet", torchvision("mnasnet0_5"), image(64)),
    "shufflenet_v2_x1_0": Row("shufflenet", torchvision("shufflenet_v2_x1_0"), image(64)),
    "efficientnet_b0": Row("efficientnet", torchvision("efficientnet_b0"), image(64)),
    "regnet_y_400mf": Row("regnet", torchvision("regnet_y_400mf"), image(64)),
    "convnext_tiny": Row("convnext", torchvision("convnext_tiny"), image(64)),
    "swin_t": Row("swin", torchvision("swin_t"), image(64)),
    "swin_v2_t": Row("swin", torchvision("swin_v2_t"), image(64)),
    "vit_b_16": Row("vit", torchvision("vit_b_16", image_size=64), image(64)),
    "deeplabv3_resnet50": Row("deeplab", segmentation("deeplabv3_resnet50"), image(64)),
    # timm
    "resnetv2_50": Row("resnet", timm("resnetv2_50"), image(64)),
    "ghostnet_100": Row("ghostnet", timm("ghostnet_100"), image(64)),
    "mixer_s32": Row("mixer", timm("mixer_s32_224", img_size=64), image(64)),
    "resmlp_12": Row("mlp", timm("resmlp_12_224", img_size=64), image(64)),
    "gmlp_ti16": Row("mlp", timm("gmlp_ti16_224", img_size=64), image(64)),
    "deit_tiny": Row("vit", timm("deit_tiny_patch16_224", img_size=64), image(64)),
    "beit_base": Row("beit", timm("beit_base_patch16_224", img_size=64), image(64)),
    "cait_xxs24": Row("cait", timm("cait_xxs24_224", img_size=64), image(64)),
    "xcit_nano_12": Row("xcit", timm("xcit_nano_12_p16_224", img_size=64), image(64)),
    "poolformer_s12": Row("poolformer", timm("poolformer_s12"), image(64)),
    "pvt_v2_b0": Row("pvt", timm("pvt_v2_b0"), image(64)),
    "repvgg_a0": Row("repvgg", timm("repvgg_a0"), image(64)),
    "mobilevit_xxs": Row("mobilevit", timm("mobilevit_xxs"), image(64)),
    "edgenext_xx_small": Row("edgenext", timm("edgenext_xx_small"), image(64)),
    "skresnet18": Row("resnet", timm("skresnet18"), image(64)),
    "nfnet_l0": Row("nfnet", timm("nfnet_l0"), image(64)),
    "convnextv2_atto": Row("convnext", timm("convnextv2_atto"), image(64)),
    "focalnet_tiny_srf": Row("focalnet", timm("focalnet_tiny_srf"), image(64)),
    # transformers, from their configurations
    "bert": Row("bert", transformers("Bert", **SMALL), tokens),
    "bert, eager": Row("bert", transformers("Bert", **SMALL, attn_implementation="eager"), tokens),
    "bert, no dropout": Row(
        "bert", transformers(
            "Bert", **SMALL, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        ), tokens,
    ),
    "albert": Row("bert", transformers("Albert", **SMALL, embedding_size=32), tokens),
    "gpt2": Row("gpt", transformers("GPT2", **GPT2), tokens),
    "gpt_neox": Row("gpt", transformers("GPTNeoX", **SMALL), tokens),
    "llama": Row("llama", transformers("Llama", **SMALL), tokens),
    "mistral": Row("llama", transformers("Mistral", **SMALL, num_key_value_heads=2), tokens),
    "gemma": Row(
        "llama", transformers("Gemma", **SMALL, num_key_value_heads=2, head_dim=16), tokens
    ),
    "falcon": Row("falcon", transformers("Falcon", **SMALL), tokens),
    "t5 encoder": Row(
        "t5", transformers(
            "T5Encoder", d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=100
        ), tokens,
    ),
    "mamba": Row(
        "mamba", transformers("Mamba", hidden_size=64, num_hidden_layers=2, vocab_size=100), tokens
    ),
    "bloom": Row(  # its activation is an autograd.Function that keeps its input, as is counted
        "bloom", transformers("Bloom", hidden_size=64, n_layer=2, n_head=4, vocab_size=100),
        tokens, ESTIMATE,
    ),
    "vit of transformers": Row("vit", transformers("ViT", **SMALL | VIT), image(32)),
    # single layers and small compositions
    "linear and dropout of 0": Row(
        "layers", row_of(lambda: nn.Linear(8, 8), lambda: nn.Dropout(0.0), lambda: nn.Linear(8, 8)),
        numbers(4, 8),
    ),
    "linear and dropout": Row(
        "layers", row_of(lambda: nn.Linear(8, 8), lambda: nn.Dropout(0.5)), numbers(4, 8)
    ),
    "chunk": Row("layers", Gated, numbers(4, 8)),
    "numbers and max": Row("layers", Scaled, numbers(4, 8)),
    "cross_entropy": Row(
        "layers", Loss, lambda: (torch.rand(4, 8), torch.zeros(4, dtype=torch.long))
    ),
    "frozen parts": Row("layers", Frozen, numbers(4, 8)),
    "TransformerEncoderLayer": Row(
        "transformer", lambda: nn.TransformerEncoderLayer(16, 4, 32), numbers(5, 2, 16)
    ),
    "TransformerEncoderLayer, no dropout": Row(
        "transformer", lambda: nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True),
        numbers(2, 5, 16),
    ),
    "TransformerDecoderLayer": Row(
        "transformer", lambda: nn.TransformerDecoderLayer(16, 4, 32),
        lambda: (torch.rand(5, 2, 16), torch.rand(7, 2, 16)),
    ),
    "MultiheadAttention": Row(
        "transformer", lambda: nn.MultiheadAttention(16, 4), lambda: (torch.rand(5, 2, 16),) * 3
    ),
    "RNN": Row("recurrent", lambda: nn.RNN(10, 20, 2), numbers(5, 2, 10)),
    "RNN of relu": Row("recurrent", lambda: nn.RNN(10, 20, nonlinearity="relu"), numbers(5, 2, 10)),
    "GRU": Row("recurrent", lambda: nn.GRU(10, 20), numbers(5, 2, 10)),
    "GRU, both directions": Row(
        "recurrent", lambda: nn.GRU(10, 20, 2, bidirectional=True, batch_first=True),
        numbers(2, 5, 10),
    ),
    "LSTM without oneDNN": Row(
        "recurrent", lambda: nn.LSTM(10, 20), numbers(5, 2, 10), onednn=False
    ),
    "LSTM of three layers without oneDNN": Row(
        "recurrent", lambda: nn.LSTM(10, 20, 3, dropout=0.5, bidirectional=True),
        numbers(5, 2, 10), onednn=False,
    ),
    "LSTM with a projection": Row(
        "recurrent", lambda: nn.LSTM(10, 20, proj_size=7), numbers(5, 2, 10)
    ),
    "LSTM": Row("recurrent", lambda: nn.LSTM(10, 20), numbers(5, 2, 10), ESTIMATE, 0.197),
    "LSTMCell": Row("recurrent", lambda: nn.LSTMCell(10, 20), numbers(2, 10), ESTIMATE, 1.154),
    "GroupNorm": Row(
        "norms", row_of(lambda: nn.Conv2d(3, 8, 3), lambda: nn.GroupNorm(2, 8), nn.SiLU),
        numbers(2, 3, 8, 8),
    ),
    "InstanceNorm2d": Row(
        "norms", row_of(
            lambda: nn.Conv2d(3, 8, 3),
            lambda: nn.InstanceNorm2d(8, affine=True, track_running_stats=True), nn.PReLU,
        ), numbers(2, 3, 8, 8),
    ),
    "Conv1d": Row(
        "convolutions", row_of(
            lambda: nn.Conv1d(3, 8, 3), lambda: nn.BatchNorm1d(8), nn.GELU, lambda: nn.MaxPool1d(2)
        ), numbers(2, 3, 16),
    ),
    "Conv3d": Row(
        "convolutions", row_of(
            lambda: nn.Conv3d(3, 8, 3), lambda: nn.BatchNorm3d(8), lambda: nn.ReLU(True)
        ), numbers(2, 3, 8, 8, 8),
    ),
    "PixelShuffle": Row(
        "convolutions", row_of(
            lambda: nn.ConvTranspose2d(3, 8, 3), lambda: nn.PixelShuffle(2),
            lambda: nn.Upsample(scale_factor=2), lambda: nn.Conv2d(2, 2, 3),
        ), numbers(2, 3, 8, 8),
    ),
    "Embedding": Row(
        "layers", row_of(lambda: nn.Embedding(10, 8), lambda: nn.LayerNorm(8)), tokens
    ),
    # marked as estimates
    "autograd.Function": Row("layers", Custom, numbers(4, 8), ESTIMATE, 0.667),
    "autograd.Function of a parameter": Row("layers", CustomProduct, numbers(4, 8), ESTIMATE),
    "checkpoint": Row("layers", Checkpointed, numbers(4, 8), ESTIMATE),
    "channels last": Row(
        "convolutions",
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)).to(
            memory_format=torch.channels_last
        ), numbers(2, 3, 8, 8), ESTIMATE,
    ),
    "detach": Row("layers", Detached, numbers(4, 8), ESTIMATE),
}  # fmt: skip


def measured(row: Row) -> tuple[Training, int]:
    """Our account of a training step, and autograd's bytes of the same module and inputs."""
    with nullcontext() if row.onednn else torch.backends.mkldnn.flags(enabled=False):
        torch.manual_seed(0)
        model = row.build().train()
        given = row.given()
        step = layerscope.analyze(model, input_data=list(given)).training("sgd")
        return step, saved_bytes(model, given)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_kept_bytes_are_autograds(name: str) -> None:
    row = ROWS[name]
    step, truth = measured(row)
    print(f"{name}: {step.kept_bytes:,} of {truth:,}, {step.kept_status} {step.notes}")
    assert step.kept_status == row.mark
    assert bool(step.notes) == (row.mark == ESTIMATE)
    if row.mark == EXACT:
        assert step.kept_bytes == truth
    else:
        assert step.kept_bytes / truth == pytest.approx(row.ratio, abs=0.001)


def test_enough_modules_are_compared() -> None:
    exact = [name for name, row in ROWS.items() if row.mark == EXACT]
    families = {row.family for row in ROWS.values()}
    print(f"{len(exact)} of {len(ROWS)} exact, of {len(families)} families")
    assert len(exact) >= FEWEST_EXACT
    assert len(ROWS) >= FEWEST
    assert len(families) >= FEWEST_FAMILIES


if __name__ == "__main__":
    equal = 0
    for named, each in ROWS.items():
        found, autograd = measured(each)
        equal += found.kept_bytes == autograd and found.kept_status == EXACT
        ratio = found.kept_bytes / autograd
        print(
            f"{named:36} {autograd:>12,} {found.kept_bytes:>12,} {ratio:6.3f} {found.kept_status}"
        )
    print(f"{equal} of {len(ROWS)} exact")
