"""A build hook: packages contain the built report page if `make page` has built it.

A release must have it: with LAYERSCOPE_RELEASE=1, which `make dist` sets, a build without the page
fails. Other builds only warn, so that `pip install .` needs no Node; `report` then says how to get
the page.
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
        said = f"{' and '.join(missing)} missing: run `make page` first (needs Node 20)"
        if os.environ.get("LAYERSCOPE_RELEASE", "") not in ("", "0"):
            raise SystemExit(f"layerscope: {said}")
        self.app.display_warning(f"layerscope is built without the report page: {said}")
