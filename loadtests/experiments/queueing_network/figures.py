"""Draws the study's figures 6 to 11 with our numbers. All times are in report seconds."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from loadtests.experiments.queueing_network.comparing import AtStation, Point
from loadtests.experiments.queueing_network.plan import SERVERS, SINGLE, Server
from loadtests.experiments.queueing_network.predicting import (
    ASYMPTOTES,
    MVA,
    ONE,
    STATIONS,
    Prediction,
    Routing,
    routing,
    solved,
    visits,
)
from loadtests.experiments.queueing_network.schema import schema
from loadtests.experiments.queueing_network.simulating import (
    MODELS,
    SIMULATED,
    Expectations,
    Spread,
    predicted,
)
from loadtests.lab.published import NETWORK, NETWORK_AT_N, NETWORK_THINK_S
from loadtests.lab.repeated import accepted, crosses, measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Cell, Figure, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.report.page import shown
from loadtests.lab.report.words import capital
from loadtests.models.estimates import Interval
from loadtests.models.mva import Solution

MOST = len(NETWORK_AT_N)  # customers of the study's curves, three times as many as are measured
NS = tuple(range(1, MOST + 1))
CUSTOMERS = Axis("customers N", ticks=(1, *range(5, MOST + 1, 5)))
_OF_STATION: dict[str, Source] = {"cpu": "second", "disk": "ours", "delay": "third"}
_OF_SERVER: dict[str, Source] = dict(
    zip((server.name for server in SERVERS), ("ours", "second", "third"), strict=True)
)


def schema_figure() -> Figure:
    """Figure 6: the network with its routing."""
    of = routing()
    svg = schema(of, {s.name.lower(): 1000 * s.service_s for s in NETWORK}, NETWORK_THINK_S)
    told = (
        "Figure 6 of the study: customers think at the TERMINAL and then go to the CPU, which "
        "looks at block after block; at a miss 19 blocks go through DISK and DELAY, one after the "
        "other."
    )
    rows = [
        (origin.upper(), target.upper(), str(share), float(share))
        for origin, row in of.items()
        for target, share in row.items()
    ]
    table = Table("The routing", ("From", "To", "Probability", ""), rows)
    return Figure("The network", svg, told, table)


def parameter_table() -> Table:
    """Figure 7: a table of the network's parameters."""
    ratios = visits(routing())
    rows: list[Sequence[Cell]] = [("TERMINAL", 1, NETWORK_THINK_S, NETWORK_THINK_S, None)]
    rows += [
        (s.name, s.visits, s.service_s, s.visits * s.service_s, ratios[s.name.lower()])
        for s in NETWORK
    ]
    columns = ("Station", "Visits", "Service / s", "Demand / s", "Visits by the traffic equations")
    return Table("Figure 7 of the study: the parameters of its network", columns, rows, digits=5)


def station_figures(server: Server, points: Sequence[Point]) -> list[Figure]:
    """Figures 8 and 9 of one server: utilisation, throughput and customers of each station."""
    of_server = [one for one in accepted(points) if one.server == server.name and one.stations]
    visited = {station.name.lower(): station.visits for station in NETWORK}
    return [
        _station_figure(
            server,
            of_server,
            "Figure 8: utilisation",
            "utilisation",
            lambda station: station.utilisation,
            lambda solution, name: solution.at(name).utilisation,
            _published_utilisation,
        ),
        _station_figure(
            server,
            of_server,
            "Figure 9, left: throughput of the stations",
            "visits / 1/s",
            lambda station: station.visits_per_s,
            lambda solution, name: solution.throughput_per_s * visited[name],
            lambda n, name: NETWORK_AT_N[n - 1][0] * visited[name],
        ),
        _station_figure(
            server,
            of_server,
            "Figure 9, right: customers at the stations",
            "customers",
            lambda station: station.customers,
            lambda solution, name: solution.at(name).customers,
            lambda n, name: NETWORK_AT_N[n - 1][2][STATIONS.index(name)],
        ),
    ]


def _published_utilisation(n: int, name: str) -> float:
    station = NETWORK[STATIONS.index(name)]
    return NETWORK_AT_N[n - 1][0] * station.visits * station.service_s


