"""Names the months that the Bureau of Transportation Statistics publishes, and their files.

bts:2008-01             a month
bts:2008-01..2008-12    all months from the first to the last
bts:latest              the newest month that is published; also at the end of a range
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from backend.base.errors import InvalidSetting

PREFIX = "bts:"
LATEST = "latest"
MAGIC = b"PK\x03\x04"  # with which a zip archive begins
PATTERN = r"([0-9]{4})-(0[1-9]|1[0-2])"


class Month(NamedTuple):
    """A month of the calendar."""

    year: int
    month: int

    def __str__(self) -> str:
        return f"{self.year}-{self.month:02}"

    @property
    def file_name(self) -> str:
        """The name of its file on the server."""
        name = "On_Time_Reporting_Carrier_On_Time_Performance_1987_present"
        return f"{name}_{self.year}_{self.month}.zip"

    @property
    def first_day(self) -> date:
        return date(self.year, self.month, 1)

    @property
    def last_day(self) -> date:
        return date.fromordinal(self.moved(1).first_day.toordinal() - 1)

    def moved(self, months: int) -> "Month":
        """Return the month that is so many months later."""
        year, month = divmod(12 * self.year + self.month - 1 + months, 12)
        return Month(year, month + 1)


FIRST_MONTH = Month(1987, 10)


@dataclass(frozen=True, slots=True)
class MonthRange:
    """The months from `first` to `last`; None: the newest that is published."""

    first: Month | None
    last: Month | None

    def months(self, newest: Month | None = None) -> Iterator[Month]:
        """Yield them in order. newest: the one that None stands for."""
        month, last = self.first or newest, self.last or newest
        assert month is not None
        assert last is not None
        while month <= last:
            yield month
            month = month.moved(1)


def months_in(specification: str) -> MonthRange:
    """Read `bts:MONTH`, `bts:MONTH..MONTH` or `bts:latest`. Raises InvalidSetting."""
    first, dots, last = specification.removeprefix(PREFIX).partition("..")
    months = MonthRange(_month(first), _month(last if dots else first))
    if months.last and (months.first is None or months.first > months.last):
        raise InvalidSetting("months", specification, "the first month must not be after the last")
    return months


def _month(text: str) -> Month | None:
    form = "must be a month such as 2008-01, a range such as 2008-01..2008-12, or latest"
    return None if text == LATEST else month_in(text, form)


def month_in(text: str, form: str = "must be a month such as 2008-01") -> Month:
    """Read a month, such as 2008-01. form: how to write what is asked. Raises InvalidSetting."""
    match = re.fullmatch(PATTERN, text)
    if not match:
        raise InvalidSetting("months", text, form)
    month = Month(int(match[1]), int(match[2]))
    if month < FIRST_MONTH:
        raise InvalidSetting("months", text, f"is before {FIRST_MONTH}, the first published month")
    return month
