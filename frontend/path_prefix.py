"""Lets the pages stand below a path of a proxy, which names it in X-Forwarded-Prefix.

Pages and redirects are made with addresses from the root. Here the path is put before all of them,
so that no page can forget it; scripts find theirs from their own address. Lines to copy, which are
no links, begin with `site_address`.
"""

import re

from flask import Flask, Response, request

HEADER = "X-Forwarded-Prefix"
MOST_CHARACTERS = 200
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_ADDRESS = re.compile(
    rb'(?<=[\s:])(?:href|src|action|formaction|data-(?:refresh|proof|transactions))="(?=/(?!/))'
)


def install(app: Flask) -> None:
    """Put the path before the addresses in all answers of `app` to requests that name one."""
    app.after_request(_prefixed)
    app.jinja_env.globals["site_address"] = site_address


def site_address() -> str:
    """Return where the pages stand as visitors see it, without a slash at the end."""
    return request.host_url[:-1] + _prefix()


def _prefix() -> str:
    """Return the path that the proxy names; "" if it names none, or something else."""
    prefix = request.headers.get(HEADER, "").rstrip("/")
    return prefix if len(prefix) <= MOST_CHARACTERS and _PREFIX.fullmatch(prefix) else ""


def _prefixed(response: Response) -> Response:
    prefix = _prefix()
    if not prefix:
        return response
    response.vary.add(HEADER)
    if response.headers.get("Location", "").startswith("/"):
        response.headers["Location"] = prefix + response.headers["Location"]
    if response.mimetype == "text/html":
        response.direct_passthrough = False
        page = _ADDRESS.sub(rb"\g<0>" + prefix.encode(), response.get_data())
        response.set_data(page)
    return response
