"""`/about`: what the ledger is, what it protects, what its words mean, how programs ask it."""

from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, render_template, request

from backend.serving.host_policy import is_loopback
from frontend.context import settings
from frontend.field_labels import TEXTS, TRANSACTION_FIELDS
from frontend.settings import EVERYWHERE, Settings, for_url
from frontend.twins import JSON_ALONE, Twin, twins

PORT_BEHIND_NGINX = 8001  # of the service, in scripts/deploy/nginx.conf

routes = Blueprint("about", __name__)  # it needs no backend, so it can be read while that is away


@routes.get("/about")
def about() -> str:
    return render_template("about.html", fields=TRANSACTION_FIELDS, **_api())


@twins(routes, "/about", JSON_ALONE)
def twin() -> Twin:
    dictionary = [field._asdict() for field in TRANSACTION_FIELDS]
    return Twin(
        {
            "definitions": TEXTS["definitions"],
            "kinds": TEXTS["kinds_of_files"],
            "fields": dictionary,
            "api": _api()["api"],
        }
    )


def _api() -> dict[str, Any]:
    """Return the address at which this visitor reaches the service, and whether by a proxy."""
    visited = urlsplit(f"//{request.host}").hostname or ""
    is_proxied = "X-Forwarded-For" in request.headers
    behind_nginx = f"{request.scheme}://{for_url(visited)}:{PORT_BEHIND_NGINX}"
    api = behind_nginx if is_proxied else api_for(settings, visited)
    return {"api": api, "is_proxied": is_proxied}


def api_for(settings: Settings, visited: str) -> str | None:
    """Return the service's address for a visitor who reached this frontend at host `visited`.

    None if the service listens on its own machine only, and that is not where the visitor is. No
    proxy is in front of either.
    """
    service = urlsplit(settings.backend_url)
    host = settings.backend_host or service.hostname or ""
    if host in EVERYWHERE or (is_loopback(host) and is_loopback(visited)):
        return f"http://{for_url(visited)}:{service.port or 80}"
    return None if is_loopback(host) else settings.backend_url
