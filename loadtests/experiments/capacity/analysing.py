"""Makes the report: throughput over connections with its law, latency, shares, and tables."""

from collections.abc import Iterator, Sequence

from loadtests.experiments.capacity.cells import Cells, Configuration, read
from loadtests.experiments.capacity.findings import (
    chosen,
    findings,
    limit_per_s,
    shown_knee,
)
from loadtests.experiments.capacity.rounds import ENDPOINTS, NOTHING, QUESTIONS, judged
from loadtests.lab.repeated import Estimate, measured, rejected
from loadtests.lab.report.content import Figure, Metric, Report, Section, Table
from loadtests.lab.report.drawing import Axis, Series, Source, drawn
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


def _by_type(cells: Cells) -> dict[str, list[Configuration]]:
    found: dict[str, list[Configuration]] = {}
    for one in cells.configurations():
        found.setdefault(one.worker_type, []).append(one)
    return found


# --- figures ---------------------------------------------------------------------------------


def _connections_axis(cells: Cells) -> Axis:
    return Axis("Connections N", is_logarithmic=True, ticks=cells.populations())


def _throughput_figures(cells: Cells) -> Iterator[Figure]:
    for kind, of_type in _by_type(cells).items():
        series: list[Series] = []
        for at, one in enumerate(of_type):
            source = _SOURCES[at % len(_SOURCES)]
            found = [cells.throughput(one, QUESTIONS, n) for n in cells.populations()]
            name = f"{one.workers} worker{'s' if one.workers > 1 else ''}"
            series.append(measured(name, source, cells.populations(), found, shape="points"))
            series += _curve(cells, one, source)
        series += _rejected(cells, kind)
        yield Figure(
            f"Questions per second, workers of type {kind}",
            drawn(_connections_axis(cells), _throughput_axis(cells, of_type), series),
            f"Throughput over connections, with a colour for each number of {kind} workers. Dashed "
            "lines are the universal scalability law, grey crosses rejected rounds.",
            _numbers(cells, of_type),
        )


def _throughput_axis(cells: Cells, of_type: Sequence[Configuration]) -> Axis:
    """An axis that ends above the highest throughput. Intervals of two values may be longer."""
    kinds = {one.worker_type for one in of_type}
    reached = [one.throughput_per_s for one in cells.made if one.worker_type in kinds]
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


def _numbers(cells: Cells, of_type: Sequence[Configuration]) -> Table:
    heads = [f"{one}, 1/s" for one in of_type]
    rows = [
        [n, *(_value(cells.throughput(one, QUESTIONS, n)) for one in of_type)]
        for n in cells.populations()
    ]
    return Table("Mean throughput of the questions", ["N", *heads], rows)


def _value(found: Estimate | None) -> float | None:
    return found.value if found else None


def _types(cells: Cells) -> list[Configuration]:
    """A configuration of each type, all with the same number of workers."""
    workers = chosen(cells).workers
    return [one for one in cells.configurations() if one.workers == workers]


def _latency_figure(cells: Cells) -> Figure:
    ns, types = cells.populations(), _types(cells)
    series, columns = [], []
    for source, of in zip(_SOURCES, types, strict=False):
        p50s, p99s = (
            [_milliseconds(cells.middle(of, QUESTIONS, n, value)) for n in ns]
            for value in (lambda one: one.p50_s, lambda one: one.p99_s)
        )
        series += [
            Series(of.worker_type, source, ns, p99s),
            Series("", source, ns, p50s, shape="curve"),
        ]
        columns += [(f"{of.worker_type} p50, ms", p50s), (f"{of.worker_type} p99, ms", p99s)]
    rows = [[n, *(values[at] for _, values in columns)] for at, n in enumerate(ns)]
    return Figure(
        f"Latency of the questions, {types[0].workers} workers",
        drawn(_connections_axis(cells), Axis("Latency, ms", is_logarithmic=True), series),
        "Points are 99th percentiles, dashed lines medians; all are medians over rounds.",
        Table("Latency", ["N", *(name for name, _ in columns)], rows),
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _share_figure(cells: Cells) -> Figure:
    ns, types = cells.populations(), _types(cells)
    shares = {of: [cells.share_of_nothing(of, n) for n in ns] for of in types}
    series = [
        measured(of.worker_type, source, ns, found)
        for source, (of, found) in zip(_SOURCES, shares.items(), strict=False)
    ]
    rows = [[n, *(_value(found[at]) for found in shares.values())] for at, n in enumerate(ns)]
    return Figure(
        f"Share of the empty endpoint, {types[0].workers} workers",
        drawn(
            _connections_axis(cells),
            Axis("X of the questions / X of nothing", limits=(0, MOST_SHARE)),
            series,
        ),
        "Throughput of the questions divided by that of an endpoint that does nothing. The gap to "
        "1 is the work of the questions; the rest is HTTP.",
        Table("Shares", ["N", *(of.worker_type for of in types)], rows),
    )


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
    for of in cells.configurations():
        yield Table(
            str(of),
            (
                "N",
                "Questions X, 1/s",
                "±",
                "Nothing X, 1/s",
                "±",
                "Share",
                "p50, ms",
                "p99, ms",
                "D, µs",
                "Service, cores",
                "Generator, cores",
                "X·R/N",
                "Rounds",
            ),
            [_row(cells, of, n) for n in cells.populations()],
        )


def _row(cells: Cells, of: Configuration, n: int) -> Sequence[str | float | None]:
    asked, nothing = (cells.throughput(of, endpoint, n) for endpoint in ENDPOINTS)

    def middle(name: str, scale: float = 1.0) -> float | None:
        found = cells.middle(of, QUESTIONS, n, lambda one: getattr(one, name))
        return None if found is None else found * scale

    made = sum(
        (one.worker_type, one.workers, one.endpoint, one.connections)
        == (of.worker_type, of.workers, QUESTIONS, n)
        for one in cells.made
    )
    return (
        n,
        _value(asked),
        asked.half_width if asked else None,
        _value(nothing),
        nothing.half_width if nothing else None,
        _value(cells.share_of_nothing(of, n)),
        middle("p50_s", 1000),
        middle("p99_s", 1000),
        middle("demand_s", 1e6),
        middle("server_cores"),
        middle("generator_cores"),
        middle("customers_seen", 1 / n),
        f"{len(cells.rounds(of, QUESTIONS, n))} of {made}",
    )


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
