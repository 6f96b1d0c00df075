"""Each rule rejects just above its limit, and a quiet run passes them all."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean, variance

import pytest

from loadtests.generation.calibration import Calibration, chance_s
from loadtests.generation.rules import RULES, Facts, judge
from loadtests.generation.run import RunRecord, judge_run

QUIET = Facts(
    requests=1000,
    failed=0,
    scheduled=1000,
    lag_p99_s=0.001,
    foreign_cpu=0.02,
    client_cpu=0.05,
    before_s=0.04,
    after_s=0.0401,
)

# rule -> (just allowed, just too much)
LIMITS: dict[str, tuple[Facts, Facts]] = {
    "interrupted": (QUIET, replace(QUIET, is_interrupted=True)),
    "failed_requests": (replace(QUIET, failed=10), replace(QUIET, failed=11)),
    "missed_arrivals": (QUIET, replace(QUIET, scheduled=1001)),
    "dispatch_lag_mean": (replace(QUIET, lag_mean_s=0.0007), replace(QUIET, lag_mean_s=0.0009)),
    "dispatch_lag_p99": (replace(QUIET, lag_p99_s=0.0079), replace(QUIET, lag_p99_s=0.0081)),
    "foreign_cpu": (replace(QUIET, foreign_cpu=0.099), replace(QUIET, foreign_cpu=0.101)),
    "client_cpu": (replace(QUIET, client_cpu=0.69), replace(QUIET, client_cpu=0.71)),
    "calibration_drift": (replace(QUIET, after_s=0.0397), replace(QUIET, after_s=0.0395)),
}


def test_every_rule_has_its_case() -> None:
    assert [rule.name for rule in RULES] == list(LIMITS)
    assert all(rule.reason and rule.unit for rule in RULES)


@pytest.mark.parametrize("name", LIMITS)
def test_a_rule_rejects_above_its_limit_and_not_below(name: str) -> None:
    allowed, too_much = (judge(facts) for facts in LIMITS[name])
    assert (allowed.accepted, allowed.reasons) == (True, "")
    assert not too_much.accepted
    assert [rule.name for rule in too_much.broken] == [name]
    assert too_much.reasons.startswith(f"{name} ")


def test_a_shared_machine_rejects_only_what_is_not_its_doing(tmp_path: Path) -> None:
    record = RunRecord("r", "open", (), (), 1)
    names = {name: facts for name, (_, facts) in LIMITS.items()}

    def rejected() -> set[str]:
        return {name for name, facts in names.items() if not judge_run(tmp_path, record, facts)}

    assert rejected() == set(names)
    (tmp_path / "manifest.json").write_text('{"shared": true}')
    kept = {"dispatch_lag_mean", "dispatch_lag_p99", "foreign_cpu", "calibration_drift"}
    assert rejected() == set(names) - kept


def test_calibrations_may_differ_by_what_chance_explains() -> None:
    changed = replace(QUIET, after_s=0.0406)
    assert not judge(changed).accepted
    assert judge(replace(changed, chance_s=0.0003)).accepted
    assert not judge(replace(changed, chance_s=0.0001)).accepted


def test_chance_is_of_pairs_of_the_same_request() -> None:
    times_s = [0.02, 0.06, 0.04] * 20

    def calibration(shift_s: float, noise_s: float) -> Calibration:
        moved_s = [
            time_s + shift_s + (noise_s if index % 2 else -noise_s)
            for index, time_s in enumerate(times_s)
        ]
        return Calibration("c", 60, fmean(moved_s), variance(moved_s), None, moved_s)

    before = calibration(0.0, 0.0)
    assert chance_s(before, calibration(0.001, 0.0)) == pytest.approx(0.0, abs=1e-15)
    assert chance_s(before, calibration(0.0, 0.001)) == pytest.approx(0.00026, rel=0.02)
    new = replace(calibration(0.001, 0.0), each_once=True)  # it asked other requests
    assert chance_s(before, new) == pytest.approx(0.0060, rel=0.03)


def test_reasons_name_value_unit_and_limit() -> None:
    verdict = judge(replace(QUIET, foreign_cpu=0.25, failed=500))
    assert verdict.reasons.count("; ") == 1
    assert "foreign_cpu 25 % of a core, limit 10: other programs" in verdict.reasons
    short = judge(replace(QUIET, scheduled=QUIET.requests + 1234))
    assert short.reasons.startswith("missed_arrivals 1,234 arrivals, limit 0: ")
    assert not judge(replace(QUIET, scheduled=QUIET.requests - 1)).accepted


def test_what_was_not_measured_is_passed_over_and_that_is_shown() -> None:
    verdict = judge(Facts(requests=10, failed=0))
    assert verdict.accepted
    assert [name for name, value in verdict.values.items() if value is None] == [
        "missed_arrivals",
        "dispatch_lag_mean",
        "dispatch_lag_p99",
        "foreign_cpu",
        "client_cpu",
        "calibration_drift",
    ]


def test_a_run_without_requests_has_failed() -> None:
    assert not judge(Facts(requests=0, failed=0)).accepted
