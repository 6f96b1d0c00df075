"""Makes the report: throughput over connections with its law, latency, shares, and tables."""

from collections.abc import Callable, Iterator, Sequence

from loadtests.experiments.capacity.cells import Cells, read
from loadtests.experiments.capacity.findings import (
    findings,
    limit_per_s,
    shown_knee,
    with_default_workers,
)
from loadtests.experiments.capacity.rounds import (
    ENDPOINTS,
    NOTHING,
    QUESTIONS,
    Configuration,
    Round,
    judged,
)
from loadtests.grouping import grouped
from loadtests.lab.repeated import Estimate, measured, rejected
from loadtests.lab.report.content import Column, Figure, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.report.words import times
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
            source = _SOURCES[at % len(_SOURCES)]
            found = [cells.throughput(one, QUESTIONS, n) for n in ns]
            name = f"{one.workers} worker{'s' if one.workers > 1 else ''}"
            series.append(measured(name, source, ns, found, shape="points"))
            series += _curve(cells, one, source)
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
                [("N", lambda n: n), *(_throughput(cells, of, f"{of}, 1/s") for of in of_type)],
            ),
        )


def _throughput(
    cells: Cells, of: Configuration, title: str, endpoint: str = QUESTIONS
) -> Column[int]:
    return title, lambda n: _value(cells.throughput(of, endpoint, n))


def _throughput_axis(cells: Cells, kind: str) -> Axis:
    """An axis that ends above the highest throughput. Intervals of two values may be longer."""
    reached = [one.throughput_per_s for one in cells.made if one.worker_type == kind]
    return Axis("Throughput X, 1/s", limits=(0, HEADROOM * max(reached)))


def _curve(cells: Cells, of: Configuration, source: Source) -> list[Series]:
    law = cells.law(of, QUESTIONS)
    if law is None:
        return []
    first, last = cells.populations()[0], cells.populations()[-1]
    step = (last / first) ** (1 / _CURVE_POINTS)
    xs = [first * step**at for at in range(_CURVE_POINTS + 1)]
    return [Series("", source, xs, [law.throughput_per_s(x) for x in xs], shape="curve")]


def _rejected(cells: Cells, kind: str) -> list[Series]:
    rounds = [
        one
        for one in cells.made
        if (one.worker_type, one.endpoint) == (kind, QUESTIONS) and not judged(one).accepted
    ]
    return rejected([one.connections for one in rounds], [one.throughput_per_s for one in rounds])


def _value(found: Estimate | None) -> float | None:
    return found.value if found else None


def _latency_figure(cells: Cells) -> Figure:
    ns, types = cells.populations(), with_default_workers(cells)
    series: list[Series] = []
    columns: list[Column[int]] = [("N", lambda n: n)]
    for source, of in zip(_SOURCES, types, strict=False):
        p50 = _middle(cells, of, f"{of.worker_type} p50, ms", lambda one: one.p50_s, 1000)
        p99 = _middle(cells, of, f"{of.worker_type} p99, ms", lambda one: one.p99_s, 1000)
        series += [
            Series(of.worker_type, source, ns, [p99[1](n) for n in ns]),
            Series("", source, ns, [p50[1](n) for n in ns], shape="curve"),
        ]
        columns += [p50, p99]
    return figure(
        f"Latency of the questions, {types[0].workers} workers",
        "Points are 99th percentiles, dashed lines medians; all are medians over rounds.",
        _connections_axis(cells),
        Axis("Latency, ms", is_logarithmic=True),
        series,
        Table.of("Latency", ns, columns),
    )


def _middle(
    cells: Cells,
    of: Configuration,
    title: str,
    value: Callable[[Round], float | None],
    factor: float = 1.0,
) -> tuple[str, Callable[[int], float | None]]:
    """A column with the median of a value of the questions, at each N, times `factor`."""
    return title, lambda n: times(factor, cells.middle(of, QUESTIONS, n, value))


