"""A live module as a Graph: its forward runs on the meta device, and every operator is a node."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from layerscope.errors import MissingExtra, ModelError, UsageError
from layerscope.formats.torch import flex
from layerscope.formats.torch.autocast import Autocast
from layerscope.formats.torch.caches import trim_caches
from layerscope.formats.torch.capture_state import Capture, DataDependent, NoKernel
from layerscope.formats.torch.custom_ops import unknown_tensor
from layerscope.formats.torch.data_writes import OPTION as DATA_WRITES
from layerscope.formats.torch.data_writes import assigns_data, followed_data_writes
from layerscope.formats.torch.dispatch import dispatch_mode, dispatcher
from layerscope.formats.torch.failures import (
    forward_error,
    fuses_script,
    lack_of_values,
    needs_autograd,
    reads_array,
    shapes_in,
)
from layerscope.formats.torch.fast_paths import fast_paths
from layerscope.formats.torch.grads import CHANNELS_LAST, STRIDED, Grads, strided_kernels
from layerscope.formats.torch.graph_assembly import assemble, floating_of
from layerscope.formats.torch.inputs import has_arrays, map_tensors, named_inputs, tensors_in
from layerscope.formats.torch.lazy import Uninitialized, initialized, is_lazy
from layerscope.formats.torch.literals import kept_literals
from layerscope.formats.torch.module_log import ModuleLog
from layerscope.formats.torch.module_table import ModuleInfo, ModuleTable
from layerscope.formats.torch.modules import ModuleCalls, has_global_hooks
from layerscope.formats.torch.restore import no_modes, restored_random_states
from layerscope.formats.torch.shadows import Rerun, Shadows
from layerscope.formats.torch.tensor_copies import MetaCopies, TensorCopies
from layerscope.formats.torch.tensors import Recompute
from layerscope.formats.torch.torch_types import Arg, Args, Kwargs, Result, Rule, Torch
from layerscope.formats.torch.tracking import Tracker
from layerscope.graph.types import Graph, Shape

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

LAZY = "lazy modules were initialized on a copy; the model itself is as it was"


def the_torch() -> Torch:
    """PyTorch, or an error that says how to get it."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("a PyTorch model", "torch") from None
    module: Torch = torch
    return module


class InMode(Struct, frozen=True):
    """A module to capture in train or eval mode; its own mode does not change."""

    model: Module
    mode: str  # train | eval


class CaptureOptions(Struct, frozen=True):
    """How a model is captured."""

    name: str = ""  # of the graph; "": the class of the model
    shortcuts: bool = True  # use fast paths and cached plans; off only in tests
    rules: Mapping[str, Rule] = {}  # cost functions of the user's, by operator
    mode: str | None = None  # train, eval, or the mode that the model is in
    module_log: ModuleLog | None = None  # receives the calls of modules


def capture(
    model: Module,
    args: Args = (),
    kwargs: Mapping[str, Arg] | None = None,
    *,
    name: str = "",
    shortcuts: bool = True,
    rules: Mapping[str, Rule] | None = None,
    real: bool = True,
    mode: str | None = None,
    module_log: ModuleLog | None = None,
) -> Graph:
    """The graph of one forward. Values are computed only if the model needs them.

    With `real=False` such a model is refused. `mode` is train, eval, or None for the model's own.
    """
    torch = the_torch()
    model = getattr(model, "_orig_mod", model)
    if isinstance(model, torch.jit.ScriptModule):  # of a traced module: the one that it runs
        model = model.__dict__.get("_actual_script_module", model)
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"a {type(model).__name__}, expected a torch.nn.Module")
    options = CaptureOptions(name, shortcuts, dict(rules or {}), mode, module_log)
    call = ModelCall(torch, model, args, dict(kwargs or {}), options)
    try:
        return call.graph(real=False)
    except Uninitialized:
        ready = initialized(torch, model, args, kwargs or {})
        graph = capture(
            ready, args, kwargs, name=call.name, shortcuts=shortcuts, rules=rules, real=real,
            mode=mode, module_log=module_log,
        )  # fmt: skip
        return replace(graph, notes=(*graph.notes, LAZY))
    except DataDependent as error:
        reason = str(error).splitlines()[0]
        why = f"the model looks at numbers ({reason})"
        note = f"computed with real numbers, because the model looks at them ({reason})"
        if isinstance(error, NoKernel):
            why = f"the model needs numbers ({reason})"
            note = f"computed with real numbers: {reason}"
    except ModelError as error:
        reason = lack_of_values(error)
        if not reason:
            raise
        why = f"the model needs numbers ({reason})"
        note = f"computed with real numbers: {reason}"
    if any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
        raise ModelError(
            f"{call.name}: {why}, which one on the meta device has none of; "
            "build it on a real device"
        )
    if not real:
        raise ModelError(f"{call.name}: {why}, and real=False rules out to compute any")
    try:
        graph = call.graph(real=True)
    except DataDependent as again:
        raise ModelError(f"{call.name}: {' '.join(str(again).split())[:400]}") from again
    return replace(graph, notes=(*graph.notes, note))


