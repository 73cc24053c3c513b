"""Rows under autocast, against the operators of a real run on the CPU, dtype by dtype."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError
from tests.formats.torch.torch_nets import nn, torch, vision

pytestmark = pytest.mark.filterwarnings("ignore")

PRODUCTS = ("addmm", "mm", "bmm", "baddbmm", "addbmm", "mv", "linear", "matmul", "einsum")
# operators of PyTorch and ops of ours, by what they do; views and what is made of nothing are none
KINDS = {
    **dict.fromkeys(PRODUCTS, "product"),
    "convolution": "conv",
    "native_layer_norm": "layer_norm",
    "native_batch_norm": "batch_norm",
    "native_group_norm": "group_norm",
    "_softmax": "softmax",
    "_to_copy": "cast",
    "max_pool2d_with_indices": "max_pool",
    "_scaled_dot_product_flash_attention_for_cpu": "attention",
    "_native_batch_norm_legit_no_training": "batch_norm",
    "mean": "global_avg_pool",
    "reduce_mean": "global_avg_pool",
    "adaptive_avg_pool": "global_avg_pool",
    "conv_transpose": "conv",
    "sigmoid_": "sigmoid",
    "cat": "concat",
    "relu_": "relu",
    "add_": "add",
}
COMPARED = {*KINDS.values(), "gelu", "relu", "add", "mul", "tanh", "div", "embedding", "exp"}
NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
Rows = list[tuple[str, str]]


class Log(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Operators of a real run and the dtypes they make; casts of parameters are left out."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.arrays = {id(p) for p in (*model.parameters(), *model.buffers())}
        self.rows: Rows = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        kind = KINDS.get(name, name)
        if kind in COMPARED and not (kind == "cast" and id(args[0]) in self.arrays):
            first = out[0] if isinstance(out, (list, tuple)) else out
            self.rows.append((kind, NAMES[first.dtype]))
        return out


class Module(nn.Module):  # type: ignore[misc]
    """A module of one function, with a weight."""

    def __init__(self, function: Callable[..., Any], *shape: int) -> None:
        super().__init__()
        self.function = function
        if shape:
            self.w = nn.Parameter(torch.zeros(shape))

    def forward(self, *x: Any) -> Any:
        return self.function(*x, *([self.w] if hasattr(self, "w") else []))


class Attention(nn.Module):  # type: ignore[misc]
    def __init__(self, **told: Any) -> None:
        super().__init__()
        self.told = told
        self.inner = nn.MultiheadAttention(16, 2)

    def forward(self, x: Any) -> Any:
        return self.inner(x, x, x, **self.told)[0]


class Nested(nn.Module):  # type: ignore[misc]
    """Linear layers under autocast, with a region in which it is off."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.one(x)
            with torch.autocast("cpu", enabled=False):
                x = self.two(x.float())
            x = self.three(x)
        return self.one(x.float())


def twice(x: Any, w: Any) -> Any:
    return (x @ w) @ w


def product(a: Any, b: Any) -> Any:
    return torch.einsum("bij,bjk->bik", a, b)


def net() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(72, 5), nn.Softmax(-1),
    )  # fmt: skip


def mlp() -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Tanh())


