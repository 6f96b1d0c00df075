"""Counts flights by groups, from the table that answers soonest.

    carrier_total  what needs no airport
    carrier_slot   the same by hour, and whole months by weekday
    route_total    what needs airports, over whole months
    route_slot     the same by hour and by weekday
    ranking        all airports or routes, over whole months
    flight         whatever these do not know: what needs airports on other days, distributions of
                   airports, departures, and everything as of an earlier height

Each function asks statements of `rows`, which runs all of an answer in one snapshot. `below` is the
first transaction id that does not count; None, at the tip, reads totals.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import chain
from operator import add, attrgetter
from typing import Any, NamedTuple

from backend.index.delay_distributions import decode_counts
from backend.index.index_file import Rows
from backend.index.periods import DAY, MONTH, WEEKDAY, YEAR, Range, cover, date_of, day_number
from backend.index.ranked_groups import KINDS, OF_RANKING, first_groups
from backend.index.totals import ALL_CARRIERS, COUNTED, FIRST_WEEKDAY_SLOT, HOUR, MINUTE, SUMS
from backend.questions.counts import DelayTotals, FlightCounts, total_of
from backend.questions.groups import Key, clock_time
from backend.questions.values import AverageDelays, Departures, FlightCounter, Options

Question = AverageDelays | FlightCounter

# From one carrier to the next by the key: no row of a day is read.
KNOWN_CARRIERS = """
    WITH RECURSIVE known (carrier) AS (
        SELECT min(carrier) FROM carrier_total
        UNION ALL
        SELECT (SELECT min(carrier) FROM carrier_total WHERE carrier > known.carrier)
        FROM known WHERE carrier IS NOT NULL)
    SELECT carrier FROM known WHERE carrier IS NOT NULL"""

# The same with the months of a range that the table of routes by month has.
_MONTHS = """
    WITH RECURSIVE known (month) AS (
        SELECT min(month) FROM route_slot WHERE month BETWEEN ?1 AND ?2
        UNION ALL
        SELECT (SELECT min(month) FROM route_slot WHERE month > known.month AND month <= ?2)
        FROM known WHERE month IS NOT NULL)"""

_PLACES = "SELECT place, code, name FROM place JOIN city USING (city)"
_ROUTES = "SELECT route, origin, dest FROM route"
_WITH_CODE = "(SELECT place FROM place WHERE code = ?)"
_OF_CITY = "(SELECT place FROM place WHERE city = (SELECT city FROM city WHERE name = ?))"
_ENDS = {
    "ORIGIN": f"origin IN {_WITH_CODE}",
    "DEST": f"dest IN {_WITH_CODE}",
    "ORIGIN_CITY_NAME": f"origin IN {_OF_CITY}",
    "DEST_CITY_NAME": f"dest IN {_OF_CITY}",
}

_ends_of = attrgetter(*_ENDS)

_TIMES = ("day", "weekday", "month", "year")
_SLOTS = {
    "hour": (0, FIRST_WEEKDAY_SLOT - 1),
    "weekday": (FIRST_WEEKDAY_SLOT, FIRST_WEEKDAY_SLOT + 6),
}
_LONGEST = {"day": DAY, "month": MONTH, "hour": MONTH, "weekday": MONTH, "weekday_hour": DAY}
_HOURS = {
    "hour": ("slot", HOUR),
    "weekday_hour": (
        f"{WEEKDAY.format(day='period')} * 24 + slot",
        f"{WEEKDAY.format(day='day')} * 24 + {HOUR}",
    ),
}
"""Raw keys by hour, in table carrier_slot and in table flight."""
_AIRPORTS = {"origin": "route.origin", "destination": "route.dest", "route": "route.route"}

_PERIODS = "span = ? AND period BETWEEN ? AND ?"
_GROUPED = {False: "GROUP BY 1", True: "HAVING count(*)"}
"""What ends a statement, by whether all is one group, for which SQLite need not sort."""


class _Where(NamedTuple):
    """The flights of a question but for its days: conditions on table route, and the carrier."""

    places: str
    values: list[object]
    carrier: int | None

    @property
    def in_sums(self) -> int:
        """The carrier in tables that have sums of all carriers, too."""
        return ALL_CARRIERS if self.carrier is None else self.carrier


def counted(rows: Rows, question: Question, options: Options, below: int | None) -> FlightCounts:
    """Return the totals of all flights, and of each group that has some, as `options` say.

    Groups that are not shown may be left out if they are many.
    """
    where, days, by, shown = _where(question), _days(question), options.group_by, options.shown
    delays = _delays(rows, where, days, below) if options.distribution else {}
    if by is None:
        return FlightCounts(_all_flights(rows, where, days, below), {}, delays)
    ranges = _ranges(days, by, below)
    if shown.limit is not None and by in KINDS and _are_ranked(where, ranges):
        ranked, group_count = first_groups(rows, by, where.in_sums, ranges, shown)
        key_of = _keys(rows, by, [item for item, *_ in ranked])
        groups = {key_of(item, MONTH): DelayTotals(*counts) for item, *counts in ranked}
        total = _all_flights(rows, where, days, below)
        return FlightCounts(total, groups, delays, group_count)
    if by == "departure":
        counts_by_key = _departures(rows, where, days, below)
    else:
        counts_by_key = _counts_by(rows, where, by, ranges, below)
    groups = {key: DelayTotals(*counts) for key, counts in counts_by_key.items()}
    if by == "departure" or by in _HOURS:
        return FlightCounts(_all_flights(rows, where, days, below), groups, delays)
    # Every flight is in one group.
    return FlightCounts(total_of(counts_by_key.values()), groups, delays)


def _all_flights(
    rows: Rows, where: _Where, days: tuple[date, date], below: int | None
) -> DelayTotals:
    ranges = _ranges(days, None, below)
    return total_of(
        [row[1:] for span in ranges for row in _counts_of(rows, where, None, span, below)]
    )


def _departures(
    rows: Rows, where: _Where, days: tuple[date, date], below: int | None
) -> dict[Key, list[int]]:
    """Return the counts of each flight number on a route at a scheduled time."""
    first, last = days
    source, values = _flights(where, (day_number(first), day_number(last)), below)
    raw = f"flight.route, carrier, number, {MINUTE}"
    ends = _keys(rows, "route")
    groups: dict[Key, list[int]] = {}
    for route, carrier, number, minute, *counts in rows(
        f"SELECT {raw}, {COUNTED} {source} GROUP BY 1, 2, 3, 4", values
    ):
        origin, _, dest, _ = ends(route, DAY)
        key = (carrier, number, origin, dest, clock_time(minute))
        groups[key] = list(map(add, groups.get(key) or [0] * len(counts), counts))
    return groups


def flights_on(question: Departures, below: int | None) -> tuple[str, list[object]]:
    """Return FROM and WHERE that select the flights of a day, and the values for it."""
    day = day_number(date.fromisoformat(question.FL_DATE))
    source, values = _flights(_where(question), (day, day), below)
    if question.hour is None:
        return source, values
    return f"{source} AND coalesce({HOUR}, ?) = ?", [*values, question.hour, question.hour]


def _are_ranked(where: _Where, ranges: Sequence[Range]) -> bool:
    """Return whether table ranking has all airports and routes of a question."""
    return not where.places and bool(ranges) and all(span != DAY for span, _, _ in ranges)


def _ranges(days: tuple[date, date], group_by: str | None, below: int | None) -> list[Range]:
    """Return the periods whose totals are added up; days if flights are counted."""
    longest = _LONGEST.get(group_by or "", YEAR) if below is None else DAY
    return cover(*days, longest)


def _counts_by(
    rows: Rows,
    where: _Where,
    group_by: str,
    ranges: Sequence[Range],
    below: int | None,
) -> dict[Key, list[int]]:
    """Return the counts of each group that has flights."""
    key_of = _keys(rows, group_by)
    counts_by_key: dict[Key, list[int]] = {}
    for periods in ranges:
        for raw, *counts in _counts_of(rows, where, group_by, periods, below):
            key = key_of(raw, periods[0])
            known = counts_by_key.get(key)
            counts_by_key[key] = counts if known is None else list(map(add, known, counts))
    return counts_by_key


def _counts_of(
    rows: Rows, where: _Where, group_by: str | None, periods: Range, below: int | None
) -> list[Any]:
    """Return the raw keys and counts of the flights of some periods."""
    span, first, last = periods
    if below is not None or (span == DAY and (where.places or group_by in KINDS)):
        return _of_flights(rows, where, group_by, (first, last), below)
    if (group_by in _HOURS and span == DAY) or (group_by in _SLOTS and span == MONTH):
        return _of_slots(rows, where, group_by or "", periods)
    return _of_totals(rows, where, group_by, periods)


def _delays(rows: Rows, where: _Where, days: tuple[date, date], below: int | None) -> Counter[int]:
    """Return how often each ARR_DELAY occurs among the flights that arrived."""
    first, last = days
    if below is not None or where.places:
        source, values = _flights(where, (day_number(first), day_number(last)), below)
        select = "SELECT arr_delay, count(*)"
        return Counter(
            dict(rows(f"{select} {source} AND arr_delay IS NOT NULL GROUP BY 1", values))
        )
    total: Counter[int] = Counter()
    carriers, values = _of_carriers(where)
    select = "SELECT counts FROM carrier_delays"
    for periods in cover(first, last):
        for (stored,) in rows(f"{select} WHERE {carriers} AND {_PERIODS}", (*values, *periods)):
            total.update(decode_counts(stored))
    return total


# --- where the counts come from ------------------------------------------------------------------


def _of_totals(rows: Rows, where: _Where, group_by: str | None, periods: Range) -> list[Any]:
    """Return the raw keys and counts of whole periods."""
    raw = "period" if group_by in _TIMES else "carrier" if group_by == "carrier" else "0"
    raw = _AIRPORTS.get(group_by or "", raw)
    values: list[object]
    if group_by in KINDS and _are_ranked(where, [periods]):
        raw, source, conditions = "item", "ranking", OF_RANKING
        values = [KINDS[group_by or ""], where.in_sums, *periods]
    elif where.places or group_by in KINDS:
        source = "route CROSS JOIN route_total AS total ON total.route = route.route"
        conditions, values = _and_carrier(where)
        conditions = f"{where.places or 'true'} AND {_PERIODS}{conditions}"
        values = [*where.values, *periods, *values]
    else:
        source = "carrier_total"
        carriers, values = _of_carriers(where)
        conditions = f"{carriers} AND {_PERIODS}"
        values = [*values, *periods]
    select = f"SELECT {raw}, {SUMS} FROM {source}"  # noqa: S608  our own names
    return rows(f"{select} WHERE {conditions} {_GROUPED[group_by is None]}", values)


def _of_slots(rows: Rows, where: _Where, group_by: str, periods: Range) -> list[Any]:
    """Return the raw keys and counts of whole months, or of days by hour."""
    slots, raw = _SLOTS.get(group_by, _SLOTS["hour"]), _HOURS.get(group_by, ("slot",))[0]
    span, *ends = periods
    values: list[object]
    months = ""
    if where.places:
        months = _MONTHS
        source = "known CROSS JOIN route CROSS JOIN route_slot AS total USING (month, route)"
        conditions, values = _and_carrier(where)
        conditions = f"slot BETWEEN ? AND ? AND {where.places}{conditions}"
        values = [*ends, *slots, *where.values, *values]
    else:
        source = "carrier_slot"
        conditions = f"carrier = ? AND {_PERIODS} AND slot BETWEEN ? AND ?"
        values = [where.in_sums, span, *ends, *slots]
    select = f"{months} SELECT {raw}, {SUMS} FROM {source}"  # noqa: S608  our own names
    return rows(f"{select} WHERE {conditions} GROUP BY 1", values)


def _of_flights(
    rows: Rows, where: _Where, group_by: str | None, days: tuple[int, int], below: int | None
) -> list[Any]:
    """Return the raw keys and counts of the flights of some days."""
    raw = {"carrier": "carrier", None: "0"}.get(group_by, "day")
    raw = _HOURS[group_by][1] if group_by in _HOURS else _AIRPORTS.get(group_by or "", raw)
    source, values = _flights(where, days, below)
    known = " AND dep_time + dep_delay IS NOT NULL" if group_by in _HOURS else ""
    return rows(f"SELECT {raw}, {COUNTED} {source}{known} {_GROUPED[group_by is None]}", values)


def _flights(where: _Where, days: tuple[int, int], below: int | None) -> tuple[str, list[object]]:
    """Return FROM and WHERE that select flights, route by route, and the values for it."""
    source = "route CROSS JOIN flight ON flight.route = route.route"
    conditions, values = _and_carrier(where)
    if below is not None:
        conditions += " AND id < ?"
        values.append(below)
    conditions = f"{where.places or 'true'} AND day BETWEEN ? AND ?{conditions}"
    return f"FROM {source} WHERE {conditions}", [*where.values, *days, *values]


def _where(question: Question | Departures) -> _Where:
    ends, carrier = _ends_of(question), getattr(question, "OP_CARRIER_AIRLINE_ID", None)
    if not any(ends):  # as in most questions about a carrier
        return _Where("", [], carrier)
    given = {condition: end for condition, end in zip(_ENDS.values(), ends, strict=True) if end}
    return _Where(" AND ".join(given), list(given.values()), carrier)


def _of_carriers(where: _Where) -> tuple[str, list[object]]:
    """Return the condition on a table whose key begins with the carrier, and the values for it."""
    if where.carrier is None:
        return f"carrier IN ({KNOWN_CARRIERS})", []
    return "carrier = ?", [where.carrier]


def _and_carrier(where: _Where) -> tuple[str, list[object]]:
    return ("", []) if where.carrier is None else (" AND carrier = ?", [where.carrier])


def _days(question: Question) -> tuple[date, date]:
    first, last = map(date.fromisoformat, question.interval)
    return first, last


# --- keys ----------------------------------------------------------------------------------------


def _keys(
    rows: Rows, group_by: str, items: Sequence[int] | None = None
) -> Callable[[Any, int], Key]:
    """Return the function that makes a key of what a statement groups by, in totals of a span.

    items: the only airports or routes that occur; None: any may.
    """
    if group_by == "route":
        ends = dict(_some(rows, _ROUTES, "route", items))
        places = _named(rows, None if items is None else list(chain(*ends.values())))
        return lambda route, span: places[ends[route][0]] + places[ends[route][1]]
    if group_by in KINDS:
        places = _named(rows, items)
        return lambda place, span: places[place]
    return _KEY_OF[group_by]


def _named(rows: Rows, places: Sequence[int] | None) -> dict[int, tuple[str, str]]:
    return dict(_some(rows, _PLACES, "place", places))


def _some(
    rows: Rows, select: str, column: str, values: Sequence[int] | None
) -> Iterator[tuple[int, Any]]:
    """Yield the first member and the others of rows with one of `values` in a column."""
    among = "" if values is None else f"WHERE {column} IN (SELECT value FROM json_each(?))"  # noqa: S608
    for first, *others in rows(f"{select} {among}", () if values is None else (str(values),)):
        yield first, tuple(others)


def _weekday(raw: int, span: int) -> Key:
    """Return the key of a weekday. raw: a day, or the slot of a weekday."""
    weekday = date_of(raw).weekday() if span == DAY else raw - FIRST_WEEKDAY_SLOT
    return (1 + weekday,)


def _month(period: int, span: int) -> Key:
    if span == DAY:
        return (date_of(period).isoformat()[:7],)
    return (f"{period // 12:04}-{period % 12 + 1:02}",)


def _year(period: int, span: int) -> Key:
    if span == YEAR:
        return (period,)
    return (period // 12 if span == MONTH else date_of(period).year,)


_KEY_OF: dict[str, Callable[[Any, int], Key]] = {
    "carrier": lambda carrier, span: (carrier,),
    "hour": lambda hour, span: (hour,),
    "weekday_hour": lambda raw, span: (1 + raw // 24, raw % 24),
    "weekday": _weekday,
    "day": lambda day, span: (date_of(day).isoformat(),),
    "month": _month,
    "year": _year,
}
