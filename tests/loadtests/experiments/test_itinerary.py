"""Itineraries in miniature: with a real service, and with made-up rows."""

from pathlib import Path

import pytest

from loadtests.experiments import itinerary
from loadtests.experiments.itinerary import (
    AT_RATE,
    EXPERIMENT,
    PHASES,
    SINGLE,
    ItineraryRun,
    Plan,
    RunLine,
    itineraries_of,
    itinerary_runs,
    select_counted,
    transactions_of,
)
from loadtests.experiments.running import analyse, run
from loadtests.generation.interactions import step_index
from loadtests.generation.rows import Row
from loadtests.lab.experiment import Options
from loadtests.lab.results import Results

KINDS = ["begin", "query", *["query", "reserve"] * 3, "commit"]
TOOK_S = {"begin": 0.001, "query": 0.002, "reserve": 0.003, "commit": 0.004}
GAP_S = 0.0005
WHOLE_S = sum(TOOK_S[kind] for kind in KINDS) + 8 * GAP_S


def transaction(number: int, due_s: float, sent_s: float, client: int = 0) -> list[Row]:
    rows = []
    for step, kind in enumerate(KINDS):
        done_s = sent_s + TOOK_S[kind]
        index = step_index(client, number, step)
        due = due_s if step == 0 else sent_s
        row = Row("r", index, f"itinerary:{kind}", due, sent_s, None, done_s, None, 200, "")
        rows.append(row)
        sent_s = done_s + GAP_S
    return rows


def a_run(interval_s: float, count: int = 100, clients: int = 1) -> ItineraryRun:
    rows: list[Row] = []
    for client in range(clients):
        free_s = 0.0
        for number in range(count):
            due_s = number * interval_s
            rows += transaction(number, due_s, max(due_s, free_s), client)
            free_s = rows[-1].done_s
    part = AT_RATE if interval_s else SINGLE
    line = RunLine("r", part, clients, 1.0, interval_s, count, 10)
    return ItineraryRun(line, select_counted(transactions_of(rows), count))


class TestTransactions:
    def test_have_their_phases_and_what_lies_between(self) -> None:
        (result,) = transactions_of(transaction(0, 0.0, 1.0))
        assert {phase: len(times_s) for phase, times_s in result.phases_s.items()} == PHASES
        assert result.time_s == pytest.approx(WHOLE_S)
        assert result.unexplained_s == pytest.approx(8 * GAP_S)

    def test_one_that_was_due_before_the_one_before_was_done_is_late(self) -> None:
        rows = [
            *transaction(0, 0.0, 0.0),
            *transaction(1, 0.01, WHOLE_S),
            *transaction(2, 1.0, 1.0),
        ]
        assert [result.is_late for result in transactions_of(rows)] == [False, True, False]

    def test_of_two_clients_are_not_mixed_up(self) -> None:
        rows = [*transaction(0, 0.0, 0.0, client=0), *transaction(0, 0.001, 0.001, client=1)]
        assert [result.is_late for result in transactions_of(rows)] == [False, False]

    def test_one_that_failed_has_not_succeeded_and_one_cut_off_is_none(self) -> None:
        failed = transaction(0, 0.0, 0.0)[:3]
        failed[-1] = Row("r", failed[-1].index, "itinerary:query", 0, 0, None, 1, None, 503, "")
        assert [result.succeeded for result in transactions_of(failed)] == [False]
        assert select_counted(transactions_of(failed), 0) == []
        assert transactions_of(transaction(0, 0.0, 0.0)[:3]) == []

    def test_the_last_four_fifths_count(self) -> None:
        assert len(a_run(0.0).transactions) == 80
        assert a_run(0.0).transactions[0].number == 20


class TestComparing:
    def test_requests_and_what_lies_between_make_the_transaction(self) -> None:
        (row,) = itineraries_of([a_run(0.0)], SINGLE)
        assert row.phases["reserve"].estimate == pytest.approx(0.003)
        assert row.sum_s == pytest.approx(WHOLE_S - 8 * GAP_S)
        assert row.unexplained.estimate == pytest.approx(8 * GAP_S)
        low, high = row.transaction.low, row.transaction.high
        assert low is not None
        assert high is not None
        assert low <= row.sum_s + row.unexplained.estimate <= high

    def test_a_rate_that_can_be_kept_is_not_saturated(self) -> None:
        (point,) = itineraries_of([a_run(2 * WHOLE_S, clients=3)], AT_RATE)
        assert not point.is_saturated
        assert point.target_per_s == pytest.approx(3 / (2 * WHOLE_S))
        assert point.achieved_per_s == pytest.approx(point.target_per_s, rel=0.05)

    def test_a_rate_that_cannot_be_kept_is_saturated(self) -> None:
        (point,) = itineraries_of([a_run(WHOLE_S / 3)], AT_RATE)
        assert point.is_saturated
        assert point.late_share == 1
        assert point.achieved_per_s == pytest.approx(1 / WHOLE_S, rel=0.05)


@pytest.mark.long
def test_a_service_is_measured_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = Plan(1, 1, 10, (2,), (5.0,))
    monkeypatch.setattr(itinerary, "QUICK", tiny)
    run(EXPERIMENT, Options(quick=True), tmp_path / "one", lambda text: None)
    results = Results(tmp_path / "one")
    runs = itinerary_runs(results)
    assert [len(run.transactions) for run in runs] == [8, 16]
    assert all(transaction.unexplained_s > 0 for transaction in runs[0].transactions)
    failed = {row["failed_requests (% of the requests)"] for row in results.rows("runs")}
    assert failed == {"0"}
    before = (results.folder / "report.html").read_bytes()
    report = analyse(results)
    assert (results.folder / "report.html").read_bytes() == before
    assert "There is one store." in before.decode()
    names = {metric.name for metric in report.metrics}
    assert {"commit_time", "transaction_time[2,5]"} <= names
