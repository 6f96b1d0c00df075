"""A page without layout, session or form, for requests for which no other page can be made."""

from html import escape
from http import HTTPStatus


def plain_page(status: int, detail: str) -> bytes:
    """The page in UTF-8. status: of HTTP. detail: what is wrong, without a full stop."""
    title = HTTPStatus(status).phrase
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{title} · Flightchain</title><h1>{title}</h1>"
        f"<p>{escape(detail)}.</p></html>\n"
    ).encode()
