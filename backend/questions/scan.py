"""Answers as the study did: walks every block, through the caches, and looks at each flight.

Every block is checked on the way (frame, hash, proof of work, body) and must name the one below it.
Only the columns that a question needs are decoded. The answers equal those of the index. The time
of each stage of a scan is added to the `Costs` that the caller passes.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from operator import and_
from time import perf_counter

from backend.chain.block import NO_PREVIOUS, Block, Header
from backend.chain.columns import Columns
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight
from backend.chain.identity import LEG_FIELDS, Leg, Stored, leg_of
from backend.chain.summary import add_flight
from backend.questions.counts import DelayTotals, FlightCounts, status_of, total_of
from backend.questions.groups import GROUPS, Group, Key, Shown, scheduled_minute
from backend.questions.selection import Selection
from backend.questions.values import (
    MOST_DEPARTURES,
    AverageDelays,
    Departures,
    FilterTransactions,
    FlightCounter,
    Options,
    Selecting,
)
from backend.storage.caches import CachedBlocks
from backend.storage.codec import decoded, linked
from backend.storage.scan_costs import DECODE, FILTER, Costs

_EQUAL = (
    *("OP_CARRIER_FL_NUM", "OP_CARRIER_AIRLINE_ID"),
    *("ORIGIN", "DEST", "ORIGIN_CITY_NAME", "DEST_CITY_NAME"),
)

_DELAYS = ("CANCELLED", "ARR_DELAY", "DEP_DELAY")

Condition = Callable[[Value], bool]
Conditions = Mapping[str, Condition]  # column name -> the condition that its value must meet


def legs(
    blocks: CachedBlocks,
    question: FilterTransactions | Departures,
    height: int,
    costs: Costs | None = None,
) -> list[dict[str, Value]]:
    """Return the flight's legs in blocks 0 to `height`, each as `leg` shows it, in order of ids."""
    conditions = _conditions(question)
    legs_found: list[dict[str, Value]] = []
    for block, columns in _walk(blocks, height, tuple(conditions), costs):
        rows = list(compress(range(columns.count), _meets(columns, conditions)))
        whole = decoded(block) if rows else columns
        legs_found += [leg(whole.row(row), block, row) for row in rows]
    return legs_found


def records_of(
    blocks: CachedBlocks, flights: Sequence[Flight], first: int, height: int
) -> dict[Leg, list[Stored]]:
    """Return the records with the legs of `flights` in blocks `first` to `height`, oldest first."""
    legs = set(map(leg_of, flights))
    days = {day for day, *_ in legs}
    records: dict[Leg, list[Stored]] = {}
    for block, columns in _walk(blocks, height, LEG_FIELDS, first=first):
        if days.isdisjoint(columns["FL_DATE"].values):
            continue
        places = [(row, leg) for row, leg in enumerate(columns.rows(LEG_FIELDS)) if leg in legs]
        whole = decoded(block, FIELD_NAMES) if places else columns
        for row, leg in places:
            transaction_id = block.header.first_transaction + row
            record = Stored(transaction_id, block.header.height, tuple(whole.row(row).values()))
            records.setdefault(leg, []).append(record)
    return records


def departures(
    blocks: CachedBlocks,
    question: Departures,
    shown: Shown,
    height: int,
    costs: Costs | None = None,
) -> tuple[int, list[dict[str, Value]]]:
    """Return how many flights leave on a day, and those that are shown, by their scheduled times.

    Each is as `leg` shows it.
    """
    hour = question.hour
    timed = [
        (minute, flight)
        for flight in legs(blocks, question, height, costs)
        for minute in [scheduled_minute(flight["DEP_TIME"], flight["DEP_DELAY"])]
        if hour is None or minute is None or minute // 60 == hour
    ]
    timed.sort(key=lambda pair: (pair[0] is None, pair[0] or 0))  # equals stay in order of ids
    return len(timed), [flight for _, flight in shown.page(timed)[:MOST_DEPARTURES]]


def leg(transaction: Mapping[str, Value], block: Block, row: int) -> dict[str, Value]:
    """Return a transaction as `filter_transactions` shows it, with BLOCK_HEIGHT and status.

    block, row: where it is.
    """
    return {
        "TRANSACTION_ID": block.header.first_transaction + row,
        "timestamp": transaction["timestamp"],
        **{name: transaction[name] for name in FIELD_NAMES},
        "BLOCK_HEIGHT": block.header.height,
        "status": status_of(transaction["CANCELLED"], transaction["ARR_DELAY"]),
    }


