"""Tells how long closed customers of other load generators think, for their forecast.

Think times decide how often customers meet: constant ones let them fall into step, so that they
wait less than with exponential ones. Where rows name the customer, each customer's own think times
are replayed. Where they do not, rows still tell some laws. If think times are constant, or requests
begin at a constant pace, customers come back in the order in which they left or began, each after
the same time. If they are exponential, the number of requests that begin is a Poisson process in
the time that customers have thought altogether. Otherwise, and of files that only sum up, nothing
is known but the mean. Then constant think times stand for the least waiting, and for the most those
that vary as in the rows, or exponential ones, or customers who all ask at once at a constant pace.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from math import inf

import numpy as np

from loadtests.experiments.tool_loads import EVEN, Measured
from loadtests.generation.rows import Row, customer_of
from loadtests.grouping import grouped
from loadtests.lab.response_times import Values
from loadtests.lab.tool_rows import TOGETHER_S

IN_STEP = 0.5  # spread of constant think times beside the time between two requests
TURNS = 2  # requests of each customer in a part of a run whose requests are counted
LEAST_PARTS = 100  # fewer do not tell how much think times vary
NEARLY = 0.25  # the variance of think times beside their mean's square is so near to 1 ...
DISTANCE = 0.03  # ... and their distribution so near to the exponential one


@dataclass(frozen=True)
class ThinkTimes:
    """Holds how customers think.

    begun_s: when each asks first, in order. replayed_s: think times of each customer, or of all if
    there is one sequence, in order, after which nobody asks again. Without these, they are drawn
    with the mean `mean_s` and the squared coefficient of variation `cv2`. is_paced: they are
    counted from the request before, not from its answer.
    """

    begun_s: Sequence[float]
    replayed_s: Sequence[Sequence[float]] = ()
    mean_s: float = 0.0
    cv2: float = 0.0
    is_paced: bool = False

    def of_customers(self, rng: np.random.Generator, count: int) -> list[Iterator[float]]:
        """Return think times of each customer, at least `count` of all together."""
        if self.replayed_s:
            replayed: list[Iterator[float]] = [
                chain(times_s, repeat(inf)) for times_s in self.replayed_s
            ]
            return replayed if len(replayed) > 1 else replayed * len(self.begun_s)
        if not self.cv2 or not self.mean_s:
            return [repeat(self.mean_s)] * len(self.begun_s)
        drawn = iter(rng.gamma(1 / self.cv2, self.mean_s * self.cv2, count).tolist())
        return [drawn] * len(self.begun_s)


Law = Callable[[Measured], ThinkTimes]


def laws(runs: Sequence[Measured]) -> list[Law]:
    """Return the laws that the think times of closed runs of one load may have."""
    if all(_rows_of_customers(run) for run in runs):
        return [_replayed]
    if all(_mean_s(run) <= EVEN * run.cycle_s for run in runs):
        return [_drawn(0.0)]
    if not all(run.rows for run in runs):
        return [_drawn(0.0), _drawn(1.0)]
    even = [max(_unevenness(of(run), run) for run in runs) for of in (_matched_s, _cycles_s)]
    if min(even) <= IN_STEP:
        return [_in_step if even[0] <= even[1] else _paced]
    cv2, parts, distance = _variation(runs)
    if abs(cv2 - 1) <= NEARLY and parts >= LEAST_PARTS and distance <= DISTANCE:
        return [_drawn(1.0)]
    return [_drawn(0.0), _drawn(max(1.0, cv2))]


def _drawn(cv2: float) -> Law:
    def drawn(run: Measured) -> ThinkTimes:
        return ThinkTimes(_begun_s(run), mean_s=_mean_s(run), cv2=cv2)

    return drawn


def longest(runs: Sequence[Measured]) -> list[Law]:
    """Return a law by which customers wait for longer than by `laws`, if theirs may be that."""
    is_known = all(run.rows for run in runs) or len(laws(runs)) == 1
    return [] if is_known else [_all_at_once]


def _all_at_once(run: Measured) -> ThinkTimes:
    return ThinkTimes(_begun_s(run), mean_s=run.cycle_s, is_paced=True)


def _begun_s(run: Measured) -> list[float]:
    """Return when customers ask first: as many first requests, or at once if there are no rows."""
    return [row.intended_s for row in run.sent[: run.customers]] or [0.0] * run.customers


def _mean_s(run: Measured) -> float:
    if not _has_turns(run):
        return run.think_s
    thought_s = _thought_s(run)
    return float(thought_s[-1]) / (len(thought_s) - 1)


# --- rows that name the customer -----------------------------------------------------------------


def _rows_of_customers(run: Measured) -> list[list[Row]]:
    """Return the rows of each customer, by their first; none if rows do not name the customer.

    Customers who strictly take turns may be named by their order only, which tells nothing more.
    """
    rows = run.sent
    if not rows or max(row.index for row in rows) < 2 * len(rows):
        return [[row] for row in rows] if len(rows) == run.customers else []
    turns = zip(rows, rows[run.customers :], strict=False)
    if all(customer_of(row) == customer_of(later) for row, later in turns):
        return []
    customers = list(grouped(rows, customer_of).values())
    met = sum(b.intended_s < a.done_s - TOGETHER_S for own in customers for a, b in pairwise(own))
    return customers if len(customers) == run.customers and not met else []


def _replayed(run: Measured) -> ThinkTimes:
    """Return the think times as measured, or the pace if requests begin at even intervals."""
    customers = _rows_of_customers(run)
    begun_s = [own[0].intended_s for own in customers]
    thinks_s = [[b.intended_s - a.done_s for a, b in pairwise(own)] for own in customers]
    cycles_s = [[b.intended_s - a.intended_s for a, b in pairwise(own)] for own in customers]
    if sum(map(_spread, cycles_s)) < sum(map(_spread, thinks_s)) / 2:
        paces_s = [[float(np.median(own))] * len(own) if own else [] for own in cycles_s]
        return ThinkTimes(begun_s, paces_s, is_paced=True)
    return ThinkTimes(begun_s, [[max(0.0, value) for value in own] for own in thinks_s])


def _spread(values: Sequence[float] | Values, share: float = 0.25) -> float:
    """Return the distance between the lower and the upper quantile of this share."""
    low, high = np.quantile(values, [share, 1 - share]) if len(values) else (0.0, 0.0)
    return float(high - low)


# --- rows that do not ----------------------------------------------------------------------------


def _has_turns(run: Measured) -> bool:
    return len(run.sent) > run.customers


def _matched_s(run: Measured) -> Values:
    """Return the think times if customers come back in the order in which they left."""
    starts_s = np.array([row.intended_s for row in run.sent])
    ends_s = np.sort([row.done_s for row in run.sent])
    return np.asarray(starts_s[run.customers :] - ends_s[: len(starts_s) - run.customers])


def _cycles_s(run: Measured) -> Values:
    """Return the times between requests of a customer if they begin in the same order again."""
    starts_s = np.array([row.intended_s for row in run.sent])
    return np.asarray(starts_s[run.customers :] - starts_s[: -run.customers])


def _unevenness(intervals_s: Values, run: Measured) -> float:
    """Return the spread of intervals beside the time between two requests of all customers."""
    return _spread(intervals_s, 0.1) * run.rate_per_s if _has_turns(run) else inf


def _in_step(run: Measured) -> ThinkTimes:
    return ThinkTimes(_begun_s(run), [np.maximum(0.0, _matched_s(run)).tolist()])


def _paced(run: Measured) -> ThinkTimes:
    return ThinkTimes(_begun_s(run), mean_s=float(np.median(_cycles_s(run))), is_paced=True)


def _variation(runs: Sequence[Measured]) -> tuple[float, int, float]:
    """Return the squared coefficient of variation of think times, from how many parts of the runs,
    and how far they are from exponential ones.

    In the time that all customers have thought altogether, exponential think times end as a Poisson
    process does. Of any law, numbers of ends in long parts have a variance that is, beside their
    mean, the squared coefficient of variation. The distance is A. N. Kolmogorov's, of the intervals
    between ends.
    """
    squares, parts, gaps = 0.0, 0, list[Values]()
    for run in runs:
        thought = _thought_s(run) / _mean_s(run)
        gaps.append(np.diff(thought))
        size = TURNS * run.customers
        numbers = np.bincount((thought // size).astype(int))[: int(thought[-1] // size)]
        squares, parts = squares + float(((numbers - size) ** 2).sum()) / size, parts + len(numbers)
    in_order = np.sort(np.concatenate(gaps))
    steps = np.arange(len(in_order) + 1) / len(in_order)
    cdf = 1 - np.exp(-in_order)
    distance = float(np.maximum(steps[1:] - cdf, cdf - steps[:-1]).max())
    return squares / max(1, parts), parts, distance


def _thought_s(run: Measured) -> Values:
    """Return how long all customers together had thought when each request began.

    It counts from when all had begun.
    """
    starts_s = np.array([row.intended_s for row in run.sent])
    ends_s = np.array([row.done_s for row in run.sent])
    times_s = np.concatenate([ends_s, starts_s])
    order = np.argsort(times_s, kind="stable")
    changes = np.repeat([1, -1], len(starts_s))[order]
    thinking = run.customers + np.cumsum(changes)[:-1]
    sums_s = np.concatenate([[0.0], np.cumsum(thinking * np.diff(times_s[order]))])[changes < 0]
    return np.asarray(sums_s[run.customers - 1 :] - sums_s[run.customers - 1])
