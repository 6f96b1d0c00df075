"""The selftest: what it says of a queue that behaves, one that does not, and a noisy machine."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from loadtests.experiments import selftest
from loadtests.experiments.selftest import (
    CALIBRATION,
    DEMAND_CV,
    DEMAND_S,
    OPEN,
    UTILISATION,
    analyse,
    measure,
)
from loadtests.generation.rows import Row
from loadtests.generation.rules import Facts, judge
from loadtests.generation.run import REQUESTS, SCHEDULES, RunRecord, append_verdict
from loadtests.generation.schedule import Arrival, arrivals, demanded, gamma_demands, save
from loadtests.lab.content import Report
from loadtests.lab.experiment import Mode, Options, Run
from loadtests.lab.results import Results
from loadtests.models import replay
from loadtests.models.random_times import poisson_times
from loadtests.processes import PROJECT
from tests.api.processes import until
from tests.loadtests.experiments.made_up import keep

OVERHEAD_S = 0.0015
QUIET = Facts(
    requests=500,
    failed=0,
    scheduled=500,
    lag_p99_s=0.0005,
    foreign_cpu=0.03,
    client_cpu=0.05,
    before_s=DEMAND_S + OVERHEAD_S,
    after_s=DEMAND_S + OVERHEAD_S,
)


def schedule() -> list[Arrival]:
    random = Random(3)
    times_s = poisson_times(UTILISATION / (DEMAND_S + OVERHEAD_S), random, until_s=25)
    return arrivals(times_s, demanded(gamma_demands(DEMAND_S, DEMAND_CV, random)))


def made(folder: Path, facts: Facts = QUIET, slower: float = 1.0, later_s: float = 0.0) -> Results:
    """A result of a perfect queue. slower: its handler, times; later_s: every answer."""
    results, asked = Results(folder), schedule()
    served_s = [(arrival.demand_s or 0) * slower for arrival in asked]
    services_s = [served + OVERHEAD_S for served in served_s]
    responses_s = replay.fcfs([arrival.intended_s for arrival in asked], services_s)
    (folder / SCHEDULES).mkdir()
    save(folder / SCHEDULES / f"{OPEN}.csv", asked)
    times = zip(asked, served_s, responses_s, strict=True)
    of_run = [(one.index, one.intended_s, one.intended_s + r + later_s, s) for one, s, r in times]
    keep(
        results,
        [
            Row(OPEN, index, "known", at_s, at_s, at_s, done_s, service_s, 200, "1")
            for index, at_s, done_s, service_s in of_run
        ],
    )
    with results.table("calibration", CALIBRATION) as table:
        for run in ("before", "after"):
            table.write(
                run=run,
                requests=100,
                mean_s=DEMAND_S + OVERHEAD_S,
                variance_s2=1e-8,
                overhead_s=OVERHEAD_S,
            )
    append_verdict(folder, RunRecord(OPEN, "open", (), (), len(asked), 0.0), judge(facts))
    return results


def of(folder: Path, **changes: float) -> Report:
    return analyse(made(folder, replace(QUIET, **changes)))  # type: ignore[arg-type]


def test_a_queue_that_behaves_passes(tmp_path: Path) -> None:
    report = of(tmp_path)
    assert report.failure == ""
    assert "is good for measurements" in report.findings[0]
    told = "\n".join(report.findings)
    assert "E[S] before and after: 21.50 ms and 21.50 ms." in told
    assert "Measured − replayed: +0.0 % of E[R]" in told
    assert "tolerance 5 %: agrees" in told


def test_answers_that_come_later_than_the_queue_explains_fail(tmp_path: Path) -> None:
    report = analyse(made(tmp_path, later_s=0.005))
    assert "no rule gives a cause" in report.failure
    assert "tolerance 5 %: disagrees" in "\n".join(report.findings)


def test_a_server_that_serves_longer_than_asked_fails(tmp_path: Path) -> None:
    report = analyse(made(tmp_path, slower=1.03))
    assert "service overhead" in report.failure
    assert "3.0 % longer than demanded" in "\n".join(report.findings)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"foreign_cpu": 0.5}, "noisy neighbour"),
        ({"lag_p99_s": 0.01}, "generator late"),
        ({"client_cpu": 0.9}, "generator late"),
        ({"after_s": 0.03}, "calibration drift"),
        ({"failed": 100}, "failed requests"),
    ],
)
def test_a_run_that_a_rule_rejects_fails_with_its_cause(
    changes: dict[str, float], cause: str, tmp_path: Path
) -> None:
    report = of(tmp_path, **changes)
    assert report.failure == f"This machine is too noisy now: {cause}."
    assert any(finding.startswith(f"{cause.capitalize()}: ") for finding in report.findings)


def test_every_rule_of_the_lab_has_a_cause() -> None:
    assert selftest.LIKELY.keys() == judge(QUIET).values.keys()


def test_a_short_one_leaves_all_that_its_report_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selftest, "FULL", (3, 5))
    results = Results(tmp_path)
    run = Run(Options(Mode.REAL), results, tmp_path, lambda text: None)
    measure(run)
    assert [row["run"] for row in results.rows("calibration")] == ["before", "after"]
    assert [row["run"] for row in results.rows("runs")] == [OPEN]
    report = analyse(results)
    assert report.findings
    assert analyse(results) == report  # from the files alone


@pytest.mark.long
def test_a_lab_that_is_told_to_end_keeps_what_was_measured(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "loadtests",
        "run",
        "selftest",
        "--quick",
        "--out",
        str(tmp_path),
    ]
    with subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True) as lab:
        until(lambda: any(tmp_path.glob(f"*/{REQUESTS}")), within_s=60)
        lab.send_signal(signal.SIGTERM)
        _, said = lab.communicate(timeout=60)
    assert lab.returncode == 130
    assert "interrupted; what was measured is kept" in said
    (folder,) = tmp_path.iterdir()
    assert Results(folder).manifest()["state"] == "interrupted"
    assert Results(folder).manifest()["ended"]