CASES: dict[str, tuple[Callable[[], Any], list[tuple[int, ...]]]] = {
    "conv net": (net, [(2, 3, 8, 8)]),
    "linear": (lambda: nn.Linear(8, 4), [(3, 8)]),
    "linear 3-D": (lambda: nn.Linear(8, 4, bias=False), [(2, 3, 8)]),
    "mlp": (mlp, [(3, 8)]),
    "attention": (Attention, [(2, 5, 16)]),
    "attention alone": (lambda: Attention(need_weights=False), [(2, 5, 16)]),
    "encoder layer": (lambda: nn.TransformerEncoderLayer(16, 2, 32, 0.0), [(5, 2, 16)]),
    "x @ w": (lambda: Module(torch.matmul, 8, 4), [(3, 8)]),
    "w @ x": (lambda: Module(lambda x, w: w @ x, 4, 3), [(3, 8)]),
    "x @ w @ w": (lambda: Module(twice, 8, 8), [(3, 8)]),
    "einsum": (lambda: Module(product), [(2, 3, 4), (2, 4, 5)]),
    "layer norm": (lambda: nn.LayerNorm(8), [(3, 8)]),
    "layer norm of bf16": (lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)), [(3, 8)]),
    "softmax": (lambda: nn.Softmax(-1), [(3, 8)]),
    "group norm": (lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4)), [(1, 3, 4, 4)]),
    "transposed": (lambda: nn.ConvTranspose2d(3, 4, 2), [(1, 3, 4, 4)]),
    "cat": (lambda: Module(lambda x, w: torch.cat([x @ w, x], 1), 8, 8), [(3, 8)]),
    "residual": (lambda: Module(lambda x, w: x + x @ w, 8, 8), [(3, 8)]),
    "nested": (Nested, [(3, 8)]),
    "resnet18": (lambda: vision().resnet18(weights=None), [(1, 3, 32, 32)]),
    "vit": (
        lambda: vision().VisionTransformer(32, 16, 2, 2, 16, 32, num_classes=5), [(1, 3, 32, 32)]
    ),
}  # fmt: skip


def real(model: Any, sizes: list[tuple[int, ...]], dtype: Any) -> Rows:
    given = [torch.randn(size) for size in sizes]
    log = Log(model)
    with torch.autocast("cpu", dtype=dtype), log:
        model(*given)
    return log.rows


def ours(report: Any) -> Rows:
    rows = []
    arrays = {param.name for param in report.graph.params}
    for node in report.graph.nodes:
        kind = KINDS.get(node.op, node.op)
        if kind in COMPARED and not (kind == "cast" and node.inputs[0] in arrays):
            rows.append((kind, report.tensors[node.outputs[0]].dtype))
    return rows


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize("case", CASES)
def test_rows_have_the_dtypes_of_a_real_run(case: str, dtype: Any) -> None:
    make, sizes = CASES[case]
    model = make().eval()
    if isinstance(model, Nested) and dtype is torch.float16:
        pytest.skip("PyTorch takes the weight of the inner region out of its cache, in bf16")
    expected = real(model, sizes, dtype)
    graphs = []
    for shortcuts in (True, False):
        with torch.autocast("cpu", dtype=dtype):
            report = layerscope.summary(
                model, sizes if sizes[1:] else sizes[0], shortcuts=shortcuts, verbose=0
            )
        assert ours(report) == expected
        assert not report.coverage.unknown
        assert report.total_params == sum(p.numel() for p in model.parameters())
        graphs.append(report.graph.nodes)
    assert graphs[0] == graphs[1]
    plain = layerscope.summary(model, sizes if sizes[1:] else sizes[0], verbose=0)
    assert plain.total_macs == report.total_macs


def dtypes(report: Any) -> list[tuple[str, tuple[str, ...]]]:
    tensors = report.tensors
    return [(n.op, tuple(tensors[t].dtype for t in n.outputs)) for n in report.graph.nodes]


def test_recurrent_layers() -> None:
    """As PyTorch has them on the CPU: oneDNN's LSTM casts all, of GRU the products alone."""
    expected: dict[Any, list[tuple[str, tuple[str, ...]]]] = {
        nn.LSTM: [("cast", ("bf16",)), ("lstm", ("bf16",) * 3)],
        nn.GRU: [("gru", ("fp32",) * 2)],
        nn.RNN: [("cast", ("bf16",)), ("rnn", ("bf16",) * 2)],
    }
    for kind, rows in expected.items():
        model = kind(8, 8)
        for shortcuts in (True, False):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                report = layerscope.summary(model, (4, 2, 8), shortcuts=shortcuts, verbose=0)
                if kind is not nn.LSTM:  # which not every processor has in bf16
                    out = model(torch.randn(4, 2, 8))[0]
                    assert {torch.bfloat16: "bf16", torch.float32: "fp32"}[out.dtype] == rows[-1][
                        1
                    ][0]
            assert dtypes(report) == rows
            assert report.total_macs == layerscope.summary(model, (4, 2, 8), verbose=0).total_macs
        said = "aten.gru is one row, and computes in bf16 inside"
        assert (said in report.graph.notes) == (kind is nn.GRU)


