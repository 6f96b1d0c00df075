"""`/about`: what the ledger is, what it protects, what its words mean, how programs ask it."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, render_template, request

from frontend import field_labels
from frontend.adding.kinds_of_files import KINDS_OF_FILES
from frontend.context import settings
from frontend.settings import EVERYWHERE, Settings, for_url
from frontend.twins import JSON_ALONE, Twin, twins

PORT_BEHIND_NGINX = 8001  # of the service, in scripts/deploy/nginx.conf

DEFINITIONS = {
    "On time": "a flight that arrived less than 15 minutes after schedule, as the US Department of "
    "Transportation counts; early flights are on time",
    "Late": "a flight that arrived 15 minutes or more after schedule",
    "Arrived": "a flight whose arrival at its destination is recorded, on time or late",
    "Cancelled": "a flight that did not take place",
    "No arrival recorded": "a flight that was not cancelled and has no arrival at its destination; "
    "most were diverted",
    "Mean delay": "the average of ARR_DELAY, in minutes, over the flights that arrived; early "
    "flights count below zero; flights that were cancelled or have no arrival do not count",
    "On time (% of arrivals)": "the share of the flights that arrived which were on time",
    "On time (% of scheduled)": "the share of all flights which were on time: flights that were "
    "cancelled or have no arrival count here, and not as on time; the US Department of "
    "Transportation publishes this share",
    "Median delay": "the middle one of all arrival delays in order, or the mean of the middle two",
    "90th percentile": "the smallest delay that at least 90 % of the arrivals do not exceed: the "
    "delay of a flight (nearest rank), not a value between two",
    "Days flown": "days on which at least one flight was not cancelled; all days with flights are "
    "days scheduled",
    "Day": "FL_DATE, local; both days of a period count",
    "Pending": "accepted and on the disk, but in no block yet",
}

routes = Blueprint("about", __name__)  # it needs no backend, so it can be read while that is away


@routes.get("/about")
def about() -> str:
    return render_template(
        "about.html",
        definitions=DEFINITIONS,
        fields=field_labels.TRANSACTION,
        **_api(),
    )


@twins(routes, "/about", JSON_ALONE)
def twin() -> Twin:
    dictionary = [
        {"name": field.name, "label": field.label, "meaning": field.meaning}
        for field in field_labels.TRANSACTION
    ]
    return Twin(
        {
            "definitions": DEFINITIONS,
            "kinds": KINDS_OF_FILES,
            "fields": dictionary,
            "api": _api()["api"],
        }
    )


def _api() -> dict[str, Any]:
    """The address at which this visitor reaches the service, if at all, and whether by a proxy."""
    visited = urlsplit(f"//{request.host}").hostname or ""
    is_proxied = "X-Forwarded-For" in request.headers
    return {"api": api_for(settings, visited, is_proxied=is_proxied), "is_proxied": is_proxied}


def api_for(settings: Settings, visited: str, *, is_proxied: bool) -> str | None:
    """The address of the service for a visitor who reached this frontend at the host `visited`.

    None if the service listens on its own machine only, and that is not where the visitor is.
    """
    if is_proxied:
        return f"http://{for_url(visited)}:{PORT_BEHIND_NGINX}"
    service = urlsplit(settings.backend_url)
    host = settings.backend_host or service.hostname or ""
    if host in EVERYWHERE or (_is_loopback(host) and _is_loopback(visited)):
        return f"http://{for_url(visited)}:{service.port or 80}"
    return None if _is_loopback(host) else settings.backend_url


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
