"""Hands out sentences and tables for people, which are in `templates/texts.html`, as data."""

from typing import Any

from flask import current_app


def texts(name: str) -> Any:
    """Return what the template sets under a name."""
    return getattr(current_app.jinja_env.get_template("texts.html").module, name)
