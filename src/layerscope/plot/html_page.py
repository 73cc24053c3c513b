"""An HTML page with one chart: the specification, both themes, and Vega, in one file."""

from __future__ import annotations

from pathlib import Path

from layerscope.errors import MissingPage
from layerscope.escaping import html, json_text
from layerscope.plot.theme import THEMES, Spec, config

BUNDLE = Path(__file__).parent.parent / "web" / "charts.js"
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


def page(spec: Spec, theme: str | None = None) -> str:
    """The page; without a theme it follows the reader's."""
    try:
        script = BUNDLE.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingPage(
            "a chart as HTML needs the built page, which is not in this checkout: `make page` "
            "builds it (needs Node 20)"
        ) from None
    meta = spec["usermeta"]
    assert isinstance(meta, dict)
    title = html(str(meta["title"]))
    notes = "".join(f"<p>{html(str(note))}</p>" for note in meta["notes"])
    data = {
        "spec": {name: value for name, value in spec.items() if name != "config"},
        "themes": {name: config(name) for name in ([theme] if theme else THEMES)},
    }
    embedded = json_text(data, indent=0).replace("<", "\\u003c").strip()
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n{_style(theme)}</head>\n<body>\n"
        f'<main id="chart"><noscript><h1>{title}</h1>{notes}</noscript></main>\n'
        f'<script type="application/json" id="layerscope-chart">{embedded}</script>\n'
        f"<script>{script.replace('</script', chr(60) + chr(92) + '/script')}</script>\n"
        "</body>\n</html>\n"
    )


def _style(theme: str | None) -> str:
    """Colours of the page around the chart, which the browser shows before it is drawn."""
    first = THEMES[theme or "light"]
    rules = f":root {{ color-scheme: {theme or 'light dark'} }}\n{_ground(first.surface)}"
    if theme is None:
        dark = _ground(THEMES["dark"].surface)
        rules += f"@media (prefers-color-scheme: dark) {{ {dark.strip()} }}\n"
    return f"<style>\n{rules}body {{ margin: 0; overflow-x: auto }}\n</style>\n"


def _ground(colour: str) -> str:
    return f"body {{ background: {colour} }}\n"
