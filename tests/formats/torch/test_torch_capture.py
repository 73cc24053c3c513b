"""A live module as a graph: what its nodes say, what is left as it was, what goes wrong."""

from __future__ import annotations

import copy
import gc
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError, UsageError
from layerscope.formats.torch.capture import capture
from tests.formats.torch.torch_nets import (
    Bare,
    Branching,
    Doing,
    Failing,
    Painted,
    Restless,
    Reused,
    Tied,
    Weighted,
    Written,
    f,
    nn,
    on,
    torch,
    vision,
)

pytestmark = pytest.mark.filterwarnings("ignore")
IMAGE = (1, 3, 64, 64)


def image() -> Any:
    return torch.empty(IMAGE, device="meta")


MODELS = (
    "alexnet", "vgg11_bn", "resnet18", "densenet121", "squeezenet1_1", "mobilenet_v2",
    "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0", "convnext_tiny", "mnasnet0_5",
    "regnet_x_400mf", "swin_t", "swin_v2_t", "inception_v3", "googlenet",
)  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_shortcuts_change_nothing(name: str, training: bool) -> None:
    told = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
    device = "cpu" if name.startswith("regnet") else "meta"
    model = on(device, lambda: getattr(vision(), name)(weights=None, **told)).train(training)
    side = 299 if name == "inception_v3" else 64
    x = torch.empty(2, 3, side, side, device="meta")
    assert capture(model, (x,)) == capture(model, (x,), shortcuts=False)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "permuted"])
def test_layouts_change_nothing(layout: str) -> None:
    """Shortcuts follow strides as PyTorch does, so that a later view works or fails as there."""
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Hardswish(), nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(1), nn.LayerNorm(16), nn.Linear(16, 5),
    )  # fmt: skip
    x = torch.empty(2, 3, 12, 12)
    if layout == "channels_last":
        x = x.to(memory_format=torch.channels_last)
    if layout == "permuted":
        x = torch.empty(2, 12, 12, 3).permute(0, 3, 1, 2)
    assert capture(net, (x,)) == capture(net, (x,), shortcuts=False)


def test_nodes_say_where_they_are_from() -> None:
    graph = capture(on("meta", lambda: vision().resnet18(weights=None)), (image(),))
    nodes = {node.name: node for node in graph.nodes}
    conv = nodes["layer1.0.conv1"]
    assert (conv.scope, conv.module) == (("layer1", "0"), "layer1.0.conv1")
    assert conv.source is not None
    assert conv.source.op == "aten.conv2d"
    added = nodes["layer1.0.add1"]
    assert (added.scope, added.module) == (("layer1", "0"), "")
    assert added.source is not None
    assert added.source.op == "aten.add_"
    assert nodes["layer1.0.relu_1"].module == "layer1.0.relu"
    assert nodes["flatten1"].module == ""
    assert graph.inputs[0].name == "x"
    assert graph.outputs == ("fc",)


@pytest.mark.parametrize("name", ["resnet50", "vgg16_bn", "mobilenet_v2", "densenet121"])
def test_the_zoo_has_the_same_layers(name: str) -> None:
    """The same network from two sides: every layer's figures in the same order."""
    model = on("meta", lambda: getattr(vision(), name)(weights=None)).eval()
    ours = [r for r in layerscope.analyze(name).layers if r.params or r.ops.mac]
    live = layerscope.analyze(model, input_size=(1, 3, 224, 224))
    theirs = [r for r in live.layers if r.params or r.ops.mac]
    assert [(r.name, r.params, r.ops, r.output) for r in theirs] == [
        (r.name, r.params, r.ops, r.output) for r in ours
    ]


@pytest.mark.parametrize("name", ["alexnet", "resnet18", "mobilenet_v3_small", "inception_v3"])
def test_the_module_print_is_the_models_own(name: str) -> None:
    told = {"init_weights": False} if name == "inception_v3" else {}
    model = on("meta", lambda: getattr(vision(), name)(weights=None, **told)).eval()
    side = 299 if name == "inception_v3" else 224
    report = layerscope.analyze(model, input_size=(1, 3, side, side))
    assert report.to_notation("module") == f"{model!r}\n"


