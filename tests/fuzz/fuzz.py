"""Atheris on one target: `python -m tests.fuzz.fuzz TARGET FOLDER [options of libFuzzer]`."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["layerscope"]):
    from tests.fuzz.targets import TARGETS

from tests.fuzz.mutators import MUTATORS
from tests.fuzz.seeds import write_seeds

OPTIONS = ("-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1")
WARM_UP = 50  # files that are read first: they import the modules that readers import when called
MORE_BYTES = 64  # that one change of a part may add to it


def main(name: str, folder: Path, options: list[str]) -> None:
    """Fuzz until something is found, or for as long as the options say."""
    target = TARGETS[name]
    mutator = MUTATORS.get(name)
    longest = write_seeds(name, folder)
    with atheris.instrument_imports(include=["layerscope"]):
        for path in sorted(folder.iterdir())[:WARM_UP]:
            with contextlib.suppress(Exception):
                target(path.read_bytes())

    def change(part: bytes) -> bytes:
        changed: bytes = atheris.Mutate(part, len(part) + MORE_BYTES)
        return changed

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        assert mutator is not None
        changed = mutator(data, Random(seed), change)
        return changed if len(changed) <= most else change(data)[:most]

    custom = {} if mutator is None else {"custom_mutator": mutate}
    limits = [*OPTIONS, f"-max_len={max(4096, 4 * longest)}", *options, str(folder)]
    atheris.Setup([sys.argv[0], *limits], target, **custom)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
