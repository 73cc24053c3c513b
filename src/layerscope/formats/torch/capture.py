"""A live module as a Graph: its forward run without numbers, every operator a node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, nullcontext, suppress
from functools import cache
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import MissingExtra, ModelError, UsageError
from layerscope.formats.torch import flex
from layerscope.formats.torch.autocast import Autocast
from layerscope.formats.torch.calls import DataDependent, NoKernel, forget, shapes_in
from layerscope.formats.torch.dtypes import FLOATS, name_of
from layerscope.formats.torch.failures import lack_of_numbers, model_error, needs_autograd
from layerscope.formats.torch.fast_paths import PRINTED, exact_fast_paths
from layerscope.formats.torch.grads import CHANNELS_LAST, STRIDED, Grads, strided_kernels
from layerscope.formats.torch.inputs import has_arrays, map_tensors, named_inputs, tensors_in
from layerscope.formats.torch.lazy import Uninitialized, initialized, is_lazy
from layerscope.formats.torch.literals import kept_literals
from layerscope.formats.torch.mode import Recorder
from layerscope.formats.torch.module_table import ModuleInfo, ModuleTable, ParamTable
from layerscope.formats.torch.modules import Calls, watched
from layerscope.formats.torch.packed import hold_packed
from layerscope.formats.torch.restore import no_modes, same_random_states
from layerscope.formats.torch.shadows import Rerun, Shadows
from layerscope.formats.torch.tensor_copies import Copies, MetaCopies
from layerscope.formats.torch.tensors import NO_VALUES
from layerscope.formats.torch.tracking import Tracker
from layerscope.graph.types import Graph, Param, Role


def the_torch() -> Any:
    """PyTorch, or an error that says how to get it."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("a PyTorch model", "torch") from None
    return torch


class InMode(Struct, frozen=True):
    """A module that is looked at in train or eval mode; it stays in the mode that it is in."""

    model: Any
    mode: str  # train | eval


def capture(
    model: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str = "",
    shortcuts: bool = True,
    rules: Mapping[str, Any] | None = None,
    real: bool = True,
    mode: str | None = None,
) -> Graph:
    """The graph of one forward. No number is computed unless the model needs numbers.

    With `real=False` a model that does is refused. `mode` is train, eval, or as the model is.
    """
    torch = the_torch()
    model = getattr(model, "_orig_mod", model)
    if isinstance(model, torch.jit.ScriptModule):  # a traced one holds what it runs
        model = model.__dict__.get("_actual_script_module", model)
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"a {type(model).__name__}, expected a torch.nn.Module")
    run = Run(torch, model, args, dict(kwargs or {}), name, shortcuts, dict(rules or {}))
    run.mode = mode
    try:
        return run.graph(real=False)
    except Uninitialized:
        ready = initialized(torch, model, args, kwargs or {})
        graph = capture(
            ready, args, kwargs, name=run.name, shortcuts=shortcuts, rules=rules, real=real,
            mode=mode,
        )  # fmt: skip
        return replace(graph, notes=(*graph.notes, LAZY))
    except DataDependent as found:
        reason = str(found).splitlines()[0]
        why = f"the model looks at numbers ({reason})"
        note = f"computed with real numbers, because the model looks at them ({reason})"
        if isinstance(found, NoKernel):
            why = f"the model needs numbers ({reason})"
            note = f"computed with real numbers: {reason}"
    except ModelError as error:
        reason = lack_of_numbers(error)
        if not reason:
            raise
        why = f"the model needs numbers ({reason})"
        note = f"computed with real numbers: {reason}"
    if any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
        raise ModelError(
            f"{run.name}: {why}, which one on the meta device has none of; "
            "build it on a real device"
        )
    if not real:
        raise ModelError(f"{run.name}: {why}, and real=False rules out to compute any")
    try:
        graph = run.graph(real=True)
    except DataDependent as again:
        raise ModelError(f"{run.name}: {' '.join(str(again).split())[:400]}") from again
    return replace(graph, notes=(*graph.notes, note))


LAZY = "lazy modules were initialized on a copy; the model itself is as it was"


