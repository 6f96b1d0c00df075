"""Writes sentences about the rounds: the best type of workers, the knee, limits and doubts."""

from collections.abc import Iterator

from loadtests.experiments.capacity.cells import Cells
from loadtests.experiments.capacity.rounds import QUESTIONS, Configuration
from loadtests.lab.repeated import Estimate
from loadtests.models import laws
from loadtests.models.scalability import ScalabilityLaw

DEFAULT_WORKERS = 2
COMPETING = 0.9  # service and generator compete if they use more than this share of all cores
LITTLE_TOLERANCE = 0.05


def chosen(cells: Cells) -> Configuration:
    """The service's own type with its own number of workers, or the first that was measured."""
    return with_default_workers(cells)[0]


def with_default_workers(cells: Cells) -> list[Configuration]:
    """A configuration of each type, all with the same number of workers."""
    every = cells.configurations()
    counts = {one.workers for one in every}
    workers = DEFAULT_WORKERS if DEFAULT_WORKERS in counts else min(counts)
    return [one for one in every if one.workers == workers]


def findings(cells: Cells) -> list[str]:
    """All sentences, beginning with what to choose."""
    of = chosen(cells)
    return [
        *_what_counts(cells),
        *_worker_type(cells),
        *_slowest(cells),
        *_knee(cells, of),
        *_share(cells, of),
        *_generator(cells, of),
        *_under_way(cells),
    ]


def _what_counts(cells: Cells) -> Iterator[str]:
    made, accepted = len(cells.made), len(cells.accepted)
    if accepted < made:
        yield (
            f"{made - accepted} of {made} rounds were rejected by rule; they are kept and listed, "
            "but count nowhere below."
        )
    if 2 * accepted < made:
        yield "More than half were rejected: the machine was too busy for reliable results."


def _worker_type(cells: Cells) -> Iterator[str]:
    """Tell which type answers most, as far as the intervals decide it."""
    types = with_default_workers(cells)
    best, told = None, []
    for one in types:
        compared = {
            other: found
            for other in types
            if other != one and (found := cells.times_faster(one, other))
        }
        if len(compared) == len(types) - 1 > 0 and all(
            found.value >= 1 for found in compared.values()
        ):
            best = one
            told = [f"{found} times as many as {o.worker_type}" for o, found in compared.items()]
            if all(_is_above_one(found) for found in compared.values()):
                yield (
                    f"Choose workers of type {one.worker_type}: {one} answer "
                    f"{' and '.join(told)} (geometric mean over all numbers of connections)."
                )
                return
    if best:
        yield (
            f"{best} answered most questions: {' and '.join(told)}. Not every interval is known "
            "and above 1, so throughput does not decide."
        )


def _is_above_one(found: Estimate) -> bool:
    return found.low is not None and found.low > 1


def _slowest(cells: Cells) -> Iterator[str]:
    n = cells.populations()[-1]
    known = [
        f"{p99_s * 1000:,.3g} ms ({of.worker_type})"
        for of in with_default_workers(cells)
        if (p99_s := cells.middle(of, QUESTIONS, n, lambda r: r.p99_s)) is not None
    ]
    if known:
        told = ", ".join(known)
        yield f"With {n} connections, 99 % of the questions were answered within {told}."


def _knee(cells: Cells, of: Configuration) -> Iterator[str]:
    law = cells.law(of, QUESTIONS)
    if law is None:
        yield f"Too few numbers of connections count to fit a law to {of}."
        return
    yield (
        f"{of}: the universal scalability law fits with λ = {law.rate_per_s:,.0f}/s, "
        f"σ = {law.contention:.3g}, κ = {law.coherency:.2g}. {_about_the_knee(cells, of, law)}"
    )


def _about_the_knee(cells: Cells, of: Configuration, law: ScalabilityLaw) -> str:
    most = cells.populations()[-1]
    interval = cells.knee(of, QUESTIONS)
    within = (
        f" (95 %: {shown_knee(interval.low, most)} to {shown_knee(interval.high, most)})"
        if interval
        else ""
    )
    if law.knee > most:
        return f"Throughput has no peak within {most} connections{within}."
    return f"Throughput is highest at N* = {law.knee:.3g} connections{within}."


def shown_knee(knee: float, most: int) -> str:
    """A knee as text. One beyond the measured range is only known to lie there."""
    return f"{knee:.3g}" if knee <= most else f"beyond {most}"


def _share(cells: Cells, of: Configuration) -> Iterator[str]:
    peak = cells.peak(of, QUESTIONS)
    share = cells.share_of_nothing(of, peak[0]) if peak else None
    if peak and share:
        yield (
            f"{of} answered most questions with {peak[0]} connections: {peak[1]} per second, "
            f"{share} times what the empty endpoint answers."
        )


def _generator(cells: Cells, of: Configuration) -> Iterator[str]:
    """Tell whether service and generator compete for cores, and the service's limit alone."""
    peak = cells.peak(of, QUESTIONS)
    if not peak:
        return
    n = peak[0]
    cores = cells.made[0].cores
    server = cells.middle(of, QUESTIONS, n, lambda one: one.server_cores) or 0.0
    generator = cells.middle(of, QUESTIONS, n, lambda one: one.generator_cores) or 0.0
    limit = limit_per_s(cells, of, QUESTIONS, n)
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


def limit_per_s(cells: Cells, of: Configuration, endpoint: str, connections: int) -> float | None:
    """min(workers, cores)/D, which the throughput cannot exceed with any load generator."""
    demand_s = cells.middle(of, endpoint, connections, lambda one: one.demand_s)
    if not demand_s:
        return None
    return laws.throughput_per_s(min(of.workers, cells.made[0].cores), demand_s)


def _under_way(cells: Cells) -> Iterator[str]:
    """Tell whether connections always had a request under way: X·R = N in the rounds that count.

    It is a check of the generator and not of a law: without thinking, X·R = N holds for any server.
    """
    by_type: dict[str, list[float]] = {}
    for one in cells.accepted:
        if one.customers_seen is not None:
            seen = one.customers_seen / one.connections
            by_type.setdefault(one.worker_type, []).append(seen)
    for kind, shares in sorted(by_type.items()):
        off = [share for share in shares if abs(share - 1) > LITTLE_TOLERANCE]
        told = f"{kind}: X·R is {min(shares):.2f} to {max(shares):.2f} of N"
        if not off:
            yield f"{told} in {len(shares)} rounds, so connections always had a request under way."
        else:
            yield (
                f"{told}, off by more than {LITTLE_TOLERANCE * 100:g} % in {len(off)} of "
                f"{len(shares)} rounds. The difference is time that the generator does not count "
                "as latency: opening a new connection, or waiting for an answer that did not come "
                "before the round ended."
            )
