"""Compare models of other packages with PyTorch's counter, and print a table: make test-wild.

The exit code is 1 if a figure differs without a reason, or if more models are refused (1 %) or have
unknown operators (2 %) than the limits allow.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import logging
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from resource import RLIMIT_AS, setrlimit
from typing import Any

import msgspec

from tests.wild.compare_torch import OUTCOMES, Result, compare

PACKAGES = {
    "pytorchcv": "pytorchcv_torch",
    "segmentation-models-pytorch": "smp_torch",
    "monai": "monai_torch",
    "diffusers": "diffusers_torch",
    "ultralytics": "ultralytics_torch",
    "vit-pytorch": "vit_pytorch_torch",
    "x-transformers": "x_transformers_torch",
    "open_clip_torch": "open_clip_torch",
    "peft": "peft_torch",
    "transformers": "transformers_torch",
}
MOST_MEMORY = 10 << 30  # of a process, in bytes
CHUNK = 20  # models that one process runs before it takes those of another package
CHUNKS = 4  # that a process runs before a new one takes its place
MOST_REFUSED, MOST_UNKNOWN = 0.01, 0.02
LEAST_RULES = 0.9  # of the operators that the models call


def module_of(package: str) -> Any:
    """The list of a package's models and how they are built."""
    import torch

    from layerscope.formats.torch.model_names.torchvision_timm import torchvision_models

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("YOLO_VERBOSE", "false")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torchvision_models(torch)  # its compiled operators may be missing, their names are not
    return importlib.import_module(f"tests.wild.{PACKAGES[package]}")


def names_of(package: str) -> list[str]:
    """Names of a package's models."""
    return list(module_of(package).names())


def run_chunk(package: str, names: list[str], seconds: int) -> list[Result]:
    """Results of some models of one package, one after the other."""
    import torch

    setrlimit(RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))  # one model that is too large ends alone
    torch.set_num_threads(1)
    build = module_of(package).build
    found = []
    for name in names:
        found += compare(package, name, build, seconds)
        gc.collect()  # modules refer to each other: a few large models would fill the memory
    return found


def chunks(args: argparse.Namespace, done: Iterable[Result]) -> Iterator[tuple[str, list[str]]]:
    """What is left to run, in pieces."""
    ran = {(result.package, result.name) for result in done}
    for package in args.package or PACKAGES:
        names = args.name or names_of(package)[:: args.every]
        names = [name for name in names[: args.limit] if (package, name) not in ran]
        for start in range(0, len(names), CHUNK):
            yield package, names[start : start + CHUNK]


def run(args: argparse.Namespace) -> list[Result]:
    """All results, each written to the file of results as it comes."""
    path = Path(args.json) if args.json else None
    found = []
    if path and args.resume and path.exists():
        found = [msgspec.json.decode(line, type=Result) for line in path.read_bytes().splitlines()]
    elif path:
        path.write_bytes(b"")

    def keep(results: list[Result]) -> None:
        found.extend(results)
        if path:
            with path.open("ab") as file:
                file.writelines(msgspec.json.encode(result) + b"\n" for result in results)
        for result in results:
            if args.verbose or result.outcome not in ("equal", "reason"):
                print(line_of(result), flush=True)

    todo = list(chunks(args, found))
    context = get_context("spawn")
    for start in range(0, len(todo), args.jobs * CHUNKS):  # in new processes, with free memory
        with ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
            some = todo[start : start + args.jobs * CHUNKS]
            running = [pool.submit(run_chunk, *chunk, args.seconds) for chunk in some]
            try:
                for future in as_completed(running):
                    keep(future.result())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return found


def line_of(result: Result) -> str:
    """What is said of one model."""
    parts = [f"{result.package} {result.name}: {result.outcome}"]
    if result.macs is not None:
        parts.append(f"{result.macs:,} MACs, reference {result.reference:,}")
    parts += [f"{reason} {macs:+,}" for reason, macs in result.reasons.items()]
    parts += [f"{op} ×{count}" for op, count in result.unknown.items()]
    message = result.message if len(result.message) <= 200 else result.message[:200] + "…"
    return "; ".join([*parts, message] if message else parts)


def table(results: list[Result]) -> str:
    """Models by package and outcome; reasons with how many models each explains."""
    counts: dict[str, Counter[str]] = {}
    for result in results:
        counts.setdefault(result.package, Counter())[result.outcome] += 1
    heads = ("models", *OUTCOMES)
    lines = [f"{'package':<28}" + "".join(f"{head:>14}" for head in heads)]
    for package, count in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        cells = [count.total(), *(count[outcome] for outcome in OUTCOMES)]
        lines.append(f"{package:<28}" + "".join(f"{cell:>14,}" for cell in cells))
    reasons = Counter(reason for result in results for reason in result.reasons)
    lines += [f"{count:,} models differ by: {reason}" for reason, count in reasons.most_common()]
    return "\n".join(lines)


def operators(results: list[Result]) -> tuple[set[str], set[str]]:
    """Operators of PyTorch that the models call, and those of them without a rule."""
    unknown = {operator for result in results for operator in result.unknown}
    return unknown.union(*(result.operators for result in results)), unknown


def operator_line(results: list[Result]) -> str:
    """How many operators that the models call have a rule."""
    called, unknown = operators(results)
    share = 100 * (1 - len(unknown) / len(called)) if called else 100
    missing = f"; without: {', '.join(sorted(unknown))}" if unknown else ""
    return (
        f"{len(called) - len(unknown)} of {len(called)} operators that these models call have a "
        f"rule ({share:.1f} %){missing}"
    )


def verdict(results: list[Result]) -> list[str]:
    """What breaks a limit."""
    counts = Counter(result.outcome for result in results)
    ran = counts.total() - counts["no reference"]
    found = []
    if counts["different"]:
        found.append(f"{counts['different']} models differ without a reason")
    for outcome, most in (("refused", MOST_REFUSED), ("unknown", MOST_UNKNOWN)):
        if counts[outcome] >= most * ran:
            found.append(f"{counts[outcome]} of {ran} {outcome}, expected below {most:.0%}")
    called, without = operators(results)
    if len(without) > (1 - LEAST_RULES) * len(called):
        found.append(f"{len(without)} of {len(called)} operators have no rule")
    return found


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", action="append", choices=PACKAGES)
    parser.add_argument("--name", action="append", help="a model of the package")
    parser.add_argument("--limit", type=int, help="at most so many models of each package")
    parser.add_argument("--every", type=int, default=1, help="every n-th model of each package")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=120, help="time limit of one model")
    parser.add_argument("--json", help="file of results, one per line")
    parser.add_argument("--resume", action="store_true", help="leave out what the file has")
    parser.add_argument("--verbose", action="store_true", help="also models that agree")
    args = parser.parse_args()
    results = run(args)
    print(table(results))
    print(operator_line(results))
    broken = verdict(results)
    print("\n".join(broken) if broken else "all limits hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
