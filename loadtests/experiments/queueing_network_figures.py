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
from loadtests.lab.published import NETWORK_CUSTOMERS, NETWORK_THINK_S
from loadtests.lab.repeated import accepted, crosses, from_interval, measured
from loadtests.lab.report.drawing import Axis, Series, Shape, Source, figure
from loadtests.lab.sentences import drawing
from loadtests.models import mva

NS = tuple(range(1, NETWORK_CUSTOMERS + 1))
CUSTOMERS = Axis("customers N", ticks=(1, *NS[4::5]))
THEIRS = "MVA, as the study solved it"
_OF_STATION: dict[str, Source] = {"cpu": "second", "disk": "ours", "delay": "third"}
_OF_SERVER: dict[Server, Source] = dict(zip(SERVERS, ("ours", "second", "third"), strict=True))


def _over_n(
    title: str,
    caption: str,
    label: str,
    series: Sequence[Series],
    columns: Sequence[tuple[str, Sequence[Cell]]],
) -> Figure:
    """Draw a figure over N, with a table of the values at each N. columns: heading and values."""
    headings, values = zip(("N", NS), *columns, strict=True)
    table = Table(title, headings, list(zip(*values, strict=True)))
    return figure(title, caption, CUSTOMERS, Axis(label), series, table)


# --- figures 6 and 7: the network ----------------------------------------------------------------


def parameters() -> Table:
    """Return figure 7, a table of the network's parameters."""
    ratios = visits()
    rows: list[Sequence[Cell]] = [("TERMINAL", 1, NETWORK_THINK_S, NETWORK_THINK_S, None)]
    rows += [
        (s.name, s.visits, s.service_s, s.visits * s.service_s, ratios[name])
        for name, s in STATIONS.items()
    ]
    columns = ("Station", "Visits", "Service / s", "Demand / s", "Visits by the traffic equations")
    return Table("Figure 7 of the study: the parameters of its network", columns, rows, digits=5)


def schema(caption: str) -> Figure:
    """Draw figure 6, the network with its routing."""
    rows = [
        (origin.upper(), target.upper(), str(share), float(share))
        for origin, row in routing().items()
        for target, share in row.items()
    ]
    table = Table("The routing", ("From", "To", "Probability", ""), rows)
    svg = drawing("queueing_network", routing=routing(), stations=STATIONS, think_s=NETWORK_THINK_S)
    return Figure("The network", svg, caption, table)


# --- figures 8 and 9: the stations ---------------------------------------------------------------


def _by_mva(solution: mva.Solution) -> dict[str, AtStation]:
    """Return the stations as mean value analysis has them."""
    x = solution.throughput_per_s
    return {
        name: AtStation(at.utilisation, at.customers, x * station.visits)
        for name, station in STATIONS.items()
        for at in [solution.at(name)]
    }


def of_stations(server: Server, points: Sequence[Point], caption: str) -> Iterator[Figure]:
    """Draw figures 8 and 9 of a server: utilisation, throughput and customers of each station."""
    solutions = mva.solve(stations(), NETWORK_CUSTOMERS, NETWORK_THINK_S)
    by_mva = {solution.customers: _by_mva(solution) for solution in solutions}
    ours = {p.customers: p.stations for p in accepted(points) if p.server is server and p.stations}
    for title, label, quantity in (
        ("Figure 8: utilisation", "utilisation", "utilisation"),
        ("Figure 9, left: throughput of the stations", "visits / 1/s", "visits_per_s"),
        ("Figure 9, right: customers at the stations", "customers", "customers"),
    ):
        series: list[Series] = []
        columns: list[tuple[str, Sequence[Cell]]] = []
        value = attrgetter(quantity)
        for name, colour in _OF_STATION.items():
            model, measured_ys = (
                [value(at_n[n][name]) if n in at_n else None for n in NS] for at_n in (by_mva, ours)
            )
            series += [
                Series("" if series else THEIRS, colour, NS, model, shape="curve"),
                Series(name.upper(), colour, NS, measured_ys, shape="points"),
            ]
            columns += [(f"{name.upper()}, {THEIRS}", model), ("measured", measured_ys)]
        yield _over_n(f"{title}, {server.label}", caption, label, series, columns)


# --- figures 10 and 11: the system ---------------------------------------------------------------


def of_system(points: Sequence[Point], expected: Expectations, caption: str) -> Iterator[Figure]:
    """Draw figures 10 and 11: the whole system with its asymptotes, all servers and models."""
    curves = {
        model: {n: known for n in NS if (known := predicted(model, n, expected))}
        for model in MODELS
    }
    for title, label, quantity in (
        ("Figure 10: throughput of the system", "throughput X / 1/s", "throughput_per_s"),
        ("Figure 11: response time of the system", "response time R / s", "response_s"),
    ):
        yield _system_figure(points, expected, curves, title, label, quantity, caption)


def _system_figure(
    points: Sequence[Point],
    expected: Expectations,
    curves: Mapping[str, Mapping[int, Prediction]],
    title: str,
    label: str,
    quantity: str,
    caption: str,
) -> Figure:
    """Draw one of them. quantity: an attribute of points, predictions and simulated runs."""
    value = attrgetter(quantity)

    def drawn(curve: str, name: str, source: Source, shape: Shape) -> Series:
        at_n = curves[curve]
        return Series(name, source, [*at_n], [*map(value, at_n.values())], shape=shape)

    series = [
        drawn(MVA, THEIRS, "model", "line"),
        drawn(ASYMPTOTES, "asymptotes", "bound", "line"),
        *(drawn(model, "", _OF_SERVER[server], "curve") for model, server in SIMULATED.items()),
        drawn(ONE, "", _OF_SERVER[SINGLE], "curve"),
    ]
    columns = [(capital(MODELS[curve]), _at_ns(at_n, value)) for curve, at_n in curves.items()]
    for server in SERVERS:
        at_n = {
            p.customers: from_interval(value(p)) for p in accepted(points) if p.server is server
        }
        runs = {n: value(cell) for (other, n), cell in expected.items() if other is server}
        ys = [*at_n.values()]
        series.append(measured(server.label, _OF_SERVER[server], [*at_n], ys, shape="points"))
        columns += [
            (f"Measured, {server.label}", _at_ns(at_n, lambda estimate: estimate.plus_minus())),
            (
                "95 % of simulated runs",
                _at_ns(runs, lambda spread: f"{shown(spread.low)} to {shown(spread.high)}"),
            ),
        ]
    series += crosses(points, lambda point: point.customers, lambda point: value(point).estimate)
    series = [drawable for drawable in series if len(drawable.xs)]
    return _over_n(title, caption, f"{label}, report seconds", series, columns)


def _at_ns(at_n: Mapping[int, Item], cell: Callable[[Item], Cell]) -> list[Cell]:
    return [cell(at_n[n]) if n in at_n else None for n in NS]
