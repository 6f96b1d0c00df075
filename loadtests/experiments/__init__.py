"""Names the experiments of the lab, and imports the module of one on demand.

A module defines `EXPERIMENT`; what is too large for one has others beside it, whose names begin
with its own: those of `request_rate` and `server_threads` with `client_server`, those of files of
other load generators with `tool`. `running` runs any of them. The sentences of reports are
templates in `sentences` (`loadtests.lab.sentences`). Code that several experiments need is in
`loadtests.lab`, load generators are in `loadtests.generation`, measured servers in
`loadtests.servers`, and predictions in `loadtests.models`.
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
PI = "pi"  # has a command of its own, because it must know where a service runs


def experiment(name: str) -> Experiment:
    """Return the experiment called `name`. Raises KeyError if there is none."""
    if name not in {*NAMES, OF_FILES, PI}:
        raise KeyError(name)
    module = import_module(f"loadtests.experiments.{name.replace('-', '_')}")
    loaded: Experiment = module.EXPERIMENT
    return loaded
