"""Capacity: how many answers a second, with how many connections, by which workers.

The load is wrk's, compiled and closed: N connections that ask again at once. Measured in turns are
the three questions with the index engine, and the empty endpoint, which is what HTTP costs.
"""

from loadtests.experiments.capacity.analysing import analyse
from loadtests.experiments.capacity.measuring import measure
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="capacity",
    study="",
    title="Capacity: throughput over connections, workers and their types",
    reproduces="our own: what the service can answer, and where it bends",
    about=(
        "How many questions a second the service answers with 1 to 64 connections, 1 to 4 workers "
        "of three types, next to an endpoint that does nothing; where throughput bends, by the "
        "universal scalability law; and which type of workers to choose."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
