"""Every call that reaches PyTorch's dispatcher, turned into nodes.

Tensors are on the meta device: shapes and layouts without numbers. Composite operators arrive whole
because the model runs in inference mode; what has no words of ours is opened up, and what cannot
be is kept as unknown under its own name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.formats.torch.aten import CONSTANTS, DRAWN, TABLE
from layerscope.formats.torch.aten.quantized import ALONE, QUANTIZED
from layerscope.formats.torch.calls import INFOS, MOST_KNOWN, Info, NoKernel, makes_fresh
from layerscope.formats.torch.constants import Constants
from layerscope.formats.torch.dtypes import FLOATS
from layerscope.formats.torch.higher_order import follow
from layerscope.formats.torch.lowering import PlannedNode
from layerscope.formats.torch.tensors import dense
from layerscope.formats.torch.tracking import CallPlan
from layerscope.formats.torch.writes import Writes
from layerscope.graph.attributes import Concat, CustomCost, Opaque
from layerscope.graph.types import Shape, Source
from layerscope.ops.calls import infer_call

IN_PLACE_OPERATORS = frozenset(
    ("__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__")
)  # of Python
READS = frozenset(("_local_scalar_dense", "item", "is_nonzero", "equal", "allclose"))

# Overloads that take a tensor for a number: PyTorch's own steps read it. So do those named "data",
# of recurrent networks on packed sequences.
OPENED = frozenset((("narrow", "Tensor"), ("tensor_split", "tensor_indices_or_sections")))


class Registered(Struct, frozen=True):
    """A formula that PyTorch's own counter was given; it takes tensors."""

    formula: Any


