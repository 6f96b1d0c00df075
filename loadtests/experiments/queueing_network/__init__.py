"""Measures the queueing network of study 000: model, bounds, and closed systems.

`predicting` has the servers and their models, `measuring` measures, and `comparing` reads what was
measured and compares it. `gaps` tells where measured less predicted comes from, and `block_costs`
what a block's time consists of. `figures` draws, and `analysing` makes the report.
"""

from dataclasses import replace

from loadtests.experiments.queueing_network.analysing import analyse
from loadtests.experiments.queueing_network.measuring import (
    QUICK_SCALE,
    SCALE,
    measure,
    plan_of,
)
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="queueing-network",
    study="000",
    title="Queueing network: which model describes which server",
    reproduces="the queueing network and figures 6 to 11",
    about=(
        "The study modelled its server as a closed network of CPU, DISK and DELAY and solved it by "
        "mean value analysis. Here that network runs as a server for 1 to 10 customers who think: "
        "with exponential service times, with times as regular as those of reading a block, and "
        "with one request at a time, as the study's server really worked. Each is compared with "
        "each model. The parts of a block's time are measured on real blocks, without waits."
    ),
    modes=(Mode.EMULATED, Mode.MODEL),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, QUICK_SCALE),
    loads=lambda options: plan_of(replace(options, loads=())).populations,
    report_seconds="K times the measured ones",
    emulated_so=(
        "No block was read here: a visit to DISK or DELAY is a wait, drawn with these times as "
        "means. The parts of a block's time were measured apart, on real blocks without waits."
    ),
    waited=": a DISK visit takes {read_ms} ms on average, a DELAY visit {check_ms} ms",
)
