"""Every call that reaches PyTorch's dispatcher, turned into nodes.

Tensors are on the meta device: shapes and layouts without numbers. Composite operators arrive whole
because the model runs in inference mode; what has no words of ours is opened up, and what cannot
be is kept as unknown under its own name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from layerscope.errors import ShapeError
from layerscope.formats.torch.aten import CONSTANTS, DRAWN, TABLE
from layerscope.formats.torch.aten.quantized import ALONE, NARROW, QUANTIZED
from layerscope.formats.torch.draft import Draft, NoWords, Ref, Step
from layerscope.formats.torch.dtypes import FLOATS, NAMES, name_of
from layerscope.formats.torch.packed import Pack, Packs
from layerscope.formats.torch.tracking import SAME, SIGS, Entry, Tracker
from layerscope.formats.torch.values import Sig, Value, dense
from layerscope.graph.attributes import Counted, Opaque, Told
from layerscope.graph.types import Shape, Source, elements

MOST_KNOWN = 1 << 22  # elements of a tensor whose numbers are still worked out
# Results stand one behind the other whatever the layout of what they are made of.
FRESH = frozenset((
    "linear", "bmm", "mm", "addmm", "embedding", "scaled_dot_product_attention", "_grouped_mm",
    "layer_norm",
))  # fmt: skip
READS = frozenset(("_local_scalar_dense", "item", "is_nonzero", "equal", "allclose"))


MOST_REMEMBERED = 100_000  # calls; more are forgotten all at once
MEMO: dict[str, dict[Any, Entry]] = {}  # by the model's number type


def forget() -> None:
    """Drop what is known of calls, where it is much."""
    if sum(map(len, MEMO.values())) > MOST_REMEMBERED or len(SIGS) > MOST_REMEMBERED:
        MEMO.clear()
        SIGS.clear()
        SAME.clear()


class DataDependent(Exception):
    """The model looks at numbers that a run without numbers does not have."""


class NoKernel(DataDependent):
    """PyTorch cannot run without numbers what the model asks of it."""


class Registered(Struct, frozen=True):
    """A formula that PyTorch's own counter was given; it takes tensors."""

    formula: Any


class Info(Struct, frozen=True):
    """What is known of an operator before any call of it."""

    name: str  # of the table: without overload, and without the mark of working in place
    full: str
    source: Source
    words: Any  # of the table, None if it has none
    kind: str  # new | view | write | constant | drawn | reads
    in_place: bool
    composite: bool
    narrow: bool = False  # of narrow numbers, which tensors without numbers cannot have


