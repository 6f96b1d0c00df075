"""The gap ledger of closed runs, of made-up servers of which it is known what differs."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from loadtests.experiments.queueing_network.comparing import ClosedRun, Point, points
from loadtests.experiments.queueing_network.gaps import (
    DEMANDS,
    LATENESS,
    SAMPLING,
    SHORT,
    WAY,
    WORDS,
    gap_of,
    gap_section,
)
from loadtests.experiments.queueing_network.measuring import LATE
from loadtests.experiments.queueing_network.predicting import (
    EXPONENTIAL,
    FORMULAS,
    MVA,
    REGULAR,
    SERVERS,
    SINGLE,
    STATIONS,
    Expected,
    Server,
    Spread,
    by_formula,
    stations,
)
from loadtests.lab.content import Figure, Table
from loadtests.lab.gaps import Gap
from loadtests.lab.published import NETWORK_THINK_S

NOMINAL = {station.name: station.demand_s for station in stations()}
TOTAL_S = sum(NOMINAL.values())
SIMULATED_S, SPREAD_S = 60.0, 0.5


def a_run(
    server: Server,
    customers: int,
    response_s: float,
    *,
    think_s: float = NETWORK_THINK_S,
    slower: float = 1.0,
    late_s: float = 0.0,
    queue_s: float = 0.0,
    counts: bool = True,
    tells: bool = True,
) -> ClosedRun:
    """A run in which all interactions are alike. queue_s: told wait at the stations."""
    told = {name: slower * demand_s for name, demand_s in NOMINAL.items()}
    told |= {f"{name}_queue": queue_s / len(STATIONS) for name in STATIONS} | {LATE: late_s}
    return ClosedRun(
        server=server,
        customers=customers,
        is_accepted=counts,
        cycles_s=[response_s + think_s] * 20,
        responses_s=[response_s] * 20,
        told=[told] * 20 if tells else [],
    )


def expected(x: float = 0.02) -> Expected:
    of = Spread(SIMULATED_S, SPREAD_S, SIMULATED_S - 1, SIMULATED_S + 1, 200)
    return Expected(replace(of, mean=x, deviation=x / 100), of)


def point(run: ClosedRun) -> Point:
    (found,) = points([run], {(run.server, run.customers): expected()})
    return found


def gap(run: ClosedRun, alone: ClosedRun | None = None) -> Gap:
    return gap_of(point(run), point(alone) if alone else None)


def entries(of: Gap) -> Mapping[str, float]:
    return {entry.name: entry.amount for entry in of.entries}


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
@pytest.mark.parametrize("customers", [1, 2, 5])
def test_the_entries_sum_to_the_gap(server: Server, customers: int) -> None:
    run = a_run(server, customers, 120.0, think_s=5.5, slower=1.1, late_s=0.3, queue_s=20.0)
    found = gap(run, a_run(server, 1, 50.0))
    assert found.measured == pytest.approx(120.0)
    assert found.gap_low == pytest.approx(120.0 - found.predicted - 1.96 * SPREAD_S, abs=1e-3)
    assert found.gap_high == pytest.approx(120.0 - found.predicted + 1.96 * SPREAD_S, abs=1e-3)
    left = found.entries[-1]
    assert left.name == SAMPLING
    assert left.low == pytest.approx(left.amount - 1.96 * SPREAD_S, abs=1e-3)


def test_each_server_starts_from_its_own_prediction() -> None:
    mva_s = by_formula(MVA, 2).response_s
    single_s = 2 * TOTAL_S - NETWORK_THINK_S
    of = {server: gap(a_run(server, 2, 70.0)) for server in SERVERS}
    assert of[EXPONENTIAL].predicted == pytest.approx(mva_s)
    assert of[SINGLE].predicted == pytest.approx(single_s)
    assert of[REGULAR].predicted == pytest.approx(SIMULATED_S)
    assert entries(of[EXPONENTIAL])[SHORT] == pytest.approx(SIMULATED_S - mva_s)
    assert entries(of[SINGLE])[SHORT] == pytest.approx(SIMULATED_S - single_s)
    assert SHORT not in entries(of[REGULAR])


class TestOneAtATime:
    """A server whose response time is N·D − Z, so that the size of every cause is known."""

    def test_slower_services_hold_all_who_wait(self) -> None:
        run = a_run(SINGLE, 3, 3 * 1.05 * TOTAL_S - NETWORK_THINK_S, slower=1.05)
        assert entries(gap(run))[DEMANDS] == pytest.approx(3 * 0.05 * TOTAL_S)

    def test_lateness_holds_the_worker(self) -> None:
        run = a_run(SINGLE, 3, 3 * (TOTAL_S + 0.4) - NETWORK_THINK_S, late_s=0.4)
        assert entries(gap(run))[LATENESS] == pytest.approx(3 * 0.4)

    def test_the_way_is_that_of_one_customer(self) -> None:
        run = a_run(SINGLE, 3, 3 * (TOTAL_S + 1.0) - NETWORK_THINK_S)
        assert entries(gap(run, a_run(SINGLE, 1, TOTAL_S + 1.0)))[WAY] == pytest.approx(3.0)
        assert entries(gap(run))[WAY] == pytest.approx(0.0)

    def test_who_thinks_longer_waits_less(self) -> None:
        run = a_run(SINGLE, 3, 3 * TOTAL_S - 7.0, think_s=7.0)
        assert entries(gap(run))[WAY] == pytest.approx(NETWORK_THINK_S - 7.0)


def test_with_one_customer_every_cause_adds_itself() -> None:
    response_s = 1.02 * TOTAL_S + 0.7 + 0.3
    found = entries(gap(a_run(EXPONENTIAL, 1, response_s, slower=1.02, late_s=0.3)))
    assert found[WAY] == pytest.approx(0.7)
    assert found[DEMANDS] == pytest.approx(0.02 * TOTAL_S)
    assert found[LATENESS] == pytest.approx(0.3)


def test_every_formula_agrees_with_a_single_customer() -> None:
    for formula in FORMULAS.values():
        assert formula(stations(), 1, NETWORK_THINK_S).response_s == pytest.approx(TOTAL_S)


def test_the_report_has_the_largest_n_of_each_server_and_all_in_a_table() -> None:
    runs = [
        *(a_run(server, n, 50.0 * n) for server in (EXPONENTIAL, SINGLE) for n in (1, 2)),
        a_run(EXPONENTIAL, 3, 99.0, counts=False),
        a_run(REGULAR, 2, 99.0, tells=False),
    ]
    found = points(runs, {(run.server, run.customers): expected() for run in runs})
    *figures, table = gap_section(found).parts
    assert [of.title for of in figures if isinstance(of, Figure)] == [
        f"Gap at N = 2, {server.label}" for server in (EXPONENTIAL, SINGLE)
    ]
    assert isinstance(table, Table)
    assert [(row[0], row[1]) for row in table.rows] == [
        (server.label, n) for server in (EXPONENTIAL, SINGLE) for n in (1, 2)
    ]
    for row in table.rows:
        *amounts, _, measured = (float(cell or 0) for cell in row[2:])
        assert sum(amounts) == pytest.approx(measured)
    untold = [a_run(REGULAR, 2, 99.0, tells=False)]
    assert not gap_section(points(untold, {(REGULAR, 2): expected()})).parts


def test_what_is_left_is_not_called_chance_where_it_is_more() -> None:
    responses_s = {2: SIMULATED_S, 3: SIMULATED_S + 9}
    runs = [
        a_run(EXPONENTIAL, n, response_s, queue_s=response_s - TOTAL_S)
        for n, response_s in responses_s.items()
    ]
    found = points(runs, {(run.server, run.customers): expected() for run in runs})
    *_, told = gap_section(found).paragraphs
    assert "in 1 of 2 cases" in told
    assert "N = 3 (+9 s)" in told
    assert "N = 2" not in told


@pytest.mark.parametrize("words", WORDS.values())
def test_the_words_of_a_cause_are_the_subject_of_a_sentence(words: str) -> None:
    assert "," not in words or words.endswith(",")
