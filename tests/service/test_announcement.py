"""What the terminal says once a service answers, or if it does not."""

import pytest

from backend.base.http_requests import Answer, NoAnswer
from backend.base.settings import Settings
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
    assert made.is_begun == bool(lines)
    return lines


@each_of(
    ("pages", "ready", "reason"),
    [
        (None, GOOD, "connection refused"),
        (GOOD, None, "connection refused"),
        (Answer(502, b""), GOOD, "the pages are not shown"),
        (GOOD, Answer(503, b'{"detail": "no chain"}'), "no chain"),
        (GOOD, Answer(503, b'{"reasons": []}'), "it answers with status 503"),
    ],
)
def test_a_service_that_does_not_answer_in_time_is_reported_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, pages: Answer | None, ready: Answer | None, reason: str
) -> None:
    assert lines_of(monkeypatch, pages, ready) == []
    assert lines_of(monkeypatch, pages, ready, -1) == [f"not ready after -1 s: {reason}"]


def test_what_does_not_work_once_it_has_started_is_reported_and_when_that_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [Answer(503, b'{"reasons": ["the disk is full", "no miner"]}')] * 3
    answers += [Answer(503, b'{"reasons": ["no miner"]}')] * 2
    monkeypatch.setattr(announcement, "ask", lambda url, within_s: (answers or [GOOD]).pop(0))
    monkeypatch.setattr(announcement, "LATE_EVERY_S", 0)
    lines: list[str] = []
    made = Announcement(Settings(), lines.append, frontend=False)
    made.look()
    assert lines == []  # the miner may still be starting
    made._started_by = 0
    while not made.is_made:
        made.look()
    assert lines == [
        "Flightchain answers at http://127.0.0.1:8000",
        "for example: curl 'http://127.0.0.1:8000/tip'",
        "not everything works:",
        "the disk is full",
        "no miner",
        "this still does not work:",
        "no miner",
        "everything works now",
    ]


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


@each_of(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("fd00::1", "http://[fd00::1]:8000"),
        ("pi.lan", "http://pi.lan:8000"),
    ],
)
def test_a_service_is_asked_in_the_family_of_addresses_in_which_it_listens(
    host: str, url: str
) -> None:
    assert announcement.base_url(host, 8000) == url
