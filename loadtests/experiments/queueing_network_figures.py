"""Draws the study's figures 6 to 11 with our numbers. All times are in report seconds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter

from loadtests.experiments.queueing_network_models import (
    ASYMPTOTES,
    MODELS,
    MVA,
    ONE,
    SERVERS,
    SIMULATED,
    SINGLE,
    STATIONS,
    Expectations,
    Prediction,
    Server,
    predicted,
    routing,
    stations,
    visits,
)
from loadtests.experiments.queueing_network_runs import AtStation, Point
from loadtests.lab.content import Cell, Figure, Item, Table, capital, shown
from loadtests.lab.published import NETWORK_AT_N, NETWORK_THINK_S
from loadtests.lab.repeated import accepted, crosses, measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.drawing import Axis, Series, Shape, Source, figure
from loadtests.lab.sentences import drawing
from loadtests.models import mva

MOST = len(NETWORK_AT_N)  # customers of the study's curves, three times as many as are measured
NS = tuple(range(1, MOST + 1))
CUSTOMERS = Axis("customers N", ticks=(1, *range(5, MOST + 1, 5)))
_OF_STATION: dict[str, Source] = {"cpu": "second", "disk": "ours", "delay": "third"}
_OF_SERVER: dict[Server, Source] = dict(zip(SERVERS, ("ours", "second", "third"), strict=True))


def _over_n(
    title: str,
    told: str,
    label: str,
    series: Sequence[Series],
    columns: Sequence[tuple[str, Sequence[Cell]]],
) -> Figure:
    """A figure over N, with a table of the values at each N. columns: heading and values."""
    headings, values = zip(("N", NS), *columns, strict=True)
    table = Table(title, headings, list(zip(*values, strict=True)))
    return figure(title, told, CUSTOMERS, Axis(label), series, table)


# --- figures 6 and 7: the network ----------------------------------------------------------------


def parameters() -> Table:
    """Figure 7: a table of the network's parameters."""
    ratios = visits()
    rows: list[Sequence[Cell]] = [("TERMINAL", 1, NETWORK_THINK_S, NETWORK_THINK_S, None)]
    rows += [
        (s.name, s.visits, s.service_s, s.visits * s.service_s, ratios[name])
        for name, s in STATIONS.items()
    ]
    columns = ("Station", "Visits", "Service / s", "Demand / s", "Visits by the traffic equations")
    return Table("Figure 7 of the study: the parameters of its network", columns, rows, digits=5)


def schema(told: str) -> Figure:
    """Figure 6: the network with its routing."""
    rows = [
        (origin.upper(), target.upper(), str(share), float(share))
        for origin, row in routing().items()
        for target, share in row.items()
    ]
    table = Table("The routing", ("From", "To", "Probability", ""), rows)
    svg = drawing("queueing_network", routing=routing(), stations=STATIONS, think_s=NETWORK_THINK_S)
    return Figure("The network", svg, told, table)


# --- figures 8 and 9: the stations ---------------------------------------------------------------


def _at_stations(x: float, customers: Sequence[float]) -> dict[str, AtStation]:
    """The study's stations at a throughput of `x`, with so many customers at each."""
    return {
        name: AtStation(x * station.visits * station.service_s, of_station, x * station.visits)
        for (name, station), of_station in zip(STATIONS.items(), customers, strict=True)
    }