def test_autocast_that_the_forward_turns_on() -> None:
    for shortcuts in (True, False):
        report = layerscope.summary(Nested(), (3, 8), shortcuts=shortcuts, verbose=0)
        assert [row for row in dtypes(report) if row[0] == "linear"] == [
            ("linear", ("bf16",)), ("linear", ("fp32",)), ("linear", ("bf16",)),
            ("linear", ("fp32",)),
        ]  # fmt: skip
        assert "under autocast to bf16, as on cpu" in report.graph.notes
    assert not torch.is_autocast_enabled("cpu")


def test_bytes_follow_the_dtypes() -> None:
    model = nn.Linear(8, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        report = layerscope.summary(model, (3, 8), verbose=0)
    cast, linear = (report.costs[node.name] for node in report.graph.nodes)
    assert (cast.read_bytes, cast.write_bytes) == (3 * 8 * 4, 3 * 8 * 2)
    # the weights as they are stored, in fp32
    assert (linear.read_bytes, linear.write_bytes) == (3 * 8 * 2 + (4 * 8 + 4) * 4, 3 * 4 * 2)
    assert [(param.name, param.dtype) for param in linear.params] == [
        ("weight", "fp32"), ("bias", "fp32"),
    ]  # fmt: skip
    assert linear.stored_bytes == (4 * 8 + 4) * 4


def test_arrays_of_other_dtypes_than_the_output() -> None:
    """Without autocast too: a norm in fp32 inside a network in bf16."""
    norm = nn.LayerNorm(8)
    report = layerscope.summary(norm, (3, 8), dtypes=[torch.bfloat16], verbose=0)
    [node] = report.graph.nodes
    cost = report.costs[node.name]
    assert report.tensors[node.outputs[0]].dtype == "bf16"
    assert [param.dtype for param in cost.params] == ["fp32", "fp32"]
    assert (cost.read_bytes, cost.stored_bytes) == (3 * 8 * 2 + 16 * 4, 16 * 4)


@pytest.mark.parametrize("learns", [True, False])
def test_a_weight_is_cast_once_where_pytorch_keeps_the_cast(learns: bool) -> None:
    model = Module(twice, 8, 8).requires_grad_(learns)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        report = layerscope.summary(model, (3, 8), verbose=0)
        with Log(nn.Module()) as log:  # casts of parameters included
            model(torch.randn(3, 8))
    casts = [node.inputs[0] for node in report.graph.nodes if node.op == "cast"]
    assert casts.count("w") == (1 if learns else 2)
    assert len(casts) == [kind for kind, _ in log.rows].count("cast")


@contextmanager
def cuda(dtype: Any) -> Iterator[None]:
    """Autocast for a GPU; its context refuses where there is none, its state does not."""
    before = torch.get_autocast_dtype("cuda")
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", dtype)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cuda", False)
        torch.set_autocast_dtype("cuda", before)


