"""Groups accepted rounds into cells, and computes means, intervals and fits of these."""

from collections.abc import Callable, Sequence
from functools import cached_property
from math import exp, log
from operator import itemgetter
from random import Random
from statistics import fmean, median

from loadtests.experiments.capacity.measuring import (
    ENDPOINTS,
    NOTHING,
    QUESTIONS,
    Configuration,
    Round,
)
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, estimate
from loadtests.lab.results import Results
from loadtests.lab.scalability import Scaling
from loadtests.models import laws
from loadtests.servers.service import WORKER_TYPES

RESAMPLES = 200
LEAST_POPULATIONS = 4  # one more than the number of parameters of the law


class Curve:
    """The answers of one configuration at one endpoint, over numbers of connections N.

    made: all its rounds. Only those that count are in its figures.
    """

    def __init__(self, of: Configuration, endpoint: str, made: Sequence[Round]) -> None:
        self.of, self.endpoint, self._made = of, endpoint, made
        counting = (one for one in made if one.verdict.accepted)
        in_order = sorted(counting, key=lambda one: (one.connections, one.turn))
        self._rounds = grouped(in_order, lambda one: one.connections)
        throughputs = {
            n: [one.throughput_per_s for one in found] for n, found in self._rounds.items()
        }
        random = Random(f"knee {of} {endpoint}")  # noqa: S311  the same for the same rounds
        self.scaling = Scaling(throughputs, LEAST_POPULATIONS, random, RESAMPLES)

    def counted(self, n: int) -> str:
        """How many of the rounds with N connections count."""
        made = sum(one.connections == n for one in self._made)
        return f"{len(self._rounds.get(n, ()))} of {made}"

    def throughput(self, n: int) -> Estimate | None:
        """X(N), in 1/s; None if no round counts."""
        return estimate(self.scaling.measurements[n]) if n in self._rounds else None

    def by_turn(self, n: int) -> dict[int, float]:
        """Turn -> X(N) in it."""
        return {one.turn: one.throughput_per_s for one in self._rounds.get(n, ())}

    def middle(self, n: int, value: Callable[[Round], float | None]) -> float | None:
        """The median of `value` over the rounds that count; None if there is none."""
        found = map(value, self._rounds.get(n, ()))
        known = [one for one in found if one is not None]
        return median(known) if known else None

    def limit_per_s(self, n: int) -> float | None:
        """min(workers, cores)/D, which the throughput cannot exceed with any load generator."""
        demand_s = self.middle(n, lambda one: one.demand_s)
        if not demand_s:
            return None
        return laws.throughput_per_s(min(self.of.workers, self._made[0].cores), demand_s)

    @cached_property
    def peak(self) -> tuple[int, Estimate] | None:
        """The N with the highest mean throughput, and this throughput; None if no round counts."""
        known = [(n, found) for n in self._rounds if (found := self.throughput(n))]
        return max(known, key=lambda pair: pair[1].value, default=None)


class Cells:
    """The rounds of a result: all of them, those that count, and the curves that they make."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self.made = rounds
        self.accepted = [one for one in rounds if one.verdict.accepted]
        made = grouped(
            rounds, lambda one: (Configuration(one.worker_type, one.workers), one.endpoint)
        )
        self._curves = {key: Curve(*key, of) for key, of in made.items()}
        self.populations = sorted({one.connections for one in rounds})
        self.configurations = sorted(
            {of for of, _ in made}, key=lambda of: (WORKER_TYPES.index(of.worker_type), of.workers)
        )
        self.curves = [self.curve(of, which) for of in self.configurations for which in ENDPOINTS]

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
        means, off = [], []
        for n in self.populations:
            ratios = _ratios(self.curve(one), self.curve(other), n)
            logs = {turn: log(ratio) for turn, ratio in ratios.items()}
            if logs:
                means.append(fmean(logs.values()))
                off += [(turn, found - means[-1]) for turn, found in logs.items()]
        if not means:
            return None
        overall, by_turn = fmean(means), sorted(grouped(off, itemgetter(0)).items())
        over = estimate([overall + fmean([by for _, by in of_turn]) for _, of_turn in by_turn])
        low, high = (None if end is None else exp(end) for end in (over.low, over.high))
        return Estimate(exp(overall), low, high, over.values)


def _ratios(one: Curve, other: Curve, n: int) -> dict[int, float]:
    """Turn -> how many times the throughput of `other` that of `one` is, where both count."""
    ours, theirs = one.by_turn(n), other.by_turn(n)
    return {turn: ours[turn] / theirs[turn] for turn in sorted(ours.keys() & theirs.keys())}


def read(results: Results) -> Cells:
    """The cells of a result. Raises ResultsError if it has no table of rounds."""
    return Cells(results.lines("rounds", Round))
