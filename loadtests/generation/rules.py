"""The rules by which a run is rejected: one table. Pure.

A run that its generator, the machine's other work or errors spoilt is not repaired and not dropped:
it is rejected by these rules, which were fixed before anything was measured, kept and listed.

    verdict = judge(facts)
    verdict.accepted, verdict.reasons
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at; None: not measured or not asked for, and its rule is passed over.

    requests, failed: rows, and those without a good answer. scheduled: arrivals of the schedule.
    lag_p99_s: 99th percentile of how late requests were sent. service_time_s: the calibrated E[S].
    foreign_cpu, client_cpu: means over the run, in cores. before_s, after_s: mean response times of
    the calibrations. is_interrupted: ended before its time.
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
    return 100 * abs(facts.after_s / facts.before_s - 1)


def _missed(facts: Facts) -> float | None:
    return None if facts.scheduled is None else float(abs(facts.scheduled - facts.requests))


def _percent(cores: float | None) -> float | None:
    return None if cores is None else 100 * cores


RULES: Sequence[Rule] = (
    Rule(
        "interrupted",
        0,
        "times",
        "it was ended before its time",
        lambda facts: float(facts.is_interrupted),
    ),
    Rule(
        "failed_requests",
        1,
        "% of the requests",
        "a failure is quicker than an answer, or slower, but never one",
        _failed_percent,
    ),
    Rule(
        "missed_arrivals",
        0,
        "arrivals",
        "the arrivals are not those of the schedule",
        _missed,
    ),
    Rule(
        "dispatch_lag_p99",
        5,
        "% of E[S]",
        "the generator sent too late, and the waiting time in it is counted as the server's",
        _lag_percent,
    ),
    Rule(
        "foreign_cpu",
        10,
        "% of a core",
        "other work on the machine took processor time from what is measured",
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
        "the service time changed while it was measured",
        _drift_percent,
    ),
)


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule and what it found."""

    rule: Rule
    value: float

    def __str__(self) -> str:
        rule = self.rule
        return f"{rule.name} {self.value:.3g} {rule.unit}, limit {rule.limit:g}: {rule.reason}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """values: of every rule, by its name, None if it was passed over."""

    violations: tuple[Violation, ...]
    values: dict[str, float | None]

    @property
    def accepted(self) -> bool:
        """Whether the run counts."""
        return not self.violations

    @property
    def reasons(self) -> str:
        """Why it does not, in one line; empty if it does."""
        return "; ".join(map(str, self.violations))


def judge(facts: Facts, rules: Sequence[Rule] = RULES) -> Verdict:
    """Hold a run against the rules."""
    values = {rule.name: rule.value(facts) for rule in rules}
    found = []
    for rule in rules:
        value = values[rule.name]
        if value is not None and value > rule.limit:
            found.append(Violation(rule, value))
    return Verdict(tuple(found), values)
