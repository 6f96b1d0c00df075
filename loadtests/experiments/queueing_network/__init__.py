"""The queueing network of study 000: model, bounds, and measured closed systems.

`plan` says how much is measured, `measuring` does it, `reading` makes numbers of the tables,
`predicting` solves the models and `comparing` holds one against the other; `splitting` is about
what a block's time consists of; `schema` and `figures` draw, and `analysing` makes the report.
"""

from loadtests.experiments.queueing_network.analysing import analyse
from loadtests.experiments.queueing_network.measuring import measure
from loadtests.experiments.queueing_network.plan import QUICK_SCALE, SCALE
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="queueing-network",
    study="000",
    title="Queueing network: which model describes which server",
    reproduces="the queueing network and figures 6 to 11",
    about=(
        "The study modelled its server as a closed network of CPU, DISK and DELAY and solved it by "
        "mean value analysis. Here that network runs, with 1 to 10 customers who think: with "
        "exponential service times, with times as regular as reading a block is, and with one "
        "request at a time, as the study's server really worked. Each is held against each model. "
        "What a block's time consists of is measured on real blocks, without waits."
    ),
    modes=(Mode.EMULATED, Mode.MODEL),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, QUICK_SCALE),
    report_seconds="K times those measured",
)
