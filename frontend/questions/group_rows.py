"""The groups of an answer as pages show them: a name, a page of its own, and the figures. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from frontend.backend_client import Json
from frontend.coverage import Airport, Coverage
from frontend.field_labels import WEEKDAYS
from frontend.question import CARRIER, ENDS, Question
from frontend.questions.delays import FEW_ARRIVALS


@dataclass(frozen=True, slots=True)
class Row:
    """A group. key: the members that tell it apart. address: of a page about it; "" for none.

    figures: what the backend says about it, as in `average_delays`.
    """

    key: Json
    name: str
    address: str
    figures: Json

    @property
    def flights(self) -> int:
        return int(self.figures["flights"])

    @property
    def mean(self) -> Any:
        """The mean arrival delay in minutes; None without arrivals."""
        return self.figures["average_delay"]

    @property
    def on_time(self) -> Any:
        """The share of the arrivals that were on time; None without arrivals."""
        return self.figures["on_time_share_of_arrived"]

    @property
    def on_time_of_scheduled(self) -> Any:
        """The share of all flights that were on time, as the DOT publishes it."""
        return self.figures["on_time_share_of_scheduled"]

    @property
    def cancelled(self) -> float:
        """The share of all flights that were cancelled."""
        return float(self.figures["cancelled"] / self.flights)

    @property
    def is_few(self) -> bool:
        """Whether there are so few arrivals that chance matters."""
        return int(self.figures["arrived"]) < FEW_ARRIVALS

    def as_json(self) -> Json:
        return {**self.key, "name": self.name, **self.figures}


FIGURES = (
    *("flights", "arrived", "cancelled", "no_arrival", "average_delay"),
    *("average_departure_delay", "on_time_share_of_arrived", "on_time_share_of_scheduled"),
)
KEYS: Mapping[str, Sequence[str]] = {
    "carrier": ("OP_CARRIER_AIRLINE_ID",),
    "origin": ("ORIGIN", "ORIGIN_CITY_NAME"),
    "destination": ("DEST", "DEST_CITY_NAME"),
    "route": ("ORIGIN", "ORIGIN_CITY_NAME", "DEST", "DEST_CITY_NAME"),
    "weekday": ("DAY_OF_WEEK",),
    "hour": ("hour",),
}
"""The members of a group that tell it apart, by `group_by`."""


def rows_of(answer: Json, by: str, known: Coverage, question: Question) -> list[Row]:
    """Return the groups of an answer that was asked for with `group_by`, in its order.

    question: that of the page, which the address of a group narrows down.
    """
    query = answer["query"]
    asked = {**question.values, **{name: query[name] for name in ENDS if name in query}}
    question = Question("average_delays", asked)
    rows = []
    for group in answer[f"by_{by}"]:
        key = {name: group[name] for name in KEYS[by]}
        figures = {name: group[name] for name in FIGURES}
        name, address = _SHOWN[by](key, known, question)
        rows.append(Row(key, name, address, figures))
    return rows


def place(code: str, city: str) -> str:
    """Return an airport as pages name it: "Newark, NJ (EWR)"."""
    return f"{city} ({code})"


def hours(hour: int) -> str:
    """Return the name of an hour: "06:00–06:59"."""
    return f"{hour:02}:00–{hour:02}:59"


def _carrier(key: Json, known: Coverage, question: Question) -> tuple[str, str]:
    return known.carrier(key[CARRIER]).label, question.address(**key)


def _airport(end: str) -> Callable[[Json, Coverage, Question], tuple[str, str]]:
    """Name an airport and its page, or that of the route if the question names its other end."""
    city, other = f"{end}_CITY_NAME", ENDS[end]

    def shown(key: Json, _: Coverage, question: Question) -> tuple[str, str]:
        name = place(key[end], key[city])
        if {other, ENDS[city]} & question.values.keys():
            return name, question.elsewhere("route", **{end: key[end], city: None})
        return name, question.elsewhere(f"airports/{key[end]}")

    return shown


def _route(key: Json, _: Coverage, question: Question) -> tuple[str, str]:
    names = (place(key[end], key[f"{end}_CITY_NAME"]) for end in ("ORIGIN", "DEST"))
    ends = {name: key[name] if name in {"ORIGIN", "DEST"} else None for name in ENDS}
    return " to ".join(names), question.elsewhere("route", **ends)


_SHOWN: Mapping[str, Callable[[Json, Coverage, Question], tuple[str, str]]] = {
    "carrier": _carrier,
    "origin": _airport("ORIGIN"),
    "destination": _airport("DEST"),
    "route": _route,
    "weekday": lambda key, known, question: (WEEKDAYS[key["DAY_OF_WEEK"] - 1], ""),
    "hour": lambda key, known, question: (hours(key["hour"]), ""),
}


# --- ranking -------------------------------------------------------------------------------------

SORTS: Mapping[str, Callable[[Row], float | None]] = {
    "flights": lambda row: row.flights,
    "average_delay": lambda row: row.mean,
    "on_time_share_of_arrived": lambda row: row.on_time,
    "on_time_share_of_scheduled": lambda row: row.on_time_of_scheduled,
    "cancelled": lambda row: row.cancelled,
}


@dataclass(frozen=True, slots=True)
class Ranking:
    """Groups in an order. few: those with too few arrivals to be ranked, most flights first."""

    ranked: list[Row]
    few: list[Row]


def ranking(rows: Iterable[Row], sort: str, *, is_descending: bool) -> Ranking:
    """The groups by a name of SORTS; those without arrivals enough are apart, and never win."""
    all_rows = list(rows)
    value = SORTS[sort]
    ranked = [row for row in all_rows if not row.is_few]
    ranked.sort(key=lambda row: value(row) or 0.0, reverse=is_descending)
    few = sorted((row for row in all_rows if row.is_few), key=lambda row: -row.flights)
    return Ranking(ranked, few)


@dataclass(frozen=True, slots=True)
class Extremes:
    """The groups with the least and with the largest mean delay."""

    best: Row
    worst: Row


def extremes(rows: Iterable[Row]) -> Extremes | None:
    """The best and the worst among groups with arrivals enough; None if fewer than two have."""
    by_mean = ranking(rows, "average_delay", is_descending=False).ranked
    return Extremes(by_mean[0], by_mean[-1]) if len(by_mean) > 1 else None


def other_airports(known: Coverage, airport: Airport) -> list[Airport]:
    return [
        other
        for other in known.airports
        if other.city == airport.city and other.code != airport.code
    ]


def csv_rows(rows: Mapping[str, Sequence[Row]]) -> list[Json]:
    return [{"group_by": by, **row.as_json()} for by, groups in rows.items() for row in groups]
