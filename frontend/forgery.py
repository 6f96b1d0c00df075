"""Keeps other sites from making a browser post: every form to post carries a token of its session.

The cookie that goes with the token is set only where such a form is shown. Both are good for one
run of the frontend and one session of the browser; after that the form comes back.
"""

from flask import Flask
from flask_wtf.csrf import CSRFError, CSRFProtect  # type: ignore[import-untyped]

__all__ = ["CSRFError", "install"]


def install(app: Flask) -> None:
    """Refuse every POST without a token, with a `CSRFError`. Templates have `csrf_token()`."""
    app.config |= {
        "SESSION_COOKIE_NAME": "flightchain_form",
        "SESSION_COOKIE_HTTPONLY": True,
        "SESSION_COOKIE_SAMESITE": "Strict",
        "WTF_CSRF_TIME_LIMIT": None,  # as long as the session, because an upload may take hours
    }
    CSRFProtect(app)
