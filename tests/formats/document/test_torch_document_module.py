"""Printed models of torchvision and timm: the parameters of every layer of torch.nn are exact."""

from __future__ import annotations

import random
from typing import Any

import pytest

from layerscope import Report, analyze
from layerscope.formats.document import networks_of
from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models

torch: Any = pytest.importorskip("torch")
models: Any = torchvision_models(torch)
timm: Any = pytest.importorskip("timm")
NN = "torch.nn.modules."
MOST = 300_000_000  # parameters of a model


def report_of(model: Any) -> Report:
    [found] = networks_of(str(model))
    assert found.build is not None
    return analyze(found.build("print.txt", {"": (1, 3, 224, 224)}))


def arrays_of(module: Any) -> tuple[int, int]:
    """Parameters and buffers of a module itself, without the count of batches."""
    params = sum(param.numel() for param in module.parameters(recurse=False))
    buffers = [value for name, value in module.named_buffers(recurse=False)]
    return params, sum(value.numel() for value in buffers if value.dim())


def check(model: Any) -> None:
    report = report_of(model)
    found: dict[str, tuple[int, int]] = {}
    for layer in report.layers:
        params = [param for param in layer.cost.params if param.learnable]
        others = [param for param in layer.cost.params if not param.learnable]
        if layer.node.module:
            found[layer.node.module] = (
                sum(param.elements for param in params), sum(param.elements for param in others)
            )  # fmt: skip
    compared = 0
    for path, module in model.named_modules():
        if type(module).__module__.startswith(NN):
            compared += 1
            assert found.get(path, (0, 0)) == arrays_of(module), path
    assert compared > 3
    assert any("belong to no layer" in note for note in report.notes)


EXACT = ("resnet18", "vgg16", "mobilenet_v2", "densenet121", "squeezenet1_0")


@pytest.mark.parametrize("name", [*EXACT, "vit_b_16", "swin_t", "convnext_tiny"])
def test_torchvision(name: str) -> None:
    with torch.device("meta"):
        model = getattr(models, name)()
    check(model)
    report = report_of(model)
    total = sum(param.numel() for param in model.parameters())
    if name in EXACT:
        assert report.totals.params == total
    own = sum(
        sum(param.numel() for param in module.parameters(recurse=False))
        for module in model.modules()
        if not type(module).__module__.startswith(NN)
    )
    if name in ("vit_b_16", "swin_t"):  # what is missing are parameters of their own classes
        assert total - report.totals.params == own


def chosen(count: int) -> list[str]:
    names = sorted(timm.list_models())
    random.Random(21).shuffle(names)
    return names[:count]


@pytest.mark.parametrize("name", chosen(30))
def test_timm(name: str) -> None:
    try:
        with torch.device("meta"):
            model = timm.create_model(name)
    except Exception as error:  # some cannot be built on the meta device
        pytest.skip(str(error))
    if sum(param.numel() for param in model.parameters()) > MOST:
        pytest.skip("too large")
    check(model)


def test_every_layer_of_torch_nn_is_read_or_named() -> None:
    """A print of each class, built with small arguments, has the parameters of the class."""
    nn = torch.nn
    layers = [
        nn.Conv1d(4, 6, 3, groups=2, padding="same"), nn.Conv3d(2, 4, (1, 2, 3), bias=False),
        nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1, groups=2), nn.Linear(3, 4, False),
        nn.Bilinear(2, 3, 4), nn.BatchNorm1d(4, affine=False), nn.BatchNorm3d(4, momentum=None),
        nn.BatchNorm2d(4, track_running_stats=False), nn.InstanceNorm2d(4, affine=True),
        nn.InstanceNorm1d(4, affine=True, track_running_stats=True), nn.LayerNorm((3, 4)),
        nn.LayerNorm(4, elementwise_affine=False), nn.RMSNorm(6), nn.GroupNorm(2, 4),
        nn.GroupNorm(2, 4, affine=False), nn.LocalResponseNorm(5), nn.Embedding(7, 3, 0),
        nn.EmbeddingBag(7, 3), nn.RNN(3, 4, 2), nn.LSTM(3, 4, bidirectional=True, proj_size=2),
        nn.GRU(3, 4, bias=False, batch_first=True), nn.LSTMCell(3, 4), nn.GRUCell(3, 4),
        nn.RNNCell(3, 4, bias=False), nn.PReLU(), nn.PReLU(5), nn.MaxPool1d(2), nn.AvgPool3d(2),
        nn.LPPool2d(2, 3), nn.AdaptiveMaxPool3d((1, 2, None)), nn.Softmax(dim=-1), nn.Softmax(),
        nn.Dropout2d(), nn.AlphaDropout(), nn.Upsample(scale_factor=2), nn.Upsample(size=(3, 4)),
        nn.ZeroPad2d(1), nn.ReflectionPad1d((1, 2)), nn.ConstantPad3d(1, 0.5), nn.PixelShuffle(2),
        nn.Unflatten(1, (2, 3)), nn.ChannelShuffle(2), nn.Hardtanh(-2, 2), nn.Threshold(1, 2),
        nn.Softplus(), nn.GELU("tanh"), nn.Mish(), nn.Hardshrink(), nn.LogSigmoid(), nn.Softmax2d(),
        nn.CrossEntropyLoss(), nn.LazyLinear(4), nn.Unfold(2), nn.Tanhshrink(),
    ]  # fmt: skip
    [found] = networks_of(str(nn.Sequential(*layers)))
    assert found.build is not None
    report = analyze(found.build("x", {}))
    rows = {layer.node.module: layer for layer in report.layers}
    for n, layer in enumerate(layers):
        if isinstance(layer, nn.LazyLinear):
            continue
        expected = arrays_of(layer)
        params = list(rows[str(n)].cost.params)
        learned = sum(param.elements for param in params if param.learnable)
        assert (learned, sum(p.elements for p in params) - learned) == expected, str(layer)
