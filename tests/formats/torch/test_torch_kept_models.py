"""A model is as it was after its forward was captured, whatever the forward writes to."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import layerscope
from tests.formats.torch.torch_nets import nn, torch

Ends = namedtuple("Ends", "first last")


class Writing(nn.Module):  # type: ignore[misc]
    """Calls a function that writes to its tensors; `looks` needs a run with values."""

    def __init__(self, write: Callable[[Any, Any], Any], *, looks: bool, device: str) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4, device=device)
        self.norm = nn.BatchNorm1d(4, device=device)
        self.register_buffer("mean", torch.zeros(4, device=device))
        self.cache = torch.zeros(4, device=device)
        self.caches = [torch.zeros(4, device=device)]
        self.write, self.looks = write, looks

    def forward(self, x: Any) -> Any:
        y = self.norm(self.linear(x))
        with torch.no_grad():
            self.write(self, y)
        if self.looks and y.sum() > 1e9:
            y = y + 1
        return y + self.mean + self.cache + self.caches[0]


def assign(tensor: str) -> Callable[[Any, Any], None]:
    def write(self: Any, y: Any) -> None:
        owner = self.linear if tensor == "weight" else self
        data = getattr(owner, tensor).data
        getattr(owner, tensor).data = data * 0.9 + 1

    return write


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "parameter": lambda self, y: self.linear.weight.clamp_(-0.01, 0.01),
    "data of a parameter": lambda self, y: self.linear.weight.data.clamp_(-0.01, 0.01),
    "row of a parameter": lambda self, y: self.linear.weight[0].zero_(),
    "parameter by out": lambda self, y: torch.neg(y[0], out=self.linear.bias),
    "buffer": lambda self, y: self.mean.lerp_(y.mean(0), 0.1),
    "slice of a buffer": lambda self, y: self.mean[:2].copy_(y[0, :2]),
    "buffer by out": lambda self, y: torch.neg(y[0], out=self.mean),
    "buffers by a list": lambda self, y: torch._foreach_add_([self.mean, self.cache], 1.0),
    "attribute": lambda self, y: self.cache.add_(1),
    "attribute from results": lambda self, y: self.cache.copy_(y[0]),
    "slice of an attribute": lambda self, y: self.cache[:2].fill_(5),
    "tensor in a list": lambda self, y: self.caches[0].add_(1),
    "data of a parameter assigned": assign("weight"),
    "data of a buffer assigned": assign("mean"),
    "data of an attribute assigned": assign("cache"),
}


def tensors_of(model: Any) -> dict[str, Any]:
    return {
        **model.state_dict(keep_vars=True), "cache": model.cache, "caches.0": model.caches[0],
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("how", ["meta", "cpu", "values"])
@pytest.mark.parametrize("name", WRITES)
def test_values_and_versions_stay(name: str, how: str, mode: str) -> None:
    device = "meta" if how == "meta" else "cpu"
    model = Writing(WRITES[name], looks=how == "values", device=device).train(mode == "train")
    x = torch.randn(3, 4, device=device)
    before = {
        key: (id(value), value.detach().clone(), value._version, value.data_ptr())
        for key, value in tensors_of(model).items()
    }
    report = layerscope.analyze(model, input_data=x)
    assert report.total_macs == 3 * 4 * 4
    assert report.total_params == 4 * 4 + 4 + 2 * 4
    assert not report.coverage.unknown
    for key, value in tensors_of(model).items():
        same, values, version, address = before[key]
        assert id(value) == same, key
        assert value._version == version, key
        assert value.data_ptr() == address, key
        assert value.shape == values.shape, key
        assert device == "meta" or torch.equal(value, values), key


def test_a_backward_pass_that_saved_a_written_buffer_still_runs() -> None:
    class Scaled(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x: Any) -> Any:
            self.scale.mul_(0.9)
            return self.linear(x) * self.scale

    model, x = Scaled(), torch.randn(2, 4)
    loss = model(x).sum()
    layerscope.analyze(model, input_data=x)
    loss.backward()
    assert model.linear.weight.grad is not None


def test_data_assigned_in_another_shape() -> None:
    class Growing(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            y = self.linear(x)
            self.seen.data = y
            return y @ self.seen.t()

    model = Growing()
    report = layerscope.analyze(model, input_data=torch.randn(3, 4))
    assert report.total_macs == 3 * 4 * 4 + 3 * 3 * 4
    assert model.seen.shape == (4,)


# Containers of classes of the user's


class Words(tuple[Any, ...]):
    """A tuple with another constructor, and without a length."""

    def __new__(cls, first: str, second: Any) -> Words:
        return super().__new__(cls, (first, second))

    def __len__(self) -> int:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class Layers(list[Any]):
    def run(self, x: Any) -> Any:
        for layer in list.__iter__(self):
            x = layer(x)
        return x

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class Named(dict[str, Any]):
    def run(self, x: Any) -> Any:
        return self["last"](self["first"](x))


class Sorted(OrderedDict[str, Any]):
    def run(self, x: Any) -> Any:
        assert [*self] == ["first", "last"]
        for layer in self.values():
            x = layer(x)
        return x


class Couple(tuple[Any, ...]):
    def __new__(cls, first: Any, last: Any) -> Couple:
        return super().__new__(cls, (first, last))

    def run(self, x: Any) -> Any:
        return self[1](self[0](x))


class Containers(nn.Module):  # type: ignore[misc]
    def __init__(self, *, looks: bool) -> None:
        super().__init__()
        self.first, self.last, self.looks = nn.Linear(4, 4), nn.Linear(4, 4), looks
        self.words = [Words("a", torch.ones(3)), Words("b", torch.max(torch.ones(2, 2), 0))]
        self.layers = Layers([self.first, self.last])
        self.named = Named(first=self.first, last=self.last)
        self.sorted = Sorted(last=self.last, first=self.first)
        self.sorted.move_to_end("last")
        self.couple, self.ends = Couple(self.first, self.last), Ends(self.first, self.last)
        self.lists = defaultdict(list, {"first": [self.first]})

    def forward(self, x: Any) -> Any:
        for each in (self.layers, self.named, self.sorted, self.couple):
            x = each.run(x)
        self.lists["new"].append(x)
        x = self.lists["first"][0](self.ends.last(x))
        return x + 1 if self.looks and x.sum() > 1e9 else x


@pytest.mark.parametrize("looks", [False, True])
def test_containers_with_methods_of_their_own(looks: bool) -> None:
    model = Containers(looks=looks)
    report = layerscope.analyze(model, input_data=torch.randn(2, 4))
    assert report.total_macs == 10 * 2 * 4 * 4
    assert report.total_params == 2 * (4 * 4 + 4)
    assert [*model.lists] == ["first"]


def test_checks_of_distributions_are_counted() -> None:
    class Policy(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            logits = self.linear(x)
            gamma = torch.distributions.Gamma(logits.exp(), logits.exp(), validate_args=True)
            choice = torch.distributions.Categorical(logits=logits, validate_args=True)
            return choice.log_prob(choice.sample()) + gamma.sample().sum(-1)

    report = layerscope.analyze(Policy(), input_data=torch.randn(2, 4))
    assert not report.coverage.unknown
    assert report.total_macs == 2 * 4 * 3
