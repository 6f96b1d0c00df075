"""Defines the flight that stands for one that was lost between its acceptance and its block.

An id is a position in the ledger, and the chain has no gaps. So when an accepted flight is lost
before it is mined, because the disk did not keep its record, its id must neither be given to
another flight nor be left out: `VOID` is mined under it. `VOID` is a valid flight that no airline
flew, and its city names say what it is to whoever meets it.
"""

from backend.chain.flight import Flight, flight_of

VOID_DAY = "1900-01-01"
VOID_CODE = "VOID"
VOID_NUMBER = 98765  # of its carrier, and of the flight: no airline has it
VOID_ORIGIN_CITY = "void entry: the flight with this id was lost before it was mined"
VOID_DEST_CITY = "void entry: it keeps the place of a flight that was lost"
VOID_STATE = "none"

VOID: Flight = flight_of({
    "YEAR": 1900,
    "DAY_OF_WEEK": 1,
    "FL_DATE": VOID_DAY,
    "OP_CARRIER_AIRLINE_ID": VOID_NUMBER,
    "OP_CARRIER_FL_NUM": VOID_NUMBER,
    "ORIGIN": VOID_CODE,
    "ORIGIN_CITY_NAME": VOID_ORIGIN_CITY,
    "ORIGIN_STATE_NM": VOID_STATE,
    "DEST": VOID_CODE,
    "DEST_CITY_NAME": VOID_DEST_CITY,
    "DEST_STATE_NM": VOID_STATE,
    "CANCELLED": 1,
})  # fmt: skip
