"""Names the experiments of the lab, and imports the module of one on demand.

A module defines `EXPERIMENT`, or `EXPERIMENTS` if it has several, as `client_server` has; what is
too large for one has others beside it, whose names begin with its own. `running` runs any of them.
The sentences of reports are templates in `sentences` (`loadtests.lab.sentences`). Code that several
experiments need is in `loadtests.lab`, load generators are in `loadtests.generation`, measured
servers in `loadtests.servers`, and predictions in `loadtests.models`.
"""

from importlib import import_module

from loadtests.lab.experiment import Experiment

NAMES: tuple[str, ...] = (
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
OF_FILES = "tool-results"  # measures nothing: its runs come from files
_MODULES = dict.fromkeys(("request-rate", "server-threads"), "client_server")
PI = "pi"  # has a command of its own, because it must know where a service runs


def experiment(name: str) -> Experiment:
    """Return the experiment called `name`. Raises KeyError if there is none."""
    if name not in {*NAMES, OF_FILES, PI}:
        raise KeyError(name)
    module = import_module(f"loadtests.experiments.{_MODULES.get(name, name.replace('-', '_'))}")
    loaded: Experiment = module.EXPERIMENTS[name] if name in _MODULES else module.EXPERIMENT
    return loaded
