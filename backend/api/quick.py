"""Which requests are answered in a fraction of a millisecond, told by their first line.

The worker's loop answers these itself and hands the rest to threads. A request that is not
recognised is only slower; one that is recognised must never wait or compute for long. So this names
what is quick: routes that cost the same whatever the ledger holds, and no parameter but theirs. The
tip is not: it counts what is pending, and so waits while another thread syncs the mempool.
"""

import re

_PARAMETERS = (
    "OP_CARRIER_FL_NUM",
    "FL_DATE",
    "OP_CARRIER_AIRLINE_ID",
    "INITIAL_DATE",
    "FINAL_DATE",
    "ORIGIN_CITY_NAME",
    "DEST_CITY_NAME",
)
_GIVEN = rf"(?:{'|'.join(_PARAMETERS)})=[^&# \r\n]*"
_QUICK = re.compile(
    rf"(?:GET|HEAD) /(?:health/live|(?:filter_transactions|average_delays|flight_counter)"
    rf"\?{_GIVEN}(?:&{_GIVEN})*) HTTP/1\.[01]\r\n".encode()
)


def is_quick(request: bytes) -> bool:
    """Whether the request that starts with these bytes is quick."""
    return _QUICK.match(request) is not None
