"""Measures four nodes that keep one ledger beside a single one: what consensus costs, and gives.

`measuring` measures, `analysing` sums up, draws and reports.
"""

from loadtests.experiments.cluster.analysing import analyse
from loadtests.experiments.cluster.measuring import measure
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="cluster",
    study="002",
    title="A cluster: posts, transactions, commits and reads",
    reproduces="its load through consensus; study 004, table 1 with several stores",
    about=(
        "The same load goes to a single node and to the first of four nodes, whose flights "
        "CometBFT orders: posts in the three modes of an answer, with the processor time of each "
        "program; itineraries of nine requests; commits at several times between blocks. Besides, "
        "one, two and four nodes are asked questions at once. All nodes are on this machine. It "
        "needs CometBFT, as scripts/cluster does, and wrk."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