def test_tied_weights_count_once() -> None:
    report = layerscope.summary(Tied(), input_data=torch.zeros(2, 7, dtype=torch.int64), verbose=0)
    assert report.total_params == 50 * 8
    assert report.by_name["head"].params == 0
    assert report.by_name["head"].cost.note == "shares embed.weight"


def test_storages_tie_too() -> None:
    net = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    net[1].weight = nn.Parameter(net[0].weight.detach())
    assert layerscope.summary(net, (1, 8), verbose=0).total_params == 64


def test_reused_modules_count_their_work_each_time() -> None:
    report = layerscope.summary(Reused(), (1, 100), verbose=0)
    assert [layer.name for layer in report.layers] == ["linear", "linear_1", "linear_2"]
    assert [layer.params for layer in report.layers] == [10_100, 0, 0]


def test_bare_parameters() -> None:
    report = layerscope.summary(Bare(), (2, 3, 8), verbose=0)
    assert sum(layer.params for layer in report.layers) == 8 + 48 + 36
    assert report.totals.params == report.total_params == 8 + 48 + 36 + 7
    assert report.trainable_params == 8 + 48 + 36
    assert report.total_macs == 2 * 4 * (8 * 6 + 6 * 6 + 6 * 6)
    assert "7 parameters that this forward does not use: unused" in report.graph.notes


def test_computed_kernels() -> None:
    report = layerscope.summary(Weighted(), (1, 3, 8, 8), verbose=0)
    assert report.total_macs == 64 * 4 * 27
    assert report.total_params == 4 * 27
    assert not report.coverage.unknown


def test_what_is_written_in_place() -> None:
    for shortcuts in (True, False):
        graph = capture(Written(), (torch.empty(2, 4, 6),), shortcuts=shortcuts)
        ops = [node.op for node in graph.nodes]
        assert ops.count("insert") == 3
        last = next(node for node in graph.nodes if node.name == graph.outputs[0])
        made = {name: node for node in graph.nodes for name in node.outputs}
        whole, rest = (made[name] for name in last.inputs)
        assert whole.op == "insert"
        assert rest.op == "reshape"  # of the rows that were scaled
        assert made[rest.inputs[0]].op == "mul"
    assert not layerscope.analyze(graph).coverage.unknown


def test_constants_are_folded() -> None:
    class Masked(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            mask = torch.zeros(4, 4, device=x.device)
            mask[1:, :2] = -1.0
            return x + (mask - mask.t()).exp()

    graph = capture(Masked(), (torch.empty(2, 4, 4),))
    assert [node.op for node in graph.nodes] == ["constant", "add"]


def test_numbers_that_need_no_weights_are_known() -> None:
    class Padded(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, mask: Any) -> Any:
            if mask.all():
                return x.relu()
            return x[:, : int(mask.sum())].sigmoid()

    full, part = torch.ones(5), torch.tensor([1, 1, 0, 0, 0])
    assert [n.op for n in capture(Padded(), (torch.empty(2, 5), full)).nodes][-1] == "relu"
    cut = capture(Padded(), (torch.empty(2, 5), part))
    assert [n.op for n in cut.nodes][-2:] == ["slice", "sigmoid"]
    assert not cut.notes


def test_data_decides() -> None:
    report = layerscope.summary(Branching(), (2, 4), verbose=0)
    assert report.total_macs == 2 * 16
    assert "computed with real numbers" in report.graph.notes[0]
    with pytest.raises(ModelError, match="build it on a real device"):
        layerscope.summary(on("meta", Branching), (2, 4), verbose=0)


def test_nested_arguments() -> None:
    @dataclass
    class Batch:
        image: Any
        extra: dict[str, Any]

    class Net(nn.Module):  # type: ignore[misc]
        def forward(self, batch: Batch, *more: Any, scale: float, **named: Any) -> Any:
            a, (b, c) = batch.extra["pair"], more[0]
            return {"sum": batch.image + a + b + c, "scaled": [named["last"] * scale]}

    x = torch.zeros(2, 3)
    batch = Batch(x, {"pair": torch.zeros(3), "word": "w"})
    report = layerscope.summary(
        Net(),
        input_data=[batch, [torch.zeros(2, 1), torch.zeros(1)]],
        scale=2.0,
        last=x.clone(),
        verbose=0,
    )
    names = [tensor.name for tensor in report.inputs]
    assert names == ["batch.image", "batch.extra.pair", "input1.0", "input1.1", "last"]
    assert len(report.graph.outputs) == 2


def test_numbers_types() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).to(torch.bfloat16)
    report = layerscope.summary(net, (2, 4), verbose=0)
    assert {t.dtype for t in report.tensors.values()} == {"bf16"}
    assert report.totals.param_bytes == 2 * 20
    mixed = capture(nn.Identity(), (torch.zeros(2, dtype=torch.float16),))
    assert mixed.inputs[0].dtype == "fp16"


