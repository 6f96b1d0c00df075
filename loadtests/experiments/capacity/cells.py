"""Groups accepted rounds into cells, and computes means, intervals and fits of these."""

from collections.abc import Callable, Mapping, Sequence
from math import exp, log
from random import Random
from statistics import fmean, median

from loadtests.experiments.capacity.rounds import NOTHING, QUESTIONS, Configuration, Round, judged
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, estimate
from loadtests.lab.results import Results
from loadtests.models.scalability import KneeInterval, ScalabilityLaw, fit, knee_interval

RESAMPLES = 200
LEAST_POPULATIONS = 4  # one more than the number of parameters of the law


class Cells:
    """The rounds of a result: all of them, and for each cell those that count."""

    def __init__(self, rounds: Sequence[Round]) -> None:
        self.made = rounds
        self.accepted = [one for one in rounds if judged(one).accepted]
        in_order = sorted(self.accepted, key=lambda one: (one.connections, one.turn))
        self._cells = {
            key: grouped(of, lambda one: one.connections)
            for key, of in grouped(in_order, lambda r: (r.configuration, r.endpoint)).items()
        }

    def configurations(self) -> list[Configuration]:
        """All measured configurations, even if none of their rounds counts."""
        return sorted({one.configuration for one in self.made}, key=lambda one: one.place)

    def populations(self) -> list[int]:
        """All numbers of connections that were measured."""
        return sorted({one.connections for one in self.made})

    def rounds(self, of: Configuration, endpoint: str, connections: int) -> list[Round]:
        """The rounds of a cell that count."""
        return self._cells.get((of, endpoint), {}).get(connections, [])

    def counted(self, of: Configuration, endpoint: str, connections: int) -> str:
        """How many rounds of a cell count."""
        made = [
            (one.configuration, one.endpoint, one.connections) == (of, endpoint, connections)
            for one in self.made
        ]
        return f"{len(self.rounds(of, endpoint, connections))} of {sum(made)}"

    def throughput(self, of: Configuration, endpoint: str, connections: int) -> Estimate | None:
        """X(N), in 1/s; None if no round counts."""
        found = [r.throughput_per_s for r in self.rounds(of, endpoint, connections)]
        return estimate(found) if found else None

    def middle(
        self,
        of: Configuration,
        endpoint: str,
        connections: int,
        value: Callable[[Round], float | None],
    ) -> float | None:
        """The median of `value` over the rounds of a cell that count; None if there is none."""
        found = [value(one) for one in self.rounds(of, endpoint, connections)]
        known = [one for one in found if one is not None]
        return median(known) if known else None

    def share_of_nothing(self, of: Configuration, connections: int) -> Estimate | None:
        """X(N) of the questions divided by that of the empty endpoint, turn by turn."""
        nothing = self._by_turn(of, NOTHING, connections)
        asked = self._by_turn(of, QUESTIONS, connections)
        both = sorted(asked.keys() & nothing.keys())
        return estimate([asked[turn] / nothing[turn] for turn in both]) if both else None

    def _by_turn(self, of: Configuration, endpoint: str, connections: int) -> dict[int, float]:
        found = self.rounds(of, endpoint, connections)
        return {one.turn: one.throughput_per_s for one in found}

    def times_faster(self, one: Configuration, other: Configuration) -> Estimate | None:
        """How many times as many questions `one` answers: the geometric mean over all N.

        The interval is over turns. A turn without some rounds is judged by the others, each
        compared with the mean of its N. None if there is no N and turn where rounds of both count.
        """
        logs = {n: self._log_ratios(one, other, n) for n in self.populations()}
        means = {n: fmean(of_turn.values()) for n, of_turn in logs.items() if of_turn}
        if not means:
            return None
        off: dict[int, list[float]] = {}
        for n, mean in means.items():
            for turn, found in logs[n].items():
                off.setdefault(turn, []).append(found - mean)
        overall = fmean(means.values())
        over = estimate([overall + fmean(values) for _, values in sorted(off.items())])
        low, high = (None if end is None else exp(end) for end in (over.low, over.high))
        return Estimate(exp(overall), low, high, over.values)

    def _log_ratios(self, one: Configuration, other: Configuration, n: int) -> dict[int, float]:
        ours, theirs = (self._by_turn(of, QUESTIONS, n) for of in (one, other))
        both = sorted(ours.keys() & theirs.keys())
        return {turn: log(ours[turn] / theirs[turn]) for turn in both}

    def peak(self, of: Configuration, endpoint: str) -> tuple[int, Estimate] | None:
        """The N with the highest mean throughput, and this throughput; None if no round counts."""
        known = [(n, self.throughput(of, endpoint, n)) for n in self.populations()]
        return max(
            ((n, found) for n, found in known if found is not None),
            key=lambda pair: pair[1].value,
            default=None,
        )

    def throughputs(self, of: Configuration, endpoint: str) -> Mapping[int, list[float]]:
        """N -> throughputs of the rounds that count, to which a law is fitted."""
        cells = self._cells.get((of, endpoint), {})
        return {n: [one.throughput_per_s for one in found] for n, found in cells.items()}

    def law(self, of: Configuration, endpoint: str) -> ScalabilityLaw | None:
        """The universal scalability law, if enough different N count."""
        found = self.throughputs(of, endpoint)
        return fit(found) if len(found) >= LEAST_POPULATIONS else None

    def knee(self, of: Configuration, endpoint: str) -> KneeInterval | None:
        """The interval of the law's knee; None unless enough N have two rounds each that count."""
        found = self.throughputs(of, endpoint)
        if len(found) < LEAST_POPULATIONS or any(len(values) < 2 for values in found.values()):
            return None
        random = Random(f"knee {of} {endpoint}")  # noqa: S311  the same for the same rows
        return knee_interval(found, random, resamples=RESAMPLES)


def read(results: Results) -> Cells:
    """The cells of a result. Raises ResultsError if it has no table of rounds."""
    return Cells(results.lines("rounds", Round))