def _share_figure(cells: Cells) -> Figure:
    ns, types = cells.populations(), with_default_workers(cells)
    series = [
        measured(of.worker_type, source, ns, [cells.share_of_nothing(of, n) for n in ns])
        for source, of in zip(_SOURCES, types, strict=False)
    ]
    return figure(
        f"Share of the empty endpoint, {types[0].workers} workers",
        "Throughput of the questions divided by that of an endpoint that does nothing. The gap to "
        "1 is the work of the questions; the rest is HTTP.",
        _connections_axis(cells),
        Axis("X of the questions / X of nothing", limits=(0, MOST_SHARE)),
        series,
        Table.of(
            "Shares",
            ns,
            [("N", lambda n: n), *(_share(cells, of, of.worker_type) for of in types)],
        ),
    )


def _share(cells: Cells, of: Configuration, title: str) -> Column[int]:
    return title, lambda n: _value(cells.share_of_nothing(of, n))


# --- tables ----------------------------------------------------------------------------------


def _laws(cells: Cells) -> Table:
    most = cells.populations()[-1]
    rows = []
    for of in cells.configurations():
        for endpoint in ENDPOINTS:
            law, peak = cells.law(of, endpoint), cells.peak(of, endpoint)
            if law is None or peak is None:
                continue
            interval = cells.knee(of, endpoint) if endpoint == QUESTIONS else None
            ends = (interval.low, interval.high) if interval else ()
            rows.append(
                (
                    str(of),
                    _TOLD[endpoint],
                    law.rate_per_s,
                    law.contention,
                    law.coherency,
                    1 / law.contention if law.contention else None,
                    shown_knee(law.knee, most),
                    " to ".join(shown_knee(end, most) for end in ends) or None,
                    peak[0],
                    peak[1].value,
                    limit_per_s(cells, of, endpoint, peak[0]),
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
    return (_table(cells, of) for of in cells.configurations())


def _table(cells: Cells, of: Configuration) -> Table:
    def half_width(endpoint: str) -> Column[int]:
        return "±", lambda n: _half_width(cells.throughput(of, endpoint, n))

    return Table.of(
        str(of),
        cells.populations(),
        [
            ("N", lambda n: n),
            _throughput(cells, of, "Questions X, 1/s"),
            half_width(QUESTIONS),
            _throughput(cells, of, "Nothing X, 1/s", NOTHING),
            half_width(NOTHING),
            _share(cells, of, "Share"),
            _middle(cells, of, "p50, ms", lambda one: one.p50_s, 1000),
            _middle(cells, of, "p99, ms", lambda one: one.p99_s, 1000),
            _middle(cells, of, "D, µs", lambda one: one.demand_s, 1e6),
            _middle(cells, of, "Service, cores", lambda one: one.server_cores),
            _middle(cells, of, "Generator, cores", lambda one: one.generator_cores),
            _middle(cells, of, "X·R/N", lambda one: times(1 / one.connections, one.customers_seen)),
            ("Rounds", lambda n: cells.counted(of, QUESTIONS, n)),
        ],
    )


def _half_width(found: Estimate | None) -> float | None:
    return found.half_width if found else None


# --- for comparisons -------------------------------------------------------------------------


def _metrics(cells: Cells) -> Iterator[Metric]:
    for of in cells.configurations():
        at = f"{of.worker_type},{of.workers}"
        for endpoint in ENDPOINTS:
            if peak := cells.peak(of, endpoint):
                n, found = peak
                name = f"throughput_peak[{at},{endpoint}]"
                yield found.metric(name, "1/s")
                if endpoint == QUESTIONS and (share := cells.share_of_nothing(of, n)):
                    yield share.metric(f"share_of_nothing[{at}]", "")
                demand_s = cells.middle(of, endpoint, n, lambda one: one.demand_s)
                if demand_s is not None:
                    yield Metric(f"demand[{at},{endpoint}]", demand_s, "s")
