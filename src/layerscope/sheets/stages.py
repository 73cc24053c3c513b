"""Stages of a sheet: how often convolutions changed the resolution on the way to a layer."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from layerscope.graph.types import Shape, elements


class SheetStage(Struct, frozen=True):
    """The number of a stage, and the sizes of its last convolution."""

    number: int = 0
    sizes: Shape | None = None


def stage_of(
    sources: Sequence[tuple[SheetStage, Shape | None]], output: Shape | None
) -> SheetStage:
    """The latest stage of the inputs that have the sizes of the output, or of all inputs."""
    sizes = output[2:] if output is not None else None
    same = [stage for stage, shape in sources if shape is not None and shape[2:] == sizes]
    return max(
        same or [stage for stage, _ in sources],
        key=lambda stage: stage.number,
        default=SheetStage(),
    )


def convolved(stage: SheetStage, given: Shape, output: Shape | None) -> SheetStage:
    """The stage after a convolution: one on a single position stays in its stage."""
    sizes = output[2:] if output is not None else None
    single = stage.number and elements(given[2:]) == 1
    if sizes == stage.sizes or single:
        return stage
    return SheetStage(stage.number + 1, sizes)


def pool_stage(stage: SheetStage, given: Shape | None) -> int:
    """The stage of a pool: the next one if its input was already pooled."""
    pooled = stage.sizes is not None and given is not None and given[2:] != stage.sizes
    return stage.number + pooled
