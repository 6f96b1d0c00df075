"""A queue as one object: its formula is the textbook's, and its replay is of the same queue."""

from random import Random
from statistics import fmean

import pytest

from loadtests.models import replay
from loadtests.models.open_queue import ONE, Queue, Unstable
from loadtests.models.random_times import Gamma, poisson_times

QUEUES = [ONE, Queue(3)]


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_the_mean_of_a_long_replay_is_the_formulas(queue: Queue) -> None:
    random, law = Random(5), Gamma(1.0, 1.0)
    rate_per_s = 0.6 * queue.servers
    times_s = poisson_times(rate_per_s, random, count=60_000)
    replayed_s = queue.replayed_s(times_s, [law.draw(random) for _ in times_s])
    expected_s = queue.steady(rate_per_s, law.mean_s, law.cv).response_time_s
    assert fmean(replayed_s) == pytest.approx(expected_s, rel=0.05)


def test_requests_replayed_one_by_one_are_in_order_of_arrival() -> None:
    times_s, services_s = [0.0, 0.0, 1.0], [2.0, 1.0, 1.0]
    assert ONE.replayed_s(times_s, services_s) == replay.fcfs(times_s, services_s)


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.name)
def test_too_much_work_has_no_steady_state(queue: Queue) -> None:
    with pytest.raises(Unstable):
        queue.steady(1.01 * queue.servers, 1.0, 0.5)


def test_names_tell_servers() -> None:
    assert [queue.name for queue in QUEUES] == ["M/G/1", "M/G/3"]
