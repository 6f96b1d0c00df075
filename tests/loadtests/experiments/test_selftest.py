"""Tests what the selftest says of a queue that behaves, one that does not, and a noisy machine."""

import signal
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from loadtests.experiments import selftest
from loadtests.experiments.client_server_measurements import LOAD, Plan, PointLine
from loadtests.experiments.client_server_points import Point
from loadtests.experiments.client_server_systems import KNOWN, KNOWN_SERVICE_TIME_S
from loadtests.experiments.selftest import BEFORE, EXPERIMENT, UTILISATION, analyse
from loadtests.generation.rows import Row
from loadtests.generation.rules import Facts, judge
from loadtests.generation.run import REQUESTS, SCHEDULES, RunRecord, append_verdict
from loadtests.generation.schedule import arrivals, demanded, gamma_demands, save
from loadtests.lab.experiment import Mode, Options, Run
from loadtests.lab.results import Results
from loadtests.models import replay
from loadtests.models.random_times import poisson_times
from loadtests.processes import PROJECT
from tests.api.processes import until
from tests.loadtests.experiments.made_up import keep, results_of

OVERHEAD_S = 0.0015
SERVICE_S = KNOWN_SERVICE_TIME_S + OVERHEAD_S
QUIET = Facts(
    requests=300,
    failed=0,
    scheduled=300,
    lag_p99_s=0.0005,
    foreign_cpu=0.03,
    client_cpu=0.05,
    before_s=SERVICE_S,
    after_s=SERVICE_S,
)


def made(folder: Path, *facts: Facts, slower: float = 1.0, later_s: float = 0.0) -> Results:
    """Make a result of a perfect queue. slower: its handler, times; later_s: every answer.

    facts: of each repetition; none: there is a single one, on a quiet machine.
    """
    results = results_of("selftest", folder, cores=2)
    (folder / SCHEDULES).mkdir()
    with results.table("points", PointLine) as table:
        for rep, facts_of_rep in enumerate(facts or [QUIET], start=1):
            table.add(repeated(results, rep, facts_of_rep, slower, later_s))
    return results


def repeated(results: Results, rep: int, facts: Facts, slower: float, later_s: float) -> PointLine:
    """Make one repetition."""
    folder, load = results.folder, f"{LOAD}-rep{rep:02}"
    times_s = poisson_times(UTILISATION / SERVICE_S, Random(3), count=300)
    schedule = arrivals(times_s, demanded(gamma_demands(KNOWN_SERVICE_TIME_S, 1, Random(4))))
    save(folder / SCHEDULES / f"{load}.csv", schedule)
    served_s = [(arrival.demand_s or 0) * slower for arrival in schedule]
    took_s = replay.fcfs(times_s, [time_s + OVERHEAD_S for time_s in served_s])
    took_s = [time_s + later_s for time_s in took_s]
    alone = [0.04] * 20, [0.04 + OVERHEAD_S] * 20, [0.04] * 20
    for run, columns in ((f"{BEFORE}-rep{rep:02}", alone), (load, (times_s, took_s, served_s))):
        answers = islice(zip(*columns, strict=True), facts.requests)
        keep(
            results,
            [
                Row(run, n, "known", at_s, at_s, at_s, at_s + r_s, s, 200, "1")
                for n, (at_s, r_s, s) in enumerate(answers)
            ],
        )
    append_verdict(folder, RunRecord(load, "open", (), (), 300, 0.0), judge(facts))
    point = load, KNOWN, "known", LOAD, 1, LOAD, rep
    return PointLine(*point, UTILISATION / SERVICE_S, SERVICE_S, 300)


def test_a_queue_that_behaves_passes(tmp_path: Path) -> None:
    report = analyse(made(tmp_path))
    assert report.failure == ""
    assert "is good for measurements" in report.findings[0]
    findings = "\n".join(report.findings)
    assert "differs from that of the replay by " in findings
    assert "tolerance 5 %: agrees" in findings
    assert "add 1.50 ms to the time" in findings


def test_a_machine_of_which_the_rules_are_switched_off_is_not_called_good(tmp_path: Path) -> None:
    results = made(tmp_path)
    results.write_manifest(results.manifest() | {"shared": True})
    first = analyse(results).findings[0]
    assert "whether this machine is good for measurements is not tested" in first
    results = made(tmp_path / "late", later_s=0.01)
    results.write_manifest(results.manifest() | {"shared": True})
    noisy, why, *_ = analyse(results).findings
    assert noisy.endswith("the queue disagrees, and with --shared no rule gives a cause.")
    assert "run it again without --shared" in why


