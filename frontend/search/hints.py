"""Says how fields are filled in, by names that the ledger has. Pure."""

from datetime import date

from frontend import filters
from frontend.coverage import Coverage
from frontend.search.completing import written

NUMBER = "1545"
KINDS = ("carrier", "origin", "destination", "route", "flight", "day", "days", "any")


def hints(known: Coverage) -> dict[str, str]:
    """Return a hint such as "Such as JFK or Newark, NJ" for each of KINDS; "" without examples."""
    return {kind: f"Such as {text}" if text else "" for kind, text in examples(known).items()}


def examples(known: Coverage) -> dict[str, str]:
    """Return what may stand in a field of each of KINDS, with "or" or a comma between examples."""
    made = dict.fromkeys(KINDS, "") | {"flight": NUMBER}
    if not (known.carriers and known.airports and known.last_date):
        return made
    carrier, first = known.carriers[0], known.airports[0]
    other = next((airport for airport in known.airports if airport.city != first.city), first)
    flight = carrier.flight(NUMBER) if carrier.code else f"carrier {carrier.number} {NUMBER}"
    route, newest = f"{first.code}-{other.code}", date.fromisoformat(known.last_date)
    month = f"{newest:%B %Y}"
    return {
        "carrier": f"{written(carrier)} or {carrier.number}",
        "origin": f"{first.code} or {other.city}",
        "destination": f"{other.code} or {first.city}",
        "route": f"{route} or {first.city} to {other.city}",
        "flight": f"{NUMBER} or {flight}",
        "day": filters.short_interval(known.last_date, known.last_date),
        "days": f"{month} or 1 to 7 {newest:%B}",
        "any": f"{written(carrier)}, {first.code}, {route}, {flight} or {month}",
    }
