"""Explains on one page why study 000 measured 102 s at 0.85 of L, where M/G/1 says 155 s.

No rows of the study are known, so its gap is accounted for by its printed numbers and by simulation
of its protocol: runs of 30 minutes that begin empty, each a mean of its requests, and the result
the mean of those. What is replaced, from the prediction to the measurement:

1. an empty queue at the beginning, all requests of all runs with the same weight;
2. each run with the same weight, though one of many requests is a slow one;
3. these 15 runs, of all that could have come: chance, with the range that simulation gives it.
"""

from dataclasses import dataclass
from random import Random

import numpy as np

from loadtests.lab.gaps import Entry, Gap, waterfall
from loadtests.lab.published import OPEN_RUN_S, OPEN_RUNS, OPEN_WORKLOADS, UNROUNDED, OpenWorkload
from loadtests.lab.report.content import Figure, Section, Table
from loadtests.lab.report.drawing import Axis, Series, figure
from loadtests.lab.report.page import plain_page
from loadtests.models import open_queue, replay
from loadtests.models.protocol import Expectation, Protocol, expectation
from loadtests.models.random_times import poisson_times, with_mean_and_cv

SIMULATED_RUNS = 20_000
CUSTOMERS, SIMULATED_QUEUES = 300, 2000  # of the figure of how a queue fills
CALIBRATION_RUNS = 16
LAW = with_mean_and_cv(UNROUNDED.mean_s, UNROUNDED.variation)
TITLE = "Study 000 at high load: 102 s measured, 155 s predicted"
LEAD = (
    "Study 000 concluded that at high load its server stands out against M/G/1. It ran each load "
    "15 times for half an hour against an empty server, which is 44 service times. This page sends "
    "simulated M/G/1 queues, with the study's own service times, through the very same protocol, "
    "and asks what is left of the difference."
)


@dataclass(frozen=True, slots=True)
class Explained:
    """The gap at one load. expected: of the study's protocol."""

    printed: OpenWorkload
    formula_s: float
    expected: Expectation

    @property
    def gap(self) -> Gap:
        """The entries in seconds."""
        formula_s, pooled_s, mean_s = self.formula_s, self.expected.pooled_s, self.expected.mean_s
        low_s, high_s = self.expected.low_s - mean_s, self.expected.high_s - mean_s
        chance_s = self.printed.tested_s - mean_s
        told = (
            f"What is left is {chance_s:+.1f} s, "
            f"{'inside' if low_s <= chance_s <= high_s else 'outside'} the 95 % range of chance in "
            f"{OPEN_RUNS} such runs, {low_s:+.1f} to {high_s:+.1f} s."
        )
        weights = "Giving a run of few requests the weight of one of many"
        entries = [
            Entry("start from empty", "Beginning with an empty queue", pooled_s - formula_s),
            Entry("runs weigh the same", weights, mean_s - pooled_s),
            Entry("chance", "", chance_s, low_s, high_s, told),
        ]
        return Gap(formula_s, entries, "s")


def explained(printed: OpenWorkload, seed: int = 1) -> Explained:
    """The gap at a load of the study, from `SIMULATED_RUNS` runs."""
    rate_per_s = printed.fraction / UNROUNDED.mean_s
    rng = Random(f"{seed} explained {printed.fraction}")  # noqa: S311  no secrets
    protocol = Protocol(OPEN_RUN_S, OPEN_RUNS)
    expected = expectation(protocol, rate_per_s, LAW, rng, simulated_runs=SIMULATED_RUNS)
    formula = open_queue.mg1(rate_per_s, UNROUNDED.mean_s, UNROUNDED.variance_s2)
    return Explained(printed, formula.response_time_s, expected)


def page(seed: int = 1) -> str:
    """The page, which is the same for the same seed."""
    found = [explained(printed, seed) for printed in OPEN_WORKLOADS]
    highest = found[-1]
    told = (
        f"Study 000 at {highest.printed.fraction:g} of L, one server in order of arrival, service "
        f"times of {UNROUNDED.mean_s:.2f} s with a coefficient of variation of "
        f"{UNROUNDED.variation:.3f}. The line at “chance” is the 95 % range of {OPEN_RUNS} runs."
    )
    figure = waterfall("From 155 s to 102 s", told, highest.gap)
    sections = [
        Section("The gap at 0.85 of L", _findings(highest), [figure]),
        Section("Every load", parts=[_table(found)]),
        Section("How a queue fills", parts=[_filling(highest.formula_s, seed)]),
        Section("What this does not settle", [_calibration(highest), *_NOT_SETTLED]),
    ]
    return plain_page(TITLE, [LEAD], sections)