def _station_figure(
    server: Server,
    points: Sequence[Point],
    title: str,
    label: str,
    measured: Callable[[AtStation], float],
    modelled: Callable[[Solution, str], float],
    published: Callable[[int, str], float],
) -> Figure:
    exact = solved(MOST)
    series: list[Series] = []
    by_n = {point.customers: point for point in points}
    columns: list[str] = ["N"]
    values: list[list[float | None]] = []
    for at, name in enumerate(STATIONS):
        theirs: list[float | None] = [published(n, name) for n in NS]
        model: list[float | None] = [modelled(solution, name) for solution in exact]
        ours = [measured(by_n[n].stations[name]) if n in by_n else None for n in NS]
        source = _OF_STATION[name]
        series += [
            Series("" if at else "the study (JMVA)", "study", NS, theirs, shape="points"),
            Series("", source, NS, model, shape="curve"),
            Series(name.upper(), source, NS, ours, shape="points"),
        ]
        columns += [f"{name.upper()}, the study", "MVA", "measured"]
        values += [theirs, model, ours]
    rows = [(n, *(column[at] for column in values)) for at, n in enumerate(NS)]
    told = (
        f"Points are measurements with {server.label}. Dashed lines are mean value analysis, and "
        "so are the study's orange squares."
    )
    title = f"{title}, {server.label}"
    return figure(title, told, CUSTOMERS, Axis(label), series, Table(title, columns, rows))


def system_figures(
    points: Sequence[Point], expected: Expectations, counted: Routing | None
) -> list[Figure]:
    """Figures 10 and 11: the whole system with its asymptotes, all servers and models.

    counted: the routing whose visits our scan in the study's way counted; None if none was made.
    """
    return [
        _system_figure(points, expected, counted, *of)
        for of in (
            (
                "Figure 10: throughput of the system",
                "throughput X / 1/s, report seconds",
                "throughput_per_s",
                [throughput for throughput, _, _ in NETWORK_AT_N],
            ),
            (
                "Figure 11: response time of the system",
                "response time R / s, report seconds",
                "response_s",
                [response_s for _, response_s, _ in NETWORK_AT_N],
            ),
        )
    ]


def _system_figure(
    points: Sequence[Point],
    expected: Expectations,
    counted: Routing | None,
    title: str,
    label: str,
    quantity: str,
    published: Sequence[float],
) -> Figure:
    """quantity: the attribute that points, predictions and simulated runs have it in."""
    value = attrgetter(quantity)
    models: dict[str, list[float | None]] = {
        model: [value(one) if (one := predicted(model, n, expected)) else None for n in NS]
        for model in MODELS
    }
    series = [
        Series("MVA", "model", NS, models[MVA]),
        Series("asymptotes", "bound", NS, models[ASYMPTOTES]),
        Series("the study (JMVA)", "study", NS, published, shape="points"),
        *(
            _simulated(_OF_SERVER[server.name], models[model])
            for model, server in SIMULATED.items()
        ),
        Series("", _OF_SERVER[SINGLE.name], NS, models[ONE], shape="curve"),
        *(_points(server, points, value) for server in SERVERS),
        *crosses(points, lambda one: one.customers, lambda one: value(one).estimate),
    ]
    columns = ["N", "The study", *map(capital, MODELS.values())]
    rows: list[list[Cell]] = [
        [n, published[at], *(of[at] for of in models.values())] for at, n in enumerate(NS)
    ]
    if counted is not None:
        columns.append("MVA, visits as counted")
        for row, solution in zip(rows, solved(MOST, counted), strict=True):
            row.append(value(Prediction(solution.throughput_per_s, solution.response_time_s)))
    by_key = {(one.server, one.customers): value(one) for one in accepted(points)}
    for server in SERVERS:
        columns += [f"Measured, {server.label}", "95 % of simulated runs"]
        for row, n in zip(rows, NS, strict=True):
            key = server.name, n
            range_ = value(expected[key]) if key in expected else None
            row += [_told(by_key.get(key)), _range(range_)]
    told = (
        "Points are measurements with 95 % intervals; crosses are rejected runs. The green line is "
        "MVA, the grey one the asymptotes of the network. Dashes in the colour of a server are the "
        f"mean of simulated runs like the measured ones, for “{SINGLE.label}” the asymptotes of a "
        "single station."
    )
    drawn_series = [one for one in series if len(one.xs)]
    return figure(title, told, CUSTOMERS, Axis(label), drawn_series, Table(title, columns, rows))


def _simulated(source: Source, ys: Sequence[float | None]) -> Series:
    """A curve through the N that were measured, of which alone runs were simulated."""
    known = [(n, y) for n, y in zip(NS, ys, strict=True) if y is not None]
    return Series("", source, [n for n, _ in known], [y for _, y in known], shape="curve")


def _points(
    server: Server, points: Sequence[Point], measure: Callable[[Point], Interval]
) -> Series:
    own = [one for one in accepted(points) if one.server == server.name]
    found, ns = [estimated(measure(one)) for one in own], [one.customers for one in own]
    return measured(server.label, _OF_SERVER[server.name], ns, found, shape="points")


def _range(of: Spread | None) -> str | None:
    return f"{shown(of.low)} to {shown(of.high)}" if of else None


def _told(interval: Interval | None) -> str | None:
    return None if interval is None else estimated(interval).plus_minus()