def counts(
    blocks: CachedBlocks,
    question: AverageDelays | FlightCounter,
    options: Options,
    height: int,
    costs: Costs | None = None,
    first: int = 0,
) -> FlightCounts:
    """Return what is counted for a question in blocks `first` to `height`, as `options` say."""
    conditions, group = _conditions(question), GROUPS.get(options.group_by or "")
    figures, count = (_DELAYS, _delays) if isinstance(question, AverageDelays) else ((), _flights)
    counted = (*figures, *(group.columns if group else ())) or ("FL_DATE",)
    names = tuple(dict.fromkeys((*conditions, *counted)))
    return count(
        chain.from_iterable(
            compress(columns.rows(counted), _meets(columns, conditions))
            for _, columns in _walk(blocks, height, names, costs, first)
        ),
        group,
    )


def _delays(rows: Iterable[tuple[Value, ...]], group: Group | None) -> FlightCounts:
    """Count flights. rows: the values of _DELAYS, and of the columns of the group."""
    sums: defaultdict[Key, list[int]] = defaultdict(lambda: [0] * 7)
    delays: Counter[int] = Counter()
    for cancelled, arr_delay, dep_delay, *values in rows:
        key = group.key_of(*values) if group else ()
        add_flight(sums[key], cancelled, arr_delay, dep_delay)
        if isinstance(arr_delay, int):
            delays[arr_delay] += 1
    groups = {key: DelayTotals(*of_group) for key, of_group in sums.items()}
    return FlightCounts(total_of(sums.values()), _known(groups) if group else {}, delays)


def _flights(rows: Iterable[tuple[Value, ...]], group: Group | None) -> FlightCounts:
    """Count flights, of which nothing but their number is asked. rows: as in `_delays`."""
    flights_by_values = Counter(rows)
    total = DelayTotals(flights_by_values.total())
    if group is None:
        return FlightCounts(total)
    groups: Counter[Key] = Counter()
    for values, flights in flights_by_values.items():
        groups[group.key_of(*values)] += flights
    return FlightCounts(total, _known({key: DelayTotals(n) for key, n in groups.items()}))


def _known(groups: Mapping[Key, DelayTotals]) -> dict[Key, DelayTotals]:
    """Return the groups without the flights of which it is not known to which group they belong."""
    return {key: totals for key, totals in groups.items() if None not in key}


def flights(
    blocks: CachedBlocks, selection: Selection, height: int
) -> Iterator[tuple[Header, Columns, Sequence[int]]]:
    """Yield header, columns and rows of the blocks up to `height` that hold selected flights."""
    conditions, left, first = _conditions(selection), selection.limit, 0
    if selection.cursor:
        holder = blocks.where_transaction(selection.cursor)
        first = height + 1 if holder is None else holder.height
    for block, columns in _walk(blocks, height, tuple(conditions), first=first):
        rows = list(compress(range(columns.count), _meets(columns, conditions)))
        rows = rows[bisect_left(rows, selection.cursor - block.header.first_transaction) :][:left]
        if rows:
            yield block.header, decoded(block), rows
        left = None if left is None else left - len(rows)
        if left == 0:
            return


def _conditions(question: Selecting | Selection) -> dict[str, Condition]:
    """Return what the columns of a flight must meet: the values that are given, and the days."""
    first, last = question.interval
    given = ((name, getattr(question, name, None)) for name in _EQUAL)
    conditions: dict[str, Condition] = {
        name: value.__eq__ for name, value in given if value is not None
    }
    conditions["FL_DATE"] = lambda day: first <= str(day) <= last
    return conditions


def _meets(columns: Columns, conditions: Conditions) -> list[bool]:
    """Return for each row whether it meets every condition; nothing if no row of the block does.

    A condition is tried once on each distinct value, so in most blocks only a dictionary is read.
    """
    masks: list[list[bool]] = []
    for name, condition in conditions.items():
        meets = [bool(condition(value)) for value in columns[name].values]
        if not any(meets):
            return []
        masks.append(list(map(meets.__getitem__, columns[name].codes)))
    met = masks[0]
    for mask in masks[1:]:
        met = list(map(and_, met, mask))
    return met


def _walk(
    blocks: CachedBlocks,
    height: int,
    names: tuple[str, ...],
    costs: Costs | None = None,
    first: int = 0,
) -> Iterator[tuple[Block, Columns]]:
    """Yield blocks `first` to `height`, checked and linked, with the columns `names`.

    costs: takes the time for that, and the time that the caller spends on each block.
    """
    costs = Costs() if costs is None else costs

    def read(height: int) -> Block:
        blocks.yield_to_short_requests()
        return blocks.block(height, costs)

    below = blocks.where(first - 1).hash if first else NO_PREVIOUS
    for block in linked(range(first, height + 1), read, below):
        start_s = perf_counter()
        columns = decoded(block, names)
        start_s = costs.spend(DECODE, start_s)
        yield block, columns
        costs.spend(FILTER, start_s)
