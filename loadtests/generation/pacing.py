"""Waits precisely in gevent, for an arrival of an open run or the end of a think time.

gevent's timers wake about a millisecond late. So `wait_until` sleeps until `EARLY_S` before the
moment and then only yields to other greenlets until the moment has come. That takes 2 ms of
processor time for each arrival, which is why the generator needs a core for itself.
"""

import gc
from collections.abc import Callable, Iterable
from time import monotonic

import gevent
from gevent.pool import Group

from loadtests.generation.schedule import Arrival

EARLY_S = 0.002


def wait_until(due_s: float) -> None:
    """Return at `due_s` on CLOCK_MONOTONIC, or at once if that is past. Other greenlets run on."""
    left_s = due_s - monotonic()
    if left_s > EARLY_S:
        gevent.sleep(left_s - EARLY_S)
    while monotonic() < due_s:
        gevent.sleep(0)


def walk(
    schedule: Iterable[Arrival],
    start_s: float,
    send: Callable[[Arrival], None],
    is_stopping: Callable[[], bool] = lambda: False,
) -> None:
    """Send every arrival at its time, in a greenlet of its own, then wait for all greenlets.

    start_s: the run's start on CLOCK_MONOTONIC. A slow `send` does not delay the next arrival: that
    makes the workload open. When this greenlet is killed, the senders are killed, too. Raises the
    exception of the first `send` that failed.
    """
    under_way, failures = Group(), list[BaseException]()
    try:
        for arrival in schedule:
            wait_until(start_s + arrival.intended_s)
            if failures or is_stopping():
                break
            sending = gevent.Greenlet(send, arrival)
            sending.link_exception(lambda failed: failures.append(failed.exception))
            under_way.start(sending)
            gevent.sleep(0)  # lets it start before the next arrival is looked at
        under_way.join()
    finally:
        under_way.kill()
    if failures:
        raise failures[0]


def calm_collector() -> None:
    """Exclude everything imported so far from garbage collection, so that it never delays a run."""
    gc.collect()
    gc.freeze()
