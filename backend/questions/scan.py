"""Answers as the study did: walks every block, through the caches, and looks at each flight.

Every block is checked on the way (frame, hash, proof of work, body) and must name the one below it.
Only the columns that a question needs are decoded. The answers equal those of the index. The time
of each stage of a scan is added to the `Costs` that the caller passes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from operator import and_
from time import perf_counter

from backend.chain.block import NO_PREVIOUS, Block, Header
from backend.chain.columns import COLUMN_NAMES, BodyError, Columns, decode_body
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.summary import add_flight
from backend.errors import DamagedBlock
from backend.questions.selection import EQUAL, Selection
from backend.questions.values import (
    AverageDelays,
    Delays,
    DelayTotals,
    FilterTransactions,
    FlightCounter,
    FlightCounts,
    Options,
    status_of,
)
from backend.storage.caches import CachedBlocks
from backend.storage.scan_costs import DECODE, FILTER, Costs

Condition = Callable[[Value], bool]
Conditions = Mapping[str, Condition]  # column name -> the condition that its value must meet


def legs(
    blocks: CachedBlocks, question: FilterTransactions, height: int, costs: Costs | None = None
) -> list[dict[str, Value]]:
    """The flight's legs in blocks 0 to `height`, each as `leg` shows it, in order of ids."""
    conditions: dict[str, Condition] = {
        "OP_CARRIER_FL_NUM": question.OP_CARRIER_FL_NUM.__eq__,
        "FL_DATE": question.FL_DATE.__eq__,
    }
    if (carrier := question.OP_CARRIER_AIRLINE_ID) is not None:
        conditions["OP_CARRIER_AIRLINE_ID"] = carrier.__eq__
    found: list[dict[str, Value]] = []
    for block, columns in _walk(blocks, height, tuple(conditions), costs):
        rows = list(compress(range(columns.count), _meets(columns, conditions)))
        whole = _decoded(block, COLUMN_NAMES) if rows else columns
        found += [leg(whole.row(row), block, row) for row in rows]
    return found


def leg(transaction: Mapping[str, Value], block: Block, row: int) -> dict[str, Value]:
    """A transaction as `filter_transactions` shows it, with BLOCK_HEIGHT and status.

    block, row: where it is.
    """
    return {
        "TRANSACTION_ID": block.header.first_transaction + row,
        "timestamp": transaction["timestamp"],
        **{name: transaction[name] for name in FIELD_NAMES},
        "BLOCK_HEIGHT": block.header.height,
        "status": status_of(transaction["CANCELLED"], transaction["ARR_DELAY"]),
    }


def delays(
    blocks: CachedBlocks, question: AverageDelays, height: int, costs: Costs | None = None
) -> Delays:
    """The counts and sums behind the averages, over blocks 0 to `height`, with every breakdown."""
    conditions: dict[str, Condition] = {
        "OP_CARRIER_AIRLINE_ID": question.OP_CARRIER_AIRLINE_ID.__eq__,
        "FL_DATE": _within(question),
    }
    counted = ("CANCELLED", "ARR_DELAY", "DEP_DELAY")
    days: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 7)
    counts: Counter[int] = Counter()
    for _, columns in _walk(blocks, height, (*conditions, *counted), costs):
        rows = zip(*(columns[name].expanded() for name in ("FL_DATE", *counted)), strict=True)
        for day, cancelled, arr_delay, dep_delay in compress(rows, _meets(columns, conditions)):
            add_flight(days[str(day)], cancelled, arr_delay, dep_delay)
            if isinstance(arr_delay, int):
                counts[arr_delay] += 1
    totals = DelayTotals(*map(sum, zip(*days.values(), strict=True)))
    return Delays(totals, {day: DelayTotals(*of_day) for day, of_day in days.items()}, counts)


def flight_counts(
    blocks: CachedBlocks,
    question: FlightCounter,
    options: Options,
    height: int,
    costs: Costs | None = None,
) -> FlightCounts:
    """How many flights in blocks 0 to `height` the question counts, by what `options` say."""
    conditions: dict[str, Condition] = {
        "ORIGIN_CITY_NAME": question.ORIGIN_CITY_NAME.__eq__,
        "DEST_CITY_NAME": question.DEST_CITY_NAME.__eq__,
        "FL_DATE": _within(question),
    }
    column = "OP_CARRIER_AIRLINE_ID" if options.group_by == "carrier" else "FL_DATE"
    found: Counter[Value] = Counter()
    names = tuple(dict.fromkeys((*conditions, column)))
    for _, columns in _walk(blocks, height, names, costs):
        found.update(compress(columns[column].expanded(), _meets(columns, conditions)))
    if options.group_by == "carrier":
        return FlightCounts(found.total(), by_carrier={int(k or 0): n for k, n in found.items()})
    return FlightCounts(found.total(), by_day={str(day): n for day, n in found.items()})


def flights(
    blocks: CachedBlocks, selection: Selection, height: int
) -> Iterator[tuple[Header, Columns, Sequence[int]]]:
    """The blocks among 0 to `height` that hold selected flights: header, columns, and the rows."""
    conditions: dict[str, Condition] = {"FL_DATE": _within(selection)}
    for name in EQUAL:
        if (value := getattr(selection, name)) is not None:
            conditions[name] = value.__eq__
    for block, columns in _walk(blocks, height, tuple(conditions)):
        rows = list(compress(range(columns.count), _meets(columns, conditions)))
        if rows:
            yield block.header, _decoded(block, COLUMN_NAMES), rows


def _within(question: AverageDelays | FlightCounter | Selection) -> Condition:
    return lambda day: question.INITIAL_DATE <= str(day) <= question.FINAL_DATE


def _meets(columns: Columns, conditions: Conditions) -> list[bool]:
    """For each row whether it meets every condition; empty if no row of the block does.

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
    blocks: CachedBlocks, height: int, names: tuple[str, ...], costs: Costs | None = None
) -> Iterator[tuple[Block, Columns]]:
    """Blocks 0 to `height`, checked and linked, with the columns `names`.

    costs: takes the time for that, and the time that the caller spends on each block.
    """
    costs = Costs() if costs is None else costs
    below = NO_PREVIOUS
    for at in range(height + 1):
        block = blocks.block(at, costs)
        if block.header.previous_hash != below:
            raise DamagedBlock(at, f"it names {block.header.previous_hash} below it, not {below}")
        below = block.hash
        start_s = perf_counter()
        columns = _decoded(block, names)
        start_s = costs.spend(DECODE, start_s)
        yield block, columns
        costs.spend(FILTER, start_s)


def _decoded(block: Block, names: tuple[str, ...]) -> Columns:
    try:
        return decode_body(block.body, block.header.transaction_count, names)
    except BodyError as error:
        raise DamagedBlock(block.header.height, str(error)) from error
