"""Bytes of tensors that PyTorch's autograd saves for the backward pass, node by node.

Each storage is counted once, at the first node that saves it. Parameters and buffers are not
counted here. Where a figure may differ from autograd's, a note says for which layers and why.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from layerscope.analysis.costs import Cost, storage_of
from layerscope.analysis.shapes import Shapes, Tensors
from layerscope.analysis.storage import Storages, operator, written
from layerscope.graph.types import Autograd, Graph, Node, Tensor, elements, storage_bytes
from layerscope.ops import SPECS, Call, OpSpec
from layerscope.ops.autograd import NOTHING, WEIGHT, Saved, nothing
from layerscope.ops.saved_by_operator import BY_OPERATOR, COMPOSED, NLL

INEXACT = ("fp", "bf", "complex")  # dtypes that have gradients
NAMED = 3  # layers named in a note
EVAL = "captured in eval mode: dropout and batch norm are counted as in training"
FILE = "read from an exported program, which does not show copies made by contiguous()"
WORKSPACE = "with oneDNN an LSTM keeps a workspace whose size oneDNN chooses"
FUNCTION = "runs in an autograd.Function, which keeps what it chooses; its inputs are counted"
HOOKS = "runs under saved_tensors_hooks, as in a checkpoint; its inputs are counted"
FILLED = "an operand was filled in place; whether it has a gradient is not known"
UNKNOWN_COPY = "whether an operand is copied is not known"
HALF = "checked against autograd in fp32 alone"
# Op families and ops whose rules are compared with autograd in
# tests/analysis/test_torch_training_ops.py.
CHECKED_FAMILIES = frozenset((
    "activation", "elementwise", "linear", "convolution", "pooling", "normalization", "softmax",
    "shaping", "reduction", "recurrent", "attention", "indexing", "resizing", "control",
))  # fmt: skip
CHECKED = frozenset(("softmax_loss", "nll_loss", "mse_loss", "l1_loss", "cast", "fft"))
UNCHECKED = frozenset((
    "deform_conv", "det", "power", "axpy", "mean", "rotary", "custom", "select",
    "reverse_sequence", "crop", "interp",
    "global_lp_pool", "stochastic_pool", "pyramid_max_pool", "pyramid_avg_pool",
    "pyramid_stochastic_pool", "global_stochastic_pool", "unique", "non_zero",
    "caffe_lstm", "caffe_rnn", "quick_gelu", "thresholded_relu", "reduce_log_sum",
    "reduce_sum_square", "l2_norm",
))  # fmt: skip

# Operators that are converted and that no test compares with autograd.
UNCHECKED_OPERATORS = frozenset((
    "_grouped_mm", "grouped_mm", "_native_multi_head_attention", "roi_align", "histc",
    "cosine_similarity", "_ctc_loss", "_embedding_bag", "_embedding_bag_forward_only",
    "_native_batch_norm_legit_no_training", "_scaled_mm", "angle", "cholesky_inverse",
    "cholesky_solve", "det", "_linalg_det", "dist", "log_sigmoid_forward", "embedding_bag",
    "fractional_max_pool2d",
    "fractional_max_pool3d", "frexp", "linalg_det", "linalg_ldl_solve", "linalg_lu_solve",
    "linalg_pinv", "lu_unpack", "multilabel_margin_loss_forward", "native_batch_norm",
    "nextafter", "ormqr", "special_airy_ai", "special_bessel_j0", "special_bessel_j1",
    "special_bessel_y0", "special_bessel_y1", "special_modified_bessel_i0",
    "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    "special_spherical_bessel_j0", "triangular_solve", "unfold_backward", "rrelu.drawn",
    "binary_cross_entropy_with_logits.weight", *(f"{name}.weight" for name in NLL),
    "avg_pool2d_backward", "avg_pool3d_backward", "_adaptive_avg_pool2d_backward",
    "_adaptive_avg_pool3d_backward", "upsample_nearest1d_backward", "upsample_nearest2d_backward",
    "upsample_nearest3d_backward", "upsample_linear1d_backward", "upsample_bilinear2d_backward",
    "upsample_trilinear3d_backward", "upsample_bicubic2d_backward",
))  # fmt: skip

Status = Literal["exact", "estimate"]


class Kept(Struct, frozen=True):
    """Bytes saved for the backward pass; `by_node` has the storages each node is first to save."""

    by_node: dict[str, int]
    total_bytes: int
    input_bytes: int  # of the network's inputs, which the total includes
    complete: bool  # False if a layer is unknown
    status: Status = "exact"
    notes: tuple[str, ...] = ()  # why it is an estimate, and of which layers


class _SavedTensors:
    """State of one walk through a graph in execution order."""

    def __init__(self, graph: Graph, shapes: Shapes, costs: dict[str, Cost]) -> None:
        self.graph, self.shapes, self.costs = graph, shapes, costs
        self.storages = Storages(graph)
        self.needs = {
            param.name for param in graph.params
            if param.learnable and (param.storage or param.name) not in graph.frozen
        }  # fmt: skip
        self.holding: set[str] = set()
        self.filled: set[str] = set()  # tensors filled in place, and tensors computed from them
        self.producers: dict[str, Node] = {}
        self.reasons: dict[str, list[str]] = {}
        self.complete = True
        # what a capture recorded; without one, nothing runs outside autograd
        recorded = Autograd(training=True) if graph.autograd is None else graph.autograd
        self.onednn = recorded.onednn
        self.no_grad, self.detached = recorded.no_grad, recorded.detached
        self.opaque = dict.fromkeys(recorded.custom, FUNCTION)
        self.opaque |= dict.fromkeys(recorded.hooked, HOOKS)
        self.needs.update(recorded.inputs)

    def note(self, reason: str, node: Node) -> None:
        self.reasons.setdefault(reason, []).append(node.name)

    def add(self, node: Node) -> int:
        """Bytes of the storages that a node is the first to save."""
        shapes = self.shapes
        call = shapes.calls.get(node.name)
        given, outputs = shapes.ends[node.name]
        if call is not None and node.op == "attention" and self._unfused(call, given):
            node = replace(node, attributes=replace(node.attributes, fused=False))
            call = replace(call, attributes=node.attributes)
        self.storages.add(node, call, given, outputs)
        for tensor in outputs:
            self.producers[tensor.name] = node
        learned = self._learned(node)
        if node.name in self.no_grad or not any(t.dtype.startswith(INEXACT) for t in outputs):
            return 0
        if not learned and not any(name in self.needs for name in node.inputs):
            self._follow_filled(node, call, outputs)
            return 0
        if not self.detached.isdisjoint(node.inputs):
            self.note("an input is detached in some uses, which is not followed", node)
        self.needs.update([tensor.name for tensor in outputs if tensor.dtype.startswith(INEXACT)])
        if node.name in self.opaque:
            return self._opaque(node)
        if node.op == "identity" and self._drops_rows(node):
            self.note("the factors that stochastic depth draws are not counted", node)
        rule = SPECS.get(node.op)
        if call is None or rule is None:
            self.complete = False
            self.note("what an unknown layer keeps is not counted", node)
            return 0
        self._note_unchecked(node, rule)
        default = nothing if operator(node) in COMPOSED else rule.saved_for_backward
        saves = BY_OPERATOR.get((operator(node), node.op), default)
        return self._saved_bytes(node, saves(call), learned)

    def _note_unchecked(self, node: Node, rule: OpSpec) -> None:
        """Note a node whose rule is not compared with autograd, or differs by its kernel."""
        if node.op in UNCHECKED or (rule.family not in CHECKED_FAMILIES and node.op not in CHECKED):
            self.note(f"{node.op}: not compared with autograd", node)
        if node.op == "lstm" and not node.attributes.projection and self.onednn:
            self.note(WORKSPACE, node)
        if operator(node).endswith("_cell") and node.op in ("lstm", "gru", "rnn"):
            self.note("first states are counted as tensors of their own", node)
        if operator(node) in UNCHECKED_OPERATORS:
            self.note(f"{operator(node)}: not compared with autograd", node)

    def _unfused(self, call: Call, given: Tensors) -> bool:
        """Whether PyTorch runs attention by single operators: strided features, a learned mask."""
        if len(call.x) != 4 or not call.attributes.fused:
            return False
        learned = len(given) > 3 and given[3].name in self.needs
        return learned or self.storages.features_apart(given)

    def _opaque(self, node: Node) -> int:
        """Bytes saved by code that chooses what it saves: its inputs, as most save these."""
        self.note(self.opaque[node.name], node)
        inner = [name for name in node.inputs if name in self.producers]
        inside = {name for name in inner if self.producers[name].name in self.opaque}
        wanted = [name for name in node.inputs if name in self.needs and name not in inside]
        return sum(map(self._hold_storage, wanted))

    def _drops_rows(self, node: Node) -> bool:
        """Whether a node that does nothing at inference stands for stochastic depth."""
        printed = self.graph.modules.get(node.module, "")
        return printed.startswith("StochasticDepth(") and "(p=0.0," not in printed

    def _learned(self, node: Node) -> set[str]:
        """Names of the node's own arrays that have a gradient."""
        frozen = self.graph.frozen
        found = set()
        for param in self.costs[node.name].params:
            own = param.learnable and param.name not in node.inputs
            if own and not (frozen and storage_of(node, param, node.ties) in frozen):
                found.add(param.name)
        return found

    def _saved_bytes(self, node: Node, saved: Saved, learned: set[str]) -> int:
        given, outputs = self.shapes.ends[node.name]
        if saved.note:
            self.note(saved.note, node)
        wanted = set(saved.inputs)
        for kept, of in saved.crossed:
            if of == WEIGHT:
                if any(name.startswith("weight") for name in learned):
                    wanted.add(kept)
            elif given[of].name in self.needs:
                wanted.add(kept)
            elif given[of].name in self.filled:
                self.note(FILLED, node)
        folds = {fold.input: fold for fold in saved.folds}
        copies = dict(saved.contiguous)
        total = 0
        for n in sorted(wanted):
            tensor, fold = given[n], folds.get(n)
            if n == 3 and node.op == "attention" and tensor.dtype == "bool":
                total += storage_bytes(elements(tensor.shape or ()), outputs[0].dtype)
                continue
            if fold is not None:
                copied, certain = self.storages.folded(tensor, fold)
                if not certain:
                    self.note(UNKNOWN_COPY, node)
                if copied:
                    total += fold.copies * storage_bytes(elements(fold.flat), tensor.dtype)
                    continue
            if n in copies and not self.storages.is_contiguous(tensor, copies[n]):
                total += tensor.bytes
                continue
            if n == written(node):
                total += tensor.bytes  # a copy of the input, which is overwritten
                continue
            if tensor.name in self.storages.guessed:
                self.note(UNKNOWN_COPY, node)
            total += sum(map(self._hold_storage, self._read(tensor)))
        total += sum([self._hold_storage(outputs[n].name) for n in saved.outputs])
        return total + sum([storage_bytes(n, kind or outputs[0].dtype) for n, kind in saved.extra])

    def _follow_filled(self, node: Node, call: Call | None, outputs: Tensors) -> None:
        """Mark tensors filled in place: whether they have a gradient is not in the graph."""
        starts = node.op == "constant" and operator(node) in ("fill", "zero")
        if not starts and self.filled.isdisjoint(node.inputs):
            return
        self.filled.update([tensor.name for tensor in outputs])
        if not starts and (call is None or SPECS[node.op].saved_for_backward(call) != NOTHING):
            self.note(FILLED, node)

    def _read(self, tensor: Tensor) -> tuple[str, ...]:
        """Names of the tensors saved; indices of several axes are one tensor only in the graph."""
        producer = self.producers.get(tensor.name)
        if (
            producer is not None
            and producer.op == "concat"
            and operator(producer) in ("index", "index_put")
        ):
            return producer.inputs
        return (tensor.name,)

    def _hold_storage(self, name: str) -> int:
        storage = self.storages.views[name].storage
        if storage in self.holding:
            return 0
        self.holding.add(storage)
        producer = self.producers.get(storage)
        if producer is not None and producer.op == "constant" and self.graph.autograd is None:
            return 0
        return self.storages.bytes[storage]

    def notes(self) -> tuple[str, ...]:
        graph = self.graph
        found = []
        if graph.autograd is not None and not graph.autograd.training:
            found.append(EVAL)
        if graph.autograd is None and any(map(operator, graph.nodes)):
            found.append(FILE)
        if graph.dtype != "fp32":
            found.append(HALF)
        if graph.autograd is not None:
            found += graph.autograd.notes
        return (*found, *[_listed(reason, names) for reason, names in self.reasons.items()])


def kept(graph: Graph, shapes: Shapes, costs: dict[str, Cost]) -> Kept:
    """Walk the graph as autograd does: only nodes that depend on a parameter save anything."""
    walk = _SavedTensors(graph, shapes, costs)
    by_node = {node.name: walk.add(node) for node in graph.nodes}
    inputs = sum([tensor.bytes for tensor in graph.inputs if tensor.name in walk.holding])
    notes = walk.notes()
    status: Status = "estimate" if notes else "exact"
    return Kept(by_node, sum(by_node.values()), inputs, walk.complete, status, notes)


def _listed(reason: str, names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}: {reason}"
