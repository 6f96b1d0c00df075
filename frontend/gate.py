"""Refuses requests that come from other sites, carry a token in the address, or are compressed.

The first two are judged before Flask sees them: the page that says so has no session, no cookie and
no form in it.
"""

from collections.abc import Mapping
from socket import gethostname
from typing import Any

from flask import Flask, request
from werkzeug.exceptions import UnsupportedMediaType

from frontend.plain_page import plain_page
from frontend.settings import Settings
from serving.visitors import Headers, Refusal, Visitors, guarded

PACKED = "A body must be sent uncompressed, with no Content-Encoding, not {!r}."


def install(app: Flask, settings: Settings, headers: Mapping[str, str]) -> None:
    """Let `app` answer only requests that name it. headers: those that every answer has."""
    visitors = Visitors(settings.host, settings.hosts, gethostname())

    def page(refusal: Refusal) -> tuple[Headers, bytes]:
        found = {"Content-Type": "text/html; charset=utf-8", **headers}
        return list(found.items()), plain_page(refusal.status, refusal.detail)

    inner: Any = guarded(app.wsgi_app, visitors, page)
    app.wsgi_app = inner  # type: ignore[method-assign]
    app.before_request(_require_plain_body)


def _require_plain_body() -> None:
    """Raise UnsupportedMediaType for a compressed body, which would be read as if it were plain."""
    coding = request.headers.get("Content-Encoding", "").strip().lower()
    if request.method == "POST" and coding not in {"", "identity"}:
        raise UnsupportedMediaType(PACKED.format(coding[:40]))
