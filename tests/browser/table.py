"""The pages that are tried in a browser. A new page is a new row, and all is tried with it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """address: with names in braces for values of the ledger, see `sites.values_in`.

    status: of HTTP, on a ledger with many flights.
    """

    address: str
    status: int = 200


PAGES = (
    Row("/"),
    Row("/filter_transactions"),
    Row("/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}"),
    Row("/filter_transactions?OP_CARRIER_FL_NUM={number}"),
    Row("/filter_transactions?OP_CARRIER_FL_NUM=99999&FL_DATE={day}"),
    Row("/filter_transactions?OP_CARRIER_FL_NUM=x&FL_DATE={day}", 400),
    Row("/average_delays"),
    Row("/average_delays?OP_CARRIER_AIRLINE_ID={carrier}&INITIAL_DATE={first}&FINAL_DATE={last}"),
    Row("/average_delays?OP_CARRIER_AIRLINE_ID=19393&OP_CARRIER_AIRLINE_ID=19805"),
    Row("/flight_counter"),
    Row(
        "/flight_counter?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}"
        "&INITIAL_DATE={first}&FINAL_DATE={last}"
    ),
    Row("/flight_counter?ORIGIN_CITY_NAME=Atlantis&DEST_CITY_NAME={destination}"),
    Row("/blocks"),
    Row("/blocks/0"),
    Row("/blocks/{tip}"),
    Row("/blocks/{tip}?check=transactions"),
    Row("/blocks/999999", 404),
    Row("/transactions/{id}"),
    Row("/receipts/{id}"),
    Row("/add"),
    Row("/upload"),
    Row("/search"),
    Row("/search?q=7"),
    Row("/search?q=Timbuktu"),
    Row("/search?q={origin_typo}+to+{destination}"),
    Row("/days/{day}"),
    Row("/days/1987-10-01"),
    Row("/about"),
    Row("/nothing", 404),
)

# Addresses whose pages are tried while there is no ledger behind them.
WITHOUT_BACKEND = ("/", "/search?q=7", "/days/2015-01-01")
