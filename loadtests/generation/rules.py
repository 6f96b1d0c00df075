"""The rules by which a run is rejected, as one table. Pure.

A run that was spoilt by its generator, by other work of the machine or by errors is neither
repaired nor dropped: it is rejected by these rules, kept and listed. The rules were fixed before
anything was measured.

    verdict = judge(facts)
    verdict.accepted, verdict.reasons
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that rules judge. A rule is skipped if its fact is None, as it was not measured.

    requests: number of rows. failed: rows without a good answer. scheduled: arrivals of the
    schedule. lag_p99_s: 99th percentile of how late requests were sent. service_time_s: the
    calibrated E[S]. foreign_cpu, client_cpu: means over the run, in cores. before_s, after_s: mean
    response times of the calibrations. chance_s: how much these may differ by chance.
    is_interrupted: the run ended before its time.
    """

    requests: int
    failed: int
    scheduled: int | None = None
    lag_p99_s: float | None = None
    service_time_s: float | None = None
    foreign_cpu: float | None = None
    client_cpu: float | None = None
    before_s: float | None = None
    after_s: float | None = None
    chance_s: float = 0.0
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A run is rejected when `value` is above `limit`, both in `unit`."""

    name: str
    limit: float
    unit: str
    reason: str
    value: Callable[[Facts], float | None]


def _failed_percent(facts: Facts) -> float | None:
    return 100 * facts.failed / facts.requests if facts.requests else 100.0


def _lag_percent(facts: Facts) -> float | None:
    if facts.lag_p99_s is None or not facts.service_time_s:
        return None
    return 100 * facts.lag_p99_s / facts.service_time_s


def _drift_percent(facts: Facts) -> float | None:
    if not facts.before_s or facts.after_s is None:
        return None
    changed_s = abs(facts.after_s - facts.before_s)
    return 100 * max(0.0, changed_s - facts.chance_s) / facts.before_s


def _missed(facts: Facts) -> float | None:
    return None if facts.scheduled is None else float(abs(facts.scheduled - facts.requests))


def _percent(cores: float | None) -> float | None:
    return None if cores is None else 100 * cores


RULES: Sequence[Rule] = (
    Rule(
        "interrupted",
        0,
        "times",
        "the run was ended before its time",
        lambda facts: float(facts.is_interrupted),
    ),
    Rule(
        "failed_requests",
        1,
        "% of the requests",
        "failed requests take more or less time than answered ones",
        _failed_percent,
    ),
    Rule(
        "missed_arrivals",
        0,
        "arrivals",
        "the arrivals differ from those of the schedule",
        _missed,
    ),
    Rule(
        "dispatch_lag_p99",
        5,
        "% of E[S]",
        "the generator sent too late, and its delay counts as waiting at the server",
        _lag_percent,
    ),
    Rule(
        "foreign_cpu",
        10,
        "% of a core",
        "other programs took processor time from the server and the generator",
        lambda facts: _percent(facts.foreign_cpu),
    ),
    Rule(
        "client_cpu",
        70,
        "% of a core",
        "the generator was near its own saturation",
        lambda facts: _percent(facts.client_cpu),
    ),
    Rule(
        "calibration_drift",
        1,
        "%",
        "the service time changed while it was measured, by more than chance",
        _drift_percent,
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a run. broken: the rules that it breaks.

    values: of every rule by its name, None if the rule was skipped.
    """

    broken: tuple[Rule, ...]
    values: dict[str, float | None]

    @property
    def accepted(self) -> bool:
        """Whether the run counts."""
        return not self.broken

    @property
    def reasons(self) -> str:
        """Why the run does not count, in one line; empty if it does."""
        return "; ".join(
            f"{rule.name} {self.values[rule.name]:.3g} {rule.unit}, limit {rule.limit:g}: "
            f"{rule.reason}"
            for rule in self.broken
        )


def judge(facts: Facts, rules: Sequence[Rule] = RULES) -> Verdict:
    """Judge a run by the rules."""
    values = {rule.name: rule.value(facts) for rule in rules}
    broken = (
        rule for rule in rules if (value := values[rule.name]) is not None and value > rule.limit
    )
    return Verdict(tuple(broken), values)
