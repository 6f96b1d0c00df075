"""The table of all scenarios."""

from collections.abc import Callable
from typing import NamedTuple

from tests.faults import (
    bodies,
    calls,
    clocks,
    cluster,
    cuts,
    damage,
    fresh_workers,
    full_disk,
    fuzz,
    hostile,
    installed,
    kills,
    mixed,
    overload,
)
from tests.faults.report import Outcome, Task

HOUR_S = 3600


class Scenario(NamedTuple):
    """A kind of harm.

    option: of `scripts/soak`, says how much. what: the option counts. full: how much without the
    option; short: in the tests, 0 if the scenario is too long for them. scale: what one of the
    option is for the scenario.
    """

    name: str
    run: Callable[[Task], Outcome]
    option: str
    what: str
    full: float
    short: int
    scale: int = 1


SCENARIOS = (
    Scenario("kills", kills.run, "kills", "processes to kill", 1000, 3),
    Scenario("fresh-workers", fresh_workers.run, "workers", "workers to start", 200, 60),
    Scenario("failed-calls", calls.run, "calls", "system calls that fail", 1000, 1),
    Scenario("power-cuts", cuts.run, "cuts", "power cuts", 200, 1),
    Scenario("damaged-files", damage.run, "flips", "damages to files", 2000, 8),
    Scenario("full-disk", full_disk.run, "full", "times the disk becomes full", 100, 1),
    Scenario("clocks", clocks.run, "leaps", "leaps of the clock, each way", 10, 1),
    Scenario("fuzz", fuzz.run, "fuzz", "requests at both ports", 100_000, 2000),
    Scenario("evil-bodies", bodies.run, "bodies", "kilobytes of each body", 16_000, 200),
    Scenario("hostile", hostile.run, "attack", "seconds of each attack", 20, 0),
    Scenario("overload", overload.run, "overload", "seconds of each overload", 20, 0),
    Scenario("cluster", cluster.run, "rounds", "rounds of harm to four nodes", 200, 0),
    Scenario("installed", installed.run, "systems", "releases of Debian to install on", 2, 0),
    Scenario("mixed", mixed.run, "hours", "hours of mixed load", 8, 0, HOUR_S),
)
