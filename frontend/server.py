"""The web server of the pages. It is one process, which waits for the backend most of the time."""

from typing import Any

from backend.serving import gunicorn_app
from backend.serving.front import Front
from frontend.app import create_app
from frontend.settings import Settings
from frontend.site import PagesSite


def run(settings: Settings) -> None:

    def load() -> Front:
        return Front(PagesSite(settings, create_app(settings)))

    gunicorn_app.run(load, gunicorn_options(settings))


def gunicorn_options(settings: Settings) -> dict[str, Any]:
    """Return the settings of gunicorn for the pages, besides `gunicorn_app.COMMON`."""
    return {"bind": gunicorn_app.bind_address(settings.host, settings.port), "workers": 1}
