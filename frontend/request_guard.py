"""Refuses requests by their heads: those of other sites, and with bodies that no page takes.

Flask judges a request here before it does anything else. The page for a foreign Host and for a
token in the address has no form in it; the others get a page like all errors. The web server asks
`problem_with_body` before it reads a body, too.
"""

from html import escape
from http import HTTPStatus
from socket import gethostname

from flask import Flask, Response, request
from werkzeug.datastructures import EnvironHeaders, Headers
from werkzeug.exceptions import (
    Forbidden,
    HTTPException,
    RequestEntityTooLarge,
    UnsupportedMediaType,
)
from werkzeug.wsgi import get_content_length

from backend.serving.environs import Environ
from backend.serving.host_policy import OWN_PAGES, HostPolicy, hide_query
from frontend.bodies import most_bytes
from frontend.filters import size
from frontend.settings import Settings

READING = {"GET", "HEAD", "OPTIONS"}
UNNAMED = "a page that does not say its address"
PACKED = "A body must be sent uncompressed, with no Content-Encoding, not {!r}."


class ForeignForm(Forbidden):
    """A POST that no page of this address has sent."""


def is_from_own_page(headers: Headers) -> bool:
    """Return whether a request's headers say that it comes from a page at its own address.

    Every browser says with a POST which page it comes from, and lets no script change that: in
    Sec-Fetch-Site to addresses that are https or loopback, in Origin since 2020, in Referer ever
    since. The first such header counts. Unlike tokens in forms with a cookie for each session, this
    outlives a restart and blocked cookies, and another port of the same host is another page.
    """
    if (site := headers.get("Sec-Fetch-Site")) is not None:
        return site in OWN_PAGES
    source = headers.get("Origin") or headers.get("Referer", "")
    sender = source.partition("://")[2].partition("/")[0]
    return bool(sender) and sender.lower() == headers.get("Host", "").lower()


def install(app: Flask, settings: Settings) -> None:
    """Let `app` answer only requests that name it and whose bodies it takes."""
    host_policy = HostPolicy(settings.host, settings.hosts, gethostname())

    @app.before_request
    def require_good_head() -> Response | None:
        if refusal := host_policy.refusal(request.environ):
            hide_query(request.environ)
            page, status = plain_page(refusal.status, refusal.detail), refusal.status
            return Response(page, status, {"Cache-Control": "no-store"})
        if problem := problem_with_body(request.environ, settings.max_body_bytes):
            raise problem
        return None


def problem_with_body(environ: Environ, max_file_bytes: int) -> HTTPException | None:
    """Return why the body of a request must not be read, by its head; None if it may."""
    headers = EnvironHeaders(environ)
    if environ["REQUEST_METHOD"] not in READING and not is_from_own_page(headers):
        source = headers.get("Origin", "null")
        sender = UNNAMED if source == "null" else source[:100]
        return ForeignForm(f"this form was sent by {sender}, not by a page of this address")
    coding = headers.get("Content-Encoding", "").strip().lower()
    if coding not in {"", "identity"}:
        return UnsupportedMediaType(PACKED.format(coding[:40]))
    length, most = get_content_length(environ) or 0, most_bytes(environ, max_file_bytes)
    if length > most:
        reason = f"this is {size(length)} long, but at most {size(most)} can be sent here at once"
        return RequestEntityTooLarge(reason)
    return None


def plain_page(status: int, detail: str) -> bytes:
    """Return a page for requests for which no other can be made. detail: has no full stop."""
    title = HTTPStatus(status).phrase
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{title} · Flightchain</title><h1>{title}</h1>"
        f"<p>{escape(detail)}.</p></html>\n"
    ).encode()
