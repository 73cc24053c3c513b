"""Captures leave the user's process alone: other threads, modes, hooks, random states."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError
from tests.formats.torch.torch_nets import nn, torch

flex = pytest.importorskip("torch.nn.attention.flex_attention")
flex_attention = flex.flex_attention
THREADS = 8
module = torch.nn.modules.module


class Net(nn.Module):  # type: ignore[misc]
    """A module that counts its calls, with a norm that keeps statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(8)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(8, 3))
        self.calls, self.seen = 0, [0]

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.seen.append(self.calls)
        return self.rest(self.norm(self.first(x)))


class Attending(nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return flex_attention(x, x, x)


def trained(model: Any, steps: int) -> list[Any]:
    """Losses of a training loop on fixed numbers."""
    step = torch.optim.SGD(model.parameters(), lr=0.05)
    x = torch.linspace(-1, 1, 24).reshape(4, 6)
    losses = []
    for _ in range(steps):
        step.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses


@pytest.fixture
def switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_all(*works: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("times", [10, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("several", [False, True], ids=["one model", "four models"])
def test_captures_beside_training_and_flex_attention(
    several: bool, times: int, switching: None
) -> None:
    torch.manual_seed(0)
    first = Net()
    nets = [first, Net(), nn.Sequential(nn.Linear(6, 6), nn.Tanh()), nn.GRU(6, 5)]
    other = Net()
    alone, other_alone = copy.deepcopy(first), copy.deepcopy(other)
    steps = 40
    losses, other_losses = trained(alone, steps), trained(other_alone, steps)
    shown = nets if several else [first]
    expected = [layerscope.summary(net, (4, 6), verbose=0).totals for net in shown]
    q = torch.randn(1, 2, 16, 4)
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j, 1, 1, 16, 16, device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attended = flex_attention(q, q, q, block_mask=mask)
    found: list[list[Any]] = [[], []]

    def captures(n: int) -> Callable[[], None]:
        def work() -> None:
            for k in range(times):
                which = (n + k) % len(shown)
                assert layerscope.summary(shown[which], (4, 6), verbose=0).totals == expected[which]
                if k % 8 == 0:
                    assert layerscope.summary(Attending(), (1, 2, 16, 4), verbose=0).total_macs > 0

        return work

    def attending() -> None:
        for _ in range(20):
            assert torch.equal(flex_attention(q, q, q, block_mask=mask), attended)

    run_all(
        *[captures(n) for n in range(THREADS)],
        lambda: found[0].extend(trained(first, steps)),
        lambda: found[1].extend(trained(other, steps)),
        attending,
    )
    assert found == [losses, other_losses]
    for ours, theirs in ((first, alone), (other, other_alone)):
        for name, value in theirs.state_dict().items():
            assert torch.equal(ours.state_dict()[name], value)
        assert (ours.calls, ours.seen) == (theirs.calls, theirs.seen)
        for a, b in zip(ours.modules(), theirs.modules(), strict=True):
            assert list(vars(a)) == list(vars(b))
            assert "_compiled_call_impl" not in vars(a)


def process() -> dict[str, Any]:
    """All that is kept for the process and that a capture could change."""
    return {
        "flex": flex_attention.__code__,
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "collector": gc.isenabled(),
        "frozen": gc.get_freeze_count(),
        "autocast": (torch.set_autocast_enabled, torch.is_autocast_enabled, torch.autocast),
        "call": nn.Module.__call__,
        "hooks": [dict(module._global_forward_hooks), dict(module._global_forward_pre_hooks)],
        "random": (torch.get_rng_state().tolist(), random.getstate()),
        "limit": sys.getrecursionlimit(),
        "warnings": list(warnings.filters),
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
    }


@pytest.mark.parametrize("mode", [None, "eval", "train"])
def test_another_thread_sees_nothing_of_a_capture(mode: str | None) -> None:
    inside, seen = threading.Event(), threading.Event()

    class Waiting(Net):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            inside.set()
            assert seen.wait(30)
            return y

    model = Waiting()
    model.norm.eval()

    def attributes() -> list[Any]:
        return [
            [(key, id(value), repr(value) if key in ("calls", "seen") else "")
             for key, value in vars(each).items()]
            for each in model.modules()
        ]  # fmt: skip

    before, held = process(), attributes()
    thread = threading.Thread(
        target=lambda: layerscope.summary(model, (4, 6), mode=mode, verbose=0)
    )
    thread.start()
    assert inside.wait(30)
    during, held_during = process(), attributes()
    seen.set()
    thread.join()
    assert during == before == process()
    assert held_during == held == attributes()


class Gathering(nn.Module):  # type: ignore[misc]
    """Takes its children out of `_modules` in one of the ways that Python has."""

    def __init__(self, take: Any) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6)))
        self.take = take

    def forward(self, x: Any) -> Any:
        for module in self.take(self._modules):
            module.seen = True
            x = module(x)
        return x


TAKES: list[Callable[[Any], Any]] = [
    lambda modules: modules.values(),
    lambda modules: dict(modules).values(),
    lambda modules: {**modules}.values(),
    lambda modules: [modules[name] for name in modules],
    lambda modules: [each for _, each in modules.items()],
    lambda modules: copy.copy(modules).values(),
    lambda modules: [modules.get("inner")],
]


@pytest.mark.parametrize("take", TAKES)
def test_children_are_shadows_however_they_are_read(take: Callable[[Any], Any]) -> None:
    model = Gathering(take)
    report = layerscope.summary(model, (4, 6), verbose=0)
    assert [layer.node.module for layer in report.layers] == ["inner.0", "inner.1.0"]
    assert not hasattr(model.inner, "seen")


def test_a_stored_shadow_runs_as_a_plain_module_afterwards() -> None:
    stored: list[Any] = []

    class Storing(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.read, self.unread = Gathering(TAKES[0]), Gathering(TAKES[0])

        def forward(self, x: Any) -> Any:
            stored.extend([self, self.read, self.unread])
            return self.read(x)

    model, x = Storing(), torch.ones(4, 6)
    layerscope.summary(model, (4, 6), verbose=0)
    wanted = model.read(x)
    whole, read, unread = stored
    assert torch.equal(read(x), wanted)
    assert torch.equal(whole(x), wanted)
    assert [type(each) for each in unread.inner[1].children()] == [nn.Linear]
    assert unread(x).shape == (4, 6)
    with pytest.raises(RuntimeError, match="stored during a capture takes no hooks"):
        read.inner[0].register_forward_hook(print)


def test_two_captures_of_one_module_at_once() -> None:
    met = threading.Barrier(2, timeout=30)

    class Meeting(Net):
        def forward(self, x: Any) -> Any:
            met.wait()
            return super().forward(x)

    model, totals = Meeting(), []
    before = process()
    run_all(*[lambda: totals.append(layerscope.summary(model, (4, 6), verbose=0).totals)] * 2)
    assert totals[0] == totals[1]
    assert process() == before
    assert (model.calls, model.seen) == (0, [0])


def test_summary_inside_a_hook_of_summary() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    found: list[int] = []

    def hook(module: Any, given: Any, made: Any) -> None:
        found.append(layerscope.summary(net[0], (1, 4), verbose=0).total_macs)
        if len(found) == 1:  # the module that is given has this hook too
            assert [layer.op for layer in layerscope.summary(module, (1, 4), verbose=0).layers] == [
                "relu"
            ]

    net[1].register_forward_hook(hook)
    net_ops = [
        layer.op for layer in layerscope.summary(net, (1, 4), shortcuts=False, verbose=0).layers
    ]
    assert net_ops == ["linear", "relu"]
    assert found == [16, 16]


def test_under_other_modes() -> None:
    from torch.utils.flop_counter import FlopCounterMode  # noqa: TID251

    net = Net().eval()
    expected = layerscope.summary(net, (4, 6), verbose=0).totals
    held = [dict(vars(each)) for each in net.modules()]
    with FlopCounterMode(display=False) as counter:
        net(torch.zeros(4, 6))
        before = counter.get_flop_counts(), counter.get_total_flops()
        held[0]["calls"] = net.calls
        assert layerscope.summary(net, (4, 6), verbose=0).totals == expected
        assert (counter.get_flop_counts(), counter.get_total_flops()) == before
        assert [dict(vars(each)) for each in net.modules()] == held
    with torch.device("meta"):
        assert layerscope.summary(net, (4, 6), verbose=0).totals == expected
    called: list[Any] = []
    handle = module.register_module_forward_hook(lambda *given: called.append(type(given[0])))
    try:
        assert layerscope.summary(net, (4, 6), verbose=0).totals == expected
        assert [dict(vars(each)) for each in net.modules()] == held
    finally:
        handle.remove()
    assert Net in called


def test_a_pending_backward_stays_valid() -> None:
    class Looking(Net):
        def forward(self, x: Any) -> Any:
            y = super().forward(x)
            return y if y.sum() > 0 else -y

    model = Looking().train()
    x = torch.randn(4, 6)
    loss = model(x).sum()
    versions = [buffer._version for buffer in model.buffers()]
    report = layerscope.summary(model, input_data=x, verbose=0)
    assert any("real numbers" in note for note in report.graph.notes)
    assert [buffer._version for buffer in model.buffers()] == versions
    loss.backward()
    assert model.first.weight.grad is not None


class Nest(nn.Module):  # type: ignore[misc]
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)


@pytest.mark.parametrize("kind", [Nest, nn.Sequential])
def test_deep_nests(kind: Any) -> None:
    model: Any = nn.Linear(4, 4)
    for _ in range(200):
        model = kind(model)
    assert model(torch.zeros(1, 4)).shape == (1, 4)
    for shortcuts in (True, False):
        assert layerscope.summary(model, (1, 4), shortcuts=shortcuts, verbose=0).total_macs == 16
    for _ in range(2800):
        model = kind(model)
    with pytest.raises(ModelError, match="recursion limit"):
        layerscope.summary(model, (1, 4), verbose=0)
    while hasattr(model, "_modules") and model._modules:  # taken apart by hand, it is so deep
        model = next(iter(model._modules.values()))


def test_reports_can_be_pickled_and_copied() -> None:
    made: list[Any] = [
        layerscope.summary(Net(), (4, 6), verbose=0),
        layerscope.analyze("resnet18"),
        layerscope.analyze("alexnet", like="fvcore"),
        layerscope.compare("alexnet", "vgg16"),
        layerscope.explain("alexnet", like="fvcore"),
        layerscope.fit("alexnet", 1 << 30),
    ]
    for each in made:
        assert pickle.loads(pickle.dumps(each)) == each
        assert copy.deepcopy(each) == each


def test_modules_that_a_forward_reaches_in_other_ways() -> None:
    """Lists, closures, bound methods and objects that refer to modules refer to shadows."""

    class Helper:
        def __init__(self, net: Any) -> None:
            self.net = net

    class Odd(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c, self.d = (Net() for _ in range(4))
            self.listed, self.helper = [self.a], Helper(self.b)
            self.closure: Any = lambda x: self.c(x)
            self.bound = self.d.forward

        def forward(self, x: Any) -> Any:
            return sum([self.listed[0](x), self.helper.net(x), self.closure(x), self.bound(x)])

    model = Odd()
    report = layerscope.summary(model, (4, 6), verbose=0)
    assert report.total_macs == 4 * 4 * (6 * 8 + 8 * 3)
    assert [net.calls for net in (model.a, model.b, model.c, model.d)] == [0] * 4
    assert {layer.scope[0] for layer in report.layers if layer.op == "linear"} >= {"a", "b", "c"}
