"""The groups of an answer as pages show them: a name, a page of its own, and the figures. Pure."""

from calendar import month_abbr, month_name
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from itertools import pairwise
from math import floor, inf
from typing import Any

from frontend.backend_client import Json
from frontend.charts.time_axis import TimeAxis, covered, slots
from frontend.coverage import Airport, Coverage
from frontend.field_labels import WEEKDAYS
from frontend.filters import day, minutes, number, share
from frontend.question import BOTH, CARRIER, DAY, DAYS, ENDS, HOUR, Question
from frontend.questions.figures import FEW_ARRIVALS, FIGURES, together

ON_TIME_LEVELS = (0.5, 0.65, 0.75, 0.85)


@dataclass(frozen=True, slots=True)
class Row:
    """A group. key: the members that tell it apart. address: of a page about it; "" for none.

    figures: what the backend says about it, as in `average_delays`. days: the same for each day on
    which it has flights, if that was asked for. cut: of a time " until the 3rd" if only these of
    its days are counted.
    """

    key: Json
    name: str
    address: str
    figures: Json
    days: Sequence[Json] = ()
    cut: str = ""

    @property
    def flights(self) -> int:
        return int(self.figures["flights"])

    @property
    def cancelled(self) -> float | None:
        """The share of all flights that were cancelled; None without flights."""
        return float(self.figures["cancelled"] / self.flights) if self.flights else None

    @property
    def is_few(self) -> bool:
        """Whether there are so few arrivals that chance matters."""
        return int(self.figures["arrived"]) < FEW_ARRIVALS

    @property
    def level(self) -> int:
        """The number of its colour by the share on time, from 0 for the worst."""
        return SORTS[PUNCTUALITY].level(self) or 0

    @property
    def item(self) -> str:
        """What names the group where it is compared: "19790", "JFK", "JFK-LAX"; "" for others."""
        return "-".join(str(self.key[name]) for name in (CARRIER, *BOTH) if name in self.key)

    def as_json(self) -> Json:
        return {**self.key, "name": self.name, **self.figures}


KEYS: Mapping[str, Sequence[str]] = {
    "carrier": ("OP_CARRIER_AIRLINE_ID",),
    "origin": ("ORIGIN", "ORIGIN_CITY_NAME"),
    "destination": ("DEST", "DEST_CITY_NAME"),
    "route": ("ORIGIN", "ORIGIN_CITY_NAME", "DEST", "DEST_CITY_NAME"),
    "weekday": ("DAY_OF_WEEK",),
    "hour": ("hour",),
    "day": ("FL_DATE",),
    "weekday_hour": ("DAY_OF_WEEK", "hour"),
    "month": ("month",),
    "year": ("YEAR",),
}
"""The members of a group that tell it apart, by `group_by`."""


def rows_of(answer: Json, by: str, known: Coverage, question: Question) -> list[Row]:
    """Return the groups of an answer that was asked for with `group_by`, in its order.

    question: that of the page, which the address of a group narrows down.
    """
    query = answer["query"]
    asked = {**question.values, **{name: query[name] for name in ENDS if name in query}}
    cuts = {}
    if by == "month":
        ends = covered(query[DAYS[0]], query[DAYS[1]], known)
        cuts = TimeAxis("month", tuple(slots(*ends, "month"))).cuts
    rows = []
    for group in answer[f"by_{by}"]:
        key = {name: group[name] for name in KEYS[by]}
        figures = {name: group[name] for name in FIGURES}
        cut = cuts.get(key.get("month", ""), "")
        rows.append(Row(key, _NAMES[by](key, known), _page(asked, key), figures, cut=cut))
    return rows


