"""Measures capacity with wrk, a closed load: N connections that ask again at once.

`measuring` measures in rounds, `cells` sums them up, `analysing` draws and reports.
"""

from loadtests.experiments.capacity.analysing import analyse
from loadtests.experiments.capacity.measuring import measure
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="capacity",
    study="",
    title="Capacity: throughput over connections, workers and their types",
    reproduces="our own question: how much the service can answer, and where throughput bends",
    about=(
        "This experiment measures how many questions per second the service answers with 1 to 64 "
        "connections and 1 to 4 workers of three types, compared with an endpoint that does "
        "nothing; where throughput bends, by the universal scalability law; and which type of "
        "workers to choose."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
