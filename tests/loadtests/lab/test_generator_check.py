"""The load generator's own error and its limit."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadtests import __main__ as command
from loadtests.experiments import running
from loadtests.generation.rows import Row
from loadtests.generation.rules import Facts
from loadtests.generation.run import Generator, RunRecord
from loadtests.generation.schedule import Arrival
from loadtests.lab import generator_check
from loadtests.lab.experiment import Options, Run
from loadtests.lab.generator_check import (
    RATES_PER_S,
    SELFTEST_S,
    WARM_UP_S,
    CheckLine,
    check,
    describe_own_error,
    generator_section,
    last_check,
    limit_per_s,
    selftest,
    would_be_rejected,
)
from loadtests.lab.results import Results


def line(rate_per_s: float, mean_ms: float, p99_ms: float = 1.0) -> CheckLine:
    return CheckLine("generator-1", rate_per_s, 99, mean_ms / 1000, p99_ms / 1000, 0.0002, 0.0005)


@pytest.mark.parametrize(
    ("means_ms", "limit"),
    [
        pytest.param((0.25, 0.26, 0.24), 200, id="it carries all"),
        pytest.param((0.25, 0.6, 0.25), 50, id="no luck above its limit"),
        pytest.param((0.25, 0.3, 0.9), 100, id="the queue of its own grows"),
        pytest.param((1.2, 1.3, 1.2), 200, id="a slow machine is no limit"),
    ],
)
def test_its_limit_is_where_its_error_begins_to_grow(
    means_ms: tuple[float, ...], limit: float
) -> None:
    lines = [line(rate, ms) for rate, ms in zip((50, 100, 200), means_ms, strict=True)]
    assert limit_per_s(lines) == limit


@pytest.mark.parametrize(
    ("is_shared", "advice", "of_short"),
    [
        (
            False,
            "every run is rejected. Close them, or go on with --shared: then runs are kept",
            "take less than 15 ms are rejected without --shared",
        ),
        (
            True,
            "runs would be rejected without --shared. They are kept, and the report is marked",
            "take less than 15 ms count only with --shared",
        ),
    ],
)
def test_what_would_be_rejected_is_said_at_the_start(
    is_shared: bool, advice: str, of_short: str
) -> None:
    busy = Facts(requests=9, failed=0, foreign_cpu=0.83, lag_mean_s=0.0003, lag_p99_s=0.002)
    others, late = would_be_rejected(busy, is_shared=is_shared)
    assert others.startswith("Other programs use 83 % of a core now. Above 10 %, ")
    assert advice in others
    assert of_short in late
    assert len(would_be_rejected(replace(busy, foreign_cpu=0.02), is_shared=False)) == 1
    (late,) = would_be_rejected(Facts(9, 0, lag_mean_s=0.0003, lag_p99_s=0.01), is_shared=False)
    assert "take less than 50 ms are rejected" in late, "as by the rule about the 99th percentile"


def test_what_is_said_at_the_start_is_of_the_rates_that_are_sent_as_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that carries 400 requests a second 0.1 ms late, and not 800."""

    def late(_: object, __: object, schedule: Sequence[Arrival], run: str) -> RunRecord:
        last_s = WARM_UP_S + 3 * (len(RATES_PER_S) - 1)
        due = [
            (at.index, at.intended_s, 0.5 if at.intended_s > last_s else 1e-4) for at in schedule
        ]
        rows = tuple(
            Row(run, n, "k", at_s, at_s + lag_s, None, at_s + lag_s + 0.001, None, 200, "")
            for n, at_s, lag_s in due
        )
        return RunRecord(run, "open", rows, (), len(rows))

    monkeypatch.setattr(Generator, "open", late)
    monkeypatch.setattr(generator_check, "asked_alone", lambda *_: [0.001])
    lines = list[str]()
    run = Run(Options(), Results(tmp_path), tmp_path, lines.append)
    check(run)
    assert lines[1] == describe_own_error(last_check(run.results))
    assert "at most 0.10 ms to a mean response time" in lines[1]
    assert lines[2].startswith("Requests are sent at most 0.10 ms late on average here, and 1 of")
    assert "less than 5 ms are rejected" in lines[2]


