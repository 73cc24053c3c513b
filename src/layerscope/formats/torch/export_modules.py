"""Modules of an exported program: those that its file names, and those around the current call."""

from __future__ import annotations

from layerscope.formats.torch.checkpoints.stored_array import check_name
from layerscope.formats.torch.export_schema import ExportedCall, GraphModule, stack_of
from layerscope.formats.torch.fast_paths import PRINTED
from layerscope.formats.torch.module_table import ModuleInfo
from layerscope.formats.torch.tracking import Tracker


class ExportedModule:
    """Stands for a module of PyTorch: its class, and the names of its children."""

    def __init__(self) -> None:
        self._modules: dict[str, None] = {}
        self.cls = ""


def modules_in(file: str, program: GraphModule) -> dict[str, ModuleInfo]:
    """Every module that a program names, by path."""
    found: dict[str, ModuleInfo] = {}

    def add(path: str, cls: str = "") -> None:
        if path not in found:
            check_name(file, path)
            outer, _, own = path.rpartition(".")
            if path:
                add(outer)
                found[outer].module._modules[own] = None
                found[outer].childless = False
            around = tuple(path.split(".")[:-1])
            found[path] = ModuleInfo(ExportedModule(), None, path, around, True)
        if cls:
            found[path].module.cls = cls

    add("")
    for called in program.module_call_graph:
        add(called.fqn.partition("@")[0])
    for call in program.graph.nodes:
        for _, path, cls in stack_of(call):
            add(path, cls)
    for spec in program.signature.input_specs:
        for kind in ("parameter", "buffer"):
            name = spec.get(kind, {}).get(f"{kind}_name")
            if isinstance(name, str):
                add(name.rpartition(".")[0])
    return found


class ModuleStack:
    """The modules around the current call."""

    def __init__(self, modules: dict[str, ModuleInfo], tracker: Tracker) -> None:
        self.modules, self.tracker = modules, tracker
        # key of the module call, module, nodes before it, length of the log before it
        self._open: list[tuple[str, ModuleInfo, int, int]] = []

    def enter(self, call: ExportedCall) -> None:
        """Leave the modules that a call is not in, and enter those that it is in."""
        stack = [each for each in stack_of(call) if each[1] in self.modules]
        same = 0
        while (
            same < min(len(stack), len(self._open))
            and self._open[same][0] == stack[same][0]
            and self._open[same][1].path == stack[same][1]
        ):
            same += 1
        self.leave(same)
        tracker = self.tracker
        for key, path, _ in stack[same:]:
            info = self.modules[path].opened()
            self._open.append((key, info, len(tracker.nodes), len(tracker.log)))
        tracker.module = self._open[-1][1] if self._open else None

    def leave(self, depth: int = 0) -> None:
        """Leave all modules below a depth; one without children gives its node its name."""
        while len(self._open) > depth:
            _, info, before, mark = self._open.pop()
            if info.childless and self.tracker.name_by_module(info, before, mark):
                info.printed = True


def module_line(info: ModuleInfo) -> str:
    """The class of a module; "" where its node says as much."""
    cls = info.module.cls.rpartition(".")[2] or "Module"
    return "" if info.printed and cls in PRINTED else cls


def class_name(info: ModuleInfo) -> str:
    """The class of a module, with its package unless that is torch.nn."""
    cls: str = info.module.cls
    return cls.rpartition(".")[2] if cls.startswith("torch.nn.") else cls or "Module"
