"""Makes the report of the queueing network from its tables."""

from collections.abc import Iterator, Sequence

from loadtests.experiments.queueing_network import block_costs, figures
from loadtests.experiments.queueing_network.comparing import (
    WORST_FIRST,
    Pair,
    Point,
    closed_runs,
    expected,
    pairs,
    points,
)
from loadtests.experiments.queueing_network.measuring import COUNTS, PLAN, PlanLine
from loadtests.experiments.queueing_network.predicting import (
    ASYMPTOTES,
    EXPONENTIAL,
    LEAST_REPEATED,
    MODELS,
    MVA,
    REGULAR,
    REGULAR_CV,
    SERVERS,
    SINGLE,
    Expectations,
    by_formula,
    joined,
    stations,
)
from loadtests.grouping import grouped
from loadtests.lab.content import Metric, Report, Section, Table, capital, shown
from loadtests.lab.experiment import Mode
from loadtests.lab.published import NETWORK_THINK_S
from loadtests.lab.repeated import accepted, rejected_told
from loadtests.lab.repeated import of as estimated
from loadtests.lab.results import Results, ResultsError
from loadtests.models import bounds
from loadtests.models.estimates import TOLERANCE, Verdict


def analyse(results: Results) -> Report:
    """Report models, servers and a block's time. Raises ResultsError if there is no closed run."""
    runs = closed_runs(results)
    if not runs:
        raise ResultsError(f"{results.folder} has no closed run with a request")
    expectations = expected(results)
    found = points(runs, expectations)
    compared = pairs(found, expectations)
    split = block_costs.storages(results)
    small = split.get(COUNTS)  # counts do not depend on how quiet the machine was
    counted = small.routing if small else None
    sections = [
        Section(
            "The model", [_MODEL_TOLD], [figures.schema(), figures.parameters(), _model_table()]
        ),
        Section(
            "Which model describes which server",
            [_measured_told(results), _VERDICTS_TOLD],
            [_pairs_table(compared), *figures.of_system(found, expectations, counted)],
        ),
        *(
            Section(
                capital(server.label),
                [_SERVERS_TOLD[server].format(beside_mva=_beside_mva(expectations))],
                [*figures.of_stations(server, found)],
            )
            for server in SERVERS
        ),
        Section("Closed runs", [_INTERVALS_TOLD], [_points_table(found)]),
        *block_costs.sections(split, block_costs.block_reads(results)),
    ]
    return Report(
        [*_findings(found, compared), *block_costs.findings(split)],
        [section for section in sections if section.parts],
        [*_metrics(found), *block_costs.metrics(split)],
        conclusion=_conclusion(compared),
    )


# --- findings ----------------------------------------------------------------------------------


def _conclusion(compared: Sequence[Pair]) -> str:
    """Which model describes which server, in one sentence."""
    if not compared:
        return "No run counts, so no model is judged."
    agreeing = [pair for pair in compared if pair.verdict is Verdict.AGREES]
    if not agreeing:
        return "No model predicts the throughput of any of these servers within the tolerance."
    told = [
        f"{' and '.join(MODELS[pair.model] for pair in of)} for {server.label}"
        for server, of in grouped(agreeing, lambda pair: pair.server).items()
    ]
    tolerance = f"within {TOLERANCE * 100:g} %"
    return f"These models predict the throughput {tolerance}: {'; '.join(told)}."


def _findings(found: Sequence[Point], compared: Sequence[Pair]) -> Iterator[str]:
    by_server = grouped(compared, lambda pair: pair.server)
    for server in SERVERS:
        if server in by_server:
            yield f"{capital(server.label)}, {_verdicts_told(by_server[server])}"
        else:
            yield f"{capital(server.label)}: no run counts."
    several, single = (
        f"N_opt = {bounds.optimal_population(of, NETWORK_THINK_S):.3g} and X ≤ "
        f"{bounds.maximum_throughput_per_s(of):.4f}"
        for of in (stations(), [joined(stations())])
    )
    measured = ""
    if of_single := [one for one in accepted(found) if one.server is SINGLE]:
        most = max(of_single, key=lambda one: one.customers)
        x = most.throughput_per_s
        half = shown(x.half_width, 2)
        measured = f", measured {x.estimate:.4f} ± {half} with N = {most.customers}"
    yield (
        "In the study's network the station with the largest demand is DISK, which stands for "
        f"reading a block and unpacking it, and most of that is the processor's work: {several} "
        "per second. A server that answers one request at a time, as the study's did, has "
        f"{single}{measured}."
    )
    yield from rejected_told(found)


def _verdicts_told(of_server: Sequence[Pair]) -> str:
    best_first = sorted(of_server, key=lambda pair: -WORST_FIRST.index(pair.verdict))
    told = []
    for verdict, pairs_of in grouped(best_first, lambda pair: pair.verdict).items():
        those = [f"{MODELS[pair.model]} ({pair} at N = {pair.farthest})" for pair in pairs_of]
        told.append(f"{capital(verdict)}: {', '.join(those)}.")
    return (
        f"X within {TOLERANCE * 100:g} % of a model at each of "
        f"{of_server[0].populations} values of N. {' '.join(told)}"
    )


# --- what the sections tell ----------------------------------------------------------------------

