"""Pictures of reports and runs as SVG, written by hand; PNG by the extra `plot`."""

from __future__ import annotations

from layerscope.errors import MissingExtra

PLOTS = {
    "roofline": "FLOP/s over FLOP/B, a dot a layer, under the machine's roofs; of a run",
    "time": "bars of the layers that take longest; of a run",
    "memory": "bytes alive while each layer runs, in order",
    "activations": "bars of the layers that make most activations",
}


def png(svg: str) -> bytes:
    """The picture as PNG, twice as many pixels a side."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("a PNG", "plot") from None
    made: bytes = vl_convert.svg_to_png(svg, scale=2.0)
    return made
