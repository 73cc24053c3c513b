"""Results of a bench script as JSON, and its exit code if a goal is missed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

GOAL_MISSED = 3  # exit code: everything was measured, and a goal is not met; a failure exits with 1


def save(path: str | None, result: dict[str, Any], indent: int | None = None) -> None:
    """Write what was measured so far, so that a run that is stopped or fails keeps it."""
    if not path:
        return
    partial = Path(f"{path}.part")
    partial.write_text(json.dumps(result, indent=indent) + "\n", encoding="utf-8")
    os.replace(partial, path)