def _page(asked: Mapping[str, Any], key: Json) -> str:
    """Return the address of a page about a group; "" if none shows its figures."""
    if "month" in key:
        first, last = (date.fromisoformat(asked[name]) for name in DAYS)
        start = date.fromisoformat(f"{key['month']}-01")
        month = next(slots(start, max(start, last), "month"))
        days = dict(zip(DAYS, map(str, (max(first, month.first), month.last)), strict=True))
        return Question("days", {**asked, **days}).address()
    if "DAY_OF_WEEK" in key or not key.keys() & {CARRIER, *BOTH, HOUR, DAY}:
        return ""
    dropped = dict.fromkeys(
        DAYS if DAY in key else [f"{end}_CITY_NAME" for end in BOTH if end in key]
    )
    values = {**asked, **key, **dropped}
    return Question("", {n: value for n, value in values.items() if value is not None}).page()


def hours(hour: int) -> str:
    """Return the name of an hour: "06:00–06:59"."""
    return f"{hour:02}:00–{hour:02}:59"


def _ends(key: Json, _: Coverage) -> str:
    return " to ".join(f"{key[f'{end}_CITY_NAME']} ({key[end]})" for end in BOTH if end in key)


_NAMES: Mapping[str, Callable[[Json, Coverage], str]] = {
    "carrier": lambda key, known: known.carrier(key[CARRIER]).label,
    "origin": _ends,
    "destination": _ends,
    "route": _ends,
    "weekday": lambda key, _: WEEKDAYS[key["DAY_OF_WEEK"] - 1],
    "hour": lambda key, _: hours(key["hour"]),
    "day": lambda key, _: day(key["FL_DATE"]),
    "weekday_hour": lambda key, _: f"{WEEKDAYS[key['DAY_OF_WEEK'] - 1]} {hours(key['hour'])}",
    "month": lambda key, _: f"{date.fromisoformat(key['month'] + '-01'):%B %Y}",
}


# --- months of the year --------------------------------------------------------------------------

SEASONS = {"Winter": (12, 1, 2), "Spring": (3, 4, 5), "Summer": (6, 7, 8), "Autumn": (9, 10, 11)}


def months_of_year(rows: Sequence[Row]) -> list[Row]:
    """Return the months of all years together, and the seasons if all months have flights."""
    by_month: defaultdict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_month[int(row.key["month"][-2:])].append(row)
    named = {month_name[month]: by_month[month] for month in sorted(by_month)}
    if len(by_month) == len(month_name) - 1:
        for season, months in SEASONS.items():
            named[f"{season} ({month_abbr[months[0]]} to {month_abbr[months[-1]]})"] = [
                row for month in months for row in by_month[month]
            ]
    return [
        Row(
            {},
            name,
            group[0].address if len(group) == 1 else "",
            together([row.figures for row in group]),
            cut=group[0].cut if len(group) == 1 else _cuts(group),
        )
        for name, group in named.items()
    ]


def _cuts(months: Sequence[Row]) -> str:
    """Return the months of which not all days are counted: " (June 2014 until the 3rd)"."""
    cut = ", ".join(f"{row.name}{row.cut}" for row in months if row.cut)
    return f" ({cut})" if cut else ""


# --- ranking -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure by which groups are ranked.

    noun: what it is. value: of a row. shown: makes it a text. of: the count that a share is of; ""
    for what is no share. is_low_good: whether less of it is better. levels: from the worst to the
    best, where the next colour begins; none for what is neither good nor bad.
    """

    noun: str
    value: Callable[[Row], float | None]
    shown: Callable[[float | None], str]
    of: str = ""
    is_low_good: bool = False
    levels: tuple[float, ...] = ()

    def level(self, row: Row) -> int | None:
        """Return the number of a row's colour, from 0 for the worst; None if it has none."""
        value = self.value(row)
        if value is None or not self.levels:
            return None
        return sum(value <= at if self.is_low_good else value >= at for at in self.levels)

    @property
    def ranges(self) -> list[str]:
        """The values of each level, in words."""
        scale, unit = (100, "%") if self.of else (1, "min")
        bounds = [number(scale * at) for at in self.levels]
        between = [sorted(ends, key=int) for ends in pairwise(bounds)]
        words = ("more than", "or less") if self.is_low_good else ("below", "or more")
        return [
            f"{words[0]} {bounds[0]} {unit}",
            *(f"{low} to {high} {unit}" for low, high in between),
            f"{bounds[-1]} {unit} {words[1]}",
        ]


