"""Reads the first groups of a ranking, sorted and cut by SQLite, from few rows in one place.

Only the groups that may be shown become objects: a month has thousands of routes, and ten of them
are asked for.
"""

from collections.abc import Sequence
from typing import Any

from backend.index.index_file import Rows
from backend.index.periods import Range
from backend.index.totals import COUNTS, DESTINATION, ORIGIN, PAIR
from backend.questions.counts import RATIOS
from backend.questions.groups import Shown

KINDS = {"origin": ORIGIN, "destination": DESTINATION, "route": PAIR}

OF_RANKING = "kind = ? AND carrier = ? AND span = ? AND period BETWEEN ? AND ?"

_FIGURES = {name: f"1.0 * {part} / {whole}" for name, (part, whole) in RATIOS.items()}
_SPARE = 10  # groups asked for beyond those shown, in case that they equal the last one
_ADDED = ", ".join(f"sum({count}) AS {count}" for count in COUNTS.split(", "))
_ONE_RANGE = f"SELECT item, {COUNTS} FROM ranking WHERE {OF_RANKING}"  # noqa: S608  our own names


def first_groups(
    rows: Rows, group_by: str, carrier: int, ranges: Sequence[Range], shown: Shown
) -> tuple[list[Any], int]:
    """Return items and counts of the first groups, and how many groups have flights enough.

    The first ones end with the last that is shown and all that equal it: only their names tell
    which of these come first. group_by: a name of KINDS. carrier: perhaps ALL_CARRIERS. ranges: of
    months and years. shown: has a limit.
    """
    wanted = shown.offset + (shown.limit or 0)
    statement = _statement(ranges, shown)
    values = [value for periods in ranges for value in (KINDS[group_by], carrier, *periods)]
    values += [shown.least_flights] * 2
    asked = wanted + _SPARE
    while True:
        ranked = rows(statement, (*values, asked))
        if len(ranked) < asked or ranked[-1][1] != ranked[wanted - 1][1]:
            break
        asked *= 4
    equals = [row for row in ranked[wanted:] if row[1] == ranked[wanted - 1][1]]
    return [row[2:] for row in ranked[:wanted] + equals], ranked[0][0] if ranked else 0


def _statement(ranges: Sequence[Range], shown: Shown) -> str:
    """Select how many groups there are, the figure they are sorted by, the item, and its counts."""
    figure = _FIGURES.get(shown.sort or "", "cancelled" if shown.sort == "cancelled" else "flights")
    union = " UNION ALL ".join([_ONE_RANGE] * len(ranges))
    is_one_period = len(ranges) == 1 and ranges[0][1] == ranges[0][2]
    if is_one_period:  # then nothing is added up, and nothing need be kept
        groups, kept = union, "NOT MATERIALIZED"
    else:
        groups, kept = f"SELECT item, {_ADDED} FROM ({union}) GROUP BY item", "MATERIALIZED"  # noqa: S608
    return f"""
        WITH ranked AS {kept} ({groups})
        SELECT (SELECT count(*) FROM ranked WHERE flights >= ?), {figure} AS figure, *
        FROM ranked WHERE flights >= ?
        ORDER BY figure {"DESC" if shown.is_largest_first else "ASC"} NULLS LAST LIMIT ?"""  # noqa: S608
