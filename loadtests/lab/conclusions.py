"""Repeats a study's protocol many times in simulation, and counts how often its conclusion holds.

A conclusion of one experiment is worth little if the same protocol, on a server of which the truth
is known, would often have led to another, or would have led to it whatever is true. So each claim
is tried in the worlds of `loadtests.lab.worlds`.

Study 002 prints neither how its times spread nor how often it measured, so its protocol cannot be
repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from textwrap import fill

from loadtests.lab.published import ITINERARY_COUNTED, ITINERARY_ITERATIONS
from loadtests.lab.report.content import Section, Table, capital
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.report.page import plain_page
from loadtests.lab.worlds import (
    CLIENTS_003,
    CVS_004,
    Claim,
    World,
    of_study_000,
    of_study_001,
    of_study_003,
    of_study_004,
)
from loadtests.models.estimates import wilson

REPETITIONS = 1000
LINE = 30  # characters of a claim beside its bar


@dataclass(frozen=True, slots=True)
class Repeated:
    """A study. concluded: what it says. protocol: how it measured, with what had to be assumed."""

    concluded: str
    protocol: str
    worlds: Callable[[], Sequence[World]]


STUDIES: Mapping[str, Repeated] = {
    "000": Repeated(
        "“At high load, the mean response time of our application stands out with respect to the "
        "one obtained by considering the M/G/1 queue.”",
        "Fifteen runs of 30 minutes at 0.3, 0.5, 0.8 and 0.85 of L, each from an empty server; "
        "service times as the study measured them. It drew the conclusion from one such mean a "
        "load.",
        of_study_000,
    ),
    "001": Repeated(
        "“The theoretical predictions line up almost perfectly with the data for larger "
        "inter-arrival times. Once the utilization gets nearer to one, the results deteriorate.”",
        "One run a point against an empty server with three threads. The number of queries is not "
        "printed; 100 and 1000 are tried.",
        of_study_001,
    ),
    "003": Repeated(
        "“The maximum throughput was reached when the number of clients was close/equal to the "
        "number of cores.” “The latency increased exponentially with the number of clients.”",
        "Four runs of 500 requests a client, without think time. The numbers of clients are not "
        f"all printed; tried: {', '.join(map(str, CLIENTS_003))}. Where all cores are busy, "
        "throughput stays as it is, and latency is clients over throughput.",
        of_study_003,
    ),
    "004": Repeated(
        "“In commit requests, the cost difference is relatively large, since in the multiple RM "
        "test, Middleware needs to communicate with 2 more RMs.” A reservation took 0.12 ms longer "
        "than a query, which the study puts down to what it writes.",
        f"One client, and means over the last {ITINERARY_COUNTED} of {ITINERARY_ITERATIONS} "
        "transactions of 4 queries, 3 reservations and a commit. How much times vary is not "
        "printed (there were “some spikes”); tried: cv "
        f"{' and '.join(f'{cv:g}' for cv in CVS_004)}.",
        of_study_004,
    ),
}


@dataclass(frozen=True, slots=True)
class Tried:
    """A claim in a world. share: of the repetitions that led to it, with a 95 % interval."""

    world: str
    claim: Claim
    share: float
    low: float
    high: float

    @property
    def sentence(self) -> str:
        """The claim with its share."""
        share = f"{100 * self.share:.1f} % of the repetitions"
        return f"{capital(self.claim.words)}: so said {share}. It is {self.told}."

    @property
    def told(self) -> str:
        """What the share says about the protocol."""
        if self.claim.true:
            return "true" if self.share >= 0.9 else "true, and the protocol often misses it"
        return "false" if self.share <= 0.1 else "false, and the protocol often says it"


def tried(study: str, repetitions: int = REPETITIONS, seed: int = 1) -> list[Tried]:
    """Every claim in every world of a study."""
    found = []
    for world in STUDIES[study].worlds():
        rng = Random(f"{seed} {study} {world.name}")  # noqa: S311  no secrets
        results = [world.repeat(rng) for _ in range(repetitions)]
        for claim in world.claims:
            held = sum(map(claim.holds, results))
            found.append(Tried(world.name, claim, held / repetitions, *wilson(held, repetitions)))
    return found


def page(study: str, repetitions: int = REPETITIONS, seed: int = 1) -> str:
    """The page about a study, which is the same for the same seed."""
    of, found = STUDIES[study], tried(study, repetitions, seed)
    lead = [of.concluded, of.protocol]
    lead.append(
        f"The protocol was repeated {repetitions:,} times on simulated servers of which the truth "
        "is known. A claim that is false there should come up seldom, and one that is true often."
    )
    worlds = list(dict.fromkeys(one.world for one in found))
    sections = [_section(world, [one for one in found if one.world == world]) for world in worlds]
    return plain_page(f"Study {study}: could it have concluded so?", lead, sections)


def _section(world: str, found: Sequence[Tried]) -> Section:
    title = f"If the server {world}"
    rows = [
        (one.claim.words, 100 * one.share, 100 * one.low, 100 * one.high, one.told) for one in found
    ]
    columns = ("Claim", "Came up / %", "from", "to", "In this world it is")
    words = [fill(one.claim.words, LINE) for one in found]
    kinds: list[tuple[str, Source, bool]] = [
        ("true here", "ours", True),
        ("false here", "study", False),
    ]
    series = [
        Series(
            name,
            source,
            words,
            [100 * one.share if one.claim.true is true else None for one in found],
            [100 * one.low for one in found],
            [100 * one.high for one in found],
            "rows",
        )
        for name, source, true in kinds
        if any(one.claim.true is true for one in found)
    ]
    x, table = Axis("repetitions / %", limits=(0, 100)), Table(title, columns, rows)
    told = f"Repetitions of the protocol that lead to each claim, if the server {world}."
    said = [one.sentence for one in found]
    return Section(title, said, [figure("Claims", told, x, Axis(""), series, table)])
