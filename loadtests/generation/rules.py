"""Rejects runs by a table of rules. Pure.

A run that was spoilt by its generator, by other work of the machine or by errors is neither
repaired nor dropped: it is rejected by these rules, kept and listed. The rules were fixed before
anything was measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadtests.number_format import format_number


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds the facts that rules judge. A rule is skipped if its fact is None: not measured.

    requests: number of rows. failed: rows without a good answer. scheduled: arrivals of the
    schedule. lag_mean_s, lag_p99_s: mean and 99th percentile of how late they were sent.
    foreign_cpu, client_cpu: means over the run, in cores. before_s, after_s: E[S] by the
    calibrations around the run. chance_s: how much these may differ by chance. is_interrupted: it,
    or the calibration after it, did not come to its end.
    """

    requests: int
    failed: int
    scheduled: int | None = None
    lag_mean_s: float | None = None
    lag_p99_s: float | None = None
    foreign_cpu: float | None = None
    client_cpu: float | None = None
    before_s: float | None = None
    after_s: float | None = None
    chance_s: float = 0.0
    is_interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """Rejects a run when `value` is above `limit`, both in `unit`.

    is_of_machine: it rejects what a machine that others share does to a run.
    """

    name: str
    limit: float
    unit: str
    value: Callable[[Facts], float | None]
    reason: str
    is_of_machine: bool = False


def _percent(part: float | None, whole: float | None = 1.0) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def _drift(run: Facts) -> float | None:
    if run.before_s is None or run.after_s is None:
        return None
    return _percent(max(0.0, abs(run.after_s - run.before_s) - run.chance_s), run.before_s)


RULES: Sequence[Rule] = (
    Rule(
        *("interrupted", 0, "times"),
        lambda run: run.is_interrupted,
        "the run, or the calibration after it, did not come to its end",
    ),
    Rule(
        *("failed_requests", 1, "% of the requests"),
        lambda run: _percent(run.failed, run.requests) if run.requests else 100.0,
        "failed requests take more or less time than answered ones",
    ),
    Rule(
        *("missed_arrivals", 0, "arrivals"),
        lambda run: None if run.scheduled is None else abs(run.scheduled - run.requests),
        "the arrivals differ from those of the schedule",
    ),
    Rule(
        *("dispatch_lag_mean", 2, "% of E[S]"),
        lambda run: _percent(run.lag_mean_s, run.before_s),
        "the generator sent too late, and its delay counts as waiting at the server",
        is_of_machine=True,
    ),
    Rule(
        *("dispatch_lag_p99", 20, "% of E[S]"),
        lambda run: _percent(run.lag_p99_s, run.before_s),
        "the generator sent some requests far too late",
        is_of_machine=True,
    ),
    Rule(
        *("foreign_cpu", 10, "% of a core"),
        lambda run: _percent(run.foreign_cpu),
        "other programs took processor time from the server and the generator",
        is_of_machine=True,
    ),
    Rule(
        *("client_cpu", 70, "% of a core"),
        lambda run: _percent(run.client_cpu),
        "the generator was near its own saturation",
    ),
    Rule(
        *("calibration_drift", 1, "%"),
        _drift,
        "the service time changed while it was measured, by more than chance",
        is_of_machine=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Says whether a run counts. broken: the rules that it breaks.

    values: of every rule by its name, None if the rule was skipped.
    """

    broken: tuple[Rule, ...]
    values: dict[str, float | None]

    @property
    def accepted(self) -> bool:
        return not self.broken

    def on_shared_machine(self) -> "Verdict":
        """Return the verdict without the rules about the machine, for a report that is marked."""
        return Verdict(tuple(rule for rule in self.broken if not rule.is_of_machine), self.values)

    @property
    def reasons(self) -> str:
        """Return why the run does not count, in one line; empty if it does."""
        return "; ".join(
            f"{rule.name} {format_number(self.values[rule.name] or 0.0)} {rule.unit}, "
            f"limit {rule.limit:g}: {rule.reason}"
            for rule in self.broken
        )


def judge(facts: Facts) -> Verdict:
    values = {rule.name: rule.value(facts) for rule in RULES}
    broken = (rule for rule in RULES if (values[rule.name] or 0) > rule.limit)
    return Verdict(tuple(broken), values)
