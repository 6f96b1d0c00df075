"""Answers questions about flights, from the index or by a scan of all blocks.

The index has totals at its tip alone; below that it counts flights, or takes away what the few
blocks since then hold. A scan verifies every block that it reads, and needs no index.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import astuple

from backend.base.errors import Damage, TryLater
from backend.chain.block import Header
from backend.chain.columns import Columns
from backend.index import suggestions
from backend.index.completions import covered
from backend.index.queries import IndexReader, State
from backend.index.unknown_values import unknown_values
from backend.questions import answer_types as types
from backend.questions import scan
from backend.questions.answer_types import AsOf
from backend.questions.counts import DelayTotals, FlightCounts, arranged, distribution_of
from backend.questions.groups import EVERYTHING, GROUPS
from backend.questions.selection import Selection
from backend.questions.values import (
    AverageDelays,
    FilterTransactions,
    FlightCounter,
    Options,
    Selecting,
    asked_for,
    understood,
)
from backend.storage.block_store import BlockStore
from backend.storage.caches import CachedBlocks
from backend.storage.scan_costs import Costs

Found = TypeVar("Found")

NEAR_BLOCKS = 60  # an hour of them; to scan one takes about a millisecond


def tip_height(store: BlockStore) -> int:
    """Return the height of the tip. Raises TryLater without a chain."""
    height = store.height()
    if height < 0:
        raise store.no_chain()
    return height


class Answers:
    """Answers from the blocks in `store`, which are read through `blocks`, and from their index."""

    def __init__(self, store: BlockStore, blocks: CachedBlocks, index: IndexReader) -> None:
        self._store = store
        self._blocks = blocks
        self._index = index

    # --- the three questions -----------------------------------------------------------------

    def answer(self, question: Selecting, options: Options, costs: Costs | None = None) -> Any:
        """Answer a question, and say what is unknown in one about no flights.

        The name of a city that differs only in case or accents is that city: `query` of the answer
        has the ledger's spelling. An answer as of a block never changes, but what is unknown does:
        it has no warnings. costs, and what is raised: as in `exact`.
        """
        answer = self.exact(question, options, costs)
        if answer.flights if isinstance(answer, types.Delays) else answer.count:
            return answer
        unknown = self._unknown_values(question)
        if spelled := _other_spellings(unknown):
            return self.answer(replace(question, **spelled), options, costs)
        if options.as_of is None:
            answer.warnings = unknown or UNSET
        return answer

    def exact(self, question: Selecting, options: Options, costs: Costs | None = None) -> Any:
        """Answer a question about names that are spelled as in the ledger.

        Raises NotFound for an `as_of` above the tip, TryLater while the index is missing or behind,
        and DamagedBlock when a scan meets a bad block. costs: takes the times of a scan's stages.
        """
        if isinstance(question, AverageDelays | FlightCounter):
            return self._figures(question, options, costs)
        query = understood(question, options)
        if isinstance(question, FilterTransactions):
            legs, as_of = self._found(
                lambda height: scan.legs(self._blocks, question, height, costs),
                lambda below: self._index.legs(question, below),
                options,
            )
            return types.Legs(len(legs), options.shown.page(legs), as_of, query)
        (count, flights), as_of = self._found(
            lambda height: scan.departures(self._blocks, question, options.shown, height, costs),
            lambda below: self._index.departures(question, options.shown, below),
            options,
        )
        return types.Departures(count, flights, as_of, query)

    def _figures(
        self, question: AverageDelays | FlightCounter, options: Options, costs: Costs | None
    ) -> Any:
        """Answer a question about how many flights there were, or how late they were."""
        counts, as_of = self._counts(question, options, costs)
        more = {"as_of": as_of, "query": understood(question, options)}
        if isinstance(question, FlightCounter):
            more |= _grouped(counts, options, types.COUNTS_OF, _flights)
            return types.FlightCount(counts.totals.flights, **more)
        distribution = distribution_of(counts.delays) if options.distribution else UNSET
        more |= _grouped(counts, options, types.DELAYS_OF, _averages)
        return _averages(counts.totals, types.AverageDelays, distribution=distribution, **more)

    def _unknown_values(self, question: Selecting | Selection) -> list[types.UnknownValue]:
        """Return which values of a question no flight has. [] without an index that can tell."""
        with suppress(TryLater, Damage):
            return self._index.snapshot(lambda rows: unknown_values(rows, asked_for(question)))[0]
        return []

    def suggest(self, field: str, q: str, limit: int) -> types.Suggestions:
        """Complete `q` for one of `suggestions.FIELDS`. Raises InvalidQuery, TryLater."""
        q = suggestions.typed(field, q)
        completions, as_of = self._index.snapshot(
            lambda rows: suggestions.suggested(rows, field, q, limit)
        )
        return types.Suggestions(field, q, completions, as_of)

    def coverage(self) -> types.Coverage:
        """Return what the ledger covers. Raises TryLater."""
        members, as_of = self._index.snapshot(covered)
        return types.Coverage(**members, as_of=as_of)

    def recent_state(self) -> State:
        """Return the state of the index for answers, at most a moment old. Raises TryLater.

        A `Submitter` waits that moment before it returns that a flight is mined, so that later
        answers count the flight.
        """
        return self._index.recent_state()

    # --- export ------------------------------------------------------------------------------

    def as_of(self, height: int | None) -> AsOf:
        """Return the `as_of` of answers at `height`, or at the tip. Raises NotFound, TryLater."""
        height = tip_height(self._store) if height is None else height
        return AsOf(height, self._store.place(height).hash.hex())

    def flights(
        self, selection: Selection, height: int
    ) -> Iterator[tuple[Header, Columns, Sequence[int]]]:
        """Return the blocks up to `height` with selected flights: header, columns, and the rows.

        Every block is verified on the way. Raises DamagedBlock, perhaps after some good blocks.
        """
        spelled = _other_spellings(self._unknown_values(selection))
        return scan.flights(self._blocks, replace(selection, **spelled), height)

    def _counts(
        self, question: AverageDelays | FlightCounter, options: Options, costs: Costs | None
    ) -> tuple[FlightCounts, AsOf]:
        """Return what is counted for a question, and the block up to which it counts."""
        height = options.as_of
        if options.engine == "index" and height is not None:
            with suppress(Damage):  # of blocks, which the index alone does not need
                if near := self._counts_near_tip(question, options, height):
                    return near
        return self._found(
            lambda height: scan.counts(self._blocks, question, options, height, costs),
            lambda below: self._index.counts(question, options, below),
            options,
        )

    def _counts_near_tip(
        self, question: AverageDelays | FlightCounter, options: Options, height: int
    ) -> tuple[FlightCounts, AsOf] | None:
        """Return the totals of the index without what the few blocks above `height` hold.

        The index has totals at its tip alone. None if that is too far above.
        """
        if not 0 < self._index.position().height - height <= NEAR_BLOCKS:
            return None
        all_groups = replace(options, shown=EVERYTHING)  # as all may change
        counts, tip = self._index.counts(question, all_groups)
        if not 0 < tip.height - height <= NEAR_BLOCKS:
            return None
        later = scan.counts(self._blocks, question, options, tip.height, first=height + 1)
        return counts - later, AsOf(height, self._blocks.where(height).hash)

    def _found(
        self,
        by_scan: Callable[[int], Found],
        by_index: Callable[[int | None], tuple[Found, AsOf]],
        options: Options,
    ) -> tuple[Found, AsOf]:
        """Return what a scan or the index finds, and the block up to which that counts.

        by_scan: takes the height of that block. by_index: takes the first transaction id that does
        not count, None if all count.
        """
        height = options.as_of
        if options.engine == "scan":
            as_of = self.as_of(height)
            return by_scan(as_of.height), as_of
        if height is None:
            return by_index(None)
        tip_height(self._store)  # raises TryLater without a chain
        place = self._store.place(height)
        indexed = self._index.position().height
        if height > indexed:
            raise TryLater(f"the index has reached only block {indexed}; try again in a moment")
        if height == indexed:  # as most pages ask: the index is quickest at its own tip
            answer, as_of = by_index(None)
            if as_of.height == indexed:
                return answer, as_of
        answer, _ = by_index(place.next_transaction)
        return answer, AsOf(height, place.hash.hex())


def _other_spellings(unknown: Iterable[types.UnknownValue]) -> dict[str, Any]:
    """Return the ledger's spelling of unknown values that differ only in case or accents.

    Of several spellings the one with the most flights counts.
    """
    return {
        warning.field: value
        for warning in unknown
        for value in reversed(warning.did_you_mean)  # of several, the last one stays: the best
        if suggestions.folded(value) == suggestions.folded(warning.value)
    }


def _grouped(
    counts: FlightCounts,
    options: Options,
    rows: Mapping[str, type[Any]],
    figures: Callable[[DelayTotals], Struct],
) -> dict[str, Any]:
    """Return the members that `options.group_by` adds to an answer.

    rows: the type of a group, by what groups are made of. figures: makes the values of a row behind
    those of its key.
    """
    by = options.group_by
    if by is None:
        return {}
    shown, count = arranged(by, counts.groups, options.shown)
    with_hour = sum(totals.flights for totals in counts.groups.values())
    return {
        f"by_{by}": [rows[by](*key, *astuple(figures(totals))) for key, totals in shown],
        "groups": count if counts.group_count is None else counts.group_count,
        "without_hour": counts.totals.flights - with_hour if GROUPS[by].is_by_hour else UNSET,
    }


def _averages(totals: DelayTotals, kind: Any = types.Averages, **more: Any) -> Any:
    """Return the averages, as `kind` of answer. more: its other members."""
    figure = totals.figure
    return kind(
        average_delay=figure("average_delay"),
        flights=totals.flights,
        arrived=totals.arrived,
        cancelled=totals.cancelled,
        no_arrival=totals.flights - totals.cancelled - totals.arrived,
        on_time_share_of_arrived=figure("on_time_share_of_arrived"),
        on_time_share_of_scheduled=figure("on_time_share_of_scheduled"),
        average_departure_delay=figure("average_departure_delay"),
        **more,
    )


def _flights(totals: DelayTotals) -> types.Flights:
    return types.Flights(totals.flights)
