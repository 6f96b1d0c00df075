"""Makes the report of the queueing network from its tables."""

from collections.abc import Iterator, Sequence

from loadtests.experiments.queueing_network.comparing import Pair, Point, pairs, points
from loadtests.experiments.queueing_network.figures import (
    parameter_table,
    schema_figure,
    station_figures,
    system_figures,
)
from loadtests.experiments.queueing_network.measuring import COUNTS, OURS, STUDY
from loadtests.experiments.queueing_network.plan import (
    EXPONENTIAL,
    REGULAR,
    REGULAR_CV,
    SERVERS,
    SINGLE,
)
from loadtests.experiments.queueing_network.predicting import (
    MODELS,
    REFILLS,
    demands,
    predicted,
    routing,
    stations,
    visits,
)
from loadtests.experiments.queueing_network.reading import ClosedRun, closed_runs
from loadtests.experiments.queueing_network.splitting import (
    Demands,
    Storage,
    block_reads,
    demands_of,
    demands_on_the_pi,
    storages,
)
from loadtests.lab.experiment import Mode
from loadtests.lab.published import BLOCKS, NETWORK_THINK_S, PROFILE_MS
from loadtests.lab.report.content import Cell, Metric, Report, Section, Table
from loadtests.lab.results import Results, ResultsError
from loadtests.models import bounds
from loadtests.models.estimates import TOLERANCE, Verdict
from loadtests.models.samples import Summary
from loadtests.models.stations import Station, total_demand_s

LABELS = {
    STUDY: "the study's storage, here",
    OURS: "our scan",
    COUNTS: "the study's storage, 522 small blocks",
}
_ABOUT = {server.name: server for server in SERVERS}


def analyse(results: Results) -> Report:
    """Report models, servers and a block's time. Raises ResultsError if there is no closed run."""
    runs = closed_runs(results)
    if not runs:
        raise ResultsError(f"{results.folder} has no closed run with a request")
    found = points(runs)
    compared = pairs(found)
    split = storages(results)
    is_model = results.manifest()["mode"] == Mode.MODEL
    sections = [
        Section("The model", [_MODEL_TOLD], [schema_figure(), parameter_table(), _model_table()]),
        Section(
            "Which model describes which server",
            [_told(runs[0], is_model=is_model), _VERDICTS_TOLD],
            [_pairs_table(compared), *system_figures(found, runs[0].group)],
        ),
        *(
            Section(
                server.label.capitalize(),
                _stations_told(server.name),
                station_figures(server, found),
            )
            for server in SERVERS
        ),
        Section("Closed runs", parts=[_points_table(found)]),
        *_split_sections(split, block_reads(results)),
    ]
    findings = [*_findings(runs, found, compared), *_split_findings(split)]
    metrics = [*_metrics(found), *_split_metrics(split)]
    return Report(findings, sections, metrics, conclusion=_conclusion(compared))


# --- findings ----------------------------------------------------------------------------------

_WORDS = {
    Verdict.AGREES: "Agrees",
    Verdict.DISAGREES: "Disagrees",
    Verdict.NOT_DECIDED: "Not decided",
}


def _conclusion(compared: Sequence[Pair]) -> str:
    """Which model describes which server, in one sentence."""
    told = []
    for server in SERVERS:
        fits = [
            MODELS[pair.model]
            for pair in compared
            if pair.server == server.name and pair.verdict is Verdict.AGREES
        ]
        if fits:
            told.append(f"{' and '.join(fits)} for {server.label}")
    if not told:
        return "No model predicts the throughput of any of these servers within the tolerance."
    tolerance = f"within {TOLERANCE * 100:g} %"
    return f"These models predict the throughput {tolerance}: {'; '.join(told)}."


