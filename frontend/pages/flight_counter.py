"""How many flights there are between two cities: the page and its twins."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from flask import Blueprint, Response, render_template, request

from frontend.asking import BAD_INPUT, asked, filled_in
from frontend.backend_client import Backend, Json
from frontend.charts import Bars, bars_in_time
from frontend.coordinates import Places
from frontend.coverage import Coverage, CoverageKeeper
from frontend.errors import Refused
from frontend.intervals import TimeAxis, offered, shown, whole
from frontend.maps import Maps
from frontend.tables import csv_twin, json_twin
from frontend.words import number

PATH = "/flight_counter"
ORIGIN, DESTINATION = "ORIGIN_CITY_NAME", "DEST_CITY_NAME"
CODE_LENGTH = 3
MOST_SUGGESTIONS = 5


def blueprint(backend: Backend, keeper: CoverageKeeper) -> Blueprint:
    """`/flight_counter` and its twins."""
    routes = Blueprint("flight_counter", __name__)
    maps = Maps(Places())

    def answer(given: dict[str, str]) -> Json:
        """By day and by carrier, and the other way round, all as of the same block."""
        question = whole(keeper.now()) | given
        found = backend.get(PATH, question | {"group_by": "day"})
        question["as_of"] = str(found["as_of"]["height"])
        found["by_carrier"] = backend.get(PATH, question | {"group_by": "carrier"})["by_carrier"]
        back = {ORIGIN: given[DESTINATION], DESTINATION: given[ORIGIN]}
        question.pop("group_by", None)
        return found | {"reverse_count": backend.get(PATH, question | back)["count"]}

    @routes.get(PATH)
    def page() -> Response:
        """The form, and the answer if something is asked."""
        known = keeper.now()
        result = asked(request.args.to_dict(), answer)
        found = result.answer
        interval = found["query"] if found else result.values
        text = render_template(
            "flight_counter.html",
            known=known,
            asked=result,
            intervals=offered(known, interval.get("FINAL_DATE")),
            interval=interval,
            found=found,
            report=_Report(found, known) if found else None,
            map=maps.route(known, interval[ORIGIN], interval[DESTINATION]) if found else None,
            unknown=_unknown(backend, known, interval) if found and not found["count"] else [],
        )
        return Response(text, result.status, content_type="text/html; charset=utf-8")

    @routes.get(f"{PATH}.json")
    def as_json() -> Response:
        """The backend's answers as one."""
        return json_twin(answer(filled_in(request.args.to_dict())))

    @routes.get(f"{PATH}.csv")
    def as_csv() -> Response:
        """The days."""
        found = answer(filled_in(request.args.to_dict()))
        return csv_twin(("FL_DATE", "count"), found["by_day"])

    return routes


class _Report:
    """What the page shows of an answer."""

    def __init__(self, found: Json, known: Coverage) -> None:
        query = found["query"]
        days = [day["FL_DATE"] for day in found["by_day"]]
        self.time: TimeAxis = shown(query["INITIAL_DATE"], query["FINAL_DATE"], known, days)
        self.counts = [0] * len(self.time.slots)
        for day in found["by_day"]:
            self.counts[self.time.place(day["FL_DATE"])] += day["count"]
        self.carriers = [
            (
                known.carrier(each["OP_CARRIER_AIRLINE_ID"]),
                each["count"],
                each["count"] / found["count"],
            )
            for each in found["by_carrier"]
        ]

    def bars(self) -> Bars:
        """The chart of each day."""
        texts = [f"{name}: {number(count)} flights" for name, count in self.rows()]
        return bars_in_time(self.time, self.counts, texts)

    def rows(self) -> Iterator[tuple[str, int]]:
        """(day or other slot, flights)."""
        return zip(self.time.names, self.counts, strict=True)

    @property
    def busiest(self) -> tuple[str, int]:
        """The first day with the most flights, and their number."""
        return max(self.rows(), key=lambda row: row[1])

    @property
    def empty_slots(self) -> int:
        """How many days have no flights."""
        return self.counts.count(0)


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A city that the ledger does not have, and what may be meant: (label, cities to ask for)."""

    city: str
    meant: list[tuple[str, dict[str, str]]]


def _unknown(backend: Backend, known: Coverage, query: Mapping[str, Any]) -> list[_Unknown]:
    """The cities of a question that the ledger does not have."""
    cities = {name: str(query[name]) for name in (ORIGIN, DESTINATION)}
    meant = {
        name: _meant(backend, known, city)
        for name, city in cities.items()
        if city not in known.cities
    }
    best = cities | {name: found[0][1] for name, found in meant.items() if found}
    return [
        _Unknown(cities[name], [(label, best | {name: city}) for label, city in found])
        for name, found in meant.items()
    ]


def _meant(backend: Backend, known: Coverage, text: str) -> list[tuple[str, str]]:
    """(label, city) of what may be meant by `text`, best first: an airport's code, a part of a
    name, or a name with a mistake.
    """
    try:
        codes = _suggested(backend, "airport", text) if len(text) == CODE_LENGTH else []
        parts = _suggested(backend, "city", text)
    except Refused as error:
        if error.status not in BAD_INPUT:
            raise
        return []
    found = {each["label"]: each["city"] for each in codes if each["value"] == text.upper()}
    found |= {each["label"]: each["value"] for each in parts}
    if not found:
        names = {city.casefold(): city for city in known.cities}
        close = get_close_matches(text.casefold(), names, MOST_SUGGESTIONS)
        found = {names[name]: names[name] for name in close}
    return list(found.items())[:MOST_SUGGESTIONS]


def _suggested(backend: Backend, field: str, text: str) -> list[Json]:
    question = {"field": field, "q": text, "limit": MOST_SUGGESTIONS}
    found: list[Json] = backend.get("/suggest", question)["suggestions"]
    return found
