"""Makes the tables of the report of open workloads."""

from collections.abc import Sequence

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
from loadtests.grouping import grouped
from loadtests.lab.published import UNROUNDED
from loadtests.lab.report.content import Table, times
from loadtests.lab.report.page import shown
from loadtests.models.estimates import REPLICATIONS, TOLERANCE, Interval
from loadtests.models.protocol import Expectation
from loadtests.models.sequential import LEAST_VALUES

REPORT_S = UNROUNDED.mean_s


def percent(difference: Interval, of: float) -> str:
    """A difference with its interval, if it has one, in per cent of `of`."""
    size = "" if difference.ends == (None, None) else f" ± {100 * difference.half_width / of:.1f}"
    return f"{100 * difference.estimate / of:+.1f}{size} %"


def give_or_take(found: Interval) -> str:
    """A mean and half the width of its interval, if it has one."""
    size = "" if found.ends == (None, None) else f" ± {found.half_width:.2g}"
    return f"{found.estimate:.3g}{size}"


def steady(points: Sequence[Steady]) -> Table:
    """The steady state at each load, in service times."""
    return Table.of(
        "Steady state",
        points,
        [
            ("Share of L", lambda point: f"{point.fraction:.2g}"),
            ("Server", lambda point: SERVERS[point.server]),
            ("Model", lambda point: point.queue.name),
            ("Runs counted", lambda point: f"{point.runs} of {point.runs + point.rejected}"),
            ("Arrivals", lambda point: point.arrivals),
            ("Predicted", lambda point: point.predicted),
            ("Measured", lambda point: give_or_take(point.raw)),
            ("Paired estimate", lambda point: point.paired.estimate),
            ("Paired difference", lambda point: percent(point.difference, point.predicted)),
            ("As served", lambda p: percent(p.as_served, p.served) if p.as_served else None),
            ("Verdict", lambda point: str(point.verdict)),
        ],
        f"Times are in service times. Left out of each run are its first {WARM_UP} arrivals "
        f"({BRIEF_WARM_UP} up to {BRIEF_UP_TO:g} of L), or a tenth if that is more. The tolerance "
        f"of {100 * TOLERANCE:g} % was fixed before the run. The verdict is about the paired "
        "difference, but for the service about the difference as served. Runs that share a "
        "calibration share its error, so intervals are over calibrations; one calibration has "
        f"none, and fewer than {LEAST_VALUES} decide nothing. From {REPLICATIONS_FROM:g} of L on, "
        f"neither do fewer than {REPLICATIONS} runs. Above {SETTLED_UP_TO:g} no runs decide: they "
        "are too short for the steady state of the formula, as their replay shows.",
    )


def causes(points: Sequence[Steady]) -> Table:
    """What may lie behind the differences of the steady state."""
    return Table.of(
        "What lies behind",
        points,
        [
            ("Share of L", lambda point: f"{point.fraction:.2g}"),
            ("Server", lambda point: SERVERS[point.server]),
            ("Replayed / E[S]", lambda point: point.replayed),
            (
                "Slower than calibrated",
                lambda p: f"{100 * (p.slower - 1):+.1f} %" if p.slower else None,
            ),
            ("Sent late, p99 / E[S]", lambda point: f"{shown(100 * point.lag, 2)} %"),
        ],
    )


def short(points: Sequence[AsTheStudy]) -> Table:
    """The study's protocol at each load, in report seconds."""
    return Table.of(
        "As the study measured",
        points,
        [
            ("Share of L", lambda point: f"{point.fraction:g}"),
            ("Runs", lambda point: point.runs),
            ("M/G/1, steady", lambda point: point.fcfs * REPORT_S),
            ("Expected", lambda point: point.expected.mean_s * REPORT_S),
            ("95 % range of ours", lambda point: range_s(point.expected)),
            ("Ours", lambda point: point.mean * REPORT_S),
            ("Same arrivals, replayed", lambda point: point.replayed * REPORT_S),
            ("95 % range of 15 runs", lambda p: range_s(p.of_study) if p.of_study else None),
            ("The study's", lambda p: p.published * REPORT_S if p.published else None),
        ],
        "Times are in report seconds: R/E[S] × 40.499.",
        digits=4,
    )


def range_s(of: Expectation) -> str:
    """The range of an expected result in report seconds."""
    return f"{of.low_s * REPORT_S:.1f} to {of.high_s * REPORT_S:.1f}"


def demands(known: Sequence[Demands]) -> Table:
    """The demands of a request on the service, in milliseconds."""
    return Table.of(
        "Demands of one request",
        known,
        [
            ("Server", lambda one: SERVERS[one.server]),
            ("Requests", lambda one: one.requests),
            ("Index or scan / ms", lambda one: 1000 * one.engine_s),
            ("Files / ms", lambda one: 1000 * one.files_s),
            ("Rest of the handler / ms", lambda one: 1000 * one.rest_s),
            ("Beside the handler / ms", lambda one: 1000 * one.front_s),
            ("On the way / ms", lambda one: 1000 * one.network_s),
            ("Worker busy / ms", lambda one: 1000 * one.busy_s),
            ("Most / 1/s", lambda one: one.queue.servers / one.busy_s),
        ],
        "“Beside the handler” is processor time of the worker for accepting and HTTP; it is not "
        "known of a service on another machine. The worker is busy for all but what is on the way.",
    )


def closed(points: Sequence[Closed]) -> Table:
    """Closed runs beside mean value analysis."""
    return Table.of(
        "Closed runs",
        points,
        [
            ("Server", lambda point: SERVERS[point.server]),
            ("Customers", lambda point: point.customers),
            ("Predicted X / 1/s", lambda point: point.predicted.throughput_per_s),
            ("As served / 1/s", lambda point: point.served_per_s),
            ("Measured X / 1/s", lambda point: give_or_take(point.throughput_per_s)),
            ("Predicted R / ms", lambda point: 1000 * point.predicted.response_time_s),
            ("Measured R / ms", lambda point: 1000 * point.response_s),
            ("Verdict", lambda point: str(point.verdict)),
        ],
        "The verdict is about the throughput X as served.",
    )


def calibrations(runs: Sequence[OpenRun]) -> Table:
    """The calibration of the first run at each load that counts."""
    return Table.of(
        "Calibrations",
        [of_load[0] for of_load in grouped(runs, lambda run: run.key).values()],
        [
            ("Server", lambda run: SERVERS[run.server]),
            ("Runs", lambda run: run.part.replace("-", " ")),
            ("Share of L", lambda run: f"{run.fraction:.2g}"),
            ("E[S] / ms", lambda run: 1000 * run.service_time_s),
            ("cv", lambda run: run.cv),
            ("E[S] outside the handler / ms", lambda run: times(1000, run.overhead_s)),
            ("E[S] on the way / ms", lambda run: 1000 * run.delay_s),
            ("Rate / 1/s", lambda run: run.rate_per_s),
            ("ρ by the model", lambda run: run.utilisation),
        ],
        digits=4,
    )
