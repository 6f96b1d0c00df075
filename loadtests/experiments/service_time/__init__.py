"""The service times of study 000: five requests, one customer.

`plan` says how much is measured, `servers` what, `measuring` does it, `comparing` makes numbers of
the rows, and `analysing` the report.
"""

from loadtests.experiments.service_time.analysing import analyse
from loadtests.experiments.service_time.measuring import measure
from loadtests.experiments.service_time.plan import QUICK_SCALE, SCALE
from loadtests.lab.experiment import Experiment, Mode

EXPERIMENT = Experiment(
    name="service-time",
    study="000",
    title="Service time: five requests, one customer",
    reproduces="the table of service times",
    about=(
        "One customer asks again as soon as he is answered, so nobody waits and a response time is "
        "a service time. Mean, variance and the rate L = 1/E[S] of each of the study's five "
        "requests: by the study's way of storing and answering on this machine, by our scan of all "
        "blocks, and by our index."
    ),
    modes=(Mode.REAL, Mode.EMULATED),
    measure=measure,
    analyse=analyse,
    scales=(SCALE, QUICK_SCALE),
)
