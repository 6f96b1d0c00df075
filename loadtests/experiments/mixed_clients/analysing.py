"""Makes the report of mixed clients from its tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isinf

from loadtests.experiments.mixed_clients.comparing import Curve, Point, curves, points_of
from loadtests.experiments.mixed_clients.figures import latency_figure, throughput_figure
from loadtests.experiments.mixed_clients.plan import HTTP, LOCAL, NAMES, Plan, plan
from loadtests.experiments.mixed_clients.reading import mixed_runs
from loadtests.grouping import grouped
from loadtests.lab.experiment import Mode, Options
from loadtests.lab.published import BOOKS, MIXED, MIXED_RPC_TIMES_SLOWER, WORKLOAD
from loadtests.lab.repeated import rejected_told
from loadtests.lab.report.content import Cell, Metric, Report, Section, Table, capital, times
from loadtests.lab.report.page import NONE
from loadtests.lab.results import Results, ResultsError
from loadtests.scenarios import BATCH_FLIGHTS, BOOKSTORE, FREQUENT, RARE, SHARES, STEPS

WINDOW = (
    "Only interactions that ended while all clients were at work count: after the last client has "
    "warmed up and before the first has finished."
)
NEAR_BOUND, ABOVE_BOUND = 0.8, 1.05


def analyse(results: Results) -> Report:
    """Report curves, bounds and knees. Raises ResultsError if there is no complete run."""
    manifest = results.manifest()
    cores = int(manifest["machine"]["cores"])
    runs = mixed_runs(results)
    if not runs:
        raise ResultsError(f"{results.folder} has no run in which all clients were at work")
    found = curves(runs, cores, manifest["seed"])
    points = points_of(runs)
    made = grouped(points, lambda point: point.blocks)
    of_ledger = {n: [curve for curve in found if curve.blocks == n] for n in made}
    sections = [
        Section(
            "Throughput against clients",
            [WINDOW],
            [throughput_figure(of, made[n], n) for n, of in of_ledger.items()],
        ),
        Section(
            "Latency against clients",
            ["The time from the first request of an interaction to its last answer."],
            [latency_figure(of, made[n], n) for n, of in of_ledger.items()],
        ),
        _bounds_section(found, cores),
        _counterparts_section(plan(Options(Mode.REAL, quick=manifest["quick"]))),
    ]
    findings = [
        *rejected_told(points),
        *_knees(found, cores),
        *_places(of_ledger.values()),
        *_linear(found),
        *_bounded(found),
        *_lengths(found),
    ]
    return Report(findings, sections, [*_metrics(found)])


# --- findings --------------------------------------------------------------------------------


def _where(curve: Curve) -> str:
    return f"{curve.blocks} blocks, {NAMES[curve.place]}"


def _knees(found: Sequence[Curve], cores: int) -> Iterator[str]:
    for curve in found:
        best = curve.best
        text = (
            f"{_where(curve)}: the highest throughput is {best.throughput.value:,.0f}/s, at "
            f"N = {best.customers} on {cores} cores"
        )
        if curve.crossing is not None:
            text += f"; the asymptotes meet at N = {curve.crossing:.1f}"
        if curve.knee is not None:
            text += f"; the scalability law has its knee between {_knee(curve)}"
        yield text + "."
    yield (
        "The study had its highest throughput with about as many clients as cores; it had "
        f"{MIXED.cores} cores with {MIXED.hardware_threads} threads."
    )


def _knee(curve: Curve) -> str:
    assert curve.knee is not None
    ends = ("∞" if isinf(end) else f"{end:.0f}" for end in (curve.knee.low, curve.knee.high))
    return " and ".join(ends)


def _places(ledgers: Iterable[Sequence[Curve]]) -> Iterator[str]:
    for of in ledgers:
        by_place = {curve.place: curve for curve in of}
        if by_place.keys() != {LOCAL, HTTP}:
            continue
        shared = _shared(by_place[LOCAL], by_place[HTTP])
        if not shared:
            continue
        told = ", ".join(
            f"{http.response.value / local.response.value:.2g} at N = {local.customers}"
            for local, http in (shared[0], shared[-1])
        )
        yield (
            f"{by_place[HTTP].blocks} blocks: latency over HTTP is that in process times {told}. "
            f"In the study the factor is more than {MIXED_RPC_TIMES_SLOWER:g}."
        )


def _shared(one: Curve, other: Curve) -> list[tuple[Point, Point]]:
    """The points of both curves with the same number of customers."""
    by_number = {point.customers: point for point in other.points}
    pairs = ((point, by_number.get(point.customers)) for point in one.points)
    return [(point, same) for point, same in pairs if same]


def _linear(found: Sequence[Curve]) -> Iterator[str]:
    if not found:
        return
    told = [(curve, growth) for curve in found if (growth := curve.growth) is not None]
    if not told:
        yield "Too few points are beyond saturation to tell how latency grows there."
        return
    linear = [curve for curve, growth in told if growth.is_linear]
    line = max(growth.line_error for _, growth in told)
    exponential = max(growth.exponential_error for _, growth in told)
    yield (
        f"Beyond saturation a line fits the latency better than an exponential in {len(linear)} of "
        f"{len(told)} curves: it misses by at most {100 * line:.1f} %, an exponential by "
        f"{100 * exponential:.0f} %. In a closed system latency is N·D_b − Z there, a line; the "
        "study called it exponential."
    )


def _bounded(found: Sequence[Curve]) -> Iterator[str]:
    for curve in (curve for curve in found if curve.demand_s is not None):
        shares = [
            (point.throughput.value / curve.most_per_s(point.customers), point.customers)
            for point in curve.points
        ]
        highest, at = max(shares)
        last = shares[-1][0]
        text = (
            f"{_where(curve)}: at most {100 * highest:.0f} % of the bound min(N/D, 1/D_b), at "
            f"N = {at}; {100 * last:.0f} % at N = {curve.points[-1].customers}"
        )
        if highest > ABOVE_BOUND:
            text += "; this is above the bound, so D was measured too briefly with one client"
        elif last < NEAR_BOUND:
            text += ", where clients wait for locks and the disk, not for processors"
        yield text + "."


def _lengths(found: Sequence[Curve]) -> Iterator[str]:
    for place in (LOCAL, HTTP):
        of = [curve for curve in found if curve.place == place]
        if len(of) < 2:
            continue
        short, long = of[0], of[-1]
        shared = _shared(short, long)
        if not shared:
            continue
        one, other = shared[-1]
        yield (
            f"{capital(NAMES[place])}, N = {one.customers}: with {long.blocks} blocks latency is "
            f"{other.response.value / one.response.value:.2f} times that with {short.blocks}."
        )


# --- sections --------------------------------------------------------------------------------


def _bounds_section(found: Sequence[Curve], cores: int) -> Section:
    told = [
        (
            f"D is the time of an interaction with one client. D_b is the processor time of an "
            f"interaction with the most clients, of service and generator together, divided by the "
            f"{cores} cores that they share. The law is the universal scalability law, fitted to "
            "the throughputs; its knee is an interval from the spread of all runs, or a single "
            "number if runs were not repeated."
        ),
        (
            "In process all clients are threads of one Python interpreter, which runs one of them "
            "at a time, except when others wait for the disk, are in SQLite or compress. So unlike "
            "the study's local runs these cannot use every core. Over HTTP there are two worker "
            "processes, a miner and the load generator."
        ),
    ]
    table = Table.of(
        "Bounds and knees",
        found,
        [
            ("Blocks", lambda curve: curve.blocks),
            ("Clients are", lambda curve: NAMES[curve.place]),
            ("D / ms", lambda curve: times(1000, curve.demand_s)),
            ("D_b / ms", lambda curve: 1000 * curve.gap_s),
            ("1/D_b / 1/s", lambda curve: 1 / curve.gap_s),
            ("D/D_b", lambda curve: curve.crossing),
            ("Best N", lambda curve: curve.best.customers),
            ("Knee of the law", _law_knee),
            ("σ", lambda curve: curve.law.contention if curve.law else None),
            ("κ", lambda curve: curve.law.coherency if curve.law else None),
        ],
    )
    return Section("Bounds of a closed system", told, [table])


def _law_knee(curve: Curve) -> str | None:
    if curve.knee is not None:
        return _knee(curve).replace(" and ", " to ")
    if curve.law is None:
        return None
    return "none" if isinf(curve.law.knee) else f"{curve.law.knee:.0f}"


def _counterparts_section(measured: Plan) -> Section:
    table = Table("Counterparts", ("The bookstore's", "Ours", "Why"), BOOKSTORE)
    told = ["The study measured a bookstore. The tables list what replaces its operations here."]
    return Section("What a client does", told, [table, *_parameter_tables(measured)])


def _parameter_tables(plan: Plan) -> Iterator[Table]:
    """Tables 1 and 2 of the study, with what `plan` has instead."""
    columns = ("Parameter", "Meaning", "The study", "Ours", "")
    for title, rows, ours in (
        ("Table 1 of the study: the workload", WORKLOAD, _workload(plan)),
        ("Table 2 of the study: the books", BOOKS, _FLIGHTS),
    ):
        yield Table(title, columns, [(*row, *ours[row.name]) for row in rows])


def _workload(plan: Plan) -> Mapping[str, tuple[Cell, str]]:
    """Name of a parameter -> our value, and what it is."""
    counts = (plan.counts[LOCAL], plan.counts[HTTP])
    warm_up = " and ".join(dict.fromkeys(f"{one.warm_up}" for one in counts))
    measured = " and ".join(dict.fromkeys(f"{one.measured}" for one in counts))
    each = "interactions of each client (in process and over HTTP, if two)"
    return {
        "numBooksToBuy": (STEPS["reading"], "questions, one after the other"),
        "numBookCopiesToBuy": (NONE, "nothing is bought"),
        "numEditorPicksToGet": (NONE, "what is asked about is drawn beforehand"),
        "numAddCopies": (1, "flight is added"),
        "numBooksToAdd": (BATCH_FLIGHTS, "flights in a batch"),
        "numBooksWithLeastCopies": (1, "block is looked up, the newest"),
        "warmUpRuns": (warm_up, each),
        "numActualRuns": (measured, each),
        "percentRareStockManagerInteraction": (f"{SHARES[RARE]:g}%", "of interactions"),
        "percentFrequentStockManagerInteraction": (f"{SHARES[FREQUENT]:g}%", "of interactions"),
    }


_FLIGHTS: Mapping[str, tuple[Cell, str]] = {
    "numCopies": (NONE, "a flight is there once"),
    "bookTitleLength": (19, "values make a flight, four of them names of cities and states"),
    "authorNameLength": (NONE, "as above"),
    "editorPickProbability": (NONE, "all flights are alike"),
}


def _metrics(found: Sequence[Curve]) -> Iterator[Metric]:
    for curve in found:
        for point in curve.points:
            key = f"[{curve.place},{curve.blocks},{point.customers}]"
            yield point.throughput.metric(f"throughput{key}", "1/s")
            yield point.response.metric(f"latency{key}", "s")
