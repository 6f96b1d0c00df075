"""Accounts for the gap between measured and predicted response time of closed runs. Pure.

From the prediction to the measurement, each step adds a thing that the prediction leaves out:

1. way and thinking: what an interaction takes on its way to the server and back, as a delay at
   which nobody waits for others, and the think time that the generator really kept
2. demands: those that the server drew and reported, in place of the nominal ones
3. short run: the mean of simulated runs like the measured ones, in which all begin together
4. lateness: by how much the machine was late at the end of an interaction
5. sampling: what is left, with the interval of the measured mean; if that excludes 0, the report
   says that something else is in it

An entry is the difference that its step makes to the formula of the server: mean value analysis for
exponential stations; for one request at a time, the asymptotes of a single station, which is also
held by the way and the lateness, since its one worker connects and writes. Regular stations have
no formula; their prediction is the mean of simulated runs, so that they have no third step, and the
asymptotes say what the others make. The entries sum to the gap. Times are report seconds.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from loadtests.experiments.queueing_network.comparing import Point
from loadtests.experiments.queueing_network.measuring import LATE
from loadtests.experiments.queueing_network.plan import EXPONENTIAL, REGULAR, SINGLE
from loadtests.experiments.queueing_network.predicting import (
    ASYMPTOTES,
    FORMULAS,
    MVA,
    ONE,
    STATIONS,
    demands,
    routing,
)
from loadtests.lab.gaps import Entry, Gap, gap_told, waterfall
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.repeated import accepted
from loadtests.lab.report.content import Figure, Section, Table
from loadtests.models.laws import DELAY, Station

WAY, DEMANDS, SHORT, LATENESS, SAMPLING = CAUSES = (
    *("way and thinking", "demands", "short run", "lateness", "sampling"),
)
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
    nominal = demands(routing())
    reported = {name: point.told[name] for name in STATIONS}
    late_s, thought_s = point.told[LATE], _thought_s(point)
    way_s = _way_s(alone if point.server is SINGLE else point)

    def response_s(demands_s: Mapping[str, float], think_s: float, delay_s: float) -> float:
        stations = [Station(name, demand_s) for name, demand_s in demands_s.items()]
        stations.append(Station("way", delay_s, DELAY))
        formula = FORMULAS[_MODELS[point.server]]
        return formula(stations, point.customers, think_s).response_s

    by_formula_s = response_s(nominal, NETWORK_THINK_S, 0.0)
    with_way_s = response_s(nominal, thought_s, way_s)
    with_demands_s = response_s(reported, thought_s, way_s)
    with_lateness_s = response_s(reported, thought_s, way_s + late_s)
    simulated_s, measured = point.expected.response_s.mean, point.response_s
    amounts_s = {
        WAY: with_way_s - by_formula_s,
        DEMANDS: with_demands_s - with_way_s,
        SHORT: simulated_s - by_formula_s,
        LATENESS: with_lateness_s - with_demands_s,
    }
    predicted_s = by_formula_s
    if point.server is REGULAR:
        predicted_s += amounts_s.pop(SHORT)
    left_s = measured.estimate - predicted_s - sum(amounts_s.values())
    ends_s = left_s - measured.half_width, left_s + measured.half_width
    entries = [Entry(name, WORDS[name], amount_s) for name, amount_s in amounts_s.items()]
    entries.append(Entry(SAMPLING, WORDS[SAMPLING], left_s, *ends_s))
    return Gap(predicted_s, entries, "s", measured.low - predicted_s, measured.high - predicted_s)


def _thought_s(point: Point) -> float:
    """The mean time between an answer and the next request."""
    cycles_s = fmean([one for run in point.runs for one in run.cycles_s])
    return cycles_s - fmean([one for run in point.runs for one in run.responses_s])


def _way_s(point: Point | None) -> float:
    """The mean time of an interaction outside the server; 0 if it is not known."""
    outside_s = [
        response_s - sum(told.values())
        for run in (point.runs if point else ())
        for response_s, told in zip(run.responses_s, run.told, strict=False)
    ]
    return max(0.0, fmean(outside_s)) if outside_s else 0.0


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
    largest = {point.server: (point, gap) for point, gap in gaps}
    figures = [
        waterfall(
            f"Gap at N = {point.customers}, {point.server.label}",
            f"{gap_told(gap)} Runs: {len(point.runs)}.",
            gap,
        )
        for point, gap in largest.values()
    ]
    parts: list[Table | Figure] = [*figures, _table(gaps)] if gaps else []
    return Section("Where the gaps come from", [_TOLD, *_beyond_chance(gaps)], parts)


def _beyond_chance(gaps: Sequence[tuple[Point, Gap]]) -> list[str]:
    """A sentence about what is left where chance alone does not explain it."""
    left = [
        (point, entry)
        for point, gap in gaps
        for entry in gap.entries
        if entry.name == SAMPLING and entry.is_seen(gap.predicted)
    ]
    if not left:
        return []
    cases = ", ".join(
        f"{point.server.label} N = {point.customers} ({entry.amount:+.2g} s)"
        for point, entry in left
    )
    told = f"What is left lies beyond its 95 % interval in {len(left)} of {len(gaps)} cases"
    expected = f"where chance alone brings {0.05 * len(gaps):.1f} on average"
    return [f"{told}, {expected}: {cases}. Far beyond it, a cause that has no entry is at work."]


def _table(gaps: Sequence[tuple[Point, Gap]]) -> Table:
    def of_cause(cause: str) -> Callable[[tuple[Point, Gap]], float | None]:
        def amount(one: tuple[Point, Gap]) -> float | None:
            return next((entry.amount for entry in one[1].entries if entry.name == cause), None)

        return amount

    return Table.of(
        "Gaps at each N, in report seconds",
        gaps,
        [
            ("Server", lambda one: one[0].server.label),
            ("N", lambda one: one[0].customers),
            ("Predicted", lambda one: one[1].predicted),
            *((cause.capitalize(), of_cause(cause)) for cause in CAUSES),
            ("±", lambda one: one[0].response_s.half_width),
            ("Measured", lambda one: one[1].measured),
        ],
    )
