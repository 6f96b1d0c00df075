"""The queueing network in miniature: real servers, simulated ones, and made-up runs."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from xml.dom import minidom

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.experiments import queueing_network
from loadtests.experiments import queueing_network_runs as measuring
from loadtests.experiments.queueing_network import EXPERIMENT
from loadtests.experiments.queueing_network_models import (
    ASYMPTOTES,
    EXPONENTIAL,
    LEAST_REPEATED,
    MODELS,
    MVA,
    ONE,
    REGULAR,
    SERVERS,
    SINGLE,
    STATIONS,
    Expectations,
    Prediction,
    Server,
    by_formula,
    counted,
    expectations,
    predicted,
    simulated_results,
    stations,
    visits,
)
from loadtests.experiments.queueing_network_runs import (
    ClosedRun,
    Pair,
    Plan,
    closed_runs,
    expected,
    pairs,
    plan_of,
    points_of,
)
from loadtests.experiments.running import analyse, run
from loadtests.generation import run as generation_run
from loadtests.generation.rules import Facts, judge
from loadtests.lab.experiment import Options
from loadtests.lab.published import NETWORK, NETWORK_THINK_S
from loadtests.lab.results import Results
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import Interval, Verdict

GROUP = 19
LIKE_EXPONENTIAL, LIKE_REGULAR = "simulated-exponential", "simulated-regular"
POPULATIONS = (1, 2, 3, 5)


@cache
def simulated() -> Expectations:
    return expectations(simulated_results(POPULATIONS, 4000, GROUP, "1", runs=100))


def prediction(model: str, customers: int) -> Prediction:
    known = predicted(model, customers, simulated())
    assert known is not None
    return known


def a_run(server: Server, customers: int, x: float, *, reports: bool = True) -> ClosedRun:
    """A run with throughput `x`, nearly the same all the time."""
    cycle_s = customers / x
    cycles_s = [cycle_s * (1 + 0.001 * (-1) ** at) for at in range(80)]
    times = dict.fromkeys(STATIONS, 1.0) | {f"{name}_queue": 2.0 for name in STATIONS}
    return ClosedRun(
        server=server,
        customers=customers,
        cycles_s=cycles_s,
        responses_s=[cycle_s - NETWORK_THINK_S for cycle_s in cycles_s],
        reported=[times] * 80 if reports else [],
    )


def compared(runs: Sequence[ClosedRun]) -> Sequence[Pair]:
    return pairs(points_of(runs, simulated()), simulated())


class TestPredicting:
    def test_the_published_network_is_that_of_the_routing(self) -> None:
        assert visits() == pytest.approx({"cpu": 523, "disk": 513, "delay": 513})
        expected = {s.name.lower(): s.visits * s.service_s for s in NETWORK}
        assert {s.name: s.demand_s for s in stations()} == pytest.approx(expected)

    @pytest.mark.parametrize("customers", [1, 2, 5])
    def test_no_model_exceeds_the_asymptotes_by_much(self, customers: int) -> None:
        highest = by_formula(ASYMPTOTES, customers)
        for model in MODELS:
            own = prediction(model, customers)
            assert own.throughput_per_s <= highest.throughput_per_s * 1.02
            assert own.response_s >= highest.response_s * 0.98

    def test_regular_times_lie_between_mva_and_the_asymptotes(self) -> None:
        by_mva, regular, most = (
            prediction(model, 2).throughput_per_s for model in (MVA, LIKE_REGULAR, ASYMPTOTES)
        )
        assert 1.1 * by_mva < regular < most


class TestSimulating:
    def test_the_same_seed_gives_the_same_runs(self) -> None:
        once, again = (simulated_results((2,), 300, GROUP, "1", 3) for _ in range(2))
        assert once == again
        assert once != simulated_results((2,), 300, GROUP, "2", 3)

    @pytest.mark.parametrize("customers", [1, 2, 5])
    def test_exponential_stations_are_those_of_mean_value_analysis(self, customers: int) -> None:
        runs, formula = simulated()[EXPONENTIAL, customers], by_formula(MVA, customers)
        assert runs.throughput_per_s.mean == pytest.approx(formula.throughput_per_s, rel=0.02)
        assert runs.response_s.mean == pytest.approx(formula.response_s, rel=0.02)

    def test_one_at_a_time_is_one_station(self) -> None:
        for customers in (1, 2, 5):
            runs, formula = simulated()[SINGLE, customers], by_formula(ONE, customers)
            assert runs.throughput_per_s.mean == pytest.approx(formula.throughput_per_s, rel=0.02)
            assert runs.response_s.mean == pytest.approx(formula.response_s, rel=0.02)

    def test_a_prediction_is_known_better_than_what_it_is_compared_with(self) -> None:
        x = simulated()[EXPONENTIAL, 2].throughput_per_s
        assert x.half_width <= 0.1 * x.interval([0.03]).half_width * (1 + 1e-9)
        assert x.low < x.mean < x.high

    def test_what_was_not_simulated_is_not_predicted(self) -> None:
        assert predicted(LIKE_REGULAR, 9, simulated()) is None


class TestCounted:
    @given(st.integers(1, 8), st.integers(3, 20), st.booleans())
    def test_customers_who_end_together_do_not_hide_a_cycle(
        self, customers: int, rounds: int, together: bool
    ) -> None:
        cycle_s = 10.0
        apart_s = 0.001 if together else cycle_s / customers
        ends = [
            (customer, number * cycle_s + customer * apart_s)
            for number in range(1, rounds + 1)
            for customer in range(customers)
        ]
        cycles = counted(ends, warm_up=1)
        assert [own_s for _, own_s in cycles] == pytest.approx([cycle_s] * len(cycles))
        assert all(ends[at][1] > cycle_s for at, _ in cycles)

    def test_what_ends_after_the_first_has_finished_is_left_out(self) -> None:
        ends = [(0, 1.0), (1, 1.5), (0, 2.0), (1, 3.0), (1, 4.5)]
        assert counted(ends, warm_up=1) == [(2, 1.0)]

    def test_of_nothing_nothing_counts(self) -> None:
        assert counted([], warm_up=1) == []


class TestComparing:
    def test_a_server_agrees_with_the_model_that_it_follows(self) -> None:
        runs = [
            a_run(server, n, prediction(model, n).throughput_per_s * 1.005)
            for server, model in ((EXPONENTIAL, MVA), (REGULAR, LIKE_REGULAR), (SINGLE, ONE))
            for n in (1, 2, 5)
        ]
        compared_pairs = compared(runs)
        assert len(compared_pairs) == 15
        agreeing = [pair for pair in compared_pairs if pair.verdict is Verdict.AGREES]
        assert {(pair.server, pair.model) for pair in agreeing} == {
            (EXPONENTIAL, MVA),
            (EXPONENTIAL, LIKE_EXPONENTIAL),
            (REGULAR, LIKE_REGULAR),
            (SINGLE, ONE),
        }

    def test_one_n_that_disagrees_is_enough(self) -> None:
        verdicts = []
        runs = list[ClosedRun]()
        for n, share in ((1, 1.0), (2, 0.95), (5, 0.9)):
            runs.append(a_run(SINGLE, n, by_formula(MVA, n).throughput_per_s * share))
            (pair,) = [pair for pair in compared(runs) if pair.model == MVA]
            verdicts.append(pair.verdict)
        assert verdicts == [Verdict.AGREES, Verdict.NOT_DECIDED, Verdict.DISAGREES]
        assert (pair.farthest, round(pair.difference.estimate, 3)) == (5, -0.1)

    def test_a_short_run_is_no_point(self) -> None:
        short = replace(a_run(SINGLE, 1, 0.02), responses_s=[1.0])
        assert points_of([short], simulated()) == []

    def test_a_few_runs_vary_as_simulated_ones_and_many_by_themselves(self) -> None:
        same = [a_run(REGULAR, 2, 0.03)]
        single, three, many = (
            points_of(same * n, simulated())[0].throughput_per_s for n in (1, 3, LEAST_REPEATED)
        )
        assert single.half_width == pytest.approx(
            1.96 * simulated()[REGULAR, 2].throughput_per_s.deviation, rel=1e-3
        )
        assert three.half_width == pytest.approx(single.half_width / 3**0.5)
        assert many.half_width == pytest.approx(0, abs=1e-12)

    def test_a_point_keeps_the_laws(self) -> None:
        (point,) = points_of([a_run(EXPONENTIAL, 3, 0.03)], simulated())
        assert point.little == pytest.approx(1)
        disk = point.stations["disk"]
        assert disk.utilisation == pytest.approx(0.03, rel=1e-3)
        assert disk.customers == pytest.approx(0.09, rel=1e-3)
        assert disk.visits_per_s == pytest.approx(0.03 * 513, rel=1e-3)
        assert point.outside == pytest.approx(3 - 0.15 - 0.27, rel=1e-3)

    def test_what_was_not_reported_is_not_made_up(self) -> None:
        (point,) = points_of([a_run(EXPONENTIAL, 3, 0.03, reports=False)], simulated())
        assert (point.stations, point.outside) == ({}, None)


def test_what_was_measured_stands_beside_the_models() -> None:
    points = points_of([a_run(SINGLE, 2, 0.02)], simulated())
    for figure, quantity in zip(
        queueing_network._of_system(points, simulated(), ""),
        ("throughput_per_s", "response_s"),
        strict=True,
    ):
        row = dict(zip(figure.table.columns, figure.table.rows[1], strict=True))
        assert row["Measured, one request at a time"] == getattr(points[0], quantity)
        assert row["MVA"] == Interval(getattr(by_formula(MVA, 2), quantity))
        assert row["Measured, regular stations"] is None


def test_the_schema_is_a_drawing_with_its_probabilities() -> None:
    svg = queueing_network.schema("").svg
    minidom.parseString(svg)  # raises for what is no XML
    words = set(re.findall(">([^<>]+)</text>", svg))
    assert {"1/523", "495/523", "27/523", "18/19", "1/19", "0.8 ms", "DISK", "5 s"} <= words


@pytest.mark.long
def test_real_servers_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing, good = judge(Facts(requests=1, failed=1)), judge(Facts(requests=1, failed=0))
    judged = chain([failing], repeat(good))
    monkeypatch.setattr(generation_run, "judge", lambda facts: next(judged))
    plan, options = Plan((2,), 1000, GROUP, most_attempts=2), Options(scale=700)
    monkeypatch.setattr(measuring, "plan_of", lambda options: plan)
    monkeypatch.setattr(measuring, "SIMULATED_RUNS", 20)
    monkeypatch.setattr(measuring, "RUNS_A_REPEAT", 20)
    results = Results(tmp_path / "r")
    run(EXPERIMENT, replace(options, quick=True), results.folder, lambda text: None)
    runs = closed_runs(results)
    assert [row["accepted"] for row in results.rows("runs")].count("no") == 1
    assert [closed.server for closed in runs] == list(SERVERS)
    for closed in runs:
        assert closed.cycles_s
        assert len(closed.reported) == len(closed.responses_s)
        assert min(closed.responses_s) > 30
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert "MVA</th>" in page
    x = expected(results)[EXPONENTIAL, 2].throughput_per_s.mean
    assert f"{100 * (x / by_formula(MVA, 2).throughput_per_s - 1):+.1f} ± " in page
    names = ("report.html", "summary.json")
    before = [(results.folder / name).read_bytes() for name in names]
    analyse(results)
    assert [(results.folder / name).read_bytes() for name in names] == before


def test_only_the_chosen_numbers_of_customers_are_measured() -> None:
    assert plan_of(Options(loads=(5, 2))).populations == (2, 5)
    assert set(EXPERIMENT.loads(Options(loads=(2,)))) == set(range(1, 11))


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        (["disagrees", "disagrees"], "No model predicts the throughput of any"),
        (["disagrees", "not decided"], "No model is shown to predict the throughput of any"),
    ],
)
def test_what_is_not_decided_is_not_called_wrong(verdicts: list[str], message: str) -> None:
    pairs = [Pair(EXPONENTIAL, MVA, 1, 1, Interval(0.0, 0.1, 9), Verdict(v)) for v in verdicts]
    conclusion = Sentences("queueing_network").paragraph(
        "conclusion", compared=pairs, agreeing={}, models=MODELS
    )
    assert conclusion.startswith(message)
    assert ("1 of 2 comparisons are not decided" in conclusion) == ("not decided" in verdicts)
