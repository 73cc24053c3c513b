"""Throughput over latency of a language model: a dot for each batch size, joined by a line."""

from __future__ import annotations

from layerscope.errors import UsageError
from layerscope.plot.log_axes import log_axis
from layerscope.plot.specification import (
    WIDTH,
    Caption,
    ChartView,
    layer,
    number,
    specification,
    text,
    tooltips,
)
from layerscope.plot.theme import Spec
from layerscope.report.generation import GenerationTimes, StepPrediction
from layerscope.report.numbers import rate_of_tokens, time_text

HEIGHT = 360
HEADINGS = {"decode": "Decode: one token of each sequence", "prefill": "Prefill: the prompt"}
AXES = {"decode": "time of a token (s)", "prefill": "time of the prompt (s)"}


def throughput(found: GenerationTimes) -> Spec:
    """A view for decode and one for prefill, as far as there are such steps."""
    views = []
    for phase in HEADINGS:
        steps = [step for step in found.steps if step.phase == phase]
        if steps:
            views.append(_view(steps, phase))
    if not views:
        raise UsageError(f"{found.network}: no step to draw")
    lengths = ", ".join(dict.fromkeys(_length(step) for step in found.steps)).capitalize()
    caption = Caption(
        f"{found.network} on {found.machine}: throughput over latency",
        (
            f"{lengths}; weights in {found.weights}, cache in {found.cache}.",
            "Numbers are batch sizes; thin lines are intervals of 68 %. Both axes are logarithmic.",
            f"Predicted, not measured; fitted on {found.source}.",
        ),
    )
    return specification(caption, views)


def _length(step: StepPrediction) -> str:
    if step.phase == "decode":
        return f"a token after {step.past:,}"
    return f"a prompt of {step.tokens:,} tokens"


def _view(steps: list[StepPrediction], phase: str) -> ChartView:
    rows = [
        {
            "batch": f"{step.batch:,}",
            "x": step.total_s,
            "y": step.tokens_per_s,
            "low": step.low_s,
            "high": step.high_s,
            "time": time_text(step.total_s),
            "interval": f"{time_text(step.low_s)} to {time_text(step.high_s)}",
            "rate": rate_of_tokens(step.tokens_per_s),
            "each": rate_of_tokens(step.tokens_per_s / step.batch),
        }
        for step in sorted(steps, key=lambda each: each.batch)
    ]
    ends = [end for step in steps for end in (step.low_s, step.high_s)]
    y = log_axis("y", "tokens/s of all sequences", [step.tokens_per_s for step in steps])
    x = log_axis("x", AXES[phase], ends)
    tips = tooltips({
        "batch": "batch", "time": "time", "interval": "interval", "rate": "tokens/s",
        "each": "tokens/s each",
    })  # fmt: skip
    body: Spec = {
        "width": WIDTH - 90,
        "height": HEIGHT,
        "data": {"values": rows},
        "layer": [
            layer({"type": "line", "style": "roof"}, {"x": x, "y": y, "order": number("x")}),
            layer(
                {"type": "rule", "style": "interval"},
                {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y},
            ),
            layer(
                {"type": "point", "filled": True, "size": 60, "style": "peak_dot"},
                {"x": x, "y": y, "tooltip": tips},
            ),
            *(
                layer(
                    {"type": "text", "style": style, "align": "right", "dx": -8, "dy": -9},
                    {"x": x, "y": y, "text": text("batch")},
                )
                for style in ("halo", "name")
            ),
        ],
    }
    return ChartView(body, heading=HEADINGS[phase])
