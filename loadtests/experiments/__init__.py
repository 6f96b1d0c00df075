"""The experiments of the lab. Each is a module that is found by its name and imported on demand.

A module defines `EXPERIMENT`; what is too large for one has others beside it, whose names begin
with its own. What reports say is in `sentences`, as templates (`loadtests.lab.sentences`). Code
that several experiments need is in `loadtests.lab`, load generators are in `loadtests.generation`,
measured servers in `loadtests.servers`, and predictions in `loadtests.models`.
"""

from importlib import import_module

from loadtests.lab.experiment import Experiment

NAMES: tuple[str, ...] = (
    "selftest",
    "service-time",
    "open-workload",
    "queueing-network",
    "request-rate",
    "server-threads",
    "bulk-post",
    "profile",
    "micro",
    "mixed-clients",
    "itinerary",
    "cluster",
)

OF_FILES = "tool-results"  # which measures nothing: its runs come from files


ELSEWHERE: tuple[str, ...] = ("pi",)
"""Those that have a command of their own, because they need to know where a service runs."""


def experiment(name: str) -> Experiment:
    """The experiment called `name`. Raises KeyError if there is none."""
    if name not in {*NAMES, *ELSEWHERE, OF_FILES}:
        raise KeyError(name)
    module = import_module(f"loadtests.experiments.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found
