"""Draws the study's figures 6 to 11 with our numbers. All times are in report seconds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from operator import attrgetter

from loadtests.experiments.queueing_network.comparing import AtStation, Point
from loadtests.experiments.queueing_network.predicting import (
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
    Routing,
    Server,
    by_formula,
    predicted,
    routing,
    solved,
    visits,
)
from loadtests.lab.published import NETWORK_AT_N, NETWORK_THINK_S
from loadtests.lab.repeated import accepted, crosses, measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.content import Cell, Figure, Item, Table, capital
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.report.page import shown

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


def schema_figure() -> Figure:
    """Figure 6: the network with its routing."""
    of = routing()
    service_ms = {name: 1000 * station.service_s for name, station in STATIONS.items()}
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
    return Figure("The network", schema(of, service_ms, NETWORK_THINK_S), told, table)


_INK = "stroke: var(--ink); fill: none; stroke-width: 1.4"
_PLACES = {"cpu": (270, "--data-4"), "disk": (440, "--data-1"), "delay": (610, "--data-6")}
_TERMINAL, _MIDDLE = 75, 130


def schema(of: Routing, service_ms: Mapping[str, float], think_s: float) -> str:
    """Figure 6 as SVG: stations with their mean service times, arrows with probabilities."""
    cpu, delay = of["cpu"], of["delay"]
    drawn = [
        # some circles for customers who think, because there is no queue here
        *(f'<circle cx="{_TERMINAL}" cy="{y}" r="11" style="{_INK}"/>' for y in (104, 130, 156)),
        _text(_TERMINAL, 60, "TERMINAL", size=13),
        _text(_TERMINAL, 78, f"{think_s:g} s"),
        *(
            _station(*place, name.upper(), f"{service_ms[name]:g} ms")
            for name, place in _PLACES.items()
        ),
        _arrow("M 110 130 H 205", 158, 122, of["terminal"]["cpu"]),
        _arrow("M 296 147 C 300 262, 75 262, 75 172", 180, 252, cpu["terminal"]),
        _arrow("M 290 108 C 330 30, 190 30, 216 110", 256, 42, cpu["cpu"]),
        _arrow("M 307 130 H 375", 342, 122, cpu["disk"]),
        _arrow("M 477 130 H 545", 511, 122, of["disk"]["delay"]),
        _arrow("M 630 108 C 630 35, 400 35, 386 110", 510, 45, delay["disk"]),
        _arrow("M 640 142 C 690 255, 180 255, 212 154", 450, 245, delay["cpu"]),
    ]
    return (
        '<svg aria-hidden="true" focusable="false" viewBox="0 0 700 270" '
        'xmlns="http://www.w3.org/2000/svg"><defs><marker id="network-tip" markerWidth="8" '
        'markerHeight="8" refX="7" refY="4" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" '
        f'style="fill: var(--ink)"/></marker></defs>{"".join(drawn)}</svg>'
    )


def _station(x: int, colour: str, name: str, service: str) -> str:
    """A queue, open to the left, with its server."""
    left, right, top, bottom = x - 52, x - 4, _MIDDLE - 18, _MIDDLE + 18
    queue = f"M {left} {top} H {right} V {bottom} H {left}"
    slots = "".join(f" M {right - at} {top} V {bottom}" for at in (12, 24, 36))
    return (
        f'<path d="{queue}{slots}" style="{_INK}"/>'
        f'<circle cx="{x + 15}" cy="{_MIDDLE}" r="19" '
        f'style="stroke: var({colour}); fill: none; stroke-width: 3"/>'
        + _text(x - 24, 176, name, size=13)
        + _text(x - 24, 193, service)
    )


def _arrow(path: str, x: int, y: int, share: Fraction) -> str:
    tip = f'<path d="{path}" style="{_INK}" marker-end="url(#network-tip)"/>'
    return tip + _text(x, y, str(share))


def _text(x: int, y: int, words: str, size: int = 12) -> str:
    style = f"fill: var(--ink); font: {size}px sans-serif; text-anchor: middle"
    return f'<text x="{x}" y="{y}" style="{style}">{words}</text>'


# --- figures 8 and 9: the stations ---------------------------------------------------------------


def _at_stations(x: float, customers: Sequence[float]) -> dict[str, AtStation]:
    """The study's stations at a throughput of `x`, with so many customers at each."""
    return {
        name: AtStation(x * station.visits * station.service_s, of_station, x * station.visits)
        for (name, station), of_station in zip(STATIONS.items(), customers, strict=True)
    }


