"""Serves by sleeping for as long as a request says, to check the lab's own instruments.

`GET /?service_s=0.0405` is served for that many seconds and answered with JSON; without the
parameter for `DEFAULT_S`. With `&status=503` the answer has that status after the service. A
sleeping server uses no processor. Sleeps end about 0.1 ms late; each thread shortens its next sleep
by that, so that the mean is right.
"""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic, sleep

from loadtests.processes import Service
from loadtests.servers import timed_apps
from loadtests.servers.gunicorn import Gunicorn, gunicorn_server
from loadtests.servers.timed_apps import Answer

DEFAULT_S = 0.01


def known_server(how: Gunicorn, log: Path) -> AbstractContextManager[Service]:
    """Run a known server. Raises ProgramFailed."""
    return gunicorn_server("loadtests.servers.known:application", how, log, timed_apps.LIVE)


class Sleeper:
    """Sleeps so that the total of each thread's sleeps is exact."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def __call__(self, demand_s: float) -> None:
        """Sleep `demand_s` seconds, less what this thread's last sleep was too long."""
        owed_s = demand_s - getattr(self._thread, "too_long_s", 0.0)
        start_s = monotonic()
        if owed_s > 0:
            sleep(owed_s)
        self._thread.too_long_s = monotonic() - start_s - owed_s


_serve = Sleeper()


def _served(parameters: Mapping[str, str]) -> Answer:
    demand_s = float(parameters.get("service_s", DEFAULT_S))
    _serve(demand_s)
    return Answer({"service_s": demand_s}, status=f"{parameters.get('status', '200')} Chosen")


application = timed_apps.application({"/": _served})
