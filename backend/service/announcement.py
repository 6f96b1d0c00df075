"""Reports where a service answers, once it does: for a person who has just started it.

`supervisor` looks again and again, until all is reported. This is a module of its own, because
what it imports is not needed before the other processes start.
"""

import math
import time
from http import HTTPStatus

from backend.base.http_requests import Answer, NoAnswer, ask
from backend.base.settings import Settings
from backend.base.words import Report
from backend.chain.json_objects import object_of

READY_WITHIN_S = 60
STARTS_WITHIN_S = 3.0  # how long parts of a service that answers may still be starting
LATE_EVERY_S = 10.0  # how often a service that is late is asked, because it counts and logs that
ANSWER_WITHIN_S = 5.0


class Announcement:
    """Reports where the service answers and what does not work, and once it does that all works.

    is_begun: whether it has reported anything. is_made: whether it has reported all there is.
    """

    def __init__(self, settings: Settings, report: Report, *, frontend: bool) -> None:
        """frontend: whether the pages must be shown, too."""
        self.is_begun = self.is_made = False
        self._url = base_url(settings.host, settings.port)
        self._pages = base_url(settings.frontend_host, settings.frontend_port)
        self._frontend = frontend
        self._report = report
        self._deadline = time.monotonic() + READY_WITHIN_S
        self._started_by: float | None = None  # once it answers
        self._has_addresses = False
        self._fewest = math.inf  # reasons that were reported together
        self._next_look = 0.0

    def look(self) -> None:
        """Ask the service, unless it was asked lately, and report what is new."""
        now = time.monotonic()
        if now < self._next_look:
            return
        try:
            reasons = self._not_ready()
        except NoAnswer as error:
            if now > self._deadline and not self.is_begun:
                self._report(f"not ready after {READY_WITHIN_S} s: {error}")
                self.is_begun = True
        else:
            if self._started_by is None:
                self._started_by = now + STARTS_WITHIN_S
            if not reasons or now > self._started_by:
                self._report_answers(reasons)
        if self.is_begun:
            self._next_look = now + LATE_EVERY_S

    def _not_ready(self) -> list[str]:
        """Return the reasons why not everything works. Raises NoAnswer if it does not answer."""
        if self._frontend and _ask(f"{self._pages}/health/live").status != HTTPStatus.OK:
            raise NoAnswer("the pages are not shown")
        return _reasons(_ask(f"{self._url}/health/ready"))

    def _report_answers(self, reasons: list[str]) -> None:
        """Report the addresses at first, and the reasons whenever there are fewer.

        reasons: why not everything works; empty if everything does.
        """
        heading = "this still does not work:" if self._has_addresses else "not everything works:"
        if not self._has_addresses:
            self._report_addresses()
        elif not reasons:
            self._report("everything works now")
        if reasons and len(reasons) < self._fewest:
            self._fewest = len(reasons)
            for line in (heading, *reasons):
                self._report(line)
        self.is_begun = self._has_addresses = True
        self.is_made = not reasons

    def _report_addresses(self) -> None:
        if self._frontend:
            self._report(f"open {self._pages}")
        self._report(f"Flightchain answers at {self._url}")
        self._report(f"for example: curl '{self._url}{_example(self._url)}'")


def base_url(host: str, port: int) -> str:
    """Return the URL at which a server on `host` and `port` can be reached from this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reasons(answer: Answer) -> list[str]:
    """Return what the service says does not work. Raises NoAnswer if it is no such answer."""
    if answer.status == HTTPStatus.OK:
        return []
    problem = object_of(answer.body) or {}  # another program may answer, too
    reasons = problem.get("reasons")
    if isinstance(reasons, list) and reasons:
        return [str(reason) for reason in reasons]
    raise NoAnswer(str(problem.get("detail", f"it answers with status {answer.status}")))


def _example(url: str) -> str:
    """Return the path of a question with an answer: about the first flight of the newest block."""
    try:
        tip = object_of(_ask(f"{url}/tip").body) or {}
        newest = object_of(_ask(f"{url}/blocks/{tip['height']}?limit=1").body) or {}
        flight = newest["block"]["transactions"][0]
        number, day = flight["OP_CARRIER_FL_NUM"], flight["FL_DATE"]
    except (NoAnswer, LookupError, TypeError):
        return "/tip"
    return f"/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"


def _ask(url: str) -> Answer:
    """Return what a process of this service answers. Raises NoAnswer."""
    return ask(url, within_s=ANSWER_WITHIN_S)