class ModelCall:
    """One model and the arguments of its forward."""

    def __init__(
        self, torch: Torch, model: Module, args: Args, kwargs: Kwargs, options: CaptureOptions
    ) -> None:
        self.torch, self.model, self.args, self.kwargs = torch, model, args, kwargs
        self.options = options
        self.name = options.name or getattr(model, "original_name", "") or type(model).__name__
        self.again: set[str] = set()  # what earlier runs turned out to need: see `Rerun`
        self.modules: ModuleTable  # of the run at hand

    @property
    def training(self) -> bool:
        """Whether the model is captured in train mode."""
        mode = self.options.mode
        return bool(self.model.training) if mode is None else mode == "train"

    def graph(self, *, real: bool) -> Graph:
        """Run the forward, again if it needs another option, and assemble the graph."""
        with no_modes(self.torch):
            while True:
                try:
                    run, outputs, notes = self._run(real=real)
                    return assemble(self.name, run, outputs, notes)
                except Rerun as found:
                    self.again.add(found.option)
                except DataDependent as found:
                    if not found.of_literal or "literals" in self.again:
                        raise
                    self.again.add("literals")
                except ModelError as error:
                    option = self._option_for(error)
                    if not option:
                        raise
                    self.again.add(option)

    def _option_for(self, error: ModelError) -> str:
        """What another run needs so that it does not fail like this; "" if nothing helps."""
        for applies, option in (
            (assigns_data, DATA_WRITES), (reads_array, "literals"), (fuses_script, "unfused"),
        ):  # fmt: skip
            if option not in self.again and applies(error):
                return option
        if not needs_autograd(error) or "autograd" in self.again:
            return ""
        # an `autograd.Function` or a checkpoint saves tensors, which needs gradients
        tried = not self.training or "no_grad_mode" in self.again
        return "autograd" if tried else "no_grad_mode"

    def _run(self, *, real: bool) -> tuple[Capture, tuple[str, ...], tuple[str, ...]]:
        """Run the forward once: its state, names of its outputs, and notes."""
        torch = self.torch
        data_writes = DATA_WRITES in self.again
        # a forward that differentiates, or assigns to `data`, needs more
        inference = "autograd" not in self.again and not data_writes
        grad_mode = not inference or "no_grad_mode" not in self.again
        with ExitStack() as stack:
            trim_caches()
            modules = self.modules = ModuleTable(torch, self.model, fast_paths(torch))
            params = modules.params
            if is_lazy(torch, params.tensors):
                raise Uninitialized
            short = (
                self.options.shortcuts and not real and inference and not has_global_hooks(torch)
            )
            grads = Grads(training=self.training, grad_mode=grad_mode)
            tracker = Tracker(modules, params, grads)
            if grads.training and strided_kernels(params):
                grads.notes.append(CHANNELS_LAST)
            rules, floating = self.options.rules, floating_of(params)
            run = Capture(torch, tracker, real=real, floating=floating, rules=rules)
            run.shortcuts = self.options.shortcuts
            run.by_products = not inference or "by_products" in self.again
            run.own_params = "param_copies" not in self.again
            stack.enter_context(restored_random_states(torch))
            call = dispatcher(run)
            autocast = stack.enter_context(Autocast(torch, run, call, self._device))
            copies: TensorCopies | None = None
            if real or not (inference or data_writes):
                copies = TensorCopies(torch, tracker, run.unwatched)
                copies.parameters = not inference
                copies.values = not run.own_params
            elif data_writes or autocast.starts_enabled or "meta_arrays" in self.again:
                copies = run.as_meta = MetaCopies(torch, tracker, run.unwatched)
                copies.of_meta = data_writes
                autocast.arrays_on_meta = True
            shadows = Shadows(torch, modules, "own_hooks" in self.again, copies)
            calls = ModuleCalls(torch, run, shadows, short=short)
            module_log = self.options.module_log
            if module_log is not None:
                calls.records = []
            stack.enter_context(calls)
            self._set_mode(shadows)
            flex_notes: dict[str, None] = {}
            if real or "flex" in self.again:
                unknown = partial(unknown_tensor, run)
                stack.enter_context(flex.answered(torch, unknown, flex_notes.setdefault))
            if inference:
                stack.enter_context(torch.inference_mode())
            if grads.training and grad_mode:  # so that parts under no_grad can be seen
                stack.enter_context(torch.enable_grad())
            if isinstance(self.model, torch.jit.ScriptModule) or "unfused" in self.again:
                stack.enter_context(torch.jit.optimized_execution(False))
            args, kwargs = self._inputs(tracker, real)
            run.mode = dispatch_mode(torch)()
            run.mode.call, run.mode.cast = call, autocast.call
            run.mode.casts = autocast.starts_enabled
            try:
                outputs = self._forward(run, calls, args, kwargs)
                if module_log is not None:
                    module_log.fill(modules, calls.records or ())
            finally:
                run.written.restore(tracker.foreign)
                run.mode = run.as_meta = None  # each refers to the other, and to all tensors
                tracker.clear()
            return run, outputs, (*autocast.notes, *flex_notes, *run.notes.values())

    def _forward(
        self, run: Capture, calls: ModuleCalls, args: Args, kwargs: Kwargs
    ) -> tuple[str, ...]:
        """Call the model; the names of its outputs. Errors say in which module they were raised."""
        try:
            with run.mode, self._literals(run), self._data_writes(run):
                result = calls.start(self.model, args, kwargs)
            outputs = self._outputs(run.tracker, result)
            if run.raised is not None:  # the model caught it, and did something else
                raise run.raised
            return outputs
        except DataDependent:
            raise
        except Exception as error:
            if "flex" not in self.again and flex.raised_in(error):
                raise Rerun("flex") from None
            if run.raised is not None:
                raise run.raised from error
            if run.left_out and not run.by_products:  # one may have been read
                raise Rerun("by_products") from None
            failed = self._error(error, *calls.where(error))
            for note in run.notes.values():
                failed.add_note(note)
            raise failed  # noqa: B904  # it has the cause of the model's own

    def _literals(self, run: Capture) -> AbstractContextManager[object]:
        return kept_literals(self.torch, run) if "literals" in self.again else nullcontext()

    def _data_writes(self, run: Capture) -> AbstractContextManager[object]:
        followed = DATA_WRITES in self.again
        return followed_data_writes(self.torch, run) if followed else nullcontext()

    def _set_mode(self, shadows: Shadows) -> None:
        """Put the shadows in train or eval mode, if the model is in another."""
        if self.options.mode is None:
            return
        if {info.attrs.get("training") for info in self.modules.values()} != {self.training}:
            shadows.of(self.model).train(self.training)

    def _device(self) -> str:
        """Type of the device that the model or its inputs are on; "" for the meta device."""
        given = [tensor for _, tensor in tensors_in((self.args, self.kwargs), self.torch)]
        for tensor in chain(self.modules.params.tensors.values(), given):
            if not tensor.is_meta:
                return str(tensor.device.type)
        return ""

    # Inputs and outputs

    def _inputs(self, tracker: Tracker, real: bool) -> tuple[Args, Kwargs]:
        """The arguments of the run, each tensor declared as an input of the graph."""
        torch = self.torch
        copies: dict[int, Tensor] = {}  # by identity of the original

        def copy(tensor: Tensor) -> Tensor:
            if id(tensor) not in copies:
                copies[id(tensor)] = self._copy_of_input(tensor, real)
            return copies[id(tensor)]

        args = map_tensors(tuple(self.args), torch, copy)
        kwargs = map_tensors(self.kwargs, torch, copy)
        given = [tensor for _, tensor in tensors_in((self.args, self.kwargs), torch)]
        originals = {id(copies[id(each)]): each for each in given if id(each) in copies}
        declared: set[int] = set()
        for name, tensor in named_inputs(self.model, args, kwargs, torch):
            if id(tensor) not in declared:
                declared.add(id(tensor))
                _declare_input(tracker, name, tensor, originals.get(id(tensor)), real)
        if not declared:
            found = "no tensor is given"
            if has_arrays((self.args, self.kwargs)):
                found = "NumPy arrays are given, and no tensor; make one by torch.from_numpy(array)"
            raise UsageError(
                f"{self.name}: {found}; say input_size=(1, 3, 224, 224) or input_data="
            )
        return args, kwargs

    def _copy_of_input(self, tensor: Tensor, real: bool) -> Tensor:
        """A tensor on the meta device, or with values if the model runs on real tensors."""
        torch = self.torch
        if tensor.is_nested:
            raise UsageError(
                f"{self.name}: an input is a nested tensor, which has no single shape; "
                "give a padded tensor, or a PackedSequence"
            )
        if tensor.is_quantized and not real:
            raise NoKernel("an input is quantised")
        if tensor.layout is not torch.strided and not real:
            raise NoKernel("an input has a sparse layout")
        if not real:
            return torch.empty_strided(
                tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta"
            )
        if tensor.is_meta:
            tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
        return tensor.detach().clone()

    def _outputs(self, tracker: Tracker, result: Result) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for _, tensor in tensors_in(result, self.torch):
            if id(tensor) in tracker.traced:
                found[tracker.read(tracker.traced[id(tensor)])] = None
        return tuple(found)

    def _error(
        self, error: Exception, module: ModuleInfo | None, shapes: list[tuple[Shape, str]]
    ) -> ModelError:
        """An exception of the forward, with the module that raised it and the shapes it took."""
        if not shapes:
            shapes = shapes_in((self.args, self.kwargs), self.torch)
        where = self.name
        if module is not None and module.path:
            where += f": {module.path}"
        if module is not None:
            where += f" ({type(module.module).__name__})"
        given = ", ".join(
            f"{'x'.join(map(str, shape)) or 'a number'} {dtype}" for shape, dtype in shapes
        )
        hint = ""
        if isinstance(error, TypeError) and "forward()" in str(error):
            hint = "; give what it takes with input_data or --input"
        elif "find engine" in str(error):
            engines = ", ".join(self.torch.backends.quantized.supported_engines) or "none at all"
            hint = f"; set torch.backends.quantized.engine; this PyTorch has {engines}"
        return forward_error(error, f"in {where} on {given or 'no tensor'}{hint}")


def _declare_input(
    tracker: Tracker, name: str, tensor: Tensor, original: Tensor | None, real: bool
) -> None:
    """Declare an input of the graph, with its values if it was given any."""
    traced = tracker.declare(tensor, name)
    if original is not None and original.requires_grad:
        tracker.grads.inputs.add(traced.name)
    if not traced.meta.contiguous:
        tracker.grads.notes.append(f"{traced.name}: {STRIDED}")
    if original is not None and original.device.type == "cpu":
        traced.computable = True
        traced.recompute = Recompute(lambda values: values, (original,), {})
    elif original is not None and original.is_meta and not real:
        traced.computable = traced.no_values = True
    elif tensor.device.type == "cpu":  # lengths of a PackedSequence
        traced.computable = True
