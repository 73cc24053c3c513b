"""Plots of reports and runs as SVG; PNG with the extra `plot`."""

from __future__ import annotations

from layerscope.errors import MissingExtra

PLOTS = {
    "roofline": "FLOP/s over FLOP/B, one dot per layer, under the limits of a machine",
    "time": "bars of the slowest layers; needs a run",
    "memory": "bytes of activations alive while each layer runs, in execution order",
    "activations": "bars of the layers that write most",
}


def png(svg: str) -> bytes:
    """The plot as PNG at twice the resolution."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra("a PNG", "plot") from None
    data: bytes = vl_convert.svg_to_png(svg, scale=2.0)
    return data
