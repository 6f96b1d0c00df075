"""Makes the tables of the report of open workloads."""

from collections.abc import Sequence
from math import isinf

from loadtests.experiments.open_workload.comparing import REPLICATIONS_FROM, AsTheStudy, Steady
from loadtests.experiments.open_workload.demands import Closed, Demands
from loadtests.experiments.open_workload.plan import (
    BRIEF_UP_TO,
    BRIEF_WARM_UP,
    SERVERS,
    SETTLED_UP_TO,
    WARM_UP,
)
from loadtests.experiments.open_workload.reading import OpenRun
from loadtests.lab.published import UNROUNDED
from loadtests.lab.report.content import Table
from loadtests.models.estimates import BATCHES, REPLICATIONS, TOLERANCE, Interval

REPORT_S = UNROUNDED.mean_s


def percent(difference: Interval, of: float) -> str:
    """A difference with its interval, if it has one, in per cent of `of`."""
    if isinf(difference.half_width):
        return f"{100 * difference.estimate / of:+.1f} %"
    return f"{100 * difference.estimate / of:+.1f} ± {100 * difference.half_width / of:.1f} %"


def steady(points: Sequence[Steady]) -> Table:
    """The steady state at each load, in service times."""
    rows = [
        (
            f"{point.fraction:.2g}",
            SERVERS[point.server],
            point.queue.name,
            f"{point.runs} of {point.runs + point.rejected}",
            point.arrivals,
            point.predicted,
            f"{point.raw.estimate:.3g} ± {point.raw.half_width:.2g}",
            point.paired.estimate,
            percent(point.difference, point.predicted),
            str(point.verdict),
        )
        for point in points
    ]
    columns = (
        *("Share of L", "Server", "Model", "Runs counted", "Arrivals", "Predicted", "Measured"),
        *("Paired estimate", "Paired difference", "Verdict"),
    )
    note = (
        f"Times are in service times. Left out of each run are its first {WARM_UP} arrivals "
        f"({BRIEF_WARM_UP} up to {BRIEF_UP_TO:g} of L), or a tenth if that is more. The tolerance "
        f"of {100 * TOLERANCE:g} % was fixed before the run. The interval of a single run is that "
        f"of {BATCHES} batches. From {REPLICATIONS_FROM:g} of L on, fewer than {REPLICATIONS} runs "
        f"decide nothing. Above {SETTLED_UP_TO:g} no runs decide: they are too short for the "
        "steady state of the formula, as their replay shows."
    )
    return Table("Steady state", columns, rows, note)


def causes(points: Sequence[Steady]) -> Table:
    """What may lie behind the differences of the steady state."""
    rows = [
        (
            f"{point.fraction:.2g}",
            SERVERS[point.server],
            point.replayed,
            percent(point.as_served, point.predicted) if point.as_served else None,
            f"{100 * (point.slower - 1):+.1f} %" if point.slower else None,
            f"{100 * point.lag:.2g} %",
        )
        for point in points
    ]
    columns = (
        *("Share of L", "Server", "Replayed / E[S]", "As served", "Slower than calibrated"),
        "Sent late, p99 / E[S]",
    )
    return Table("What lies behind", columns, rows)


def short(points: Sequence[AsTheStudy]) -> Table:
    """The study's protocol at each load, in report seconds."""
    rows = [
        (
            f"{point.fraction:g}",
            point.runs,
            point.fcfs * REPORT_S,
            point.expected.mean_s * REPORT_S,
            _range(point.expected.low_s, point.expected.high_s),
            point.mean * REPORT_S,
            point.replayed * REPORT_S,
            _range(point.of_study.low_s, point.of_study.high_s) if point.of_study else "–",
            point.published * REPORT_S if point.published else None,
        )
        for point in points
    ]
    columns = (
        *("Share of L", "Runs", "M/G/1, steady", "Expected", "95 % range of ours"),
        *("Ours", "Same arrivals, replayed", "95 % range of 15 runs", "The study's"),
    )
    note = "Times are in report seconds: R/E[S] × 40.499."
    return Table("As the study measured", columns, rows, note, digits=4)


def _range(low: float, high: float) -> str:
    return f"{low * REPORT_S:.1f} to {high * REPORT_S:.1f}"


def demands(known: Sequence[Demands]) -> Table:
    """The demands of a request on the service, in milliseconds."""
    rows = [
        (
            SERVERS[one.server],
            one.requests,
            1000 * one.engine_s,
            1000 * one.files_s,
            1000 * one.rest_s,
            1000 * one.front_s,
            1000 * one.network_s,
            1000 * one.busy_s,
            one.queue.servers / one.busy_s,
        )
        for one in known
    ]
    columns = (
        *("Server", "Requests", "Index or scan / ms", "Files / ms", "Rest of the handler / ms"),
        *("Beside the handler / ms", "On the way / ms", "Worker busy / ms", "Most / 1/s"),
    )
    note = (
        "“Beside the handler” is processor time of the worker for accepting and HTTP; it is not "
        "known of a service on another machine. The worker is busy for all but what is on the way."
    )
    return Table("Demands of one request", columns, rows, note)


def closed(points: Sequence[Closed]) -> Table:
    """Closed runs beside mean value analysis."""
    rows = [
        (
            SERVERS[point.server],
            point.customers,
            point.predicted.throughput_per_s,
            f"{point.throughput_per_s.estimate:.3g} ± {point.throughput_per_s.half_width:.2g}",
            1000 * point.predicted.response_time_s,
            1000 * point.response_s,
            str(point.verdict),
        )
        for point in points
    ]
    columns = (
        *("Server", "Customers", "Predicted X / 1/s", "Measured X / 1/s", "Predicted R / ms"),
        *("Measured R / ms", "Verdict"),
    )
    return Table("Closed runs", columns, rows, "The verdict is about the throughput X.")


def calibrations(runs: Sequence[OpenRun]) -> Table:
    """The calibration of the first run at each load that counts."""
    first: dict[tuple[str, float, str], OpenRun] = {}
    for run in runs:
        first.setdefault((run.server, run.fraction, run.part), run)
    rows = [
        (
            SERVERS[run.server],
            run.part.replace("-", " "),
            f"{run.fraction:.2g}",
            1000 * run.service_time_s,
            run.cv,
            None if run.overhead_s is None else 1000 * run.overhead_s,
            1000 * run.delay_s,
            run.rate_per_s,
            run.utilisation,
        )
        for run in first.values()
    ]
    columns = (
        *("Server", "Runs", "Share of L", "E[S] / ms", "cv", "E[S] outside the handler / ms"),
        *("E[S] on the way / ms", "Rate / 1/s", "ρ by the model"),
    )
    return Table("Calibrations", columns, rows, digits=4)
