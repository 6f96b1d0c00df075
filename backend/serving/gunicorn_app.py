"""Runs gunicorn in this process, for either port."""

import gc
import logging
from collections.abc import Callable, Mapping
from typing import Any

from gunicorn.app.base import BaseApplication

from backend.serving.host_policy import hide_secrets
from backend.serving.worker import FrontWorker

SILENT_S = 18  # the loop of a worker speaks each second; after such a silence it is replaced
WORKER_GRACE_S = 5

COMMON: dict[str, Any] = {
    "worker_class": FrontWorker,
    "child_exit": lambda arbiter, worker: FrontWorker.forget(worker),
    "keepalive": 30,
    "timeout": SILENT_S,
    "graceful_timeout": WORKER_GRACE_S,
    "preload_app": True,  # workers share the memory of the code
    "control_socket_disable": True,
    "loglevel": "warning",
    "limit_request_fields": 50,  # these two are for other types of worker
    "limit_request_field_size": 4096,
}


def run(load: Callable[[], Any], options: Mapping[str, Any]) -> None:
    """Serve until this process is told to stop.

    load: makes what the workers serve, a `Front` or, for other types of worker, a WSGI application.
    options: settings of gunicorn, besides `COMMON`.
    """

    class Application(BaseApplication):
        def load_config(self) -> None:
            for name, value in (COMMON | dict(options)).items():
                self.cfg.set(name, value)

        def load(self) -> Any:
            loaded = load()
            gc.freeze()  # what is there now stays until the end: no worker looks through it again
            return loaded

    logging.getLogger("gunicorn.error").addFilter(hide_secrets)
    Application().run()


def bind_address(host: str, port: int) -> str:
    """Return the address to listen at, as gunicorn takes it: an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
