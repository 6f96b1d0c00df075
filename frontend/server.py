"""The web server of the pages. It is one process, which waits for the backend most of the time."""

from backend.serving import gunicorn_app
from backend.serving.front import Front
from frontend.app import create_app
from frontend.settings import Settings
from frontend.site import PagesSite


def run(settings: Settings) -> None:
    """Serve the pages, with the settings of gunicorn that are not `gunicorn_app.COMMON`."""

    def load() -> Front:
        return Front(PagesSite(settings, create_app(settings)))

    bind = gunicorn_app.bind_address(settings.host, settings.port)
    gunicorn_app.run(load, {"bind": bind, "workers": 1})
