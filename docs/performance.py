"""The page of the documentation on speed, from what `make bench-all` measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Part = dict[str, Any]
HEAD = """# Speed and memory

`make bench-all` measures layerscope and the other counters that are installed, side by side in one
run, and writes this page and [performance.json](performance.json). Times are CPU seconds of one
thread, which other work on a machine disturbs least. *Right* is a figure within a tenth of the true
one, since some tools add norms and biases. A tool that is faster than layerscope, or right where
layerscope is not, is set in **bold**.
"""


def page(data: Part) -> str:
    """The whole page; a part that failed says so."""
    blocks = [HEAD, _machine(data)]
    for name, (title, write) in PARTS.items():
        part = data["parts"].get(name)
        if part is None:
            continue
        blocks.append(f"## {title}\n\n{_body(part, write)}\n")
    if data.get("left"):
        blocks.append(f"The run was stopped; not measured yet: {', '.join(data['left'])}.\n")
    return "\n".join(blocks)


def _body(part: Part, write: Callable[[Part], str]) -> str:
    """The tables of a part; if it failed, the error and what it measured before."""
    if "error" not in part:
        return write(part)
    failed = f"It failed: {part['error']}"
    if not part.keys() - {"error", "seconds"}:
        return failed
    return f"{failed}\n\nMeasured before:\n\n{write(part)}"


def _machine(data: Part) -> str:
    machine = data["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    form = "the quick form, with fewer runs and models" if data["quick"] else "the whole form"
    return (
        f"This run: {form}; {machine['cores']} cores, {machine['architecture']}, Python "
        f"{machine['python']}, layerscope {machine['layerscope']}; {packages}."
        f"{_missing(machine.get('missing'))}"
        f"{' ' * bool(data.get('note'))}{data.get('note', '')}\n"
    )


def _missing(names: Sequence[str] | None) -> str:
    return f" Not installed, so not measured: {', '.join(names)}." if names else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(heads), " | ".join(["---", *["---:"] * (len(heads) - 1)])]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f}" if seconds < 0.1 else f"{seconds * 1000:,.0f}"


def _startup(part: Part) -> str:
    times = part["cpu_ms"]
    bare = times["python -c pass"]
    rows = [[f"`{name}`", f"{ms:,.0f}", f"{ms / bare:.1f}"] for name, ms in times.items()]
    return (
        "Whole processes; of other tools the import alone, before a model is built.\n\n"
        + _table(("command", "CPU ms", "of a bare interpreter"), rows)
    )


def _growth(part: Part) -> str:
    rows = [
        [f"{row['layers']:,}", f"{row['build_s']:.3f}", f"{row['analyze_s']:.3f}",
         f"{row['text_s']:.2f}", f"{row['peak_mb']:,.0f}"]
        for row in part["rows"]
    ]  # fmt: skip
    return "A chain of convolutions and ReLUs, written with the Builder.\n\n" + _table(
        ("layers", "build s", "analyze s", "print s", "peak MB"), rows
    )


def _onnx(part: Part) -> str:
    rows = []
    for each in part["against"]:
        ours, theirs = each["layerscope"], each["onnx-tool"]
        rows.append([
            each["network"], _ms(ours["cpu_s"]), _ms(theirs["cpu_s"]),
            f"{theirs['cpu_s'] / ours['cpu_s']:.1f}",
            f"{theirs['process_cpu_s'] / ours['process_cpu_s']:.1f}",
            f"{ours['peak_mb']:,.0f}", f"{theirs['peak_mb']:,.0f}",
            "yes" if ours["macs"] == theirs["macs"] else f"{theirs['macs'] / ours['macs']:.3f}",
        ])  # fmt: skip
    heads = ("network", "ours ms", "onnx-tool ms", "times ours", "whole process", "our MB",
             "its MB", "same MACs")  # fmt: skip
    shown = [
        [row["network"], f"{row['file_mb']:,.0f}", f"{row['cpu_ms']:,.0f}", f"{row['peak_mb']:.0f}"]
        for row in part["show"]
    ]
    against = "onnx-tool was not measured.\n" if not rows else (
        "Analysis alone in a running process, as medians, and a whole process with one analysis. "
        "onnx-tool counts other operations as multiply-adds too; its figure is given in parts of "
        f"ours.\n\n{_table(heads, rows)}\n"
    )  # fmt: skip
    failures = "".join(
        f"\n\nFailed: {each['step']}: {each['error']}" for each in part.get("failures", ())
    )
    return f"{against}\nThe command `layerscope show`:\n\n" + _table(
        ("network", "file MB", "CPU ms", "peak MB"), shown
    ) + failures  # fmt: skip


def _peers(part: Part) -> str:
    """A table of first and best calls of every tool, and sentences where a tool is better."""
    blocks = []
    for model in part["models"]:
        tools = model["tools"] or {}
        ours = tools.get("layerscope", {})
        rows = []
        for tool, timed in tools.items():
            if "error" in timed:
                rows.append([tool, "failed", "", "", ""])
                continue
            share = (timed["macs"] or 0) / model["macs"]
            right = "exact" if share == 1 else f"{share:.3f}"
            times = ""
            if "best_cpu" in ours:
                times = (f"{timed['first_cpu'] / ours['first_cpu']:.1f} / "
                         f"{timed['best_cpu'] / ours['best_cpu']:.1f}")  # fmt: skip
            cells = [tool, right, _ms(timed["first_cpu"]), _ms(timed["best_cpu"]), times]
            if not tool.startswith("layerscope") and _better(timed, ours, model["macs"]):
                cells = [f"**{cell}**" for cell in cells]
            rows.append(cells)
        fastest = ""
        if model["fastest"] and model["ours"]:
            first, best = (
                model["fastest"][key] / model["ours"][key] for key in ("first_cpu", "best_cpu")
            )
            fastest = f" The fastest right peer takes {first:.1f} and {best:.1f} times as long."
        name = model["model"]
        text = f"`{name}`, {model['macs']:,.0f} multiply-adds.{fastest}\n\n"
        heads = ("tool", "figure", "first ms", "best ms", "times ours")
        blocks.append(text + _table(heads, rows))
    head = (
        "First call and best of five on a built model, in one process each; of layerscope and the "
        "fastest right peers, medians over processes that took turns."
    )
    return "\n\n".join([head + _missing(part.get("missing")), *blocks])


def _masked(part: Part) -> str:
    return (
        "`flop_counter@meta` fails on the meta device with a mask, and is timed without it.\n\n"
        + _peers(part)
    )


def _better(timed: Part, ours: Part, true: float) -> bool:
    """Whether a tool is right and faster, or right where we are not."""
    if timed is ours or not 0.9 <= (timed["macs"] or 0) / true <= 1.1:
        return False
    wrong = not 0.9 <= (ours.get("macs") or 0) / true <= 1.1  # or it failed
    return bool(wrong or timed["first_cpu"] < ours["first_cpu"]
                or timed["best_cpu"] < ours["best_cpu"])  # fmt: skip


def _built(part: Part) -> str:
    rows = [
        [row["tool"], f"{row['cpu_s']:.2f}", f"{row['ratio']:.1f}", str(row["other"]),
         str(row["failed"])]
        for row in part["rows"]
    ]  # fmt: skip
    rows += [[tool, why, "", "", ""] for tool, why in part.get("failures", {}).items()]
    return (
        f"{part['models']} models of torchvision and timm that are built already and that every "
        "tool counts: the analysis alone, one call each. *Other figure* counts models where the "
        "tool differs from layerscope by more than a tenth.\n\n"
        + _table(("tool", "CPU s", "times ours", "other figure", "failed"), rows)
    )


def _sweep(part: Part) -> str:
    rows = [
        [row["what"], f"{row['networks']:,}", str(row["failed"]), f"{row['seconds']:.1f}",
         f"{row['per_minute']:,.0f}", f"{row['early_mb']:.0f}", f"{row['late_mb']:.0f}"]
        for row in part["rows"]
    ]  # fmt: skip
    heads = (
        "sources",
        "networks",
        "failed",
        "wall s",
        "per minute",
        "MB after 1,000",
        "MB at the end",
    )
    jobs = part["rows"][0]["jobs"]
    return f"`layerscope sweep -j {jobs}`; memory is that of the main process.\n\n" + _table(
        heads, rows
    )


PARTS = {
    "startup": ("Start-up", _startup),
    "cases": ("Live models of PyTorch", _peers),
    "mobile": ("Small mobile networks", _peers),
    "masked": ("Models of transformers with a mask", _masked),
    "built": ("Many built models", _built),
    "onnx": ("ONNX files", _onnx),
    "growth": ("Growth", _growth),
    "sweep": ("Sweeps", _sweep),
}
