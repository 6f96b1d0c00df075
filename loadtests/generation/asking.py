"""What workloads do inside Locust, on gevent: wait for a moment, and choose who asks.

gevent's timers wake about a millisecond late. So `wait_until` sleeps until `EARLY_S` before the
moment and then only yields to other greenlets until the moment has come. That takes 2 ms of
processor time for each arrival, which is why the generator needs a core for itself.
"""

from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import gevent
from gevent.pool import Group

from loadtests.generation.client import Client, Origin
from loadtests.generation.schedule import Arrival
from loadtests.generation.sql import SqlClient, SqlOrigin

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


Asker = Client | SqlClient

_ORIGINS: dict[str, tuple[Any, Any]] = {  # by the scheme of the URL
    "http": (Origin, Client),
    "https": (Origin, Client),
    "mariadb": (SqlOrigin, SqlClient),  # the body is a statement, the path /DATABASE
}


def asker_to(url: str) -> Callable[..., Asker]:
    """The client of a server, whose name is resolved once, here: keep_alive, timeout_s -> Asker.

    Raises ValueError for an unknown scheme or a wrong URL, OSError for an unknown name.
    """
    scheme = urlsplit(url).scheme
    if scheme not in _ORIGINS:
        known = ", ".join(_ORIGINS)
        raise ValueError(f"the host is {url!r}; it must begin with {known} and ://")
    origin, client = _ORIGINS[scheme]
    return partial(client, origin(url))