_MODEL_TOLD = (
    "This is the study's closed network, with visits from the routing by the traffic equations and "
    "demands D = V·S. In the network that runs here, customers take its deterministic route: 27 "
    "refills of 19 blocks and 523 CPU visits. With exponential times it has the same solution."
)
_INTERVALS_TOLD = (
    "Batches of one run are not independent here, so the 95 % interval of a mean is that of the "
    f"simulated runs of the same server. From {LEAST_REPEATED} accepted runs on (--reps) it is "
    "Student's, over the runs. It covers the mean of all such runs, not that of the long run."
)
_VERDICTS_TOLD = (
    "MVA is exact mean value analysis, for exponential times. The asymptotes hold if customers "
    "wait no more than they must. Both are for the long run. “Simulated” are means of many runs of "
    "the same length and the same start as ours, with exponential times and with regular ones "
    f"(cv {REGULAR_CV:g}): customers who begin together fall into step slowly, so such runs differ "
    "from the long run. “One at a time” are the asymptotes of a single station with all "
    "demands. A model agrees if at each N the whole 95 % interval of X lies within "
    f"{TOLERANCE * 100:g} % of it, and disagrees if at some N the whole interval lies outside; the "
    "tolerance was fixed before the run."
)
_SERVERS_TOLD = {
    EXPONENTIAL: (
        "Customers begin together, which affects such a network for long: the mean X of "
        "simulated runs like ours differs from MVA by {beside_mva}. So the "
        "simulation is the model to judge by, and MVA its long run."
    ),
    REGULAR: (
        "Utilisation depends only on X; what changes is how many customers wait. With regular "
        "times customers fall into step, and fewer of them meet at a station."
    ),
    SINGLE: (
        "Customers never wait at a station, because only one is inside. All others wait at the "
        "door; the table of closed runs shows how many."
    ),
}


def _measured_told(results: Results) -> str:
    if results.manifest()["mode"] == Mode.MODEL:
        return "The three servers were simulated, not run. Times are in report seconds."
    line = results.lines(PLAN, PlanLine)[0]
    visits = "each visit is" if line.group == 1 else f"{line.group} visits in a row are"
    return (
        f"Runs were measured with all times divided by K = {line.scale:g}, and are shown in report "
        "seconds: X/K and R·K. N customers begin together, with a new connection for each "
        f"interaction and {NETWORK_THINK_S:g}/K s of thinking; {visits} one wait. The first "
        "interaction of each customer, and those that ended after the first customer had stopped, "
        "are left out."
    )


def _beside_mva(expectations: Expectations) -> str:
    """By how much X of simulated runs with exponential times differs from MVA at each N."""
    told = []
    for (server, n), one in expectations.items():
        if server is EXPONENTIAL:
            x, mva = one.throughput_per_s, by_formula(MVA, n).throughput_per_s
            share, half_width = x.mean / mva - 1, x.half_width / mva
            told.append(f"{100 * share:+.1f} ± {100 * half_width:.1f} % at N = {n}")
    return ", ".join(told)


# --- tables and metrics --------------------------------------------------------------------------


def _model_table() -> Table:
    balanced = {n: bounds.balanced_job(stations(), n, NETWORK_THINK_S) for n in (1, 2, 5, 10)}
    return Table.of(
        "Bounds and mean value analysis",
        balanced.items(),
        [
            ("N", lambda of: of[0]),
            ("Asymptote of X / 1/s", lambda of: by_formula(ASYMPTOTES, of[0]).throughput_per_s),
            ("Balanced jobs, low / 1/s", lambda of: of[1].throughput_low_per_s),
            ("high / 1/s", lambda of: of[1].throughput_high_per_s),
            ("MVA X / 1/s", lambda of: by_formula(MVA, of[0]).throughput_per_s),
            ("MVA R / s", lambda of: by_formula(MVA, of[0]).response_s),
        ],
        digits=4,
    )


def _pairs_table(compared: Sequence[Pair]) -> Table:
    return Table.of(
        "Models against servers",
        compared,
        [
            ("Server", lambda pair: pair.server.label),
            ("Model", lambda pair: MODELS[pair.model]),
            ("N measured", lambda pair: pair.populations),
            ("Verdict", lambda pair: str(pair.verdict)),
            ("Largest difference", str),
            ("at N", lambda pair: pair.farthest),
        ],
    )


def _points_table(found: Sequence[Point]) -> Table:
    return Table.of(
        "Closed runs",
        found,
        [
            ("Server", lambda one: one.server.label),
            ("N", lambda one: one.customers),
            ("Runs", lambda one: str(len(one.runs)) if one.is_accepted else "rejected"),
            ("Interactions", lambda one: sum(len(run.responses_s) for run in one.runs)),
            ("X / 1/s", lambda one: one.throughput_per_s.estimate),
            ("±", lambda one: one.throughput_per_s.half_width),
            ("R / s", lambda one: one.response_s.estimate),
            ("±", lambda one: one.response_s.half_width),
            ("X·(R + Z)/N", lambda one: one.little),
            ("At no station", lambda one: one.outside),
        ],
        "Times are in report seconds. X is N over the mean cycle, and a cycle is R and Z: what "
        "X·(R + Z)/N lacks of 1 is time that the generator lost between an answer and the next "
        "request.",
    )


def _metrics(found: Sequence[Point]) -> Iterator[Metric]:
    """Throughput and response time in report seconds, and as shares of those without a queue.

    The shares have no unit, so they can be compared between runs at different K.
    """
    alone = by_formula(ASYMPTOTES, 1)
    for one in accepted(found):
        at = f"[{one.server.name},{one.customers}]"
        for name, of, unit, least in (
            ("throughput", one.throughput_per_s, "1/s", alone.throughput_per_s),
            ("response_time", one.response_s, "s", alone.response_s),
        ):
            yield estimated(of).metric(f"{name}{at}", unit)
            yield estimated(of.times(1 / least)).metric(f"{name}_ratio{at}", "")
