"""Models that read values: masks that are followed, and forwards that are run with real numbers.

The reference is PyTorch: the decision that eager code takes, FlopCounterMode's count of the same
forward where it runs one, and sizes worked out by hand where it does not.
"""

from __future__ import annotations

import copy
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import layerscope
from layerscope.errors import ModelError
from layerscope.formats.torch.capture import capture
from tests.formats.torch.torch_nets import Doing, f, nn, on, torch

rnn: Any = torch.nn.utils.rnn
FlopCounterMode: Any = importlib.import_module("torch.utils.flop_counter").FlopCounterMode
pytestmark = pytest.mark.filterwarnings("ignore")
ROWS, WIDTH = 2, 4
LINEAR = ROWS * WIDTH * WIDTH  # MACs of one call of the layer of every model here


class Model(nn.Module):  # type: ignore[misc]
    def __init__(self, forward: Callable[..., Any], **modules: Any) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)
        for name, module in modules.items():
            self.add_module(name, module)
        self.call = forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(self, *args, **kwargs)


def macs_of(model: Any, *args: Any) -> int:
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        copy.deepcopy(model)(*args)
    return int(counter.get_total_flops()) // 2


# Masks

MASKS = {
    "ones": torch.ones(2, 6, dtype=torch.int64),
    "padded": torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]]),
    "zeros": torch.zeros(2, 6, dtype=torch.int64),
}
CHAINS: dict[str, Callable[[Any], Any]] = {
    "to device dtype": lambda m: m.to(device=m.device, dtype=torch.bool),
    "to device": lambda m: m.to(m.device).bool(),
    "to device dtype by place": lambda m: m.to(m.device, torch.float32) > 0,
    "to dtype copy": lambda m: m.to(torch.float16, copy=True) != 0,
    "to other": lambda m: m.to(torch.zeros(1, dtype=torch.bool, device=m.device)),
    "type": lambda m: m.type(torch.bool),
    "type_as": lambda m: m.type_as(torch.ones(1, device=m.device)) == 1,
    "masked_fill": lambda m: m.float().masked_fill(m == 0, -1.0) > 0,
    "where": lambda m: torch.where(m > 0, 1, 0) == 1,
    "causal": lambda m: (
        m[:, None, :].bool() & torch.ones(6, 6, dtype=torch.bool, device=m.device).tril()
    ),
    "arange": lambda m: torch.arange(6, device=m.device)[None] < m.sum(-1, keepdim=True),
    "cumsum": lambda m: (m.cumsum(-1) - 1).clamp(min=0) < 3,
    "pad": lambda m: f.pad(m, (0, 2), value=1).bool(),
    "min of floats": lambda m: (1.0 - m[:, None, None, :].float()) * torch.finfo().min >= 0,
    "in place": lambda m: m.clone().masked_fill_(m == 0, 5) == 1,
    "slice written": lambda m: _written(m),
    "before a write": lambda m: _before(m),
    "outer": lambda m: m[:, :, None] * m[:, None, :] == 1,
    "index": lambda m: m[:, torch.arange(6, device=m.device)].bool(),
    "boolean index": lambda m: m[m > 0] > 0,
    "nonzero": lambda m: m.nonzero() >= 0,
    "unique": lambda m: torch.unique(m) > 0,
    "repeat": lambda m: torch.repeat_interleave(torch.arange(2, device=m.device), m.sum(-1)) > -1,
    "literal": lambda m: m >= torch.tensor([1, 1, 1, 1, 0, 0], device=m.device),
}


def _written(mask: Any) -> Any:
    made = torch.zeros(2, 6, device=mask.device)
    view = made[:, 2:]
    made[:, :2] = 1
    view += mask[:, 2:]
    return made == 1


def _before(mask: Any) -> Any:
    made = mask.clone()
    ones = made * 1  # keeps the values that it had
    made[:] = 7
    return (ones == mask) & (made == 7)


