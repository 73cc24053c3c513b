"""Arrays that modules of narrow numbers keep packed, in objects of the engine's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from layerscope.formats.torch.module_table import ModuleInfo, ParamTable

BOX = "_packed_params"  # what modules call it, and the one child of some that does nothing but hold


class Pack(Struct, frozen=True):
    """Arrays by their own names, and what a convolution is told beside them."""

    arrays: dict[str, Any]
    conv_args: tuple[Any, ...] = ()  # stride, padding, dilation, output padding; groups

    @property
    def pair(self) -> tuple[Any, Any]:
        """Weight and bias, as PyTorch unpacks them."""
        return self.arrays["weight"], self.arrays.get("bias")


class Packs:
    """The packed objects of a model, found when the first of them is met."""

    def __init__(
        self,
        torch: Any,
        places: Mapping[int, ModuleInfo],
        held: ParamTable,
        unwatched: Callable[[], Any],
    ) -> None:
        self.torch, self.places, self.held, self.unwatched = torch, places, held, unwatched
        self._found: dict[int, Pack] = {}
        self._kept: list[Any] = []
        self._boxes: frozenset[str] | None = None

    def of(self, packed: Any) -> Pack | None:
        """What an object holds, if a module of the model keeps it."""
        self.look()
        return self._found.get(hash(packed))

    def look(self) -> frozenset[str]:
        """Name all that modules keep; paths of those that do nothing but keep."""
        if self._boxes is not None:
            return self._boxes
        boxes = set()
        with self.unwatched():
            for place in self.places.values():
                held = place.module.__dict__
                for own, value in held.items():
                    for key, packed in _inside(value):
                        if type(packed) is not self.torch.ScriptObject:
                            continue
                        prefix = f"{place.opened().prefix}{'.'.join([own.lstrip('_'), *key])}."
                        if place.path.rpartition(".")[2] == BOX:
                            prefix = place.path.removesuffix(BOX)
                            boxes.add(place.path)
                        elif own == BOX:
                            prefix = place.opened().prefix
                        self._name(packed, prefix, held)
        self._boxes = frozenset(boxes)
        return self._boxes

    def _name(self, packed: Any, prefix: str, told: Mapping[str, Any]) -> None:
        if hash(packed) in self._found:
            return
        pack = self._opened(packed, told)
        if pack is None:
            return
        self._kept.append(packed)  # so that no other comes to have its hash
        self._found[hash(packed)] = pack
        for name, array in pack.arrays.items():
            self.held.add(prefix + name, array, name.endswith(SCALES))

    def _opened(self, packed: Any, told: Mapping[str, Any]) -> Pack | None:
        kind = str(packed._type()).rpartition(".")[2]
        half = told.get("dtype") is self.torch.float16  # the engine widens them when it unpacks
        if kind.startswith("Conv"):
            weight, bias = packed.unpack()
            if len(told.get("kernel_size", ())) == 1:  # it stands as an image of one row
                weight = weight.squeeze(-2)
            sizes = (packed.stride(), packed.padding(), packed.dilation(), packed.output_padding())
            return self._pack(weight, bias, told=(*map(tuple, sizes), packed.groups()))
        if kind.startswith("Linear"):
            weight, bias = packed.unpack()
            return self._pack(weight.half() if half else weight, bias)
        if kind.startswith("Embedding"):
            return self._pack(self.torch.ops.quantized.embedding_bag_unpack(packed), None)
        if kind.startswith("CellParams"):
            return self._cell(*packed.__getstate__()[0])
        return None

    def _pack(self, weight: Any, bias: Any, told: tuple[Any, ...] = (), end: str = "") -> Pack:
        arrays = {f"weight{end}": weight.detach()}
        if bias is not None:
            arrays[f"bias{end}"] = bias.detach()
        if weight.is_quantized and str(weight.qscheme()).startswith("torch.per_channel"):
            arrays[f"weight{end}{SCALES[0]}"] = weight.q_per_channel_scales()
            arrays[f"weight{end}{SCALES[1]}"] = weight.q_per_channel_zero_points()
        return Pack(arrays, told)

    def _cell(self, kind: str, biases: Any, _: Any, __: Any, products: Any) -> Pack | None:
        """One direction of a recurrent layer, as PyTorch writes it down."""
        arrays: dict[str, Any] = {}
        for n, (packed, end) in enumerate(zip(products, ("_ih", "_hh"), strict=True)):
            weight, bias = packed.unpack()
            if biases:
                bias = biases[n]
            if kind == "quantized_fp16":
                weight = weight.half()
            arrays |= self._pack(weight, bias, end=end).arrays
        return Pack(arrays)


SCALES = ("_scale", "_zero_point")


def _inside(value: Any) -> list[tuple[tuple[str, ...], Any]]:
    """A value under no key, or those of a list or dict under theirs."""
    if isinstance(value, dict):
        return [((str(key),), each) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [((str(n),), each) for n, each in enumerate(value)]
    return [((), value)]


def hold_packed(kinds: Iterable[Any]) -> bool:
    """Whether classes of modules are made of those that PyTorch has for narrow numbers."""
    return any(".quantized" in base.__module__ for kind in kinds for base in kind.__mro__)
