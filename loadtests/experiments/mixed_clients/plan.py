"""Defines how much is measured: numbers of customers, ledgers and runs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from loadtests.lab.experiment import Options
from loadtests.lab.published import MIXED

LOCAL, HTTP = "in-process", "http"
PLACES = (LOCAL, HTTP)
NAMES = {LOCAL: "in process", HTTP: "over HTTP"}


@dataclass(frozen=True, slots=True)
class Count:
    """Numbers of interactions of each customer in one run. warm_up: those that do not count."""

    warm_up: int
    measured: int

    @property
    def interactions(self) -> int:
        """All interactions of a customer in a run."""
        return self.warm_up + self.measured


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs at every place, ledger and number of customers.

    blocks: lengths of the ledgers. counts: place -> interactions. new_flights: size of the pool of
    flights to be added.
    """

    customers: tuple[int, ...]
    blocks: tuple[int, ...]
    runs: int
    counts: Mapping[str, Count]
    new_flights: int


def plan(options: Options) -> Plan:
    """The plan for these options.

    The quick plan has a few interactions over HTTP, and enough in process that a run is not over at
    once. The full plan has as many as the study and takes about 45 minutes on two cores; with
    `--reps 1` it takes a quarter of that.
    """
    if options.quick:
        counts = {LOCAL: Count(20, 180), HTTP: Count(5, 25)}
        return Plan((1, 4, 16), (0, 100), options.reps or 1, counts, 3000)
    customers = (1, 2, 4, 8, 16, 30, 60)
    counts = dict.fromkeys(PLACES, Count(MIXED.warm_up, MIXED.measured))
    return Plan(customers, MIXED.books, options.reps or MIXED.runs, counts, 30_000)
