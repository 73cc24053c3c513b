"""Networks, saved reports and runs on one HTML page: `report`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from layerscope.api.comparing import Network, Subject, checked_options, common_dtype, subject
from layerscope.api.plotting import chosen_machine, page_charts
from layerscope.api.timing import predict
from layerscope.conventions import convention
from layerscope.errors import InputError, UsageError
from layerscope.version import __version__

if TYPE_CHECKING:
    from layerscope.engines import Progress
    from layerscope.export.page_types import PageData, PageMachine, PageRun
    from layerscope.report import Report
    from layerscope.report.measurement import Machine, Measurement
    from layerscope.report.prediction import Prediction


def report_page(
    *networks: Network, on: str | None = None, progress: Progress | None = None, **options: Any
) -> str:
    """One HTML document with the graph and the table of every network, which needs no other file.

    With `on`, times are predicted for that machine. Other options are those of `analyze`; a Report
    or a Measurement is shown as it is.
    """
    from layerscope.export.page_file import built_page, write

    built_page()  # raises before a network is read
    return write(page_data(networks, on=on, progress=progress, **options))


def page_data(
    networks: Sequence[Network],
    *,
    on: str | None = None,
    progress: Progress | None = None,
    refused: list[InputError] | None = None,
    **options: Any,
) -> PageData:
    """The data inside the page of these networks; options are those of `report_page`.

    With `refused`, a network that cannot be read is an entry with its error, which is added to
    this list; if all are refused, the first error is raised.
    """
    from layerscope.export.json_types import SCHEMA
    from layerscope.export.page_comparisons import comparisons
    from layerscope.export.page_data import page_report, refused_report
    from layerscope.export.page_runs import times_of
    from layerscope.export.page_types import PageData
    from layerscope.plot.theme import THEMES, config
    from layerscope.report.compare import NetworkTime, compare
    from layerscope.report.outline import outline
    from layerscope.report.prediction import Prediction

    if not networks:
        raise UsageError("no network to report, expected at least 1")
    step = progress or (lambda what, done, of: None)
    names = [fspath(each) if isinstance(each, PathLike) else each for each in networks]
    machine = None if on is None else chosen_machine(on)
    themes = {name: config(name) for name in THEMES}
    data = PageData("page", SCHEMA, __version__, [], [], [], [], themes)
    given: list[Subject | InputError] = []
    checked = checked_options(names, options)
    for n, name in enumerate(names):
        step(name if isinstance(name, str) else "", n, 2 * len(names))
        given.append(_subject(name, checked, refused))
    read = [(n, each) for n, each in enumerate(given) if not isinstance(each, InputError)]
    if refused and not read:
        raise refused[0]
    kept_names, subjects = [names[n] for n, _ in read], [each for _, each in read]
    dtype = common_dtype(on, options.get("dtype"), kept_names, subjects)
    found, whole = [], []
    for n, each in enumerate(given):
        if isinstance(each, InputError):
            data.reports.append(refused_report(str(names[n]), each))
            data.runs.append(None)
            data.charts.append({})
            continue
        counted, run = each
        step(counted.name, len(names) + n, 2 * len(names))
        report = replace(counted, convention=convention("exact"))
        outlined = outline(report)
        timed = run or _prediction(report, on, dtype)
        kept = None if isinstance(timed, Prediction) else timed
        times = None if timed is None else times_of(timed, report, outlined)
        data.reports.append(
            replace(page_report(report, outlined), machine=_roofs(report, kept, machine, times))
        )
        data.runs.append(times)
        data.charts.append(page_charts(report, kept, machine))
        found.append(report)
        whole.append(None if timed is None else NetworkTime.of(timed))
    if len(found) > 1:
        compared = compare(found, whole if any(whole) else ())
        data.comparisons.extend(comparisons(compared, [n for n, _ in read]))
    return data


def _subject(
    network: Network, options: dict[str, Any], refused: list[InputError] | None
) -> Subject | InputError:
    """The report of a network and its run; the error of one that cannot be read, if kept."""
    try:
        return subject(network, options)
    except InputError as error:
        if refused is None:
            raise
        refused.append(error)
        return error


def _prediction(report: Report, on: str | None, dtype: str | None) -> Prediction | None:
    """Times predicted for a machine; None for this one, if it is not calibrated."""
    if on is None:
        return None
    if on == "this":
        from layerscope.engines.machine import threads_of
        from layerscope.prediction.calibration import cached_calibration

        if cached_calibration("onnxruntime", threads_of(None)) is None:
            return None
    return predict(report, on=on, dtype=dtype)


def _roofs(
    report: Report, run: Measurement | None, machine: Machine | None, times: PageRun | None
) -> PageMachine | None:
    """The roofs of the chosen machine, else of that of the run."""
    from layerscope.export.page_runs import machine_roofs
    from layerscope.report.timed import threads_of

    found = machine or (run.machine if run is not None else None)
    if found is None:
        return None
    threads = found.cores if run is None else threads_of(run.runs[0], found)
    dtype = report.float_dtype
    if found.peak(dtype, threads) is None and times is not None:
        dtype = times.dtype
    return machine_roofs(found, dtype, threads)
