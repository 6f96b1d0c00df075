"""Reports the queueing network of study 000: which model describes which server.

`queueing_network_models` has the servers and their models, `…_runs` measures, and compares what was
measured with them. Figures 6 to 11 are the study's with our numbers. All times are in report
seconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from loadtests.experiments import queueing_network_models as models
from loadtests.experiments import queueing_network_runs as measuring
from loadtests.experiments.queueing_network_runs import AtStation, Pair, Point
from loadtests.grouping import grouped
from loadtests.lab.content import Cell, Figure, Metric, Report, Section, Table, capital
from loadtests.lab.experiment import Experiment
from loadtests.lab.published import NETWORK_CUSTOMERS, NETWORK_THINK_S
from loadtests.lab.repeated import measured
from loadtests.lab.report.drawing import Axis, Shape, Source, figure
from loadtests.lab.results import NothingCounts, Results
from loadtests.lab.sentences import Sentences, drawing
from loadtests.models import bounds, mva
from loadtests.models.estimates import WORST_FIRST, Interval, Verdict

NS = tuple(range(1, NETWORK_CUSTOMERS + 1))
CUSTOMERS = Axis("customers N", ticks=(1, *NS[4::5]))
THEIRS = "MVA, as the study solved it"
_OF_STATION: dict[str, Source] = {"cpu": "second", "disk": "ours", "delay": "third"}
_OF_SERVER: dict[models.Server, Source] = dict(
    zip(models.SERVERS, ("ours", "second", "third"), strict=True)
)
_OF_MODEL: dict[str, tuple[str, Source, Shape]] = {
    models.MVA: (THEIRS, "model", "line"),
    models.ASYMPTOTES: ("asymptotes", "bound", "line"),
    **{model: ("", _OF_SERVER[server], "curve") for model, server in models.SIMULATED.items()},
    models.ONE: ("", _OF_SERVER[models.SINGLE], "curve"),
}


def analyse(results: Results) -> Report:
    """Report models and servers. Raises NothingCounts if there is no closed run."""
    runs, expectations = measuring.closed_runs(results), measuring.expected(results)
    if not runs:
        raise NothingCounts(f"{results.folder} has no closed run that counts")
    points, sentences = measuring.points_of(runs, expectations), Sentences("queueing_network")
    compared = measuring.pairs(points, expectations)
    agreeing = [pair for pair in compared if pair.verdict is Verdict.AGREES]
    by_server = grouped(agreeing, lambda pair: pair.server.label)
    findings = sentences("findings", models=models.MODELS, **_verdicts(points, compared))
    line = results.lines(measuring.PLAN, measuring.PlanLine)[0]
    sections = _sections(sentences, line, points, expectations, compared)
    return Report(
        findings,
        [section for section in sections if section.parts],
        [*_metrics(points)],
        conclusion=sentences.paragraph(
            "conclusion", compared=compared, agreeing=by_server, models=models.MODELS
        ),
    )


def _sections(
    sentences: Sentences,
    line: measuring.PlanLine,
    points: Sequence[Point],
    expectations: models.Expectations,
    compared: Sequence[Pair],
) -> Iterator[Section]:
    caption = sentences.paragraph("figure_6")
    yield Section("The model", sentences("model"), [schema(caption), _parameters()])
    words = sentences("measured", line=line, think_s=NETWORK_THINK_S, regular_cv=models.REGULAR_CV)
    caption = sentences.paragraph("system", single=models.SINGLE)
    of_system = _of_system(points, expectations, caption)
    yield Section("Which model describes which server", words, [_pairs_table(compared), *of_system])
    beside_mva = _beside_mva(expectations)
    for server in models.SERVERS:
        words = sentences(server.name.replace("-", "_"), beside_mva=beside_mva)
        caption = sentences.paragraph("stations", server=server)
        of_stations = _of_stations(server, points, caption)
        yield Section(capital(server.label), words, [*of_stations])
    table = _points_table(points, sentences.paragraph("points_note"))
    yield Section("Closed runs", sentences("intervals", least=models.LEAST_REPEATED), [table])


# --- what the sentences are about ----------------------------------------------------------------


def _verdicts(points: Sequence[Point], compared: Sequence[Pair]) -> dict[str, object]:
    """Return the verdicts on each server, best first, and the limits of the study's network."""
    best_first = sorted(compared, key=lambda pair: -WORST_FIRST.index(pair.verdict))
    by_server = grouped(best_first, lambda pair: pair.server)
    several, single = (
        f"N_opt = {bounds.optimal_population(parts, NETWORK_THINK_S):.3g} and X ≤ "
        f"{bounds.maximum_throughput_per_s(parts):.4f}"
        for parts in (models.stations(), [models.joined(models.stations())])
    )
    of_single = [point for point in points if point.server is models.SINGLE]
    return {
        "servers": {
            server.label: grouped(by_server.get(server, []), lambda pair: pair.verdict)
            for server in models.SERVERS
        },
        "several": several,
        "single": single,
        "most": max(of_single, key=lambda point: point.customers, default=None),
    }


