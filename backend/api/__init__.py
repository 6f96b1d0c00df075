"""REST: parameters in, a call of the ledger, JSON out. Thin on purpose.

Every error on every route is `application/problem+json` (RFC 9457) and names the field at fault.
"""

from collections.abc import Callable

from flask import Flask, Response

from backend.api import (
    batch,
    blocks,
    direct,
    docs,
    exporting,
    gate,
    health,
    metrics,
    observing,
    problems,
    questions,
    specification,
    study,
    suggest,
    transactions,
)
from backend.api.answering import Answering
from backend.api.answers import AnswerCache
from backend.api.conditions import NO_STORE
from backend.api.quick import Quick, goes_together
from backend.api.writing import Writing
from backend.ledger import Ledger
from backend.settings import Settings

LEDGER = "flightchain.ledger"
QUICK = "flightchain.quick"
TOGETHER = "flightchain.together"
METRICS = "flightchain.metrics"


def create_app(settings: Settings, restart: Callable[[], None] = lambda: None) -> Flask:
    """The service over the ledger in `settings.folder`. Opens no file and starts no thread.

    restart: has this process replaced by a new one; called after a write has failed.
    """
    app = _Application(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.url_map.merge_slashes = False  # an address that is not ours is 404, not a redirect
    app.url_map.converters["id"] = transactions.Id
    ledger = app.extensions[LEDGER] = Ledger(settings, app.logger.warning)
    answers = AnswerCache(settings.answer_cache_bytes)
    answering, writing = Answering(ledger, answers), Writing(ledger)
    for part in (
        questions.blueprint(ledger, answering),
        exporting.blueprint(ledger),
        suggest.blueprint(ledger),
        transactions.blueprint(ledger, writing),
        batch.blueprint(ledger, writing),
        blocks.blueprint(ledger),
        study.blueprint(ledger, answering, writing),
        health.blueprint(ledger),
        specification.blueprint(),
        docs.blueprint(lambda: specification.document(app)),
    ):
        app.register_blueprint(part)
    problems.install(app, restart)
    direct.install(app)
    gate.install(app, settings)
    observing.install(
        app, access_log=bool(settings.access_log), emulated_disk=settings.emulated_disk
    )
    app.extensions[QUICK] = Quick(ledger)
    app.extensions[TOGETHER] = goes_together
    app.extensions[METRICS] = metrics.install(app, ledger, answers)
    return app


class _Application(Flask):
    def make_default_options_response(self) -> Response:
        """What OPTIONS says: the methods in `Allow`, and no body."""
        response = super().make_default_options_response()
        response.headers["Cache-Control"] = NO_STORE
        del response.headers["Content-Type"]
        return response
