"""Notices a file whose columns are not what their titles say, as where two titles were swapped.

Each of its flights would be valid, and be stored for ever at a wrong airport, carrier or day.
What the tables of airports and carriers know of a code is compared with what stands beside it, and
columns that mean the same with each other. One airport that disagrees is no contradiction: people
give some of them to other cities than BTS does.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass

from backend.base.errors import shown
from backend.base.lru import remembered
from backend.questions.carriers import CARRIER as CARRIERS
from backend.questions.carriers import CODES
from backend.sources.airports import airport_numbers, airport_of
from backend.sources.cells import STATES, clock, state
from backend.sources.kinds import CARRIER, DAY, DEST_STATE, MONTH, ORIGIN_STATE, Reading
from backend.sources.records import RecordBatch

_STATES = frozenset(STATES.values())
_CARRIER_NUMBERS = frozenset(map(str, CARRIERS))
_LEAST = 100  # departures that contradict their delays by no chance
_LOOKED_AT = 300  # rows of a batch, for times
_LONGEST = 720  # minutes in the air; distances are longer in more than a tenth of the rows
_MOST_PLACES = 10  # contradictions of airports, beyond which a later part of a file is wrong
_REMEDY = "correct the titles of the columns, or the values below them"
_IN_MOST = f"in most rows; {_REMEDY}"
_IN_MANY = f"in many rows; {_REMEDY}"


@remembered(1000)
def _states_of_airport(text: str) -> Set[str]:
    airport = airport_of(text)
    return {airport.state, *_state_of_city(airport.city)} if airport else set()  # IAD is in VA


def _state_of_city(text: str) -> Set[str]:
    return _state_named(text.rpartition(", ")[2]) if ", " in text else set()


@remembered(1000)
def _state_named(text: str) -> Set[str]:
    return {str(state(text))} & _STATES


def _text(cell: object) -> str:
    """Return a cell as text, a number without decimals that are zero."""
    return str(cell).strip().removesuffix(".0").removesuffix(".00")


def _numbers_of_airport(text: str) -> Set[str]:
    return {airport_numbers().get(text, "")} - {""}


@remembered(1000)
def _numbers_of_carriers(text: str) -> Set[str]:
    """Return the DOT numbers of all carriers that ever had this code."""
    return {str(carrier.number) for carrier in CODES if carrier.code == text.upper()}


def _number(text: str) -> Set[str]:
    return {text.lstrip("0")} if text.isdecimal() else set()


def _known_number(text: str) -> Set[str]:
    return _number(text) if airport_of(text) else set()


Cells = tuple[str, ...]
Counts = tuple[Counter[str], Counter[str]]
"""How many times have a delay and a schedule, and how many of them contradict it, by carrier."""

Meaning = Callable[[str], Set[str]]
"""Returns what a cell may mean; nothing if that is unknown."""

_BESIDE: Mapping[str, tuple[Meaning, Meaning]] = {
    "_AIRPORT_ID": (_numbers_of_airport, _number),
    "_CITY_NAME": (_states_of_airport, _state_of_city),
    "_STATE_NM": (_states_of_airport, _state_named),
    "_STATE": (_states_of_airport, _state_named),
}
"""What stands beside an airport, what the airport means then, and what stands there."""

_REPEATED: Mapping[str, Meaning] = {
    CARRIER: _numbers_of_carriers,
    MONTH: _number,
    DAY: _number,
    ORIGIN_STATE: _state_named,
    DEST_STATE: _state_named,
}
"""What a file may say in several columns."""

_NUMBERS: Mapping[str, Sequence[tuple[str, Callable[[str], object]]]] = {
    "OP_CARRIER_AIRLINE_ID": [("an airport", airport_of)],
    "OP_CARRIER_FL_NUM": [("an airport", airport_of), ("a carrier", _CARRIER_NUMBERS.__contains__)],
    "ORIGIN_AIRPORT_ID": [("a carrier", _CARRIER_NUMBERS.__contains__)],
    "DEST_AIRPORT_ID": [("a carrier", _CARRIER_NUMBERS.__contains__)],
}
"""Columns of numbers, and how to notice those of something else."""


def contradiction(
    reading: Reading,
    batches: Sequence[RecordBatch],
    counts: dict[str, Counts],
    *,
    are_first: bool = True,
) -> str:
    """Return why the columns of these rows are not what their titles say; "" if they may be.

    counts: of the rows of the file that were compared before, by end; these are added. are_first:
    whether they begin a file. Later ones, where another file may have been put behind, may be
    sorted by what is spelled otherwise for one airport or carrier.
    """
    rows = _Rows(reading, batches, counts)
    judges: Sequence[Callable[[_Rows], str]] = (_delays, _flying, _schedules)
    if are_first:
        judges = (_other_numbers, _carriers, _repeated, *judges)
    least = 1 if are_first else _MOST_PLACES
    return _airports(rows, least) or next(filter(None, (judge(rows) for judge in judges)), "")


@dataclass(frozen=True)
class _Rows:
    """Some rows of a file. Columns are named by their meanings or positions."""

    reading: Reading
    batches: Sequence[RecordBatch]
    counts: dict[str, Counts]

    def has(self, *columns: str) -> bool:
        return self.reading.places.keys() >= set(columns)

    def count(self, *columns: str | int, most: int | None = None) -> Counter[Cells]:
        """Count the different rows of some columns, or the first `most` of a batch."""
        places = list(map(self._place, columns))
        rows, texts = Counter[tuple[object, ...]](), Counter[Cells]()
        for batch in self.batches:
            rows.update(zip(*(batch.columns[at][:most] for at in places), strict=True))
        for row, count in rows.items():
            texts[tuple(map(_text, row))] += count
        return texts

    def words(self, columns: Sequence[str | int], cells: Cells) -> str:
        titles = (self.reading.titles[self._place(column)] for column in columns)
        texts = (cell if cell.isdecimal() and len(cell) < 10 else shown(cell) for cell in cells)
        return "has " + " beside ".join(map(" ".join, zip(titles, texts, strict=True)))

    def _place(self, column: str | int) -> int:
        return column if isinstance(column, int) else self.reading.places[column]


def _compared(
    pairs: Iterable[Cells], first: Meaning, second: Meaning
) -> tuple[list[Cells], list[Cells]]:
    """Return the pairs of cells that both mean something, and those of them that do not agree."""
    known = [pair for pair in pairs if first(pair[0]) and second(pair[1])]
    return known, [pair for pair in known if first(pair[0]).isdisjoint(second(pair[1]))]


def _disagreement(
    rows: _Rows, place: str, other: str | int, meanings: tuple[Meaning, Meaning]
) -> str:
    """Return how two columns contradict each other in most rows; "" if they do not."""
    pairs = rows.count(place, other)
    _, odd = _compared(pairs, *meanings)
    is_most = 2 * sum(pairs[pair] for pair in odd) > pairs.total()
    return f"{rows.words((place, other), min(odd))}, which disagree in most rows" if is_most else ""


def _other_numbers(rows: _Rows) -> str:
    for column, others in _NUMBERS.items():
        cells = [cell for (cell,) in rows.count(column)] if rows.has(column) else []
        for what, is_other in others:
            odd = list(filter(is_other, cells))
            if 2 * len(odd) > len(cells):
                words = rows.words([column], (min(odd),))
                return f"{words}, which is the number of {what}, {_IN_MOST}"
    return ""


def _carriers(rows: _Rows) -> str:
    column = "OP_CARRIER_AIRLINE_ID"
    if not rows.has(column, CARRIER):
        return ""
    if words := _disagreement(rows, column, CARRIER, (_number, _numbers_of_carriers)):
        title = rows.reading.columns[column]
        remedy = f"or remove the column {title}: the codes are enough"
        return f"{words}; write DOT numbers of carriers (such as 19393), {remedy}"
    return ""


def _repeated(rows: _Rows) -> str:
    for column, meaning in _REPEATED.items():
        for other in rows.reading.others.get(column, ()):
            if words := _disagreement(rows, column, other, (meaning, meaning)):
                return f"{words}; remove the wrong one of these two columns"
    return ""


def _airports(rows: _Rows, least: int) -> str:
    """Return how most airports contradict what is beside them, if more than `least` do."""
    wrong, beside = [], _BESIDE
    if rows.reading.is_of_fields:  # other numbers than the known ones may be of airports to come
        beside = {**beside, "_AIRPORT_ID": (_numbers_of_airport, _known_number)}
    for end in ("ORIGIN", "DEST"):
        airport = end if rows.has(end) else f"{end}_AIRPORT_ID"
        for suffix, meanings in beside.items():
            columns = (airport, f"{end}{suffix}")
            is_used = suffix != "_STATE" or not rows.has(f"{end}_STATE_NM")
            if is_used and rows.has(*columns):
                known, odd = _compared(rows.count(*columns), *meanings)
                wrong += [rows.words(columns, pair) for pair in odd if 2 * len(odd) > len(known)]
    return f"{min(wrong)}, which disagree {_IN_MOST}" if len(wrong) > least else ""


def _delays(rows: _Rows) -> str:
    """Return how times contradict their delays, as where those of the other end are below them.

    A single carrier tells only if most of its rows do: those of OO that left early in 2003 have the
    delay 0, and AA of 1996 has 0 for each scheduled time. Those of several are counted from the
    beginning of the file on, because it may be sorted by carrier.
    """
    carriers = [name for name in ("OP_CARRIER_AIRLINE_ID", CARRIER) if rows.has(name)]
    for end in ("DEP", "ARR"):
        scheduled = rows.reading.others.get(f"CRS_{end}_TIME", ())
        columns: list[str | int] = [f"{end}_TIME", f"{end}_DELAY", *scheduled]
        known, odd, wrong = Counter[str](), Counter[str](), list[Cells]()
        moments = _moments(rows, *columns, beside=carriers[:1]) if scheduled else ()
        for (*cells, carrier), count, (time, delay, planned) in moments:
            if planned:
                is_odd = (_minutes(time) - _minutes(planned) - delay) % (24 * 60) > 0
                known[carrier] += count
                odd[carrier] += count * is_odd
                wrong += [tuple(cells)] * is_odd
        of_file = rows.counts.setdefault(end, (Counter(), Counter()))
        of_file[0].update(known)
        of_file[1].update(odd)
        is_most = known.total() >= _LEAST and 10 * odd.total() > 9 * known.total()
        if wrong and (is_most or _are_of_several((known, odd)) or _are_of_several(of_file)):
            return f"{rows.words(columns, min(wrong))}, which disagree {_IN_MANY}"
    return ""


def _are_of_several(counts: Counts) -> bool:
    """Return whether more than a quarter of the times of most of several carriers are odd."""
    known, odd = counts
    many = [4 * odd[carrier] > known[carrier] for carrier in known]
    are_many = known.total() >= _LEAST and 4 * odd.total() > known.total()
    return are_many and 2 * sum(many) > len(many) > 1


def _flying(rows: _Rows) -> str:
    """Return how flights arrive before they leave, or stay in the air for too long."""
    columns = ("DEP_TIME", "ARR_TIME", "AIR_TIME")
    known, early, long = 0, list[Cells](), list[Cells]()
    for cells, _, (left, arrived, flown) in _moments(rows, *columns):
        known += 1
        between = (_minutes(arrived) - _minutes(left)) % (24 * 60)
        early += [cells] * (12 * 60 < between < 23 * 60 and flown < 400)
        long += [cells] * (flown > _LONGEST)
    if known >= _LEAST and 10 * len(long) > known:
        words = rows.words(columns, min(long))
        return f"{words}, which may be a distance or a clock; write minutes in the air"
    if known >= _LEAST and 3 * len(early) > 2 * known:
        return f"{rows.words(columns, min(early))}: flights arrive before they leave {_IN_MANY}"
    return ""


def _schedules(rows: _Rows) -> str:
    """Return how departures, without scheduled ones, have the delays of the arrivals beside them.

    Most flights are scheduled at full five minutes. If a departure less its delay is not, but the
    departure less the delay at arrival is, then two titles are swapped.
    """
    if rows.reading.others.get("CRS_DEP_TIME"):
        return ""
    columns = ("DEP_TIME", "DEP_DELAY", "ARR_DELAY")
    known, swapped = 0, list[Cells]()
    for cells, _, (time, delay, late) in _moments(rows, *columns):
        known += 1
        left = _minutes(time)
        swapped += [cells] * ((left - delay) % 5 > 0 and (left - late) % 5 == 0)
    if known >= _LEAST and 2 * len(swapped) > known:
        words = rows.words(columns, min(swapped))
        return f"{words}, which may be delays of the other end; {_REMEDY}"
    return ""


def _moments(
    rows: _Rows, *columns: str | int, beside: Sequence[str] = ()
) -> Iterator[tuple[Cells, int, list[int]]]:
    """Yield the different rows of some columns that are all numbers, how many each is, and these.

    Nothing if one of the columns is missing. beside: columns that may have any cells.
    """
    if rows.has(*(column for column in columns if isinstance(column, str))):
        for cells, count in rows.count(*columns, *beside, most=_LOOKED_AT).items():
            with suppress(ValueError):
                numbers = [int(str(clock(cell))) for cell in cells[: len(columns)]]
                yield cells, count, numbers


def _minutes(hhmm: int) -> int:
    """Return the minutes from midnight to a time."""
    return hhmm // 100 * 60 + hhmm % 100