SORTS: Mapping[str, Measure] = {
    "flights": Measure("number of flights", lambda row: row.flights, number),
    "average_delay": Measure(
        "mean arrival delay",
        lambda row: row.figures["average_delay"],
        partial(minutes, digits=1),
        is_low_good=True,
        levels=(40, 20, 10, 0),
    ),
    "on_time_share_of_arrived": Measure(
        "share of arrivals on time",
        lambda row: row.figures["on_time_share_of_arrived"],
        share,
        "arrived",
        levels=ON_TIME_LEVELS,
    ),
    "on_time_share_of_scheduled": Measure(
        "share of scheduled flights on time",
        lambda row: row.figures["on_time_share_of_scheduled"],
        share,
        "flights",
        levels=ON_TIME_LEVELS,
    ),
    "cancelled": Measure(
        "share of flights cancelled",
        lambda row: row.cancelled,
        share,
        "flights",
        is_low_good=True,
        levels=(0.2, 0.1, 0.05, 0.02),
    ),
}
NOUNS = {name: measure.noun for name, measure in SORTS.items()}
PUNCTUALITY = "on_time_share_of_scheduled"
"""What headlines are about: a cancelled flight is not on time."""


def in_order(rows: Iterable[Row], sort: str, *, is_descending: bool) -> list[Row]:
    """Return groups by a name of SORTS; of equals the one with most flights first.

    Those without a value are last.
    """
    sign = -1 if is_descending else 1

    def rank(row: Row) -> tuple[float, int]:
        value = SORTS[sort].value(row) if row.flights else None
        return inf if value is None else sign * value, -row.flights

    return sorted(rows, key=rank)


def best_first(rows: Iterable[Row], sort: str) -> list[Row]:
    """Return groups by a name of SORTS, those without a value last."""
    return in_order(rows, sort, is_descending=not SORTS[sort].is_low_good)


def worst_first(rows: Iterable[Row], sort: str) -> list[Row]:
    """Return groups with a value by a name of SORTS; of numbers of flights, the most first."""
    known = [row for row in rows if SORTS[sort].value(row) is not None]
    is_descending = SORTS[sort].is_low_good or sort == "flights"
    return in_order(known, sort, is_descending=is_descending)


def may_be_ranked(row: Row, sort: str) -> bool:
    """Whether a group's value by a name of SORTS rests on FEW_ARRIVALS or more.

    A share of all flights rests on these, so a day on which most were cancelled may be the worst;
    a number of flights may always be ranked.
    """
    return sort == "flights" or row.figures[SORTS[sort].of or "arrived"] >= FEW_ARRIVALS


def scale(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the ends of a scale for the shares on time of some groups, in steps of 10 %."""
    shares = [row.figures[PUNCTUALITY] for row in rows if not row.is_few] or [0.0, 1.0]
    return floor(10 * min(*shares, 0.9)) / 10, min(floor(10 * max(shares)) / 10 + 0.1, 1.0)


def other_airports(known: Coverage, airport: Airport) -> list[Airport]:
    return [
        other
        for other in known.airports
        if other.city == airport.city and other.code != airport.code
    ]


GROUP_COLUMNS = ("group_by", "name", *FIGURES)


def csv_rows(rows: Mapping[str, Sequence[Row]]) -> list[Json]:
    return [{"group_by": by, **row.as_json()} for by, groups in rows.items() for row in groups]


@dataclass(frozen=True)
class Grouped:
    """A question that was answered by several groups. answers: by each of them."""

    known: Coverage
    question: Question
    answers: Json

    @property
    def total(self) -> Any:
        return self.answers["carrier"]

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        return {by: rows_of(self.answers[by], by, self.known, self.question) for by in self.answers}
