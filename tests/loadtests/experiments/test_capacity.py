"""The experiment `capacity`: its rules, what it makes of rounds, a small one on real servers."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.experiments.capacity import EXPERIMENT, measuring
from loadtests.experiments.capacity.analysing import analyse, findings
from loadtests.experiments.capacity.cells import Cells
from loadtests.experiments.capacity.measuring import (
    NOTHING,
    QUICK,
    Configuration,
    Round,
    measure,
)
from loadtests.lab.experiment import Mode, Options, Run
from loadtests.lab.results import Results
from tests.loadtests.experiments.made_up_rounds import LAWS, ROUND, rounds, written

needs_wrk = pytest.mark.skipif(
    shutil.which("wrk") is None, reason="needs the load generator wrk; on Debian: apt install wrk"
)
LOOP = Configuration("asgi", 2)
GTHREAD = Configuration("gthread", 2)
SYNC = Configuration("sync", 2)


def told(made: Sequence[Round]) -> str:
    return "\n".join(findings(Cells(made)))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"foreign_cpu": 0.10}, []),
        ({"foreign_cpu": 0.11}, ["foreign_cpu"]),
        ({"generator_cpu_s": 0.70}, []),
        ({"generator_cpu_s": 0.71}, ["client_cpu"]),
        ({"failed": 10}, []),
        ({"failed": 11}, ["failed_requests"]),
        ({"requests": 0, "failed": 3}, ["failed_requests"]),
        ({"failed": 500, "foreign_cpu": 1.5}, ["failed_requests", "foreign_cpu"]),
    ],
)
def test_a_round_is_rejected_by_rule(changes: dict[str, float], expected: list[str]) -> None:
    made = replace(ROUND, **changes)  # type: ignore[arg-type]
    assert [rule.name for rule in made.verdict.broken] == expected


def test_a_row_gives_its_round_again(tmp_path: Path) -> None:
    made = [ROUND, replace(ROUND, requests=0, mean_s=None, p50_s=None, p99_s=None)]
    written(Results(tmp_path), made)
    assert Results(tmp_path).lines("rounds", Round) == made


class TestCells:
    def test_rejected_rounds_count_nowhere(self) -> None:
        quiet = rounds()
        spoiled = [replace(one, requests=1, foreign_cpu=0.9) for one in quiet]
        cells = Cells([*quiet, *spoiled])
        assert len(cells.made) == 2 * len(cells.accepted)
        for n in cells.populations:
            alone = Cells(quiet).curve(LOOP).throughput(n)
            assert cells.curve(LOOP).throughput(n) == alone

    @pytest.mark.parametrize("of", [LOOP, GTHREAD, SYNC])
    def test_the_knee_is_found_and_lies_in_its_interval(self, of: Configuration) -> None:
        curve = Cells(rounds(noise=0.003)).curve(of, NOTHING)
        law, interval = curve.scaling.law, curve.scaling.knee
        assert law is not None
        assert interval is not None
        # twice as many workers: twice λ, the same knee
        assert law.knee == pytest.approx(LAWS[of.worker_type].knee, rel=0.15)
        assert interval[0] <= law.knee <= interval[1]

    def test_of_too_few_connections_no_law_is_made(self) -> None:
        cells = Cells([one for one in rounds() if one.connections <= 4])
        assert cells.curve(LOOP).scaling.law is None
        assert "Too few numbers of connections" in "\n".join(findings(cells))

    def test_of_one_turn_there_is_a_law_without_an_interval(self) -> None:
        cells = Cells(rounds(turns=1))
        assert cells.curve(LOOP).scaling.law is not None
        assert cells.curve(LOOP).scaling.knee is None
        found = cells.curve(LOOP).throughput(8)
        assert found is not None
        assert found.low is None

    def test_shares_are_of_neighbours_in_one_turn(self) -> None:
        fast = [replace(one, turn=2, requests=2 * one.requests) for one in rounds(1, noise=0)]
        cells = Cells([*rounds(1, noise=0), *fast])
        share = cells.share_of_nothing(LOOP, 8)
        assert share is not None
        assert (share.low, share.high) == pytest.approx((0.9, 0.9), rel=0.01)

    def test_a_ratio_of_types_does_not_move_because_rounds_are_missing(self) -> None:
        made = rounds(noise=0)
        some = [one for i, one in enumerate(made) if not (one.turn == 2 and i % 3)]
        whole, holed = (Cells(of).times_faster(LOOP, SYNC) for of in (made, some))
        assert whole is not None
        assert holed is not None
        assert holed.value == pytest.approx(whole.value, rel=0.01)
        assert holed.low == pytest.approx(whole.low, rel=0.01)


class TestFindings:
    def test_the_type_that_answers_more_is_chosen(self) -> None:
        assert "Choose workers of type asgi" in told(rounds())

    def test_types_that_do_the_same_are_not_decided(self) -> None:
        loops = [one for one in rounds() if one.worker_type == "asgi"]
        others = [replace(one, worker_type="sync") for one in loops]
        assert "Choose workers" not in told([*loops, *others])

    def test_the_knee_is_told(self) -> None:
        assert "Throughput is highest at N* = " in told(rounds())

    def test_without_a_peak_none_is_told(self) -> None:
        growing = [
            replace(one, requests=1000 * one.connections, mean_s=0.001) for one in rounds(noise=0)
        ]
        assert "no peak within 64 connections" in told(growing)

    @pytest.mark.parametrize(
        ("server_cpu_s", "generator_cpu_s", "expected"),
        [(1.5, 0.45, "they compete"), (0.9, 0.2, "did not take cores that the service needed")],
    )
    def test_a_generator_that_competes_for_the_cores_is_told(
        self, server_cpu_s: float, generator_cpu_s: float, expected: str
    ) -> None:
        made = [
            replace(one, server_cpu_s=server_cpu_s, generator_cpu_s=generator_cpu_s)
            for one in rounds()
        ]
        assert expected in told(made)

    def test_time_that_the_generator_does_not_see_is_told(self) -> None:
        made = [
            replace(one, mean_s=one.mean_s * 0.7)
            if one.worker_type == "sync" and one.mean_s
            else one
            for one in rounds()
        ]
        assert "sync: X·R is 0.70 to 0.70 of N, off by" in told(made)
        assert "so connections always had a request under way" in told(made)

    def test_a_busy_machine_is_told(self) -> None:
        assert "too busy for reliable results" in told(rounds(busy=0.5))


@pytest.mark.parametrize("busy", [0.01, 0.5])
def test_a_report_is_made_of_rounds_that_count_and_of_none(busy: float, tmp_path: Path) -> None:
    results = Results(tmp_path)
    written(results, rounds(turns=1, busy=busy))
    report = analyse(results)
    assert report.findings
    assert len(report.sections) == 4
    assert bool(report.metrics) is (busy < 0.1)


@needs_wrk
def test_a_small_one_measures_every_cell_of_real_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(
        QUICK,
        flights=2000,
        questions_per_kind=5,
        worker_types=("asgi",),
        worker_counts=(1,),
        connections=(1, 3),
    )
    monkeypatch.setattr(measuring, "QUICK", plan)
    results = measured(tmp_path)
    made = results.lines("rounds", Round)
    cells = {(one.worker_type, one.endpoint, one.connections) for one in made}
    assert len(made) == len(cells) == 4
    for one in made:
        assert one.requests > 0
        assert one.failed == 0
        assert one.server_cpu_s > 0
        assert one.share_under_way is not None
        assert 0 < one.share_under_way <= 1.02  # Little's law
        assert one.p50_s is not None
        assert one.p99_s is not None
        assert one.p50_s <= one.p99_s
    runs = results.rows("runs")
    assert [row["accepted"] for row in runs] == [
        "yes" if one.verdict.accepted else "no" for one in made
    ]
    assert analyse(results).findings


def measured(folder: Path) -> Results:
    scratch, results = folder / "scratch", folder / "results"
    scratch.mkdir()
    results.mkdir()
    run = Run(Options(Mode.REAL, quick=True), Results(results), scratch, lambda text: None)
    measure(run)
    return Results(results)


def test_it_is_known_by_its_name() -> None:
    assert EXPERIMENT.name == "capacity"
