"""Groups accepted rounds into cells, and computes means, intervals and fits of these."""

from collections.abc import Callable, Mapping, Sequence
from math import exp, log
from random import Random
from statistics import fmean, median

from loadtests.experiments.capacity.rounds import NOTHING, QUESTIONS, Configuration, Round, judged
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, estimate
from loadtests.lab.results import Results
from loadtests.models import laws
from loadtests.models.scalability import ScalabilityLaw, fit, knee_interval

RESAMPLES = 200
LEAST_POPULATIONS = 4  # one more than the number of parameters of the law


class Curve:
    """The answers of one configuration at one endpoint, over numbers of connections N.

    made: all its rounds. Only those that count are in its figures.
    """

    def __init__(self, of: Configuration, endpoint: str, made: Sequence[Round]) -> None:
        self._of, self._endpoint, self._made = of, endpoint, made
        counting = (one for one in made if judged(one).accepted)
        in_order = sorted(counting, key=lambda one: (one.connections, one.turn))
        self._rounds = grouped(in_order, lambda one: one.connections)

    def counted(self, n: int) -> str:
        """How many of the rounds with N connections count."""
        made = [one for one in self._made if one.connections == n]
        return f"{len(self._rounds.get(n, ()))} of {len(made)}"

    def throughput(self, n: int) -> Estimate | None:
        """X(N), in 1/s; None if no round counts."""
        found = self.by_turn(n)
        return estimate(list(found.values())) if found else None

    def by_turn(self, n: int) -> dict[int, float]:
        """Turn -> its throughput."""
        return {one.turn: one.throughput_per_s for one in self._rounds.get(n, ())}

    def middle(self, n: int, value: Callable[[Round], float | None]) -> float | None:
        """The median of `value` over the rounds that count; None if there is none."""
        found = [value(one) for one in self._rounds.get(n, ())]
        known = [one for one in found if one is not None]
        return median(known) if known else None

    def limit_per_s(self, n: int) -> float | None:
        """min(workers, cores)/D, which the throughput cannot exceed with any load generator."""
        demand_s = self.middle(n, lambda one: one.demand_s)
        if not demand_s:
            return None
        return laws.throughput_per_s(min(self._of.workers, self._rounds[n][0].cores), demand_s)

    def peak(self) -> tuple[int, Estimate] | None:
        """The N with the highest mean throughput, and this throughput; None if no round counts."""
        known = [(n, found) for n in self._rounds if (found := self.throughput(n))]
        return max(known, key=lambda pair: pair[1].value, default=None)

    def law(self) -> ScalabilityLaw | None:
        """The universal scalability law, if enough different N count."""
        found = self._throughputs()
        return fit(found) if len(found) >= LEAST_POPULATIONS else None

    def knee(self) -> tuple[float, float] | None:
        """The 95 % interval of the law's knee; None unless enough N have two rounds that count."""
        found = self._throughputs()
        if len(found) < LEAST_POPULATIONS or any(len(values) < 2 for values in found.values()):
            return None
        random = Random(f"knee {self._of} {self._endpoint}")  # noqa: S311  the same for the same rows
        interval = knee_interval(found, random, resamples=RESAMPLES)
        return interval.low, interval.high

    def _throughputs(self) -> Mapping[int, list[float]]:
        """N -> throughputs of the rounds that count, to which a law is fitted."""
        return {n: [one.throughput_per_s for one in found] for n, found in self._rounds.items()}


class Cells:
    """The rounds of a result: all of them, those that count, and the curves that they make."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self.made = rounds
        self.accepted = [one for one in rounds if judged(one).accepted]
        made = grouped(rounds, lambda one: (one.configuration, one.endpoint))
        self._curves = {key: Curve(*key, of) for key, of in made.items()}

    def configurations(self) -> list[Configuration]:
        """All measured configurations, even if none of their rounds counts."""
        return sorted({one.configuration for one in self.made}, key=lambda one: one.place)

    def populations(self) -> list[int]:
        """All numbers of connections that were measured."""
        return sorted({one.connections for one in self.made})

    def curve(self, of: Configuration, endpoint: str = QUESTIONS) -> Curve:
        """The answers of a configuration at an endpoint."""
        return self._curves.get((of, endpoint)) or Curve(of, endpoint, [])

    def share_of_nothing(self, of: Configuration, n: int) -> Estimate | None:
        """X(N) of the questions divided by that of the empty endpoint, turn by turn."""
        ratios = _ratios(self.curve(of), self.curve(of, NOTHING), n)
        return estimate(list(ratios.values())) if ratios else None

    def times_faster(self, one: Configuration, other: Configuration) -> Estimate | None:
        """How many times as many questions `one` answers: the geometric mean over all N.

        The interval is over turns. A turn without some rounds is judged by the others, each
        compared with the mean of its N. None if there is no N and turn where rounds of both count.
        """
        ours, theirs = self.curve(one), self.curve(other)
        logs = {
            n: {turn: log(ratio) for turn, ratio in ratios.items()}
            for n in self.populations()
            if (ratios := _ratios(ours, theirs, n))
        }
        if not logs:
            return None
        means = {n: fmean(of_turn.values()) for n, of_turn in logs.items()}
        off: dict[int, list[float]] = {}
        for n, of_turn in logs.items():
            for turn, found in of_turn.items():
                off.setdefault(turn, []).append(found - means[n])
        overall = fmean(means.values())
        over = estimate([overall + fmean(values) for _, values in sorted(off.items())])
        low, high = (None if end is None else exp(end) for end in (over.low, over.high))
        return Estimate(exp(overall), low, high, over.values)


def _ratios(one: Curve, other: Curve, n: int) -> dict[int, float]:
    """Turn -> how many times the throughput of `other` that of `one` is, where both count."""
    ours, theirs = one.by_turn(n), other.by_turn(n)
    return {turn: ours[turn] / theirs[turn] for turn in sorted(ours.keys() & theirs.keys())}


def read(results: Results) -> Cells:
    """The cells of a result. Raises ResultsError if it has no table of rounds."""
    return Cells(results.lines("rounds", Round))
