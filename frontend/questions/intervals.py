"""Intervals of days that are offered as links. All of them include both of their days."""

from datetime import date, timedelta

from frontend.charts.time_axis import slots
from frontend.coverage import Coverage

MOST_MONTHS_OFFERED = 14
LAST_DAYS = 7

_DAY = timedelta(days=1)


def offered(known: Coverage, looked_at: str | None = None) -> list[tuple[str, str, str]]:
    """Return the name, first and last day of intervals: all days, the last ones, months.

    Months and years without flights are left out. Of many months, years, too, and of these months
    those of one year. looked_at: an ISO date in it; by default the last day.
    """
    if not known.first_date or not known.last_date:
        return []
    first, last = date.fromisoformat(known.first_date), date.fromisoformat(known.last_date)
    intervals = [("All days", first, last)]
    if (last - first).days >= LAST_DAYS:
        intervals.append((f"Last {LAST_DAYS} days", last - (LAST_DAYS - 1) * _DAY, last))
    has = known.months()
    there = [s for s in slots(first, last, "month") if not has or str(s.first)[:7] in has]
    months = [(f"{s.first:%B %Y}", s.first, s.last) for s in there]
    if len(months) > MOST_MONTHS_OFFERED:
        years = {s.first.year for s in there}
        in_years = (s for s in slots(first, last, "year") if s.first.year in years)
        intervals += [(str(s.first.year), s.first, s.last) for s in in_years]
        year = (looked_at or known.last_date)[:4]
        months = [month for month in months if month[0].endswith(year)]
    intervals += months
    return [(name, start.isoformat(), stop.isoformat()) for name, start, stop in intervals]
