"""Whatever flights are written as a file of any kind, the same flights are read again."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from backend.base.day_orders import DAY_FIRST
from backend.base.errors import BadRow, InvalidInput
from backend.chain.fields import FIELD_NAMES, Value
from backend.questions.carriers import CARRIER as CARRIER_BY_NUMBER
from backend.questions.carriers import Carrier
from backend.sources.airports import airport_numbers, airport_of
from backend.sources.cells import STATES
from backend.sources.flight_file import FlightFile
from backend.sources.kinds import (
    CARRIER,
    DAY,
    DERIVED,
    DEST_STATE,
    DIVERTED,
    KINDS,
    MAY_BE_EMPTY,
    MONTH,
    ORIGIN_STATE,
    Kind,
    UnknownKindError,
    reading_of,
    words,
)
from tests.sources.samples import flights_of, read

Named = dict[str, Value]
_CODES = ("ATL", "CVG", "GUM", "ISP", "MFE", "SJU", "STT", "SWF", "XNA", "YUM")
_ABBREVIATIONS = {name: abbreviation for abbreviation, name in STATES.items()}


@dataclass(frozen=True)
class Style:
    """How files of a kind write their cells."""

    empty: str = ""
    minutes: str = "{}"
    clock: str = "{:04d}"
    day: str = "%Y-%m-%d"
    flags: tuple[str, str] = ("0", "1")
    separator: str = ","

    def cell(self, meaning: str, flight: Named) -> str:
        """Return what stands under a title of this meaning."""
        day = date.fromisoformat(str(flight["FL_DATE"]))
        value = _meanings(flight, day)[meaning]
        if value is None:
            return self.empty
        if meaning == "FL_DATE":
            return day.strftime(self.day)
        if meaning in {"CANCELLED", DIVERTED}:
            return self.flags[int(value)]
        if meaning in {"DEP_TIME", "ARR_TIME"}:
            hours, minutes = divmod(int(value), 100)
            return self.clock.format(int(value), hours, minutes)
        is_in_minutes = meaning in {"DEP_DELAY", "ARR_DELAY", "AIR_TIME"}
        return self.minutes.format(value) if is_in_minutes else str(value)


def _meanings(flight: Named, day: date) -> dict[str, Value]:
    codes = {carrier.number: carrier.code for carrier in CARRIER_BY_NUMBER.values()}
    return flight | {
        MONTH: day.month,
        DAY: day.day,
        CARRIER: codes[int(flight["OP_CARRIER_AIRLINE_ID"] or 0)],
        ORIGIN_STATE: _ABBREVIATIONS[str(flight["ORIGIN_STATE_NM"])],
        DEST_STATE: _ABBREVIATIONS[str(flight["DEST_STATE_NM"])],
        DIVERTED: int(flight["CANCELLED"] == 0 and flight["ARR_DELAY"] is None),
    }


_R = Style(empty="NA", clock="{}")
_PANDAS = Style(minutes="{}.0", clock="{}.0")
STYLES: dict[str, Style] = {
    "the 19 fields": Style("\\N", "{},00", "{1}:{2:02d}", "%d.%m.%Y", separator=";"),
    "nycflights13 or nycflights23": _R,
    "hflights": _R,
    "Data Expo 2009 (1987 to 2008)": _R,
    "flights_sample_3m (2019 to 2023)": Style(minutes="{}.0", clock="{}.0", day="%d-%m-%Y"),
    "2015 Flight Delays": _PANDAS,
    "Airline Delay and Cancellation Data (2009 to 2018)": _PANDAS,
    "Combined_Flights (2018 to 2022), month of the marketing carriers": Style(
        "nan", "{}.0", "{}.0", flags=("False", "True")
    ),
    "fields picked since 2018": Style(minutes="{}.00", day="%-m/%-d/%Y 12:00:00 AM"),
}


def _place(code: str) -> tuple[Value, ...]:
    """Number, code, city and state of an airport."""
    airport = airport_of(code)
    assert airport is not None
    return int(airport_numbers()[code]), *airport


@st.composite
def flights(draw: st.DrawFn) -> Named:
    """A flight that arrived, was diverted, or was cancelled before or after it left the gate."""
    day = draw(st.dates(date(1987, 10, 1), date(2023, 12, 31)))
    carrier: Carrier = draw(
        st.sampled_from([c for c in CARRIER_BY_NUMBER.values() if c.first <= day.year <= c.last])
    )
    ends = draw(st.lists(st.sampled_from(_CODES), min_size=2, max_size=2, unique=True))
    fate = draw(st.sampled_from(("arrived", "diverted", "cancelled", "left and cancelled")))
    clocks = st.sampled_from(("0001", "0517", "0811", "1436", "2359", "2400"))
    values: list[Value] = [day.year, day.isoweekday(), day.isoformat(), carrier.number]
    values += [draw(st.integers(1, 9999)), *_place(ends[0]), *_place(ends[1])]
    values += [None, None] if fate == "cancelled" else [draw(clocks), draw(st.integers(-99, 2000))]
    values += [draw(clocks), draw(st.integers(-99, 2000))] if fate == "arrived" else [None, None]
    values += [int("cancelled" in fate), draw(st.integers(1, 900)) if fate == "arrived" else None]
    return dict(zip(FIELD_NAMES, values, strict=True))


def _written(
    path: Path, kind: Kind, pairs: Sequence[tuple[str, str]], rows: list[Named], style: Style
) -> Path:
    others = [mark for mark in words(kind.marks) if mark not in {title for _, title in kind.pairs}]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=style.separator)
        writer.writerow([*(title for _, title in pairs), *others])
        for row in rows:
            cells = [style.cell(meaning, row) for meaning, _ in pairs]
            writer.writerow([*cells, *("7" for _ in others)])
    return path


def _as_stored(kind: Kind, meanings: set[str], row: Named) -> tuple[Value, ...]:
    """The flight as far as a file of this kind with these columns can say it."""
    known = dict(row)
    if kind.is_cancelled_without_departure and row["DEP_TIME"] is not None:
        known["CANCELLED"] = 0
    known |= dict.fromkeys(set(MAY_BE_EMPTY) - meanings)
    return tuple(known.values())


@settings(max_examples=max(10, settings().max_examples // 2))
@given(
    rows=st.lists(flights(), min_size=1, max_size=12),
    left_out=st.sets(st.sampled_from((*DERIVED, *MAY_BE_EMPTY, CARRIER, ORIGIN_STATE)), max_size=6),
)
def test_the_same_flights_come_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Named], left_out: set[str]
) -> None:
    for kind in KINDS:
        pairs = [(meaning, title) for meaning, title in kind.pairs if meaning not in left_out]
        try:
            reading_of(tuple(title for _, title in pairs))
        except UnknownKindError:
            pairs = kind.pairs  # which are always enough
        style = STYLES.get(kind.name, Style())
        path = _written(tmp_path_factory.getbasetemp() / "flights.csv", kind, pairs, rows, style)
        is_day_first = style.day.startswith("%d")
        source = FlightFile(path, dates=DAY_FIRST if is_day_first else "")
        stored = [_as_stored(kind, {meaning for meaning, _ in pairs}, row) for row in rows]
        assert flights_of(source) == stored, kind.name


FORMS = st.builds(
    Style,
    empty=st.sampled_from(("", "NA", "nan", "\\N", " ", "0", "-9999", "?")),
    minutes=st.sampled_from(("{}", "{}.0", "{}.00", "{}.000", "{},00", "{:+}", "{:,}")),
    clock=st.sampled_from(
        (
            "{:04d}",
            "{}",
            "{}.0",
            "{}.00",
            "{},0",
            "{1}:{2:02d}",
            "{1:02d}:{2:02d}:00",
            "{1}.{2:02d}",
        )
    ),
    day=st.sampled_from(("%Y-%m-%d", "%Y%m%d", "%-m/%-d/%Y", "%d.%m.%Y", "%-m/%-d/%Y 12:00:00 AM")),
    flags=st.sampled_from((("0", "1"), ("0.00", "1.00"), ("False", "True"), ("n", "y"))),
    separator=st.sampled_from(",;\t|"),
)


@given(kind=st.sampled_from(KINDS), style=FORMS, rows=st.lists(flights(), min_size=1, max_size=9))
def test_flights_are_read_as_they_are_written_or_not_at_all(
    tmp_path_factory: pytest.TempPathFactory, kind: Kind, style: Style, rows: list[Named]
) -> None:
    """Nor are those beside a bad row, if it is left out."""
    assume(style.empty != "0" or not kind.is_of_ledger)  # what the ledger has, is meant
    rows = [row | {"OP_CARRIER_FL_NUM": number} for number, row in enumerate(rows, 1)]
    path = _written(tmp_path_factory.getbasetemp() / "forms.csv", kind, kind.pairs, rows, style)
    meanings = {meaning for meaning, _ in kind.pairs}
    expected = [_as_stored(kind, meanings, row) for row in rows]
    bad, good = list[BadRow](), list[tuple[Value, ...]]()
    try:
        good, bad = read(FlightFile(path))
    except InvalidInput as problem:
        assert len(str(problem).splitlines()) == 1
    else:
        assert len(good) + len(bad) == len(rows)
    assert set(good) <= set(expected)
