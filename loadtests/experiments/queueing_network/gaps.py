"""Accounts for the gap between measured and predicted response time of closed runs. Pure.

From the prediction to the measurement, each step adds a thing that the prediction leaves out
(WORDS). The way of an interaction to the server and back is a delay at which nobody waits for
others. An entry is the difference that its step makes to the formula of the server: mean value
analysis for exponential stations; for one request at a time, the asymptotes of a single station,
which is also held by the way and the lateness, since its one worker connects and writes. Regular
stations have no formula; their prediction is the mean of simulated runs, so that they have no entry
for a short run, and the asymptotes say what the others make. What is left is sampling, with the
interval of the measured mean; if that excludes 0, the report says that something else is in it. The
entries sum to the gap. Times are report seconds.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

from loadtests.experiments.queueing_network.comparing import Point
from loadtests.experiments.queueing_network.measuring import LATE
from loadtests.experiments.queueing_network.predicting import (
    ASYMPTOTES,
    EXPONENTIAL,
    FORMULAS,
    MVA,
    ONE,
    REGULAR,
    SINGLE,
    stations,
)
from loadtests.lab.content import Section, Table
from loadtests.lab.gaps import Entry, Gap, gap_told, waterfall
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.repeated import accepted
from loadtests.models.laws import DELAY, Station

WAY, DEMANDS, SHORT = "way and thinking", "demands", "short run"
LATENESS, SAMPLING = "lateness", "sampling"
WORDS: Mapping[str, str] = {
    WAY: "The way to the server and back, and other think times than they should be,",
    DEMANDS: "That the server drew other service times than the nominal ones",
    SHORT: "A short run in which all customers begin together",
    LATENESS: "Lateness of the machine at the end of interactions",
    SAMPLING: "The chance that brought just these runs",
}
_MODELS = {EXPONENTIAL: MVA, REGULAR: ASYMPTOTES, SINGLE: ONE}
"""Server -> the model whose formula says what each cause makes."""


def gap_of(point: Point, alone: Point | None) -> Gap:
    """The gap of a server with N customers, in seconds. The server must report its times.

    alone: the point of a single customer, who tells the way to a server with one thread, as that
    does not report how long customers wait at its door; without it, the way is taken to be 0.
    """
    nominal, measured, late_s = stations(), point.response_s, point.told[LATE]
    reported = [Station(station.name, point.told[station.name]) for station in nominal]
    cycle_s = fmean([one for run in point.runs for one in run.cycles_s])
    thought_s = cycle_s - _stay_s(point)
    outside = alone if point.server is SINGLE else point
    way_s = 0.0
    if outside and outside.told:
        way_s = max(0.0, _stay_s(outside) - sum(outside.told.values()))

    def response_s(of: Sequence[Station], think_s: float, delay_s: float) -> float:
        formula, way = FORMULAS[_MODELS[point.server]], Station("way", delay_s, DELAY)
        return formula([*of, way], point.customers, think_s).response_s

    levels_s = [
        response_s(nominal, NETWORK_THINK_S, 0.0),
        response_s(nominal, thought_s, way_s),
        response_s(reported, thought_s, way_s),
        response_s(reported, thought_s, way_s + late_s),
    ]
    predicted_s, short_s = levels_s[0], point.expected.response_s.mean - levels_s[0]
    of_way_s, of_demands_s, of_lateness_s = (after - before for before, after in pairwise(levels_s))
    amounts_s = {WAY: of_way_s, DEMANDS: of_demands_s, SHORT: short_s, LATENESS: of_lateness_s}
    if point.server is REGULAR:
        predicted_s += amounts_s.pop(SHORT)
    left_s = measured.estimate - predicted_s - sum(amounts_s.values())
    ends_s = left_s - measured.half_width, left_s + measured.half_width
    entries = [Entry(name, WORDS[name], amount_s) for name, amount_s in amounts_s.items()]
    entries.append(Entry(SAMPLING, WORDS[SAMPLING], left_s, *ends_s))
    return Gap(predicted_s, entries, "s", measured.low - predicted_s, measured.high - predicted_s)


def _stay_s(point: Point) -> float:
    """The mean response time of all interactions."""
    return fmean([one for run in point.runs for one in run.responses_s])


# --- the report ------------------------------------------------------------------------------

_TOLD = (
    "From the prediction of each server to what was measured, in report seconds. What is known is "
    "put into the formula, one thing after another, and an entry is what that changes; what is "
    "left is sampling, with the interval of the measured mean, so the entries sum to the gap. "
    "Regular stations have no formula: they start from simulated runs, and the asymptotes tell "
    "what the other things change."
)


def gap_section(found: Sequence[Point]) -> Section:
    """A waterfall for the largest N of each server, and the entries of all N in a table."""
    alone = {point.server: point for point in found if point.customers == 1}
    gaps = [
        (point, gap_of(point, alone.get(point.server)))
        for point in accepted(found)
        if point.stations
    ]
    title = "Where the gaps come from"
    if not gaps:
        return Section(title, [_TOLD])
    figures = [
        waterfall(
            f"Gap at N = {point.customers}, {point.server.label}",
            f"{gap_told(gap)} Runs: {len(point.runs)}.",
            gap,
        )
        for point, gap in {point.server: (point, gap) for point, gap in gaps}.values()
    ]
    return Section(title, [_TOLD, *_beyond_chance(gaps)], [*figures, _table(gaps)])


def _beyond_chance(gaps: Sequence[tuple[Point, Gap]]) -> list[str]:
    """A sentence about what is left where chance alone does not explain it."""
    left = [
        f"{point.server.label} N = {point.customers} ({gap.entries[-1].amount:+.2g} s)"
        for point, gap in gaps
        if gap.entries[-1].is_seen(gap.predicted)
    ]
    told = (
        f"What is left lies beyond its 95 % interval in {len(left)} of {len(gaps)} cases, where "
        f"chance alone brings {0.05 * len(gaps):.1f} on average: {', '.join(left)}. Far beyond it, "
        "a cause that has no entry is at work."
    )
    return [told] if left else []


def _table(gaps: Sequence[tuple[Point, Gap]]) -> Table:
    rows = []
    for point, gap in gaps:
        amounts = {entry.name: entry.amount for entry in gap.entries}
        head = (point.server.label, point.customers, gap.predicted)
        rows.append((*head, *map(amounts.get, WORDS), point.response_s.half_width, gap.measured))
    columns = ("Server", "N", "Predicted", *map(str.capitalize, WORDS), "±", "Measured")
    return Table("Gaps at each N, in report seconds", columns, rows)
