"""Sends arrivals at their times, and chooses who asks a server, inside Locust on gevent."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import gevent
from gevent.pool import Group

from loadtests.generation.client import Client, Origin
from loadtests.generation.schedule import Arrival
from loadtests.generation.sql import SqlClient, SqlOrigin
from loadtests.generation.waiting import Appointments, wait_until

PREPARED_S = 0.003  # before an arrival, which is sent by `waiting.meet`


def walk(
    schedule: Iterable[Arrival],
    start_s: float,
    send: Callable[[Arrival], None],
    is_stopping: Callable[[], bool] = lambda: False,
    appointments: Appointments | None = None,
) -> None:
    """Send every arrival, in a greenlet of its own, then wait for all greenlets.

    start_s: the run's start on CLOCK_MONOTONIC. `send` is called PREPARED_S before the arrival's
    time, for which it waits itself. A slow `send` does not delay the next arrival: that makes the
    workload open. When this greenlet is killed, the senders are killed, too. Raises the exception
    of the first `send` that failed.
    """
    under_way, failures = Group(), list[BaseException]()
    try:
        for arrival in schedule:
            due_s = start_s + arrival.intended_s
            wait_until(due_s - PREPARED_S)
            if failures or is_stopping():
                break
            if appointments is not None:
                appointments.make(due_s)
            sending = gevent.Greenlet(send, arrival)
            sending.link_exception(lambda failed: failures.append(failed.exception))
            under_way.start(sending)
            gevent.sleep(0)  # lets it start before the next arrival is looked at
        under_way.join()
    finally:
        under_way.kill()
    if failures:
        raise failures[0]


Asker = Client | SqlClient

_ORIGINS: dict[str, tuple[Any, Any]] = {  # by the scheme of the URL
    "http": (Origin, Client),
    "https": (Origin, Client),
    "mariadb": (SqlOrigin, SqlClient),  # the body is a statement, the path /DATABASE
}


def asker_to(url: str) -> Callable[..., Asker]:
    """Return a function (keep_alive, timeout_s -> Asker) for a server, whose name is resolved here.

    Raises ValueError for an unknown scheme or a wrong URL, OSError for an unknown name.
    """
    scheme = urlsplit(url).scheme
    if scheme not in _ORIGINS:
        known = ", ".join(_ORIGINS)
        raise ValueError(f"the host is {url!r}; it must begin with {known} and ://")
    origin, client = _ORIGINS[scheme]
    return partial(client, origin(url))
