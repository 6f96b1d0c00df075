"""The REST service: takes parameters, calls the ledger, and answers in JSON. It is thin on purpose.

`service/web_server.py` finds the row of each request in the table of routes (`_table`, below), and
calls its handler. `docs/explanation/house.md` follows a posted flight and a question.

Every error on every route is `application/problem+json` (RFC 9457) and names the field at fault.

    routes, operation             a row of the table, and what it takes and answers
    reception, observing          what is done for every request, and what tells of it
    reading, writing              read what is sent; accept flights
    problems, responses, json_answers, conditions, encodings, streaming
                                  make answers: errors, JSON, 304, compressed and long ones
    question_answers, suggest, exporting, flight_lines, block_routes, proof_routes, evidence_zip,
    transparency_log              answer from the ledger
    transaction_routes, batch, import_routes, month_routes, study_paths
                                  add flights
    health, metrics               tell how the service is
    specification, schemas, body_types, docs
                                  describe it
"""

from collections.abc import Callable
from socket import gethostname
from typing import Any

from flask import Flask, Response

from backend.api import (
    batch,
    block_routes,
    docs,
    exporting,
    health,
    import_routes,
    metrics,
    month_routes,
    proof_routes,
    question_answers,
    routes,
    specification,
    study_paths,
    suggest,
    transaction_routes,
    transparency_log,
)
from backend.api.conditions import NO_STORE
from backend.api.json_answers import AnswerCache
from backend.api.metrics import Metrics
from backend.api.observing import lab_headers
from backend.api.problems import Problems
from backend.api.question_answers import Answering
from backend.api.reception import Reception
from backend.api.routes import Table
from backend.api.streaming import Streams
from backend.api.writing import Writing
from backend.base.once import once
from backend.base.settings import Settings
from backend.ledger.ledger import Ledger
from backend.serving.host_policy import HostPolicy

SERVICE = "flightchain.service"  # a key in the application's extensions


class Service:
    """The service over the ledger in `settings.folder`. It opens no file and starts no thread.

    table: all routes. application: answers them all, under any WSGI server. flask: the same without
    a reception. reception, problems, metrics: used by the ASGI front as well.
    """

    def __init__(self, settings: Settings, restart: Callable[[], None] = lambda: None) -> None:
        """restart: replaces this process by a new one; it is called after a write has failed."""
        self.settings = settings
        self.application = app = _Application(__name__, static_folder=None)
        self.ledger = ledger = Ledger(settings, app.logger.warning)
        answers = AnswerCache(settings.answer_cache_bytes)
        self.metrics = Metrics(ledger, answers)
        self.problems = Problems(restart)
        is_lab = settings.lab == "yes"
        self.reception = Reception(
            HostPolicy(settings.host, settings.hosts, gethostname()),
            self.metrics.requests,
            access_log=bool(settings.access_log),
            always=lab_headers(settings.emulated_disk, is_lab=is_lab),
            tells_start=is_lab,
        )
        self.table = _table(ledger, answers, self.metrics)
        self._install(app)

    def _install(self, app: Flask) -> None:
        app.extensions[SERVICE] = self
        routes.install(app, self.table)
        study_paths.install(app)
        self.problems.install(app)
        self.flask = app.wsgi_app
        inner: Any = self.reception.around(app.wsgi_app)
        app.wsgi_app = inner  # type: ignore[method-assign]


def _table(ledger: Ledger, answers: AnswerCache, metrics_: Metrics) -> Table:
    answering, writing = Answering(ledger, answers), Writing(ledger)
    streams = Streams(max(1, ledger.settings.threads // 4))
    table = Table()
    described = once(lambda: specification.document(table))
    table.add(question_answers.rows(answering))
    table.add(exporting.rows(ledger, streams))
    table.add(suggest.rows(ledger))
    table.add(transaction_routes.rows(ledger, writing))
    table.add(batch.rows(ledger, writing))
    table.add(import_routes.rows(ledger, writing))
    table.add(month_routes.rows(ledger))
    table.add(block_routes.rows(ledger))
    table.add(proof_routes.rows(ledger, streams))
    table.add(transparency_log.rows(ledger))
    table.add(study_paths.rows(ledger, answering, writing))
    table.add(health.rows(ledger))
    table.add(specification.rows(described))
    table.add(docs.rows(described, ledger.settings.port))
    table.add(metrics.rows(metrics_))
    return table


class _Application(Flask):
    def make_default_options_response(self) -> Response:
        """Answer OPTIONS with the methods in `Allow` and no body."""
        response = super().make_default_options_response()
        response.headers["Cache-Control"] = NO_STORE
        del response.headers["Content-Type"]
        return response
