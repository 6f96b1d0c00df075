"""Refuses what comes from other sites or carries a token in its address, as a problem.

It stands around everything that answers, the quick ways included, and inside of what observes: so
nothing is done for such a request, and it has an id and a line in the access log like all others.
"""

from socket import gethostname
from typing import Any

from flask import Flask

from backend.api.problems import MIMETYPE, problem_body
from backend.settings import Settings
from backend.visitors import Headers, Refusal, Visitors, guarded


def install(app: Flask, settings: Settings) -> None:
    """Let `app` answer only who asks by a name of the service in `settings`."""
    visitors = Visitors(settings.host, settings.hosts, gethostname())
    inner: Any = guarded(app.wsgi_app, visitors, _problem)
    app.wsgi_app = inner  # type: ignore[method-assign]


def _problem(refusal: Refusal) -> tuple[Headers, bytes]:
    body = problem_body(refusal.status, refusal.detail, field=refusal.field)
    return [("Content-Type", MIMETYPE)], body
