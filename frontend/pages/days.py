"""`/days/YYYY-MM-DD`: one day, carrier by carrier."""

from datetime import date, timedelta

from flask import Blueprint, abort, render_template

from frontend.backend_client import Backend, Json
from frontend.coverage import Coverage, CoverageKeeper
from frontend.twins import Twin, twins

FIRST_YEAR, LAST_YEAR = 1900, 2199  # the ledger takes no other years
COLUMNS = (
    "OP_CARRIER_AIRLINE_ID",
    "carrier",
    "flights",
    "arrived",
    "cancelled",
    "no_arrival",
    "average_delay",
    "on_time_share_of_arrived",
    "on_time_share_of_scheduled",
)


def blueprint(backend: Backend, coverage: CoverageKeeper) -> Blueprint:
    """The days of the ledger behind `backend`."""
    routes = Blueprint("days", __name__)

    def carriers_on(day: str) -> tuple[list[Json], Json]:
        """The figures of each carrier with flights on `day`, most first; the last block counted."""
        known = coverage.now()
        interval = {"INITIAL_DATE": day, "FINAL_DATE": day}
        answer = backend.get("/average_delays", {**interval, "group_by": "carrier"})
        rows = [
            {**row, "carrier": known.carrier(row["OP_CARRIER_AIRLINE_ID"]).label}
            for row in answer["by_carrier"]
        ]
        return rows, answer["as_of"]

    @routes.get("/days/<day>")
    def one_day(day: str) -> str:
        """The page of a day: a table by carrier, and links to the days before and after."""
        when = _day(day)
        carriers, _ = carriers_on(day)
        beside = _beside(when, coverage.now())
        return render_template("day.html", day=day, carriers=carriers, **beside)

    @twins(routes, "/days/<day>")
    def twin(day: str) -> Twin:
        """The day's numbers by carrier."""
        _day(day)
        carriers, as_of = carriers_on(day)
        rows = [{column: row[column] for column in COLUMNS} for row in carriers]
        return Twin({"FL_DATE": day, "carriers": rows, "as_of": as_of}, COLUMNS, rows, as_of)

    return routes


def _day(text: str) -> date:
    """The day that an address names. Aborts with 404 if it names none."""
    try:
        when = date.fromisoformat(text)
    except ValueError:
        when = date.min
    if when.isoformat() != text or not FIRST_YEAR <= when.year <= LAST_YEAR:
        abort(404, f"{text} is not a day; write it as in /days/2013-01-05")
    return when


def _beside(when: date, known: Coverage) -> dict[str, str | None]:
    """The day before and the day after, each None beyond what the ledger covers."""
    beside = {"before": str(when - timedelta(1)), "after": str(when + timedelta(1))}
    return {name: day if known.covers(day) else None for name, day in beside.items()}