def _findings(
    runs: Sequence[ClosedRun], found: Sequence[Point], compared: Sequence[Pair]
) -> Iterator[str]:
    for server in SERVERS:
        of_server = [pair for pair in compared if pair.server == server.name]
        if of_server:
            yield _server_finding(server.label, of_server)
        else:
            yield f"{server.label.capitalize()}: no run counts."
    network, single = stations(), [Station("all", total_demand_s(stations()))]
    yield (
        f"In the study's network the station with the largest demand is DISK, which stands for "
        "reading a block and unpacking it, and most of that is the processor's work: N_opt = "
        f"{bounds.optimal_population(network, NETWORK_THINK_S):.3g} and X ≤ "
        f"{bounds.maximum_throughput_per_s(network):.4f} per second. A server that answers one "
        f"request at a time, as the study's did, has N_opt = "
        f"{bounds.optimal_population(single, NETWORK_THINK_S):.3g} and X ≤ "
        f"{bounds.maximum_throughput_per_s(single):.4f}{_measured_limit(found)}."
    )
    if rejected := sum(not run.is_accepted for run in runs):
        yield f"{rejected} of {len(runs)} closed runs were rejected by rule and count nowhere."


def _server_finding(label: str, of_server: Sequence[Pair]) -> str:
    told = []
    for verdict in (Verdict.AGREES, Verdict.NOT_DECIDED, Verdict.DISAGREES):
        those = [_pair_told(pair) for pair in of_server if pair.verdict is verdict]
        if those:
            told.append(f"{_WORDS[verdict]}: {', '.join(those)}.")
    return (
        f"{label.capitalize()}, X within {TOLERANCE * 100:g} % of a model at each of "
        f"{of_server[0].populations} values of N. {' '.join(told)}"
    )


def _pair_told(pair: Pair) -> str:
    return (
        f"{MODELS[pair.model]} ({100 * pair.difference:+.1f} ± {100 * pair.uncertainty:.1f} % at "
        f"N = {pair.farthest})"
    )


def _measured_limit(found: Sequence[Point]) -> str:
    of_single = [one for one in found if one.server == SINGLE.name]
    if not of_single:
        return ""
    most = max(of_single, key=lambda one: one.customers)
    x = most.throughput_per_s
    return f", measured {x.estimate:.4f} ± {x.half_width:.4f} with N = {most.customers}"


def _split_findings(split: dict[str, Storage]) -> Iterator[str]:
    if not split:
        return
    for demand in _demands({name: one for name, one in split.items() if one.is_accepted}):
        share = demand.file_s / demand.total_s
        bought = demand.with_twice_the_processor().total_s
        yield (
            f"{demand.label[0].upper()}{demand.label[1:]}: a scan of {demand.blocks} blocks takes "
            f"{_seconds(demand.total_s)}, of which files are {100 * share:.2g} %. It would take "
            f"{_seconds(demand.without_files().total_s)} if files took no time, and "
            f"{_seconds(bought)} if the processor were twice as fast. Split into files and "
            f"processor like this, most of the time goes to {_the(demand.bottleneck)}."
        )


def _the(station: str) -> str:
    return "the processor" if station == "processor" else station


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


# --- the network -------------------------------------------------------------------------------

_MODEL_TOLD = (
    "This is the study's closed network, with visits from the routing by the traffic equations and "
    "demands D = V·S. In the network that runs here, customers take its deterministic route: 27 "
    "refills of 19 blocks and 523 CPU visits. With exponential times it has the same solution."
)
_VERDICTS_TOLD = (
    "MVA is exact mean value analysis, for exponential times. The asymptotes hold if customers "
    "wait no more than they must. “Simulated” is the network with regular times "
    f"(cv {REGULAR_CV:g}). “One at a time” are the asymptotes of a single station with all "
    "demands. A model agrees if at each N the whole 95 % interval of X lies within "
    f"{TOLERANCE * 100:g} % of it, and disagrees if at some N the whole interval lies outside; the "
    "tolerance was fixed before the run."
)


def _told(run: ClosedRun, *, is_model: bool) -> str:
    if is_model:
        return "The three servers were simulated, not run. Times are in report seconds."
    return (
        f"Runs were measured with all times divided by K = {run.scale:g}, and are shown in report "
        "seconds: X/K and R·K. N customers begin together, with a new connection for each "
        f"interaction and {NETWORK_THINK_S:g}/K s of thinking; {_grouped(run.group)}. The first "
        "interaction of each customer, and those that ended after the first customer had stopped, "
        "are left out."
    )


