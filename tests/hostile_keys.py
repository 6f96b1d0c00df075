"""Idempotency-Key headers of clients that mean no good, and what becomes of posts with them."""

import json
import re
from collections.abc import Iterator
from itertools import count

from backend.chain.flight import as_mapping
from tests.flights import flight
from tests.raw_http import STATUS, answer_to

TAKEN, REFUSED = {"202"}, {"400", "431"}
LONGEST = 255  # characters
KEYS: dict[str, tuple[bytes, set[str]]] = {
    "empty": (b"Idempotency-Key: ", REFUSED),
    "blank": (b"Idempotency-Key:   \t ", REFUSED),
    "as long as it may be": (b"Idempotency-Key: " + b"k" * LONGEST, TAKEN),
    "longer": (b"Idempotency-Key: " + b"k" * (LONGEST + 1), REFUSED),
    "8 kB": (b"Idempotency-Key: " + b"k" * 8000, REFUSED),
    "a megabyte": (b"Idempotency-Key: " + b"k" * 2**20, REFUSED | {""}),
    "NUL": (b"Idempotency-Key: a\0b", REFUSED),
    "a tab": (b"Idempotency-Key: a\tb", REFUSED),
    "a bell": (b"Idempotency-Key: a\x07b", REFUSED),
    "DEL": (b"Idempotency-Key: a\x7fb", REFUSED),
    "a line that goes on": (b"Idempotency-Key: a\r\n b", REFUSED | TAKEN),
    "Latin-1": (b"Idempotency-Key: \xff", REFUSED),
    "UTF-8": (b"Idempotency-Key: \xe2\x82\xac", REFUSED),
    "SQL": (b"Idempotency-Key: ' OR 1=1; DROP TABLE key_use; --", TAKEN),
    "a path": (b"Idempotency-Key: ../../../etc/passwd", TAKEN),
    "formats": (b"Idempotency-Key: %s%n{0}${7*7}<script>", TAKEN),
    "two": (b"Idempotency-Key: one\r\nIdempotency-Key: other", TAKEN | REFUSED),
    "a name with an underscore": (b"Idempotency_Key: another name", TAKEN),
}
serials = count(7 * 10**8)


def post_of(serial: int, key: bytes) -> bytes:
    """A request that posts a flight with this header line."""
    body = json.dumps(as_mapping(flight(serial))).encode()
    head = b"POST /transactions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    length = b"Content-Length: %d\r\n" % len(body)
    return head + b"Content-Type: application/json\r\n" + length + key + b"\r\n\r\n" + body


def wrong_answers(port: int, source: str) -> Iterator[str]:
    """Post with each key twice, and with another flight; say what is not as it must be."""
    for name, (key, allowed) in KEYS.items():
        serial = next(serials)
        first, again = (_outcome(port, post_of(serial, key), source) for _ in range(2))
        if first[0] not in allowed:
            yield f"a key ({name}): {first[0]} instead of {' or '.join(sorted(allowed))}"
        elif first[0] in TAKEN and key.startswith(b"Idempotency-Key"):
            other = _outcome(port, post_of(next(serials), key), source)
            is_same = again[1] == first[1] and again[0] in {"202", "201"}  # in a block by then
            if not is_same or other[0] != "422":
                yield f"a key ({name}): {first}, sent again {again}, with another flight {other}"


def _outcome(port: int, request: bytes, source: str) -> tuple[str, str]:
    """The status of the last answer, and the id that was given."""
    answer = answer_to(port, request, source)
    statuses = re.findall(STATUS, answer)
    transaction_id = re.search(rb'"TRANSACTION_ID":(\d+)', answer)
    status = statuses[-1].decode() if statuses else ""
    return status, transaction_id[1].decode() if transaction_id else ""