READS: dict[str, Callable[[Any], Any]] = {
    "all": lambda m: bool(m.all()),
    "torch.all": lambda m: bool(torch.all(m)),
    "any": lambda m: m.any().item(),
    "sum": lambda m: bool(m.sum() == m.numel()),
    "equal": lambda m: torch.equal(m, torch.ones_like(m)),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_values_of_masks_are_followed(device: str, chain: str, read: str) -> None:
    """The branch that PyTorch takes, on a model of any device, and nothing is computed for real."""

    def forward(self: Any, x: Any, mask: Any) -> Any:
        return self.linear(x) if READS[read](CHAINS[chain](mask)) else x.relu()

    for mask in MASKS.values():
        taken = READS[read](CHAINS[chain](mask))
        model = on(device, lambda: Model(forward)).eval()
        x = torch.zeros(ROWS, WIDTH, device=device)
        report = layerscope.summary(model, input_data=(x, mask), real=False, verbose=0)
        assert report.total_macs == (LINEAR if taken else 0)
        assert not [note for note in report.graph.notes if "number" in note or "zeros" in note]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_decision_by_an_input_without_values_is_noted(device: str) -> None:
    def forward(self: Any, x: Any, mask: Any) -> Any:
        return x.relu() if mask.to(device=mask.device, dtype=torch.bool).all() else self.linear(x)

    model = on(device, lambda: Model(forward)).eval()
    sizes = {"x": (ROWS, WIDTH), "mask": (1, 6)}
    report = layerscope.summary(model, input_size=sizes, real=False, verbose=0)
    assert report.total_macs == LINEAR
    [note] = [note for note in report.graph.notes if note.startswith("mask")]
    assert "taken as zeros" in note
    assert "aten.is_nonzero" in note


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", ["attention_mask", "decoder_attention_mask", "key_padding_mask"])
def test_an_attention_mask_without_values_has_no_padding(name: str, device: str) -> None:
    """Ones are tokens in an `attention_mask`, and padding in a `key_padding_mask`."""

    def forward(self: Any, x: Any, **masks: Any) -> Any:
        [mask] = masks.values()
        return x.relu() if mask.bool().all() else self.linear(x)

    model = on(device, lambda: Model(forward)).eval()
    sizes = {"x": (ROWS, WIDTH), name: (1, 6)}
    report = layerscope.summary(model, input_size=sizes, real=False, verbose=0)
    is_attention = name != "key_padding_mask"
    assert report.total_macs == (0 if is_attention else LINEAR)
    [note] = [note for note in report.graph.notes if note.startswith(name)]
    assert f"taken as {'ones' if is_attention else 'zeros'}" in note


@pytest.mark.parametrize(
    ("forward", "operator"),
    [
        (lambda self, x, mask: self.linear(x)[: int(mask.sum())], "aten.item"),
        (lambda self, x, mask: self.linear(x)[mask.bool()], "aten.index"),
        (lambda self, x, mask: self.linear(x)[mask.nonzero()[:, 0]], "aten.nonzero"),
    ],
)
def test_sizes_are_not_taken_from_an_input_without_values(forward: Any, operator: str) -> None:
    model = on("meta", lambda: Model(forward)).eval()
    sizes = {"x": (ROWS, WIDTH), "mask": (ROWS,)}
    with pytest.raises(ModelError, match=rf"{operator} .* mask, an input given without values"):
        layerscope.summary(model, input_size=sizes, verbose=0)


@pytest.mark.parametrize("way", ["except Exception", "except BaseException"])
def test_an_error_of_ours_that_the_model_catches_is_no_answer(way: str) -> None:
    caught = Exception if way == "except Exception" else BaseException

    def forward(self: Any, x: Any) -> Any:
        try:
            count = int(self.linear(x).sum().item() * 0) + 1
        except caught:
            count = 0
        return self.linear(x) if count else x

    report = layerscope.summary(Model(forward).eval(), (ROWS, WIDTH), verbose=0)
    assert report.total_macs == 2 * LINEAR
    with pytest.raises(ModelError, match=r"aten\.item"):
        layerscope.summary(on("meta", lambda: Model(forward)).eval(), (ROWS, WIDTH), verbose=0)


# Forwards that need numbers


@torch.library.custom_op("layerscope_tests::twice_without_fake", mutates_args=())  # type: ignore[untyped-decorator]
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def tolist(self: Any, x: Any) -> Any:
    return self.linear(x)[: len(self.linear(x).sum(1).tolist())]


def to_numpy(self: Any, x: Any) -> Any:
    return self.linear(torch.from_numpy(self.linear(x).detach().numpy() * 2))


def loop(self: Any, x: Any) -> Any:
    y, count = self.linear(x), 0
    while y.abs().max() > 1e-3 and count < 4:
        y, count = self.linear(y) * 0.1, count + 1
    return y


def repeated(self: Any, x: Any) -> Any:
    y = self.linear(x)
    return self.linear(torch.repeat_interleave(y, (y.sum(1) > -1e9).long() + 1, dim=0))


def chosen(self: Any, x: Any) -> Any:
    y = self.linear(x)
    return self.linear(y[y[:, 0] > -1e9])


READ_LENGTHS: dict[str, Any] = {
    "tolist": lambda lengths: max(lengths.tolist()),
    "numpy": lambda lengths: lengths.detach().cpu().numpy().max(),
    "array": lambda lengths: (lengths // 2).__array__().sum(),
    "after a write": lambda lengths: max(lengths.clone().mul_(2).tolist()) // 2,
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", READ_LENGTHS)
def test_lists_and_arrays_of_known_values(name: str, device: str) -> None:
    """Lengths given on the CPU, as for packed sequences, are read without a run for real."""
    model = Model(lambda self, x, n: self.linear(x[: READ_LENGTHS[name](n)])).to(device)
    lengths = torch.tensor([1, 3, 2])
    x = torch.zeros(5, WIDTH, device=device)
    report = layerscope.summary(model, input_data=(x, lengths), verbose=0)
    assert report.total_macs == READ_LENGTHS[name](lengths) * WIDTH * WIDTH
    assert not any(note.startswith("computed") for note in report.graph.notes)


def test_a_list_of_an_input_without_values_is_refused() -> None:
    model = Model(lambda self, x, n: self.linear(x[: max(n.tolist())])).to("meta")
    given = (torch.zeros(ROWS, WIDTH, device="meta"), torch.zeros(2, device="meta").long())
    with pytest.raises(ModelError, match=r"Tensor\.tolist"):
        layerscope.summary(model, input_data=given, verbose=0)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_transformer_encoder_counts_padded_tokens(device: str) -> None:
    """The encoder asks for the values of its mask, to drop the tokens at the end."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).eval().to(device)
    x = torch.zeros(2, 3, 8, device=device)
    mask = torch.tensor([[False, False, True], [False, False, False]], device=device)
    report = layerscope.summary(model, input_data=x, src_key_padding_mask=mask, verbose=0)
    assert report.total_macs == layerscope.summary(model, input_data=x, verbose=0).total_macs
    assert not report.coverage.unknown
    assert not report.graph.notes


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_where_takes_masks_of_bytes(device: str) -> None:
    """The kernel on the CPU takes them, the one on meta does not."""
    model = Model(lambda self, x, m: self.linear(torch.where(m, x, -x))).to(device)
    given = (torch.zeros(ROWS, WIDTH), torch.ones(ROWS, WIDTH, dtype=torch.uint8))
    data = tuple(each.to(device) for each in given)
    report = layerscope.summary(model, input_data=data, verbose=0)
    assert "where" in [layer.op for layer in report.layers]


def test_embeddings_with_a_largest_norm() -> None:
    model = nn.Embedding(10, 4, max_norm=1.0)
    before = model.weight.detach().clone()
    report = layerscope.summary(model, input_data=torch.zeros(3, dtype=torch.long), verbose=0)
    ops = [layer.op for layer in report.layers]
    assert "reduce_l2" in ops
    assert ops[-1] == "embedding"
    assert not report.coverage.unknown
    assert torch.equal(model.weight, before)


@pytest.fixture
def legacy_executor() -> Iterator[None]:
    """TorchScript's executor before profiles, which some packages choose for the whole process."""
    chosen = torch._C._jit_set_profiling_executor(False), torch._C._jit_set_profiling_mode(False)
    fuses = torch._C._jit_can_fuse_on_cpu()
    torch._C._jit_override_can_fuse_on_cpu(True)
    yield
    torch._C._jit_set_profiling_executor(chosen[0])
    torch._C._jit_set_profiling_mode(chosen[1])
    torch._C._jit_override_can_fuse_on_cpu(fuses)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("legacy_executor")
def test_scripts_that_the_fuser_refuses_on_meta() -> None:
    swish = torch.jit.CompilationUnit("def swish(x):\n    return x * torch.sigmoid(x)\n").swish
    model = Model(lambda self, x: self.linear(swish(self.linear(x))))
    report = layerscope.summary(model, input_data=torch.zeros(ROWS, WIDTH), verbose=0)
    assert report.total_macs == 2 * LINEAR
    assert [layer.op for layer in report.layers][:3] == ["linear", "sigmoid", "mul"]
    model(torch.zeros(ROWS, WIDTH))


REAL: dict[str, tuple[Any, str, int]] = {
    "tolist": (tolist, "Tensor.tolist", 2 * LINEAR),
    "numpy": (to_numpy, "Tensor.numpy", 2 * LINEAR),
    "item": (lambda s, x: s.linear(x)[: int(s.linear(x).sum().item() * 0) + 1], "aten.item",
             2 * LINEAR),
    "format": (lambda s, x: (s.linear(x), f"{s.linear(x).mean():.2f}")[0], "Tensor.__format__",
               2 * LINEAR),
    "loop": (loop, "aten.is_nonzero reads the result of aten.gt", 0),
    "repeat_interleave": (repeated, "aten.repeat_interleave", 3 * LINEAR),
    "boolean index": (chosen, "aten.index", 2 * LINEAR),
    "custom operator": (lambda s, x: s.linear(twice(s.linear(x))), "twice_without_fake",
                        2 * LINEAR),
    "sparse rows": (lambda s, x: torch.eye(ROWS).to_sparse_csr() @ s.linear(x), "sparse", LINEAR),
    "made sparse": (lambda s, x: s.linear(x).to_sparse().to_dense(), "aten._to_sparse", LINEAR),
    "cond": (lambda s, x: torch.cond(s.linear(x).sum() > -1e9, s.linear, lambda y: y + 1, (x,)),
             "aten.is_nonzero", 2 * LINEAR),
}  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", REAL)
def test_what_needs_numbers_is_run_for_real(name: str, training: bool) -> None:
    """On a copy of the inputs; the note names who asked, and the model is as it was."""
    forward, operator, count = REAL[name]
    model = Model(lambda self, x: self.norm(forward(self, x))).train(training)
    x = torch.randn(ROWS, WIDTH)
    if name in ("item",):
        model.eval()  # a single row has no variance
    arrays = {
        key: (id(v), v.clone(), v._version) for key, v in model.state_dict(keep_vars=True).items()
    }
    modes, given = [m.training for m in model.modules()], (x.clone(), x._version)
    report = layerscope.summary(model, input_data=x, verbose=0)
    [note] = [note for note in report.graph.notes if note.startswith("computed with real numbers")]
    assert operator in note
    if name in ("sparse rows", "cond"):  # its count of rows is dense; it runs no torch.cond
        assert report.total_macs == count
    else:
        assert report.total_macs == macs_of(model, x)
        assert count in (0, report.total_macs)
    assert report.total_params == sum(p.numel() for p in model.parameters())
    for key, value in model.state_dict(keep_vars=True).items():
        same, before, _ = arrays[key]
        assert id(value) == same
        assert torch.equal(value, before)
    assert [m.training for m in model.modules()] == modes
    assert torch.equal(x, given[0])
    assert x._version == given[1]
    with pytest.raises(ModelError, match="real=False"):
        layerscope.summary(model, input_data=x, real=False, verbose=0)
    with pytest.raises(ModelError, match=r"numbers \(.*meta device has none of"):
        layerscope.summary(copy.deepcopy(model).to("meta"), input_data=x.to("meta"), verbose=0)


def test_sparse_products_are_unknown_by_name() -> None:
    model = Model(lambda self, x, a: a @ self.linear(x)).eval()
    x, a = torch.randn(ROWS, WIDTH), torch.eye(ROWS).to_sparse_csr()
    report = layerscope.summary(model, input_data=(x, a), verbose=0)
    assert [layer.op for layer in report.layers if layer.status == "unknown"] == ["aten.mm"]
    assert "sparse layout" in report.graph.notes[-1]


def packed(batch_first: bool, kind: Any, **options: Any) -> tuple[Any, Any]:
    def forward(self: Any, x: Any, lengths: Any) -> Any:
        row = rnn.pack_padded_sequence(x, lengths.cpu(), batch_first, enforce_sorted=False)
        return rnn.pad_packed_sequence(self.rnn(row)[0], batch_first)[0]

    shape = (2, 3, WIDTH) if batch_first else (3, 2, WIDTH)
    return Model(forward, rnn=kind(WIDTH, 3, batch_first=batch_first, **options)).eval(), shape


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2}])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_packed_sequences(device: str, options: dict[str, Any], kind: str) -> None:
    """Known lengths are followed, in the forward and as an input."""
    layer = getattr(nn, kind)
    model, shape = packed(True, layer, **options)
    x, lengths = torch.randn(shape), torch.tensor([2, 3])
    count = macs_of(model, x, lengths)
    rows = rnn.pack_sequence([torch.randn(2, WIDTH), torch.randn(3, WIDTH)], enforce_sorted=False)
    other = Model(lambda self, row: self.rnn(row)[0].data, rnn=layer(WIDTH, 3, **options)).eval()
    assert macs_of(other, rows) == count
    for each, given in ((model, (x, lengths)), (other, (rows,))):
        report = layerscope.summary(each.to(device), input_data=given, real=False, verbose=0)
        assert report.total_macs == count
        assert not report.coverage.unknown
        assert rows.batch_sizes.tolist() == [2, 2, 1]


