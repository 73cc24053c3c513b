"""What training keeps, against what PyTorch's autograd packs away in a real forward pass."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import layerscope
from layerscope.analysis.training import kept
from layerscope.errors import MissingExtra
from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models
from layerscope.graph import attributes as at
from layerscope.ops import SPECS, Call
from tests.formats.torch.torch_nets import saved_bytes, torch

WINDOW = at.Window((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1))
NETWORKS = (
    "alexnet", "vgg11", "vgg11_bn", "resnet18", "resnet50", "googlenet", "squeezenet1_1",
    "mobilenet_v2", "densenet121", "shufflenet_v2_x1_0", "vit_b_16",
)  # fmt: skip


def models() -> Any:
    """torchvision's models, which has no CPU build."""
    try:
        return torchvision_models(torch)
    except MissingExtra:
        pytest.skip("torchvision is not installed")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NETWORKS)
def test_kept_bytes_are_autograds(name: str) -> None:
    options = {"aux_logits": False, "init_weights": False} if name == "googlenet" else {}
    model = getattr(models(), name)(weights=None, **options).train()
    report = layerscope.analyze(name, batch=2)
    assert kept(report.graph, report.shapes, report.costs).total_bytes == saved_bytes(
        model, (torch.zeros(2, 3, 224, 224),)
    )


def functions() -> dict[str, tuple[str, Any, Any]]:
    """Op, its attributes and torch's function on 1x4x4x4; `!` marks the form in place."""
    f, act = torch.nn.functional, at.Activation
    told = {
        "relu": f.relu, "relu6": f.relu6, "leaky_relu": f.leaky_relu, "elu": f.elu,
        "selu": f.selu, "silu": f.silu, "hard_swish": f.hardswish, "hard_sigmoid": f.hardsigmoid,
    }  # fmt: skip
    cases: dict[str, tuple[str, Any, Any]] = {op: (op, act(), run) for op, run in told.items()}
    for op, run in told.items():
        cases[f"{op}!"] = (op, act(in_place=True), partial(run, inplace=True))
    cases |= {
        "sigmoid": ("sigmoid", act(), torch.sigmoid),
        "tanh": ("tanh", act(), torch.tanh),
        "exp": ("exp", act(), torch.exp),
        "sqrt": ("sqrt", act(), torch.sqrt),
        "log": ("log", act(), torch.log),
        "abs": ("abs", act(), torch.abs),
        "neg": ("neg", act(), torch.neg),
        "gelu": ("gelu", act(), f.gelu),
        "softplus": ("softplus", act(), f.softplus),
        "clip": ("clip", act(), lambda x: x.clamp(0, 1)),
        "dropout": ("dropout", at.Dropout(0.5), lambda x: f.dropout(x, 0.5, True)),
        "softmax": ("softmax", at.Softmax(1), lambda x: f.softmax(x, 1)),
        "log_softmax": ("log_softmax", at.Softmax(1), lambda x: f.log_softmax(x, 1)),
        "max_pool": ("max_pool", at.Pool(WINDOW), lambda x: f.max_pool2d(x, 2)),
        "avg_pool": ("avg_pool", at.Pool(WINDOW), lambda x: f.avg_pool2d(x, 2)),
        "lp_pool": ("lp_pool", at.Pool(WINDOW), lambda x: f.lp_pool2d(x, 2, 2)),
        "global_avg_pool": ("global_avg_pool", None, lambda x: f.adaptive_avg_pool2d(x, 1)),
        "adaptive_avg_pool": (
            "adaptive_avg_pool", at.AdaptivePool((2, 2)), lambda x: f.adaptive_avg_pool2d(x, 2),
        ),
        "adaptive_max_pool": (
            "adaptive_max_pool", at.AdaptivePool((2, 2)), lambda x: f.adaptive_max_pool2d(x, 2),
        ),
        "lrn": ("lrn", at.LocalResponseNorm(3), lambda x: f.local_response_norm(x, 3)),
        "l2_norm": ("l2_norm", at.L2Norm(), f.normalize),
        "layer_norm": ("layer_norm", at.LayerNorm(affine=False), lambda x: f.layer_norm(x, (4,))),
        "group_norm": ("group_norm", at.GroupNorm(2, affine=False), lambda x: f.group_norm(x, 2)),
        "instance_norm": ("instance_norm", at.InstanceNorm(), f.instance_norm),
        "rms_norm": ("rms_norm", at.RMSNorm(scale=False), lambda x: f.rms_norm(x, (4,))),
        "resize": (
            "resize", at.Resize("bilinear", scale=((2, 1),)),
            lambda x: f.interpolate(x, scale_factor=2, mode="bilinear"),
        ),
        "reduce_mean": ("reduce_mean", at.Reduce(), torch.mean),
        "reduce_max": ("reduce_max", at.Reduce(), torch.amax),
        "reduce_l2": ("reduce_l2", at.Reduce(), torch.norm),
    }  # fmt: skip
    return cases


@pytest.mark.parametrize("case", functions())
def test_each_op_keeps_what_autograd_keeps(case: str) -> None:
    op, attributes, function = functions()[case]
    leaf = torch.rand(1, 4, 4, 4, requires_grad=True)
    x = leaf * 1.0  # what an op in place may overwrite
    found: dict[int, tuple[int, Any]] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        function(x)
    shape = (1, 4, 4, 4)
    rule = SPECS[op]
    call = Call(attributes, (shape,), rule.shape(Call(attributes, (shape,))))
    saved = rule.saved_for_backward(call)
    held = [4 * 64 for _ in saved.inputs]
    if saved.outputs == (0,) and not (getattr(attributes, "in_place", False) and saved.inputs):
        held.append(4 * call.out_elements)
    held += [count * (8 if kind == "int64" else 4) for count, kind in saved.extra]
    assert sum(held) == sum(size for size, _ in found.values())
