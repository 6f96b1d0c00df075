"""Tests what the selftest says of a quiet machine, and of one on which runs would be rejected."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.experiments.selftest import EXPERIMENT, SERVICE_TIME_S, analyse
from loadtests.generation import run as generation_run
from loadtests.generation.rules import Facts, judge
from loadtests.generation.run import REQUESTS, RunRecord, append_verdict
from loadtests.lab import generator_check
from loadtests.lab.experiment import Mode, Options, Run
from loadtests.lab.generator_check import CHECK, CheckLine
from loadtests.lab.results import Results, ResultsError
from loadtests.processes import PROJECT
from tests.api.processes import until
from tests.loadtests.experiments.made_up import results_of

QUIET = Facts(requests=300, failed=0, scheduled=300, foreign_cpu=0.03, before_s=SERVICE_TIME_S)
RECORD = RunRecord("generator-1", "open", (), (), 300, 0.0)


def make_results(folder: Path, facts: Facts, *, is_shared: bool = False) -> Results:
    """Make results of a check that carried 400 requests a second, with these facts."""
    results = results_of("selftest", folder, shared=is_shared)
    with results.table(CHECK, CheckLine) as table:
        for rate_per_s, mean_s in ((400.0, 0.001), (800.0, 0.1)):
            table.add(CheckLine("generator-1", rate_per_s, 9, mean_s, mean_s, 0.001, 0.001))
    verdict = judge(facts)
    append_verdict(folder, RECORD, verdict.on_shared_machine() if is_shared else verdict)
    return results


def test_a_quiet_machine_is_good_for_measurements(tmp_path: Path) -> None:
    report = analyse(make_results(tmp_path, QUIET))
    assert report.failure == ""
    assert (
        "is good for measurements: no rule rejects questions that take 40 ms"
        in (report.findings[0])
    )
    assert "Up to 400 requests a second are sent in time." in report.findings


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (replace(QUIET, foreign_cpu=0.5), "other programs took processor time"),
        (replace(QUIET, lag_mean_s=0.001), "the generator sent too late"),
        (replace(QUIET, lag_p99_s=0.01), "the generator sent some requests far too late"),
        (replace(QUIET, failed=100), "failed requests"),
    ],
)
def test_what_the_rules_would_reject_fails_with_the_reason(
    facts: Facts, why: str, tmp_path: Path
) -> None:
    report = analyse(make_results(tmp_path, facts))
    assert report.failure.startswith("This machine is too noisy now for questions that take 40 ms")
    assert why in report.failure


def test_a_machine_of_which_the_rules_are_switched_off_is_not_called_good(tmp_path: Path) -> None:
    report = analyse(make_results(tmp_path, replace(QUIET, foreign_cpu=0.5), is_shared=True))
    assert "is good for measurements is not tested" in report.findings[0]
    assert report.failure == ""


def test_a_check_that_was_cut_short_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no check that came to its end"):
        analyse(results_of("selftest", tmp_path))


@pytest.mark.parametrize(("lag_s", "counts"), [(0.0007, "yes"), (0.0009, "no")])
def test_the_check_is_judged_as_a_run_of_the_questions_that_the_report_names(
    lag_s: float, counts: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 % of their time, whatever part of a core the generator used for its highest rates."""
    checked = RECORD, Facts(300, 0, 300, lag_mean_s=lag_s, client_cpu=0.9)
    monkeypatch.setattr(generator_check, "check", lambda run: checked)
    monkeypatch.setattr(generation_run, "judge", judge)
    results = results_of("selftest", tmp_path)
    EXPERIMENT.measure(Run(Options(Mode.REAL), results, tmp_path, lambda text: None))
    assert [row["accepted"] for row in results.rows("runs")] == [counts]


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