class Lazy(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.known = nn.Linear(4, 4)
        self.first, self.conv, self.norm = (
            nn.LazyLinear(5),
            nn.LazyConv1d(6, 3),
            nn.LazyBatchNorm1d(),
        )

    def forward(self, x: Any) -> Any:
        return self.norm(self.conv(self.first(self.known(x))))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_lazy_modules_are_initialized_on_a_copy(device: str) -> None:
    model, x = on(device, Lazy), torch.zeros(2, 3, 4)
    state = torch.get_rng_state()
    before = {name: id(array) for name, array in model.named_parameters()}
    report = layerscope.summary(model, input_size=(2, 3, 4), verbose=0)
    assert report.total_macs == 2 * 3 * 4 * 4 + 2 * 3 * 4 * 5 + 2 * 6 * 3 * 3 * 3
    assert report.total_params == 4 * 4 + 4 + 4 * 5 + 5 + 6 * 3 * 3 + 6 + 2 * 6
    assert "initialized on a copy" in " ".join(report.graph.notes)
    assert {name: id(array) for name, array in model.named_parameters()} == before
    assert isinstance(model.first.weight, nn.parameter.UninitializedParameter)
    assert type(model.first) is nn.LazyLinear
    assert torch.equal(torch.get_rng_state(), state), threading.enumerate()
    model(x.to(device))
    assert report.total_params == sum(p.numel() for p in model.parameters())


def forces(self: Any, x: Any) -> Any:
    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        (force,) = torch.autograd.grad(self.linear(x).pow(2).sum(), x)
    return self.linear(force)


def trained(self: Any, x: Any) -> Any:
    with torch.enable_grad():
        self.linear(x).sum().backward()
    return self.linear(x)


@pytest.mark.parametrize("forward", [forces, trained])
def test_gradients_inside_a_forward(forward: Any) -> None:
    """Forward, one product of the backward pass, and the layer once more."""
    model = Model(forward).eval()
    model.linear.weight.grad = kept = torch.ones(WIDTH, WIDTH)
    report = layerscope.summary(model, input_data=torch.randn(ROWS, WIDTH), verbose=0)
    assert report.total_macs == 3 * LINEAR
    assert not report.coverage.unknown
    assert model.linear.weight.grad is kept
    assert torch.equal(kept, torch.ones(WIDTH, WIDTH))
    assert model.linear.bias.grad is None


def higher_order(name: str) -> Any:
    return importlib.import_module(f"torch._higher_order_ops.{name}")


def while_loop(self: Any, x: Any) -> Any:
    count = torch.tensor(0, device=x.device)
    return higher_order("while_loop").while_loop(
        lambda n, y: n < 3, lambda n, y: (n + 1, y @ self.square), (count, x)
    )[1]


def scan(self: Any, x: Any) -> Any:
    carry = torch.zeros(1, WIDTH, device=x.device)
    return higher_order("scan").scan(
        lambda c, row: ((c + row) @ self.square, c * row), carry, x[:, None]
    )[1]


def mapped(self: Any, x: Any) -> Any:
    return higher_order("map").map(lambda row: row[None] @ self.square, x)


@pytest.mark.parametrize(
    ("forward", "count"),
    [
        (lambda s, x: torch.cond(torch.tensor(len(x) == ROWS), s.linear, torch.relu, (x,)), LINEAR),
        (lambda s, x: torch.cond(torch.tensor(len(x) > ROWS), s.linear, torch.relu, (x,)), 0),
        (while_loop, 3 * LINEAR), (scan, LINEAR), (mapped, LINEAR),
    ],
    ids=["true", "false", "while_loop", "scan", "map"],
)  # fmt: skip
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_higher_order_operators_are_followed(device: str, forward: Any, count: int) -> None:
    pytest.importorskip("torch._higher_order_ops.scan", reason="an older PyTorch")
    model = on(device, lambda: Model(forward)).eval()
    model.register_buffer("square", torch.ones(WIDTH, WIDTH, device=device))
    report = layerscope.summary(model, (ROWS, WIDTH), real=False, verbose=0)
    assert report.total_macs == count
    assert not report.coverage.unknown


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
@pytest.mark.parametrize(
    "shape", [(4, 4), (1, 1, 4, 4), (1, 2, 1, 4), (5, 4), (2, 2, 4, 3), (1, 3, 4, 4)]
)
def test_masks_of_attention_are_refused_where_pytorch_refuses_them(shape: Any, kind: Any) -> None:
    q, mask = torch.zeros(1, 2, 4, 8), torch.ones(shape, dtype=kind)
    model = Doing(lambda q, mask: f.scaled_dot_product_attention(q, q, q, mask))
    try:
        model(q, mask)
    except RuntimeError:
        with pytest.raises(ModelError):
            layerscope.summary(model, input_data=(q, mask), verbose=0)
    else:
        assert (
            layerscope.summary(model, input_data=(q, mask), verbose=0).total_macs
            == 2 * 2 * 4 * 4 * 8
        )


# Tensors without elements

EMPTY: dict[str, Callable[[Any], Any]] = {
    "iterated": lambda x: [row.relu() for row in x[:0]],
    "unbind": lambda x: x[:0].unbind(),
    "split": lambda x: x[:0].split(2),
    "chunk": lambda x: x[:0].chunk(2),
    "index": lambda x: x[torch.zeros(0, dtype=torch.int64, device=x.device)],
    "boolean index": lambda x: x[torch.zeros(len(x), dtype=torch.bool, device=x.device)],
    "nonzero": lambda x: torch.zeros(3, device=x.device).nonzero(),
    "cat": lambda x: torch.cat([x[:0], x]),
    "stack": lambda x: torch.stack([x[:0], x[:0]]),
    "reshape": lambda x: x[:0].reshape(0, 2, 2).flatten(1).t().contiguous(),
    "sum": lambda x: (x[:0].sum(), x[:0].sum(1), x[:, :0].mean(0)),
    "linear": lambda x: f.linear(x[:0], x),
    "matmul": lambda x: x[:, :0] @ x[:, :0].t(),
    "conv": lambda x: f.conv1d(x[:0, None], torch.ones(3, 1, 2, device=x.device)),
    "softmax": lambda x: x[:0].softmax(-1),
    "written": lambda x: x[:0].clone().add_(1).mul_(x[:0]),
    "copied into": lambda x: x.clone()[:0].copy_(x[:0]),
    "read": lambda x: x.relu() if (x[:0] > 0).any() else x.sigmoid(),
    "listed": lambda x: torch.zeros(0, device=x.device).tolist(),
    "permuted": lambda x: x[:0].permute(1, 0).expand(WIDTH, 0)[None].squeeze(0),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tensors_without_elements(device: str, name: str) -> None:
    """What PyTorch runs is followed, with no work on nothing."""

    def forward(self: Any, x: Any) -> Any:
        EMPTY[name](x)
        return self.linear(x)

    if name == "listed" and device == "meta":
        pytest.skip("PyTorch makes no list of a tensor on the meta device")
    model = on(device, lambda: Model(forward)).eval()
    real = Model(forward).eval()
    report = layerscope.summary(model, (ROWS, WIDTH), verbose=0)
    assert report.total_macs == macs_of(real, torch.zeros(ROWS, WIDTH))


def test_real_is_an_option_everywhere() -> None:
    model, x = Model(tolist).eval(), torch.zeros(ROWS, WIDTH)
    assert layerscope.profile(model, (x,))[0] == 2 * LINEAR
    with pytest.raises(ModelError, match="real=False"):
        layerscope.profile(model, (x,), real=False)
    with pytest.raises(ModelError, match="real=False"):
        layerscope.analyze(model, input_data=x, real=False)
    with pytest.raises(ModelError, match="real=False"):
        capture(model, (x,), real=False)


class AutocastOfItsInput(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        with torch.autocast(x.device.type, enabled=False):
            return self.linear(x) @ x.transpose(-1, -2)


def test_autocast_of_the_device_of_a_tensor_is_run_for_real() -> None:
    """PyTorch has no autocast for the meta device, which tensors of a capture are on."""
    report = layerscope.summary(AutocastOfItsInput(), (2, 4), verbose=0)
    assert report.total_macs == 2 * 4 * 4 + 2 * 4 * 2
    [note] = report.graph.notes
    assert note.startswith("computed with real numbers: torch.autocast of the device of a tensor")


@pytest.mark.parametrize(
    "call",
    [
        lambda i, x: torch.einsum("i,j->ij", i, x),
        lambda i, x: torch.einsum("i,jk->ijk", i, x.reshape(-1, 1)),
        lambda i, x: torch.outer(i, x),
        lambda i, x: torch.ger(i, x),
    ],
)
def test_products_of_several_dtypes_without_a_sum(call: Any) -> None:
    """PyTorch multiplies element by element, and casts; with a sum it refuses."""
    net = Doing(lambda x: call(torch.arange(3, device=x.device), x))
    x = torch.rand(5)
    report = layerscope.summary(net, input_data=x, verbose=0)
    assert report.layers[-1].output == tuple(net(x).shape)
    assert report.layers[-1].node.op == "mul"
    assert not report.coverage.unknown
    with pytest.raises(RuntimeError):
        layerscope.summary(
            Doing(lambda x: torch.einsum("i,i->", torch.arange(5, device=x.device), x)),
            input_data=x,
            verbose=0,
        )


@pytest.mark.parametrize(
    "made",
    [
        lambda mask: torch.ones(2, 3).to(mask.device),
        lambda mask: torch.ones(2, 3, dtype=torch.int64).to(mask.device),
        lambda mask: torch.tensor([[1, 0, 1]] * 2).to(mask),
        lambda mask: torch.arange(6).view(2, 3).to(device=mask.device, dtype=torch.bool),
        lambda mask: torch.ones(2, 3).bool().to(mask.device, non_blocking=True),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_constants_of_the_processor_keep_their_values_on_another_device(
    made: Any, device: str
) -> None:
    """As prompt tuning has it: ones on the processor, moved to the device of a mask."""
    mask = torch.ones(2, 5, dtype=torch.int64, device=device)
    expected = [bool(each) for each in made(torch.ones(2, 5, dtype=torch.int64)).flatten()]
    seen: list[Any] = []

    def forward(x: Any, mask: Any) -> Any:
        seen.append([bool(each) for each in made(mask).flatten()])
        return x * 2

    x = torch.empty(2, 4, device=device)
    layerscope.summary(Doing(forward), input_data=[x, mask], real=False, verbose=0)
    assert seen[-1] == expected