class Run:
    """One model on one set of arguments."""

    def __init__(
        self,
        torch: Any,
        model: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str,
        shortcuts: bool,
        rules: dict[str, Any],
    ) -> None:
        self.torch, self.model, self.args, self.kwargs = torch, model, args, kwargs
        self.name = name or getattr(model, "original_name", "") or type(model).__name__
        self.shortcuts = shortcuts
        self.rules = rules
        self.mode: str | None = None  # train, eval, or as the model is
        self.again: set[str] = set()  # what runs before this one turned out to need

    @property
    def training(self) -> bool:
        """Whether the model is looked at in train mode."""
        return bool(self.model.training) if self.mode is None else self.mode == "train"

    def graph(self, *, real: bool) -> Graph:
        """Run the forward and put the graph together, of the model as it was before."""
        with no_modes(self.torch):
            while True:
                try:
                    return self._assembled(*self._ran(real=real))
                except Rerun as found:
                    self.again.add(found.option)
                except DataDependent as found:
                    if not found.of_literal or "literals" in self.again:
                        raise
                    self.again.add("literals")
                except ModelError as error:
                    if not needs_autograd(error) or "autograd" in self.again:
                        raise
                    # saved by an `autograd.Function` or a checkpoint, which needs gradients
                    tried = not self.training or "no_grad_mode" in self.again
                    self.again.add("autograd" if tried else "no_grad_mode")

    def _ran(self, *, real: bool) -> tuple[Recorder, tuple[str, ...], tuple[str, ...]]:
        """What one forward leaves: records, names of its outputs, and what there is to say."""
        torch = self.torch
        inference = "autograd" not in self.again  # a forward that differentiates needs more
        grad_mode = not inference or "no_grad_mode" not in self.again
        with ExitStack() as stack:
            forget()
            places = self.places = ModuleTable(torch, self.model, exact_fast_paths(torch))
            if is_lazy(torch, places.held.tensors):
                raise Uninitialized
            short = self.shortcuts and not real and inference and not watched(torch)
            grads = Grads(training=self.training, grad_mode=grad_mode)
            tracker = Tracker(places, places.held, grads)
            floating = floating_of(places.held)
            if grads.training and strided_kernels(places.held):
                grads.notes.append(CHANNELS_LAST)
            recorder = Recorder(torch, tracker, real=real, floating=floating, rules=self.rules)
            recorder.shortcuts = self.shortcuts
            stack.enter_context(same_random_states(torch))
            autocast = stack.enter_context(Autocast(torch, recorder, self._device))
            copies = None
            if real or not inference:
                copies = Copies(torch, tracker, recorder.unwatched)
                copies.parameters = not inference
            elif autocast.starts_enabled or "meta_arrays" in self.again:
                copies = MetaCopies(torch, tracker, recorder.unwatched)
                recorder.as_meta = autocast.arrays_on_meta = copies
            shadows = Shadows(torch, places, "own_hooks" in self.again, copies)
            calls = stack.enter_context(Calls(torch, recorder, shadows, short=short))
            self._set_mode(shadows)
            said: dict[str, None] = {}
            if real or "flex" in self.again:
                stack.enter_context(flex.answered(torch, recorder.unknown, said.setdefault))
            if inference:
                stack.enter_context(torch.inference_mode())
            if grads.training and grad_mode:  # parts under no_grad can be told apart
                stack.enter_context(torch.enable_grad())
            if isinstance(self.model, torch.jit.ScriptModule):
                stack.enter_context(torch.jit.optimized_execution(False))
            args, kwargs = self._given(tracker, real)
            recorder.mode = _recording()()
            recorder.mode.call, recorder.mode.cast = recorder.dispatch, autocast.call
            recorder.mode.casts = autocast.starts_enabled
            try:
                with recorder.mode, self._literals(recorder):
                    result = calls.start(self.model, args, kwargs)
                outputs = self._outputs(tracker, result)
                if recorder.asked is not None:  # the model caught it, and did something else
                    raise recorder.asked
            except DataDependent:
                raise
            except Exception as error:
                if "flex" not in self.again and flex.raised_in(error):
                    raise Rerun("flex") from None
                if recorder.asked is not None:
                    raise recorder.asked from error
                failed = self._told(error, *calls.where(error))
                for note in recorder.notes.values():
                    failed.add_note(note)
                raise failed  # noqa: B904  # it has the cause of the model's own
            finally:
                recorder.mode = recorder.as_meta = None  # they hold each other, and all else
                tracker.forget()
            return recorder, outputs, (*autocast.notes, *said, *recorder.notes.values())

    def _literals(self, recorder: Recorder) -> Any:
        return kept_literals(self.torch, recorder) if "literals" in self.again else nullcontext()

    def _set_mode(self, shadows: Shadows) -> None:
        """Put the shadows in train or eval mode, where the model is in another."""
        if self.mode is None:
            return
        if any(place.held.get("training") != self.training for place in self.places.values()):
            shadows.of(self.model).train(self.training)

    def _device(self) -> str:
        """Type of the device that the model or its inputs are on; "" for the meta device."""
        given = [tensor for _, tensor in tensors_in((self.args, self.kwargs), self.torch)]
        for tensor in chain(self.places.held.tensors.values(), given):
            if not tensor.is_meta:
                return str(tensor.device.type)
        return ""

    def _given(self, tracker: Tracker, real: bool) -> tuple[Any, Any]:
        """The arguments as the run takes them, each tensor an input of the graph."""
        torch = self.torch
        made: dict[int, Any] = {}

        def change(tensor: Any) -> Any:
            if id(tensor) not in made:
                if tensor.is_nested:
                    raise UsageError(
                        f"{self.name}: an input is a nested tensor, which has no single shape; "
                        "give a padded tensor, or a PackedSequence"
                    )
                if tensor.is_quantized and not real:
                    raise NoKernel("an input is quantised")
                if tensor.layout is not torch.strided and not real:
                    raise NoKernel("an input has a sparse layout")
                if real:
                    copy = tensor
                    if tensor.is_meta:
                        copy = torch.zeros(tensor.shape, dtype=tensor.dtype)
                    made[id(tensor)] = copy.detach().clone()
                else:
                    made[id(tensor)] = torch.empty_strided(
                        tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
                    )
            return made[id(tensor)]

        args = map_tensors(tuple(self.args), torch, change)
        kwargs = map_tensors(self.kwargs, torch, change)
        seen: set[int] = set()
        originals = {id(new): old for old, new in _pairs(self, made)}
        for name, tensor in named_inputs(self.model, args, kwargs, torch):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                value = tracker.declare(tensor, name)
                original = originals.get(id(tensor))
                if original is not None and original.requires_grad:
                    tracker.grads.inputs.add(value.name)
                if not value.sig.contiguous:
                    tracker.grads.notes.append(f"{value.name}: {STRIDED}")
                if original is not None and original.device.type == "cpu":
                    value.known, value.twin = True, None
                    value.recipe = (lambda kept: kept, (original,), {}, None, 0)
                elif original is not None and original.is_meta and not real:
                    value.known, value.recipe = True, NO_VALUES
                elif tensor.device.type == "cpu":  # lengths of a PackedSequence
                    value.known = True
        if not seen:
            found = "no tensor is given"
            if has_arrays((self.args, self.kwargs)):
                found = "NumPy arrays are given, and no tensor; make one by torch.from_numpy(array)"
            raise UsageError(
                f"{self.name}: {found}; say input_size=(1, 3, 224, 224) or input_data="
            )
        return args, kwargs

    def _outputs(self, tracker: Tracker, result: Any) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for _, tensor in tensors_in(result, self.torch):
            if id(tensor) in tracker.values:
                found[tracker.read(tracker.values[id(tensor)])] = None
        return tuple(found)

    def _told(self, error: Exception, place: ModuleInfo | None, shapes: Any) -> ModelError:
        """What went wrong in the forward, and where."""
        if not shapes:
            shapes = shapes_in((self.args, self.kwargs), self.torch)
        where = self.name
        if place is not None and place.path:
            where += f": {place.path}"
        if place is not None:
            where += f" ({type(place.module).__name__})"
        given = ", ".join(
            f"{'x'.join(map(str, shape)) or 'a number'} {kind}" for shape, kind in shapes
        )
        hint = ""
        if isinstance(error, TypeError) and "forward()" in str(error):
            hint = "; give what it takes with input_data or --input"
        elif "find engine" in str(error):
            engines = ", ".join(self.torch.backends.quantized.supported_engines) or "none at all"
            hint = f"; set torch.backends.quantized.engine; this PyTorch has {engines}"
        return model_error(error, f"in {where} on {given or 'no tensor'}{hint}")

    def _assembled(
        self, recorder: Recorder, outputs: tuple[str, ...], notes: tuple[str, ...]
    ) -> Graph:
        tracker = recorder.tracker
        held, used = tracker.held, tracker.used
        places: Iterable[ModuleInfo] = tracker.places.values()
        kinds = {kind: _kind(kind) for kind in {place.kind for place in places}}
        if hold_packed(kinds):
            boxes = recorder.packs.look()
            places = [place for place in places if place.path not in boxes]
        unused = []
        for name in [name for name in held.tensors if name not in used]:
            tensor = held.tensors[name]
            if id(tensor) not in held.buffers:
                role: Role = "bias" if name.endswith("bias") else "weight"
                unused.append(Param(name, tuple(tensor.shape), role, name_of(tensor.dtype), name))
        if unused:
            count = sum(param.elements for param in unused)
            notes = (*notes, left_out(unused, count))
        told = {kind for kind in kinds if kind.__name__ in PRINTED}
        return Graph(
            name=self.name,
            inputs=tuple(tracker.inputs),
            nodes=tuple(tracker.nodes),
            outputs=outputs,
            params=tuple(tracker.params.values()),
            modules={
                place.path: "" if place.printed and place.kind in told else _printed(place)
                for place in places
            },
            kinds={place.path: kinds[place.kind] for place in places},
            places=self.places.several(),
            dtype=recorder.floating,
            notes=notes,
            unused=tuple(unused),
            all_params=True,
            frozen=frozenset(held.frozen),
            autograd=tracker.grads.found(tracker.nodes, bool(self.torch._C._get_mkldnn_enabled())),
            own_layout=tracker.own_types,
        )