def states(model: Any) -> list[Any]:
    """All there is to know of every submodule, arrays with their numbers."""
    found = []
    for name, module in model.named_modules():
        attributes = {key: value for key, value in vars(module).items() if key[0] != "_"}
        for key in ("_parameters", "_buffers", "_modules", "_forward_hooks", "_backward_hooks"):
            attributes[key] = dict(vars(module)[key])
        attributes = {
            key: list(value) if isinstance(value, list) else value
            for key, value in attributes.items()
        }
        attributes["every name"] = list(vars(module))
        found.append((name, type(module), attributes))
    return found


@pytest.mark.parametrize("shortcuts", [True, False])
def test_the_model_is_left_as_it_was_found(shortcuts: bool) -> None:
    model = nn.Sequential(Restless(), nn.BatchNorm2d(3), nn.ReLU(inplace=True))
    hooked: list[Any] = []
    model[1].register_forward_hook(lambda *told: hooked.append(told))
    model[2].requires_grad_(False)
    before, arrays = states(model), copy.deepcopy(model.state_dict())
    drawn, own = torch.get_rng_state(), random.getstate()
    with torch.enable_grad():
        capture(model, (torch.zeros(2, 3, 4, 4),), shortcuts=shortcuts)
        assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert states(model) == before
    assert all(torch.equal(arrays[key], value) for key, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), drawn)
    assert random.getstate() == own
    assert len(hooked) == 1
    assert torch.backends.mha.get_fastpath_enabled()
    assert not hasattr(model[0], "extra")


HANDS: dict[str, Callable[[Any], object]] = {
    "hook": lambda m: m.first.register_forward_hook(lambda *_: None),
    "hook before": lambda m: m.first.register_forward_pre_hook(lambda *_: None),
    "hook on the way back": lambda m: m.first.register_full_backward_hook(lambda *_: None),
    "attribute": lambda m: setattr(m.first, "seen", 1),
    "attribute changed": lambda m: setattr(m.first, "out_features", 3),
    "attribute removed": lambda m: delattr(m.first, "out_features"),
    "flag": lambda m: m.first.eval(),
    "equal list": lambda m: setattr(m, "row", list(m.row)),
    "list": lambda m: m.row.append(3),
    "list item": lambda m: m.row.__setitem__(0, 1.0),
    "empty list": lambda m: m.none.append(3),
    "set": lambda m: m.kinds.add(3),
    "dict": lambda m: m.table.update(b=2),
    "dict order": lambda m: m.table.update(a=m.table.pop("a")),
    "ordered": lambda m: m.ordered.move_to_end("a"),
    "parameter": lambda m: setattr(m.first, "bias", nn.Parameter(torch.zeros(4))),
    "buffer": lambda m: m.first.register_buffer("more", torch.zeros(2)),
    "module": lambda m: m.add_module("more", nn.ReLU()),
    "state": lambda m: m.first.register_state_dict_post_hook(lambda *_: None),
}


