"""Asks the backend over HTTP. The only module that knows how.

Connections are kept alive, one for each thread. A question is asked once more if a kept connection
turns out to be closed, but not if the answer takes too long. A post that adds flights carries an
Idempotency-Key, so that it may be, too.

In a cluster there may be several backends. Flights are added by the first alone, because no other
knows its Idempotency-Keys. Questions are spread page by page, so that the answers on a page are of
one node; if that does not answer, or does not know what another may know, the next one is asked.
"""

import errno
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count
from typing import Any
from urllib.parse import quote

import msgspec
import requests
from urllib3.exceptions import HTTPError, ReadTimeoutError

from frontend.bodies import ANY_FILE
from frontend.errors import BackendAway, Refused

Json = dict[str, Any]

CONNECT_S, ANSWER_S = 2.0, 20.0
AWAY_S = 5.0  # for so long the others are asked before a backend that did not answer
ANOTHER_MAY_KNOW = {404, 503}
PIECE_BYTES = 64 * 1024
PASSED_ON = (
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "Content-Disposition",
    "Cache-Control",
    "Vary",
)

_object = msgspec.json.Decoder(Json).decode


class File:
    """An answer that is passed on while it comes. `close` it in the end.

    headers: those that say what it is, and how it is compressed.
    """

    def __init__(self, answer: requests.Response) -> None:
        self._answer = answer
        self.headers = {name: answer.headers[name] for name in PASSED_ON if name in answer.headers}
        self.close = answer.close

    def pieces(self) -> Iterator[bytes]:
        """Yield its bytes. Raises ConnectionResetError where it breaks off, as it is not whole."""
        try:
            yield from self._answer.raw.stream(PIECE_BYTES, decode_content=False)
        except (HTTPError, OSError) as error:
            raise ConnectionResetError(errno.ECONNRESET, "the answer broke off") from error


class _ThreadState(threading.local):
    at = 0  # the number of the backend that is asked first
    waited_s = 0.0
    session: requests.Session | None = None


