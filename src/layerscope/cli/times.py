"""Times of layers that are read from files: `show NET --times FILE`, `--runtime` and `--power`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from layerscope.cli.output import RESULT_FORMS
from layerscope.errors import FormatError, UnknownName, UsageError
from layerscope.report.measurement import Measurement, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from layerscope.cli.measure import RowOptions
    from layerscope.formats.document.boda import PrintedTimes
    from layerscope.report import Report
    from layerscope.report.given_run import Given

FORMS = (*RESULT_FORMS, "boda")
# options of show that choose rows or columns of its own table, or count something else
REFUSED = ("like", "depth", "by", "columns", "everything", "total", "train", "fit")


class TimesOptions(TypedDict):
    """Options of the command that give times."""

    times: tuple[str, ...]
    runtime: float | None
    power: float | None


def check_times(form: str, options: Mapping[str, object]) -> None:
    """Raise for options that cannot be combined with times, or that need them."""
    from layerscope.report.quantities import runtime_s, watts

    times, runtime, power = options["times"], options["runtime"], options["power"]
    if isinstance(runtime, float):
        runtime_s(runtime, "--runtime")
    if isinstance(power, float):
        watts(power, "--power")
    if not times and form != "boda":
        raise UsageError(
            f"--{'power' if runtime is None else 'runtime'} needs --times or --as boda"
        )
    if not times:
        return
    if form not in FORMS:
        raise UnknownName("form of times", form, FORMS, f"; choose from {', '.join(FORMS)}")
    for name in REFUSED:
        if options[name] not in (None, False):
            option = "all" if name == "everything" else name
            raise UsageError(f"--{option} cannot be combined with --times")
    if options["sort"] not in (None, "time"):
        raise UsageError(f"--sort {options['sort']}: rows of a run are sorted by time")
    if isinstance(times, tuple) and len(times) > 1 and runtime is not None:
        raise UsageError(
            f"--runtime is that of one network, and --times is given {len(times)} times"
        )


def show_times(
    report: Report, form: str, output: str | None, options: Mapping[str, object]
) -> None:
    """Print a network with the times of `--times`; `options` are those of `show`."""
    from layerscope.cli.measure import check_rows, deliver_run
    from layerscope.cli.output import deliver, report_cache_problems

    given: TimesOptions = {
        "times": options["times"] if isinstance(options["times"], tuple) else (),
        "runtime": options["runtime"] if isinstance(options["runtime"], float) else None,
        "power": options["power"] if isinstance(options["power"], float) else None,
    }
    top = options["top"]
    rows: RowOptions = {
        "parts": None if options["parts"] is None else str(options["parts"]),
        "top": top if isinstance(top, int) else None,
        "sort": options["sort"] is not None,
        "no_stamp": bool(options["no_stamp"]),
    }
    check_rows(form, rows)
    if given["times"]:
        deliver_run(given_times(report, given), form, output, rows)
    else:
        deliver(_totals(report, given, rows), output, form)
    report_cache_problems()


def _totals(report: Report, given: TimesOptions, rows: RowOptions) -> str:
    """The boda notation with the rates and joules of `--runtime` and `--power`."""
    from layerscope.export.footer import footer, stamps
    from layerscope.export.run_lines import energy_lines
    from layerscope.notations.boda import write
    from layerscope.report.given_run import Given, run_without_times

    run = run_without_times(report, Given(given["runtime"], given["power"]))
    text = write(report, rows["parts"], run)
    if rows["no_stamp"]:
        return text
    energy = stamps(energy_lines(run.energy), "boda")
    below = footer(report, "boda")
    return text + (f"\n{energy}{below.removeprefix(chr(10))}" if energy else below)


def given_times(report: Report, options: TimesOptions) -> Measurement:
    """The files of `--times` as a measurement of the report's network."""
    from layerscope.engines.machine import cached_machine
    from layerscope.graph.serialize import to_plain
    from layerscope.report.given_run import Given
    from layerscope.report.measurement import Measurement

    given = Given(options["runtime"], options["power"])
    files = [_read(path, report, given) for path in options["times"]]
    runs = [run for file in files for run in file.runs]
    only = files[0] if len(files) == 1 else None
    machine, measured = None, ""
    if only is not None and only.kept is not None:
        machine, measured = only.kept.machine, only.kept.measured
    else:
        machine = cached_machine()
        runs = [_with_roofs(run) for run in runs] if machine is not None else runs
    return Measurement(
        network=report.name,
        graph=to_plain(report.graph),
        batch=report.batch,
        dtype=report.dtype,
        runs=tuple(runs),
        machine=machine,
        version=report.version,
        measured=measured,
        failures=tuple(line for file in files if file.kept for line in file.kept.failures),
    )


class GivenFile(Struct, frozen=True):
    """The runs of one file, and the measurement that it has, if it has one."""

    runs: tuple[Run, ...]
    kept: Measurement | None = None


def _read(path: str, report: Report, given: Given) -> GivenFile:
    from layerscope.export.run_json import read_file, reading
    from layerscope.graph.serialize import from_plain
    from layerscope.report.given_run import check_same_inputs, run_for, run_of
    from layerscope.report.times_file import read

    printed = _printed(path)
    if printed is not None:
        return GivenFile((printed_run(printed, path, report, given),))
    if not _is_run(path):
        return GivenFile((run_of(read(path), report, given),))
    if given.runtime_s is not None:
        raise UsageError(f"--runtime: {path} is a measured run, which has a time of its own")
    found = read_file(path)
    with reading(path):
        check_same_inputs(from_plain(found.graph), report, path)
        runs = tuple(run_for(run, report, path, given) for run in found.runs)
    return GivenFile(runs, found)


def _printed(path: str) -> PrintedTimes | None:
    """The times in a document of Boda's; None for another file."""
    from layerscope.formats.document.boda import times_of

    try:
        return times_of(path)
    except (FormatError, OSError):
        return None


def printed_run(printed: PrintedTimes, path: str, report: Report, given: Given) -> Run:
    """The run that a document of Boda's prints; what is given on the command line comes first."""
    from layerscope.report.given_run import Given, run_of
    from layerscope.report.measurement import Timer
    from layerscope.report.times_file import TimesFile

    power = printed.power_w if given.power_w is None else given.power_w
    run = run_of(
        TimesFile(path, printed.seconds, printed.runtime_s), report, Given(given.runtime_s, power)
    )
    if run.energy is not None and given.power_w is None:
        run = replace(run, energy=replace(run.energy, source="printed in the document"))
    timers = tuple(Timer(timer.tag, timer.count, timer.total_s) for timer in printed.timers)
    own = report.graph.notes if report.graph.claims is not None else ()
    return replace(run, timers=timers, notes=(*run.notes, *own))


def is_printed_run(report: Report, path: str, form: str, options: Mapping[str, object]) -> bool:
    """Whether a network is a document with times, and the options of `show` allow to print them."""
    claims = report.graph.claims
    if claims is None or claims.notation != "boda" or form not in FORMS:
        return False
    plain = all(options[name] in (None, False) for name in REFUSED)
    return plain and options["sort"] in (None, "time") and _printed(path) is not None


def _is_run(path: str) -> bool:
    """Whether a file is a run of `measure`; broken JSON is none, and is refused with its line."""
    from layerscope.formats import is_run

    try:
        return is_run(path)
    except FormatError:
        return False


def _with_roofs(run: Run) -> Run:
    note = "roofs are those of this machine; the times may be from another one"
    if run.threads is None:
        note = f"roofs are for all threads; {note}"
    return replace(run, notes=(*run.notes, note))
