"""Networks, saved reports and runs side by side: `compare`."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from layerscope.api.networks import analyze, check_input_option, is_model, recognised, shapes_of
from layerscope.api.options import APPLIES_TO, applies, check_unused, formats_of, is_given
from layerscope.api.timing import time_of
from layerscope.conventions import convention
from layerscope.errors import UsageError
from layerscope.graph import Graph
from layerscope.graph.dtype_names import dtype_name
from layerscope.report import Report
from layerscope.report.unchanged import check_unchanged

if TYPE_CHECKING:
    import torch  # noqa: TID251

    from layerscope.engines import Progress
    from layerscope.report.compare import Comparison
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction

Network: TypeAlias = "str | Graph | torch.nn.Module | Report | Measurement | Prediction"


Subject: TypeAlias = "tuple[Report, Measurement | Prediction | None]"


def compare(
    first: Network,
    *others: Network,
    measure: bool = False,
    on: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Comparison:
    """Compare networks with the first one; options are those of `analyze`.

    A Report or a Measurement is compared as it is, and options apply to the other networks. Files
    that layerscope wrote take `like`, and refuse options that would change them. With `measure` the
    networks are timed on ONNX Runtime, with `on` their time is predicted for that machine, all in
    one dtype. Options for readers of files apply to the files of their formats only; modules take
    the same `input_size` or `input_data`, or are given as Reports of `analyze`.
    """
    from layerscope.report.compare import NetworkTime
    from layerscope.report.compare import compare as compared

    if measure and on is not None:
        raise UsageError("--measure cannot be combined with --on")
    networks = [fspath(each) if isinstance(each, PathLike) else each for each in (first, *others)]
    checked = checked_options(networks, options)
    found = [subject(each, checked) for each in networks]
    reports = [report for report, _ in found]
    times = [None if run is None else NetworkTime.of(run) for _, run in found]
    dtype = common_dtype(on, options.get("dtype"), networks, found)
    for n, report in enumerate(reports):
        if (measure or on is not None) and times[n] is None:
            times[n] = time_of(report, networks[n], on, dtype, progress)
    return compared(reports, times if any(times) else ())


def checked_options(networks: Sequence[Network], options: dict[str, Any]) -> dict[str, Any]:
    """The options of `analyze` that are given; raises before a network is read."""
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction

    options = {name: value for name, value in options.items() if is_given(value)}
    if all(isinstance(each, (Report, Measurement, Prediction)) for each in networks):
        check_unused(options, "Reports, Measurements and Predictions are used as they are")
    _check_network_options(options, networks)
    _check_reader_options(options, networks)
    return options


def subject(network: Network, options: dict[str, Any]) -> Subject:
    """The report of a network, and its run if it was measured."""
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction

    saved = read_result(network) if isinstance(network, str) else None
    if saved is not None:
        report, run = subject(saved, {})
        check_unchanged(str(network), report, options, shapes_of(options.get("input")))
        like = options.get("like", report.convention.name)
        return replace(report, convention=convention(like)), run
    if isinstance(network, Report):
        return network, None
    if isinstance(network, Measurement):
        return network.report, network
    if isinstance(network, Prediction):
        if network.graph is None:
            raise UsageError(f"a Prediction of {network.network} without its graph")
        return analyze(network.graph), network
    if isinstance(network, (str, Graph)):
        check_input_option(network, options)
    options = {name: value for name, value in options.items() if _applies(network, name)}
    return analyze(network, **options), None


def common_dtype(
    on: str | None,
    asked: str | torch.dtype | None,
    networks: Sequence[Network],
    found: Sequence[Subject],
) -> str | None:
    """The dtype that times of several networks are predicted in; raises if there are several."""
    dtype = None if asked is None else dtype_name(asked)
    if on is None or on == "this":
        return dtype
    from layerscope.prediction.other_machines import dtype_on

    dtypes: dict[str, str] = {}  # dtype -> a network that is predicted in it
    for network, (report, run) in zip(networks, found, strict=True):
        if run is None:
            name = network if isinstance(network, str) else report.name
            dtypes.setdefault(dtype_on(on, dtype, report.float_dtype), name)
    if len(dtypes) > 1:
        listed = " and ".join(f"{each} for {name}" for each, name in dtypes.items())
        fixed = {report.float_dtype for network, (report, _) in zip(networks, found, strict=True)
                 if _is_result(network)} or {min(dtypes)}  # fmt: skip
        works = "write the reports again with one --dtype"
        if len(fixed) == 1:
            works = f"give --dtype {min(fixed)}"
        raise UsageError(
            f"--on {on}: times would be predicted in {listed}, and a comparison needs one dtype; "
            f"{works}"
        )
    return next(iter(dtypes), None)


def _applies(network: Network, name: str) -> bool:
    """Whether an option of `analyze` applies to a network that is compared."""
    if name not in APPLIES_TO:
        return True
    if not isinstance(network, str) or _is_result(network):
        return False
    return applies(network, name, None if is_model(network) else recognised(network))


def _check_reader_options(options: dict[str, Any], networks: Sequence[Network]) -> None:
    """Raise for an option of file readers that applies to none of the networks."""
    for name in APPLIES_TO:
        if name in options and not any(_applies(each, name) for each in networks):
            formats = " or ".join(formats_of(name))
            raise UsageError(
                f"{name} has no effect: it applies to files of the format {formats}, and none of "
                "the networks is one"
            )


def _check_network_options(options: dict[str, Any], networks: Sequence[Network]) -> None:
    """Raise for an option of `analyze` if there is nothing to analyze."""
    given = [name for name in options if name != "like"]
    if given and all(_is_result(each) for each in networks):
        raise UsageError(
            f"{given[0]} does not apply to reports and runs, and there is nothing else"
        )


def _is_result(network: Network) -> bool:
    """Whether it is a report or a run, or a file that one was written to."""
    from layerscope.formats import kind_of_json
    from layerscope.report.measurement import Measurement
    from layerscope.report.prediction import Prediction

    if isinstance(network, str):
        return kind_of_json(network) in ("run", "report", "prediction")
    return isinstance(network, (Report, Measurement, Prediction))


def read_result(path: str) -> Report | Measurement | Prediction | None:
    """A report, run or prediction in a JSON file of layerscope; None for another kind of file."""
    from layerscope.formats import kind_of_json

    kind = kind_of_json(path)
    if kind == "run":
        from layerscope.export.run_json import read_file

        return read_file(path)
    if kind == "report":
        from layerscope.export.report_file import read_file as read_report

        return read_report(path)
    if kind == "prediction":
        from layerscope.export.predicted import read_file as read_prediction

        return read_prediction(path)
    return None