def test_each_repetition_has_its_own_reason(tmp_path: Path) -> None:
    busy, late = replace(QUIET, foreign_cpu=0.5), replace(QUIET, lag_p99_s=0.01)
    report = analyse(made(tmp_path / "two", busy, late))
    assert report.failure == "This machine is too noisy now: noisy neighbour, generator late."
    report = analyse(made(tmp_path / "last", QUIET, QUIET, late))
    assert report.failure == "This machine is too noisy now: generator late."
    assert "2 of 3" in str(report.sections[0].parts[0].rows)  # type: ignore[union-attr]


def test_a_repetition_that_was_cut_short_is_a_reason_too(tmp_path: Path) -> None:
    report = analyse(made(tmp_path, QUIET, replace(QUIET, requests=200)))
    assert report.failure == "This machine is too noisy now: generator late."
    assert "1 of 2" in str(report.sections[0].parts[0].rows)  # type: ignore[union-attr]


def test_one_that_was_interrupted_does_not_blame_the_machine(tmp_path: Path) -> None:
    cut, late = replace(QUIET, requests=100, is_interrupted=True), replace(QUIET, lag_p99_s=0.01)
    for name, first, noisy in (
        ("good", QUIET, ""),
        ("late", late, "This machine is too noisy now: generator late. "),
    ):
        results = made(tmp_path / name, first, cut)
        results.write_manifest(results.manifest() | {"state": "interrupted", "reps": 3})
        failure = analyse(results).failure
        assert failure.startswith(f"{noisy}The selftest was interrupted after 1 of 3")


def test_one_that_was_ended_when_all_was_answered_does_not_blame_the_machine(
    tmp_path: Path,
) -> None:
    results = made(tmp_path, replace(QUIET, is_interrupted=True))
    results.write_manifest(results.manifest() | {"state": "interrupted"})
    assert analyse(results).failure.startswith("The selftest was interrupted after 1 of 1")


def test_sleeps_that_end_late_are_in_the_replay_too(tmp_path: Path) -> None:
    report = analyse(made(tmp_path, slower=1.008))
    values = {metric.name.partition("[")[0]: metric.value for metric in report.metrics}
    assert abs(values["paired_difference"]) < 0.008 * values["response_time_mean"]


def test_answers_that_come_later_than_the_queue_explains_fail(tmp_path: Path) -> None:
    report = analyse(made(tmp_path, later_s=0.01))
    assert "the queue disagrees, and no rule gives a cause" in report.failure
    assert "tolerance 5 %: disagrees" in "\n".join(report.findings)


def test_a_queue_that_is_not_decided_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Point, "decides", False)
    report = analyse(made(tmp_path))
    assert "the queue is not decided, and no rule gives a cause" in report.failure


def test_a_server_that_serves_longer_than_asked_fails(tmp_path: Path) -> None:
    report = analyse(made(tmp_path, slower=1.03))
    assert "service overhead" in report.failure
    assert "3.0 % longer than demanded" in "\n".join(report.findings)


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        (replace(QUIET, foreign_cpu=0.5), "noisy neighbour"),
        (replace(QUIET, lag_p99_s=0.01), "generator late"),
        (replace(QUIET, client_cpu=0.9), "generator late"),
        (replace(QUIET, after_s=0.03), "calibration drift"),
        (replace(QUIET, failed=100), "failed requests"),
    ],
)
def test_a_run_that_a_rule_rejects_fails_with_its_cause(
    facts: Facts, cause: str, tmp_path: Path
) -> None:
    report = analyse(made(tmp_path, facts))
    assert report.failure == f"This machine is too noisy now: {cause}."
    assert any(finding.startswith(f"{cause.capitalize()}: ") for finding in report.findings)


def test_every_rule_of_the_lab_has_a_cause() -> None:
    assert selftest.LIKELY.keys() == judge(QUIET).values.keys() - {"interrupted"}


def test_a_short_one_leaves_all_that_its_report_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "FULL", Plan(calibration=3, load=24))
    results = results_of("selftest", tmp_path, cores=2)
    EXPERIMENT.measure(Run(Options(Mode.REAL), results, tmp_path, lambda text: None))
    assert [row["role"] for row in results.rows("points")] == [LOAD]
    assert len(results.rows("runs")) == 1
    report = analyse(results)
    assert report.findings
    assert analyse(results) == report  # from the files alone


@pytest.mark.long
def test_a_lab_that_is_told_to_end_keeps_what_was_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "loadtests", "run", "selftest", "--quick", "--out"]
    command.append(str(tmp_path))
    with subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True) as lab:
        until(lambda: any(tmp_path.glob(f"*/{REQUESTS}")), within_s=60)
        lab.send_signal(signal.SIGTERM)
        _, output = lab.communicate(timeout=60)
    assert lab.returncode == 130
    assert "interrupted; what was measured is kept" in output
    (folder,) = tmp_path.iterdir()
    assert Results(folder).manifest()["state"] == "interrupted"
    assert Results(folder).manifest()["ended"]
