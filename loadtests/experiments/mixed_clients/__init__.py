"""Mixed clients, as study 003 measured them: throughput and latency against their number.

`plan` says how much is measured; `inside` runs clients in the ledger's own process, `measuring`
those and the ones over HTTP; `reading` makes numbers of the rows, `comparing` holds them against
the bounds of a closed system, `figures` draws and `analysing` reports. What the interactions are,
and what of the study they stand for: `loadtests.scenarios`.
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
        "1 to 60 clients go through interactions without a pause: 60 % read, 30 % look and add a "
        "flight, 10 % add a batch of five. Ledgers of 0, 100 and 1000 blocks; each run on a fresh "
        "copy. Once as threads of the ledger's own process, once over HTTP, where each client "
        "keeps its connection. Only the time counts in which all clients were at work."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
