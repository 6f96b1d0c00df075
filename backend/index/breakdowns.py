"""Counts flights by groups, from the table that answers soonest.

    carrier_total  what needs no airport
    route_total    what needs airports
    slot_total     whole months by hour and by weekday
    flight         whatever these do not know: other days by hour, distributions for some airports,
                   and everything as of an earlier height

Each function asks statements of `rows`, which runs all of an answer in one snapshot. `below` is the
first transaction id that does not count; None, at the tip, reads totals.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from operator import add
from typing import Any, NamedTuple

from backend.index.delays import decode_counts
from backend.index.periods import DAY, MONTH, YEAR, Range, cover
from backend.index.totals import ALL_ROUTES, COUNTED, FIRST_WEEKDAY_SLOT, HOUR, SUMS
from backend.questions.groups import Key
from backend.questions.values import AverageDelays, DelayTotals, FlightCounter

Rows = Callable[[str, Sequence[object]], list[Any]]  # statement, values -> all its rows
Question = AverageDelays | FlightCounter

# From one carrier to the next by the key: no row of a day is read.
KNOWN_CARRIERS = """
    WITH RECURSIVE known (carrier) AS (
        SELECT min(carrier) FROM carrier_total
        UNION ALL
        SELECT (SELECT min(carrier) FROM carrier_total WHERE carrier > known.carrier)
        FROM known WHERE carrier IS NOT NULL)
    SELECT carrier FROM known WHERE carrier IS NOT NULL"""

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

_TIMES = ("day", "weekday", "month", "year")
_SLOTS = {
    "hour": (0, FIRST_WEEKDAY_SLOT - 1),
    "weekday": (FIRST_WEEKDAY_SLOT, FIRST_WEEKDAY_SLOT + 6),
}
_LONGEST = {"day": DAY, "month": MONTH, "hour": MONTH, "weekday": MONTH}
_AIRPORTS = {"origin": "route.origin", "destination": "route.dest", "route": "route.route"}

_PERIODS = "span = ? AND period BETWEEN ? AND ?"


class _Where(NamedTuple):
    """The flights of a question but for its days: conditions on table route, and the carrier."""

    places: str
    values: list[object]
    carrier: int | None


def totals(
    rows: Rows, question: Question, group_by: str | None, below: int | None
) -> tuple[DelayTotals, dict[Key, DelayTotals]]:
    """The totals of all flights, and of each group that has some.

    group_by: a name of GROUPS; None: there are no groups.
    """
    groups = {} if group_by is None else _counts_by(rows, question, group_by, below)
    # Every flight is in one group, but for those whose hour is not known.
    is_partition = group_by not in {None, "hour"}
    parts = groups if is_partition else _counts_by(rows, question, None, below)
    total = DelayTotals(*map(sum, zip(*parts.values(), strict=True)))
    return total, {key: DelayTotals(*counts) for key, counts in groups.items()}


def _counts_by(
    rows: Rows, question: Question, group_by: str | None, below: int | None
) -> dict[Key, list[int]]:
    """The counts of each group that has flights. group_by: as `totals`, but None is one group."""
    where = _where(question)
    first, last = _days(question)
    key_of = _keys(rows, group_by)
    found: dict[Key, list[int]] = {}
    if below is not None:
        ranges: list[Range] = [(DAY, first.toordinal(), last.toordinal())]
    else:
        ranges = cover(first, last, _LONGEST.get(group_by or "", YEAR))
    for span, start, end in ranges:
        if below is not None or (group_by == "hour" and span == DAY):
            counted = _of_flights(rows, where, group_by, (start, end), below)
        elif group_by in _SLOTS and span == MONTH:
            counted = _of_slots(rows, where, _SLOTS[group_by], (start, end))
        else:
            counted = _of_totals(rows, where, group_by, (span, start, end))
        for raw, *counts in counted:
            key = key_of(raw, span)
            known = found.get(key)
            found[key] = counts if known is None else list(map(add, known, counts))
    return found


def delay_counts(rows: Rows, question: AverageDelays, below: int | None) -> Counter[int]:
    """How often each ARR_DELAY occurs among the flights that arrived."""
    where = _where(question)
    first, last = _days(question)
    if below is not None or where.places:
        source, values = _flights(where, (first.toordinal(), last.toordinal()), below)
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
    """Raw keys and counts of whole periods."""
    raw = "period" if group_by in _TIMES else "carrier" if group_by == "carrier" else "0"
    raw = _AIRPORTS.get(group_by or "", raw)
    if where.places or group_by in _AIRPORTS:
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
    return rows(f"{select} WHERE {conditions} GROUP BY 1", values)


def _of_slots(
    rows: Rows, where: _Where, slots: tuple[int, int], months: tuple[int, int]
) -> list[Any]:
    """Slots and counts of whole months."""
    conditions, values = _and_carrier(where)
    if where.places:
        source = "route CROSS JOIN slot_total AS total ON total.route = route.route"
        chosen = where.places
    else:
        source, chosen = "slot_total", f"route = {ALL_ROUTES}"
    conditions = f"{chosen} AND month BETWEEN ? AND ? AND slot BETWEEN ? AND ?{conditions}"
    select = f"SELECT slot, {SUMS} FROM {source}"  # noqa: S608  our own names
    values = [*where.values, *months, *slots, *values]
    return rows(f"{select} WHERE {conditions} GROUP BY 1", values)


def _of_flights(
    rows: Rows, where: _Where, group_by: str | None, days: tuple[int, int], below: int | None
) -> list[Any]:
    """Raw keys and counts of the flights of some days."""
    raw = {"hour": HOUR, "carrier": "carrier", None: "0"}.get(group_by, "day")
    raw = _AIRPORTS.get(group_by or "", raw)
    source, values = _flights(where, days, below, with_routes=group_by in _AIRPORTS)
    known = " AND dep_time + dep_delay IS NOT NULL" if group_by == "hour" else ""
    return rows(f"SELECT {raw}, {COUNTED} {source}{known} GROUP BY 1", values)


def _flights(
    where: _Where, days: tuple[int, int], below: int | None, *, with_routes: bool = False
) -> tuple[str, list[object]]:
    """FROM and WHERE that select flights, and the values for it."""
    source = "flight"
    if where.places:
        source = "route CROSS JOIN flight INDEXED BY flight_by_route ON flight.route = route.route"
    elif with_routes:
        source = "flight JOIN route USING (route)"
    conditions, values = _and_carrier(where)
    if below is not None:
        conditions += " AND id < ?"
        values.append(below)
    conditions = f"{where.places or 'true'} AND day BETWEEN ? AND ?{conditions}"
    return f"FROM {source} WHERE {conditions}", [*where.values, *days, *values]


def _where(question: Question) -> _Where:
    given = {name: getattr(question, name) for name in _ENDS}
    given = {name: value for name, value in given.items() if value is not None}
    places = " AND ".join(_ENDS[name] for name in given)
    carrier = getattr(question, "OP_CARRIER_AIRLINE_ID", None)
    return _Where(places, list(given.values()), carrier)


def _of_carriers(where: _Where) -> tuple[str, list[object]]:
    """The condition on a table whose key begins with the carrier, and the values for it."""
    if where.carrier is None:
        return f"carrier IN ({KNOWN_CARRIERS})", []
    return "carrier = ?", [where.carrier]


def _and_carrier(where: _Where) -> tuple[str, list[object]]:
    return ("", []) if where.carrier is None else (" AND carrier = ?", [where.carrier])


def _days(question: Question) -> tuple[date, date]:
    first, last = map(date.fromisoformat, question.interval)
    return first, last


# --- keys ----------------------------------------------------------------------------------------


def _keys(rows: Rows, group_by: str | None) -> Callable[[Any, int], Key]:
    """The function that makes a key of what a statement groups by, in totals of a span."""
    if group_by in _AIRPORTS:
        places = {place: (code, city) for place, code, city in rows(_PLACES, ())}
        if group_by != "route":
            return lambda place, span: places[place]
        ends = {route: (origin, dest) for route, origin, dest in rows(_ROUTES, ())}
        return lambda route, span: places[ends[route][0]] + places[ends[route][1]]
    return {
        None: lambda raw, span: (),
        "carrier": lambda carrier, span: (carrier,),
        "hour": lambda hour, span: (hour,),
        "weekday": _weekday,
        "day": lambda day, span: (date.fromordinal(day).isoformat(),),
        "month": _month,
        "year": _year,
    }[group_by]


def _weekday(raw: int, span: int) -> Key:
    """raw: a day, or the slot of a weekday."""
    weekday = date.fromordinal(raw).weekday() if span == DAY else raw - FIRST_WEEKDAY_SLOT
    return (1 + weekday,)


def _month(period: int, span: int) -> Key:
    if span == DAY:
        return (date.fromordinal(period).isoformat()[:7],)
    return (f"{period // 12:04}-{period % 12 + 1:02}",)


def _year(period: int, span: int) -> Key:
    if span == YEAR:
        return (period,)
    return (period // 12 if span == MONTH else date.fromordinal(period).year,)
