"""Views: what they make is told by sizes and strides, or PyTorch is asked once."""

from __future__ import annotations

from typing import Any

from layerscope.formats.torch.calls import LISTS, Caller, Info
from layerscope.formats.torch.layouts import view_layouts
from layerscope.formats.torch.tracking import Entry


class Views(Caller):
    """Calls whose results may share storage with what they are given."""

    def viewed(
        self, info: Info, func: Any, args: Any, kwargs: Any, given: Any, key: Any
    ) -> tuple[Entry, list[Any] | None]:
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

    def _laid_out(self, info: Info, args: Any, kwargs: Any, given: Any) -> Entry | None:
        """What a call not seen before makes, where that is certain; no steps."""
        sig = given[0].sig
        layouts = view_layouts(info.name, sig, args[1:], kwargs) if len(given) == 1 else None
        if layouts is None:
            return None
        sigs = [self.tracker.sig_of(told.shape, told.stride, sig.dtype) for told in layouts]
        form = list if info.name in LISTS else None
        return Entry((), (), tuple(sigs), form, "copy" if layouts[0].copied else "view")

    def _foretold(self, info: Info, args: Any, kwargs: Any, given: Any) -> Entry | None:
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
