"""Draws the study's figures 6 to 11 with our numbers. All times are in report seconds."""

from collections.abc import Callable, Mapping, Sequence
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
    by_formula,
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
from loadtests.lab.published import NETWORK_AT_N, NETWORK_THINK_S
from loadtests.lab.repeated import accepted, crosses, measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Cell, Figure, Table, capital
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.report.page import shown
from loadtests.models.estimates import Interval

MOST = len(NETWORK_AT_N)  # customers of the study's curves, three times as many as are measured
NS = tuple(range(1, MOST + 1))
CUSTOMERS = Axis("customers N", ticks=(1, *range(5, MOST + 1, 5)))
_OF_STATION: dict[str, Source] = {"cpu": "second", "disk": "ours", "delay": "third"}
_OF_SERVER: dict[Server, Source] = dict(zip(SERVERS, ("ours", "second", "third"), strict=True))


def schema_figure() -> Figure:
    """Figure 6: the network with its routing."""
    of = routing()
    service_ms = {name: 1000 * station.service_s for name, station in STATIONS.items()}
    svg = schema(of, service_ms, NETWORK_THINK_S)
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
        (s.name, s.visits, s.service_s, s.visits * s.service_s, ratios[name])
        for name, s in STATIONS.items()
    ]
    columns = ("Station", "Visits", "Service / s", "Demand / s", "Visits by the traffic equations")
    return Table("Figure 7 of the study: the parameters of its network", columns, rows, digits=5)


def station_figures(server: Server, points: Sequence[Point]) -> list[Figure]:
    """Figures 8 and 9 of one server: utilisation, throughput and customers of each station."""
    of_server = [one for one in accepted(points) if one.server is server]
    of_study, by_mva = _published(), _by_mva()
    ours = {one.customers: one.stations for one in of_server if one.stations}
    return [
        _station_figure(server, (of_study, by_mva, ours), *of)
        for of in (
            ("Figure 8: utilisation", "utilisation", "utilisation"),
            ("Figure 9, left: throughput of the stations", "visits / 1/s", "visits_per_s"),
            ("Figure 9, right: customers at the stations", "customers", "customers"),
        )
    ]


_ByN = Mapping[int, Mapping[str, AtStation]]  # N -> the stations by name


def _published() -> _ByN:
    return {
        n: {
            name: AtStation(x * station.visits * station.service_s, customers, x * station.visits)
            for (name, station), customers in zip(STATIONS.items(), of_stations, strict=True)
        }
        for n, (x, _, of_stations) in zip(NS, NETWORK_AT_N, strict=True)
    }


def _by_mva() -> _ByN:
    return {
        one.customers: {
            name: AtStation(
                one.at(name).utilisation,
                one.at(name).customers,
                one.throughput_per_s * station.visits,
            )
            for name, station in STATIONS.items()
        }
        for one in solved(MOST)
    }


def _station_figure(
    server: Server, sources: Sequence[_ByN], title: str, label: str, quantity: str
) -> Figure:
    """sources: the study, MVA, ours. quantity: the attribute of the stations that is drawn."""
    series: list[Series] = []
    columns: list[str] = ["N"]
    values: list[Sequence[float | None]] = [NS]
    for name, colour in _OF_STATION.items():
        theirs, model, ours = (
            [getattr(of[n][name], quantity) if n in of else None for n in NS] for of in sources
        )
        series += [
            Series("" if series else "the study (JMVA)", "study", NS, theirs, shape="points"),
            Series("", colour, NS, model, shape="curve"),
            Series(name.upper(), colour, NS, ours, shape="points"),
        ]
        columns += [f"{name.upper()}, the study", "MVA", "measured"]
        values += [theirs, model, ours]
    told = (
        f"Points are measurements with {server.label}. Dashed lines are mean value analysis, and "
        "so are the study's orange squares."
    )
    title = f"{title}, {server.label}"
    table = Table(title, columns, list(zip(*values, strict=True)))
    return figure(title, told, CUSTOMERS, Axis(label), series, table)


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
            ),
            (
                "Figure 11: response time of the system",
                "response time R / s, report seconds",
                "response_s",
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
) -> Figure:
    """quantity: the attribute that points, predictions and simulated runs have it in."""
    value = attrgetter(quantity)
    published = [value(Prediction(x, response_s)) for x, response_s, _ in NETWORK_AT_N]
    models: dict[str, list[float | None]] = {
        model: [value(one) if (one := predicted(model, n, expected)) else None for n in NS]
        for model in MODELS
    }
    series = [
        Series("MVA", "model", NS, models[MVA]),
        Series("asymptotes", "bound", NS, models[ASYMPTOTES]),
        Series("the study (JMVA)", "study", NS, published, shape="points"),
        *(_simulated(_OF_SERVER[server], models[model]) for model, server in SIMULATED.items()),
        Series("", _OF_SERVER[SINGLE], NS, models[ONE], shape="curve"),
        *(_points(server, points, value) for server in SERVERS),
        *crosses(points, lambda one: one.customers, lambda one: value(one).estimate),
    ]
    columns: list[tuple[str, Sequence[Cell]]] = [
        ("N", NS),
        ("The study", published),
        *((capital(label), models[model]) for model, label in MODELS.items()),
    ]
    if counted is not None:
        as_counted = [value(by_formula(MVA, n, counted)) for n in NS]
        columns.append(("MVA, visits as counted", as_counted))
    found = {(one.server, one.customers): value(one) for one in accepted(points)}
    simulated = {cell: value(one) for cell, one in expected.items()}
    for server in SERVERS:
        cells = [(server, n) for n in NS]
        columns += [
            (f"Measured, {server.label}", [_told(found.get(cell)) for cell in cells]),
            ("95 % of simulated runs", [_range(simulated.get(cell)) for cell in cells]),
        ]
    headings, values = zip(*columns, strict=True)
    table = Table(title, headings, list(zip(*values, strict=True)))
    told = (
        "Points are measurements with 95 % intervals; crosses are rejected runs. The green line is "
        "MVA, the grey one the asymptotes of the network. Dashes in the colour of a server are the "
        f"mean of simulated runs like the measured ones, for “{SINGLE.label}” the asymptotes of a "
        "single station."
    )
    drawn_series = [one for one in series if len(one.xs)]
    return figure(title, told, CUSTOMERS, Axis(label), drawn_series, table)


def _simulated(source: Source, ys: Sequence[float | None]) -> Series:
    """A curve through the N that were measured, of which alone runs were simulated."""
    known = [(n, y) for n, y in zip(NS, ys, strict=True) if y is not None]
    return Series("", source, [n for n, _ in known], [y for _, y in known], shape="curve")


def _points(
    server: Server, points: Sequence[Point], measure: Callable[[Point], Interval]
) -> Series:
    own = [one for one in accepted(points) if one.server is server]
    found, ns = [estimated(measure(one)) for one in own], [one.customers for one in own]
    return measured(server.label, _OF_SERVER[server], ns, found, shape="points")


def _range(of: Spread | None) -> str | None:
    return f"{shown(of.low)} to {shown(of.high)}" if of else None


def _told(interval: Interval | None) -> str | None:
    return None if interval is None else estimated(interval).plus_minus()
