"""`validated` says of every row what `flight_of` says, only faster."""

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import BadRow, InvalidFlight
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import flight_of, year_and_weekday
from backend.sources.source import RawRows, Unusable, Validator, validated
from tests.cases import each_of
from tests.sources.samples import (
    CANCELLED,
    DIVERTED,
    FLOWN,
    PARSED_FLOWN,
    ROWS,
    Rows,
    read,
    rows_of,
)


def test_a_bad_row_is_named_with_its_place_and_the_source_is_closed() -> None:
    source = Rows([FLOWN], [FLOWN, FLOWN | {"ORIGIN": ""}, FLOWN])
    with pytest.raises(BadRow, match="rows, row 3: ORIGIN '': is missing; this field is required"):
        list(validated(source))
    assert source.closed


def test_batches_before_a_bad_one_are_delivered() -> None:
    batches = validated(Rows([FLOWN], [FLOWN | {"YEAR": "x"}]))
    assert rows_of([next(batches)]) == [PARSED_FLOWN]
    with pytest.raises(BadRow):
        next(batches)


def test_bad_rows_can_be_left_out_and_are_told_in_order() -> None:
    mixed = [CANCELLED, FLOWN | {"YEAR": "2009"}, FLOWN, FLOWN | {"ORIGIN": ""}]
    flights, bad = read(Rows(mixed, [DIVERTED]))
    assert flights == [flight_of(row) for row in (CANCELLED, FLOWN, DIVERTED)]
    assert [(p.place, p.field) for p in bad] == [("rows, row 2", "YEAR"), ("rows, row 4", "ORIGIN")]


@each_of("bad", [{"DAY_OF_WEEK": "7"}, {"CANCELLED": "1"}, {"YEAR": "x"}])
def test_bad_rows_leave_nothing_that_only_a_garbage_collection_removes(
    bad: dict[str, str],
) -> None:
    batches = list(Rows([FLOWN, FLOWN | bad]).rows())
    gc.collect()
    gc.disable()  # as in an import, whose memory would grow with each batch
    try:
        for batch in batches:
            Validator().judge(batch)
        assert gc.collect() == 0
    finally:
        gc.enable()


@each_of("wrong", range(1, 31))
def test_every_day_of_a_batch_is_held_against_the_calendar(wrong: int) -> None:
    days = [f"2008-01-{day:02d}" for day in range(1, 31)]
    batch = [FLOWN | {"FL_DATE": day, "DAY_OF_WEEK": str(year_and_weekday(day)[1])} for day in days]
    batch[wrong - 1] |= {"YEAR": "2007"}
    with pytest.raises(BadRow, match=f"row {wrong}: YEAR 2007: disagrees with FL_DATE 2008-01-"):
        list(validated(Rows(batch)))


def test_faults_of_the_source_are_told_between_the_others() -> None:
    class Faulty(Rows):
        def rows(self) -> Any:
            for raw in super().rows():
                fault = BadRow(f"{raw.place} 7", "line", "a,b", "has 2 cells", 7)
                yield RawRows(raw.columns, [6, 8], raw.place, [fault])

    flights, bad = read(Faulty([FLOWN | {"YEAR": "x"}, FLOWN | {"ORIGIN": "x"}]))
    assert flights == []
    assert [problem.field for problem in bad] == ["YEAR", "line", "ORIGIN"]
    assert str(bad[1]) == "rows, row 7: line 'a,b': has 2 cells"


def test_source_is_closed_when_the_reader_stops_early() -> None:
    source = Rows([FLOWN], [FLOWN])
    for _ in validated(source):
        break
    assert source.closed


ODD: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.integers(-20_000, 120_000),
    st.floats(allow_nan=False),
    st.sampled_from(["", " ", "0", "1", "1.00", "-11.00", "+7", "754", "2400", "0860", "é", "x\0"]),
    st.sampled_from(["2008-01-03", "1/3/2008", "2008-13-01", "12:00", "iad", " IAD ", "\ud800"]),
    st.text(max_size=5),
)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, object]:
    row: dict[str, object] = dict(draw(st.sampled_from(ROWS)))
    for name in draw(st.lists(st.sampled_from(FIELD_NAMES), max_size=2)):
        row[name] = draw(ODD)
    return row


@given(st.lists(st.lists(rows(), max_size=6), max_size=4))
def test_accepts_and_rejects_exactly_what_flight_of_does(
    batches: list[list[dict[str, object]]],
) -> None:
    good: list[tuple[Value, ...]] = []
    reasons: list[tuple[str, str]] = []
    for row in (row for batch in batches for row in batch):
        try:
            good.append(flight_of(row))
        except InvalidFlight as problem:
            reasons.append((problem.field, problem.reason))
    got, bad = read(Rows(*batches))
    assert got == good
    assert [list(map(type, row)) for row in got] == [list(map(type, row)) for row in good]
    assert [(problem.field, problem.reason) for problem in bad] == reasons


def test_unusable_value_is_refused_and_shown() -> None:
    with pytest.raises(BadRow, match="DEP_DELAY True: must be a whole number"):
        list(validated(Rows([FLOWN | {"DEP_DELAY": "1"}, FLOWN | {"DEP_DELAY": Unusable(True)}])))
