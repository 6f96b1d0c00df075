"""Judges a request by its head before anything else sees it: is it meant for us, is it discreet?

A site elsewhere can let its own name point at this machine (DNS rebinding). A browser here then
sends that site's requests to a service that listens on loopback alone, with an Origin that fits.
Only the Host gives them away: it is the site's name and not ours. So a request that does not name
us is refused, on every path. A token in an address would end up in histories and logs, so such a
request is refused as well, and its query is hidden from all later logs.

This module knows neither files nor sockets nor Flask.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from logging import LogRecord
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

if TYPE_CHECKING:  # commands need the settings, and no web server
    from backend.serving.environs import Environ

SETTING = "FLIGHTCHAIN_HOSTS"
LOOPBACK_NAME, EVERY_NAME = "localhost", "*"
OWN_PAGES = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site. none: the visitor repeats a request without any page."""

SECRET_NAMES = frozenset({"token", "access_token", "api_key", "authorization"})
HIDDEN = "(hidden: it held a token)"
MOST_KNOWN = 100  # Host headers that are remembered as ours
MOST_SHOWN_CHARACTERS = 80

_SUSPICIOUS = (*SECRET_NAMES, "%", "+")  # one of these is in every query that holds a token
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_SECRET = re.compile(rf"\b({'|'.join(sorted(SECRET_NAMES))})=[^&\s'\"]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Says why a request goes no further. field: the header or parameter at fault."""

    status: int
    field: str
    detail: str


class HostPolicy:
    """Knows by which names this service may be asked.

    `localhost` and every loopback address are always among them, with any port. A service that
    listens at a certain address may be asked by that, too, and one that listens beyond loopback by
    the machine's name. One that listens at all addresses may be asked by any address, because
    rebinding needs a name.
    """

    def __init__(self, listens_at: str, more: str, machine: str) -> None:
        """more: further names as `names_in` takes them. machine: the host name of this machine."""
        own = {LOOPBACK_NAME, _compared(listens_at), *names_in(more)}
        address = _address(listens_at)
        if not is_loopback(listens_at):
            own |= {machine.lower(), f"{machine.lower().removesuffix('.local')}.local"}
        self._names = own
        self._takes_any_address = address is not None and address.is_unspecified
        self._takes_all = EVERY_NAME in own
        self._known: set[str] = set()

    def refusal(self, environ: "Environ") -> Refusal | None:
        """Return why the request with this WSGI environ is refused; None if it is not."""
        host = environ.get("HTTP_HOST")
        if host not in self._known and (refusal := self._of_host(host, environ)):
            return refusal
        query = environ.get("QUERY_STRING")
        return _of_query(query) if query else None

    def _of_host(self, host: str | None, environ: "Environ") -> Refusal | None:
        if host is None and environ.get("SERVER_PROTOCOL") != "HTTP/1.1":
            return None  # HTTP/1.0 is older than the header, and no browser speaks it
        match = _HOST.fullmatch(host or "")
        if host is None or match is None:
            detail = f"Host {_shown(host)}: must be given once, as NAME or NAME:PORT"
            return Refusal(400, "Host", detail)
        if not self._takes_all and not self._is_ours(match[1]):
            detail = (
                f"Host {_shown(host)}: is not a name of this service; if it should be, add it to "
                f"{SETTING} and start the service again"
            )
            return Refusal(421, "Host", detail)
        if len(self._known) < MOST_KNOWN:
            self._known.add(host)
        return None

    def _is_ours(self, name: str) -> bool:
        address = _address(name)
        if address is not None and (address.is_loopback or self._takes_any_address):
            return True
        return _compared(name) in self._names


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens at a host."""
    address = _address(host)
    return host == LOOPBACK_NAME if address is None else address.is_loopback


def is_from_other_page(environ: "Environ") -> bool:
    """Return whether a browser says that a page of another address has sent a request.

    Programs that are no browsers say nothing of the kind.
    """
    if (site := environ.get("HTTP_SEC_FETCH_SITE")) is not None:
        return site not in OWN_PAGES
    origin, host = environ.get("HTTP_ORIGIN"), environ.get("HTTP_HOST", "")
    return origin is not None and origin.partition("://")[2].lower() != host.lower()


def names_in(text: str) -> frozenset[str]:
    """Return the names in a comma-separated list, `*` for all. Raises ValueError for others."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name != EVERY_NAME and _address(name) is None and not _NAME.fullmatch(name):
            raise ValueError(
                f"{_shown(name)} is not a name or address; leave out http:// and ports, and "
                "separate names by commas"
            )
    return frozenset(map(_compared, names))


def require_host(text: str) -> None:
    """Raise ValueError unless a text may be the one name or address that a server listens at."""
    if not _NAME.fullmatch(text) and _address(f"[{text}]") is None:  # in brackets of its own
        raise ValueError("must be one name or address, without http://, port or brackets")


def hide_query(environ: "Environ") -> None:
    """Remove a query that holds a token from a request that is refused, for whatever reason."""
    if _of_query(environ.get("QUERY_STRING", "")):
        environ["QUERY_STRING"] = HIDDEN
        environ["RAW_URI"] = environ.get("PATH_INFO", "")


def hide_secrets(record: LogRecord) -> bool:
    """Let a line of a log pass, without the values of tokens; for `Logger.addFilter`."""
    record.msg, record.args = _SECRET.sub(r"\1=(hidden)", record.getMessage()), ()
    return True


def _of_query(query: str) -> Refusal | None:
    small = query.lower()
    if not any(map(small.__contains__, _SUSPICIOUS)):
        return None
    for part in query.split("&"):
        name = part.partition("=")[0]
        if "%" in name or "+" in name:
            name = unquote_plus(name).strip()
        if name.lower() in SECRET_NAMES:
            detail = (
                f"{name.lower()}: a token must not stand in an address, where histories and logs "
                "keep it; send it as the header Authorization: Bearer TOKEN, and make a new one if "
                "this one was real"
            )
            return Refusal(400, name.lower(), detail)
    return None


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """Return the address in `name`, which may be in brackets; None if it is not an address."""
    try:
        return ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def _compared(name: str) -> str:
    """Return `name` as it is compared: addresses in one form, small letters, no dot at the end."""
    address = _address(name)
    return str(address) if address is not None else name.lower().removesuffix(".")


def _shown(value: str | None) -> str:
    return "(none)" if value is None else ascii(value[:MOST_SHOWN_CHARACTERS])
