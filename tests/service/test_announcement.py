"""What the terminal says once a service answers, or if it does not."""

import json

import pytest

from backend.base.http_requests import Answer, NoAnswer
from backend.base.settings import Settings
from backend.base.words import WRITES_REFUSED
from backend.sealing.trusted_clock import Doubt
from backend.service import announcement
from backend.service.announcement import Announcement
from tests.cases import each_of

GOOD = Answer(200, b"{}")


def lines_of(
    patch: pytest.MonkeyPatch, pages: Answer | None, ready: Answer | None, within_s: float = 60
) -> list[str]:
    """What is reported at the first look. pages, ready: what is answered; None: nothing is."""

    def ask(url: str, within_s: float) -> Answer:
        answer = pages if url.endswith("/live") else ready
        if answer is None:
            raise NoAnswer("connection refused")
        return answer

    patch.setattr(announcement, "ask", ask)
    patch.setattr(announcement, "READY_WITHIN_S", within_s)
    lines: list[str] = []
    made = Announcement(Settings(), lines.append, frontend=True)
    made.look()
    assert made.is_made + made.is_late == bool(lines)
    return lines


@each_of(
    ("pages", "ready", "reason"),
    [
        (None, GOOD, "connection refused"),
        (GOOD, None, "connection refused"),
        (Answer(502, b""), GOOD, "the pages are not shown"),
        (GOOD, Answer(503, b'{"detail": "no chain"}'), "no chain"),
        (GOOD, Answer(503, b'{"reasons": []}'), "it answers with status 503"),
        (
            GOOD,
            Answer(503, json.dumps({"reasons": ["no chain", WRITES_REFUSED]}).encode()),
            f"no chain; {WRITES_REFUSED}",
        ),
    ],
)
def test_a_service_that_is_not_ready_in_time_is_reported_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, pages: Answer | None, ready: Answer | None, reason: str
) -> None:
    assert lines_of(monkeypatch, pages, ready) == []
    assert lines_of(monkeypatch, pages, ready, -1) == [f"not ready after -1 s: {reason}"]


def test_a_service_that_refuses_only_writes_is_reported_at_once_with_the_reasons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = f"the disk is full: {WRITES_REFUSED}"
    clock = str(Doubt(2**40, 0, 60))
    body = json.dumps({"reasons": [full, clock]}).encode()
    *_, line = lines_of(monkeypatch, GOOD, Answer(503, body))
    assert line == f"it does not accept flights yet: {full}; {clock}"


def test_a_service_that_is_ready_late_is_reported_after_all_and_asked_seldom_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def ask(url: str, within_s: float) -> Answer:
        asked.append(url)
        return Answer(503, b"") if len(asked) < 3 else GOOD

    monkeypatch.setattr(announcement, "READY_WITHIN_S", -1)
    monkeypatch.setattr(announcement, "ask", ask)
    lines: list[str] = []
    made = Announcement(Settings(), lines.append, frontend=False)
    for _ in range(100):
        made.look()
    assert len(asked) == 1
    monkeypatch.setattr(announcement, "LATE_EVERY_S", 0)
    made._next_look = 0
    while not made.is_made:
        made.look()
    assert [line[:12] for line in lines] == ["not ready af", "Flightchain ", "for example:"]


def test_what_another_program_answers_at_the_port_is_a_refusal_and_no_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = b'{"height": 1, "block": []}'
    for body in (b"", b"<html>", b"[]", b"null", b'"no"', b"[" * 100_000, b"\xff", other):
        (line,) = lines_of(monkeypatch, GOOD, Answer(404, body), -1)
        assert line.endswith("it answers with status 404")
        *_, example = lines_of(monkeypatch, GOOD, Answer(200, body))
        assert example.endswith("/tip'")
