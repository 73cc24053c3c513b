"""An exported program walked through, each of its calls put in our words.

What the file says of a tensor is the truth of its shape: a call whose words make another one, or
that has none, stays unknown under its own name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from layerscope.errors import FormatError
from layerscope.formats.torch.arguments import Arguments, Values, counted, translated
from layerscope.formats.torch.aten import CONSTANTS, DRAWN, TABLE
from layerscope.formats.torch.aten.declared import declared
from layerscope.formats.torch.capture import floating_of, left_out
from layerscope.formats.torch.checkpoints.stored_array import check_name
from layerscope.formats.torch.draft import Draft, Step
from layerscope.formats.torch.dtypes import name_of
from layerscope.formats.torch.exported import (
    Call,
    ExportedTensor,
    Flow,
    Module,
    Sizes,
    names_in,
    stack_of,
    symbol_in,
)
from layerscope.formats.torch.leaves import PRINTED
from layerscope.formats.torch.places import Held, Place
from layerscope.formats.torch.tracking import Entry, Tracker
from layerscope.formats.torch.values import Sig, Value
from layerscope.graph import attributes as at
from layerscope.graph.types import Graph, Param, Role, Source, Tensor
from layerscope.limits import CALL_NODES

# Another look at the same numbers: what is written into one is written into the other.
VIEWS = frozenset((
    "view", "view_as", "unflatten", "unsqueeze", "squeeze", "permute", "transpose", "swapaxes",
    "swapdims", "t", "numpy_T", "mT", "adjoint", "mH", "matrix_H", "movedim", "moveaxis", "expand",
    "expand_as", "broadcast_to", "slice", "narrow", "select", "split", "split_with_sizes", "chunk",
    "tensor_split", "unbind", "detach", "alias", "unfold", "lift_fresh", "diagonal", "as_strided",
    "view_as_real", "view_as_complex",
))  # fmt: skip
MAYBE = frozenset(("reshape", "flatten", "contiguous", "reshape_as", "ravel", "to"))
# Of these the first result is the operation's; the others are for training.
FIRST = tuple(
    f"torch.ops.aten.{name}."
    for name in TABLE
    if name.startswith(("native_", "_native_", "_scaled_dot_product_", "max_pool"))
)
FREE_CALLS = 100  # calls that a small program is taken to have besides
INLINED = ("wrap_with_set_grad_enabled", "wrap_with_autocast", "hints_wrapper")


class _Children:
    """Stands for a module of PyTorch: its class and the names of what is in it."""

    def __init__(self) -> None:
        self._modules: dict[str, None] = {}
        self.kind = ""


class Replay:
    """One program on its way to be a graph."""

    def __init__(self, path: str, program: Module, stored: dict[str, Any]) -> None:
        self.path, self.program, self.stored = path, program, stored
        self.sizes = Sizes(path)
        self.arguments = Arguments(path, program.graph, self.sizes)
        self.modules = self._modules()
        self.held = Held()
        self.tracker = Tracker({}, self.held)
        self.open: list[tuple[str, Place, int, int]] = []  # modules around the call at hand
        self.floating = "fp32"
        self.calls = 0

    def graph(self) -> Graph:
        """All of it."""
        flow = self.program.graph
        values = self._given(flow)
        self.floating = floating_of(self.held)
        self._walk(flow, values)
        self._leave(0)
        return self._assembled(self._outputs(flow, values))

    # Modules

    def _modules(self) -> dict[str, Place]:
        """Every module that the file knows of, by path."""
        found: dict[str, Place] = {}

        def add(path: str, kind: str = "") -> None:
            if path not in found:
                check_name(self.path, path)
                outer, _, own = path.rpartition(".")
                if path:
                    add(outer)
                    found[outer].module._modules[own] = None
                    found[outer].childless = False
                around = tuple(path.split(".")[:-1])
                found[path] = Place(_Children(), None, path, around, True)
            if kind:
                found[path].module.kind = kind

        add("")
        for called in self.program.module_call_graph:
            add(called.fqn.partition("@")[0])
        for call in self.program.graph.nodes:
            for _, path, kind in stack_of(call):
                add(path, kind)
        for spec in self.program.signature.input_specs:
            for kind in ("parameter", "buffer"):
                name = spec.get(kind, {}).get(f"{kind}_name")
                if isinstance(name, str):
                    add(name.rpartition(".")[0])
        return found

    def _enter(self, call: Call) -> None:
        """Close the modules that this call is not in, and open those that it is in."""
        stack = [each for each in stack_of(call) if each[1] in self.modules]
        same = 0
        while (
            same < min(len(stack), len(self.open))
            and self.open[same][0] == stack[same][0]
            and self.open[same][1].path == stack[same][1]
        ):
            same += 1
        self._leave(same)
        tracker = self.tracker
        for key, path, _ in stack[same:]:
            place = self.modules[path].opened()
            self.open.append((key, place, len(tracker.nodes), len(tracker.log)))
        tracker.place = self.open[-1][1] if self.open else None

    def _leave(self, depth: int) -> None:
        while len(self.open) > depth:
            _, place, before, mark = self.open.pop()
            if place.childless and self.tracker.settle(place, before, mark):
                place.printed = True

    # Inputs and outputs

    def _given(self, flow: Flow) -> Values:
        """Inputs of the network and arrays of the model."""
        values: Values = {}
        shared: dict[Any, str] = {}
        for spec in self.program.signature.input_specs:
            kind, told = next(iter(spec.items()), ("", {}))
            if kind in ("parameter", "buffer", "tensor_constant"):
                arg = told.get("arg")
                name = self.arguments.name(arg, kind)
                full = told.get(f"{kind}_name")
                if not isinstance(full, str):
                    raise FormatError(f"{self.path}: {name}: a {kind} without its name")
                check_name(self.path, full)
                values[name] = self._array(flow, name, full, kind, shared)
            elif kind == "user_input":
                arg = told.get("arg")
                for name in names_in(arg) if isinstance(arg, dict) else []:
                    tensor = self.sizes.tensor(name, flow.tensor_values)
                    values[name] = self._declared(tensor, name)
        if not self.tracker.inputs:
            raise FormatError(f"{self.path}: a program that takes no tensor")
        return values

    def _declared(self, tensor: ExportedTensor, name: str) -> Value:
        made = self.tracker.register(tensor, name, self._sig(tensor))
        self.tracker.names.add(name)
        self.tracker.inputs.append(Tensor(name, tensor.shape, name_of(tensor.dtype)))
        return made

    def _array(self, flow: Flow, name: str, full: str, kind: str, shared: dict[Any, str]) -> Value:
        tensor = self.sizes.tensor(name, flow.tensor_values)
        if kind == "tensor_constant":
            made = self.tracker.register(tensor, "", self._sig(tensor), plain=False)
            made.fixed = True
            return made
        payload = self.stored.get(full)
        first = full
        if payload is not None:
            offset = (payload.tensor_meta or {}).get("storage_offset")
            first = shared.setdefault((payload.path_name, str(offset), tensor.shape), full)
        self.held.names[id(tensor)] = first
        self.held.tensors.setdefault(first, tensor)
        if kind == "buffer":
            self.held.buffers.add(id(tensor))
        sig = self._sig(tensor, "param" if kind == "parameter" else kind)
        return self.tracker.register(tensor, first, sig, plain=False)

    def _outputs(self, flow: Flow, values: Values) -> tuple[str, ...]:
        specs = [spec["user_output"] for spec in self.program.signature.output_specs
                 if "user_output" in spec]  # fmt: skip
        args = [spec.get("arg") for spec in specs] or flow.outputs
        found: dict[str, None] = {}
        for arg in args:
            for name in names_in(arg) if isinstance(arg, dict) else []:
                value = self.arguments.value(name, values)
                if not value.constant:
                    found[self.tracker.read(value)] = None
        return tuple(found)

    def _sig(self, tensor: ExportedTensor, kind: str = "") -> Sig:
        return self.tracker.sig_of(tensor.shape, tensor.strides, tensor.dtype, kind)

    # Calls

    def _walk(self, flow: Flow, values: Values) -> None:
        read = {name for call in flow.nodes for each in call.inputs for name in names_in(each.arg)}
        read |= {name for arg in flow.outputs for name in names_in(arg)}
        for call in flow.nodes:
            self._enter(call)
            outs = [name for arg in call.outputs for name in names_in(arg)]
            while len(outs) > 1 and outs[-1] not in read and call.target.startswith(FIRST):
                outs.pop()  # statistics and indices that nobody asks for
            self.calls += 1
            if outs:
                self._call(call, outs, flow, values)
            if len(self.tracker.nodes) > CALL_NODES.most * (FREE_CALLS + self.calls):
                raise FormatError(
                    f"{self.path}: {call.target}: {len(self.tracker.nodes):,} nodes of "
                    f"{self.calls:,} calls, the limit {CALL_NODES.name} for each is "
                    f"{CALL_NODES.most}"
                )
            for arg in call.outputs:
                name = symbol_in(arg)
                if name in flow.sym_int_values:
                    values[name] = self.sizes.number(flow.sym_int_values[name], name)

    def _call(self, call: Call, outs: list[str], flow: Flow, values: Values) -> None:
        full = call.target.removeprefix("torch.ops.")
        space, _, rest = full.partition(".")
        packet = rest.partition(".")[0]
        inner = [each.arg["as_graph"] for each in call.inputs if "as_graph" in each.arg]
        if space == "higher_order" and packet in INLINED and len(inner) == 1:
            self._inline(call, inner[0], outs, values)
            return
        known = space in ("aten", "torchvision")
        in_place = known and packet.endswith("_") and not packet.endswith("__")
        name = packet[:-1] if in_place else packet
        made = [self.sizes.tensor(out, flow.tensor_values) for out in outs]
        given: list[Value] = []
        args, named = self.arguments.of(call.inputs, given, values)
        if space == "aten" and not in_place and name in CONSTANTS | DRAWN:
            for out, tensor in zip(outs, made, strict=True):
                values[out] = self._fixed(tensor, "random" if name in DRAWN else None)
            return
        if given and all(value.constant for value in given):
            drawn = any(value.recipe == "random" for value in given)
            for out, tensor in zip(outs, made, strict=True):
                values[out] = self._fixed(tensor, "random" if drawn else None)
            if in_place:
                values[outs[0]] = given[0]
            return
        source = Source(op=f"{space}.{packet}" if packet else full)
        words = TABLE.get(name) if known else None
        draft = Draft(source, self.tracker.same, self.floating)
        draft.in_place = in_place
        results = None
        if words is not None and counted(name, args, named, given, len(outs)):
            results = translated(words, draft, args, named, given)
        if in_place and given:
            self._written(name, draft, results, made, outs, given, values)
            return
        sigs = tuple([self._sig(tensor) for tensor in made])
        entry = self._entry(draft, results, sigs, given)
        if not entry.results:
            for out, tensor in zip(outs, made, strict=True):
                values[out] = self._fixed(tensor, None)
            return
        self._made(name, entry, made, outs, given, values)

    def _fixed(self, tensor: ExportedTensor, recipe: str | None) -> Value:
        made = self.tracker.register(tensor, "", self._sig(tensor), plain=False)
        made.fixed = True
        made.recipe = recipe
        return made

    def _entry(self, draft: Draft, results: Any, sigs: tuple[Sig, ...], given: Any) -> Entry:
        """Steps whose results have the shapes that the file tells, else one unknown step."""
        if results is not None:
            results = results[: len(sigs)]
            if [ref.shape for ref in results] == [sig.shape for sig in sigs]:
                cast = [draft.cast(ref, sig.name) for ref, sig in zip(results, sigs, strict=True)]
                return Entry(tuple(draft.steps), tuple([ref.place for ref in cast]), sigs)
        if all(0 in sig.shape for sig in sigs):
            return Entry((), (), sigs)
        shapes, dtypes = tuple([s.shape for s in sigs]), tuple([s.name for s in sigs])
        space, _, name = draft.source.op.partition(".")
        made, told = at.DeclaredOutputs(shapes, dtypes), at.Opaque(shapes, dtypes)
        op = ""
        # a converter that refuses says that arguments are wrong, unless a tensor is one of them
        if space == "aten" and (name not in TABLE or len(given) > 1):
            op = declared(name, [value.sig.shape for value in given], made)
        places = tuple(range(len(given)))
        step = Step(
            op or draft.source.op, places, made if op else told, (), len(sigs), draft.source
        )
        return Entry((step,), tuple([(0, n) for n in range(len(sigs))]), sigs)

    def _made(
        self,
        name: str,
        entry: Entry,
        made: list[ExportedTensor],
        outs: list[str],
        given: Any,
        values: Values,
    ) -> None:
        """New tensors, or views of the first that is given."""
        tracker = self.tracker
        source: Value | None = given[0] if given else None
        view = source is not None and (name in VIEWS or (name in MAYBE and source.sig.contiguous))
        if view and not entry.steps and entry.results == (0,):
            values[outs[0]] = source  # the same numbers under another name
            return
        names = tracker.emit(entry, given)
        for n, (out, tensor) in enumerate(zip(outs, made, strict=True)):
            value = values[out] = tracker.register(tensor, names[n], entry.outs[n])
            if view and source is not None:
                value.parent, value.remake = source, (entry, given, n)
                value.place = tracker.place
                value.version = source.root.version
                value.plain = False

    def _written(
        self,
        name: str,
        draft: Draft,
        results: Any,
        made: list[ExportedTensor],
        outs: list[str],
        given: list[Value],
        values: Values,
    ) -> None:
        """What works in place: all that look at the first tensor see its new contents."""
        target = given[0]
        values[outs[0]] = target
        if target.sig.kind == "buffer" and made[0].shape in ((), (1,)):
            return  # a counter of the model's own, such as batches seen
        if name in DRAWN:
            told = at.DeclaredOutputs((target.sig.shape,), (target.sig.name,))
            results = [draft.add("random", at=told)]
        entry = self._entry(draft, results, (target.sig,), given)
        if entry.results:
            self.tracker.write(target, self.tracker.emit(entry, given)[0])

    def _inline(self, call: Call, told: Any, outs: list[str], values: Values) -> None:
        """A part of the program that is run as it stands, under another setting."""
        try:
            flow = msgspec.convert(told["graph"], Flow)
        except (msgspec.ValidationError, LookupError, TypeError) as error:
            raise FormatError(f"{self.path}: {call.target}: {error}") from None
        start = 1 + next(n for n, each in enumerate(call.inputs) if "as_graph" in each.arg)
        inner: Values = {}
        args = [each.arg for each in call.inputs[start:]]
        for own, arg in zip(flow.inputs, args, strict=False):
            for name, outer in zip(names_in(own), names_in(arg), strict=False):
                inner[name] = self.arguments.value(outer, values)
            symbol = symbol_in(own)
            if symbol:
                inner[symbol] = self.arguments.told(arg, [], values)
        self._walk(flow, inner)
        made = [name for arg in flow.outputs for name in names_in(arg)]
        if len(made) != len(outs):
            raise FormatError(f"{self.path}: {call.target}: {len(made)} tensors for {len(outs)}")
        for out, name in zip(outs, made, strict=True):
            values[out] = self.arguments.value(name, inner)

    # The graph

    def _assembled(self, outputs: tuple[str, ...]) -> Graph:
        tracker, held = self.tracker, self.held
        unused, frozen = [], []
        for name, tensor in held.tensors.items():
            if id(tensor) in held.buffers:
                continue
            if not tensor.requires_grad:
                frozen.append(name)
            if name not in tracker.used:
                role: Role = "bias" if name.endswith("bias") else "weight"
                unused.append(Param(name, tensor.shape, role, name_of(tensor.dtype), name))
        notes = []
        if self.sizes.open:
            sizes = ", ".join(f"{name}={size}" for name, size in list(self.sizes.open.items())[:5])
            notes.append(f"sizes that the program leaves open are its example's: {sizes}")
        if unused:
            notes.append(left_out(unused, sum(param.elements for param in unused)))
        return Graph(
            name=self.path.replace("\\", "/").rpartition("/")[2],
            inputs=tuple(tracker.inputs),
            nodes=tuple(tracker.nodes),
            outputs=outputs,
            params=tuple(tracker.params.values()),
            modules={path: _printed(place) for path, place in self.modules.items()},
            kinds={path: _kind(place) for path, place in self.modules.items()},
            dtype=self.floating,
            notes=tuple(notes),
            unused=tuple(unused),
            all_params=True,
            frozen=frozenset(frozen),
        )


def _printed(place: Place) -> str:
    """Class of a module; "" where its node tells that."""
    kind = place.module.kind.rpartition(".")[2] or "Module"
    return "" if place.printed and kind in PRINTED else kind


def _kind(place: Place) -> str:
    """Class of a module, with its package unless that is torch.nn."""
    kind: str = place.module.kind
    return kind.rpartition(".")[2] if kind.startswith("torch.nn.") else kind or "Module"
