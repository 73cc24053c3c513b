"""One call of an operator: as a key, in our words, run on tensors without numbers, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.formats.torch.aten import FLOATS_ONLY, TYPE_TOLD
from layerscope.formats.torch.aten.declared import BY_PRODUCTS, declared
from layerscope.formats.torch.aten.quantized import NARROW
from layerscope.formats.torch.dtypes import INEXACT, NAMES, name_of
from layerscope.formats.torch.grads import plain_grad
from layerscope.formats.torch.lowering import Lowering, PlannedNode, Refused, TensorRef, Unsupported
from layerscope.formats.torch.packed import Pack, Packs
from layerscope.formats.torch.strides import BY_ELEMENT, element_stride, joined_stride
from layerscope.formats.torch.tensors import TensorMeta, dense
from layerscope.formats.torch.tracking import INTERNED, CallPlan, Interned, Tracker
from layerscope.graph.attributes import CustomCost, DeclaredOutputs, Opaque
from layerscope.graph.types import Shape, Source

MOST_KNOWN = 1 << 22  # elements of a tensor whose numbers are still worked out
# Results stand one behind the other whatever the layout of what they are made of.
CONTIGUOUS_RESULT = frozenset((
    "linear", "bmm", "mm", "addmm", "embedding", "scaled_dot_product_attention", "_grouped_mm",
    "layer_norm", "softmax", "_softmax", "log_softmax", "sum", "mean", "amax", "amin", "var", "std",
    "var_mean", "linalg_vector_norm", "norm", "prod", "logsumexp", "cumsum", "topk", "repeat",
))  # fmt: skip
# ModuleTable and masks tell which numbers are taken; words of ours look at their types.
INDEX_ARGS = frozenset((
    "embedding", "index", "index_select", "gather", "take_along_dim", "masked_fill", "where",
))  # fmt: skip
# What PyTorch says where a kernel needs values and has none.
LACKS_NUMBERS = re.compile(r"\bmeta\b|\bfake impl|\bsparse\b", re.IGNORECASE).search
PACKING = ("_pack_padded_sequence", "_pad_packed_sequence")  # move elements, compute nothing
LISTS = frozenset(("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_chunk"))
WHOLE = frozenset((int,))  # types of sizes and axes
MOST_REMEMBERED = 100_000  # calls; more are forgotten all at once


def forget() -> None:
    """Begin anew with what is known of calls, where it is much; other runs keep what they have."""
    known = INTERNED[0]
    if sum(map(len, [*known.memo.values()])) > MOST_REMEMBERED or len(known.sigs) > MOST_REMEMBERED:
        INTERNED[0] = Interned()


class DataDependent(Exception):
    """An operator needs values that a run without numbers does not have; the text names it."""

    of_literal = False  # whether values that the forward itself writes out were lost before


class NoKernel(DataDependent):
    """An operator that PyTorch has no kernel for without numbers."""


class Info(Struct, frozen=True, eq=False):
    """What is known of an operator before any call of it."""

    func: Any  # kept, so that no other comes to have its identity
    name: str  # of the table: without overload, and without the mark of working in place
    full: str
    source: Source
    words: Any  # of the table, None if it has none
    kind: str  # new | view | write | constant | drawn | reads
    in_place: bool
    narrow: bool = False  # of narrow numbers, which tensors without numbers cannot have
    others: int = 0  # results beside the first


INFOS: dict[int, Info] = {}  # by identity of the operator


class Caller:
    """What every kind of call needs: keys, words, runs without numbers."""

    def __init__(
        self, torch: Any, tracker: Tracker, *, real: bool, floating: str, rules: Mapping[str, Any]
    ) -> None:
        self.torch = torch
        self.tracker = tracker
        self.real = real  # numbers are computed: nothing is answered without them
        self.floating = floating
        self.shortcuts = True
        self.rules = rules
        known = tracker.interned.memo
        self.memo = known.setdefault((floating, tracker.grads.training), {}) if not rules else {}
        self.mode: Any = None
        self.as_meta: Any = None  # makes of a constant one on the meta device, where all must be
        self.asked: DataDependent | None = None  # raised in the forward, which may have caught it
        self.by_values = False  # whether the last call had sizes that depend on values
        self.notes: dict[str, str] = {}  # what was assumed of inputs, by their names
        self._meta, self._cpu = torch.device("meta"), torch.device("cpu")
        self._dtypes = {ours: getattr(torch, theirs) for theirs, ours in reversed(NAMES.items())
                        if hasattr(torch, theirs)}  # fmt: skip
        keys = torch._C.DispatchKey
        self._python = torch._C.DispatchKeySet(keys.Python).add(keys.PythonTLSSnapshot)
        self._guard = torch._C._ExcludeDispatchKeyGuard
        self._unseen = self._guard(self._python)
        self._inference = torch.is_inference_mode_enabled
        self.plain_grad = plain_grad(torch, tracker.grads)
        self._types = (torch.Tensor, torch.nn.Parameter)
        self._plain = frozenset(self._types)
        self._object = torch.ScriptObject
        self._narrow = frozenset((torch.quint8, torch.qint8, torch.qint32))
        self._floats = frozenset((torch.float32, torch.float16, torch.bfloat16, torch.float64))
        self._dtype = torch.dtype
        self._choices = frozenset((torch.int64, torch.int32, torch.bool))
        unwatched = partial(self._guard, self._python)  # a method of ours would hold all of this
        self.packs = Packs(torch, tracker.places, tracker.held, unwatched)

    def is_composite(self, func: Any) -> bool:
        """Whether PyTorch has it made of other operators, and nothing else."""
        has_kernel = self.torch._C._dispatch_has_kernel_for_dispatch_key
        return bool(has_kernel(func.name(), "CompositeImplicitAutograd"))

    def unwatched(self) -> Any:
        """A context in which calls do not come here."""
        return self._guard(self._python)

    def unseen(self, sig: TensorMeta) -> Any:
        """As `empty`, while calls come here."""
        guard = self._unseen
        guard.__enter__()
        try:
            return self.empty(sig)
        finally:
            guard.__exit__(None, None, None)

    def empty(self, sig: TensorMeta) -> Any:
        """A tensor without numbers: in a third of the time, another look at one made before."""
        if sig.blank is not None and self._inference():
            return sig.blank.detach()
        out = self.torch.empty_strided(sig.shape, sig.stride, dtype=sig.dtype, device=self._meta)
        if type(out) is self._types[0] and out.is_inference():
            sig.blank = out.detach()  # the model may turn what it is handed, in place
        return out

    def _freeze(self, args: Any, given: list[Any]) -> tuple[Any, ...]:
        """Arguments as a key; tensors are collected on the way."""
        frozen: list[Any] = []
        values = self.tracker.values
        for arg in args:
            kind = type(arg)
            if kind in self._plain or isinstance(arg, self._types[0]):
                value = values.get(id(arg)) or self.tracker.value(arg)
                given.append(value)
                frozen.append(value.sig)
            elif kind is int or arg is None or kind is str:
                frozen.append(arg)
            elif kind is float or kind is bool:
                frozen.append((kind, arg))  # 1, 1.0 and True are equal, and not the same
            elif kind is list or kind is tuple or isinstance(arg, (list, tuple)):
                frozen.append(self._freeze_row(arg, given))
            elif kind is self._object:
                frozen.append(self._freeze_packed(arg, given))
            else:
                try:
                    hash(arg)
                    frozen.append(arg)
                except TypeError:
                    frozen.append(object())
        return tuple(frozen)

    def key_of(self, args: Any, kwargs: Any, given: list[Any]) -> tuple[Any, ...]:
        """A key for all arguments of a call; values of its tensors are collected in order."""
        return (self._freeze(args, given), self._freeze_named(kwargs, given) if kwargs else None)

    def _freeze_row(self, row: Any, given: list[Any]) -> tuple[Any, ...]:
        kinds = {*map(type, row)}
        if kinds <= WHOLE:
            return tuple(row)
        if not kinds <= self._plain:
            return self._freeze(row, given)
        values, new = self.tracker.values, self.tracker.value
        found = [values.get(id(arg)) or new(arg) for arg in row]
        given += found
        return tuple([value.sig for value in found])

    def _freeze_packed(self, arg: Any, given: list[Any]) -> Any:
        pack = self.packs.of(arg)
        if pack is None:
            return object()
        arrays = [self.tracker.value(array) for array in pack.arrays.values()]
        given += arrays
        return (pack.conv_args, *pack.arrays, *[value.sig for value in arrays])

    def _freeze_named(self, kwargs: Any, given: list[Any]) -> Any:
        return (tuple(kwargs), self._freeze(kwargs.values(), given))

    def _translate(self, info: Info, args: Any, kwargs: Any, given: Any) -> Any:
        """The call in our words: a draft and its results, None where there are none."""
        draft = Lowering(info.source, self.tracker.same, self.floating)
        draft.in_place = info.in_place
        draft.training = self.tracker.grads.training
        words = info.words
        if words is None or any(value.sig.sparse for value in given):
            return draft, None, None
        if not info.narrow and given and given[0].sig.dtype in self._narrow:
            words = NARROW.get(info.name, words)
        elif given and not info.narrow and info.name in FLOATS_ONLY:
            typed = self._dtype in map(type, (*args, *kwargs.values()))
            if not (typed and info.name in TYPE_TOLD):
                _need_floats(info, given[0].sig)
        refs = iter([
            TensorRef(
                (sig := value.sig).shape, sig.name, place, sig.kind != "", sig.kind == "buffer",
                stored_dtype=sig.stored_dtype,
            )
            for place, value in enumerate(given)
        ])  # fmt: skip
        tensor, plain = self.torch.Tensor, self._plain

        def refer(arg: Any) -> Any:
            if isinstance(arg, tensor):
                return next(refs)
            if isinstance(arg, (list, tuple)):
                if plain.issuperset(map(type, arg)):
                    return [*islice(refs, len(arg))]
                return [refer(each) for each in arg]
            if type(arg) is self._object:
                pack = self.packs.of(arg)
                return pack and Pack({name: next(refs) for name in pack.arrays}, pack.conv_args)
            return arg

        told = [refer(arg) for arg in args]
        named = {name: refer(arg) for name, arg in kwargs.items()}
        try:
            made = words(draft, *told, **named)
        except (Unsupported, ShapeError, TypeError, ValueError, IndexError):
            return draft, None, None
        if isinstance(made, list):
            return draft, made, list if info.name in LISTS else tuple
        return draft, [made], None

    def _run(self, info: Info, func: Any, args: Any, kwargs: Any) -> Any:
        """The call itself, on tensors without numbers."""
        if self.real:
            return func(*args, **kwargs)
        named = {k: self.on_meta(v) for k, v in kwargs.items()}
        if "device" in named:
            named["device"] = self._meta
        try:
            return func(*self.on_meta(args), **named)
        except (NotImplementedError, RuntimeError) as error:
            lacks_kernel = isinstance(error, NotImplementedError) or LACKS_NUMBERS(str(error))
            if not lacks_kernel:
                raise
            found = self.sized(info, func, args, kwargs)
            if found is not None:
                return found
            raise self.needs_numbers(info, "has no kernel without them", NoKernel) from error

    def sized(self, info: Info, func: Any, args: Any, kwargs: Any) -> Any:
        """Results of an operator whose sizes depend on values, where these are known."""
        return None

    def needs_numbers(self, info: Info, why: str, kind: Any = DataDependent) -> DataDependent:
        """The error that says which operator asked for numbers, and in which module."""
        found: DataDependent = kind(f"{info.full} {why}{self.where()}")
        found.of_literal = self.tracker.lost_values
        self.asked = found
        return found

    def where(self) -> str:
        """The module that is running, for a message; "" for the model itself."""
        place = self.tracker.place
        return f", in {place.path}" if place is not None and place.path else ""

    def on_meta(self, arg: Any) -> Any:
        """Arguments with tensors without numbers in place of those that have some."""
        if isinstance(arg, self.torch.Tensor):
            if arg.device == self._meta and type(arg) in self._types:
                return arg
            value = self.tracker.value(arg)
            if value.sig.sparse:
                self.asked = NoKernel("a sparse tensor has no kernels without them")
                raise self.asked
            if value.twin is None:
                # a view of what autograd may know of must be one that it may know of, too
                with self.torch.inference_mode(arg.is_inference()):
                    value.twin = self.empty(value.sig)
            return value.twin
        if isinstance(arg, (list, tuple)):
            return type(arg)([self.on_meta(each) for each in arg])
        if isinstance(arg, self.torch.device):
            return self._meta
        return arg

    def _foreseen(self, info: Info, results: Any, given: Any) -> list[TensorMeta] | None:
        """How the results stand in storage, where PyTorch need not be asked."""
        if results is None or not self.shortcuts or self.real:
            return None
        if any(type(ref.value_id) is int for ref in results):
            return None
        sigs = [value.sig for value in given]
        name, made = info.name, results[0]
        if not self.usual(name, sigs):
            return None
        if makes_fresh(name, given) or False not in [sig.contiguous for sig in sigs]:
            return self.sigs_of(results, sigs)
        if all(sum(size > 1 for size in ref.shape) < 2 for ref in results):
            return self.sigs_of(results, sigs)  # of a single row there is one layout
        stride = None
        if name in BY_ELEMENT:
            stride = element_stride(made.shape, sigs)
        elif name == "cat":
            stride = joined_stride(made.shape, sigs)
        if stride is None:
            return None
        [sig] = self.sigs_of(results, sigs)
        return [self.tracker.sig_of(sig.shape, stride, sig.dtype)]

    def usual(self, name: str, sigs: list[TensorMeta]) -> bool:
        """Whether numbers are floats of one type; of others PyTorch says what it makes of them."""
        kinds = {sig.dtype for sig in sigs}
        if name in INDEX_ARGS:
            kinds -= self._choices
        elif name == "scaled_dot_product_attention" and len(sigs) == 4:
            outer = zip(sigs[3].shape[-3::-1], sigs[0].shape[-3::-1], strict=False)
            if len(sigs[3].shape) > len(sigs[0].shape) or any(
                n not in (1, size) for n, size in outer
            ):
                return False  # a mask for other heads or batches
            kinds.discard(self.torch.bool)
        return len(kinds) == 1 and kinds <= self._floats

    def _checked(
        self, info: Info, draft: Any, results: Any, outs: Any, given: Any, way: str = ""
    ) -> Any:
        """An entry whose results have the shapes that PyTorch made, else an unknown one."""
        many = isinstance(outs, (list, tuple))
        listed = list(outs) if many else [outs]
        tensors = [out for out in listed if isinstance(out, self.torch.Tensor)]
        if many and not listed:  # an axis of size 0, taken apart
            return CallPlan((), (), (), list if isinstance(outs, list) else tuple, way), listed
        if len(tensors) != len(listed) or not tensors:
            if not tensors:
                return None, outs
            raise NotImplementedError(f"{info.full} makes tensors and other things")
        sigs = tuple([self.tracker.sig(out) for out in tensors])
        form = (list if isinstance(outs, list) else tuple) if many else None
        if results is not None:
            results = results[: len(sigs)]
            if len(results) < len(sigs) and info.name in BY_PRODUCTS:
                fits = all(r.shape == s.shape for r, s in zip(results, sigs, strict=False))
                if fits:
                    cast = [draft.cast(r, s.name) for r, s in zip(results, sigs, strict=False)]
                    return self._entry(draft, cast, sigs, form, way), listed
            if len(results) == len(sigs):
                fits = all(r.shape == s.shape for r, s in zip(results, sigs, strict=True))
                if fits:
                    cast = [draft.cast(r, s.name) for r, s in zip(results, sigs, strict=True)]
                    return self._entry(draft, cast, sigs, form, way), listed
        if all(0 in sig.shape for sig in sigs):
            return CallPlan((), (), sigs, form, way), listed
        return self._unknown(info, sigs, given, form, way), listed

    def _unknown(
        self, info: Info, sigs: tuple[TensorMeta, ...], given: Any, form: Any, way: str = ""
    ) -> CallPlan:
        draft = Lowering(info.source, self.tracker.same, self.floating)
        places = tuple(range(len(given)))
        name, told = self._declared(info, sigs, given)
        if info.name in PACKING:
            name, told = "custom", CustomCost(told.shapes, told.dtypes)
        step = PlannedNode(name, places, told, (), len(sigs), draft.source)
        return CallPlan((step,), tuple([(0, n) for n in range(len(sigs))]), sigs, form, way)

    def _declared(self, info: Info, sigs: tuple[TensorMeta, ...], given: Any) -> tuple[str, Any]:
        """The op that counts an operator by the shapes that its run made, else its own name."""
        shapes = tuple([sig.shape for sig in sigs])
        dtypes = tuple([sig.name for sig in sigs])
        told = DeclaredOutputs(shapes, dtypes)
        if info.full.startswith("aten."):
            op = declared(info.name, [value.sig.shape for value in given], told)
            if op:
                return op, self.tracker.same.setdefault((DeclaredOutputs, told), told)
        return info.full, Opaque(shapes, dtypes)

    def _nothing(self, outs: Any, entry: CallPlan) -> None:
        """Tensors without elements: no node makes them."""
        for out, sig in zip(outs, entry.outs, strict=True):
            made = self.tracker.register(out, "", sig, plain=False)
            made.fixed = made.known = True
            made.recipe = (self.torch.zeros, (sig.shape,), {"dtype": sig.dtype}, None, 0)

    def _entry(
        self, draft: Lowering, results: list[TensorRef], sigs: Any, form: Any, way: str = ""
    ) -> CallPlan:
        places = tuple([ref.value_id for ref in results])
        return CallPlan(tuple(draft.steps), places, tuple(sigs), form, way)

    def sigs_of(self, results: list[TensorRef], given: list[TensorMeta]) -> list[TensorMeta]:
        """What results are that stand one behind the other."""
        made = []
        for ref in results:
            same = next((sig.dtype for sig in given if sig.name == ref.dtype), None)
            kind = self._dtypes[ref.dtype] if same is None else same
            made.append(self.tracker.sig_of(ref.shape, dense(ref.shape), kind))
        return made


def _need_floats(info: Info, sig: TensorMeta) -> None:
    if not sig.name.startswith(INEXACT):
        raise Refused(f"{info.full} of {sig.name}, which is for floats alone")


def makes_fresh(name: str, given: Any) -> bool:
    """Whether results stand one behind the other whatever the layout of what is given."""
    if name == "matmul":  # of matrices alone, or of one with many, the result may be turned
        return all(len(value.sig.shape) > 2 for value in given)
    return name in CONTIGUOUS_RESULT


def shapes_in(arg: Any, torch: Any) -> list[tuple[Shape, str]]:
    """Shapes and number types of all tensors in a nest of arguments."""
    if isinstance(arg, torch.Tensor):
        return [(tuple(arg.shape), name_of(arg.dtype))]
    if isinstance(arg, dict):
        arg = list(arg.values())
    if isinstance(arg, (list, tuple)):
        return [shape for each in arg for shape in shapes_in(each, torch)]
    return []
