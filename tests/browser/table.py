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
    Row("/filter_transactions?OP_CARRIER_FL_NUM=99999&FL_DATE={day}"),
    Row("/filter_transactions?OP_CARRIER_FL_NUM=x&FL_DATE={day}", 400),
    Row("/average_delays"),
    Row("/average_delays?OP_CARRIER_AIRLINE_ID={carrier}&INITIAL_DATE={first}&FINAL_DATE={last}"),
    Row("/average_delays?OP_CARRIER_AIRLINE_ID={carrier}&INITIAL_DATE={day}&FINAL_DATE={day}"),
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
    Row("/upload/{import}"),
    Row("/months"),
    Row("/search"),
    Row("/search?q=7"),
    Row("/search?q=Timbuktu"),
    Row("/search?q={origin_typo}+to+{destination}"),
    Row("/search?q=worst+airport"),
    Row("/departures"),
    Row("/departures?ORIGIN={airport}&hour=8"),
    Row("/departures?FL_DATE={day}"),
    Row("/days"),
    Row("/days?ORIGIN={airport}"),
    Row("/days/{day}"),
    Row("/days/1987-10-01"),
    Row("/rankings"),
    Row("/rankings?by=route&INITIAL_DATE={first}&FINAL_DATE={last}&sort=flights"),
    Row("/rankings?by=city", 400),
    Row("/compare"),
    Row("/compare?what=carrier&item=19393&item=19805&ORIGIN_CITY_NAME={origin}"),
    Row("/compare?what=days&item=2+January+2015&item=3+January+2015&item=4+January+2015"),
    Row("/compare?what=origin&item={airport}", 400),
    Row("/route"),
    Row("/route?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}"),
    Row("/route?ORIGIN=ZZZ&DEST_CITY_NAME={destination}"),
    Row("/airports/{airport}"),
    Row("/report"),
    Row("/report?OP_CARRIER_FL_NUM={number}"),
    Row("/report?OP_CARRIER_FL_NUM=99999"),
    Row("/about"),
    Row("/cheat"),
    Row("/cluster"),
    Row("/lab"),
    Row("/lab/results/{result}"),
    Row("/lab/calculator"),
    Row("/lab/calculator/open"),
    Row(
        "/lab/calculator/open?arrivals=0.02&arrivals_in=per_s&service_time_s=31.8&cv=0.03"
        "&servers=1&against=study"
    ),
    Row("/lab/calculator/open?arrivals=5&arrivals_in=per_s&service_time_s=0.5&cv=1&servers=3"),
    Row("/lab/calculator/open?arrivals=2&arrivals_in=share&service_time_s=40.5&cv=0&servers=1"),
    Row("/lab/calculator/closed"),
    Row(
        "/lab/calculator/closed?name_1=CPU&visits_1=523&service_time_s_1=0.0008&name_2=DISK"
        "&visits_2=513&service_time_s_2=0.029&name_3=DELAY&visits_3=513&service_time_s_3=0.039"
        "&customers=30&think_time_s=5&against=study"
    ),
    Row(
        "/lab/calculator/closed?name_1=Service&visits_1=1&service_time_s_1=0.00014&servers_1=2"
        "&customers=5&think_time_s=0"
    ),
    Row("/lab/calculator/closed?name_1=CPU&visits_1=x&customers=500&think_time_s=5", 400),
    Row("/nothing", 404),
)


def _fullest() -> dict[str, Row]:
    fullest: dict[str, Row] = {}
    for row in sorted(PAGES, key=lambda row: (row.status == 200, len(row.address))):
        fullest[row.address.partition("?")[0]] = row
    return fullest


FULLEST = tuple(_fullest().values())
"""The page of each kind that has the most on it."""

# Addresses whose pages are tried while there is no ledger behind them.
WITHOUT_BACKEND = ("/", "/search?q=7", "/days/2015-01-01")
