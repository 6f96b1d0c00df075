"""The open workload of study 000: Poisson arrivals at shares of the maximum rate L.

`plan` says how much is measured, `servers` what, `measuring` does it, `reading` makes numbers of
the rows, `analysing` holds them against the models, and `figures` draws.
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
        "Requests arrive as a Poisson process at 0.3, 0.5, 0.8 and 0.85 of the rate L = 1/E[S] at "
        "which the server would be busy all the time, whether it has answered the earlier ones or "
        "not. E[S] is calibrated with one customer before and after. Everything is measured twice: "
        "as the study did, in short runs that begin with an empty server, and in the steady state, "
        "in replications whose beginnings are left out; a few lie between these loads and L."
    ),
    modes=(Mode.EMULATED, Mode.REAL, Mode.MODEL),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, QUICK_SCALE),
    can_resume=True,
    emulated_so=(
        f"Above K = {BLOCKWISE_UP_TO:g} one wait stands for all blocks of a request; threads that "
        "share a processor work for as long instead."
    ),
)
