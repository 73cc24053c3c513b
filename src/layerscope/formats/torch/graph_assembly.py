"""The Graph of a finished run: nodes, modules, parameters and notes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from layerscope.formats.torch.capture_state import Capture
from layerscope.formats.torch.dtypes import FLOATS, name_of
from layerscope.formats.torch.fast_paths import PRINTED
from layerscope.formats.torch.module_table import ModuleInfo, ModuleTable, ParamTable, class_name
from layerscope.formats.torch.packed import is_quantized
from layerscope.graph.types import Graph, Param, Role


def assemble(name: str, run: Capture, outputs: tuple[str, ...], notes: tuple[str, ...]) -> Graph:
    """The graph of a run of a live model."""
    tracker = run.tracker
    table = tracker.modules
    assert isinstance(table, ModuleTable)
    modules: Iterable[ModuleInfo] = table.values()
    classes = {cls: class_name(cls) for cls in {info.cls for info in modules}}
    if is_quantized(classes):
        boxes = run.packs.find()
        modules = [info for info in modules if info.path not in boxes]
    unused = unused_params(tracker.param_table, tracker.used)
    if unused:
        notes = (*notes, unused_note(unused))
    nn = run.torch.nn
    containers = {cls for cls in classes if issubclass(cls, (nn.Sequential, nn.ModuleList))}
    printed = {cls for cls in classes if cls.__name__ in PRINTED}
    return Graph(
        name=name,
        inputs=tuple(tracker.inputs),
        nodes=tuple(tracker.nodes),
        outputs=outputs,
        params=tuple(tracker.params.values()),
        modules={
            info.path: "" if info.printed and info.cls in printed else _line(info)
            for info in modules
        },
        kinds={info.path: classes[info.cls] for info in modules},
        module_uses=table.uses(),
        containers=frozenset([info.path for info in modules if info.cls in containers]),
        dtype=run.floating,
        notes=notes,
        unused=tuple(unused),
        all_params=True,
        frozen=frozenset(tracker.param_table.frozen),
        autograd=tracker.grads.found(tracker.nodes, bool(run.torch._C._get_mkldnn_enabled())),
        own_layout=tracker.own_types,
    )


def unused_params(table: ParamTable, used: set[str]) -> list[Param]:
    """Parameters that no node has or reads."""
    unused = []
    for name in [name for name in table.tensors if name not in used]:
        tensor = table.tensors[name]
        if id(tensor) not in table.buffers:
            role: Role = "bias" if name.endswith("bias") else "weight"
            unused.append(Param(name, tuple(tensor.shape), role, name_of(tensor.dtype), name))
    return unused


def unused_note(unused: list[Param]) -> str:
    """The note on parameters that no node uses."""
    count = sum(param.elements for param in unused)
    names = ", ".join(param.name for param in unused[:3])
    more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
    return f"{count:,} parameters that this forward does not use: {names}{more}"


def floating_of(table: ParamTable) -> str:
    """Float dtype of the model: that of its first float array."""
    for tensor in table.tensors.values():
        dtype = name_of(tensor.dtype)
        if dtype in FLOATS:
            return dtype
    return "fp32"


def _line(info: ModuleInfo) -> str:
    """The line of a module in a printed model."""
    if info.childless:
        with suppress(Exception):  # an extra_repr may read values
            return repr(info.module)
    return str(info.cls.__name__)
