"""The groups of an answer as pages show them: a name, a page of its own, and the figures. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb, sqrt
from statistics import NormalDist
from typing import Any

from frontend.backend_client import Json
from frontend.coverage import Airport, Coverage
from frontend.field_labels import WEEKDAYS
from frontend.filters import minutes, number, share
from frontend.question import CARRIER, ENDS, Question
from frontend.questions.delays import FEW_ARRIVALS, SCATTER_MINUTES


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


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure by which groups are ranked.

    noun: what it is. value: of a row. shown: makes it a text. of: the count that a share is of; ""
    for what is no share.
    """

    noun: str
    value: Callable[[Row], float | None]
    shown: Callable[[float | None], str]
    of: str = ""

    def estimate(self, row: Row) -> tuple[float, float] | None:
        """Return the value without chance, estimated, and the variance of that; None for a count.

        A share counts one success and one failure more (Agresti and Caffo 2000). Delays of single
        flights scatter by SCATTER_MINUTES.
        """
        value = self.value(row) or 0.0
        if self.of:
            count = row.figures[self.of]
            share = (value * count + 1) / (count + 2)
            return share, share * (1 - share) / (count + 2)
        arrived = row.figures["arrived"]
        return (value, SCATTER_MINUTES**2 / arrived) if self is SORTS["average_delay"] else None


SORTS: Mapping[str, Measure] = {
    "flights": Measure("number of flights", lambda row: row.flights, number),
    "average_delay": Measure(
        "mean arrival delay", lambda row: row.mean, partial(minutes, digits=1)
    ),
    "on_time_share_of_arrived": Measure(
        "share of arrivals on time", lambda row: row.on_time, share, "arrived"
    ),
    "on_time_share_of_scheduled": Measure(
        "share of scheduled flights on time", lambda row: row.on_time_of_scheduled, share, "flights"
    ),
    "cancelled": Measure("share of flights cancelled", lambda row: row.cancelled, share, "flights"),
}
PUNCTUALITY = "on_time_share_of_scheduled"
"""What headlines are about: a cancelled flight is not on time."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Groups in an order. few: those with too few arrivals to be ranked, most flights first."""

    ranked: list[Row]
    few: list[Row]


def ranking(rows: Iterable[Row], sort: str, *, is_descending: bool) -> Ranking:
    """The groups by a name of SORTS; those without arrivals enough are apart, and never win."""
    all_rows = list(rows)
    value = SORTS[sort].value
    ranked = [row for row in all_rows if not row.is_few]
    ranked.sort(key=lambda row: value(row) or 0.0, reverse=is_descending)
    few = sorted((row for row in all_rows if row.is_few), key=lambda row: -row.flights)
    return Ranking(ranked, few)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The first and the last of groups in an order, in words. count: how many were compared."""

    sort: str
    is_descending: bool
    first: Row
    last: Row
    count: int

    def __str__(self) -> str:
        measure = SORTS[self.sort]
        first, last = (measure.shown(measure.value(row)) for row in (self.first, self.last))
        ends = ("highest", "lowest") if self.is_descending else ("lowest", "highest")
        return (
            f"{self.first.name} has the {ends[0]} {measure.noun} ({first}), "
            f"{self.last.name} the {ends[1]} ({last}). {self.chance}"
        ).rstrip()

    @property
    def chance(self) -> str:
        """Whether the difference is more than chance, as a sentence; "" for a count."""
        if (interval := self.interval) is None:
            return ""
        unit = "points" if SORTS[self.sort].of else "minutes"
        low, high = (number(100 * end if unit == "points" else end, 1) for end in interval)
        judged = "more than chance" if interval[0] > 0 else "perhaps only chance"
        return f"The difference is {judged}: between {low} and {high} {unit}, with 95 % confidence."

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the difference, at 95 % for all pairs of groups together (Bonferroni)."""
        first, last = (SORTS[self.sort].estimate(row) for row in (self.first, self.last))
        if first is None or last is None:
            return None
        reach = NormalDist().inv_cdf(1 - 0.025 / comb(self.count, 2))
        gap, half = abs(first[0] - last[0]), reach * sqrt(first[1] + last[1])
        return gap - half, gap + half


def verdict(rows: Iterable[Row], sort: str, *, is_descending: bool) -> Verdict | None:
    """Compare the groups with arrivals enough by a name of SORTS; None if fewer than two have."""
    ranked = ranking(rows, sort, is_descending=is_descending).ranked
    if len(ranked) < 2:
        return None
    return Verdict(sort, is_descending, ranked[0], ranked[-1], len(ranked))


def other_airports(known: Coverage, airport: Airport) -> list[Airport]:
    return [
        other
        for other in known.airports
        if other.city == airport.city and other.code != airport.code
    ]


def csv_rows(rows: Mapping[str, Sequence[Row]]) -> list[Json]:
    return [{"group_by": by, **row.as_json()} for by, groups in rows.items() for row in groups]
