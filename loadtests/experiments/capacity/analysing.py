"""Makes the report: throughput over connections with its law, latency, shares, and tables."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from loadtests.experiments.capacity.cells import Cells, Curve, read
from loadtests.experiments.capacity.findings import (
    findings,
    shown_ends,
    shown_knee,
    with_default_workers,
)
from loadtests.experiments.capacity.rounds import (
    ENDPOINTS,
    NOTHING,
    QUESTIONS,
    Round,
    judged,
)
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, measured, rejected
from loadtests.lab.report.content import Column, Figure, Metric, Report, Section, Table, times
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results

_SOURCES: Sequence[Source] = ("ours", "second", "third", "fourth")
_CURVE_POINTS = 60
HEADROOM = 1.1
MOST_SHARE = 1.5
_TOLD = {QUESTIONS: "the three questions", NOTHING: "the empty endpoint"}

CLOSED = (
    "This is a closed system: each connection asks again as soon as it has its answer, without "
    "thinking. So there are never more requests in the system than connections, throughput cannot "
    "exceed the capacity of the service, and latency grows with N because N requests wait, not "
    "because requests come too fast."
)
LIMITS = (
    "This does not show clients that are slow or far away (a sync worker serves one at a time, "
    "however slow), open load with its bursts, writes, questions that are computed anew (the "
    "service keeps answers; the benchmark measures it without), or hours of load."
)


def analyse(results: Results) -> Report:
    """Make the report from the table `rounds` alone. Raises ResultsError if it is missing."""
    cells = read(results)
    return Report(
        findings=findings(cells),
        sections=[
            Section("Throughput", [CLOSED, LIMITS], list(_throughput_figures(cells))),
            Section("Types of workers", parts=[_latency_figure(cells), _share_figure(cells)]),
            Section("Universal scalability law", [_LAW], [_laws(cells)]),
            Section("Every configuration", [_COLUMNS_TOLD], list(_tables(cells))),
        ],
        metrics=list(_metrics(cells)),
    )


_LAW = (
    "X(N) = λN/(1 + σ(N−1) + κN(N−1)), fitted to all rounds that count. λ: throughput of one "
    "connection; σ: share of work that must be done one at a time; κ: cost of each connection for "
    "each other one. N* = √((1−σ)/κ) is the number of connections with the highest throughput, "
    "1/σ the number from which contention is the limit. The interval is from a bootstrap with "
    "the spread of all rounds; of an end beyond the measured range only this is known."
)
_COLUMNS_TOLD = (
    "X: throughput, ± the half-width of its 95 % interval over turns. p50, p99: latency of the "
    "questions, medians over rounds. D: processor time of the service for one question. X·R/N is 1 "
    "if every connection has a request under way all the time. Rounds: accepted ones of all."
)


# --- figures ---------------------------------------------------------------------------------


def _connections_axis(cells: Cells) -> Axis:
    return Axis("Connections N", is_logarithmic=True, ticks=cells.populations())


def _throughput_figures(cells: Cells) -> Iterator[Figure]:
    ns = cells.populations()
    by_type = grouped(cells.configurations(), lambda one: one.worker_type)
    for kind, of_type in by_type.items():
        series: list[Series] = []
        for at, one in enumerate(of_type):
            source, curve = _SOURCES[at % len(_SOURCES)], cells.curve(one)
            name = f"{one.workers} worker{'s' if one.workers > 1 else ''}"
            found = list(map(curve.throughput, ns))
            series.append(measured(name, source, ns, found, shape="points"))
            series += _law_drawn(curve, ns, source)
        series += _rejected(cells, kind)
        yield figure(
            f"Questions per second, workers of type {kind}",
            f"Throughput over connections, with a colour for each number of {kind} workers. Dashed "
            "lines are the universal scalability law, grey crosses rejected rounds.",
            _connections_axis(cells),
            _throughput_axis(cells, kind),
            series,
            Table.of(
                "Mean throughput of the questions",
                ns,
                [_N, *((f"{one}, 1/s", _values(cells.curve(one).throughput)) for one in of_type)],
            ),
        )


def _throughput_axis(cells: Cells, kind: str) -> Axis:
    """An axis that ends above the highest throughput. Intervals of two values may be longer."""
    reached = [one.throughput_per_s for one in cells.made if one.worker_type == kind]
    return Axis("Throughput X, 1/s", limits=(0, HEADROOM * max(reached)))


def _law_drawn(curve: Curve, ns: Sequence[int], source: Source) -> list[Series]:
    law = curve.law()
    if law is None:
        return []
    step = (ns[-1] / ns[0]) ** (1 / _CURVE_POINTS)
    xs = [ns[0] * step**at for at in range(_CURVE_POINTS + 1)]
    return [Series("", source, xs, [law.throughput_per_s(x) for x in xs], shape="curve")]


def _rejected(cells: Cells, kind: str) -> list[Series]:
    rounds = [
        one
        for one in cells.made
        if (one.worker_type, one.endpoint) == (kind, QUESTIONS) and not judged(one).accepted
    ]
    return rejected([one.connections for one in rounds], [one.throughput_per_s for one in rounds])


def _latency_figure(cells: Cells) -> Figure:
    ns, types = cells.populations(), with_default_workers(cells)
    series: list[Series] = []
    columns: list[Column[int]] = [_N]
    for source, of in zip(_SOURCES, types, strict=False):
        p50 = _middle(cells.curve(of), lambda one: one.p50_s, 1000)
        p99 = _middle(cells.curve(of), lambda one: one.p99_s, 1000)
        series += [
            Series(of.worker_type, source, ns, list(map(p99, ns))),
            Series("", source, ns, list(map(p50, ns)), shape="curve"),
        ]
        columns += [(f"{of.worker_type} p50, ms", p50), (f"{of.worker_type} p99, ms", p99)]
    return figure(
        f"Latency of the questions, {types[0].workers} workers",
        "Points are 99th percentiles, dashed lines medians; all are medians over rounds.",
        _connections_axis(cells),
        Axis("Latency, ms", is_logarithmic=True),
        series,
        Table.of("Latency", ns, columns),
    )


def _share_figure(cells: Cells) -> Figure:
    ns, types = cells.populations(), with_default_workers(cells)
    shares = {of.worker_type: partial(cells.share_of_nothing, of) for of in types}
    series = [
        measured(kind, source, ns, list(map(share, ns)))
        for source, (kind, share) in zip(_SOURCES, shares.items(), strict=False)
    ]
    return figure(
        f"Share of the empty endpoint, {types[0].workers} workers",
        "Throughput of the questions divided by that of an endpoint that does nothing. The gap to "
        "1 is the work of the questions; the rest is HTTP.",
        _connections_axis(cells),
        Axis("X of the questions / X of nothing", limits=(0, MOST_SHARE)),
        series,
        Table.of("Shares", ns, [_N, *((kind, _values(share)) for kind, share in shares.items())]),
    )


# --- cells of tables with a row for each N ---------------------------------------------------


OfN = Callable[[int], float | None]
_N: Column[int] = "N", lambda n: n


def _values(of: Callable[[int], Estimate | None]) -> OfN:
    """The means of an estimate at each N."""
    return lambda n: found.value if (found := of(n)) else None


def _half_widths(of: Callable[[int], Estimate | None]) -> OfN:
    """The half-widths of an estimate's interval at each N."""
    return lambda n: found.half_width if (found := of(n)) else None