class Handsy(nn.Module):  # type: ignore[misc]
    def __init__(self, does: str) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)
        self.row, self.kinds, self.none = [1, 2], {1, 2}, []  # type: ignore[var-annotated]
        self.table, self.ordered = {"a": 1, "c": 2}, OrderedDict(a=1, b=2)
        self.does = HANDS[does]

    def forward(self, x: Any) -> Any:
        self.does(self)
        return self.last(x)


def everything(model: Any) -> list[Any]:
    """The very things that a model holds, and those in its containers."""
    found: list[Any] = []
    for module in model.modules():
        for key, value in vars(module).items():
            held: list[Any] = []
            if isinstance(value, dict):
                held = [(name, id(each)) for name, each in value.items()]
            elif isinstance(value, list | set):
                held = [id(each) for each in value]
            found.append((key, id(value), held))
    return found


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("does", HANDS)
def test_what_a_forward_does_to_modules_is_undone(does: str, fails: bool) -> None:
    """To its own attributes and to those of modules that are not run."""
    model = Handsy(does)
    if fails:
        model.last = nn.Linear(5, 2)
    before = everything(model)
    if fails:
        with pytest.raises(ModelError):
            layerscope.summary(model, (1, 4), verbose=0)
    else:
        assert layerscope.summary(model, (1, 4), verbose=0).total_macs == 8
    assert everything(model) == before
    model.does(model)
    assert everything(model) != before


def test_a_model_that_fails_is_left_as_it_was_found() -> None:
    model = nn.Sequential(Restless(), Failing())
    before, call = states(model), nn.Module.__call__
    with pytest.raises(ModelError):
        capture(model, (torch.zeros(2, 3, 8, 8),))
    assert states(model) == before
    assert nn.Module.__call__ is call
    assert not torch.is_inference_mode_enabled()


def test_real_numbers_leave_buffers_as_they_were() -> None:
    class Looking(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x: Any) -> Any:
            y = self.norm(x)
            return y if y.sum() > 0 else -y

    model = Looking().train()
    arrays = copy.deepcopy(model.state_dict())
    capture(model, (torch.rand(4, 3),))
    assert all(torch.equal(arrays[key], value) for key, value in model.state_dict().items())


def test_errors_name_the_module_and_the_shapes() -> None:
    with pytest.raises(ModelError, match=r".; in Failing: inner\.1 \(Linear\) on 2x144 fp32"):
        layerscope.summary(Failing(), (2, 3, 8, 8), verbose=0)
    with pytest.raises(ModelError, match=r"Failing: first \(Conv2d\) on 2x5x8x8 fp32"):
        layerscope.summary(Failing(), (2, 5, 8, 8), verbose=0)
    with pytest.raises(UsageError, match="say either input_size="):
        layerscope.analyze(Failing())
    with pytest.raises(UsageError, match=r"expected a torch\.nn\.Module"):
        layerscope.analyze(object(), input_size=(1, 3))
    with pytest.raises(UsageError, match="every size to be at least 1"):
        layerscope.summary(Failing(), (0, 3, 8, 8), verbose=0)


