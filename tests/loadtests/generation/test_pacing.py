"""The dispatcher: every arrival at its time, whatever became of the others."""

from time import monotonic, process_time

import gevent
import pytest

from loadtests.generation.asking import walk
from loadtests.generation.schedule import Arrival
from loadtests.generation.waiting import GAP_S, Appointments, meet, wait_until

SCHEDULE = [Arrival(n, 0.02 * n, "k", "/") for n in range(5)]


def test_nothing_is_done_before_its_time() -> None:
    for wait in (wait_until, meet):
        due_s = monotonic() + 0.02
        wait(due_s)
        assert monotonic() >= due_s
        wait(due_s - 1)


def test_waiting_takes_no_processor_time() -> None:
    begun_s = process_time()
    for _ in range(50):
        wait_until(monotonic() + 0.004)
    assert process_time() - begun_s < 0.05


def test_what_can_wait_is_not_begun_just_before_something_is_sent() -> None:
    appointments, due_s = Appointments(), monotonic() + 0.02
    for later_s in (0.0, GAP_S / 2, 60.0):
        appointments.make(due_s + later_s)
    wait_until(due_s - GAP_S / 2)
    appointments.wait_for_gap()
    assert monotonic() >= due_s + GAP_S / 2
    assert monotonic() < due_s + 30


def test_an_appointment_far_away_leaves_time() -> None:
    appointments, begun_s = Appointments(), monotonic()
    appointments.wait_for_gap()
    appointments.make(begun_s + 60)
    appointments.wait_for_gap()
    assert monotonic() - begun_s < 30


def test_all_are_under_way_while_none_is_done() -> None:
    may_end, begun = gevent.event.Event(), list[int]()

    def send(arrival: Arrival) -> None:
        begun.append(arrival.index)
        if len(begun) == len(SCHEDULE):
            may_end.set()
        assert may_end.wait(30)

    walk(SCHEDULE, monotonic(), send)
    assert begun == [0, 1, 2, 3, 4]


def test_a_start_that_is_past_leaves_none_out() -> None:
    sent: list[int] = []
    walk(SCHEDULE, monotonic() - 10, lambda arrival: sent.append(arrival.index))
    assert sent == [0, 1, 2, 3, 4]


def test_it_stops_when_it_is_told_and_waits_for_what_is_under_way() -> None:
    sent: list[int] = []
    done: list[int] = []

    def send(arrival: Arrival) -> None:
        sent.append(arrival.index)
        gevent.sleep(0.05)
        done.append(arrival.index)

    walk(SCHEDULE, monotonic(), send, lambda: len(sent) == 2)
    assert (sent, done) == ([0, 1], [0, 1])


def test_a_failure_of_its_own_is_raised() -> None:
    def send(arrival: Arrival) -> None:
        raise OSError("the disk is full")

    hub = gevent.get_hub()
    quiet, hub.exception_stream = hub.exception_stream, None
    try:
        with pytest.raises(OSError, match="the disk is full"):
            walk(SCHEDULE, monotonic(), send)
    finally:
        hub.exception_stream = quiet


def test_killed_it_takes_with_it_what_is_under_way() -> None:
    ended: list[int] = []

    def send(arrival: Arrival) -> None:
        try:
            gevent.sleep(60)
        finally:
            ended.append(arrival.index)

    walking = gevent.spawn(walk, SCHEDULE[:1], monotonic(), send)
    gevent.sleep(0.05)
    walking.kill()
    assert ended == [0]
