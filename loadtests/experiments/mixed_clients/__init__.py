"""Measures mixed clients as study 003 did: throughput and latency against their number.

`measuring` measures what `loadtests.scenarios` describes, `comparing` makes numbers of the rows and
compares them with the bounds of a closed system, `analysing` draws and reports.
"""

from loadtests.experiments.mixed_clients.analysing import analyse
from loadtests.experiments.mixed_clients.measuring import measure
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="mixed-clients",
    study="003",
    title="Mixed clients: reading and writing, in process and over HTTP",
    reproduces="figures 1 and 2",
    about=(
        "1 to 60 clients do interactions without a pause: 60 % read, 30 % read and add a flight, "
        "10 % add a batch of five. Ledgers have 0, 100 and 1000 blocks, and each run has a fresh "
        "copy. Clients are measured once as threads of the ledger's own process and once over "
        "HTTP, where each client keeps its connection. Only the time in which all clients were at "
        "work counts."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