def _pairs(run: Run, made: dict[int, Any]) -> list[tuple[Any, Any]]:
    given = [t for _, t in tensors_in((run.args, run.kwargs), run.torch)]
    return [(tensor, made[id(tensor)]) for tensor in given if id(tensor) in made]


def left_out(unused: list[Param], count: int) -> str:
    """What is said of parameters that no node uses."""
    names = ", ".join(param.name for param in unused[:3])
    more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
    return f"{count:,} parameters that this forward does not use: {names}{more}"


def _printed(place: ModuleInfo) -> str:
    """What a module print says of a module whose node does not tell that."""
    if place.childless:
        with suppress(Exception):  # a print of its own may ask for numbers
            return repr(place.module)
    return str(place.kind.__name__)


def _kind(kind: Any) -> str:
    """A class of modules, with its package unless that is torch.nn."""
    if kind.__module__.startswith("torch.nn."):
        return str(kind.__name__)
    return f"{kind.__module__}.{kind.__qualname__}"


def floating_of(held: ParamTable) -> str:
    """Number type of the model: that of its first array of floats."""
    for tensor in held.tensors.values():
        kind = name_of(tensor.dtype)
        if kind in FLOATS:
            return kind
    return "fp32"


@cache
def _recording() -> Any:
    """The class of what hands every call of the dispatcher to a recorder."""
    import torch
    from torch import autocast_decrement_nesting, autocast_increment_nesting
    from torch.utils._python_dispatch import TorchDispatchMode

    def dispatch(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # whether autocast is on cannot be seen from here at once, whether a context is around can
        around = autocast_increment_nesting() > 1
        autocast_decrement_nesting()
        return (self.cast if around or self.casts else self.call)(func, args, kwargs or {})

    # Nothing is compiled here, and asking the compiler to keep out would load it: a second.
    # Where torch.cond and its like have loaded it, its frame hook leaves this code alone.
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "_FrameExecStrategy"):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(dispatch.__code__, frames._FrameExecStrategy(skip, skip))
    told = {
        "__torch_dispatch__": dispatch,
        "_should_skip_dynamo": classmethod(lambda cls: False),
        "supports_higher_order_operators": True,
    }
    return type("Recording", (TorchDispatchMode,), told)
