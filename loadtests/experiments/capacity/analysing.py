"""Makes the report: what to choose, throughput with its law, latency, shares, and tables."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from loadtests.experiments.capacity.cells import Cells, Curve, read
from loadtests.experiments.capacity.measuring import NOTHING, QUESTIONS, Configuration, Round
from loadtests.grouping import grouped
from loadtests.lab.content import Column, Figure, Metric, Report, Section, Table, times
from loadtests.lab.repeated import Estimate, measured, rejected
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results

DEFAULT_WORKERS = 2
COMPETING = 0.9  # service and generator compete if they use more than this share of all cores
LITTLE_TOLERANCE = 0.05
HEADROOM, MOST_SHARE = 1.1, 1.5  # of axes
_CURVE_POINTS = 60
_SOURCES: Sequence[Source] = ("ours", "second", "third", "fourth")
_TOLD = {QUESTIONS: "the three questions", NOTHING: "the empty endpoint"}


def analyse(results: Results) -> Report:
    """Make the report from the table `rounds` alone. Raises ResultsError if it is missing."""
    cells = read(results)
    types = _with_default_workers(cells)
    of_types = [_latency_figure(cells, types), _share_figure(cells, types)]
    sections = [
        Section("Throughput", [_CLOSED, _LIMITS], list(_throughput_figures(cells))),
        Section("Types of workers", parts=of_types),
        Section("Universal scalability law", [_LAW], [_laws(cells)]),
        Section("Every configuration", [_COLUMNS], list(_tables(cells))),
    ]
    return Report(findings(cells), sections, list(_metrics(cells)))


_CLOSED = (
    "This is a closed system: each connection asks again as soon as it has its answer, without "
    "thinking. So there are never more requests in the system than connections, throughput cannot "
    "exceed the capacity of the service, and latency grows with N because N requests wait, not "
    "because requests come too fast."
)
_LIMITS = (
    "This does not show clients that are slow or far away (a sync worker serves one at a time, "
    "however slow), open load with its bursts, writes, questions that are computed anew (the "
    "service keeps answers; the benchmark measures it without), or hours of load."
)
_LAW = (
    "X(N) = λN/(1 + σ(N−1) + κN(N−1)), fitted to all rounds that count. λ: throughput of one "
    "connection; σ: share of work that must be done one at a time; κ: cost of each connection for "
    "each other one. N* = √((1−σ)/κ) is the number of connections with the highest throughput, "
    "1/σ the number from which contention is the limit. The interval is from a bootstrap with "
    "the spread of all rounds; of an end beyond the measured range only this is known."
)
_COLUMNS = (
    "X: throughput, ± the half-width of its 95 % interval over turns. p50, p99: latency of the "
    "questions, medians over rounds. D: processor time of the service for one question. X·R/N is 1 "
    "if every connection has a request under way all the time. Rounds: accepted ones of all."
)


# --- findings --------------------------------------------------------------------------------


def findings(cells: Cells) -> list[str]:
    """All sentences, beginning with what to choose."""
    types = _with_default_workers(cells)
    return [
        *_what_counts(cells),
        *_worker_type(cells, types),
        *_slowest(cells, types),
        *_capacity(cells, cells.curve(types[0])),  # the service's own type, if that was measured
        *_under_way(cells),
    ]


def _with_default_workers(cells: Cells) -> list[Configuration]:
    """A configuration of each type, all with the same number of workers."""
    counts = {one.workers for one in cells.configurations}
    workers = DEFAULT_WORKERS if DEFAULT_WORKERS in counts else min(counts)
    return [one for one in cells.configurations if one.workers == workers]


def _what_counts(cells: Cells) -> Iterator[str]:
    made, accepted = len(cells.made), len(cells.accepted)
    if accepted < made:
        yield (
            f"{made - accepted} of {made} rounds were rejected by rule; they are kept and listed, "
            "but count nowhere below."
        )
    if 2 * accepted < made:
        yield "More than half were rejected: the machine was too busy for reliable results."


def _worker_type(cells: Cells, types: Sequence[Configuration]) -> Iterator[str]:
    """Tell which type answers most, as far as the intervals decide it."""
    for one in types:
        compared = {
            other.worker_type: found
            for other in types
            if other != one and (found := cells.times_faster(one, other))
        }
        if not compared or len(compared) < len(types) - 1:
            continue
        told = " and ".join(f"{found} times as many as {kind}" for kind, found in compared.items())
        if all(found.low is not None and found.low > 1 for found in compared.values()):
            yield (
                f"Choose workers of type {one.worker_type}: {one} answer {told} (geometric mean "
                "over all numbers of connections)."
            )
            return
        if all(found.value >= 1 for found in compared.values()):
            yield (
                f"{one} answered most questions: {told}. Not every interval is known and above 1, "
                "so throughput does not decide."
            )
            return


def _slowest(cells: Cells, types: Sequence[Configuration]) -> Iterator[str]:
    n = cells.populations[-1]
    known = [
        f"{p99_s * 1000:,.3g} ms ({of.worker_type})"
        for of in types
        if (p99_s := cells.curve(of).middle(n, lambda one: one.p99_s)) is not None
    ]
    if known:
        told = ", ".join(known)
        yield f"With {n} connections, 99 % of the questions were answered within {told}."


def _capacity(cells: Cells, curve: Curve) -> Iterator[str]:
    """Tell the knee, the best N, and whether service and generator compete for cores there."""
    of, law, knee = curve.of, curve.scaling.law, curve.scaling.knee
    most = cells.populations[-1]
    if law is None:
        yield f"Too few numbers of connections count to fit a law to {of}."
    else:
        is_within = law.knee <= most
        peak = f"is highest at N* = {law.knee:.3g}" if is_within else f"has no peak within {most}"
        within = f" (95 %: {_knees(knee, most)})" if knee else ""
        yield (
            f"{of}: the universal scalability law fits with λ = {law.rate_per_s:,.0f}/s, "
            f"σ = {law.contention:.3g}, κ = {law.coherency:.2g}. Throughput {peak} "
            f"connections{within}."
        )
    if curve.peak is None:
        return
    n, found = curve.peak
    if share := cells.share_of_nothing(of, n):
        yield (
            f"{of} answered most questions with {n} connections: {found} per second, {share} times "
            "what the empty endpoint answers."
        )
    cores, limit = cells.made[0].cores, curve.limit_per_s(n)
    server = curve.middle(n, lambda one: one.server_cores) or 0.0
    generator = curve.middle(n, lambda one: one.generator_cores) or 0.0
    used = f"With {n} connections {of} used {server:.2f} cores and the generator {generator:.2f}"
    bound = f"{limit:,.0f} per second at most (min(workers, cores)/D)" if limit else "more"
    if server + generator > COMPETING * cores:
        yield (
            f"{used}, of {cores} in all: they compete, and this is the throughput of both on one "
            f"machine. With the generator on another machine the service could answer {bound}."
        )
    else:
        yield (
            f"{used}, of {cores} in all: the generator did not take cores that the service needed. "
            f"By its demand of processor time the service could answer {bound}."
        )


def _knees(knees: Sequence[float], most: int) -> str:
    """Knees as text. One beyond the measured range is only known to lie there."""
    return " to ".join(f"{knee:.3g}" if knee <= most else f"beyond {most}" for knee in knees)


def _under_way(cells: Cells) -> Iterator[str]:
    """Tell whether connections always had a request under way: X·R = N in the rounds that count.

    It is a check of the generator and not of a law: without thinking, X·R = N holds for any server.
    """
    for kind, of in sorted(grouped(cells.accepted, lambda one: one.worker_type).items()):
        shares = [share for one in of if (share := one.share_under_way) is not None]
        if not shares:
            continue
        off = sum(abs(share - 1) > LITTLE_TOLERANCE for share in shares)
        told = f"{kind}: X·R is {min(shares):.2f} to {max(shares):.2f} of N"
        if not off:
            yield f"{told} in {len(shares)} rounds, so connections always had a request under way."
        else:
            yield (
                f"{told}, off by more than {LITTLE_TOLERANCE * 100:g} % in {off} of {len(shares)} "
                "rounds. The difference is time that the generator does not count as latency: "
                "opening a new connection, or waiting for an answer that did not come before the "
                "round ended."
            )


# --- figures ---------------------------------------------------------------------------------


def _throughput_figures(cells: Cells) -> Iterator[Figure]:
    ns = cells.populations
    by_type = grouped(cells.configurations, lambda one: one.worker_type)
    for kind, of_type in by_type.items():
        series, columns = list[Series](), [_N]
        for at, one in enumerate(of_type):
            source, curve = _SOURCES[at % len(_SOURCES)], cells.curve(one)
            name = f"{one.workers} worker{'s' if one.workers > 1 else ''}"
            found = list(map(curve.throughput, ns))
            series.append(measured(name, source, ns, found, shape="points"))
            series += _law_drawn(curve, ns, source)
            columns.append((f"{one}, 1/s", _values(curve.throughput)))
        made = [one for one in cells.made if one.worker_type == kind]
        without = [one for one in made if one.endpoint == QUESTIONS and not one.verdict.accepted]
        series += rejected(
            [one.connections for one in without], [one.throughput_per_s for one in without]
        )
        highest_per_s = max(one.throughput_per_s for one in made)  # intervals of two are longer
        yield figure(
            f"Questions per second, workers of type {kind}",
            f"Throughput over connections, with a colour for each number of {kind} workers. Dashed "
            "lines are the universal scalability law, grey crosses rejected rounds.",
            Axis("Connections N", is_logarithmic=True, ticks=ns),
            Axis("Throughput X, 1/s", limits=(0, HEADROOM * highest_per_s)),
            series,
            Table.of("Mean throughput of the questions", ns, columns),
        )


def _law_drawn(curve: Curve, ns: Sequence[int], source: Source) -> list[Series]:
    law = curve.scaling.law
    if law is None:
        return []
    step = (ns[-1] / ns[0]) ** (1 / _CURVE_POINTS)
    xs = [ns[0] * step**at for at in range(_CURVE_POINTS + 1)]
    return [Series("", source, xs, list(map(law.throughput_per_s, xs)), shape="curve")]


def _latency_figure(cells: Cells, types: Sequence[Configuration]) -> Figure:
    ns, series, columns = cells.populations, list[Series](), [_N]
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
        Axis("Connections N", is_logarithmic=True, ticks=ns),
        Axis("Latency, ms", is_logarithmic=True),
        series,
        Table.of("Latency", ns, columns),
    )


def _share_figure(cells: Cells, types: Sequence[Configuration]) -> Figure:
    ns, series, columns = cells.populations, list[Series](), [_N]
    for source, of in zip(_SOURCES, types, strict=False):
        share = partial(cells.share_of_nothing, of)
        series.append(measured(of.worker_type, source, ns, list(map(share, ns))))
        columns.append((of.worker_type, _values(share)))
    return figure(
        f"Share of the empty endpoint, {types[0].workers} workers",
        "Throughput of the questions divided by that of an endpoint that does nothing. The gap to "
        "1 is the work of the questions; the rest is HTTP.",
        Axis("Connections N", is_logarithmic=True, ticks=ns),
        Axis("X of the questions / X of nothing", limits=(0, MOST_SHARE)),
        series,
        Table.of("Shares", ns, columns),
    )


# --- tables ----------------------------------------------------------------------------------


OfN = Callable[[int], float | None]
_N: Column[int] = "N", lambda n: n


def _values(of: Callable[[int], Estimate | None], what: str = "value") -> OfN:
    """The means of an estimate at each N, or what else it has."""
    return lambda n: getattr(of(n), what, None)


def _middle(curve: Curve, value: Callable[[Round], float | None], factor: float = 1) -> OfN:
    """The medians of a value of the rounds at each N, times `factor`."""
    return lambda n: times(factor, curve.middle(n, value))


def _laws(cells: Cells) -> Table:
    most = cells.populations[-1]
    return Table.of(
        "The law of each configuration",
        [
            (of, law, of.peak, of.scaling.knee if of.endpoint == QUESTIONS else None)
            for of in cells.curves
            if (law := of.scaling.law) and of.peak
        ],
        [
            ("Workers", lambda row: str(row[0].of)),
            ("Asked", lambda row: _TOLD[row[0].endpoint]),
            ("λ, 1/s", lambda row: row[1].rate_per_s),
            ("σ", lambda row: row[1].contention),
            ("κ", lambda row: row[1].coherency),
            ("1/σ", lambda row: 1 / row[1].contention if row[1].contention else None),
            ("Knee N*", lambda row: _knees([row[1].knee], most)),
            ("95 %", lambda row: _knees(row[3], most) if row[3] else None),
            ("Best N", lambda row: row[2][0]),
            ("X there, 1/s", lambda row: row[2][1].value),
            ("Limit min(m, cores)/D, 1/s", lambda row: row[0].limit_per_s(row[2][0])),
        ],
        "Configurations with too few numbers of connections that count are left out.",
    )


def _tables(cells: Cells) -> Iterator[Table]:
    for of in cells.configurations:
        asked, nothing = cells.curve(of), cells.curve(of, NOTHING)
        yield Table.of(
            str(of),
            cells.populations,
            [
                _N,
                ("Questions X, 1/s", _values(asked.throughput)),
                ("±", _values(asked.throughput, "half_width")),
                ("Nothing X, 1/s", _values(nothing.throughput)),
                ("±", _values(nothing.throughput, "half_width")),
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


def _metrics(cells: Cells) -> Iterator[Metric]:
    for curve in cells.curves:
        if curve.peak is None:
            continue
        (n, found), at = curve.peak, f"{curve.of.worker_type},{curve.of.workers}"
        yield found.metric(f"throughput_peak[{at},{curve.endpoint}]", "1/s")
        if curve.endpoint == QUESTIONS and (share := cells.share_of_nothing(curve.of, n)):
            yield share.metric(f"share_of_nothing[{at}]", "")
        demand_s = curve.middle(n, lambda one: one.demand_s)
        if demand_s is not None:
            yield Metric(f"demand[{at},{curve.endpoint}]", demand_s, "s")
