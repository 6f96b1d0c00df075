"""Measures capacity: answers per second by numbers of connections and by types of workers.

The load is a closed one by wrk, a compiled program: N connections that ask again at once. Rounds
alternate between the three questions with the index engine and the empty endpoint, which shows what
HTTP costs.
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
