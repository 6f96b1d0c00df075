"""The legs of a flight: their order, their days, their outcome. Pure.

A leg is a transaction as the backend shows it. The ledger has local times without time zones. Days
follow from the zones of the airports and, where those are unknown, are the days that fit best.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from frontend.airport_table import zone_of
from frontend.filters import minutes

Leg = Mapping[str, Any]

LATE_FROM_MINUTES = 15  # below that it is on time, as the US Department of Transportation counts
DAY_MINUTES = 24 * 60
USUAL_TAXI_MINUTES = 30
MOST_CHAINED = 300
ZONE_MINUTES = 60  # by so much the clock may have gone back after the shortest of flights
WESTWARD_MINUTES = 3 * 60  # by so much it may have gone back if the air time is not known

OUTCOMES = {  # the worst first
    "cancelled": "cancelled",
    "no_arrival": "with no arrival recorded",
    "late": "late",
    "on_time": "on time",
}
NO_FLIGHT = "No flight"


def status_of(transaction: Leg) -> str:
    """Return the backend's word for the outcome: cancelled, no_arrival, late or on_time."""
    if transaction["CANCELLED"]:
        return "cancelled"
    if transaction["ARR_DELAY"] is None:
        return "no_arrival"
    return "late" if transaction["ARR_DELAY"] >= LATE_FROM_MINUTES else "on_time"


def outcome(transaction: Leg) -> str:
    """Return what happened: "Late 42 min", "Early 14 min", "On time, 3 min late", "Cancelled", …

    A diverted flight may have reached its destination: it has ARR_TIME then, and no ARR_DELAY.
    """
    status, delay = status_of(transaction), transaction["ARR_DELAY"]
    if status == "late":
        return f"Late {minutes(delay)}"
    if status == "on_time" and delay:
        return f"Early {minutes(-delay)}" if delay < 0 else f"On time, {minutes(delay)} late"
    if status == "no_arrival":
        return f"No arrival {'delay ' if transaction['ARR_TIME'] else ''}recorded"
    return OUTCOMES[status].capitalize()


def worst(legs: Iterable[Leg]) -> str:
    """Return the status of the leg that went worst; "" without legs."""
    statuses = {status_of(leg) for leg in legs}
    return next((status for status in OUTCOMES if status in statuses), "")


def outcome_of_all(legs: Sequence[Leg]) -> str:
    """Return the outcomes together: "Late 42 min", "1 of 4 legs cancelled, …"."""
    if len(legs) < 2:
        return outcome(legs[0]) if legs else NO_FLIGHT
    counts = Counter(map(status_of, legs))
    (first, count), *others = [(status, counts[status]) for status in OUTCOMES if counts[status]]
    if not others:
        everyone = "Both" if count == 2 else f"All {count}"
        return f"{everyone} legs {OUTCOMES[first]}"
    parts = [f"{count} of {len(legs)} legs {OUTCOMES[first]}"]
    return ", ".join(parts + [f"{count} {OUTCOMES[status]}" for status, count in others])


# --- days and times ------------------------------------------------------------------------------


def _minute(hhmm: str | None) -> int | None:
    """Return the minute of a day; 24:00 is 00:00."""
    return None if not hhmm else (int(hhmm[:2]) * 60 + int(hhmm[2:])) % DAY_MINUTES


def scheduled_departure(leg: Leg) -> int | None:
    """Return the minute of FL_DATE at which a leg should leave; None if it is not known."""
    minute = _minute(leg["DEP_TIME"])
    return None if minute is None else (minute - (leg["DEP_DELAY"] or 0)) % DAY_MINUTES


def departure_day(leg: Leg) -> int:
    """Return the day on which a leg left, counted from FL_DATE: 1 if it left after midnight."""
    actual, scheduled, delay = _minute(leg["DEP_TIME"]), scheduled_departure(leg), leg["DEP_DELAY"]
    if actual is None or scheduled is None or not delay:
        return 0
    day: int = (scheduled + delay - actual) // DAY_MINUTES
    return day


