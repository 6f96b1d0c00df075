"""Makes the report: the study's figures with our numbers for each ledger, bounds and knees."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isinf

from loadtests.experiments.mixed_clients.comparing import (
    Curve,
    Point,
    curves,
    mixed_runs,
    points_of,
)
from loadtests.experiments.mixed_clients.measuring import FULL, HTTP, LOCAL, NAMES, QUICK, Plan
from loadtests.grouping import grouped
from loadtests.lab.content import NONE, Figure, Metric, Report, Section, Table, capital, times
from loadtests.lab.published import BOOKS, MIXED, MIXED_RPC_TIMES_SLOWER, WORKLOAD
from loadtests.lab.repeated import Estimate, lines, rejected_told
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.scenarios import BATCH_FLIGHTS, BOOKSTORE, FREQUENT, RARE, SHARES, STEPS

NEAR_BOUND, ABOVE_BOUND = 0.8, 1.05
_SOURCES: Mapping[str, Source] = {NAMES[LOCAL]: "second", NAMES[HTTP]: "ours"}
_BOUNDS: Mapping[str, Source] = {LOCAL: "bound", HTTP: "model"}


def analyse(results: Results) -> Report:
    """Report curves, bounds and knees. Raises ResultsError if there is no complete run."""
    manifest = results.manifest()
    cores = int(manifest["machine"]["cores"])
    points = points_of(mixed_runs(results))
    if not points:
        raise ResultsError(f"{results.folder} has no run in which all clients were at work")
    found = curves(points, cores, manifest["seed"])
    made = grouped(points, lambda point: point.line.blocks)
    of_ledger = {n: [curve for curve in found if curve.line.blocks == n] for n in made}
    sections = [
        Section(
            "Throughput against clients",
            [_WINDOW],
            [_throughput_figure(of, made[n], n) for n, of in of_ledger.items()],
        ),
        Section(
            "Latency against clients",
            ["The time from the first request of an interaction to its last answer."],
            [_latency_figure(of, made[n], n) for n, of in of_ledger.items()],
        ),
        Section("Bounds of a closed system", [_LAW.format(cores), _CORES], [_bounds(found)]),
        Section(
            "What a client does",
            [_COUNTERPARTS],
            [
                Table("Counterparts", ("The bookstore's", "Ours", "Why"), BOOKSTORE),
                *_parameters(QUICK if manifest["quick"] else FULL),
            ],
        ),
    ]
    findings = [
        *rejected_told(points),
        *_knees(found, cores),
        *_places(found),
        *_linear(found),
        *_bounded(found),
        *_lengths(found),
    ]
    return Report(findings, sections, [*_metrics(found)])


_WINDOW = (
    "Only interactions that ended while all clients were at work count: after the last client has "
    "warmed up and before the first has finished."
)
_LAW = (
    "D is the time of an interaction with one client. D_b is the processor time of an interaction "
    "with the most clients, of service and generator together, divided by the {} cores that they "
    "share. The law is the universal scalability law, fitted to the throughputs; its knee is an "
    "interval from the spread of all runs, or a single number if runs were not repeated."
)
_CORES = (
    "In process all clients are threads of one Python interpreter, which runs one of them at a "
    "time, except when others wait for the disk, are in SQLite or compress. So unlike the study's "
    "local runs these cannot use every core. Over HTTP there are two worker processes, a miner and "
    "the load generator."
)
_COUNTERPARTS = "The study measured a bookstore. The tables list what replaces its operations here."


# --- findings --------------------------------------------------------------------------------


def _knee(curve: Curve, to: str) -> str | None:
    """The knee of the law, as an interval if there is one."""
    law, knee = curve.scaling.law, curve.scaling.knee
    if law is None:
        return None
    ends, none = (knee, "∞") if knee else ([law.knee], "none")
    return to.join(none if isinf(end) else f"{end:.0f}" for end in ends)


def _knees(found: Sequence[Curve], cores: int) -> Iterator[str]:
    for curve in found:
        best = curve.best
        text = (
            f"{curve}: the highest throughput is {best.throughput.value:,.0f}/s, at "
            f"N = {best.line.customers} on {cores} cores"
        )
        if curve.crossing is not None:
            text += f"; the asymptotes meet at N = {curve.crossing:.1f}"
        if curve.scaling.knee is not None:
            text += f"; the scalability law has its knee between {_knee(curve, ' and ')}"
        yield text + "."
    yield (
        "The study had its highest throughput with about as many clients as cores; it had "
        f"{MIXED.cores} cores with {MIXED.hardware_threads} threads."
    )


def _ratios(one: Curve, other: Curve) -> list[tuple[int, float]]:
    """Each N of both curves, with how many times the latency of the other that of one is there."""
    theirs = {point.line.customers: point.response.value for point in other.points}
    ours = {point.line.customers: point.response.value for point in one.points}
    return [(n, seconds / theirs[n]) for n, seconds in ours.items() if n in theirs]


def _places(found: Sequence[Curve]) -> Iterator[str]:
    for blocks, of in grouped(found, lambda curve: curve.line.blocks).items():
        by_place = {curve.line.place: curve for curve in of}
        if len(by_place) > 1 and (ratios := _ratios(by_place[HTTP], by_place[LOCAL])):
            told = ", ".join(f"{ratio:.2g} at N = {n}" for n, ratio in (ratios[0], ratios[-1]))
            yield (
                f"{blocks} blocks: latency over HTTP is that in process times {told}. In the study "
                f"the factor is more than {MIXED_RPC_TIMES_SLOWER:g}."
            )


def _lengths(found: Sequence[Curve]) -> Iterator[str]:
    for place, name in NAMES.items():
        of = [curve for curve in found if curve.line.place == place]
        if len(of) > 1 and (ratios := _ratios(of[-1], of[0])):
            n, ratio = ratios[-1]
            yield (
                f"{capital(name)}, N = {n}: with {of[-1].line.blocks} blocks latency is "
                f"{ratio:.2f} times that with {of[0].line.blocks}."
            )


def _linear(found: Sequence[Curve]) -> Iterator[str]:
    told = [curve.growth for curve in found if curve.growth is not None]
    if found and not told:
        yield "Too few points are beyond saturation to tell how latency grows there."
    elif told:
        linear = sum(growth.line_error < growth.exponential_error for growth in told)
        line = max(growth.line_error for growth in told)
        exponential = max(growth.exponential_error for growth in told)
        yield (
            f"Beyond saturation a line fits the latency better than an exponential in {linear} of "
            f"{len(told)} curves: it misses by at most {100 * line:.1f} %, an exponential by "
            f"{100 * exponential:.0f} %. In a closed system latency is N·D_b − Z there, a line; "
            "the study called it exponential."
        )


def _bounded(found: Sequence[Curve]) -> Iterator[str]:
    for curve in found:
        if curve.demand_s is None:
            continue
        shares = [(_share(curve, point), point.line.customers) for point in curve.points]
        (highest, at), (last, most) = max(shares), shares[-1]
        text = (
            f"{curve}: at most {highest:.0f} % of the bound min(N/D, 1/D_b), at N = {at}; "
            f"{last:.0f} % at N = {most}"
        )
        if highest > 100 * ABOVE_BOUND:
            text += "; this is above the bound, so D was measured too briefly with one client"
        elif last < 100 * NEAR_BOUND:
            text += ", where clients wait for locks and the disk, not for processors"
        yield text + "."


def _share(curve: Curve, point: Point) -> float:
    """The throughput in per cent of its upper bound."""
    return 100 * point.throughput.value / curve.most_per_s(point.line.customers)


def _metrics(found: Sequence[Curve]) -> Iterator[Metric]:
    for point in (point for curve in found for point in curve.points):
        key = f"[{point.line.place},{point.line.blocks},{point.line.customers}]"
        yield point.throughput.metric(f"throughput{key}", "1/s")
        yield point.response.metric(f"latency{key}", "s")


# --- the study's figures ---------------------------------------------------------------------


def _throughput_figure(curves: Sequence[Curve], made: Sequence[Point], blocks: int) -> Figure:
    """Figure 1 of the study for one ledger. made: its points, accepted or rejected."""
    of_place = {curve.line.place: curve for curve in curves}
    table = Table.of(
        f"A ledger of {blocks} blocks",
        made,
        [
            ("Clients are", lambda p: NAMES[p.line.place]),
            ("N", lambda p: p.line.customers),
            ("Runs counted", lambda p: p.counted),
            ("X / 1/s", lambda p: p.throughput.value),
            ("95 %", lambda p: p.throughput.give_or_take() if p.is_accepted else NONE),
            (
                "Share of its bound / %",
                lambda p: _share(of_place[p.line.place], p) if p.is_accepted else None,
            ),
            ("R / ms", lambda p: 1000 * p.response.value),
            ("95 %", lambda p: p.response.give_or_take(1000) if p.is_accepted else NONE),
            ("Service's processor time / ms", lambda p: 1000 * p.service_demand_s),
        ],
        "Processor time is that of an interaction, with the miner's; in process the clients are "
        "part of the service. Rows of rejected runs have no interval, and are used for no finding.",
    )
    return figure(
        f"Throughput, {blocks} blocks",
        "Figure 1 of the study: interactions per second against the number of clients. Lines "
        "without points are the upper bounds min(N/D, 1/D_b); crosses have no accepted run. The "
        "axis is logarithmic; the study drew two linear ones.",
        Axis("clients N"),
        Axis("interactions / s", is_logarithmic=True),
        _series(curves, made, lambda point: point.throughput, Curve.most_per_s),
        table,
    )


def _latency_figure(curves: Sequence[Curve], made: Sequence[Point], blocks: int) -> Figure:
    """Figure 2 of the study for one ledger. made: its points, accepted or rejected."""
    table = Table.of(
        f"Growth of latency, {blocks} blocks",
        [(curve.line.place, curve.growth) for curve in curves if curve.growth is not None],
        [
            ("Clients are", lambda of: NAMES[of[0]]),
            ("From N =", lambda of: of[1].first),
            ("Points", lambda of: of[1].points),
            ("Slope / ms", lambda of: 1000 * of[1].slope_s),
            ("Line misses by / %", lambda of: 100 * of[1].line_error),
            ("Exponential misses by / %", lambda of: 100 * of[1].exponential_error),
        ],
        "Fits begin at the first N with nine tenths of the highest throughput, and need four "
        "points. Misses are relative root mean squares.",
    )
    return figure(
        f"Latency, {blocks} blocks",
        "Figure 2 of the study: mean time of an interaction against the number of clients. Lines "
        "without points are the lower bounds max(D, N·D_b). A straight line looks bent on a "
        "logarithmic axis: growth is linear where it follows its bound.",
        Axis("clients N"),
        Axis("mean latency / ms", is_logarithmic=True),
        _series(curves, made, lambda point: point.response, Curve.least_s, 1000),
        table,
    )


def _series(
    curves: Sequence[Curve],
    made: Sequence[Point],
    of: Callable[[Point], Estimate],
    bound: Callable[[Curve, float], float],
    factor: float = 1,
) -> list[Series]:
    """What was measured, with its bounds, and crosses for points without an accepted run."""
    by_place = grouped(made, lambda point: NAMES[point.line.place])
    series = lines(by_place, _SOURCES, lambda point: point.line.customers, of, factor)
    for curve in curves:
        low, high = curve.points[0].line.customers, curve.points[-1].line.customers
        steps = {low + (high - low) * step / 40 for step in range(41)}
        if curve.crossing is not None and low < curve.crossing < high:
            steps.add(curve.crossing)  # where bounds bend
        ns, name = sorted(steps), NAMES[curve.line.place]
        bounds = [factor * bound(curve, n) for n in ns]
        series.append(Series(f"bound {name}", _BOUNDS[curve.line.place], ns, bounds))
    return series


def _bounds(found: Sequence[Curve]) -> Table:
    return Table.of(
        "Bounds and knees",
        found,
        [
            ("Blocks", lambda curve: curve.line.blocks),
            ("Clients are", lambda curve: NAMES[curve.line.place]),
            ("D / ms", lambda curve: times(1000, curve.demand_s)),
            ("D_b / ms", lambda curve: 1000 * curve.gap_s),
            ("1/D_b / 1/s", lambda curve: 1 / curve.gap_s),
            ("D/D_b", lambda curve: curve.crossing),
            ("Best N", lambda curve: curve.best.line.customers),
            ("Knee of the law", lambda curve: _knee(curve, " to ")),
            ("σ", lambda curve: law.contention if (law := curve.scaling.law) else None),
            ("κ", lambda curve: law.coherency if (law := curve.scaling.law) else None),
        ],
    )


def _parameters(plan: Plan) -> Iterator[Table]:
    """Tables 1 and 2 of the study, with what `plan` has instead."""
    counts = zip(*plan.counts.values(), strict=True)
    warm_up, count = (" and ".join(dict.fromkeys(map(str, of))) for of in counts)
    each = "interactions of each client (in process and over HTTP, if two)"
    ours: Mapping[str, tuple[str | int, str]] = {
        "numBooksToBuy": (STEPS["reading"], "questions, one after the other"),
        "numBookCopiesToBuy": (NONE, "nothing is bought"),
        "numEditorPicksToGet": (NONE, "what is asked about is drawn beforehand"),
        "numAddCopies": (1, "flight is added"),
        "numBooksToAdd": (BATCH_FLIGHTS, "flights in a batch"),
        "numBooksWithLeastCopies": (1, "block is looked up, the newest"),
        "warmUpRuns": (warm_up, each),
        "numActualRuns": (count, each),
        "percentRareStockManagerInteraction": (f"{SHARES[RARE]:g}%", "of interactions"),
        "percentFrequentStockManagerInteraction": (f"{SHARES[FREQUENT]:g}%", "of interactions"),
        "numCopies": (NONE, "a flight is there once"),
        "bookTitleLength": (19, "values make a flight, four of them names of cities and states"),
        "authorNameLength": (NONE, "as above"),
        "editorPickProbability": (NONE, "all flights are alike"),
    }
    columns = ("Parameter", "Meaning", "The study", "Ours", "")
    for title, rows in (
        ("Table 1 of the study: the workload", WORKLOAD),
        ("Table 2 of the study: the books", BOOKS),
    ):
        yield Table(title, columns, [(*row, *ours[row.name]) for row in rows])
