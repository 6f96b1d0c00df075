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
