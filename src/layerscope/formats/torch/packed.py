"""Packed parameters of quantized modules: weights and biases in C++ objects of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from layerscope.formats.torch.module_table import ModuleInfo, ParamTable
from layerscope.formats.torch.torch_types import Args, Attrs, Torch

if TYPE_CHECKING:
    from torch import ScriptObject, Tensor

BOX = "_packed_params"  # attribute with the packed object; of some modules a child module


class Pack(Struct, frozen=True):
    """The arrays of a packed object by name, and the arguments of a convolution."""

    arrays: dict[str, Any]  # tensors, or a `TensorRef` for each in a converter
    conv_args: Args = ()  # stride, padding, dilation, output padding; groups

    @property
    def pair(self) -> tuple[Any, Any]:
        """Weight and bias, as PyTorch unpacks them."""
        return self.arrays["weight"], self.arrays.get("bias")


class Packs:
    """The packed objects of a model, found when the first of them is used."""

    def __init__(
        self,
        torch: Torch,
        modules: Mapping[int, ModuleInfo],
        params: ParamTable,
        unwatched: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.torch, self.modules, self.params, self.unwatched = torch, modules, params, unwatched
        self._found: dict[int, Pack] = {}
        self._references: list[ScriptObject] = []
        self._boxes: frozenset[str] | None = None

    def of(self, packed: ScriptObject) -> Pack | None:
        """The arrays of a packed object, if a module of the model has it."""
        self.find()
        return self._found.get(hash(packed))

    def find(self) -> frozenset[str]:
        """Add all packed arrays to the table; the paths of modules that only hold some."""
        if self._boxes is not None:
            return self._boxes
        boxes = set()
        with self.unwatched():
            for info in self.modules.values():
                attrs = info.module.__dict__
                for own, value in attrs.items():
                    for key, packed in _inside(value):
                        if type(packed) is not self.torch.ScriptObject:
                            continue
                        prefix = f"{info.opened().prefix}{'.'.join([own.lstrip('_'), *key])}."
                        if info.path.rpartition(".")[2] == BOX:
                            prefix = info.path.removesuffix(BOX)
                            boxes.add(info.path)
                        elif own == BOX:
                            prefix = info.opened().prefix
                        self._add(packed, prefix, attrs)
        self._boxes = frozenset(boxes)
        return self._boxes

    def _add(self, packed: ScriptObject, prefix: str, attrs: Attrs) -> None:
        if hash(packed) in self._found:
            return
        pack = self._unpack(packed, attrs)
        if pack is None:
            return
        self._references.append(packed)  # so that no other object gets its hash
        self._found[hash(packed)] = pack
        for name, array in pack.arrays.items():
            self.params.add(prefix + name, array, name.endswith(SCALES))

    def _unpack(self, packed: ScriptObject, attrs: Attrs) -> Pack | None:
        kind = str(packed._type()).rpartition(".")[2]
        half = attrs.get("dtype") is self.torch.float16  # the engine returns fp32
        if kind.startswith("Conv"):
            weight, bias = packed.unpack()
            if len(attrs.get("kernel_size", ())) == 1:  # a 1d convolution is stored as a 2d one
                weight = weight.squeeze(-2)
            sizes = (packed.stride(), packed.padding(), packed.dilation(), packed.output_padding())
            return self._pack(weight, bias, (*map(tuple, sizes), packed.groups()))
        if kind.startswith("Linear"):
            weight, bias = packed.unpack()
            return self._pack(weight.half() if half else weight, bias)
        if kind.startswith("Embedding"):
            return self._pack(self.torch.ops.quantized.embedding_bag_unpack(packed), None)
        if kind.startswith("CellParams"):
            return self._cell(*packed.__getstate__()[0])
        return None

    def _pack(
        self, weight: Tensor, bias: Tensor | None, conv_args: Args = (), end: str = ""
    ) -> Pack:
        arrays = {f"weight{end}": weight.detach()}
        if bias is not None:
            arrays[f"bias{end}"] = bias.detach()
        if weight.is_quantized and str(weight.qscheme()).startswith("torch.per_channel"):
            arrays[f"weight{end}{SCALES[0]}"] = weight.q_per_channel_scales()
            arrays[f"weight{end}{SCALES[1]}"] = weight.q_per_channel_zero_points()
        return Pack(arrays, conv_args)

    def _cell(
        self, kind: str, biases: list[Tensor], _: object, __: object, products: list[ScriptObject]
    ) -> Pack | None:
        """One direction of a recurrent layer, from its serialized state."""
        arrays: dict[str, Tensor] = {}
        for n, (packed, end) in enumerate(zip(products, ("_ih", "_hh"), strict=True)):
            weight, bias = packed.unpack()
            if biases:
                bias = biases[n]
            if kind == "quantized_fp16":
                weight = weight.half()
            arrays |= self._pack(weight, bias, end=end).arrays
        return Pack(arrays)


SCALES = ("_scale", "_zero_point")


def _inside(value: object) -> list[tuple[tuple[str, ...], Any]]:
    """The values of a list or dict with their keys; any other value without a key."""
    if isinstance(value, dict):
        return [((str(key),), each) for key, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [((str(n),), each) for n, each in enumerate(value)]
    return [((), value)]


def is_quantized(classes: Iterable[type]) -> bool:
    """Whether any class of modules is derived from PyTorch's quantized ones."""
    return any(".quantized" in base.__module__ for cls in classes for base in cls.__mro__)
