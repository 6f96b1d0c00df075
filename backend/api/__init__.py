"""REST: parameters in, a call of the ledger, JSON out. Thin on purpose.

Every error on every route is `application/problem+json` (RFC 9457) and names the field at fault.
"""

from collections.abc import Callable

from flask import Flask

from backend.api import blocks, health, problems, questions, suggest, transactions
from backend.api.quick import is_quick
from backend.ledger import Ledger
from backend.settings import Settings

LEDGER = "flightchain.ledger"
QUICK = "flightchain.quick"
MAX_BODY_BYTES = 64 * 1024


def create_app(settings: Settings, restart: Callable[[], None] = lambda: None) -> Flask:
    """The service over the ledger in `settings.folder`. Opens no file and starts no thread.

    restart: has this process replaced by a new one; called after a write has failed.
    """
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.url_map.merge_slashes = False  # an address that is not ours is 404, not a redirect
    ledger = app.extensions[LEDGER] = Ledger(settings, app.logger.warning)
    for part in (questions, suggest, blocks, transactions, health):
        app.register_blueprint(part.blueprint(ledger))
    problems.install(app, restart)
    app.extensions[QUICK] = is_quick
    return app
