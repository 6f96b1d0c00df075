"""Measures a Raspberry Pi over the network, with one command: `scripts/lab pi URL`.

`measuring` asks it, within the minutes that are given; `settings` sets or says what it should be
set to; `reporting` makes a report of one page.
"""

from loadtests.experiments.open_workload.loads import STUDY_FRACTIONS
from loadtests.experiments.pi.measuring import measure
from loadtests.experiments.pi.reporting import analyse
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="pi",
    study="000",
    title="A Raspberry Pi over the network",
    reproduces="the tables of service times and of open workloads",
    about=(
        "One customer asks the three questions, by the index and by scans. Then requests arrive as "
        "a Poisson process at shares of the highest rate L, and customers ask again at once. What "
        "is asked is asked once, so that no answer is a kept one. The generator is not on the Pi."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
    can_resume=True,
    can_decide=True,
    loads=lambda _: STUDY_FRACTIONS,
    takes_host=True,
)
