"""An HTML page with one chart: the specification, both themes, and Vega, in one file."""

from __future__ import annotations

from pathlib import Path

from layerscope.errors import MissingPage
from layerscope.escaping import html, json_text
from layerscope.plot.theme import FONT, NOTE, THEMES, Spec, config

BUNDLE = Path(__file__).parent.parent / "web" / "charts.js"
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
STYLE = f"""body {{ margin: 0; overflow-x: auto; background: var(--surface); color: var(--ink);
  font: {NOTE}px/1.4 {FONT} }}
.tip {{ background: var(--surface); border: 1px solid var(--line); border-radius: 6px;
  padding: 6px 9px; max-width: 40rem; overflow-wrap: anywhere }}
.tip .muted {{ color: var(--soft) }}
"""


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
    """Styles of the page around the chart and of its tooltips."""
    rules = f":root {{ color-scheme: {theme or 'light dark'} }}\n{_colours(theme or 'light')}\n"
    if theme is None:
        rules += f"@media (prefers-color-scheme: dark) {{ {_colours('dark')} }}\n"
    return f"<style>\n{rules}{STYLE}</style>\n"


def _colours(theme: str) -> str:
    found = THEMES[theme]
    ink, soft, _ = found.ink
    names = {"surface": found.surface, "line": found.edge, "ink": ink, "soft": soft}
    values = "; ".join(f"--{name}: {value}" for name, value in names.items())
    return f":root {{ {values} }}"
