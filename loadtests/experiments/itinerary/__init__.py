"""Itineraries, as study 004 measured them: transactions of nine requests, alone and at a rate.

`plan` says how much is measured, `measuring` does it, `reading` makes transactions of the rows,
`comparing` sums their phases up, `figures` draws and `analysing` reports. What the nine requests
are, and what of the study they stand for: `loadtests.scenarios`.
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
        "A client begins, looks something up four times, adds three legs, each on the disk before "
        "it is answered, and commits. One client tells how long each phase takes; then 1 to 8 "
        "clients start itineraries at target rates, the next one due every T(1 ± 1 %), and at "
        "once if it is late. Measured twice: with a commit that asks once whether the last leg is "
        "there, and with one that waits until it is in a block, for which blocks are made every "
        "0.1 s. The last four fifths of the iterations count."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
