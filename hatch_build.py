"""A build hook: wheels and sdists contain the built report page, or are not built.

`make page` builds it. With LAYERSCOPE_WITHOUT_PAGE=1 they are built without it, and `report` then
says how to get it.
"""

from __future__ import annotations

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("src/layerscope/web/page.html", "src/layerscope/web/charts.js")


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Fails a release build without the page; editable installs need none."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Check the files before anything is built."""
        missing = [name for name in FILES if not os.path.isfile(os.path.join(self.root, name))]
        if version == "editable" or not missing:
            return
        if os.environ.get("LAYERSCOPE_WITHOUT_PAGE", "") in ("", "0"):
            raise SystemExit(
                f"layerscope: {' and '.join(missing)} missing: run `make page` first (needs Node "
                "20), or set LAYERSCOPE_WITHOUT_PAGE=1 to build without the report page"
            )
