"""The table of all scenarios."""

from collections.abc import Callable
from typing import NamedTuple

from tests.faults import calls, cuts, damage, fresh_workers, kills
from tests.faults.report import Outcome, Task


class Scenario(NamedTuple):
    """A kind of harm.

    option: of `scripts/soak`, says how often; full: how often without it; short: how often in the
    tests. Scenarios that share an option are harmed as often each.
    """

    name: str
    run: Callable[[Task], Outcome]
    option: str
    full: int
    short: int


SCENARIOS = (
    Scenario("kills", kills.run, "kills", 1000, 12),
    Scenario("fresh workers", fresh_workers.run, "workers", 200, 40),
    Scenario("failed system calls", calls.run, "calls", 1000, 4),
    Scenario("power cuts", cuts.run, "cuts", 200, 2),
    Scenario("damaged files", damage.run, "flips", 2000, 6),
)