def station_figures(server: Server, points: Sequence[Point]) -> Iterator[Figure]:
    """Figures 8 and 9 of one server: utilisation, throughput and customers of each station."""
    at_n = zip(NS, NETWORK_AT_N, strict=True)
    of_study = {n: _at_stations(x, customers) for n, (x, _, customers) in at_n}
    by_mva = {
        one.customers: _at_stations(
            one.throughput_per_s, [one.at(name).customers for name in STATIONS]
        )
        for one in solved(MOST)
    }
    of_server = [one for one in accepted(points) if one.server is server]
    ours = {one.customers: one.stations for one in of_server if one.stations}
    for title, label, quantity in (
        ("Figure 8: utilisation", "utilisation", "utilisation"),
        ("Figure 9, left: throughput of the stations", "visits / 1/s", "visits_per_s"),
        ("Figure 9, right: customers at the stations", "customers", "customers"),
    ):
        yield _station_figure(server, (of_study, by_mva, ours), title, label, quantity)


def _station_figure(
    server: Server,
    sources: Sequence[Mapping[int, Mapping[str, AtStation]]],
    title: str,
    label: str,
    quantity: str,
) -> Figure:
    """sources: the study, MVA, ours: N -> the stations. quantity: their attribute that is drawn."""
    series: list[Series] = []
    columns: list[tuple[str, Sequence[Cell]]] = []
    for name, colour in _OF_STATION.items():
        theirs, model, ours = (
            [getattr(of[n][name], quantity) if n in of else None for n in NS] for of in sources
        )
        series += [
            Series("" if series else "the study (JMVA)", "study", NS, theirs, shape="points"),
            Series("", colour, NS, model, shape="curve"),
            Series(name.upper(), colour, NS, ours, shape="points"),
        ]
        columns += [(f"{name.upper()}, the study", theirs), ("MVA", model), ("measured", ours)]
    told = (
        f"Points are measurements with {server.label}. Dashed lines are mean value analysis, and "
        "so are the study's orange squares."
    )
    return _over_n(f"{title}, {server.label}", told, label, series, columns)


# --- figures 10 and 11: the system ---------------------------------------------------------------


def system_figures(
    points: Sequence[Point], expected: Expectations, counted: Routing | None
) -> Iterator[Figure]:
    """Figures 10 and 11: the whole system with its asymptotes, all servers and models.

    counted: the routing whose visits our scan in the study's way counted; None if none was made.
    """
    for title, label, quantity in (
        ("Figure 10: throughput of the system", "throughput X / 1/s", "throughput_per_s"),
        ("Figure 11: response time of the system", "response time R / s", "response_s"),
    ):
        yield _system_figure(points, expected, counted, title, f"{label}, report seconds", quantity)


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
    columns: list[tuple[str, Sequence[Cell]]] = [
        ("The study", published),
        *((capital(label), models[model]) for model, label in MODELS.items()),
    ]
    if counted is not None:
        as_counted = [value(by_formula(MVA, n, counted)) for n in NS]
        columns.append(("MVA, visits as counted", as_counted))
    series = [
        Series("MVA", "model", NS, models[MVA]),
        Series("asymptotes", "bound", NS, models[ASYMPTOTES]),
        Series("the study (JMVA)", "study", NS, published, shape="points"),
    ]
    for model, server in SIMULATED.items():  # only the N that were measured
        known = {n: y for n, y in zip(NS, models[model], strict=True) if y is not None}
        curve = Series("", _OF_SERVER[server], [*known], [*known.values()], shape="curve")
        series.append(curve)
    series.append(Series("", _OF_SERVER[SINGLE], NS, models[ONE], shape="curve"))
    for server in SERVERS:
        of_server = [one for one in accepted(points) if one.server is server]
        own = {one.customers: estimated(value(one)) for one in of_server}
        runs = {n: value(one) for (of, n), one in expected.items() if of is server}
        series.append(
            measured(server.label, _OF_SERVER[server], [*own], [*own.values()], shape="points")
        )
        columns += [
            (f"Measured, {server.label}", _at_ns(own, lambda one: one.plus_minus())),
            (
                "95 % of simulated runs",
                _at_ns(runs, lambda one: f"{shown(one.low)} to {shown(one.high)}"),
            ),
        ]
    series += crosses(points, lambda one: one.customers, lambda one: value(one).estimate)
    told = (
        "Points are measurements with 95 % intervals; crosses are rejected runs. The green line is "
        "MVA, the grey one the asymptotes of the network. Dashes in the colour of a server are the "
        f"mean of simulated runs like the measured ones, for “{SINGLE.label}” the asymptotes of a "
        "single station."
    )
    return _over_n(title, told, label, [one for one in series if len(one.xs)], columns)


def _at_ns(of: Mapping[int, Item], told: Callable[[Item], str]) -> list[str | None]:
    return [told(of[n]) if n in of else None for n in NS]