def test_autocast_of_another_device() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(8, 8), nn.Softmax(-1), nn.LayerNorm(8), nn.Linear(8, 2))
    for shortcuts in (True, False):
        with cuda(torch.float16):
            report = layerscope.summary(model, (3, 8), shortcuts=shortcuts, verbose=0)
        assert dtypes(report) == [
            ("cast", ("fp16",)), ("linear", ("fp16",)), ("cast", ("fp32",)), ("softmax", ("fp32",)),
            ("layer_norm", ("fp32",)), ("cast", ("fp16",)), ("linear", ("fp16",)),
        ]  # fmt: skip
        assert report.graph.notes == ("under autocast to fp16, as on cuda",)
        with cuda(torch.float16):  # on the CPU it makes no difference
            report = layerscope.summary(nn.Linear(8, 8), (3, 8), shortcuts=shortcuts, verbose=0)
        assert dtypes(report) == [("linear", ("fp32",))]


def test_what_pytorch_refuses_under_autocast() -> None:
    loss = Module(lambda x: torch.nn.functional.binary_cross_entropy(x.sigmoid(), x))
    with cuda(torch.float16), pytest.raises(ModelError, match="unsafe to autocast"):
        layerscope.summary(loss, input_data=torch.empty(3, 8, device="meta"), verbose=0)


def test_a_model_that_looks_at_numbers() -> None:
    def look(x: Any, w: Any) -> Any:
        x = x @ w
        return torch.einsum("ij,jk->ik", x + 1 if x.sum() > 0 else x, w)

    model = Module(look, 8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        report = layerscope.summary(model, (3, 8), verbose=0)
        assert model(torch.randn(3, 8)).dtype is torch.bfloat16
    assert any("real numbers" in note for note in report.graph.notes)
    products = [row for row in dtypes(report) if row[0] in ("matmul", "einsum")]
    assert products == [("matmul", ("bf16",)), ("einsum", ("bf16",))]


def state() -> tuple[Any, ...]:
    found = [(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")]
    level = torch.autocast_increment_nesting()
    torch.autocast_decrement_nesting()
    functions = (torch.is_autocast_enabled, torch.set_autocast_enabled)
    return (*found, torch.is_autocast_cache_enabled(), level, functions)


def raising(x: Any) -> Any:
    torch.autocast("cpu", dtype=torch.float16).__enter__()
    raise ValueError("in the forward")


def test_state_and_cache_are_left_as_found() -> None:
    model = nn.Linear(8, 8)
    x = torch.randn(3, 8)
    before = state()
    layerscope.summary(Nested(), (3, 8), verbose=0)
    assert state() == before
    with torch.autocast("cpu", dtype=torch.bfloat16):
        before = state()
        model(x)  # its weights are in the cache now
        layerscope.summary(model, (3, 8), verbose=0)
        layerscope.summary(Nested(), (3, 8), verbose=0)
        assert state() == before
        with Log(nn.Module()) as log:
            made = model(x)
        assert [kind for kind, _ in log.rows].count("cast") == 1  # of x
        made.float().sum().backward()  # an inference tensor in the cache would raise
    assert model.weight.grad is not None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        layerscope.summary(model, (3, 8), verbose=0)  # leaves nothing in the cache
        with Log(nn.Module()) as log:
            model(x)
        assert [kind for kind, _ in log.rows].count("cast") == 3


def test_state_after_a_forward_that_raises() -> None:
    before = state()
    with pytest.raises(ModelError, match="in the forward"):
        layerscope.summary(Module(raising), (3, 8), verbose=0)
    assert state()[:3] == before[:3]
    assert state()[-1] == before[-1]
    torch.autocast_decrement_nesting()


def test_other_threads_have_an_autocast_of_their_own() -> None:
    seen: list[Any] = []

    def forward(x: Any) -> Any:
        def elsewhere() -> None:
            linear = nn.Linear(8, 8)
            seen.append(linear(torch.randn(3, 8)).dtype)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                seen.append(torch.is_autocast_enabled("cpu"))
                seen.append(linear(torch.randn(3, 8)).dtype)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert torch.is_autocast_enabled("cpu")
        return x @ x.t()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        layerscope.summary(Module(forward), (3, 8), verbose=0)
    assert seen == [torch.float32, True, torch.bfloat16]
