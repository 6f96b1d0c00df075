"""What-if: forecasts of the service after a change, written down first and then put to the test.

Two customers, and one who pauses, ask the service as it is, and the answers tell what a request
demands. From these demands alone comes what would be measured after a change: with two workers,
with kept answers, with faster storage. Then the change is made and measured, and the report says
which forecasts held. `forecasting` defines the changes and makes the forecasts, `measuring` learns
and measures, and `scoring` holds both against each other, also of many results.

    scripts/lab forecast        # a dated forecast for this machine, in five minutes
    scripts/lab resume FOLDER   # puts it to the test
    scripts/lab run what-if     # both
    scripts/lab record          # how many of all forecasts held
"""

from loadtests.experiments.what_if.measuring import measure
from loadtests.experiments.what_if.scoring import analyse
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="what-if",
    study="",
    title="What if: forecasts, put to the test",
    reproduces="our own question: whether the models know what a change would do before it is made",
    about=(
        "Two customers, and one who pauses, ask the service as it is on several occasions, and its "
        "answers tell what a request demands. A forecast of throughput and response time after a "
        "change is made from that alone and written down. Then the change is made and measured."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
    can_resume=True,
)
