"""Which requests are answered in a fraction of a millisecond, told by their first line.

The worker's loop answers these itself and hands the rest to threads. A request that is not
recognised is only slower; one that is recognised must never wait or compute for long. So this names
what is quick: routes that cost the same whatever the ledger holds, and no parameter but theirs and
a default, which generated clients send. The tip is not: it counts what is pending, and so waits
while another thread syncs the mempool.

Transactions and pages of a block are quick when the block is at hand in the caches; what needs the
disk is left to the threads. A whole block is quick only when the answer is 304, which depends on
its `If-None-Match`.

Nor are posts quick: they wait for the disk. Those of one flight that promise it to be durable go
together, so that they wait once. Whoever wants to wait for a block, or for nothing, goes alone.
"""

import re

from backend.api.blocks import tag_of_block
from backend.api.conditions import known_encoding
from backend.errors import FlightchainError
from backend.ledger import Ledger
from backend.questions import ENGINE

_PARAMETERS = (
    "OP_CARRIER_FL_NUM",
    "FL_DATE",
    "OP_CARRIER_AIRLINE_ID",
    "INITIAL_DATE",
    "FINAL_DATE",
    "ORIGIN_CITY_NAME",
    "DEST_CITY_NAME",
)
_GIVEN = rf"(?:(?:{'|'.join(_PARAMETERS)})=[^&# \r\n]*|{ENGINE.name}={ENGINE.default}(?=[& ]))"
_NUMBER = "[0-9]{1,15}"
_PAGE = r"\?(?:offset=[0-9]{1,4}&)?limit=(?:[0-9]|[1-4][0-9]|50)"
_QUICK = re.compile(
    rf"(?:GET|HEAD) /(?:health/live|(?:filter_transactions|average_delays|flight_counter)"
    rf"\?{_GIVEN}(?:&{_GIVEN})*|transactions/(?P<transaction>{_NUMBER})"
    rf"|blocks/(?:(?P<page>{_NUMBER}){_PAGE}|(?P<block>{_NUMBER}))) HTTP/1\.[01]\r\n".encode()
)
_CONDITIONS = {
    "HTTP_IF_NONE_MATCH": re.compile(rb"\r\nif-none-match:[ \t]*([^\r\n]*)", re.IGNORECASE),
    "HTTP_ACCEPT_ENCODING": re.compile(rb"\r\naccept-encoding:[ \t]*([^\r\n]*)", re.IGNORECASE),
}
_GOES_TOGETHER = re.compile(
    rb"POST /(?:transactions(?:\?mode=sync)?|new_transaction) HTTP/1\.[01]\r\n"
)


class Quick:
    """Tells quick requests to `ledger` from others."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __call__(self, request: bytes) -> bool:
        """Whether the request that these bytes begin with, head and all, is quick."""
        found = _QUICK.match(request)
        if found is None or found.lastgroup is None:
            return found is not None
        try:
            return self._is_at_hand(request, found.lastgroup, int(found[found.lastgroup]))
        except (FlightchainError, OSError):  # whoever answers will meet it again, and say so
            return False

    def _is_at_hand(self, request: bytes, what: str, number: int) -> bool:
        if what == "transaction":
            return self._ledger.has_transaction(number)
        if not self._ledger.has_block(number):
            return False
        return what == "page" or self._is_known(request, number)

    def _is_known(self, request: bytes, height: int) -> bool:
        """Whether the client has the block already, as its request says."""
        tag = tag_of_block(self._ledger.block_hash(height), "")
        usual = b'\r\nIf-None-Match: "%b"\r\n' % tag.encode()
        if 0 <= request.find(usual) < request.find(b"\r\n\r\n"):
            return True
        if tag.encode() not in request:
            return False
        head = request.partition(b"\r\n\r\n")[0]
        given = {name: b",".join(field.findall(head)) for name, field in _CONDITIONS.items()}
        environ = {name: text.decode("latin-1") for name, text in given.items() if text}
        return known_encoding(environ, tag) is not None


def goes_together(request: bytes) -> bool:
    """Whether others of its kind should be answered with this request, in one thread."""
    return _GOES_TOGETHER.match(request) is not None