@pytest.mark.parametrize(
    ("last", "on"),
    [
        (lambda: nn.BatchNorm2d(16), "1x8x6x6"),
        (lambda: nn.BatchNorm1d(8), "1x8x6x6"),
        (lambda: nn.GroupNorm(4, 16), "1x8x6x6"),
        (lambda: nn.LayerNorm(5), "1x8x6x6"),
        (lambda: nn.PReLU(4), "1x8x6x6"),
        (lambda: nn.Linear(5, 2), "1x8x6x6"),
        (lambda: nn.Conv2d(4, 8, 3), "1x8x6x6"),
        (lambda: nn.ConvTranspose2d(4, 8, 3), "1x8x6x6"),
        (lambda: nn.Conv2d(8, 8, 9), "1x8x6x6"),
        (lambda: nn.Conv1d(8, 8, 3), "1x8x6x6"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_pytorch_refuses_is_refused(last: Any, on: str, device: str) -> None:
    """Also by modules that are answered without being run: their arrays must fit what they get."""
    with torch.device(device):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), last())
    kind = type(model[1]).__name__
    with pytest.raises(ModelError, match=rf".; in Sequential: 1 \({kind}\) on {on} fp32"):
        layerscope.summary(model, (1, 3, 8, 8), verbose=0)
    with pytest.raises(RuntimeError if kind != "BatchNorm1d" else ValueError):
        nn.Sequential(nn.Conv2d(3, 8, 3), last())(torch.zeros(1, 3, 8, 8))


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda a, b: nn.functional.linear(a, b),
    "bias": lambda a, b: nn.functional.linear(a, a, b[0]),
    "matmul": lambda a, b: a @ b,
    "vector": lambda a, b: a @ b[0],
    "dot": lambda a, b: a[0].dot(b[0]),
    "batched": lambda a, b: torch.bmm(a[None], b[None]),
    "addmm": lambda a, b: torch.addmm(b, a, a),
    "einsum": lambda a, b: torch.einsum("ij,jk->ik", a, b),
    "conv": lambda a, b: nn.functional.conv1d(a[None], b[..., None]),
    "transposed": lambda a, b: nn.functional.conv_transpose1d(a[None], b[..., None]),
    "attention": lambda a, b: nn.functional.scaled_dot_product_attention(a, b, a),
}


class Product(nn.Module):  # type: ignore[misc]
    def __init__(self, name: str) -> None:
        super().__init__()
        self.act = PRODUCTS[name]

    def forward(self, a: Any, b: Any) -> Any:
        return self.act(a, b)


@pytest.mark.parametrize("other", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", PRODUCTS)
def test_numbers_of_two_types_are_not_multiplied(name: str, other: Any) -> None:
    """PyTorch casts none of them, where it has numbers; without them it does not look."""
    given = (torch.zeros(4, 4), torch.zeros(4, 4, dtype=other))
    with pytest.raises(RuntimeError):
        Product(name)(*given)
    with pytest.raises(ModelError, match=r"fp32.*; in Product .* on 4x4 fp32, 4x4 [fb]"):
        layerscope.summary(Product(name), input_data=given, verbose=0)
    given = (torch.zeros(4, 4), torch.zeros(4, 4))
    assert layerscope.summary(Product(name), input_data=given, verbose=0).total_macs > 0


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_module_in_another_type_than_its_input_is_named(device: str) -> None:
    with torch.device(device):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3).double())
    told = r"numbers of fp32 and fp64 in one product; in Sequential: 1 \(Conv2d\) on 1x8x6x6 fp32"
    with pytest.raises(ModelError, match=told):
        layerscope.summary(model, (1, 3, 8, 8), verbose=0)
    assert layerscope.summary(model[1], (1, 8, 6, 6), verbose=0).total_macs == 16 * 8 * 72


def test_a_norm_of_another_size_after_one_that_fits() -> None:
    """What is known of one module is not taken to hold for another's arrays."""
    model = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(4))
    with pytest.raises(ModelError, match=r"Sequential: 2 \(BatchNorm2d\) on 1x3x8x8 fp32"):
        layerscope.summary(model, (1, 3, 8, 8), verbose=0)


def test_a_module_that_is_to_be_compiled_is_counted_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    model[1].compile()
    kept = vars(model[1])["_compiled_call_impl"]
    assert layerscope.summary(model, (1, 4), verbose=0).total_macs == 16 + 8
    assert vars(model[1])["_compiled_call_impl"] is kept
    assert "_compiled_call_impl" not in vars(model)


