"""Reads requests: query strings, bodies, keys.

The query string is read here and not by Werkzeug, because a parameter that is given twice must not
be half ignored.
"""

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import parse_qsl, unquote_plus, urlencode

from werkzeug.http import parse_options_header
from werkzeug.wsgi import get_content_length, get_input_stream

from backend.api.json_answers import MIMETYPE
from backend.base.errors import InvalidFlight, InvalidInput, InvalidQuery
from backend.chain.json_objects import MAX_BYTES, RepeatedNameError, decoded
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.serving.environs import Environ

MAX_KEY_CHARACTERS = 255
IDENTITY = "identity"
MOST_PARAMETERS = 100  # no question has a third as many
REMEMBERED_CHARACTERS = 1000  # longer queries are read again, so that memory stays bounded


class BadBody(InvalidInput):
    """A body that cannot be read at all. `status` is the HTTP status that says so."""

    def __init__(self, status: int, value: object, reason: str, field: str = "body") -> None:
        super().__init__(field, value, reason)
        self.status = status


def query_string(environ: Environ) -> str:
    """Return the part of the address after the question mark."""
    query: str = environ.get("QUERY_STRING", "")
    return query


def given_in(environ: Environ) -> Mapping[str, str]:
    """Return the parameters of a request, name -> text.

    Raises InvalidQuery for one given twice or not in UTF-8, or if there are too many.
    """
    query = query_string(environ)
    return _remembered(query) if len(query) <= REMEMBERED_CHARACTERS else _parsed(query)


def _parsed(query: str) -> Mapping[str, str]:
    values: dict[str, str] = {}
    try:
        text = query.encode("latin-1").decode()  # WSGI hands bytes over as Latin-1 (PEP 3333)
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
        )
    except UnicodeError:
        raise InvalidQuery("query string", _not_utf8_in(query), "is not UTF-8") from None
    except ValueError:
        reason = f"has more than {MOST_PARAMETERS} parameters"
        raise InvalidQuery("query string", query, reason) from None
    for name, value in pairs:
        if name in values:
            raise InvalidQuery(name, value, "is given twice")
        if name or value:
            values[name] = value
    return values


def _not_utf8_in(query: str) -> str:
    """Return the first name or value that is not UTF-8; all of the query if bytes stand there."""
    for part in re.split("[&=]", query):
        try:
            unquote_plus(part, errors="strict")
        except UnicodeDecodeError:
            return part
    return query


_remembered = lru_cache(maxsize=1024)(_parsed)  # a query is read for its lane and for its answer


def mimetype(environ: Environ) -> str:
    """Return the media type of the body, without parameters."""
    given: str = environ.get("CONTENT_TYPE", "")
    return given if given == MIMETYPE else parse_options_header(given)[0].lower()


def body(environ: Environ, most_bytes: int) -> bytes:
    """Return the bytes of the body.

    Raises BadBody: 415 if it is compressed, 411 without a length, 413 if it is too long.
    """
    coding = environ.get("HTTP_CONTENT_ENCODING", IDENTITY)
    if coding.strip().lower() not in {"", IDENTITY}:
        reason = "is not supported; send the body uncompressed"
        raise BadBody(415, coding, reason, "Content-Encoding")
    length = get_content_length(environ)
    if length is None:
        raise BadBody(411, None, "must be sent with a Content-Length")
    if length > most_bytes:
        raise BadBody(413, f"{length} bytes", f"is too long; at most {most_bytes} are accepted")
    return get_input_stream(environ).read()


def idempotency_key(environ: Environ, data: bytes) -> IdempotencyKey | None:
    """Return the key of a request with the body `data`. Raises InvalidQuery for an invalid key.

    A request that is sent again may ask for another `mode`: it waits for something else only.
    """
    text = environ.get("HTTP_IDEMPOTENCY_KEY")
    if text is None:
        return None
    if not (0 < len(text) <= MAX_KEY_CHARACTERS and text.isascii() and text.isprintable()):
        reason = f"must have 1 to {MAX_KEY_CHARACTERS} printable ASCII characters"
        raise InvalidQuery("Idempotency-Key", text, reason)
    given = given_in(environ).items()
    query = urlencode([(name, text) for name, text in given if name != "mode"])
    hashes = []
    for asked in dict.fromkeys((query, environ.get("QUERY_STRING", ""))):
        content = hashlib.sha256(f"{environ['PATH_INFO']}?{asked}\n".encode())
        content.update(data)
        hashes.append(content.hexdigest())
    return IdempotencyKey(text, *hashes)


def json_object(environ: Environ) -> tuple[dict[str, object], bytes]:
    """Return the JSON object in the body, and the body.

    Raises BadBody: as `body` does, 415 for another content type, 400 if the body is not JSON.
    Raises InvalidFlight for JSON that is not an object.
    """
    if (kind := mimetype(environ)) != MIMETYPE:
        raise BadBody(415, kind, f"must be sent as Content-Type: {MIMETYPE}")
    data = body(environ, MAX_BYTES)
    try:
        record = decoded(data.removeprefix(BOM_UTF8))
    except RepeatedNameError as error:
        raise BadBody(400, error.value, str(error), error.name) from None
    except (ValueError, RecursionError) as error:
        shown = data[:80].decode("utf-8", errors="replace")
        raise BadBody(400, shown, f"is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise InvalidFlight("body", record, "must be a JSON object with the fields of a flight")
    return record, data
