"""The orders in which people write day, month and year, and how they are named in words."""

WRITTEN = {
    "day-first": "day, month, year",
    "month-first": "month, day, year",
    "year-first": "year, month, day",
}
ORDERS = DAY_FIRST, MONTH_FIRST, YEAR_FIRST = tuple(WRITTEN)
