"""Models that counters are tried on: whole networks, and a small module for each kind of layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Built = tuple[Any, tuple[Any, ...]]  # a module and what it is called with


def the_torchvision() -> Any:
    """torchvision, whose compiled operators a build for another torch lacks: only named."""
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    import torchvision

    torchvision._kept = library
    return torchvision


def _torchvision(name: str, side: int = 224, **told: Any) -> Built:
    import torch

    models = the_torchvision().models
    return getattr(models, name)(weights=None, **told), (torch.zeros(1, 3, side, side),)


def _timm(name: str, side: int = 224) -> Built:
    import torch

    the_torchvision()
    import timm

    return timm.create_model(name, pretrained=False), (torch.zeros(1, 3, side, side),)


TORCHVISION = (
    "resnet18", "resnet50", "mobilenet_v2", "densenet121", "vgg16", "alexnet", "efficientnet_b0",
    "squeezenet1_0", "shufflenet_v2_x1_0", "regnet_y_400mf", "mobilenet_v3_small", "convnext_tiny",
    "swin_t", "vit_b_16",
)  # fmt: skip
NETWORKS: dict[str, Callable[[], Built]] = {
    **{name: partial(_torchvision, name) for name in TORCHVISION},
    "inception_v3": partial(_torchvision, "inception_v3", 299, init_weights=False),
    "vit_tiny_patch16_224": partial(_timm, "vit_tiny_patch16_224"),
}


def _one(module: Callable[[Any], Any], *shape: int, long: bool = False) -> Callable[[], Built]:
    """A Sequential of one module: some tools leave out the parameters of the outermost."""

    def build() -> Built:
        import torch
        from torch import nn

        x = torch.zeros(shape, dtype=torch.long if long else torch.float32)
        return _spare(nn.Sequential(module(nn))), (x,)

    return build


def _spare(model: Any) -> Any:
    """With a parameter that nothing uses: some tools fail without any."""
    import torch

    model.register_parameter("spare", torch.nn.Parameter(torch.zeros(1)))
    return model


def _called(function: Callable[[Any, Any], Any], *shape: int) -> Callable[[], Built]:
    """A module that calls functions."""

    def build() -> Built:
        import torch
        from torch import nn

        class Called(nn.Module):
            def forward(self, x: Any) -> Any:
                return function(nn.functional, x)

        class Whole(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.called = Called()

            def forward(self, x: Any) -> Any:
                return self.called(x)

        return _spare(Whole()), (torch.zeros(shape),)

    return build


def _reused() -> Built:
    """One Linear called three times."""
    import torch
    from torch import nn

    class Thrice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(100, 100)

        def forward(self, x: Any) -> Any:
            return self.line(self.line(self.line(x)))

    return Thrice(), (torch.zeros(1, 100),)


def _shared() -> Built:
    """One Linear in three places."""
    import torch
    from torch import nn

    line = nn.Linear(100, 100)
    return nn.Sequential(*[nn.Sequential(line) for _ in range(3)]), (torch.zeros(1, 100),)


def _tied() -> Built:
    """A Linear that holds the table of an Embedding."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Embedding(30, 8), nn.Linear(8, 30, bias=False))
    model[1].weight = model[0].weight
    return model, (torch.zeros(2, 5, dtype=torch.long),)