class Recorder(Constants, Writes):
    """Handles every call of the dispatcher."""

    @property
    def dispatch(self) -> Callable[[Any, Any, Any], Any]:
        """What handles one call of the dispatcher in the mode that the model is in."""
        return self.call_in_training if self.tracker.grads.training else self.call

    def call_in_training(self, func: Any, args: Any, kwargs: Any) -> Any:
        """As `call`, of a model in train mode; what a part of it does not keep is marked."""
        if self.plain_grad():
            return self.call(func, args, kwargs)
        nodes = self.tracker.nodes
        before = len(nodes)
        result = self.call(func, args, kwargs)
        self.tracker.grads.mark(self.torch, range(before, len(nodes)))
        return result

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One call of the dispatcher."""
        info = INFOS.get(id(func))
        if info is None:
            info = INFOS.setdefault(id(func), self.inform(func))
        kind = info.kind
        if kind == "constant" or kind == "drawn":
            return self._constant(info, func, args, kwargs)
        given: list[Any] = []
        frozen = self._freeze(args, given)
        key = (info, frozen, self._freeze_named(kwargs, given) if kwargs else None)
        if kind == "reads":
            return self._look(info, args, kwargs)
        if kind == "higher order":
            with self.mode:
                return follow(func, args, kwargs)
        if not given:
            return func(*args, **kwargs)
        if given[0].fixed and all(value.constant for value in given):
            return self._folded(info, func, args, kwargs, given, key)
        if kind == "write":
            return self._write(info, func, args, kwargs, given, key)
        if kind == "view":
            return self._view(info, func, args, kwargs, given, key)
        entry = self.memo.get(key) if self.shortcuts and not self.real else None
        outs = None
        if entry is None:
            entry, outs = self._new(info, func, args, kwargs, given)
            if entry is None:
                self.by_values = False
                return outs
            # what others define may be defined otherwise next time; with numbers more can be run
            if info.words is not None and not self.real and not self.by_values:
                self.memo[key] = entry
            self.by_values = False
        if outs is None:
            outs = [self.empty(sig) for sig in entry.outs]
        if not entry.results:
            self._nothing(outs, entry)
            return outs[0] if entry.form is None else entry.form(outs)
        names = self.tracker.emit(entry, given)
        self._registered(outs, names, entry, func, args, kwargs, given)
        if entry.form is None:  # of several results, one that is asked for
            return (outs[0], *[None] * info.others) if info.others else outs[0]
        return entry.form(outs)

    def _registered(
        self, outs: Any, names: Any, entry: CallPlan, func: Any, args: Any, kwargs: Any, given: Any
    ) -> None:
        known = given[0].known and all(value.known for value in given)
        register = self.tracker.register
        if len(names) < len(outs):  # by-products, named when they are read
            for out, sig in zip(outs[len(names) :], entry.outs[len(names) :], strict=True):
                register(out, "", sig, plain=False).fixed = True
            outs = outs[: len(names)]
        for n, (out, name, sig) in enumerate(zip(outs, names, entry.outs, strict=False)):
            made = register(out, name, sig)
            if known and out.numel() <= MOST_KNOWN:
                made.known = True
                made.recipe = (func, args, kwargs, n if entry.form else None, self.moment)

    def inform(self, func: Any) -> Info:
        """What is known of an operator before any call of it."""
        schema = getattr(func, "_schema", None)
        if schema is None:  # torch.cond and its like, which take functions
            full = f"higher_order.{func.name()}"
            return Info(func, func.name(), full, Source(op=full), None, "higher order", False)
        full = schema.name.replace("::", ".")
        space, _, packet = full.partition(".")
        writes = schema.is_mutable
        in_place = packet.endswith("_") and not packet.endswith("__") and writes
        name = packet[:-1] if in_place else packet
        if writes and packet in IN_PLACE_OPERATORS:
            in_place, name = True, packet.replace("__i", "__")
        kind = "new"
        if writes:
            kind = "write"
        elif any(ret.alias_info is not None for ret in schema.returns):
            kind = "view"
        if space == "aten" and not writes:
            if name in CONSTANTS:
                kind = "constant"
            elif name in DRAWN:
                kind = "drawn"
            elif name in READS:
                kind = "reads"
        words = TABLE.get(name) if space in ("aten", "torchvision") else None
        if (name, func._overloadname) in OPENED or func._overloadname == "data":
            words = None
        narrow = space == "quantized" or (space == "aten" and name in ALONE)
        if narrow:
            words = QUANTIZED.get(name)
        source = Source(op=full)
        others = len(schema.returns) - 1
        return Info(func, name, full, source, words, kind, in_place, narrow, others)

    def _new(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any) -> Any:
        """The entry of a call not seen before, and its results if it had to be run."""
        if info.narrow and info.name.endswith("_unpack"):
            found = self.packs.of(args[0])
            if found is not None:  # its arrays have their names; those unpacked anew have none
                return None, found.arrays["weight"] if "embed" in info.name else found.pair
        if info.name == "cat" and self.shortcuts and not self.real:
            joined = self._joined(info, args, kwargs, given)
            if joined is not None:
                return joined, None
        draft, results, form = self._translate(info, args, kwargs, given)
        if info.narrow and results is not None and not self.real:
            if form is not None or results[0].dtype not in FLOATS:
                raise self.needs_numbers(info, "has no kernel without them", NoKernel)
            sigs = self.sigs_of(results, [value.sig for value in given])
            return self._entry(draft, results, sigs, form), None
        foreseen = self._foreseen(info, results, given)
        if foreseen is not None:
            return self._entry(draft, results, foreseen, form), None
        rule = self._rule(info, func) if results is None else None
        if results is None and rule is None and self.is_composite(func):
            with self.mode:
                opened = func.decompose(*args, **kwargs)
            if opened is not NotImplemented:
                return None, opened
        try:
            outs = self._run(info, func, args, kwargs)
        except RuntimeError:
            if results is None or self.real or not makes_fresh(info.name, given):
                raise  # of the others, the kernels without numbers refuse what the real ones do
            return self._entry(
                draft, results, self.sigs_of(results, [value.sig for value in given]), form
            ), None
        if rule is not None:
            return self._ruled(info, rule, args, kwargs, outs, given)
        return self._checked(info, draft, results, outs, given)

    def _joined(self, info: Info, args: Any, kwargs: Any, given: Any) -> CallPlan | None:
        """Parts alike in all but their size, joined: there may be many, and words take long."""
        sigs = [value.sig for value in given]
        first = sigs[0]
        dim = args[1] if len(args) == 2 else 0
        if kwargs or info.narrow or first.dtype in self._narrow or len(sigs) < 2:
            return None
        for sig in {*sigs}:
            if sig.dtype is not first.dtype or not sig.contiguous or 0 in sig.shape:
                return None
        if not -len(first.shape) <= dim < len(first.shape):
            return None
        told = Concat(dim % len(first.shape))
        told = self.tracker.same.setdefault((Concat, told), told)
        try:
            [shape] = infer_call("concat", told, tuple([sig.shape for sig in sigs])).outputs
        except ShapeError:
            return None
        step = PlannedNode("concat", tuple(range(len(sigs))), told, (), 1, info.source)
        return CallPlan(
            (step,), ((0, 0),), (self.tracker.sig_of(shape, dense(shape), first.dtype),)
        )

    def _rule(self, info: Info, func: Any) -> Any:
        """How its owner counts an operator: told to us, or registered with PyTorch's counter."""
        for name in (info.full, info.full.replace(".", "::"), info.name):
            if name in self.rules:
                return self.rules[name]
        counter = sys.modules.get("torch.utils.flop_counter")
        formula = counter.flop_registry.get(func.overloadpacket) if counter is not None else None
        if formula is None or info.full.startswith("aten."):
            return None
        return Registered(formula)

    def _ruled(
        self, info: Info, rule: Any, args: Any, kwargs: Any, outs: Any, given: Any
    ) -> tuple[CallPlan, Any]:
        many = isinstance(outs, (list, tuple))
        listed = list(outs) if many else [outs]
        sigs = tuple([self.tracker.sig(out) for out in listed])
        shapes = tuple([sig.shape for sig in sigs])
        named = {k: self._shapes(v) for k, v in kwargs.items()}
        made = shapes if many else shapes[0]
        if isinstance(rule, Registered):
            counts = rule.formula(*args, **kwargs, out_val=outs) // 2  # its figures are 2 per MAC
        else:
            counts = rule(*self._shapes(args), out_shape=made, **named)
        told_us = CustomCost(shapes, tuple([sig.name for sig in sigs]), **self._counts(counts))
        step = PlannedNode("custom", tuple(range(len(given))), told_us, (), len(sigs), info.source)
        places = tuple([(0, n) for n in range(len(sigs))])
        return CallPlan((step,), places, sigs, tuple if many else None), listed

    def _counts(self, counts: Any) -> Mapping[str, Any]:
        """What a rule tells: operations by kind, or multiply-adds alone."""
        return counts if isinstance(counts, Mapping) else {"mac": counts}

    def _shapes(self, arg: Any) -> Any:
        """Arguments with shapes in place of tensors."""
        if isinstance(arg, self.torch.Tensor):
            return tuple(arg.shape)
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._shapes(each) for each in arg])
        return arg

    def unknown(self, name: str, x: Any, shape: Shape | None = None) -> Any:
        """A tensor that something without figures makes of another; fp32 if of another shape."""
        value = self.tracker.value(x)
        sig = self.tracker.sig_of(value.sig.shape, value.sig.stride, value.sig.dtype)
        if shape is not None:
            sig = self.tracker.sig_of(shape, dense(shape), self.torch.float32)
        step = PlannedNode(name, (0,), Opaque((sig.shape,), (sig.name,)), (), 1, Source(op=name))
        if name in self.rules:
            counts = self._counts(self.rules[name](value.sig.shape, out_shape=sig.shape))
            told = CustomCost((sig.shape,), (sig.name,), **counts)
            step = PlannedNode("custom", (0,), told, (), 1, Source(op=name))
        [made] = self.tracker.emit(CallPlan((step,), ((0, 0),), (sig,)), [value])
        with self.unwatched():
            out = x.new_zeros(sig.shape, dtype=sig.dtype) if self.real else self.empty(sig)
        self.tracker.register(out, made, sig)
        return out
