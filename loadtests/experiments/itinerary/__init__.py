"""Measures itineraries as study 004 did: transactions of nine requests, alone and at a rate.

`measuring` measures what `loadtests.scenarios` describes, `transactions` makes them of the rows and
sums up their phases and rates, `analysing` draws and reports.
"""

from loadtests.experiments.itinerary.analysing import analyse
from loadtests.experiments.itinerary.measuring import measure
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="itinerary",
    study="004",
    title="Itineraries: transactions of nine requests",
    reproduces="table 1 and figure 1",
    about=(
        "A client begins, makes four queries, adds three legs, each on the disk before it is "
        "answered, and commits. First one client alone shows how long each phase takes. Then 1 to "
        "8 clients start itineraries at target rates, the next one due every T(1 ± 1 %), and at "
        "once if it is late. All is measured twice: with a commit that asks once whether the last "
        "leg is there, and with one that waits until it is in a block, for which blocks are made "
        "every 0.1 s. The last four fifths of the iterations count."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
