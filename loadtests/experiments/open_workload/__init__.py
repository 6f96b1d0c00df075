"""Measures open workloads: Poisson arrivals at shares of the maximum rate L, as in study 000.

`loads` defines how much is measured and reads what was, `servers` on which servers. `demands` finds
out what the service can do, `measuring` measures, `comparing` and `gaps` compare with the models,
`figures` draws and `analysing` reports.
"""

from loadtests.experiments.open_workload.analysing import analyse
from loadtests.experiments.open_workload.loads import fractions
from loadtests.experiments.open_workload.measuring import measure
from loadtests.experiments.open_workload.servers import SCALE
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="open-workload",
    study="000",
    title="Open workload: response time against load",
    reproduces="the table of open workloads and figures 2 to 5",
    about=(
        "Requests arrive as a Poisson process, whether earlier ones have been answered or not, at "
        "0.3, 0.5, 0.8 and 0.85 of the rate L at which the server would be busy all the time. E[S] "
        "is calibrated with one customer before and after. With emulated storage, the study's way "
        "of scanning is measured as the study did, in short runs that begin with an empty server, "
        "and in the steady state, in replications whose beginnings are left out; and so is our own "
        "scan. In the mode real it is the service as shipped, whose open and closed runs are "
        "predicted from what one customer was told."
    ),
    modes=(Mode.EMULATED, Mode.REAL, Mode.MODEL),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, SCALE),
    waited=(
        ": a block of the study's way takes {read_ms} + {check_ms} ms, and our scan reads one in "
        "{read_ms} ms"
    ),
    can_resume=True,
    can_decide=True,
    loads=fractions,
    takes_host=True,
    emulated_so=(
        "Blocks were really read, checked and filtered: in the study's way a wait fills up the "
        "time of a block, in ours that of reading it."
    ),
)
