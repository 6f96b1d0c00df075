"""Finds which meanings of a search exist in the ledger, their pages, and what these show."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product
from typing import Any
from urllib.parse import urlencode

from frontend import words
from frontend.backend_client import Backend, Json
from frontend.block_rows import by_height, is_damaged
from frontend.coverage import Coverage
from frontend.errors import Refused
from frontend.search import meanings as texts
from frontend.search.cities import meant, named

MOST_SUGGESTIONS = 5
MOST_ENDS = 3  # cities that one end of a route may mean
MOST_NUMBERS = 50  # the backend suggests so many at once
DAMAGED: Json = {"damaged": True}  # in place of an answer
DAYS_BACK = 31  # a flight whose number is not among these is looked for in so many days


@dataclass(frozen=True, slots=True)
class Found:
    """A find. label: what it is. address: of its page. shows: what the page shows."""

    label: str
    address: str
    shows: str


class Finder:
    """Looks meanings up at the backend. Each method raises BackendAway, Refused."""

    def __init__(self, backend: Backend, coverage: Coverage) -> None:
        self._backend = backend
        self._coverage = coverage

    def found(self, meanings: Iterable[texts.Meaning]) -> list[Found]:
        """The pages for those of `meanings` that exist, in their order, each address once."""
        look_up: dict[type, Callable[[Any], Iterator[Found]]] = {
            texts.Transaction: self._transaction,
            texts.Block: self._block,
            texts.BlockHash: self._block_hash,
            texts.Day: self._day,
            texts.Flight: self._flight,
            texts.Airports: self._airports,
            texts.Route: self._route,
        }
        each = (one for meaning in meanings for one in look_up[type(meaning)](meaning))
        return list({one.address: one for one in each}.values())

    # --- finds of which there is one

    def _transaction(self, meaning: texts.Transaction) -> Iterator[Found]:
        if (answer := self._if_there(f"/transactions/{meaning.id}")) == DAMAGED:
            shows = "it is in a block that is damaged"
            yield Found(f"Transaction {meaning.id}", f"/transactions/{meaning.id}", shows)
        elif answer is not None:
            flight = answer["transaction"]
            where = f"in block {answer['block']['height']:,}" if answer["block"] else "pending"
            shows = f"{self._flight_name(flight)} on {words.day(flight['FL_DATE'])}, {where}"
            yield Found(f"Transaction {meaning.id}", f"/transactions/{meaning.id}", shows)

    def _block(self, meaning: texts.Block) -> Iterator[Found]:
        if (answer := self._if_there(f"/blocks/{meaning.height}", limit=0)) == DAMAGED:
            yield _of_block({"height": meaning.height, "detail": DAMAGED})
        elif answer is not None:
            yield _of_block(answer["block"])

    def _block_hash(self, meaning: texts.BlockHash) -> Iterator[Found]:
        for header in by_height(self._backend.get("/blocks", {"hash": meaning.digits})):
            yield _of_block(header)

    def _day(self, meaning: texts.Day) -> Iterator[Found]:
        if self._coverage.covers(meaning.iso):
            address = f"/days/{meaning.iso}"
            yield Found(words.day(meaning.iso), address, "the flights and delays of each carrier")

    # --- flights

    def _flight(self, meaning: texts.Flight) -> Iterator[Found]:
        if not meaning.number:
            return
        question = {"OP_CARRIER_FL_NUM": meaning.number}
        label = f"Flight number {meaning.number}"
        if meaning.code:
            carriers = [one for one in self._coverage.carriers if one.code == meaning.code]
            if not carriers:
                return
            question["OP_CARRIER_AIRLINE_ID"] = carriers[0].number
            label = f"Flight {meaning.code} {meaning.number}"
        if meaning.day:
            if self._flew(question, meaning.day):
                address = _address("/filter_transactions", question, FL_DATE=meaning.day)
                yield Found(label, address, f"what happened on {words.day(meaning.day)}")
        elif self._is_known(question):
            shows = "the last days on which it flew"
            yield Found(label, _address("/filter_transactions", question), shows)

    def _is_known(self, question: Mapping[str, Any]) -> bool:
        """Whether the ledger has flights of the question's number, and of its carrier if given."""
        number = question["OP_CARRIER_FL_NUM"]
        carrier = question.get("OP_CARRIER_AIRLINE_ID")
        suggested = self._suggested("flight_number", str(number), MOST_NUMBERS)
        for one in suggested:
            if one["value"] == number:
                carriers = {used["OP_CARRIER_AIRLINE_ID"] for used in one["carriers"]}
                return carrier in {None, *carriers}
        return len(suggested) == MOST_NUMBERS and self._flew_lately(question)

    def _flew_lately(self, question: Mapping[str, Any]) -> bool:
        """Whether a flight number that was not suggested flew in the last `DAYS_BACK` days."""
        if self._coverage.last_date is None:
            return False
        newest = date.fromisoformat(self._coverage.last_date)
        days = (str(newest - timedelta(back)) for back in range(DAYS_BACK))
        return any(self._flew(question, day) for day in days)

    def _flew(self, question: Mapping[str, Any], day: str) -> bool:
        if not self._coverage.covers(day):
            return False
        answer = self._backend.get("/filter_transactions", {**question, "FL_DATE": day})
        return bool(answer["count"])

    # --- routes

    def _airports(self, meaning: texts.Airports) -> Iterator[Found]:
        codes = {airport.code for airport in self._coverage.airports}
        if {meaning.origin, meaning.destination} <= codes:
            yield from self._route(texts.Route(meaning.origin, meaning.destination, meaning.day))

    def _route(self, meaning: texts.Route) -> Iterator[Found]:
        ends = (meaning.origin, meaning.destination)
        origins, destinations = (named(self._coverage, end)[:MOST_ENDS] for end in ends)
        yield from self._between(origins, destinations, meaning.day)

    def _between(self, origins: list[str], destinations: list[str], day: str) -> Iterator[Found]:
        """The routes from `origins` to `destinations` that were flown, on `day` if it is given."""
        if day and not self._coverage.covers(day):
            return
        interval = {
            "INITIAL_DATE": day or self._coverage.first_date,
            "FINAL_DATE": day or self._coverage.last_date,
        }
        for origin, destination in product(origins, destinations):
            question = {"ORIGIN_CITY_NAME": origin, "DEST_CITY_NAME": destination, **interval}
            if count := self._backend.get("/flight_counter", question)["count"]:
                shows = f"{words.counted(count, 'flight')}, day by day and by carrier"
                label = f"{origin} to {destination}"
                yield Found(label, _address("/flight_counter", question), shows)

    # --- what may help when nothing is found

    def suggestions(self, text: str) -> list[Found]:
        """Pages for names in the ledger that begin with `text`, contain it, or resemble it."""
        text = " ".join(text.split())[:60]
        found = [*self._routes(text), *self._carriers(text), *self._cities(text)]
        if text.isascii() and text.isdigit():
            for one in self._suggested("flight_number", text, MOST_SUGGESTIONS):
                shows = words.counted(one["flights"], "flight")
                found.append(Found(f"Flight number {one['label']}", _search(one["label"]), shows))
        return found

    def _routes(self, text: str) -> Iterator[Found]:
        """Routes between cities with names similar to the text."""
        for one in _routes_in(text):
            ends = (one.origin, one.destination)
            origins, destinations = (meant(self._coverage, end)[:MOST_ENDS] for end in ends)
            yield from self._between(origins, destinations, one.day)

    def _carriers(self, text: str) -> Iterator[Found]:
        for one in self._suggested("carrier", text, MOST_SUGGESTIONS):
            question = {
                "OP_CARRIER_AIRLINE_ID": one["value"],
                "INITIAL_DATE": self._coverage.first_date,
                "FINAL_DATE": self._coverage.last_date,
            }
            shows = f"its delays; {words.counted(one['flights'], 'flight')}"
            yield Found(one["label"], _address("/average_delays", question), shows)

    def _cities(self, text: str) -> Iterator[Found]:
        """Cities that `text` may mean, for both ends of a route."""
        ends = [end for one in _routes_in(text) for end in (one.origin, one.destination)]
        found = dict.fromkeys(city for end in ends or [text] for city in meant(self._coverage, end))
        for city in list(found)[:MOST_SUGGESTIONS]:
            question = {
                "ORIGIN_CITY_NAME": city,
                "INITIAL_DATE": self._coverage.first_date,
                "FINAL_DATE": self._coverage.last_date,
            }
            yield Found(f"From {city}", _address("/flight_counter", question), "choose where to")

    def examples(self) -> list[str]:
        """Texts that find something here, made from the first flight of the newest block."""
        height = self._backend.get("/tip")["height"]
        block = self._backend.get(f"/blocks/{height}", {"limit": 1})["block"]
        if not block["transactions"]:
            return []
        flight = block["transactions"][0]
        code = self._coverage.carrier(flight["OP_CARRIER_AIRLINE_ID"]).code or ""
        cities = (flight[f"{end}_CITY_NAME"].partition(",")[0] for end in ("ORIGIN", "DEST"))
        return [
            f"{code} {flight['OP_CARRIER_FL_NUM']}".strip(),
            " to ".join(cities),
            f"{flight['ORIGIN']}-{flight['DEST']}",
            flight["FL_DATE"],
            f"block {height}",
            f"transaction {flight['TRANSACTION_ID']}",
        ]

    # --- asking

    def _flight_name(self, flight: Mapping[str, Any]) -> str:
        carrier = self._coverage.carrier(flight["OP_CARRIER_AIRLINE_ID"])
        name = f"{carrier.code or carrier.number} {flight['OP_CARRIER_FL_NUM']}"
        return f"{name} from {flight['ORIGIN_CITY_NAME']} to {flight['DEST_CITY_NAME']}"

    def _if_there(self, path: str, **parameters: Any) -> Json | None:
        """The answer; None if there is no such thing, `DAMAGED` if its block is damaged."""
        try:
            return self._backend.get(path, parameters)
        except Refused as error:
            if error.damaged_blocks:
                return DAMAGED
            if error.status not in {400, 404}:
                raise
            return None

    def _suggested(self, field: str, text: str, limit: int) -> list[Json]:
        try:
            found = self._backend.get("/suggest", {"field": field, "q": text, "limit": limit})
        except Refused as error:
            if error.status != 400:
                raise
            return []
        suggestions: list[Json] = found["suggestions"]
        return suggestions


def _of_block(header: Mapping[str, Any]) -> Found:
    height = header["height"]
    if is_damaged(header):
        return Found(f"Block {height:,}", f"/blocks/{height}", "it is damaged")
    shows = (
        f"{words.counted(header['transaction_count'], 'transaction')}, "
        f"sealed {words.moment(header['timestamp'])}"
    )
    return Found(f"Block {height:,}", f"/blocks/{height}", shows)


def _routes_in(text: str) -> list[texts.Route]:
    return [one for one in texts.meanings(text) if isinstance(one, texts.Route)]


def _address(path: str, question: Mapping[str, Any], **more: Any) -> str:
    return f"{path}?{urlencode({**question, **more})}"


def _search(text: str) -> str:
    return f"/search?{urlencode({'q': text})}"
