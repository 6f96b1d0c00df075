"""Makes the report of itineraries from its tables."""

from collections.abc import Iterator, Sequence

from loadtests.experiments.itinerary.comparing import Phases, Point, phases_of, points_of
from loadtests.experiments.itinerary.figures import COMMITS, phases_table, rate_figure
from loadtests.experiments.itinerary.plan import MINE_INTERVAL_S
from loadtests.experiments.itinerary.reading import itinerary_runs
from loadtests.grouping import grouped
from loadtests.lab.published import ITINERARY, ITINERARY_SATURATED_PER_S
from loadtests.lab.repeated import Estimate, accepted, rejected_told
from loadtests.lab.report.content import Metric, Report, Section, Table
from loadtests.lab.results import Results, ResultsError
from loadtests.scenarios import COMMIT, DURABLE, MINED, QUERY, RESERVE, TRAVEL_AGENCY


def analyse(results: Results) -> Report:
    """Report phases, their sum, and rates. Raises ResultsError if there is no complete run."""
    runs = itinerary_runs(results)
    phases, points = phases_of(runs), points_of(runs)
    if not phases:
        raise ResultsError(f"{results.folder} has no run of one client with a transaction")
    commits = dict.fromkeys(point.commit for point in points)
    sound, sound_points = accepted(phases), accepted(points)
    sections = [
        _phases_section(phases),
        Section(
            "Transactions at a rate",
            [_rates_told(sound)],
            [rate_figure(points, commit) for commit in commits],
        ),
        _counterparts_section(),
    ]
    findings = [
        *rejected_told([*phases, *points], "rows and points"),
        *map(_added_up, sound),
        *map(_write_cost, sound),
        *_waiting(sound),
        *_saturation(sound_points),
        *_growth(sound_points),
        _ONE_STORE,
    ]
    return Report(findings, sections, [*_phase_metrics(sound), *map(_rate_metric, sound_points)])


_ONE_STORE = (
    "There is one store. The experiment cluster has the same transactions with the study's several "
    "stores: four nodes."
)

# --- findings --------------------------------------------------------------------------------


def _ms(found: Estimate) -> str:
    return f"{found.plus_minus(1000)} ms"


def _added_up(of: Phases) -> str:
    share = 100 * of.unexplained.value / of.transaction.value
    theirs = ", ".join(
        f"{100 * (one.transaction_ms - one.requests_ms) / one.transaction_ms:.2f} %"
        for one in ITINERARY.values()
    )
    return (
        f"{COMMITS[of.commit].capitalize()}: a transaction of one client takes "
        f"{_ms(of.transaction)}; its nine requests take {1000 * of.sum_s:.3g} ms, and the work of "
        f"the client between them {_ms(of.unexplained)} ({share:.2f} %). In the study's table the "
        f"latter is {theirs}."
    )


def _write_cost(of: Phases) -> str:
    query, reserve = of.phases[QUERY].value, of.phases[RESERVE].value
    theirs = ITINERARY["Single RM"]
    return (
        f"{COMMITS[of.commit].capitalize()}: adding a leg takes {reserve / query:.2g} times as "
        f"long as a query ({1000 * reserve:.3g} and {1000 * query:.3g} ms), because it is on the "
        f"disk when it is answered. In the study it takes "
        f"{theirs.reserve_ms / theirs.query_ms:.2g} times as long."
    )


def _waiting(phases: Sequence[Phases]) -> Iterator[str]:
    for of in phases:
        if of.commit == MINED:
            commit_s, whole_s = of.phases[COMMIT].value, of.transaction.value
            yield (
                f"A commit that waits until it is mined is {100 * commit_s / whole_s:.0f} % of a "
                f"transaction: it waits for the miner, which makes a block every "
                f"{1000 * MINE_INTERVAL_S:.0f} ms here and every minute by default. So T_commit "
                f"({_ms(of.phases[COMMIT])}) depends on that setting, not on work; the requests "
                f"before it take {1000 * (whole_s - commit_s):.3g} ms."
            )