def _beside_mva(expectations: models.Expectations) -> dict[int, Interval]:
    """Return by what share X of simulated exponential runs differs from MVA at each N."""
    shares = {}
    for (server, n), cell in expectations.items():
        if server is models.EXPONENTIAL:
            x, mva = cell.throughput_per_s, models.by_formula(models.MVA, n).throughput_per_s
            shares[n] = Interval(x.mean / mva - 1, x.half_width / mva, x.runs)
    return shares


# --- tables and metrics --------------------------------------------------------------------------


def _pairs_table(compared: Sequence[Pair]) -> Table:
    return Table.from_items(
        "Models against servers",
        compared,
        [
            ("Server", lambda pair: pair.server.label),
            ("Model", lambda pair: models.MODELS[pair.model]),
            ("N measured", lambda pair: pair.populations),
            ("Verdict", lambda pair: str(pair.verdict)),
            ("Largest difference", str),
            ("at N", lambda pair: pair.farthest),
        ],
    )


def _points_table(points: Sequence[Point], note: str) -> Table:
    return Table.from_items(
        "Closed runs",
        points,
        [
            ("Server", lambda point: point.server.label),
            ("N", lambda point: point.customers),
            ("Runs", lambda point: len(point.runs)),
            ("Interactions", lambda point: sum(len(run.responses_s) for run in point.runs)),
            ("X / 1/s", lambda point: point.throughput_per_s),
            ("95 % of simulated runs", lambda point: str(point.expected.throughput_per_s)),
            ("R / s", lambda point: point.response_s),
            ("95 % of simulated runs", lambda point: str(point.expected.response_s)),
            ("X·(R + Z)/N", lambda point: point.little),
            ("At no station", lambda point: point.outside),
        ],
        note,
    )


def _metrics(points: Sequence[Point]) -> Iterator[Metric]:
    """Yield throughput and response time in report seconds."""
    for point in points:
        at = f"[{point.server.name},{point.customers}]"
        yield Metric.of_amount(f"throughput{at}", point.throughput_per_s, "1/s")
        yield Metric.of_amount(f"response_time{at}", point.response_s, "s")


class Curve(NamedTuple):
    """Describes what is known at some N, for a figure and its table."""

    heading: str  # in the table
    name: str  # in the legend; "" if it is not there
    source: Source
    shape: Shape
    at_n: Mapping[int, Interval]


def _over_n(title: str, caption: str, label: str, curves: Sequence[Curve]) -> Figure:
    headings = "N", *(curve.heading for curve in curves)
    rows = [(n, *(curve.at_n.get(n) for curve in curves)) for n in NS]
    series = [
        measured(curve.name, curve.source, [*at_n], [*at_n.values()], shape=curve.shape)
        for curve in curves
        if (at_n := curve.at_n)
    ]
    table = Table(title, headings, rows)
    return figure(title, caption, CUSTOMERS, Axis(label), series, table)


# --- figures 6 and 7: the network ----------------------------------------------------------------


