"""Makes the application: pages, filters, headers, errors."""

import gzip
import time
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from string import punctuation
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flask import Flask, Response, g, request
from jinja2 import Environment
from werkzeug.local import LocalProxy

from frontend import bodies, context, filters, pages, path_prefix, request_guard, static_files
from frontend.context import backend
from frontend.evidence import address_to_cite
from frontend.field_labels import TEXTS
from frontend.form_request import FormRequest
from frontend.pages import error_pages
from frontend.pages.flight_status import numbers_like
from frontend.parameters import known_of, lead_to_strict_values, require_single, require_taken
from frontend.questions.figures import FEW_ARRIVALS, FEW_IN_A_SLOT
from frontend.questions.group_queries import only_origins
from frontend.questions.group_rows import PUNCTUALITY, SORTS, months_of_year, scale
from frontend.questions.intervals import offered
from frontend.questions.verdicts import best_and_worst
from frontend.search.hints import hints
from frontend.settings import COMMAND, Settings

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


MACROS = (
    *("layout", "forms", "charts", "lab", "adding"),
    *("questions", "groups", "flights", "evidence"),
)
"""Files of macros that every template has by their names."""

LEAST_COMPRESSED_BYTES = 1024
COMPRESSED = {"text/html", "text/csv", "application/json"}

PAGES = [
    module
    for page in iter_modules(pages.__path__)
    if hasattr(module := import_module(f"frontend.pages.{page.name}"), "routes")
]
"""The modules of `frontend.pages` that have `routes`."""


class _Pages(Flask):
    def wsgi_app(self, environ: dict[str, Any], start_response: "StartResponse") -> Iterable[bytes]:
        """Answer a request without the parameters that no page knows.

        Bytes of the query that are not ASCII are percent-encoded first. Browsers do that. PEP 3333
        passes such bytes from others on as Latin-1, and Werkzeug fails.
        """
        query: str = environ.get("QUERY_STRING", "")
        if not query.isascii():
            query = quote(query, safe=punctuation, encoding="latin-1")
        environ["QUERY_STRING"] = known_of(environ["PATH_INFO"], query)
        return super().wsgi_app(environ, start_response)


def _macros(templates: Environment, name: str) -> object:
    return templates.get_template(f"macros/{name}.html").module


def create_app(settings: Settings) -> Flask:
    """Make the pages over the backend at `settings.backend_url`. It is not asked anything yet."""
    app = _Pages(__name__, static_folder=None)
    bodies.install(app, settings.max_body_bytes)
    context.install(app, settings)
    _install_server_timing(app)  # first, so that it measures everything else
    request_guard.install(app, settings)
    app.before_request(require_single)
    app.before_request(require_taken)
    app.before_request(lead_to_strict_values)
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    filters.install(app)
    for template_filter in (best_and_worst, months_of_year, scale):
        app.add_template_filter(template_filter)
    app.jinja_env.globals |= {
        "command": COMMAND,
        "texts": TEXTS,
        "coverage": app.extensions["coverage"].now,
        "empty_form": FormRequest[None](),
        "offered": offered,
        "only_origins": only_origins,
        "similar_numbers": numbers_like,
        "punctuality": SORTS[PUNCTUALITY],
        "few_arrivals": FEW_ARRIVALS,
        "few_in_a_slot": FEW_IN_A_SLOT,
        "hints": hints,
        "address_to_cite": address_to_cite,
        "search_examples": app.extensions["examples"],
    }
    for page in PAGES:
        app.register_blueprint(page.routes)
    app.add_url_rule("/health/live", "live", lambda: {"status": "ok"})
    error_pages.install(app)
    static_files.install(app)
    app.after_request(_finish)
    path_prefix.install(app)  # last, so that it comes before the others, and before compression
    for name in MACROS:  # compiled when a page needs them, because all take longer than this start
        app.jinja_env.globals[name] = LocalProxy(partial(_macros, app.jinja_env, name))
    return app


def _install_server_timing(app: Flask) -> None:
    """Say in Server-Timing how long a page took, and how much of that was spent waiting."""

    @app.before_request
    def begin() -> None:
        g.started = time.perf_counter()
        backend.begin_page()

    @app.after_request
    def end(response: Response) -> Response:
        total_ms = 1000 * (time.perf_counter() - g.started)
        waited_ms = 1000 * backend.take_waited_s()
        timing = f"total;dur={total_ms:.2f}, backend;dur={waited_ms:.2f}"
        response.headers["Server-Timing"] = timing
        return response


def _finish(response: Response) -> Response:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)  # a report of the lab has a policy of its own
    response.headers.setdefault("Cache-Control", "no-cache")
    if response.mimetype in COMPRESSED and not response.is_streamed:
        _compress(response)
    return response


def _compress(response: Response) -> None:
    """Compress a long enough text if the client takes gzip; `static_files` compresses its own."""
    response.vary.add("Accept-Encoding")
    body = response.get_data()
    if request.accept_encodings.quality("gzip") and len(body) >= LEAST_COMPRESSED_BYTES:
        response.set_data(gzip.compress(body, 6, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
