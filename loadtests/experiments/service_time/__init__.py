"""Measures the service times of study 000: five requests, one customer.

`measuring` measures, and `analysing` makes the report.
"""

from loadtests.experiments.service_time.analysing import analyse
from loadtests.experiments.service_time.measuring import QUICK_SCALE, SCALE, measure
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="service-time",
    study="000",
    title="Service time: five requests, one customer",
    reproduces="the table of service times",
    about=(
        "One customer asks again as soon as an answer comes, so there is no waiting and a response "
        "time is a service time. The mean, variance and rate L = 1/E[S] of each of the study's "
        "five requests are measured in three ways: with the study's storage on this machine, with "
        "our scan of all blocks, and with our index."
    ),
    modes=(Mode.REAL, Mode.EMULATED),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, QUICK_SCALE),
    emulated_so=(
        "In the study's way blocks are nearly empty, so that a block takes these times on any "
        "machine; in our scan they are full ones, a wait fills up the time of reading, and looking "
        "at the flights comes besides."
    ),
    waited=": reading a block waits {read_ms} ms, its check {check_ms} ms",
)