def _findings(found: Explained) -> list[str]:
    expected, tested_s = found.expected, found.printed.tested_s
    gap = (
        f"The gap is {tested_s - found.formula_s:.1f} s. The protocol alone makes "
        f"{expected.mean_s - found.formula_s:.1f} s of it: an M/G/1 queue, measured in the same "
        f"way, is expected to show {expected.mean_s:.1f} s, because a run has only "
        f"{expected.arrivals:.0f} requests and the queue was empty when they began to come."
    )
    conclusion = (
        f"So 15 runs of an M/G/1 queue show between {expected.low_s:.0f} and "
        f"{expected.high_s:.0f} s in 95 of 100 cases, and the printed {tested_s:g} s says nothing "
        "against M/G/1."
    )
    return [gap, *(entry.sentence("s") for entry in found.gap.entries), conclusion]


def _table(found: list[Explained]) -> Table:
    error_s = max(one.expected.standard_error_s for one in found)
    return Table.of(
        "The gaps of study 000",
        found,
        [
            ("Share of L", lambda one: f"{one.printed.fraction:g}"),
            ("Requests a run", lambda one: one.expected.arrivals),
            ("M/G/1 / s", lambda one: one.formula_s),
            ("Start from empty / s", lambda one: one.gap.entries[0].amount),
            ("Runs weigh the same / s", lambda one: one.gap.entries[1].amount),
            ("Expected / s", lambda one: one.expected.mean_s),
            ("Chance / s", lambda one: one.gap.entries[2].amount),
            ("95 % of chance / s", lambda one: _range(one.gap.entries[2])),
            ("Printed / s", lambda one: one.printed.tested_s),
        ],
        f"By {SIMULATED_RUNS} simulated runs a load; the largest standard error of an expected "
        f"mean is {error_s:.2f} s.",
        digits=4,
    )


def _range(entry: Entry) -> str:
    return f"{entry.low:+.1f} to {entry.high:+.1f}"


def _filling(formula_s: float, seed: int) -> Figure:
    """The mean response time of the first customer, the second and so on, at the highest load."""
    fraction = OPEN_WORKLOADS[-1].fraction
    rate_per_s = fraction / UNROUNDED.mean_s
    rng, sums_s = Random(f"{seed} filling"), np.zeros(CUSTOMERS)  # noqa: S311  no secrets
    for _ in range(SIMULATED_QUEUES):
        arrivals_s = poisson_times(rate_per_s, rng, count=CUSTOMERS)
        sums_s += replay.fcfs(arrivals_s, [LAW.draw(rng) for _ in arrivals_s])
    means_s = [float(mean_s) for mean_s in sums_s / SIMULATED_QUEUES]
    numbers, last = list(range(1, CUSTOMERS + 1)), round(rate_per_s * OPEN_RUN_S)
    series = [
        Series("M/G/1", "model", [1, CUSTOMERS], [formula_s] * 2),
        Series("n-th customer", "second", numbers, means_s, shape="curve"),
        Series("last of a run of the study", "study", [last], [means_s[last - 1]], shape="points"),
    ]
    told = (
        f"Mean response time of the n-th customer at {fraction:g} of L, by {SIMULATED_QUEUES} "
        f"simulated queues that begin empty. A run of the study ends at about the {last}th."
    )
    shown = [(number, means_s[number - 1]) for number in (1, 5, 10, 20, last, 80, 150, CUSTOMERS)]
    rows = [(number, mean_s, 100 * mean_s / formula_s) for number, mean_s in shown]
    table = Table("How a queue fills", ("Customer", "Mean / s", "% of the long run"), rows)
    x, y = Axis("customer"), Axis("mean response time / s", limits=(0, 180))
    return figure("How a queue fills", told, x, y, series, table)


_NOT_SETTLED = (
    (
        "A request to mine every minute went through the same server and is in no model. It "
        "would make the measured times longer, not shorter; how much is not printed."
    ),
    (
        "Simulation shows that an M/G/1 queue suffices as an explanation. It does not show "
        "that the server was one: a queue that is somewhat faster would pass as well."
    ),
)


def _calibration(found: Explained) -> str:
    rate_per_s, slower_s = found.printed.fraction / UNROUNDED.mean_s, 1.001 * UNROUNDED.mean_s
    more_s = open_queue.mg1(rate_per_s, slower_s, UNROUNDED.variance_s2).response_time_s
    requests = round(CALIBRATION_RUNS * OPEN_RUN_S / UNROUNDED.mean_s)
    error = UNROUNDED.variation / requests**0.5
    of_error_s = 1000 * error * (more_s - found.formula_s)
    return (
        f"Calibration: E[S] is the mean of about {requests} requests, so its standard error is "
        f"{100 * error:.2f} % if they were independent. At {found.printed.fraction:g} of L this is "
        f"± {1.96 * of_error_s:.1f} s in the prediction."
    )