def of_stations(server: Server, points: Sequence[Point], told: str) -> Iterator[Figure]:
    """Figures 8 and 9 of one server: utilisation, throughput and customers of each station."""
    at_n = zip(NS, NETWORK_AT_N, strict=True)
    of_study = {n: _at_stations(x, customers) for n, (x, _, customers) in at_n}
    by_mva = {
        n: _at_stations(one.throughput_per_s, [one.at(name).customers for name in STATIONS])
        for n, one in zip(NS, mva.solve(stations(), MOST, NETWORK_THINK_S), strict=True)
    }
    of_server = [one for one in accepted(points) if one.server is server]
    ours = {one.customers: one.stations for one in of_server if one.stations}
    for title, label, quantity in (
        ("Figure 8: utilisation", "utilisation", "utilisation"),
        ("Figure 9, left: throughput of the stations", "visits / 1/s", "visits_per_s"),
        ("Figure 9, right: customers at the stations", "customers", "customers"),
    ):
        series: list[Series] = []
        columns: list[tuple[str, Sequence[Cell]]] = []
        for name, colour in _OF_STATION.items():
            theirs, model, found = (
                [getattr(of[n][name], quantity) if n in of else None for n in NS]
                for of in (of_study, by_mva, ours)
            )
            series += [
                Series("" if series else "the study (JMVA)", "study", NS, theirs, shape="points"),
                Series("", colour, NS, model, shape="curve"),
                Series(name.upper(), colour, NS, found, shape="points"),
            ]
            columns += [(f"{name.upper()}, the study", theirs), ("MVA", model), ("measured", found)]
        yield _over_n(f"{title}, {server.label}", told, label, series, columns)


# --- figures 10 and 11: the system ---------------------------------------------------------------


_STUDY = "study"
_CURVES = {_STUDY: "the study", **MODELS}


def of_system(points: Sequence[Point], expected: Expectations, told: str) -> Iterator[Figure]:
    """Figures 10 and 11: the whole system with its asymptotes, all servers and models."""
    at_n = zip(NS, NETWORK_AT_N, strict=True)
    curves = {_STUDY: {n: Prediction(x, response_s) for n, (x, response_s, _) in at_n}}
    for model in MODELS:
        curves[model] = {n: one for n in NS if (one := predicted(model, n, expected))}
    for title, label, quantity in (
        ("Figure 10: throughput of the system", "throughput X / 1/s", "throughput_per_s"),
        ("Figure 11: response time of the system", "response time R / s", "response_s"),
    ):
        yield _system_figure(points, expected, curves, title, label, quantity, told)


def _system_figure(
    points: Sequence[Point],
    expected: Expectations,
    curves: Mapping[str, Mapping[int, Prediction]],
    title: str,
    label: str,
    quantity: str,
    told: str,
) -> Figure:
    """quantity: the attribute that points, predictions and simulated runs have it in."""
    value = attrgetter(quantity)

    def drawn(curve: str, name: str, source: Source, shape: Shape) -> Series:
        of = curves[curve]
        return Series(name, source, [*of], [value(one) for one in of.values()], shape=shape)

    series = [
        drawn(MVA, "MVA", "model", "line"),
        drawn(ASYMPTOTES, "asymptotes", "bound", "line"),
        drawn(_STUDY, "the study (JMVA)", "study", "points"),
        *(drawn(model, "", _OF_SERVER[server], "curve") for model, server in SIMULATED.items()),
        drawn(ONE, "", _OF_SERVER[SINGLE], "curve"),
    ]
    columns = [(capital(_CURVES[curve]), _at_ns(of, value)) for curve, of in curves.items()]
    for server in SERVERS:
        of_server = [one for one in accepted(points) if one.server is server]
        own = {one.customers: estimated(value(one)) for one in of_server}
        runs = {n: value(one) for (of, n), one in expected.items() if of is server}
        ys = [*own.values()]
        series.append(measured(server.label, _OF_SERVER[server], [*own], ys, shape="points"))
        columns += [
            (f"Measured, {server.label}", _at_ns(own, lambda one: one.plus_minus())),
            (
                "95 % of simulated runs",
                _at_ns(runs, lambda one: f"{shown(one.low)} to {shown(one.high)}"),
            ),
        ]
    series += crosses(points, lambda one: one.customers, lambda one: value(one).estimate)
    shown_series = [one for one in series if len(one.xs)]
    return _over_n(title, told, f"{label}, report seconds", shown_series, columns)


def _at_ns(of: Mapping[int, Item], told: Callable[[Item], Cell]) -> list[Cell]:
    return [told(of[n]) if n in of else None for n in NS]