def _grouped(group: int) -> str:
    return "each visit is one wait" if group == 1 else f"{group} visits in a row are one wait"


def _stations_told(server: str) -> list[str]:
    told = {
        EXPONENTIAL.name: (
            "Customers begin together, which affects such a network for long: in simulated runs of "
            "the full length X is 1 to 3 % below MVA with two customers, and less than that with "
            "more."
        ),
        REGULAR.name: (
            "Utilisation depends only on X; what changes is how many customers wait. With regular "
            "times customers fall into step, and fewer of them meet at a station."
        ),
        SINGLE.name: (
            "Customers never wait at a station, because only one is inside. All others wait at the "
            "door; the table of closed runs shows how many."
        ),
    }
    return [told[server]]


def _model_table() -> Table:
    rows: list[Sequence[Cell]] = []
    for n in (1, 2, 5, 10):
        balanced = bounds.balanced_job(stations(), n, NETWORK_THINK_S)
        rows.append(
            (
                n,
                predicted("asymptotes", n, 1).throughput_per_s,
                balanced.throughput_low_per_s,
                balanced.throughput_high_per_s,
                predicted("mva", n, 1).throughput_per_s,
                predicted("mva", n, 1).response_s,
            )
        )
    columns = (
        *("N", "Asymptote of X / 1/s", "Balanced jobs, low / 1/s", "high / 1/s"),
        *("MVA X / 1/s", "MVA R / s"),
    )
    return Table("Bounds and mean value analysis", columns, rows, digits=4)


def _pairs_table(compared: Sequence[Pair]) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            _ABOUT[pair.server].label,
            MODELS[pair.model],
            pair.populations,
            str(pair.verdict),
            f"{100 * pair.difference:+.1f} ± {100 * pair.uncertainty:.1f} %",
            pair.farthest,
        )
        for pair in compared
    ]
    columns = ("Server", "Model", "N measured", "Verdict", "Largest difference", "at N")
    return Table("Models against servers", columns, rows)


def _points_table(found: Sequence[Point]) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            _ABOUT[one.server].label,
            one.customers,
            one.interactions,
            one.throughput_per_s.estimate,
            one.throughput_per_s.half_width,
            one.response_s.estimate,
            one.response_s.half_width,
            one.little,
            one.outside,
        )
        for one in found
    ]
    columns = (
        *("Server", "N", "Interactions", "X / 1/s", "±", "R / s", "±"),
        *("X·(R + Z)/N", "At no station"),
    )
    note = "Times are in report seconds. X·(R + Z)/N is 1 by Little's law."
    return Table("Closed runs that count", columns, rows, note)


def _metrics(found: Sequence[Point]) -> Iterator[Metric]:
    for one in found:
        at = f"[{one.server},{one.customers}]"
        for name, of, unit in (
            ("throughput", one.throughput_per_s, "1/s"),
            ("response_time", one.response_s, "s"),
        ):
            yield Metric.of_amount(f"{name}{at}", of.estimate, unit, of.low, of.high)


# --- what a block costs ------------------------------------------------------------------------

_REAL_TOLD = (
    "This part is real, without emulated waits. Both storages read real blocks on this machine for "
    "one customer, and their own timers tell where the time went. Files that were just written are "
    "read from memory, so a disk would add its own time to “files”."
)


_REJECTED = "rejected run"


def _split_sections(split: dict[str, Storage], reads: Summary | None) -> Iterator[Section]:
    if not split:
        return
    told = [_REAL_TOLD]
    if not all(one.is_accepted for one in split.values()):
        told.append(
            f"The rules reject the runs marked “{_REJECTED}”: their times prove nothing and are "
            "used for no finding; their counts are exact."
        )
    if reads is not None:
        told.append(
            f"Reading and checking one block in the study's way took {1000 * reads.mean:.3g} ms, "
            f"with a coefficient of variation of {reads.cv:.2g} over {reads.count} blocks. That of "
            f"an exponential time is 1, that of the regular stations above {REGULAR_CV:g}."
        )
    yield Section("What a block's time consists of", told, [_stages_table(split)])
    yield Section("Visits and demands", [_DEMANDS_TOLD], [_visits_table(split)])
    yield Section("What faster hardware would bring", [_BOUGHT_TOLD], [_bought_table(split)])


