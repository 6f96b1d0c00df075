"""Keeps other sites from making a visitor's browser post.

Every browser says with a POST which page it comes from, and lets no script change that: in
Sec-Fetch-Site to addresses that are https or loopback, in Origin since 2020, in Referer ever since.
A POST whose first such header names no page of this address, or that has none of them, is refused.

This takes the place of tokens in forms with a cookie for each session. Those were lost when the
pages were restarted, when cookies were blocked or cleared, and when another frontend on the same
host, whose cookies are the same on all ports, set its own. What is judged here is in the request
alone: it holds for every process, however long a form has been open. It is stricter, too: a page at
another port of the same host is the same site for cookies, and another origin here. Rebinding a
foreign name to this machine does not help, because `request_guard` refuses such a Host before.
"""

from werkzeug.datastructures import Headers
from werkzeug.exceptions import Forbidden

OWN_PAGES = {"same-origin", "none"}  # none: the visitor repeats the request without any page


class ForeignForm(Forbidden):
    """A POST that no page of this address has sent."""


def is_from_own_page(headers: Headers) -> bool:
    """Return whether a request's headers say that it comes from a page at its own address."""
    if (site := headers.get("Sec-Fetch-Site")) is not None:
        return site in OWN_PAGES
    source = headers.get("Origin") or headers.get("Referer", "")
    sender = source.partition("://")[2].partition("/")[0]
    return bool(sender) and sender.lower() == headers.get("Host", "").lower()
