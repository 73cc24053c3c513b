"""Build hook: a wheel or sdist has the report page inside, which `make page` builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = ("page.html", "charts.js")


class PageHook(BuildHookInterface[Any]):
    """Fails a build without the page; an editable install works without it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Check that the files are there."""
        web = Path(self.root, "src", "layerscope", "web")
        missing = [name for name in BUILT if not (web / name).is_file()]
        if version != "editable" and missing:
            raise RuntimeError(f"{', '.join(missing)} not built: run `make page` (needs Node 20)")
