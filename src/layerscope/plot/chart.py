"""A chart: a specification, and ways to draw and to store it."""

from __future__ import annotations

import os
from collections.abc import Collection

from msgspec import Struct

from layerscope.errors import MissingExtra, UsageError
from layerscope.escaping import json_text
from layerscope.extras import installed
from layerscope.plot.theme import Spec, config

VEGA_LITE = "6.4"
MIME = "application/vnd.vegalite.v6+json"
SCALE = 2.0  # pixels of a PNG for each of the specification
SUFFIXES = (".html", ".json", ".svg", ".png", ".pdf")


class Chart(Struct, frozen=True):
    """A chart of a report or run. Notebooks draw it; `save` writes .html, .vl.json, .svg …"""

    spec: Spec  # Vega-Lite, data included
    theme: str | None = None  # None: light in files, that of the reader in HTML

    def __repr__(self) -> str:
        return f"<Chart {self.spec['description']}>"

    def to_json(self) -> str:
        """The Vega-Lite specification, for any tool that draws these."""
        return json_text(self.spec)

    def to_html(self) -> str:
        """A page that needs no other file and no network."""
        from layerscope.plot.html_page import page

        return page(self.spec, self.theme)

    def to_svg(self) -> str:
        """The drawing as SVG; needs the extra `plot`."""
        try:
            import vl_convert
        except ImportError:
            raise MissingExtra("an SVG, PNG or PDF of a chart", "plot") from None
        text: str = vl_convert.vegalite_to_svg(
            self.spec, vl_version=VEGA_LITE, allowed_base_urls=[]
        )
        return text

    def to_png(self) -> bytes:
        """The drawing as PNG at twice the resolution; needs the extra `plot`."""
        svg = self.to_svg()
        import vl_convert

        data: bytes = vl_convert.svg_to_png(svg, scale=SCALE)
        return data

    def to_pdf(self) -> bytes:
        """The drawing as PDF; needs the extra `plot`."""
        svg = self.to_svg()
        import vl_convert

        data: bytes = vl_convert.svg_to_pdf(svg)
        return data

    def contents(self, form: str) -> bytes:
        """The chart in one form: json, html, svg, png or pdf."""
        texts = {"json": self.to_json, "html": self.to_html, "svg": self.to_svg}
        if form in texts:
            return texts[form]().encode()
        return self.to_png() if form == "png" else self.to_pdf()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file; its suffix chooses the form."""
        suffix = os.path.splitext(path)[1].lower()
        if suffix not in SUFFIXES:
            raise UsageError(
                f"{os.fspath(path)}: no chart has the suffix {suffix or 'of none'}; choose from "
                f"{', '.join(SUFFIXES)}"
            )
        data = self.contents(suffix[1:])
        with open(path, "wb") as file:
            file.write(data)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, object]:
        """What notebooks draw: the specification, and an SVG where it can be rendered."""
        found: dict[str, object] = {"text/plain": repr(self), MIME: self.spec}
        if installed("vl_convert"):
            found["image/svg+xml"] = self.to_svg()
        return found


def themed(spec: Spec, theme: str | None) -> Chart:
    """A chart of a specification in a theme."""
    return Chart({**spec, "config": config(theme or "light")}, theme)
