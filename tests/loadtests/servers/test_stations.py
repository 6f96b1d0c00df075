"""Stations: order, and sums that add up. Never how late a machine wakes a thread."""

import threading
from random import Random
from time import monotonic, sleep

import pytest

from loadtests.servers.network import (
    SHORTEST_SLEEP_S,
    Station,
    Step,
    walk,
)


def test_customers_are_served_in_the_order_in_which_they_come() -> None:
    station, start_s = Station("disk"), monotonic()
    ends_s: dict[int, float] = {}

    def come(number: int) -> None:
        ends_s[number] = station.serve(start_s, 0.01)

    threads = [threading.Thread(target=come, args=[number]) for number in range(10)]
    for number, thread in enumerate(threads):
        thread.start()
        while station._free_s < start_s + 0.01 * (number + 0.5) and thread.is_alive():
            sleep(0.0001)  # until it stands in the queue
    for thread in threads:
        thread.join()
    assert ends_s == pytest.approx({number: start_s + 0.01 * (number + 1) for number in range(10)})
    assert monotonic() >= start_s + 0.1 - 1.01 * SHORTEST_SLEEP_S


def test_a_service_begins_when_the_one_before_it_has_ended() -> None:
    station, now_s = Station("disk"), monotonic()
    assert station.serve(now_s, 0.003) == now_s + 0.003
    assert station.serve(now_s + 0.001, 0.004) == pytest.approx(now_s + 0.007)
    assert station.serve(now_s + 0.1, 0.001) == pytest.approx(now_s + 0.101)  # was idle
    assert monotonic() >= now_s + 0.101 - 1.01 * SHORTEST_SLEEP_S


def test_short_services_add_up() -> None:
    station, start_s = Station("cpu"), monotonic()
    answer = walk([Step(station, 0.00001)] * 3000, 0, Random(1))
    assert monotonic() - start_s >= 0.03
    assert answer["cpu"] == pytest.approx(0.03)
    assert answer["cpu_queue"] == pytest.approx(0, abs=1e-6)
    assert answer["late"] >= 0
