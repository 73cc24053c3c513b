"""mmengine 0.10.7: fvcore's count, with matrix products of vectors.

`mmengine.analysis` has the formulas of fvcore, except that the one for `matmul` takes vectors,
where fvcore's raises an error.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from layerscope.conventions import fvcore
from layerscope.conventions.counted_nodes import CountedNode


def _caveats(nodes: Iterable[CountedNode]) -> tuple[str, ...]:
    return fvcore.notes_on_failures("mmengine", fvcore.fails_on_norm, nodes)


CONVENTION = replace(
    fvcore.CONVENTION,
    name="mmengine",
    says="fvcore's count, with matrix products of vectors",
    caveats=_caveats,
)
