"""Charts of reports, measured runs and predictions, by name."""

from __future__ import annotations

from collections.abc import Callable

from layerscope.api.networks import need_operations
from layerscope.engines.accelerators import machine_of
from layerscope.engines.machine import cached_machine
from layerscope.errors import UnknownName, UsageError
from layerscope.escaping import visible
from layerscope.plot import PLOTS
from layerscope.plot.activations import activations
from layerscope.plot.chart import Chart, themed
from layerscope.plot.costs import costs
from layerscope.plot.memory import alive, memory, timeline
from layerscope.plot.params import params
from layerscope.plot.roofline import attainable_roofline, measured_roofline
from layerscope.plot.roofs import NO_ROOF, DrawnRoofs, roofs_of, roofs_of_run
from layerscope.plot.theme import Spec
from layerscope.plot.throughput import throughput
from layerscope.plot.times import predicted_times, times
from layerscope.report import Report
from layerscope.report.generation import GenerationTimes
from layerscope.report.measurement import STORED_AS, Machine, Measurement
from layerscope.report.prediction import Prediction
from layerscope.report.timed import threads_of

OF_REPORTS = {"memory": memory, "costs": costs, "params": params, "activations": activations}
THROUGHPUT_NEEDS = (
    "--of throughput needs the configuration of a language model and a machine: "
    "layerscope plot hf:config.json --of throughput --on h100 --decode 8192"
)


def check_plot(of: str, on: str | None) -> None:
    """Raise for a chart that does not exist, or that takes no machine."""
    if of not in PLOTS:
        raise UnknownName("plot", of, PLOTS, f"; choose from {', '.join(PLOTS)}")
    if on is not None and of in OF_REPORTS:
        raise UsageError(f"--on applies to --of roofline and --of time, not to --of {of}")


def plot_report(
    report: Report,
    of: str = "memory",
    *,
    on: str | None = None,
    dtype: str | None = None,
    theme: str | None = None,
) -> Chart:
    """A chart of a report; `dtype` is that of the products, such as tf32."""
    check_plot(of, on)
    if of != "params":
        need_operations(report, "plot")
    if of == "throughput":
        raise UsageError(THROUGHPUT_NEEDS)
    if of == "time":
        if on is None:
            raise UsageError(time_needs_run(visible(report.name)))
        return themed(predicted_times(_predicted(report, on, dtype)), theme)
    if of != "roofline":
        return themed(OF_REPORTS[of](report), theme)
    machine = chosen_machine(on)
    product = dtype if dtype in STORED_AS else report.float_dtype
    return themed(attainable_roofline(report, roofs_of(machine, product, machine.cores)), theme)


def plot_run(
    found: Measurement, of: str = "roofline", *, on: str | None = None, theme: str | None = None
) -> Chart:
    """A chart of a measured run."""
    check_plot(of, on)
    report = found.report
    if of == "throughput":
        raise UsageError(THROUGHPUT_NEEDS)
    if of == "time":
        if on is not None:
            raise UsageError("--on does not apply to --of time of a run, which has its times")
        return themed(times(report, found), theme)
    if of != "roofline":
        return themed(OF_REPORTS[of](report), theme)
    return themed(measured_roofline(report, found, _roofs(found, on)), theme)


def plot_prediction(
    found: Prediction, of: str = "time", *, on: str | None = None, theme: str | None = None
) -> Chart:
    """A chart of a prediction: its times."""
    check_plot(of, on)
    if of != "time" or on is not None:
        raise UsageError(f"a prediction has a plot of time alone; plot the report for --of {of}")
    return themed(predicted_times(found), theme)


def plot_generation(
    found: GenerationTimes,
    of: str = "throughput",
    *,
    on: str | None = None,
    theme: str | None = None,
) -> Chart:
    """A chart of the predicted steps of a language model, by batch size."""
    check_plot(of, on)
    if of != "throughput" or on is not None:
        raise UsageError("the steps of a language model have a plot of throughput alone")
    return themed(throughput(found), theme)


def page_charts(
    report: Report, found: Measurement | None = None, machine: Machine | None = None
) -> dict[str, Spec]:
    """Specifications of one view each for the report page; a chart of nothing is left out."""

    def roofline() -> Spec:
        if found is not None:
            roofs = roofs_of_run(report, found)
            return measured_roofline(report, found, roofs)
        if machine is None:
            raise UsageError(NO_ROOF)
        return attainable_roofline(report, roofs_of(machine, report.float_dtype, machine.cores))

    def time() -> Spec:
        if found is None:
            raise UsageError(time_needs_run(report.name))
        return times(report, found)

    charts: dict[str, Callable[[], Spec]] = {
        "memory": lambda: timeline(report),
        "alive": lambda: alive(report),
        "costs": lambda: costs(report),
        "params": lambda: params(report),
        "activations": lambda: activations(report),
        "roofline": roofline,
        "time": time,
    }
    drawn = {}
    for name, draw in charts.items():
        try:
            drawn[name] = draw()
        except UsageError:  # nothing to draw: no layers, no FLOPs, no machine, no run
            continue
    return drawn


def time_needs_run(network: str) -> str:
    """How to get the times of a network."""
    return (
        f"--of time needs a measured run: layerscope measure {network} -o run.json, then "
        "layerscope plot run.json --of time; or --on MACHINE, to predict them"
    )


def chosen_machine(name: str | None) -> Machine:
    """The limits of a data sheet, or those measured on this machine."""
    if name is not None and name != "this":
        return machine_of(name)
    found = cached_machine()
    if found is None:
        raise UsageError(f"--of roofline needs the limits of a machine: {NO_ROOF}")
    return found


def _roofs(found: Measurement, on: str | None) -> DrawnRoofs | None:
    """The roofs of the machine of a run, or of another one."""
    if on is None:
        return roofs_of_run(found.report, found)
    machine = chosen_machine(on)
    return roofs_of(machine, found.report.float_dtype, threads_of(found.runs[0], machine))


def _predicted(report: Report, on: str, dtype: str | None) -> Prediction:
    from layerscope.api.timing import predict

    return predict(report, on=on, dtype=dtype)
