"""Views: what they make is told by sizes and strides, or PyTorch is asked once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from layerscope.formats.torch.aten import DRAWN
from layerscope.formats.torch.calls import LISTS, Caller, DataDependent, Info
from layerscope.formats.torch.strides import view_layouts
from layerscope.formats.torch.tracking import CallPlan
from layerscope.graph.types import elements
from layerscope.ops.spec import shown

MOST_WRITTEN = 1 << 12  # elements that a check of a write computes with; more are scaled down
WRITABLE = CallPlan((), (), ())  # stands for a write that was tried
NOT_ON_CPU = ("Half", "BFloat16", "Float8")  # dtypes that other devices have more kernels for


class Views(Caller):
    """Calls whose results may share storage with what they are given."""

    def viewed(
        self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any
    ) -> tuple[CallPlan, list[Any] | None]:
        """What such a call amounts to, and its results where it had to be run."""
        source = given[0]
        # A view of what autograd knows of is one that it knows of, too.
        short = self.shortcuts and not self.real and source.tensor.is_inference()
        entry = self.memo.get(key) if self.shortcuts else None
        if short and entry is None:
            entry = self._foretold(info, args, kwargs, given)
            if entry is not None:
                self.memo[key] = entry
        if short and entry is not None and entry.way:
            return entry, None
        outs = self._run(info, func, args, kwargs)
        listed = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        if entry is None or not entry.way:
            draft, results, _ = self._translate(info, args, kwargs, given)
            entry, _ = self._checked(info, draft, results, outs, given, self._way(source, listed))
            self.memo[key] = entry
        return entry, listed

    def _laid_out(self, info: Info, args: Any, kwargs: Any, given: Any) -> CallPlan | None:
        """What a call not seen before makes, where that is certain; no steps."""
        sig = given[0].sig
        layouts = view_layouts(info.name, sig, args[1:], kwargs) if len(given) == 1 else None
        if layouts is None:
            return None
        sigs = [self.tracker.sig_of(told.shape, told.stride, sig.dtype) for told in layouts]
        form = list if info.name in LISTS else None
        return CallPlan((), (), tuple(sigs), form, "copy" if layouts[0].copied else "view")

    def _foretold(self, info: Info, args: Any, kwargs: Any, given: Any) -> CallPlan | None:
        """What a call not seen before amounts to, where that is certain."""
        known = self._laid_out(info, args, kwargs, given)
        if known is None:
            return None
        draft, results, _ = self._translate(info, args, kwargs, given)
        if results is None or [ref.shape for ref in results] != [sig.shape for sig in known.outs]:
            return None
        kind = given[0].sig.name
        if any(ref.dtype != kind for ref in results):
            return None
        return self._entry(draft, results, known.outs, known.form, known.way)

    def _way(self, source: Any, outs: list[Any]) -> str:
        """How results are had: in storage of the source, of their own, or as the source itself."""
        held = [each for each in (source.tensor, source.twin) if each is not None]
        if len(outs) == 1 and any(outs[0] is each for each in held):
            return "itself"
        alias = self.torch._C._is_alias_of
        shared = {any(alias(out, each) for each in held) for out in outs}
        return "" if len(shared) != 1 else "view" if shared.pop() else "copy"

    def need_writable(
        self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any
    ) -> None:
        """Raise what PyTorch raises where a tensor cannot hold what is written into it.

        Kernels of the meta device accept more than others do, so that small tensors of zeros are
        written on the CPU: sizes that are equal, ordered or 1 stay so.
        """
        sig = given[0].sig
        plain = sig.dtype in self._floats and all(value.sig is sig for value in given)
        plain = plain and bool not in map(type, args)  # which may not be subtracted
        if self.real or plain or info.name in DRAWN or not info.full.startswith("aten."):
            return
        if self.shortcuts and ("written", key) in self.memo:
            return
        sizes = sorted({2, *[size for value in given for size in value.sig.shape]})
        small = {size: size for size in sizes}
        if sum([elements(value.sig.shape) for value in given]) > MOST_WRITTEN:
            with suppress(DataDependent):  # a message of this run has the sizes
                self._run(info, func, self._filled(args, None), self._filled(kwargs, None))
            self.asked = None
            first = sizes.index(2)
            small |= {size: n for n, size in enumerate(sizes[first:], 2)}
        try:
            with self.torch.no_grad():
                func(*self._filled(args, small), **self._filled(kwargs, small))
        except (RuntimeError, IndexError) as error:
            if not _of_this_run(error):
                if small[sizes[-1]] == sizes[-1]:
                    raise
                shapes = ", ".join(f"{shown(v.sig.shape)} {v.sig.name}" for v in given)
                raise RuntimeError(f"PyTorch refuses {info.full} of {shapes}") from error
        self.memo["written", key] = WRITABLE

    def _filled(self, arg: Any, sizes: dict[int, int] | None) -> Any:
        """Arguments with zeros of other sizes on the CPU; without numbers where none are given."""
        if isinstance(arg, self.torch.Tensor):
            if sizes is None:
                return self._apart(arg)
            sig = self.tracker.value(arg).sig
            shape = [sizes[size] for size in sig.shape]
            return self.torch.zeros(shape, dtype=sig.dtype, device="cpu")
        if isinstance(arg, dict):
            return {name: self._filled(each, sizes) for name, each in arg.items()}
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._filled(each, sizes) for each in arg])
        return arg

    def _apart(self, arg: Any) -> Any:
        """Arguments whose tensors are each in storage of their own."""
        if isinstance(arg, self.torch.Tensor):
            sig = self.tracker.value(arg).sig
            return self.torch.empty_strided(
                sig.shape, sig.stride, dtype=sig.dtype, device=self._meta
            )
        if isinstance(arg, (list, tuple)):
            return type(arg)([self._apart(each) for each in arg])
        return arg


def _of_this_run(error: Exception) -> bool:
    """Whether a write fails for its device or its zeros, and may succeed where the model runs."""
    what = str(error)
    if "not implemented for" in what:
        return any(f"not implemented for '{kind}" in what for kind in NOT_ON_CPU)
    return isinstance(error, NotImplementedError) or "ZeroDivisionError" in what
