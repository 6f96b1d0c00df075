"""Makes small charts and tables of delays by weekday and by hour of scheduled departure. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from frontend.backend_client import Json
from frontend.charts.plots import Axis, Bars, axis, bars_of_groups
from frontend.coverage import Coverage
from frontend.field_labels import WEEKDAYS
from frontend.filters import counted, minutes
from frontend.question import Question
from frontend.questions.delays import FEW_IN_A_SLOT, Delays
from frontend.questions.group_rows import KEYS, Row, Verdict, rows_of, verdict

GROUPS = ("weekday", "hour")
HEADS = {"weekday": "Weekday", "hour": "Scheduled departure"}
COARSE_HOURS = 3  # so many hours from tick to tick on a narrow chart


@dataclass(frozen=True)
class Panels:
    """One kind of group: a chart for each carrier, all with the same places and the same scale.

    rows: the groups of each carrier, in the order of `carriers`, by their key. upright: the scale.
    """

    by: str
    carriers: Sequence[Delays]
    rows: Sequence[Mapping[int, Row]]
    upright: Axis

    @property
    def head(self) -> str:
        return HEADS[self.by]

    @cached_property
    def keys(self) -> range:
        """The groups that have a place: all weekdays; hours from the first to the last."""
        if self.by == "weekday":
            return range(1, len(WEEKDAYS) + 1)
        return range(min(self._flown), max(self._flown) + 1)

    @property
    def _flown(self) -> set[int]:
        return {key for rows in self.rows for key in rows}

    @property
    def is_one(self) -> bool:
        """Whether all flights are in one group, so that there is nothing to be compared."""
        return len(self._flown) < 2

    @cached_property
    def drawn(self) -> list[tuple[str, int, Bars]]:
        """(kind of group, rank of the carrier, chart), for each carrier with bars to compare."""
        if self.by == "weekday":
            ticks = [(name[:3], True) for name in WEEKDAYS]
        else:
            ticks = [(str(key), key % COARSE_HOURS == 0) for key in self.keys]
        charts = []
        for delays, rows in zip(self.carriers, self.rows, strict=True):
            bars = {
                key - self.keys[0]: (row.mean, _text(row), _kind(delays, row))
                for key, row in rows.items()
                if row.mean is not None and has_bar(row)
            }
            if len(bars) > 1:
                charts.append((self.by, delays.rank, bars_of_groups(self.upright, ticks, bars)))
        return charts

    def table_rows(self) -> Iterator[tuple[str, list[Row | None]]]:
        """(group, the row of each carrier), for groups with flights."""
        for key in self.keys:
            rows = [by_key.get(key) for by_key in self.rows]
            if any(rows):
                yield next(row.name for row in rows if row), rows

    @property
    def verdict(self) -> Verdict | None:
        """The best and the worst group of the first carrier."""
        return verdict(self.rows[0].values(), "average_delay", is_descending=False)


def panels(
    answers: Sequence[Json], carriers: Sequence[Delays], known: Coverage, question: Question
) -> dict[str, Panels]:
    """Return the panels by kind of group. answers: of `carriers`, each with all `GROUPS`."""
    by_group = {
        by: [
            {row.key[KEYS[by][0]]: row for row in rows_of(answer, by, known, question)}
            for answer in answers
        ]
        for by in GROUPS
    }
    all_rows = (row for groups in by_group.values() for rows in groups for row in rows.values())
    upright = axis([row.mean for row in all_rows if row.mean is not None and has_bar(row)])
    return {by: Panels(by, carriers, rows, upright) for by, rows in by_group.items() if any(rows)}


def has_bar(row: Row) -> bool:
    """Whether a group is drawn: one late flight among a handful would set the scale of all."""
    arrived: int = row.figures["arrived"]
    return arrived >= FEW_IN_A_SLOT


def _kind(delays: Delays, row: Row) -> str:
    return f"s{delays.rank} few" if row.is_few else f"s{delays.rank}"


def _text(row: Row) -> str:
    arrived = counted(row.figures["arrived"], "arrival")
    return f"{row.name}: {minutes(row.mean, 1)} ({arrived})"
