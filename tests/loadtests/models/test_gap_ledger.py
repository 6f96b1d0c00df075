"""The gap ledger on runs of a simulated server, with one cause of a known size in each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from heapq import heappop, heappush
from random import Random

import pytest

from loadtests.models import gap_ledger
from loadtests.models.estimates import confidence_interval
from loadtests.models.gap_ledger import (
    Account,
    Calibrated,
    Cause,
    Model,
    Recorded,
    account,
    ledger,
)
from loadtests.models.open_queue import Queue, mgm, shared
from loadtests.models.random_times import Gamma, poisson_times
from loadtests.models.replay import Discipline, fcfs, processor_sharing

pytestmark = pytest.mark.slow

LOAD, CV = 0.8, 0.1
CONNECTING_S, RECEIVING_S = 0.04, 0.02
BUSY_S = 1.0  # with connecting; what is received later keeps nobody waiting
CALIBRATED = Calibrated(BUSY_S + RECEIVING_S, CV**2, delay_s=RECEIVING_S)
RUNS, ARRIVALS, SKIPPED = 12, 700, 200

PHASES_S = 0.25

OF_SERVICES = [*Cause][[*Cause].index(Cause.SERVICE_MEAN) :]

Times = Sequence[float]


def formula_s(busy_s: float = BUSY_S, cv: float = CV) -> float:
    return mgm(LOAD, busy_s, cv).response_time_s + RECEIVING_S


@dataclass(frozen=True)
class Server:
    """A perfect server, and what is wrong with it or with the generator before it.

    services_s: draws so many times in the handler; None for what was calibrated.
    """

    lag_s: float = 0.0
    connecting_s: float = CONNECTING_S
    slower: float = 1.0
    receiving_s: float = RECEIVING_S
    services_s: Callable[[Random, int], Times] | None = None
    shortest_first: bool = False
    evenly: bool = False
    arrivals: int = ARRIVALS
    skipped: int = SKIPPED

    def run(self, rng: Random) -> Recorded:
        intended_s = poisson_times(LOAD, rng, count=self.arrivals)
        if self.evenly:
            intended_s = [number / LOAD for number in range(self.arrivals)]
        sent_s = [at_s + self.lag_s for at_s in intended_s]
        services_s = [self.slower * for_s for for_s in self._services(rng)]
        starts_s = self._starts(sent_s, services_s)
        done_s = [
            at_s + for_s + self.receiving_s
            for at_s, for_s in zip(starts_s, services_s, strict=True)
        ]
        kept_s = [for_s + CONNECTING_S for for_s in services_s]
        return Recorded(intended_s, sent_s, done_s, kept_s, self.skipped, is_reported=True)

    def _services(self, rng: Random) -> Times:
        if self.services_s:
            return self.services_s(rng, self.arrivals)
        law = Gamma(BUSY_S, CV)
        return [law.draw(rng) - CONNECTING_S for _ in range(self.arrivals)]

    def _starts(self, sent_s: Times, services_s: Times) -> list[float]:
        starts_s, waiting, free_s, came = [0.0] * len(sent_s), list[tuple[float, int]](), 0.0, 0
        for _ in sent_s:
            if not waiting:
                free_s = max(free_s, sent_s[came])
            while came < len(sent_s) and sent_s[came] <= free_s:
                heappush(waiting, (services_s[came] if self.shortest_first else came, came))
                came += 1
            _, n = heappop(waiting)
            starts_s[n] = free_s + self.connecting_s
            free_s = starts_s[n] + services_s[n]
        return starts_s


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gap_ledger, "DRAWS", 8)


def accounts_of(
    server: Server, runs: int = RUNS, calibrated: Calibrated = CALIBRATED, seed: int = 5
) -> list[Account]:
    rng = Random(seed)
    model = Model(LOAD, formula_s(cv=calibrated.variance_s2**0.5))
    return [account(server.run(rng), calibrated, model, rng) for _ in range(runs)]


def spread(cv: float) -> Callable[[Random, int], Times]:
    law = Gamma(BUSY_S, cv)
    return lambda rng, count: [max(0.0, law.draw(rng) - CONNECTING_S) for _ in range(count)]


def in_phases(rng: Random, count: int) -> Times:
    """Slow and fast ones by turns."""
    drawn, slow = list[float](), rng.random() < 0.5
    while len(drawn) < count:
        slow = not slow
        here_s = BUSY_S - CONNECTING_S + (PHASES_S if slow else -PHASES_S)
        drawn += [here_s] * (1 + int(rng.expovariate(1 / 20)))
    return drawn[:count]


def two_sizes(rng: Random, count: int) -> Times:
    return rng.choices([0.5 - CONNECTING_S, 1.5 - CONNECTING_S], k=count)


@cache
def of_phases_s() -> float:
    """What the phases add to the mean response time, by a simulation of its own."""
    rng = Random(99)
    arrivals_s = poisson_times(LOAD, rng, count=100_000)
    services_s = [for_s + CONNECTING_S for for_s in in_phases(rng, 100_000)]
    return sum(fcfs(arrivals_s, services_s)) / 100_000 + RECEIVING_S - formula_s(cv=PHASES_S)


@cache
def of_an_empty_start_s() -> float:
    """What the mean of the first 40 responses lacks, by a simulation of its own."""
    rng, law = Random(98), Gamma(BUSY_S, CV)
    means = []
    for _ in range(8000):
        services_s = [law.draw(rng) for _ in range(40)]
        means.append(sum(fcfs(poisson_times(LOAD, rng, count=40), services_s)) / 40)
    return sum(means) / len(means) + RECEIVING_S - formula_s()


@dataclass(frozen=True)
class Case:
    """A cause, the size that it should have, and the relative room of that size itself."""

    cause: Cause
    server: Server
    size_s: Callable[[], float]
    calibrated: Calibrated = CALIBRATED
    runs: int = RUNS
    room: float = 0.0


SHORTEST_S = -0.5 * (1 / 0.2 - 0.5 * (1 / 0.8 + 1 / (0.8 * 0.2)))
"""A. Cobham (1954): two sizes of which the smaller goes first, against the order of arrival."""

CASES = [
    Case(Cause.DISPATCH, Server(lag_s=0.05), lambda: 0.05),
    Case(Cause.AROUND, Server(receiving_s=RECEIVING_S + 0.03), lambda: 0.03),
    Case(
        Cause.AROUND,
        Server(connecting_s=CONNECTING_S + 0.01),
        lambda: formula_s(1.01, CV / 1.01) - formula_s(),
    ),
    Case(
        Cause.DRIFT,
        Server(slower=1.01),
        lambda: formula_s(1.01 - 0.01 * CONNECTING_S) - formula_s(),
        calibrated=replace(CALIBRATED, drift=0.02 * (BUSY_S - CONNECTING_S)),
    ),
    Case(
        Cause.SERVICE_MEAN,
        Server(slower=1.02),
        lambda: formula_s(1.02 - 0.02 * CONNECTING_S) - formula_s(),
    ),
    Case(
        Cause.SPREAD,
        Server(services_s=spread(0.6)),
        lambda: formula_s(cv=0.6) - formula_s(),
        runs=20,
    ),
    Case(
        Cause.SPREAD,
        Server(services_s=in_phases),
        of_phases_s,
        calibrated=replace(CALIBRATED, variance_s2=PHASES_S**2),
        runs=16,
        room=0.1,
    ),
    Case(
        Cause.AROUND,
        Server(services_s=two_sizes, shortest_first=True),
        lambda: SHORTEST_S,
        calibrated=replace(CALIBRATED, variance_s2=0.25),
        runs=16,
    ),
    Case(
        Cause.EMPTY,
        Server(arrivals=40, skipped=0),
        of_an_empty_start_s,
        runs=150,
        room=0.05,
    ),
    Case(
        Cause.SAMPLING,
        Server(evenly=True, services_s=lambda _, count: [BUSY_S - CONNECTING_S] * count),
        lambda: BUSY_S + RECEIVING_S - formula_s(cv=0.0),
        calibrated=replace(CALIBRATED, variance_s2=0.0),
        room=0.01,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.cause.name.lower())
def test_a_cause_is_found_with_its_size_and_nothing_else_is(case: Case) -> None:
    accounts = accounts_of(case.server, case.runs, case.calibrated)
    whole = ledger(accounts, range(case.runs))
    size_s = case.size_s()
    interval = whole.intervals[case.cause]
    room_s = interval.half_width + case.room * abs(size_s) + 1e-9
    assert abs(interval.estimate - size_s) <= room_s
    assert not interval.covers(0)
    for cause, other in whole.intervals.items():
        if cause is not case.cause:
            assert other.low - 1e-9 <= 0 <= other.high + 1e-9, (cause, other)


def mean_s(run: Recorded) -> float:
    pairs = list(zip(run.intended_s, run.done_s, strict=True))[run.skipped :]
    return sum(done_s - intended_s for intended_s, done_s in pairs) / len(pairs)


def test_entries_sum_to_the_gap_whatever_is_wrong() -> None:
    server = Server(0.03, 0.07, 1.05, 0.05, spread(0.7), shortest_first=True, arrivals=300)
    rng = Random(2)
    run = server.run(rng)
    entries_s = account(run, replace(CALIBRATED, drift=0.03), Model(LOAD, 3.0), rng)
    assert list(entries_s) == [cause for cause in Cause if cause is not Cause.SERVER]
    assert sum(entries_s.values()) == pytest.approx(mean_s(run) - 3.0, abs=1e-9)


def test_a_server_that_tells_no_times_is_one_entry() -> None:
    rng = Random(3)
    run = Server(lag_s=0.05, slower=1.05, arrivals=400).run(rng)
    asked_s = [for_s / 1.05 for for_s in run.services_s]
    untold = replace(run, services_s=asked_s, is_reported=False)
    entries_s = account(untold, CALIBRATED, Model(LOAD, 3.0), rng)
    assert set(entries_s) == {Cause.SERVER, Cause.DISPATCH, *OF_SERVICES}
    assert entries_s[Cause.DISPATCH] == pytest.approx(0.05)
    assert entries_s[Cause.SERVER] > 0.1
    assert sum(entries_s.values()) == pytest.approx(mean_s(run) - 3.0, abs=1e-9)


@pytest.mark.parametrize(
    ("discipline", "servers", "predicted_s"),
    [(processor_sharing, 1, shared(LOAD, 1.0).response_time_s), (Queue(2).replayed_s, 2, None)],
    ids=["shared", "two servers"],
)
def test_other_queues_have_nothing_left_to_explain(
    discipline: Discipline, servers: int, predicted_s: float | None
) -> None:
    rng = Random(4)
    known = Calibrated(1.0, CV**2)
    rate_per_s = LOAD * servers
    if predicted_s is None:  # no formula is exact: a simulation of its own
        times_s = poisson_times(rate_per_s, rng, count=100_000)
        services_s = [Gamma(1.0, CV).draw(rng) for _ in times_s]
        predicted_s = sum(discipline(times_s, services_s)) / len(times_s)
    model = Model(rate_per_s, predicted_s, discipline, servers)
    accounts = []
    for _ in range(RUNS):
        times_s = poisson_times(rate_per_s, rng, count=400)
        services_s = [Gamma(1.0, CV).draw(rng) for _ in times_s]
        responses_s = discipline(times_s, services_s)
        done_s = [at_s + for_s for at_s, for_s in zip(times_s, responses_s, strict=True)]
        run = Recorded(times_s, times_s, done_s, services_s)
        accounts.append(account(run, known, model, rng))
    whole = ledger(accounts, range(RUNS))
    assert whole.entries_s[Cause.EMPTY] < 0
    for cause, interval in whole.intervals.items():
        if cause is not Cause.EMPTY:
            assert interval.low - 1e-9 <= 0 <= interval.high + 1e-9, (cause, interval)


def test_a_load_without_a_steady_state_has_no_ledger() -> None:
    rng = Random(1)
    with pytest.raises(ValueError, match="no steady state"):
        account(Server(arrivals=50, skipped=0).run(rng), CALIBRATED, Model(1.0, 3.0), rng)


def test_runs_that_share_a_calibration_are_one_replication() -> None:
    accounts = accounts_of(Server(arrivals=60, skipped=10), runs=10)
    apart, together = ledger(accounts, range(10)), ledger(accounts, "aabbccddee")
    assert apart.entries_s == together.entries_s
    assert apart.gap is not None
    assert together.gap is not None
    assert (apart.gap.values, together.gap.values) == (10, 5)
    assert together.gap.estimate == pytest.approx(sum(together.entries_s.values()))


@pytest.mark.parametrize("calibrations", ["aaaaaaaa", "aabbccdd"])
def test_few_calibrations_give_entries_without_intervals(calibrations: str) -> None:
    accounts = accounts_of(Server(arrivals=60, skipped=10), runs=8)
    few = ledger(accounts, calibrations)
    assert (few.gap, few.intervals) == (None, {})
    assert few.calibrations == len(set(calibrations))
    assert few.entries_s == ledger(accounts, range(8)).entries_s


def test_joint_intervals_are_wider_than_each_alone() -> None:
    accounts = accounts_of(Server(arrivals=60, skipped=10), runs=6)
    whole = ledger(accounts, range(6))
    sampling = [entries[Cause.SAMPLING] for entries in accounts]
    alone = confidence_interval(sampling)
    assert whole.intervals[Cause.SAMPLING].half_width > 1.5 * alone.half_width