def test_its_error_is_told_up_to_its_limit() -> None:
    sentence = describe_own_error([line(50, 0.25), line(100, 0.3, 1.5), line(200, 0.9, 9.0)])
    assert "at most 0.10 ms to a mean response time and at most 1.00 ms to a 99th" in sentence
    assert "100 requests a second" in sentence
    assert "This error is 2 % or more of mean response times below 5 ms" in sentence


def test_an_error_below_that_of_the_independent_client_is_not_called_nothing() -> None:
    sentence = describe_own_error([line(50, 0.1, 0.4)])
    adds = (
        "adds no more than an independent client to a mean response time and to a 99th percentile"
    )
    assert adds in sentence
    assert "2 %" not in sentence


def test_each_session_has_a_check_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("QUICK_EACH_S", 0.05), ("QUICK_ALONE", 5), ("WARM_UP_S", 0.05)):
        monkeypatch.setattr(generator_check, name, value)
    run = Run(Options(quick=True), Results(tmp_path), tmp_path, lambda text: None)
    assert generator_section(run.results) is None
    facts = check(run)
    assert (facts.requests > 0, facts.failed) == (True, 0)
    first = last_check(run.results)
    assert [line.rate_per_s for line in first] == list(RATES_PER_S)
    assert all(line.mean_s > 0 and line.alone_mean_s > 0 for line in first)
    with run.results.more("generator", CheckLine) as table:
        table.add(replace(line(50, 0.3), run="generator-2"))
    assert [line.run for line in last_check(run.results)] == ["generator-2"]
    section = generator_section(run.results)
    assert section is not None
    assert "The load generator itself adds" in section.paragraphs[0]


QUIET = Facts(requests=300, failed=0, scheduled=300, foreign_cpu=0.03)


@pytest.mark.parametrize(
    ("facts", "why", "if_shared"),
    [
        (QUIET, "", ""),
        (replace(QUIET, client_cpu=0.9), "", ""),  # near its own limit at the highest rates
        (replace(QUIET, foreign_cpu=0.5), "other programs took processor time", ""),
        (replace(QUIET, lag_mean_s=0.019 * SELFTEST_S), "", ""),
        (replace(QUIET, lag_mean_s=0.021 * SELFTEST_S), "the generator sent too late", ""),
        (replace(QUIET, lag_p99_s=0.01), "the generator sent some requests far too late", ""),
        (replace(QUIET, failed=100), "failed requests", "failed requests"),
    ],
)
def test_the_selftest_fails_for_what_the_rules_would_reject(
    facts: Facts, why: str, if_shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator_check, "check", lambda run: facts)
    noisy = "This machine is too noisy now for questions that take 40 ms: "
    for is_shared, reason in ((False, why), (True, if_shared)):
        said = list[str]()
        failure = selftest(Options(shared=is_shared), said.append)
        assert failure.startswith(noisy) == bool(reason)
        assert reason in failure
        praise = "good for measurements is not tested" if is_shared else "no rule rejects questions"
        assert [praise in sentence for sentence in said] == [True] * (not reason)


def test_the_command_says_what_the_selftest_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "selftest", lambda options, say: say("checked") or "too noisy")
    outcome = CliRunner().invoke(command.main, ["run", "selftest", "--quick"])
    assert outcome.exit_code == 1
    assert outcome.output.splitlines() == ["checked", "Error: too noisy"]


@pytest.mark.parametrize(
    "option",
    [
        ("--scale", "5"),
        ("--loads", "0.5"),
        ("--reps", "3"),
        ("--fail-if", "p99 > 50 ms"),
    ],
)
def test_what_the_selftest_cannot_do_is_refused_before_anything_is_measured(
    option: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "run", lambda *_: pytest.fail("it measures"))
    words = ["run", "micro", "selftest", "--out", str(tmp_path), *option]
    refused = CliRunner().invoke(command.main, words)
    assert refused.exit_code == 2
    assert f"selftest has no {option[0]}; leave it out" in refused.output
    assert not [*tmp_path.iterdir()]


def test_the_selftest_is_made_before_what_else_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = list[str]()
    monkeypatch.setattr(command, "selftest", lambda options, say: made.append("selftest"))
    monkeypatch.setattr(running, "run", lambda experiment, *_: made.append(experiment.name))
    monkeypatch.setattr(command, "NAMES", ["micro"])
    words = ["run", "all", "selftest", "--out", str(tmp_path)]
    assert CliRunner().invoke(command.main, words).exit_code == 0
    assert made == ["selftest", "micro"]
