"""How much is measured: which numbers of customers, which ledgers, how many runs. Pure."""

from dataclasses import dataclass

from loadtests.lab.experiment import Options
from loadtests.lab.published import MIXED

LOCAL, HTTP = "in-process", "http"
PLACES = (LOCAL, HTTP)
NAMES = {LOCAL: "in process", HTTP: "over HTTP"}


@dataclass(frozen=True, slots=True)
class Plan:
    """Runs at every place, ledger and number of customers.

    blocks: lengths of the ledgers. warm_up, measured: interactions of each customer. new_flights:
    the pool of flights to be added.
    """

    customers: tuple[int, ...]
    blocks: tuple[int, ...]
    runs: int
    warm_up: int
    measured: int
    new_flights: int

    @property
    def interactions(self) -> int:
        """Of each customer in one run."""
        return self.warm_up + self.measured


def plan(options: Options) -> Plan:
    """What a run with these options measures."""
    if options.quick:
        return Plan((1, 4, 16), (0, 100), options.reps or 1, 5, 25, 2000)
    customers = (1, 2, 4, 8, 16, 30, 60)
    runs = options.reps or MIXED.runs
    return Plan(customers, MIXED.books, runs, MIXED.warm_up, MIXED.measured, 30_000)
