"""Days are read as they are meant, or not at all."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.day_orders import DAY_FIRST, MONTH_FIRST, YEAR_FIRST
from backend.sources.dates import Evidence, iso_day, order_of, swapped
from backend.sources.kinds import UnknownKindError
from backend.sources.source import Unusable
from tests.cases import each_of


def days(*written: object) -> list[Evidence]:
    return [(day, None, None, None) for day in written]


@each_of(
    ("written", "order", "day"),
    [
        ("2019-03-04", None, "2019-03-04"),
        ("2019-3-4", DAY_FIRST, "2019-03-04"),
        ("2019/03/04", MONTH_FIRST, "2019-03-04"),
        ("20190304", None, "2019-03-04"),
        (20190304, None, "2019-03-04"),
        *((1551657600 * 1000**unit, None, "2019-03-04") for unit in range(4)),
        (946684800000, None, "2000-01-01"),
        ("1551657600000000", None, "2019-03-04"),
        ("4-Mar-2019", None, "2019-03-04"),
        ("04MAR2019", None, "2019-03-04"),
        ("04mar2019:00:00:00", None, "2019-03-04"),
        ("4 March 2019", None, "2019-03-04"),
        ("04/Mar/2019", None, "2019-03-04"),
        ("4.Mar.2019", None, "2019-03-04"),
        ("Mar 4, 2019", None, "2019-03-04"),
        ("Mar  4 2019 12:00AM", None, "2019-03-04"),
        ("Monday, March 4, 2019", None, "2019-03-04"),
        ("Mon, 04 Mar 2019 00:00:00 GMT", None, "2019-03-04"),
        ("Mon Mar 04 2019 00:00:00 GMT-0500 (Eastern Standard Time)", None, "2019-03-04"),
        ("4-Sept-2019", None, "2019-09-04"),
        ("2019. 03. 04.", None, "2019-03-04"),
        ("4. 3. 2019", DAY_FIRST, "2019-03-04"),
        ("2019-03-04T00:00:00.000+0000", None, "2019-03-04"),
        ("2019-03-04T00:00:00-05:00", None, "2019-03-04"),
        ("3/4/2019 12:00 AM", DAY_FIRST, "2019-04-03"),
        ("2019-03-04 00:00:00", None, "2019-03-04"),
        ("2019-03-04T00:00:00.000Z", None, "2019-03-04"),
        ("2019-03-04 00:00:00 UTC", None, "2019-03-04"),
        ("2019-03-04 00:00:00-05", None, "2019-03-04"),
        ("2019-03-04T00:00Z", None, "2019-03-04"),
        ("3/4/2019 12:00:00 AM", DAY_FIRST, "2019-04-03"),
        ("2019-03-04 12:00:00 a.m.", None, "2019-03-04"),
        ("4/3/2019 12:00:00 a. m.", DAY_FIRST, "2019-03-04"),
        ("3/4/2019, 12:00:00\u202fAM", MONTH_FIRST, "2019-03-04"),
        ("04/03/2019, 00:00:00", DAY_FIRST, "2019-03-04"),
        ("3/4/2019", MONTH_FIRST, "2019-03-04"),
        ("3/4/2019", DAY_FIRST, "2019-04-03"),
        ("04-03-2019", DAY_FIRST, "2019-03-04"),
        ("4.3.2019", DAY_FIRST, "2019-03-04"),
        ("13/04/2019", None, "2019-04-13"),
        ("03/03/2019", None, "2019-03-03"),
    ],
)
def test_a_day_in_every_form(written: object, order: str | None, day: str) -> None:
    assert iso_day(written, order) == day


@each_of(
    ("written", "order", "reason"),
    [
        ("03/04/2019", None, "may be 4 March 2019 or 3 April 2019; add --dates month-first or"),
        ("13/04/2019", MONTH_FIRST, "is not a valid month, day, year"),
        ("13/4/2019 12:00:00 AM", MONTH_FIRST, "is not a valid month, day, year"),
        ("3/4-2019", DAY_FIRST, ""),
        ("3/4/19", MONTH_FIRST, ""),
        ("soon", None, ""),
        ("2019-03-04 08:00", None, ""),
        ("2019-03-04T05:00:00Z", None, ""),
        ("3/4/2019 12:00 AM", None, "may be 4 March 2019 or 3 April 2019"),
        ("04-MAR-19", None, ""),
        ("31-Feb-2019", None, ""),
        ("4-Mai-2019", None, ""),
        ("Tuesday, March 4, 2019", None, ""),  # it was a Monday
        (1551657601, None, ""),
        (1551657600001, None, ""),
        (43528, None, "is a number that counts from an unknown day"),
        ("43528.0", None, "is a number that counts from an unknown day"),
        (
            "1867276800",
            None,
            "is a number that counts from an unknown day",
        ),  # 2019 in SAS, 2029 elsewhere
        ("1867276800000", None, "is a number that counts from an unknown day"),  # the same in Stata
        ("20191304", None, ""),
        ("13/04/2019", YEAR_FIRST, "is not a valid year, month, day"),
        (True, None, ""),
        ([2019], None, ""),
    ],
)
def test_what_is_no_day_is_refused(written: object, order: str | None, reason: str) -> None:
    refused = iso_day(written, order)
    assert isinstance(refused, Unusable)
    assert refused.reason.startswith(reason)


@pytest.mark.parametrize(
    ("evidence", "order"),
    [
        (("02/03/2019", None, None, "6"), DAY_FIRST),  # 2 March 2019 was a Saturday
        (("02/03/2019", None, None, 7), MONTH_FIRST),  # 3 February a Sunday
        (("02/03/2019", "3", None, None), DAY_FIRST),
        (("02/03/2019", "2.0", None, ""), MONTH_FIRST),
        (("02/03/2019", "", "02", "6"), DAY_FIRST),
    ],
)
def test_another_column_decides(evidence: Evidence, order: str) -> None:
    assert order_of([[evidence]]) == order
    assert order_of([days("04/05/2019"), [evidence]]) == order


def test_weekdays_that_agree_by_chance_or_not_at_all_decide_nothing() -> None:
    by_chance = ("01/10/2019", None, None, "2")  # 1 October, and 10 January was a Thursday
    both = ("05/04/2019", None, None, None)
    neither = ("02/03/2019", None, None, "1")
    assert order_of([[neither, both], [by_chance]]) == DAY_FIRST
    assert order_of([[neither, by_chance]]) == DAY_FIRST
    others = [neither, ("05/03/2019", None, None, "7")]
    with pytest.raises(UnknownKindError, match="a column of month, day or weekday contradicts"):
        order_of([[*others, by_chance]])
    with pytest.raises(UnknownKindError, match="has days such as '05/04/2019', which may be"):
        order_of([[neither, both], days("soon")])


def test_two_orders_in_one_file_are_refused() -> None:
    with pytest.raises(UnknownKindError, match="has days in two orders, '13/02/2019' "):
        order_of([days("13/02/2019", "02/13/2019")])


def test_days_that_a_spreadsheet_may_have_swapped_are_refused() -> None:
    """It takes 04/03/2019 for 3 April where it can, and leaves 13/03/2019 as it is."""
    changed, left = days("2019-04-03", "2019-05-03"), days("13/03/2019", "14/03/2019")
    assert "may have swapped days and months" in swapped(changed + left)
    a_monday: Evidence = ("2019-03-04", None, None, "1")
    for proof in (days("2019-03-20"), days("04/03/2019"), [a_monday]):
        assert not swapped(changed + left + proof)
    assert not swapped(changed), "all have the year first, whatever --dates says"


def test_days_that_read_the_same_leave_no_doubt() -> None:
    assert order_of([days("03/03/2019")]) is None


FORMS = {
    DAY_FIRST: ("%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y"),
    MONTH_FIRST: ("%m/%d/%Y", "%m/%d/%Y 12:00:00 AM", "%m-%d-%Y"),
    YEAR_FIRST: ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d", "%Y-%m-%dT00:00:00"),
}
FORM_AND_ORDER = [(form, order) for order, forms in FORMS.items() for form in forms]


@given(
    st.lists(st.dates(date(1987, 10, 1), date(2030, 1, 1)), min_size=1),
    st.sampled_from(FORM_AND_ORDER),
    st.booleans(),
)
def test_a_column_is_read_as_it_was_written_or_not_at_all(
    column: list[date], form_and_order: tuple[str, str], has_weekday: bool
) -> None:
    form, _ = form_and_order
    written = [day.strftime(form) for day in column]
    weekdays = [str(day.isoweekday()) if has_weekday else None for day in column]
    rows: list[Evidence] = [(w, None, None, d) for w, d in zip(written, weekdays, strict=True)]
    try:
        order = order_of([rows])
    except UnknownKindError:
        assert all(day.day <= 12 for day in column)
        return
    assert [iso_day(text, order) for text in written] == [day.isoformat() for day in column]
