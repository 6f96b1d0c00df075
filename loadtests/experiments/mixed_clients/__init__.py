"""Measures mixed clients as study 003 did: throughput and latency against their number.

`plan` defines how much is measured. `inside` runs clients in the ledger's own process, `measuring`
runs those and clients over HTTP. `reading` makes numbers of the rows, `comparing` compares them
with the bounds of a closed system, `figures` draws and `analysing` reports. `loadtests.scenarios`
describes the interactions and their counterparts in the study.
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