def _frozen() -> Built:
    """Two Linears, of which the first is not trained."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(10, 20), nn.Linear(20, 30))
    model[0].requires_grad_(False)
    return model, (torch.zeros(2, 10),)


def partly_frozen() -> Built:
    """The model of test_convention_fields.py: a frozen Linear, and one that is never called."""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.relu = nn.Linear(10, 20), nn.ReLU()
            self.second, self.third = nn.Linear(20, 5), nn.Linear(5, 3)
            self.first.requires_grad_(False)
            self.third.bias.requires_grad_(False)

        def forward(self, x: Any) -> Any:
            return self.second(self.relu(self.first(x)))

    return Net(), (torch.zeros(2, 10),)


def _attention(weights: bool = False, **told: Any) -> Built:
    import torch
    from torch import nn

    class Seen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(32, 4, **told)

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x, need_weights=weights)[0]

    return Seen(), (torch.zeros(2, 7, 32),)


def _einsum(equation: str, *shapes: tuple[int, ...]) -> Built:
    import torch
    from torch import nn

    class Sum(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch.einsum(equation, x, y)

    return _spare(Sum()), tuple(torch.zeros(shape) for shape in shapes)


MODULES: dict[str, Callable[[], Built]] = {
    "conv1d": _one(lambda nn: nn.Conv1d(4, 6, 3), 2, 4, 9),
    "conv2d": _one(lambda nn: nn.Conv2d(4, 6, 3, stride=2, padding=1), 2, 4, 9, 9),
    "conv2d no bias": _one(lambda nn: nn.Conv2d(4, 6, 3, bias=False), 2, 4, 9, 9),
    "conv2d groups": _one(lambda nn: nn.Conv2d(4, 8, 3, groups=4, dilation=2), 1, 4, 9, 9),
    "conv3d": _one(lambda nn: nn.Conv3d(2, 3, 3), 1, 2, 5, 6, 7),
    "conv_transpose1d": _one(lambda nn: nn.ConvTranspose1d(4, 6, 3, stride=2), 2, 4, 9),
    "conv_transpose2d": _one(lambda nn: nn.ConvTranspose2d(4, 6, 3), 2, 4, 5, 5),
    "conv_transpose2d groups": _one(
        lambda nn: nn.ConvTranspose2d(6, 6, 2, stride=2, groups=3), 1, 6, 8, 8
    ),
    "linear": _one(lambda nn: nn.Linear(10, 20), 3, 10),
    "linear no bias": _one(lambda nn: nn.Linear(10, 20, bias=False), 3, 10),
    "linear on a sequence": _one(lambda nn: nn.Linear(10, 20), 2, 7, 10),
    "linear on a map": _one(lambda nn: nn.Linear(10, 20), 2, 5, 7, 10),
    "bilinear": lambda: _bilinear(),
    "batch_norm1d": _one(lambda nn: nn.BatchNorm1d(6), 4, 6),
    "batch_norm2d": _one(lambda nn: nn.BatchNorm2d(6), 2, 6, 5, 5),
    "batch_norm2d plain": _one(lambda nn: nn.BatchNorm2d(6, affine=False), 2, 6, 5, 5),
    "instance_norm2d": _one(lambda nn: nn.InstanceNorm2d(6), 2, 6, 5, 5),
    "instance_norm2d affine": _one(lambda nn: nn.InstanceNorm2d(6, affine=True), 2, 6, 5, 5),
    "layer_norm": _one(lambda nn: nn.LayerNorm(10), 2, 7, 10),
    "layer_norm plain": _one(lambda nn: nn.LayerNorm(10, elementwise_affine=False), 2, 7, 10),
    "group_norm": _one(lambda nn: nn.GroupNorm(3, 6), 2, 6, 5, 5),
    "rms_norm": _one(lambda nn: nn.RMSNorm(10), 2, 7, 10),
    "local_response_norm": _one(lambda nn: nn.LocalResponseNorm(3), 1, 6, 5, 5),
    "relu": _one(lambda nn: nn.ReLU(), 2, 6, 5),
    "relu6": _one(lambda nn: nn.ReLU6(), 2, 6, 5),
    "leaky_relu": _one(lambda nn: nn.LeakyReLU(), 2, 6, 5),
    "prelu": _one(lambda nn: nn.PReLU(6), 2, 6, 5),
    "elu": _one(lambda nn: nn.ELU(), 2, 6, 5),
    "silu": _one(lambda nn: nn.SiLU(), 2, 6, 5),
    "gelu": _one(lambda nn: nn.GELU(), 2, 6, 5),
    "mish": _one(lambda nn: nn.Mish(), 2, 6, 5),
    "hardswish": _one(lambda nn: nn.Hardswish(), 2, 6, 5),
    "sigmoid": _one(lambda nn: nn.Sigmoid(), 2, 6, 5),
    "tanh": _one(lambda nn: nn.Tanh(), 2, 6, 5),
    "softmax": _one(lambda nn: nn.Softmax(-1), 2, 6, 5),
    "dropout": _one(lambda nn: nn.Dropout(), 2, 6, 5),
    "identity": _one(lambda nn: nn.Identity(), 2, 6, 5),
    "flatten": _one(lambda nn: nn.Flatten(), 2, 6, 5),
    "max_pool2d": _one(lambda nn: nn.MaxPool2d(3, 2), 2, 6, 9, 9),
    "avg_pool2d": _one(lambda nn: nn.AvgPool2d(3, 2), 2, 6, 9, 9),
    "adaptive_avg_pool1d": _one(lambda nn: nn.AdaptiveAvgPool1d(3), 2, 6, 9),
    "adaptive_avg_pool2d": _one(lambda nn: nn.AdaptiveAvgPool2d(3), 2, 6, 9, 9),
    "adaptive_avg_pool2d to one": _one(lambda nn: nn.AdaptiveAvgPool2d(1), 2, 6, 9, 9),
    "adaptive_max_pool2d": _one(lambda nn: nn.AdaptiveMaxPool2d(3), 2, 6, 9, 9),
    "upsample nearest": _one(lambda nn: nn.Upsample(scale_factor=2), 2, 6, 5, 5),
    "upsample bilinear": _one(lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), 2, 6, 5, 5),
    "pixel_shuffle": _one(lambda nn: nn.PixelShuffle(2), 1, 8, 5, 5),
    "zero_pad2d": _one(lambda nn: nn.ZeroPad2d(1), 1, 3, 5, 5),
    "embedding": _one(lambda nn: nn.Embedding(10, 8), 2, 5, long=True),
    "lstm": _one(lambda nn: nn.LSTM(10, 20), 5, 1, 10),
    "lstm two layers": _one(lambda nn: nn.LSTM(10, 20, 2, batch_first=True), 2, 5, 10),
    "lstm both ways": _one(lambda nn: nn.LSTM(10, 20, bidirectional=True), 5, 2, 10),
    "lstm no bias": _one(lambda nn: nn.LSTM(10, 20, bias=False), 5, 2, 10),
    "gru": _one(lambda nn: nn.GRU(10, 20), 5, 2, 10),
    "rnn": _one(lambda nn: nn.RNN(10, 20), 5, 2, 10),
    "lstm cell": _one(lambda nn: nn.LSTMCell(10, 20), 3, 10),
    "gru cell": _one(lambda nn: nn.GRUCell(10, 20), 3, 10),
    "rnn cell": _one(lambda nn: nn.RNNCell(10, 20), 3, 10),
    "encoder layer": _one(lambda nn: nn.TransformerEncoderLayer(32, 4, 64), 7, 2, 32),
    "encoder layer batch first": _one(
        lambda nn: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, 7, 32
    ),
    "conv2d same": _one(lambda nn: nn.Conv2d(4, 6, 3, padding="same"), 2, 4, 9, 9),
    "conv2d reflected": _one(
        lambda nn: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), 2, 4, 9, 9
    ),
    "linear on a vector": _one(lambda nn: nn.Linear(10, 20), 10),
    "linear thrice": _reused,
    "linear frozen": _frozen,
    "partly frozen": partly_frozen,
    "linear tied": _tied,
    "linear in three places": _shared,
    "attention": partial(_attention),
    "attention batch first": partial(_attention, batch_first=True),
    "attention with weights": partial(_attention, weights=True),
    "attention with weights batch first": partial(_attention, weights=True, batch_first=True),
    "einsum": partial(_einsum, "bij,bjk->bik", (16, 64, 64), (16, 64, 64)),
    "einsum of matrices": partial(_einsum, "ij,jk->ik", (16, 64), (64, 64)),
    "matmul": _called(lambda f, x: x.matmul(x.transpose(-1, -2)), 2, 3, 5, 7),
    "relu function": _called(lambda f, x: f.relu(x), 2, 6, 5),
    "silu function": _called(lambda f, x: f.silu(x), 2, 6, 5),
    "softmax function": _called(lambda f, x: f.softmax(x, -1), 2, 6, 5),
    "max_pool2d function": _called(lambda f, x: f.max_pool2d(x, 2), 2, 6, 8, 8),
    "avg_pool2d function": _called(lambda f, x: f.avg_pool2d(x, 2), 2, 6, 8, 8),
    "adaptive_avg_pool2d function": _called(
        lambda f, x: f.adaptive_avg_pool2d(x, (1, 1)), 2, 6, 8, 8
    ),
    "interpolate": _called(lambda f, x: f.interpolate(x, scale_factor=2), 2, 6, 8, 8),
    "interpolate bilinear": _called(
        lambda f, x: f.interpolate(x, size=(12, 12), mode="bilinear"), 2, 6, 8, 8
    ),
    "attention function": _called(lambda f, x: f.scaled_dot_product_attention(x, x, x), 2, 4, 7, 8),
    "sum": _called(lambda f, x: x + x, 2, 6, 5),
}


def _bilinear() -> Built:
    import torch
    from torch import nn

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = nn.Bilinear(3, 4, 5)

        def forward(self, x: Any, y: Any) -> Any:
            return self.both(x, y)

    return Both(), (torch.zeros(2, 3), torch.zeros(2, 4))
