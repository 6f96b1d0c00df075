"""The two verdicts on an open workload, on ten servers of which the truth is known."""

from random import Random

import pytest

from loadtests.experiments.open_workload_comparison import ORDERS, WAITED, steady_points
from loadtests.models.estimates import Verdict
from tests.loadtests.experiments.planted_servers import PLANTED

WORDS = {
    "one worker less": WAITED,
    "shares its processor": WAITED,
    "the last first": ORDERS[Verdict.DISAGREES],
}


@pytest.mark.parametrize("name", PLANTED)
def test_both_verdicts_are_right(name: str) -> None:
    planted = PLANTED[name]
    (point,) = steady_points(planted.runs(Random(f"{name} 1")))
    assert (point.forecast, point.order) == (planted.forecast, planted.order)
    assert point.order_label == WORDS.get(name, ORDERS[planted.order])
