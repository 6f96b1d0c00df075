"""REST: parameters in, a call of the ledger, JSON out. Thin on purpose.

Every error on every route is `application/problem+json` (RFC 9457) and names the field at fault.
"""

from collections.abc import Callable

from flask import Flask

from backend.api import batch, blocks, health, metrics, problems, questions, study, transactions
from backend.api.answers import AnswerCache
from backend.api.quick import is_quick
from backend.api.writing import Writing
from backend.ledger import Ledger
from backend.settings import Settings

LEDGER = "flightchain.ledger"
QUICK = "flightchain.quick"
METRICS = "flightchain.metrics"


def create_app(settings: Settings, restart: Callable[[], None] = lambda: None) -> Flask:
    """The service over the ledger in `settings.folder`. Opens no file and starts no thread.

    restart: has this process replaced by a new one; called after a write has failed.
    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    app.url_map.merge_slashes = False  # an address that is not ours is 404, not a redirect
    ledger = app.extensions[LEDGER] = Ledger(settings, app.logger.warning)
    answers = AnswerCache(settings.answer_cache_bytes)
    app.register_blueprint(questions.blueprint(ledger, answers))
    for readable in (blocks, health):
        app.register_blueprint(readable.blueprint(ledger))
    writing = Writing(ledger)
    for writable in (transactions, batch, study):
        app.register_blueprint(writable.blueprint(ledger, writing))
    problems.install(app, restart)
    app.extensions[QUICK] = is_quick
    app.extensions[METRICS] = metrics.install(app, ledger, answers)
    return app
