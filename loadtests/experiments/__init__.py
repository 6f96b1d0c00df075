"""The experiments of the lab: a module each, found by its name, imported when it is asked for.

A module gives `EXPERIMENT`. What several experiments need lies in `loadtests.lab`, what drives load
in `loadtests.generation`, what is measured in `loadtests.servers`, and what is predicted in
`loadtests.models`.
"""

from importlib import import_module

from loadtests.lab.experiment import Experiment

NAMES: tuple[str, ...] = (
    "selftest",
    "service-time",
    "open-workload",
    "queueing-network",
    "query-type",
    "request-rate",
    "server-threads",
    "bulk-post",
    "profile",
    "micro",
    "mixed-clients",
    "itinerary",
    "capacity",
)


def experiment(name: str) -> Experiment:
    """The experiment of that name. Raises KeyError if there is none."""
    if name not in NAMES:
        raise KeyError(name)
    module = import_module(f"loadtests.experiments.{name.replace('-', '_')}")
    found: Experiment = module.EXPERIMENT
    return found
