"""gunicorn with the pages. One process: it waits for the backend more than it computes."""

import logging
from typing import Any

from gunicorn.app.base import BaseApplication

from frontend.app import create_app
from frontend.settings import Settings, for_url
from frontend.visitors import hide_secrets

SILENT_S = 18  # of the worker's loop, which speaks each second; then the worker is replaced


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT."""

    class Application(BaseApplication):
        def load_config(self) -> None:
            for name, value in _options(settings).items():
                self.cfg.set(name, value)

        def load(self) -> Any:
            return create_app(settings)

    logging.getLogger("gunicorn.error").addFilter(hide_secrets)
    Application().run()


def _options(settings: Settings) -> dict[str, Any]:
    return {
        "bind": f"{for_url(settings.host)}:{settings.port}",
        "workers": 1,
        "worker_class": "gthread",
        "threads": settings.threads,
        "keepalive": 30,
        "timeout": SILENT_S,
        "graceful_timeout": 5,
        "control_socket_disable": True,
        "loglevel": "warning",
        "limit_request_fields": 50,
        "limit_request_field_size": 4096,
    }