def arrival_day(leg: Leg) -> int:
    """Return the day on which a leg arrived, counted from FL_DATE.

    It is the first one for which the scheduled time on the way, or if that is unknown the real one,
    is not below zero, but for clocks that go back meanwhile. Without the zones of its airports it
    is that for which the time on the way is closest to the time in the air.
    """
    left, arrived, air_time = _minute(leg["DEP_TIME"]), _minute(leg["ARR_TIME"]), leg["AIR_TIME"]
    if left is None or arrived is None:
        return departure_day(leg)
    later = arrived - left
    if (gained := _clock_gain(leg)) is not None:
        on_the_way = later - gained
        if None not in (leg["DEP_DELAY"], leg["ARR_DELAY"]):
            on_the_way -= leg["ARR_DELAY"] - leg["DEP_DELAY"]
        least = min((air_time or 0) - ZONE_MINUTES, 0)
        return departure_day(leg) - (on_the_way - least) // DAY_MINUTES
    if air_time is None:
        days = 0 if later > -WESTWARD_MINUTES else 1
    else:
        usual = air_time + USUAL_TAXI_MINUTES
        days = min(range(3), key=lambda day: abs(later + day * DAY_MINUTES - usual))
    return departure_day(leg) + days


def _clock_gain(leg: Leg) -> int | None:
    """Return by how many minutes the destination's clock is ahead of the origin's."""
    zones = zone_of(leg["ORIGIN"]), zone_of(leg["DEST"])
    if None in zones:
        return None
    left = datetime.fromisoformat(leg["FL_DATE"]) + timedelta(minutes=_minute(leg["DEP_TIME"]) or 0)
    instant = left.replace(tzinfo=zones[0])
    there = instant.astimezone(zones[1])
    ahead = (there.utcoffset() or timedelta()) - (instant.utcoffset() or timedelta())
    return round(ahead.total_seconds() / 60)


def scheduled(leg: Leg, end: str) -> str:
    """Return when a leg should leave ("DEP") or arrive ("ARR"): "06:15", or "" if unknown."""
    minute, delay = _minute(leg[f"{end}_TIME"]), leg[f"{end}_DELAY"]
    if minute is None or delay is None:
        return ""
    hour, rest = divmod((minute - delay) % DAY_MINUTES, 60)
    return f"{hour:02}:{rest:02}"


def scheduled_day(leg: Leg, end: str) -> int:
    """Return the day on which a leg should leave or arrive, counted from FL_DATE; see scheduled."""
    if end == "DEP" or not scheduled(leg, end):
        return 0
    minute: int = (_minute(leg["ARR_TIME"]) or 0) - leg["ARR_DELAY"]
    return arrival_day(leg) + minute // DAY_MINUTES


def day_in_words(days: int) -> str:
    """Return a day counted from FL_DATE, in words; "" for FL_DATE itself."""
    known = {-1: "the day before", 0: "", 1: "next day"}
    return known.get(days, f"{days} days later")


# --- order ---------------------------------------------------------------------------------------


def routes(legs: Iterable[Leg]) -> list[list[Leg]]:
    """Return the legs of one carrier's flight on a day, chained: where one ends the next begins.

    A route starts at an airport that more legs leave than reach. Where there is a choice, a leg
    whose end another leg leaves comes before one whose end none leaves, and then the earlier
    departure wins. A leg that left before the leg in front of it belongs to the day before, and is
    a route of its own, like legs that fit nowhere, and like all of more than MOST_CHAINED. The
    routes are in the order of their departure.
    """
    left = sorted(legs, key=_by_departure)
    if len(left) > MOST_CHAINED:
        return [[leg] for leg in left]
    chains: list[list[Leg]] = []
    while left:
        route = [left.pop(_first(left))]
        while (place := _onward(left, route[-1])) is not None:
            route.append(left.pop(place))
        chains.append(route)
    return sorted(chains, key=lambda route: _by_departure(route[0]))


def _by_departure(leg: Leg) -> tuple[int, int]:
    minute = scheduled_departure(leg)
    return (DAY_MINUTES if minute is None else minute), leg["TRANSACTION_ID"]


def _first(left: Sequence[Leg]) -> int:
    """Return the place of the first leg of the next route. left: in the order of departure."""
    leave, reach = (Counter(leg[end] for leg in left) for end in ("ORIGIN", "DEST"))

    def rank(place: int) -> tuple[bool, bool]:
        origin, dest = left[place]["ORIGIN"], left[place]["DEST"]
        return leave[origin] <= reach[origin], dest not in leave

    return min(range(len(left)), key=rank)


def _onward(left: Sequence[Leg], leg: Leg) -> int | None:
    """Return the place of the leg after `leg`; None if there is none."""
    minute, _ = _by_departure(leg)
    earliest = 0 if minute == DAY_MINUTES else minute - ZONE_MINUTES
    origins = {other["ORIGIN"] for other in left}
    onward = [
        place
        for place, other in enumerate(left)
        if other["ORIGIN"] == leg["DEST"] and _by_departure(other)[0] >= earliest
    ]
    return min(onward, key=lambda place: left[place]["DEST"] not in origins, default=None)