def _saturation(points: Sequence[Point]) -> Iterator[str]:
    for commit, of in grouped(points, lambda point: point.commit).items():
        saturated = [point for point in of if point.is_saturated]
        if not saturated:
            yield f"{COMMITS[commit].capitalize()}: no point is saturated."
            continue
        first = min(saturated, key=lambda point: point.target_per_s)
        reached = max(of, key=lambda point: point.achieved_per_s)
        yield (
            f"{COMMITS[commit].capitalize()}: {len(saturated)} of {len(of)} points are saturated, "
            f"the first at a target of {first.target_per_s:.3g}/s, with N = {first.clients}. "
            "Beyond that, clients start transactions without a pause, whatever the target: "
            f"at most {reached.achieved_per_s:.3g}/s were reached, with N = {reached.clients}. The "
            f"study saw saturation above {ITINERARY_SATURATED_PER_S:,.0f}/s, by its figure."
        )


def _growth(points: Sequence[Point]) -> Iterator[str]:
    """Tell how the time of saturated clients grows with their number."""
    for commit, of in grouped(points, lambda point: point.commit).items():
        highest = max(point.fraction for point in of)
        back_to_back = sorted(
            (point for point in of if point.fraction == highest and point.is_saturated),
            key=lambda point: point.clients,
        )
        if len(back_to_back) < 2:
            continue
        few, many = back_to_back[0], back_to_back[-1]
        ratio = many.transaction.value / few.transaction.value
        yield (
            f"{COMMITS[commit].capitalize()}, saturated: a transaction takes {ratio:.2g} times as "
            f"long with {many.clients} clients as with {few.clients}, which are "
            f"{many.clients / few.clients:g} times as many. In the study the time is roughly "
            "linear in the number of clients."
        )


# --- sections --------------------------------------------------------------------------------


def _phases_section(phases: Sequence[Phases]) -> Section:
    told = [
        (
            "One client does one itinerary after the other, without a pause and on one connection; "
            "the last four fifths of the iterations count. The difference in the last column is "
            "taken for each transaction, so it is the client's work between its requests."
        ),
        (
            f"“{COMMITS[DURABLE].capitalize()}” is the service as shipped: each leg is on the disk "
            "when it is answered, and the commit asks for the last one once. "
            f"“{COMMITS[MINED].capitalize()}” asks every 20 ms until it is in a block."
        ),
    ]
    return Section(
        "Phases of a transaction",
        told,
        [phases_table({f"Flightchain, {COMMITS[of.commit]}": of for of in phases})],
    )


def _rates_told(phases: Sequence[Phases]) -> str:
    reach = "; ".join(f"{COMMITS[of.commit]}: {1 / of.transaction.value:.3g}/s" for of in phases)
    reach = f" ({reach})" if reach else ""
    return (
        "The next transaction of a client is due T(1 + u) after the last was due, with u uniform "
        "within ±1 %, and starts at once if that is past. A client that waits for every answer "
        f"cannot do more than 1/T_tx{reach}, whatever its target: the study's highest targets, "
        "up to 1000/s per client, were beyond that, too."
    )


def _counterparts_section() -> Section:
    table = Table("Counterparts", ("The travel agency's", "Ours", "Why"), TRAVEL_AGENCY)
    told = [
        (
            "The study's clients took items by (8i + client) mod cities, so that no two needed the "
            "same lock. Here each client has its own legs; nothing is locked between requests, so "
            "there cannot be a deadlock."
        )
    ]
    return Section("What a client does", told, [table])


def _phase_metrics(phases: Sequence[Phases]) -> Iterator[Metric]:
    for of in phases:
        for name, found in (*of.phases.items(), ("transaction", of.transaction)):
            yield found.metric(f"{name}_time[{of.commit}]", "s")


def _rate_metric(point: Point) -> Metric:
    name = f"transaction_time[{point.commit},{point.clients},{point.fraction:g}]"
    return point.transaction.metric(name, "s")