@pytest.mark.parametrize("how", ["script", "trace"])
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit_b_16"])
def test_torchscript_is_the_same_model(
    name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its interpreter runs on tensors without numbers; a traced one may hold the fast attention."""
    # PyTorch's table of built-in functions is by id, and operators that other tests define and
    # destroy stay in it: an attribute of the model that has the id of one is taken for a function.
    find = torch.jit._recursive._find_builtin
    monkeypatch.setattr(
        torch.jit._recursive,
        "_find_builtin",
        lambda value: find(value) if callable(value) else None,
    )
    model = getattr(vision(), name)(weights=None).eval()
    x = torch.zeros(1, 3, 224, 224)
    with torch.no_grad():
        compiled = torch.jit.trace(model, x) if how == "trace" else torch.jit.script(model)
        before = compiled(x)
    ours, report = (
        layerscope.summary(model, input_data=x, verbose=0),
        layerscope.summary(compiled, x.shape, verbose=0),
    )
    assert report.total_params == ours.total_params
    assert report.total_macs == ours.total_macs
    assert not report.coverage.unknown
    assert report.name == type(model).__name__
    with torch.no_grad():
        assert torch.equal(compiled(x), before)


def test_odd_results() -> None:
    class Odd(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return None if x.shape[0] > 5 else ("word", {x.relu(), 3}, x)

    assert capture(Odd(), (torch.zeros(6),)).outputs == ()
    assert capture(Odd(), (torch.zeros(5),)).outputs == ("relu1", "x")


def test_hooks_and_other_forwards_are_heeded() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    net[0].register_forward_hook(lambda module, given, made: made * 2)
    net[1].forward = lambda x: x.tanh()
    assert [node.op for node in capture(net, (torch.zeros(1, 4),)).nodes] == [
        "linear", "mul", "tanh",
    ]  # fmt: skip
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
    report = layerscope.summary(normed, (1, 4), verbose=0)
    assert report.total_macs == 16
    assert report.total_params == 4 + 16 + 4


def test_a_replaced_forward_of_a_class_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def ops() -> list[str]:
        return [node.op for node in capture(net, (torch.zeros(1, 4),)).nodes]

    assert ops() == ["linear", "relu"]
    with monkeypatch.context() as replaced:
        replaced.setattr(nn.ReLU, "forward", lambda self, x: x.tanh())
        assert ops() == ["linear", "tanh"]
    assert ops() == ["linear", "relu"]


def test_functions_of_functions() -> None:
    class Net(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            x = f.interpolate(x, scale_factor=2, mode="bilinear")
            x = f.pad(x, (1, 1, 1, 1), mode="reflect")
            a, b = x.chunk(2, dim=1)
            x = torch.stack([a.softmax(-1), b.cumsum(-1)]).flatten(0, 1).mean((2, 3))
            return x.topk(1)[0].clamp(0, 1) ** 2

    report = layerscope.summary(Net(), (1, 4, 8, 8), verbose=0)
    assert not report.coverage.unknown
    assert report.tensors[report.graph.outputs[0]].shape == (2, 1)


@pytest.mark.parametrize(
    "make", [lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()), Painted], ids=["row", "painted"]
)
def test_a_capture_is_freed_as_soon_as_it_is_done(make: Callable[[], Any]) -> None:
    """Nothing waits for the collector: what is made for a capture does not hold itself."""
    model = make()
    x = torch.randn(4, 6) if isinstance(model, Painted) else torch.randn(1, 3, 8, 8)
    capture(model, (x,))

    def alive() -> int:
        return sum(type(each).__name__ == "Capture" for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = alive()
        capture(model, (x,))
        assert alive() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("by_name", [False, True])
def test_a_fused_kernel_called_by_its_name_has_its_mask(by_name: bool) -> None:
    """The CPU kernel takes the mask as a keyword."""
    kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

    def forward(x: Any, mask: Any) -> Any:
        if by_name:
            return kernel(x, x, x, 0.0, False, attn_mask=mask)[0]
        return f.scaled_dot_product_attention(x, x, x, attn_mask=mask)

    report = layerscope.summary(
        Doing(forward), input_data=(torch.rand(1, 2, 16, 8), torch.rand(16, 16)), verbose=0
    )
    [layer] = [layer for layer in report.layers if layer.op == "attention"]
    assert layer.ops.add == 2 * 16 * 16 * 3  # two of the softmax, one of the mask
