"""The proof that sweeps survive kills runs in steps, which go on in another process."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.sweeping.whole import NO_LIMIT, Progress, disturbed, undisturbed


def test_a_process_with_a_limit_runs_one_step(tmp_path: Path) -> None:
    ran = []

    def run(name: str) -> bool:
        def step(stop_at: float) -> bool:
            ran.append(name)
            return True

        return Progress(tmp_path, 1).step(name, step)

    assert not run("whole")
    assert Progress(tmp_path, 1).step("whole", lambda stop_at: False)  # it is done
    assert not run("calm")
    assert run("killed")
    assert ran == ["whole", "calm", "killed"]


def test_a_step_that_is_stopped_goes_on(tmp_path: Path) -> None:
    assert not Progress(tmp_path, NO_LIMIT).step("whole", lambda stop_at: False)
    progress = Progress(tmp_path, NO_LIMIT)
    assert progress.data["done"] == []
    assert progress.step("whole", lambda stop_at: True)


def test_an_undisturbed_run_does_not_use_what_a_stopped_one_left(tmp_path: Path) -> None:
    path = tmp_path / "calm.sqlite"
    path.write_text("half", encoding="utf-8")
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert not undisturbed(slow, path, time.monotonic() + 0.2)
    assert not path.exists()


def test_no_kill_after_the_time(tmp_path: Path) -> None:
    killed = {"main": 0, "worker": 0}
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert not disturbed(slow, 0, killed, time.monotonic() + 0.5)
    assert killed == {"main": 0, "worker": 0}