class Recorder:
    """Handles calls of operators and of modules that are one operation."""

    def __init__(
        self, torch: Any, tracker: Tracker, *, real: bool, floating: str, rules: Mapping[str, Any]
    ) -> None:
        self.torch = torch
        self.tracker = tracker
        self.real = real  # numbers are computed: nothing is answered without them
        self.floating = floating
        self.shortcuts = True
        self.rules = rules
        self.memo = MEMO.setdefault(floating, {}) if not rules else {}
        self.infos: dict[Any, Info] = {}
        self.mode: Any = None
        self._meta = torch.device("meta")
        self._dtypes = {ours: getattr(torch, theirs) for theirs, ours in reversed(NAMES.items())
                        if hasattr(torch, theirs)}  # fmt: skip
        keys = torch._C.DispatchKey
        self._python = torch._C.DispatchKeySet(keys.Python).add(keys.PythonTLSSnapshot)
        self._guard = torch._C._ExcludeDispatchKeyGuard
        self._types = (torch.Tensor, torch.nn.Parameter)
        self._object = torch.ScriptObject
        self._narrow = frozenset((torch.quint8, torch.qint8, torch.qint32))
        unwatched = partial(self._guard, self._python)  # a method of ours would hold all of this
        self.packs = Packs(torch, tracker.places, tracker.held, unwatched)

    # Operators

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """One call of the dispatcher."""
        info = self.infos.get(func)
        if info is None:
            info = self.infos[func] = self._inform(func)
        kind = info.kind
        if kind == "constant" or kind == "drawn":
            return self._constant(info, func, args, kwargs)
        given: list[Any] = []
        frozen = self._freeze(args, given)
        key = (func, frozen, self._freeze_named(kwargs, given) if kwargs else None)
        if kind == "reads":
            return self._look(func, args, kwargs)
        if not given:
            return func(*args, **kwargs)
        if all(value.constant for value in given):
            return self._folded(info, func, args, kwargs, given, key)
        if kind == "write":
            return self._write(info, func, args, kwargs, given, key)
        entry = self.memo.get(key)
        if kind == "view":
            return self._view(info, func, args, kwargs, given, key, entry)
        if self.real or not self.shortcuts:
            entry = None
        outs = None
        if entry is None:
            entry, outs = self._new(info, func, args, kwargs, given)
            if entry is None:
                return outs
            # what others define may be defined otherwise next time; with numbers more can be run
            if info.words is not None and not self.real:
                self.memo[key] = entry
        if outs is None:
            outs = [self.empty(sig) for sig in entry.outs]
        if not entry.results:
            self._nothing(outs, entry)
            return outs[0] if entry.form is None else entry.form(outs)
        names = self.tracker.emit(entry, given)
        self._registered(outs, names, entry, func, args, kwargs, given)
        if entry.form is None:
            return outs[0]
        return entry.form(outs)

    def _registered(
        self, outs: Any, names: Any, entry: Entry, func: Any, args: Any, kwargs: Any, given: Any
    ) -> None:
        known = all(value.known for value in given)
        register = self.tracker.register
        for n, (out, name, sig) in enumerate(zip(outs, names, entry.outs, strict=True)):
            made = register(out, name, sig)
            if known and out.numel() <= MOST_KNOWN:
                made.known = True
                made.recipe = (func, args, kwargs, n if entry.form else None)

    def unwatched(self) -> Any:
        """A context in which calls do not come here."""
        return self._guard(self._python)

    def unseen(self, sig: Sig) -> Any:
        """As `empty`, while calls come here."""
        guard = self._guard(self._python)
        guard.__enter__()
        out = self.torch.empty_strided(sig.shape, sig.stride, dtype=sig.dtype, device=self._meta)
        guard.__exit__(None, None, None)
        return out

    def empty(self, sig: Sig) -> Any:
        """A tensor without numbers."""
        return self.torch.empty_strided(sig.shape, sig.stride, dtype=sig.dtype, device=self._meta)

    def _inform(self, func: Any) -> Info:
        schema = func._schema
        full = schema.name.replace("::", ".")
        space, _, packet = full.partition(".")
        writes = [arg for arg in schema.arguments if arg.alias_info and arg.alias_info.is_write]
        in_place = packet.endswith("_") and not packet.endswith("__") and bool(writes)
        name = packet[:-1] if in_place else packet
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
        narrow = space == "quantized" or (space == "aten" and name in ALONE)
        if narrow:
            words = QUANTIZED.get(name)
        composite = self.torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), "CompositeImplicitAutograd"
        )
        source = Source(op=full)
        return Info(name, full, source, words, kind, in_place, composite, narrow)

    def _freeze(self, args: Any, given: list[Any]) -> tuple[Any, ...]:
        """Arguments as a key; tensors are collected on the way."""
        frozen: list[Any] = []
        for arg in args:
            kind = type(arg)
            if kind is int or arg is None or kind is str:
                frozen.append(arg)
            elif kind is float or kind is bool:
                frozen.append((kind, arg))  # 1, 1.0 and True are equal, and not the same
            elif isinstance(arg, self.torch.Tensor):
                value = self.tracker.values.get(id(arg))
                if value is None:
                    value = self.tracker.value(arg)
                given.append(value)
                frozen.append(value.sig)
            elif kind is list or kind is tuple or isinstance(arg, (list, tuple)):
                frozen.append(self._freeze(arg, given))
            elif kind is self._object:
                frozen.append(self._freeze_packed(arg, given))
            else:
                try:
                    hash(arg)
                    frozen.append(arg)
                except TypeError:
                    frozen.append(object())
        return tuple(frozen)

    def _freeze_packed(self, arg: Any, given: list[Any]) -> Any:
        pack = self.packs.of(arg)
        if pack is None:
            return object()
        arrays = [self.tracker.value(array) for array in pack.arrays.values()]
        given += arrays
        return (pack.told, *pack.arrays, *[value.sig for value in arrays])

    def _freeze_named(self, kwargs: Any, given: list[Any]) -> Any:
        return (tuple(kwargs), self._freeze(kwargs.values(), given))

    def _new(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any) -> Any:
        """The entry of a call not seen before, and its results if it had to be run."""
        if info.narrow and info.name.endswith("_unpack"):
            found = self.packs.of(args[0])
            if found is not None:  # its arrays have their names; those unpacked anew have none
                return None, found.arrays["weight"] if "embed" in info.name else found.pair
        draft, results, form = self._translate(info, args, kwargs, given)
        if info.narrow and results is not None and not self.real:
            if form is not None or results[0].dtype not in FLOATS:
                raise NoKernel(f"{info.full} has no kernel without them")
            sigs = self.sigs_of(results, [value.sig for value in given])
            return self._entry(draft, results, sigs, form), None
        if self._tells_layout(info, results, given):
            return self._entry(
                draft, results, self.sigs_of(results, [value.sig for value in given]), form
            ), None
        rule = self._rule(info, func) if results is None else None
        if results is None and rule is None and info.composite:
            with self.mode:
                opened = func.decompose(*args, **kwargs)
            if opened is not NotImplemented:
                return None, opened
        try:
            outs = self._run(info, func, args, kwargs)
        except RuntimeError:
            if results is None or self.real or not _makes_fresh(info.name, given):
                raise  # of the others, the kernels without numbers refuse what the real ones do
            return self._entry(
                draft, results, self.sigs_of(results, [value.sig for value in given]), form
            ), None
        if rule is not None:
            return self._ruled(info, rule, args, kwargs, outs, given)
        return self._checked(info, draft, results, outs, given)

    def _tells_layout(self, info: Info, results: Any, given: Any) -> bool:
        """Whether the results stand one behind the other, and PyTorch need not be asked."""
        return (
            results is not None
            and self.shortcuts
            and not self.real
            and (_makes_fresh(info.name, given) or all(value.sig.contiguous for value in given))
            and all(type(ref.place) is not int for ref in results)
        )

    def _checked(self, info: Info, draft: Any, results: Any, outs: Any, given: Any) -> Any:
        """An entry whose results have the shapes that PyTorch made, else an unknown one."""
        many = isinstance(outs, (list, tuple))
        listed = list(outs) if many else [outs]
        tensors = [out for out in listed if isinstance(out, self.torch.Tensor)]
        if len(tensors) != len(listed) or not tensors:
            if not tensors:
                return None, outs
            raise NotImplementedError(f"{info.full} makes tensors and other things")
        sigs = tuple([self.tracker.sig(out) for out in tensors])
        form = (list if isinstance(outs, list) else tuple) if many else None
        if results is not None:
            results = results[: len(sigs)]
            if len(results) == len(sigs):
                fits = all(r.shape == s.shape for r, s in zip(results, sigs, strict=True))
                if fits:
                    cast = [draft.cast(r, s.name) for r, s in zip(results, sigs, strict=True)]
                    return self._entry(draft, cast, sigs, form), listed
        if all(0 in sig.shape for sig in sigs):
            return Entry((), (), sigs, form), listed
        return self._unknown(info, sigs, given, form), listed

    def _nothing(self, outs: Any, entry: Entry) -> None:
        """Tensors without elements: no node makes them."""
        for out, sig in zip(outs, entry.outs, strict=True):
            made = self.tracker.register(out, "", sig, plain=False)
            made.fixed = True

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
    ) -> tuple[Entry, Any]:
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
        told_us = Counted(shapes, tuple([sig.name for sig in sigs]), **self._counts(counts))
        step = Step("taught", tuple(range(len(given))), told_us, (), len(sigs), info.source)
        places = tuple([(0, n) for n in range(len(sigs))])
        return Entry((step,), places, sigs, tuple if many else None), listed

    def _counts(self, counts: Any) -> Mapping[str, int]:
        """What a rule tells: operations by kind, or multiply-adds alone."""
        return counts if isinstance(counts, Mapping) else {"mac": counts}

    def _shapes(self, arg: Any) -> Any:
        """Arguments with shapes in place of tensors."""
        if isinstance(arg, self.torch.Tensor):
            return tuple(arg.shape)
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._shapes(each) for each in arg])
        return arg

    def _unknown(self, info: Info, sigs: tuple[Sig, ...], given: Any, form: Any) -> Entry:
        draft = Draft(info.source, self.tracker.same, self.floating)
        places = tuple(range(len(given)))
        shapes = tuple([sig.shape for sig in sigs])
        told: Any = Opaque(shapes)
        name = info.full
        if name == "aten.nonzero":  # data decides how many there are, the run has seen them
            compared = elements(given[0].sig.shape)
            name, told = "taught", Counted(shapes, (sigs[0].name,), comp=compared)
        step = Step(name, places, told, (), len(sigs), draft.source)
        return Entry((step,), tuple([(0, n) for n in range(len(sigs))]), sigs, form)

    def unknown(self, name: str, x: Any, shape: Shape | None = None) -> Any:
        """A tensor that something without figures makes of another; fp32 if of another shape."""
        value = self.tracker.value(x)
        sig = self.tracker.sig_of(value.sig.shape, value.sig.stride, value.sig.dtype)
        if shape is not None:
            sig = self.tracker.sig_of(shape, dense(shape), self.torch.float32)
        step = Step(name, (0,), Opaque((sig.shape,)), (), 1, Source(op=name))
        if name in self.rules:
            counts = self._counts(self.rules[name](value.sig.shape, out_shape=sig.shape))
            told = Counted((sig.shape,), (sig.name,), **counts)
            step = Step("taught", (0,), told, (), 1, Source(op=name))
        [made] = self.tracker.emit(Entry((step,), ((0, 0),), (sig,)), [value])
        with self.unwatched():
            out = x.new_zeros(sig.shape, dtype=sig.dtype) if self.real else self.empty(sig)
        self.tracker.register(out, made, sig)
        return out

    def _entry(self, draft: Draft, results: list[Ref], sigs: Any, form: Any) -> Entry:
        return Entry(tuple(draft.steps), tuple([ref.place for ref in results]), tuple(sigs), form)

    def sigs_of(self, results: list[Ref], given: list[Sig]) -> list[Sig]:
        """What results are that stand one behind the other."""
        kinds = {sig.name: sig.dtype for sig in given}
        return [
            self.tracker.sig_of(
                ref.shape, dense(ref.shape), kinds.get(ref.dtype) or self._dtypes[ref.dtype]
            )
            for ref in results
        ]

    def _translate(self, info: Info, args: Any, kwargs: Any, given: Any) -> Any:
        """The call in our words: a draft and its results, None where there are none."""
        draft = Draft(info.source, self.tracker.same, self.floating)
        draft.in_place = info.in_place
        words = info.words
        if words is None:
            return draft, None, None
        if not info.narrow and given and given[0].sig.dtype in self._narrow:
            words = NARROW.get(info.name, words)
        counter = iter(range(len(given)))

        def ref() -> Ref:
            place = next(counter)
            sig = given[place].sig
            return Ref(sig.shape, sig.name, place, sig.kind != "", sig.kind == "buffer")

        def refer(arg: Any) -> Any:
            if isinstance(arg, self.torch.Tensor):
                return ref()
            if isinstance(arg, (list, tuple)):
                return [refer(each) for each in arg]
            if type(arg) is self._object:
                pack = self.packs.of(arg)
                return pack and Pack({name: ref() for name in pack.arrays}, pack.told)
            return arg

        told = [refer(arg) for arg in args]
        named = {name: refer(arg) for name, arg in kwargs.items()}
        try:
            made = words(draft, *told, **named)
        except (NoWords, ShapeError, TypeError, ValueError, IndexError):
            return draft, None, None
        if isinstance(made, list):
            return draft, made, list if info.name in LISTS else tuple
        return draft, [made], None

    def _run(self, info: Info, func: Any, args: Any, kwargs: Any) -> Any:
        """The call itself, on tensors without numbers."""
        if self.real:
            return func(*args, **kwargs)
        args, kwargs = self.on_meta(args), {k: self.on_meta(v) for k, v in kwargs.items()}
        if "device" in kwargs:
            kwargs["device"] = self._meta
        try:
            return func(*args, **kwargs)
        except NotImplementedError as error:
            raise NoKernel(f"{info.full} has no kernel without them") from error
        except RuntimeError as error:
            if "meta" in str(error).lower() and "device" in str(error).lower():
                raise DataDependent(f"{info.full}: {error}") from error
            raise

    def on_meta(self, arg: Any) -> Any:
        """Arguments with tensors without numbers in place of those that have some."""
        if isinstance(arg, self.torch.Tensor):
            if arg.device == self._meta and type(arg) in self._types:
                return arg
            value = self.tracker.value(arg)
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

    # Constants and numbers

    def _constant(self, info: Info, func: Any, args: Any, kwargs: Any) -> Any:
        """What is made of nothing: with its numbers on a real device if small, without on meta."""
        given: list[Any] = []
        self._freeze(args, given)
        likes = any(value.tensor.device == self._meta or value.sig.kind for value in given)
        if likes and not self.real and "device" not in kwargs:
            out = self._run(info, func, args, kwargs)
        else:
            out = func(*args, **kwargs)
        sig = self.tracker.sig(out)
        made = self.tracker.register(out, "", sig, plain=False)
        made.fixed = True
        drawn = info.kind == "drawn"
        made.recipe = "random" if drawn else None
        if out.device != self._meta and out.numel() <= MOST_KNOWN:
            made.known = True
        elif not drawn and all(v.known for v in given) and out.numel() <= MOST_KNOWN:
            made.known = True
            made.recipe = (func, args, kwargs, None)
        return out

    def _folded(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        """A call on constants alone makes a constant; with their numbers where all have some."""
        target = given[0]
        numbers = all(v.tensor.device != self._meta and v.known for v in given)
        if info.kind == "write":
            if numbers or self.real:
                return func(*args, **kwargs)
            target.root.known = target.known = False
            if self.torch.Tag.inplace_view in func.tags or not info.in_place:
                return self._run(info, func, args, kwargs)
            return target.tensor
        outs = (
            func(*args, **kwargs) if numbers else self._alike(info, func, args, kwargs, given, key)
        )
        many = isinstance(outs, (list, tuple))
        listed = list(outs) if many else [outs]
        drawn = any(value.recipe == "random" for value in given)
        known = all(value.known for value in given)
        for n, out in enumerate(listed):
            if not isinstance(out, self.torch.Tensor) or id(out) in self.tracker.values:
                continue
            made = self.tracker.register(out, "", self.tracker.sig(out), plain=False)
            made.fixed = True
            if numbers or (known and out.numel() <= MOST_KNOWN):
                made.known = True
                made.recipe = None if numbers else (func, args, kwargs, n if many else None)
            elif drawn:
                made.recipe = "random"
            if info.kind == "view" and info.words is not None:
                self._linked(info, args, kwargs, given, made, n, outs, key)
        return outs

    def _alike(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        """What a call makes without numbers, as its words or one like it tell; views are run."""
        if info.kind != "new" or info.words is None or not self.shortcuts or self.real:
            return self._run(info, func, args, kwargs)
        entry = self.memo.get(("folded", key))
        if entry is not None:
            return self.empty(entry.outs[0])
        out = sig = None
        _, results, form = self._translate(info, args, kwargs, given)
        if form is None and self._tells_layout(info, results, given):
            [sig] = self.sigs_of(results, [value.sig for value in given])
            out = self.empty(sig)
        else:
            out = self._run(info, func, args, kwargs)
            if type(out) is self.torch.Tensor and out.device == self._meta:
                sig = self.tracker.sig(out)
        if sig is not None:
            self.memo["folded", key] = Entry((), (), (sig,))
        return out

    def _linked(
        self,
        info: Info,
        args: Any,
        kwargs: Any,
        given: Any,
        made: Value,
        n: int,
        outs: Any,
        key: Any,
    ) -> None:
        """A view of a constant: written into, it is a constant no more, nor what it is of."""
        source = given[0]
        twin = source.twin if source.twin is not None else source.tensor
        if not self.torch._C._is_alias_of(made.tensor, twin):
            return
        entry = self.memo.get(key) if self.shortcuts else None
        if entry is None:
            draft, results, _ = self._translate(info, args, kwargs, given)
            entry, _ = self._checked(info, draft, results, outs, given)
            self.memo[key] = entry
        made.parent, made.remake = source, (entry, given, n)
        made.version = source.root.version

    def _look(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A number the model looks at, worked out where weights play no part in it."""
        try:
            with self.torch.no_grad():
                return func(*self._numbers(args), **kwargs)
        except DataDependent:
            raise
        except Exception as error:
            raise DataDependent(f"{func}: {error}") from error

    def _numbers(self, arg: Any) -> Any:
        if isinstance(arg, self.torch.Tensor):
            value = self.tracker.value(arg)
            if arg.device != self._meta:
                if not self.real and value.sig.kind == "param":
                    raise DataDependent("of a parameter")
                return arg
            if not value.root.known:
                raise DataDependent("of a tensor whose numbers are not known")
            if not value.known or not isinstance(value.recipe, tuple):
                if value.known and value.twin is not None:
                    return value.twin
                raise DataDependent("of a tensor whose numbers are not known")
            func, args, kwargs, place = value.recipe
            named = {k: self._numbers(v) for k, v in kwargs.items()}
            if "device" in named:
                named["device"] = "cpu"
            made = func(*self._numbers(args), **named)
            made = made if place is None else made[place]
            value.twin = made
            value.recipe = None
            return made
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._numbers(each) for each in arg])
        return arg

    # Views and what is written in place

    def _view(
        self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any, entry: Any
    ) -> Any:
        if info.words is None and info.composite:
            with self.mode:
                opened = func.decompose(*args, **kwargs)
            if opened is not NotImplemented:
                return opened
        outs = self._run(info, func, args, kwargs)
        many = isinstance(outs, (list, tuple))
        listed = list(outs) if many else [outs]
        if entry is None or not self.shortcuts:
            draft, results, _ = self._translate(info, args, kwargs, given)
            entry, _ = self._checked(info, draft, results, outs, given)
            self.memo[key] = entry
        tracker = self.tracker
        if not entry.results:
            self._nothing(listed, entry)
            return outs
        source = given[0]
        twin = source.twin if source.twin is not None else source.tensor
        if not many and (outs is twin or outs is source.tensor):
            return source.tensor
        lazy = not entry.steps and len(listed) == 1
        names = [""] if lazy else tracker.emit(entry, given)
        if lazy:
            names = [tracker.read(source)] if source.plain or source.parent else [source.name]
        alias = self.torch._C._is_alias_of
        if lazy and source.sig.kind and source.sig.shape == entry.outs[0].shape:
            self._same_array(outs, source)  # detach() and the like of an array of the model
            return outs
        for n, out in enumerate(listed):
            made = tracker.register(out, names[n], entry.outs[n])
            if source.known and out.numel() <= MOST_KNOWN:
                made.known = True
                made.recipe = (func, args, kwargs, n if many else None)
            if alias(out, twin):
                made.parent = source
                made.remake = (entry, given, n)
                made.version = source.root.version
                made.plain = False
                if lazy and not source.plain and source.parent is None:
                    made.version = -1  # named when it is read
        return outs

    def _same_array(self, out: Any, source: Value) -> None:
        held, tracker = self.tracker.held, self.tracker
        held.names[id(out)] = source.name
        if source.sig.kind == "buffer":
            held.buffers.add(id(out))
        made = tracker.register(out, source.name, tracker.sig(out, source.sig.kind), plain=False)
        made.known = source.known
        made.recipe = source.recipe

    def _write(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any) -> Any:
        target = given[0]
        if target.sig.kind == "buffer" and target.tensor.numel() == 1:
            if self.real:
                return func(*args, **kwargs)
            return target.tensor  # a counter of the model's own, such as batches seen
        if self.torch.Tag.inplace_view in func.tags or not info.in_place:
            return self._rewritten(info, func, args, kwargs, given)
        if self.real:
            func(*args, **kwargs)
        entry = self.memo.get(key) if self.shortcuts else None
        if entry is None:
            if info.name in DRAWN:
                told = Told((target.sig.shape,), (target.sig.name,))
                draft = Draft(info.source, self.tracker.same, self.floating)
                entry = self._entry(draft, [draft.add("random", at=told)], [target.sig], None)
            else:
                draft, results, _ = self._translate(info, args, kwargs, given)
                if results is None or results[0].shape != target.sig.shape:
                    if info.composite and not self.real:
                        with self.mode:
                            opened = func.decompose(*args, **kwargs)
                        if opened is not NotImplemented:
                            return opened
                    entry = self._unknown(info, (target.sig,), given, None)
                else:
                    made = draft.cast(results[0], target.sig.name)
                    entry = self._entry(draft, [made], [target.sig], None)
            self.memo[key] = entry
        name = self.tracker.emit(entry, given)[0]
        self.tracker.write(target, name)
        return target.tensor

    def _rewritten(self, info: Info, func: Any, args: Any, kwargs: Any, given: Any) -> Any:
        """Operators that change a tensor's own shape, or write into one they are handed."""
        outs = self._run(info, func, args, kwargs)
        target = given[0]
        if self.torch.Tag.inplace_view in func.tags:
            before = target.sig
            base = info.name
            target.sig = self.tracker.sig(target.tensor)
            words = TABLE.get(base)
            if words is not None:
                draft = Draft(info.source, self.tracker.same, self.floating)
                ref = Ref(before.shape, before.name, 0, before.kind != "")
                made = words(draft, ref, *args[1:], **kwargs)
                name = self.tracker.emit(self._entry(draft, [made], [target.sig], None), given)[0]
                self.tracker.write(target, name)
            return outs
        listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        tensors = [out for out in listed if isinstance(out, self.torch.Tensor)]
        if not tensors:
            return outs
        sigs = tuple([self.tracker.sig(out) for out in tensors])
        names = self.tracker.emit(self._unknown(info, sigs, given, None), given)
        for out, name, sig in zip(tensors, names, sigs, strict=True):
            if id(out) in self.tracker.values:
                self.tracker.write(self.tracker.values[id(out)], name)
            else:
                self.tracker.register(out, name, sig)
        return outs


def _makes_fresh(name: str, given: Any) -> bool:
    """Whether results stand one behind the other whatever the layout of what is given."""
    if name == "matmul":  # of matrices alone, or of one with many, the result may be turned
        return all(len(value.sig.shape) > 2 for value in given)
    return name in FRESH


LISTS = frozenset(("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_chunk"))


def shapes_in(arg: Any, torch: Any) -> list[tuple[Shape, str]]:
    """Shapes and number types of all tensors in a nest of arguments."""
    if isinstance(arg, torch.Tensor):
        return [(tuple(arg.shape), name_of(arg.dtype))]
    if isinstance(arg, dict):
        arg = list(arg.values())
    if isinstance(arg, (list, tuple)):
        return [shape for each in arg for shape in shapes_in(each, torch)]
    return []
