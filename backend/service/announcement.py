"""Reports where a service answers, once it does: for a person who has just started it.

`supervisor` looks again and again, until that is reported. This is a module of its own, because
what it imports is not needed before the other processes start.
"""

import time
from http import HTTPStatus

from backend.base.http_requests import Answer, NoAnswer, ask
from backend.base.settings import Settings
from backend.base.words import WRITES_REFUSED, Report
from backend.chain.json_objects import object_of

READY_WITHIN_S = 60
LATE_EVERY_S = 10.0  # how often a service that is late is asked, because it counts and logs that
ANSWER_WITHIN_S = 5.0


class Announcement:
    """Reports once that the service answers, and before that once that it does not in time.

    is_made: whether it has reported that the service answers. is_late: that it does not in time.
    """

    def __init__(self, settings: Settings, report: Report, *, frontend: bool) -> None:
        """frontend: whether the pages must be shown, too."""
        self.is_made = self.is_late = False
        self._url = base_url(settings.host, settings.port)
        self._pages = base_url(settings.frontend_host, settings.frontend_port)
        self._frontend = frontend
        self._report = report
        self._deadline = time.monotonic() + READY_WITHIN_S
        self._next_look = 0.0

    def look(self) -> None:
        """Report the addresses if questions are answered, or after the deadline why they are not.

        While writes alone are refused questions are answered, so that does not delay the report.
        """
        now = time.monotonic()
        if now < self._next_look:
            return
        reasons = self._not_ready()
        if all(WRITES_REFUSED in reason for reason in reasons):
            self._report_addresses("; ".join(reasons))
        elif now > self._deadline:
            if not self.is_late:
                self._report(f"not ready after {READY_WITHIN_S} s: {'; '.join(reasons)}")
            self.is_late = True
            self._next_look = now + LATE_EVERY_S

    def _not_ready(self) -> list[str]:
        """Return the reasons why the service is not ready; empty if it is."""
        try:
            if self._frontend and _ask(f"{self._pages}/health/live").status != HTTPStatus.OK:
                return ["the pages are not shown"]
            return _reasons(_ask(f"{self._url}/health/ready"))
        except NoAnswer as error:
            return [str(error)]

    def _report_addresses(self, refusal: str) -> None:
        """refusal: why no flights are accepted yet, "" if they are."""
        if self._frontend:
            self._report(f"open {self._pages}")
        self._report(f"Flightchain answers at {self._url}")
        self._report(f"for example: curl '{self._url}{_example(self._url)}'")
        if refusal:
            self._report(f"it does not accept flights yet: {refusal}")
        self.is_made = True


def base_url(host: str, port: int) -> str:
    """Return the URL at which a server on `host` and `port` can be reached from this machine."""
    host = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reasons(answer: Answer) -> list[str]:
    """Return the reasons why the service is not ready, in its own words; empty if it is."""
    if answer.status == HTTPStatus.OK:
        return []
    problem = object_of(answer.body) or {}  # another program may answer, too
    reasons = problem.get("reasons")
    if isinstance(reasons, list) and reasons:
        return [str(reason) for reason in reasons]
    return [str(problem.get("detail", f"it answers with status {answer.status}"))]


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
