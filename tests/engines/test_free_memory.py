"""Memory that a run may take: what the system and a container leave, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from layerscope.engines import free_memory
from layerscope.errors import EngineError


def test_a_container_with_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "GROUP", str(tmp_path))
    free = free_memory.free_bytes()
    assert free is None or free > 0
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("4000\n")
    (tmp_path / "memory.stat").write_text("anon 3000\ninactive_file 700\nactive_file 100\n")
    assert free_memory.free_bytes() == 5000 - 4000 + 800
    (tmp_path / "memory.max").write_text("max\n")  # no limit
    assert free_memory._of_group() is None


def test_more_than_there_is_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_memory, "free_bytes", lambda: 10_000_000)
    free_memory.check_memory("net", {"weights": 6_000_000, "cache": 4_000_000})
    with pytest.raises(EngineError, match=r"net: .* 10\.0 MB = weights 6\.00 MB \+ cache 4\.00 MB"):
        free_memory.check_memory("net", {"weights": 6_000_000, "cache": 4_000_001, "logits": 0})
    monkeypatch.setattr(free_memory, "free_bytes", lambda: None)
    free_memory.check_memory("net", {"weights": 10**15})