def _middle(curve: Curve, value: Callable[[Round], float | None], factor: float = 1) -> OfN:
    """The medians of a value of the rounds at each N, times `factor`."""
    return lambda n: times(factor, curve.middle(n, value))


# --- tables ----------------------------------------------------------------------------------


def _laws(cells: Cells) -> Table:
    most = cells.populations()[-1]
    rows = []
    for of in cells.configurations():
        for endpoint in ENDPOINTS:
            curve = cells.curve(of, endpoint)
            law, peak = curve.law(), curve.peak()
            if law is None or peak is None:
                continue
            interval = curve.knee() if endpoint == QUESTIONS else None
            rows.append(
                (
                    str(of),
                    _TOLD[endpoint],
                    law.rate_per_s,
                    law.contention,
                    law.coherency,
                    1 / law.contention if law.contention else None,
                    shown_knee(law.knee, most),
                    shown_ends(interval, most) if interval else None,
                    peak[0],
                    peak[1].value,
                    curve.limit_per_s(peak[0]),
                )
            )
    return Table(
        "The law of each configuration",
        (
            "Workers",
            "Asked",
            "λ, 1/s",
            "σ",
            "κ",
            "1/σ",
            "Knee N*",
            "95 %",
            "Best N",
            "X there, 1/s",
            "Limit min(m, cores)/D, 1/s",
        ),
        rows,
        "Configurations with too few numbers of connections that count are left out.",
    )


def _tables(cells: Cells) -> Iterator[Table]:
    for of in cells.configurations():
        asked, nothing = cells.curve(of), cells.curve(of, NOTHING)
        yield Table.of(
            str(of),
            cells.populations(),
            [
                _N,
                ("Questions X, 1/s", _values(asked.throughput)),
                ("±", _half_widths(asked.throughput)),
                ("Nothing X, 1/s", _values(nothing.throughput)),
                ("±", _half_widths(nothing.throughput)),
                ("Share", _values(partial(cells.share_of_nothing, of))),
                ("p50, ms", _middle(asked, lambda one: one.p50_s, 1000)),
                ("p99, ms", _middle(asked, lambda one: one.p99_s, 1000)),
                ("D, µs", _middle(asked, lambda one: one.demand_s, 1e6)),
                ("Service, cores", _middle(asked, lambda one: one.server_cores)),
                ("Generator, cores", _middle(asked, lambda one: one.generator_cores)),
                ("X·R/N", _middle(asked, lambda one: one.share_under_way)),
                ("Rounds", asked.counted),
            ],
        )


# --- for comparisons -------------------------------------------------------------------------


def _metrics(cells: Cells) -> Iterator[Metric]:
    for of in cells.configurations():
        at = f"{of.worker_type},{of.workers}"
        for endpoint in ENDPOINTS:
            curve = cells.curve(of, endpoint)
            if peak := curve.peak():
                n, found = peak
                name = f"throughput_peak[{at},{endpoint}]"
                yield found.metric(name, "1/s")
                if endpoint == QUESTIONS and (share := cells.share_of_nothing(of, n)):
                    yield share.metric(f"share_of_nothing[{at}]", "")
                demand_s = curve.middle(n, lambda one: one.demand_s)
                if demand_s is not None:
                    yield Metric(f"demand[{at},{endpoint}]", demand_s, "s")