def _parameters() -> Table:
    """Return figure 7, a table of the network's parameters."""
    ratios = models.visits()
    rows: list[Sequence[Cell]] = [("TERMINAL", 1, NETWORK_THINK_S, NETWORK_THINK_S, None)]
    rows += [
        (s.name, s.visits, s.service_s, s.visits * s.service_s, ratios[name])
        for name, s in models.STATIONS.items()
    ]
    columns = ("Station", "Visits", "Service / s", "Demand / s", "Visits by the traffic equations")
    return Table("Figure 7 of the study: the parameters of its network", columns, rows, digits=5)


def schema(caption: str) -> Figure:
    """Draw figure 6, the network with its routing."""
    rows = [
        (origin.upper(), target.upper(), str(share), float(share))
        for origin, row in models.routing().items()
        for target, share in row.items()
    ]
    table = Table("The routing", ("From", "To", "Probability", ""), rows)
    svg = drawing(
        "queueing_network",
        routing=models.routing(),
        stations=models.STATIONS,
        think_s=NETWORK_THINK_S,
    )
    return Figure("The network", svg, caption, table)


# --- figures 8 and 9: the stations ---------------------------------------------------------------


def _by_mva(solution: mva.Solution) -> dict[str, AtStation]:
    x = solution.throughput_per_s
    return {
        name: AtStation(at.utilisation, at.customers, x * station.visits)
        for name, station in models.STATIONS.items()
        for at in [solution.at(name)]
    }


def _of_stations(server: models.Server, points: Sequence[Point], caption: str) -> Iterator[Figure]:
    """Draw figures 8 and 9 of a server: utilisation, throughput and customers of each station."""
    solutions = mva.solve(models.stations(), NETWORK_CUSTOMERS, NETWORK_THINK_S)
    by_mva = {solution.customers: _by_mva(solution) for solution in solutions}
    ours = {p.customers: p.stations for p in points if p.server is server and p.stations}
    for title, label, quantity in (
        ("Figure 8: utilisation", "utilisation", "utilisation"),
        ("Figure 9, left: throughput of the stations", "visits / 1/s", "visits_per_s"),
        ("Figure 9, right: customers at the stations", "customers", "customers"),
    ):
        curves: list[Curve] = []
        for name, source in _OF_STATION.items():
            model, measurements = (
                {n: Interval(getattr(at[name], quantity)) for n, at in at_n.items()}
                for at_n in (by_mva, ours)
            )
            legend, known = "" if curves else THEIRS, name.upper()
            curves += [
                Curve(f"{known}, {THEIRS}", legend, source, "curve", model),
                Curve("measured", known, source, "points", measurements),
            ]
        yield _over_n(f"{title}, {server.label}", caption, label, curves)


# --- figures 10 and 11: the system ---------------------------------------------------------------


def _of_system(
    points: Sequence[Point], expected: models.Expectations, caption: str
) -> Iterator[Figure]:
    """Draw figures 10 and 11: the whole system with its asymptotes, all servers and models."""
    for title, label, quantity in (
        ("Figure 10: throughput of the system", "throughput X / 1/s", "throughput_per_s"),
        ("Figure 11: response time of the system", "response time R / s", "response_s"),
    ):
        value = attrgetter(quantity)
        curves = []
        for model, look in _OF_MODEL.items():
            at_n = {n: models.predicted(model, n, expected) for n in NS}
            known = {n: Interval(value(at)) for n, at in at_n.items() if at}
            curves.append(Curve(capital(models.MODELS[model]), *look, known))
        for server, source in _OF_SERVER.items():
            own = {p.customers: value(p) for p in points if p.server is server}
            curves.append(Curve(f"Measured, {server.label}", server.label, source, "points", own))
        yield _over_n(title, caption, f"{label}, report seconds", curves)


EXPERIMENT = Experiment.described(
    "queueing-network",
    "000",
    measuring.measure,
    analyse,
    scales=(measuring.SCALE, measuring.QUICK_SCALE),
    has_loads=True,
    loads=lambda options: measuring.plan_of(replace(options, loads=())).populations,
)
