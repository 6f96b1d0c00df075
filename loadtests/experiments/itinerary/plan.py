"""Defines how much is measured: clients, target rates, iterations. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadtests.lab.experiment import Options
from loadtests.lab.published import ITINERARY_CLIENTS, ITINERARY_COUNTED, ITINERARY_ITERATIONS
from loadtests.scenarios import DURABLE, MINED

MINE_INTERVAL_S = 0.1
SETTINGS: Mapping[str, Mapping[str, object]] = {
    DURABLE: {},
    MINED: {"mine_interval_s": MINE_INTERVAL_S},
}
"""Settings of the service for each way to commit."""

COUNTED_SHARE = ITINERARY_COUNTED / ITINERARY_ITERATIONS
SINGLE, AT_RATE = "single", "at-rate"
NEW_FLIGHTS = 3000


@dataclass(frozen=True, slots=True)
class Part:
    """What is measured with one way to commit.

    singles: runs of one client without a pause. fractions: target rates of a client as shares of
    1/T, where T is the time of a transaction in those runs; above 1 they cannot be reached.
    """

    commit: str
    singles: int
    clients: tuple[int, ...]
    fractions: tuple[float, ...]
    iterations: int


@dataclass(frozen=True, slots=True)
class Plan:
    """All parts, measured on a ledger of `blocks` blocks."""

    blocks: int
    parts: tuple[Part, ...]


def plan(options: Options) -> Plan:
    """The plan for these options. The full plan takes about 12 minutes on two cores."""
    if options.quick:
        singles = options.reps or 1
        return Plan(
            10,
            (
                Part(DURABLE, singles, (1, 4), (0.5, 10.0), 25),
                Part(MINED, singles, (4,), (1.0,), 25),
            ),
        )
    singles, count = options.reps or 5, ITINERARY_ITERATIONS
    return Plan(
        100,
        (
            Part(DURABLE, singles, ITINERARY_CLIENTS, (0.1, 0.25, 0.5, 1.0, 2.0, 10.0), count),
            Part(MINED, singles, ITINERARY_CLIENTS, (0.5, 1.0, 4.0), count),
        ),
    )