_DEMANDS_TOLD = (
    "Visits follow from the caches' own counts: a refill for each miss, and a DISK visit for each "
    "block read. Demands are computed with the study's 0.8, 46 and 39 ms, so that only the counts "
    "differ. The study's network has ten reads too many, because the last refill finds ten of its "
    "blocks in the cache."
)
_BOUGHT_TOLD = (
    "A scan is modelled as two stations, files and the processor. With one request at a time, "
    "throughput is at most 1/D; if one request may read while another computes, it is at most "
    "1/D_b. N_opt is for the study's 5 s of thinking. The study's row splits its measured 40.5 s "
    "into the files of its profile and the rest."
)


def _label(storage: Storage) -> str:
    return LABELS[storage.name] + ("" if storage.is_accepted else f" ({_REJECTED})")


def _stages_table(split: dict[str, Storage]) -> Table:
    rows: list[Sequence[Cell]] = [
        ("the study's profile, on its Pi", stage, ms, None, None)
        for stage, ms in PROFILE_MS.items()
    ]
    for name, one in split.items():
        if name == COUNTS:
            continue
        rows += [
            (
                _label(one),
                stage.replace("_", " "),
                1000 * one.of_a_block_s(stage),
                1000 * spent_s,
                f"{100 * spent_s / one.total_s:.1f} %",
            )
            for stage, spent_s in one.stages_s.items()
        ]
    columns = ("Storage", "Stage", "ms per block", "ms per scan", "Share")
    note = (
        "Files, and all stages of the study's storage, are per block read; all else is per block "
        "of the chain."
    )
    return Table("Stages", columns, rows, note)


def _visits_table(split: dict[str, Storage]) -> Table:
    rows = [_visits_row("the study, published", BLOCKS, REFILLS, None, None)]
    rows += [
        _visits_row(_label(one), one.blocks, round(one.refills), round(one.reads), one.hits)
        for one in split.values()
        if one.reads >= 1 and one.refills >= 1
    ]
    columns = (
        *("Storage", "Blocks", "Refills", "Blocks read", "Found in caches"),
        *("V CPU", "V DISK", "D CPU / s", "D DISK / s", "D DELAY / s", "N_opt"),
    )
    return Table("Visits by the caches' counts", columns, rows, digits=4)


def _visits_row(
    label: str, blocks: int, refills: int, reads: int | None, hits: float | None
) -> Sequence[Cell]:
    of = routing(blocks, refills, reads)
    ratios, demanded = visits(of), demands(of)
    network = [Station(name, demand_s) for name, demand_s in demanded.items()]
    return (
        *(label, blocks, refills, round(ratios["disk"]), hits),
        *(round(ratios["cpu"]), round(ratios["disk"])),
        *demanded.values(),
        bounds.optimal_population(network, NETWORK_THINK_S),
    )


def _demands(split: dict[str, Storage]) -> list[Demands]:
    measured = [
        demands_of(split[name], _label(split[name])) for name in (STUDY, OURS) if name in split
    ]
    return [demands_on_the_pi(), *measured]


def _bought_table(split: dict[str, Storage]) -> Table:
    rows: list[Sequence[Cell]] = [
        (
            *(one.label, one.blocks, one.file_s, one.cpu_s, one.total_s),
            *(one.bottleneck, one.one_at_a_time_per_s, one.several_per_s),
            one.optimal_population,
        )
        for now in _demands(split)
        for one in (now, now.without_files(), now.with_twice_the_processor())
    ]
    columns = (
        *("Storage", "Blocks", "D files / s", "D processor / s", "D / s", "Bottleneck"),
        *("X ≤, one at a time / 1/s", "X ≤, several / 1/s", "N_opt"),
    )
    return Table("Demands, now and with faster hardware", columns, rows)


def _split_metrics(split: dict[str, Storage]) -> Iterator[Metric]:
    for name in (STUDY, OURS):
        if name in split and split[name].is_accepted:
            yield Metric(f"demand_files[{name}]", split[name].file_s, "s")
            yield Metric(f"demand[{name}]", split[name].total_s, "s")
