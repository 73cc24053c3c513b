"""The report page: one HTML file, which `make page` builds, with the data of a report inside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from layerscope.errors import MissingPage
from layerscope.escaping import html, json_text

if TYPE_CHECKING:
    from layerscope.export.page_networks import NetworksData
    from layerscope.export.page_types import PageData

PAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "web", "page.html")
# where the page has its data and its title
DATA = '<script type="application/json" id="layerscope-data">null</script>'
TITLE = "<title>layerscope</title>"
# An HTML parser ends a script at a tag; these characters occur in strings of JSON only.
IN_SCRIPT = {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}


def built_page() -> str:
    """The page without data; raises MissingPage if it is not built."""
    try:
        with open(PAGE, encoding="utf-8") as file:
            found = file.read()
    except OSError:
        raise MissingPage(
            "the report page is not built: wheels of layerscope contain it, and in a checkout "
            "`make page` builds it (needs Node 20)"
        ) from None
    if DATA not in found or TITLE not in found:
        raise MissingPage("the report page has no element for data: `make page` builds it again")
    return found


def data_text(data: PageData | NetworksData) -> str:
    """The data as JSON, which no HTML parser takes for a tag."""
    text = json_text(data, indent=-1)
    for sign, escape in IN_SCRIPT.items():
        text = text.replace(sign, escape)  # str.translate takes a second for 10,000 layers
    return text.strip()


def write(data: PageData) -> str:
    """The page with its data: an HTML document that needs no other file."""
    return filled(", ".join(report.network for report in data.reports), data_text(data))


def filled(title: str, data: str, more: str = "") -> str:
    """The built page with a title, data as JSON, and more elements after it."""
    before, after = built_page().split(DATA, 1)
    before = before.replace(TITLE, f"<title>{html(title)} · layerscope</title>", 1)
    return f"{before}{DATA.replace('null', data)}{more}{after}"
