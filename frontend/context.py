"""The backend, its coverage and the settings, for pages of the current application."""

from flask import Flask, current_app
from werkzeug.local import LocalProxy

from frontend.backend_client import Backend
from frontend.coverage import CoverageKeeper
from frontend.search.examples import Examples
from frontend.settings import Settings


def install(app: Flask, settings: Settings) -> None:
    """Make all of them for `app`. The backend is not asked anything yet."""
    made = Backend(settings.backend_url, *settings.more_backends)
    keeper = CoverageKeeper(made)
    examples = Examples(made, keeper)
    app.extensions |= {
        "settings": settings,
        "backend": made,
        "coverage": keeper,
        "examples": examples,
    }


def _proxy(name: str) -> LocalProxy[object]:
    return LocalProxy(lambda: current_app.extensions[name])


settings: Settings = _proxy("settings")  # type: ignore[assignment]
backend: Backend = _proxy("backend")  # type: ignore[assignment]
coverage: CoverageKeeper = _proxy("coverage")  # type: ignore[assignment]
search_examples: Examples = _proxy("examples")  # type: ignore[assignment]