class Backend:
    """The backend at `url` (which has no slash at the end), and others. Safe for threads."""

    def __init__(self, url: str, *others: str) -> None:
        self.url = url
        self.urls = (url, *others)
        self._local = _ThreadState()
        self._turns = count()
        self._away_until_s: dict[str, float] = {}

    def begin_page(self) -> None:
        """Let this thread ask the next backend from now on."""
        self._local.at = next(self._turns) % len(self.urls)
        self.take_waited_s()

    def take_waited_s(self) -> float:
        """Return how many seconds this thread has waited for answers since it last called this."""
        waited_s, self._local.waited_s = self._local.waited_s, 0.0
        return waited_s

    def get(self, path: str, parameters: Mapping[str, Any] | None = None) -> Json:
        """Return the JSON at `path`. Raises BackendAway, Refused."""
        return self._object(self._first_answer(path, params=dict(parameters or {})))

    def tips(self) -> Iterator[tuple[str, Json | None, Refused | None]]:
        """Yield each backend's address, its tip, None without one, and why it is not ready."""
        for url in self.urls:
            tip, refusal = None, None
            try:
                with suppress(Refused):
                    tip = self._object(self._answer(url, "GET", "/tip"))
                self._answer(url, "GET", "/health/ready")
            except Refused as error:
                refusal = error
            except BackendAway:
                tip = None
            yield url, tip, refusal

    def file(self, path: str, parameters: Mapping[str, str], encodings: str) -> File:
        """Return what is at `path`, however long it is. Raises as `get`.

        encodings: an Accept-Encoding, of whoever gets it.
        """
        headers = {"Accept-Encoding": encodings or "identity"}
        return File(self._first_answer(path, params=dict(parameters), headers=headers, stream=True))

    def check(self, record: Mapping[str, Any]) -> Json:
        """Return what would become of one flight; nothing is added. Raises as `get`."""
        return self._post("/transactions", params={"dry_run": "true"}, json=record)

    def add(self, record: Mapping[str, Any], key: str, token: str) -> Json:
        """Return the receipt for one flight, which is then durable. Raises as `get`.

        key: an Idempotency-Key, so that sending it again adds nothing. token: "" for none.
        """
        headers = _headers(token, key)
        return self._post("/transactions", json=record, headers=headers)

    def begin_import(self, name: str, size: int | str, token: str) -> Json:
        """Announce a file of flights. Raises as `get`."""
        return self._post_with("/imports", {"NAME": name, "SIZE": size}, token)

    def send_part(self, import_id: str, offset: int | str, part: bytes, token: str) -> Json:
        """Send a part of a file. Raises as `get`."""
        headers = {**_headers(token, ""), "Content-Type": ANY_FILE}
        params = {"OFFSET": offset}
        return self._post(_of_import(import_id), params=params, data=part, headers=headers)

    def check_import(self, import_id: str, dates: str, token: str) -> Json:
        """Have a file checked. dates: how days are written, or "". Raises as `get`."""
        return self._post_with(f"{_of_import(import_id)}/check", {"dates": dates}, token)

    def add_import(self, import_id: str, on_error: str, token: str) -> Json:
        """Have the flights of a checked file added. on_error: "skip", or "". Raises as `get`."""
        return self._post_with(f"{_of_import(import_id)}/add", {"on_error": on_error}, token)

    def remove_import(self, import_id: str, token: str) -> None:
        """Have a file removed that shall not be added. Raises as `get`."""
        self._answer(self.url, "DELETE", _of_import(import_id), headers=_headers(token, ""))

    def sent_file(self, import_id: str) -> Json:
        """Return a file that was sent, and how far it is. Raises as `get`."""
        return self._object(self._answer(self.url, "GET", _of_import(import_id)))

    def fetch_month(self, month: str, token: str) -> Json:
        """Have the backend begin to fetch a month of BTS. Raises as `get`."""
        return self._post_with("/months", {"MONTH": month}, token)

    def wants_token(self) -> bool:
        """Return whether adding needs a token; an empty batch is sent without one, to add nothing.

        Raises as `get`.
        """
        try:
            headers = {"Content-Type": "application/x-ndjson"}
            self._post("/transactions/batch", data=b"\n", headers=headers)
        except Refused as error:
            if error.status != 401:
                raise
            return True
        return False

    def _post_with(self, path: str, parameters: Mapping[str, Any], token: str) -> Json:
        given = {name: value for name, value in parameters.items() if value != ""}
        return self._post(path, params=given, headers=_headers(token, ""))

    def _post(self, path: str, **how: Any) -> Json:
        return self._object(self._answer(self.url, "POST", path, **how))

    def _object(self, answer: requests.Response) -> Json:
        try:
            return _object(answer.content)
        except (ValueError, RecursionError) as error:
            raise BackendAway(self.url, f"the answer is not JSON ({error})") from error

    def _first_answer(self, path: str, **how: Any) -> requests.Response:
        """Return the first good answer of a backend, or the first problem.

        Raises BackendAway, Refused.
        """
        problems: list[BackendAway | Refused] = []
        for url in self._in_turn():
            try:
                answer = self._answer(url, "GET", path, **how)
            except BackendAway as problem:
                self._away_until_s[url] = time.monotonic() + AWAY_S
                problems.append(problem)
            except Refused as problem:
                if problem.status not in ANOTHER_MAY_KNOW:
                    raise
                problems.insert(0, problem)
            else:
                self._local.at = self.urls.index(url)
                return answer
        raise problems[0]

    def _in_turn(self) -> list[str]:
        """Return all backends: that of this page first, and those without an answer lately last."""
        at, now_s = self._local.at, time.monotonic()
        urls = [*self.urls[at:], *self.urls[:at]]
        return sorted(urls, key=lambda url: self._away_until_s.get(url, 0.0) > now_s)

    def _answer(self, url: str, method: str, path: str, **how: Any) -> requests.Response:
        how |= {"timeout": (CONNECT_S, ANSWER_S), "allow_redirects": False}
        started = time.perf_counter()
        try:
            answer = self._ask(method, url + path, **how)
        except requests.Timeout as error:
            raise BackendAway(url, f"no answer within {ANSWER_S:g} s") from error
        except requests.RequestException as error:
            raise BackendAway(url, _reason(error)) from error
        finally:
            self._local.waited_s += time.perf_counter() - started
        if answer.ok:
            return answer
        with answer:
            raise _refused(answer)

    def _ask(self, method: str, address: str, **how: Any) -> requests.Response:
        try:
            return self._session().request(method, address, **how)
        except requests.Timeout:
            raise
        except requests.ConnectionError as error:
            if isinstance(error.args[0], ReadTimeoutError):  # in the midst of an answer
                raise requests.ReadTimeout(error) from error
            return self._session().request(method, address, **how)

    def _session(self) -> requests.Session:
        session = self._local.session
        if session is None:
            session = self._local.session = requests.Session()
            session.trust_env = False  # so that no proxy comes in between, whatever the environment
            session.headers["Accept-Encoding"] = "identity"  # compressing takes longer than sending
        return session


def _of_import(import_id: str) -> str:
    return f"/imports/{quote(import_id, safe='')}"


def _headers(token: str, key: str) -> dict[str, str]:
    headers = {"Idempotency-Key": key} if key else {}
    # No token holds a character that a header may not: with a ? instead it is a wrong token.
    sendable = "".join(c if c.isascii() and c.isprintable() else "?" for c in token)
    return headers | ({"Authorization": f"Bearer {sendable}"} if token else {})


def _refused(answer: requests.Response) -> Refused:
    try:
        problem = _object(answer.content)
    except (ValueError, RecursionError):
        problem = {
            "detail": f"the service answered with status {answer.status_code} and no explanation"
        }
    wait = answer.headers.get("Retry-After", "")
    return Refused(problem, answer.status_code, int(wait) if wait.isdigit() else None)


def _reason(error: requests.RequestException) -> str:
    """Return the innermost error of a chain, as it happened, without addresses in memory."""
    cause: BaseException = error
    while (deeper := cause.__cause__ or cause.__context__) is not None:
        cause = deeper
    text = cause.strerror if isinstance(cause, OSError) and cause.strerror else str(cause)
    return text or type(cause).__name__


def by_height(answer: Json) -> list[Json]:
    """Return the rows of an answer of `/blocks`, newest first.

    A row with `detail` is of a damaged block: it has only `height`, and what the table of heights
    says, which is `hash`, `first_transaction` and `transaction_count`, each None if that is
    damaged, too.
    """
    rows = [*answer["blocks"], *answer.get("damaged", ())]
    return sorted(rows, key=lambda row: -row["height"])
