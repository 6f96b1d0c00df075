"""Mixed clients in miniature: with real programs, and with made-up numbers."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from loadtests.experiments import mixed_clients
from loadtests.experiments.mixed_clients import (
    EXPERIMENT,
    HTTP,
    LOCAL,
    Curve,
    MixedRun,
    Plan,
    PlanLine,
    curves,
    mixed_runs,
    points_of,
)
from loadtests.experiments.running import analyse, run
from loadtests.generation import run as generation_run
from loadtests.generation.interactions import step_index, whole
from loadtests.generation.rows import Row, closed_window
from loadtests.generation.rules import Facts, Verdict, judge
from loadtests.lab.experiment import Options
from loadtests.lab.results import NothingCounts, Results
from loadtests.machine_samples import Sample, append
from loadtests.scenarios import STEPS
from tests.loadtests.experiments.made_up import judge as judge_runs
from tests.loadtests.experiments.made_up import keep, results_of

CORES = 2
SERVICE_S = 0.01


def steps(run: str, customers: int, response_s: float) -> list[Row]:
    """The requests of customers who are all answered after the same time, 20 of each."""
    return [
        Row(run, step_index(customer, n, 0), "rare:5", at, at, None, at + response_s, None, 200, "")
        for customer, n in product(range(customers), range(20))
        for at in [n * response_s]
    ]


def a_run(customers: int, response_s: float) -> MixedRun:
    line = PlanLine("r", HTTP, 100, customers, 2, 18, 100, 100 * SERVICE_S)
    window = closed_window(whole(steps("r", customers, response_s), STEPS), warm_up=2)
    return MixedRun(line, window, None)


def curves_of(runs: list[MixedRun]) -> list[Curve]:
    return curves(points_of(runs), CORES)


class TestComparing:
    def test_the_bounds_meet_where_the_system_saturates(self) -> None:
        """Of a processor with two cores, and 10 ms elsewhere."""
        responses_s = {n: max(0.02, n * SERVICE_S / CORES) for n in (1, 2, 4, 8, 16, 30, 60)}
        (curve,) = curves_of([a_run(n, response_s) for n, response_s in responses_s.items()])
        assert curve.demand_s == pytest.approx(0.02)
        assert curve.bottleneck_s == pytest.approx(0.005)
        assert curve.crossing == pytest.approx(4)
        for point in curve.points:
            bound = curve.most_per_s(point.line.customers)
            assert point.throughput.estimate == pytest.approx(bound)
            assert point.response.estimate == pytest.approx(curve.least_s(point.line.customers))

    def test_without_one_customer_its_demand_is_unknown(self) -> None:
        (curve,) = curves_of([a_run(4, 0.02)])
        assert [point.line.customers for point in curve.points] == [4]
        assert curve.demand_s is None, "nothing is known of one customer"
        bounds_per_s = [curve.most_per_s(customers) for customers in (1, 60)]
        assert bounds_per_s == pytest.approx([1 / curve.bottleneck_s] * 2)

    @pytest.mark.parametrize(("most_s", "counted_s"), [(0.03, 0.03), (0.0, 0.0), (None, 0.02)])
    def test_the_generator_demands_what_it_does_with_the_most_customers_where_that_is_known(
        self, most_s: float | None, counted_s: float
    ) -> None:
        runs = [a_run(1, 0.02), a_run(4, 0.02)]
        demands_s = zip(runs, (0.02, most_s), strict=True)
        (curve,) = curves_of([replace(run, generator_demand_s=s) for run, s in demands_s])
        assert curve.bottleneck_s == pytest.approx((SERVICE_S + counted_s) / CORES)


def test_findings_compare_places_and_lengths_of_the_ledger(tmp_path: Path) -> None:
    results = results_of("mixed-clients", tmp_path, cores=CORES)
    responses_s = {(LOCAL, 0): 0.1, (HTTP, 0): 0.3, (LOCAL, 100): 0.2, (HTTP, 100): 0.6}
    lines = [
        PlanLine(f"{place}-{blocks}-{customers}", place, blocks, customers, 2, 18, 20, 0.001)
        for (place, blocks), customers in product(responses_s, (1, 2))
    ]
    with results.table("plan", PlanLine) as plan:
        for line in lines:
            plan.add(line)
            response_s = responses_s[line.place, line.blocks]
            keep(results, steps(line.run, line.customers, response_s))
    judge_runs(results, {line.run: True for line in lines})
    append(tmp_path / "samples.csv", "http-0-1", [Sample(1.1, 0.2, 0, 0), Sample(3.1, 0.8, 0, 0)])
    demands_s = {run.line.run: run.generator_demand_s for run in mixed_runs(results)}
    assert demands_s.pop("http-0-1") == pytest.approx((1.1 * 0.2 + 2 * 0.8) / 10)
    assert set(demands_s.values()) == {None}
    analyse(results)
    findings = "\n".join(results.summary()["findings"])
    for text in (
        "0 blocks: latency over HTTP is that in process times 3 at N = 1, 3 at N = 2.",
        "In process, N = 2: with 100 blocks latency is 2.00 times that with 0.",
        "100 blocks, over HTTP: the highest throughput is 3/s, at N = 2 on 2 cores",
    ):
        assert text in findings


def test_without_a_run_that_counts_there_is_nothing_to_report(tmp_path: Path) -> None:
    results = results_of("mixed-clients", tmp_path)
    with results.table("plan", PlanLine):
        pass
    with pytest.raises(NothingCounts, match="no run that counts in which all clients worked"):
        mixed_clients.analyse(results)


TINY = Plan((3,), (0, 1), 1, {LOCAL: (5, 100), HTTP: (2, 20)}, 200)  # a stall leaves a window
SECOND = "http-0-3-01"  # the run that is made second


@pytest.mark.long
def test_both_places_are_measured_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three customers on two ledgers. The second run is rejected, others are not.

    Other work on the machine that tests run on is nothing to reject their runs for.
    """
    foreign = iter([None, 1.0, None, None])

    def judged(facts: Facts) -> Verdict:
        return judge(replace(facts, foreign_cpu=next(foreign), client_cpu=None))

    monkeypatch.setattr(mixed_clients, "QUICK", TINY)
    monkeypatch.setattr(generation_run, "judge", judged)
    run(EXPERIMENT, Options(quick=True), tmp_path / "one", lambda text: None)
    results = Results(tmp_path / "one")
    runs = mixed_runs(results)
    keys = [(mixed.line.place, mixed.line.blocks, mixed.line.customers) for mixed in runs]
    assert sorted(keys) == [(HTTP, 1, 3), (LOCAL, 0, 3), (LOCAL, 1, 3)]
    assert all(mixed.window.throughput_per_s > 0 < mixed.line.cpu_s for mixed in runs)
    failed = {row["failed_requests (% of the requests)"] for row in results.rows("runs")}
    assert failed == {"0"}
    assert [row["run"] for row in results.rows("runs") if row["accepted"] == "no"] == [SECOND]
    before = (results.folder / "report.html").read_bytes()
    report = analyse(results)
    assert (results.folder / "report.html").read_bytes() == before
    names = {metric.name for metric in report.metrics}
    assert {"throughput[http,1,3]", "latency[in-process,0,3]"} <= names
    assert not {"throughput[http,0,3]", "latency[http,0,3]"} & names
