"""Measures the open workload of study 000: Poisson arrivals at shares of the maximum rate L.

`plan` defines how much is measured, `servers` on which servers. `measuring` measures, `reading`
makes numbers of the rows, `comparing` compares them with the models, `figures` draws and
`analysing` reports.
"""

from loadtests.experiments.open_workload.analysing import analyse
from loadtests.experiments.open_workload.measuring import measure
from loadtests.experiments.open_workload.servers import BLOCKWISE_UP_TO, QUICK_SCALE, SCALE
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="open-workload",
    study="000",
    title="Open workload: response time against load",
    reproduces="the table of open workloads and figures 2 to 5",
    about=(
        "Requests arrive as a Poisson process, whether earlier ones have been answered or not, at "
        "0.3, 0.5, 0.8 and 0.85 of the rate L = 1/E[S] at which the server would be busy all the "
        "time. E[S] is calibrated with one customer before and after. Everything is measured "
        "twice: as the study did, in short runs that begin with an empty server, and in the steady "
        "state, in replications whose beginnings are left out, a few of them at still higher loads."
    ),
    modes=(Mode.EMULATED, Mode.REAL, Mode.MODEL),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, QUICK_SCALE),
    can_resume=True,
    emulated_so=(
        f"Above K = {BLOCKWISE_UP_TO:g} one wait replaces all blocks of a request; threads that "
        "share a processor compute for that time instead."
    ),
)
