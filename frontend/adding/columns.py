"""The columns of a file of flights, as one table, and sample files that show them.

The names are those of the Bureau of Transportation Statistics (BTS) and of the ledger.
"""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ALWAYS = "Always"
UNLESS_CANCELLED = "Unless it was cancelled"
IF_ARRIVED = "If it arrived"
NO = "No"
IN_JSON = "In NDJSON; in CSV the column may be left out"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. needed: when there must be a value. examples: of the samples; None is empty."""

    name: str
    meaning: str
    needed: str
    examples: tuple[int | str | None, int | str | None, int | str | None]


COLUMNS = (
    Column("YEAR", "Year of FL_DATE", IN_JSON, (2013, 2013, 2013)),
    Column("DAY_OF_WEEK", "Weekday of FL_DATE; 1 is Monday", IN_JSON, (2, 2, 3)),
    Column("FL_DATE", "Day, YYYY-MM-DD", ALWAYS, ("2013-01-01", "2013-01-01", "2013-01-02")),
    Column("OP_CARRIER_AIRLINE_ID", "DOT number of the carrier", ALWAYS, (19977, 20398, 20366)),
    Column("OP_CARRIER_FL_NUM", "Flight number, without letters", ALWAYS, (1545, 4424, 4308)),
    Column("ORIGIN_AIRPORT_ID", "DOT number of the airport it left", NO, (11618, None, 11618)),
    Column("ORIGIN", "Code of the airport it left", ALWAYS, ("EWR", "EWR", "EWR")),
    Column("ORIGIN_CITY_NAME", "Its city", ALWAYS, ("Newark, NJ", "Newark, NJ", "Newark, NJ")),
    Column("ORIGIN_STATE_NM", "Its state", ALWAYS, ("New Jersey", "New Jersey", "New Jersey")),
    Column("DEST_AIRPORT_ID", "DOT number of the airport it flew to", NO, (12266, None, 15412)),
    Column("DEST", "Code of the airport it flew to", ALWAYS, ("IAH", "RDU", "TYS")),
    Column(
        "DEST_CITY_NAME", "Its city", ALWAYS, ("Houston, TX", "Raleigh/Durham, NC", "Knoxville, TN")
    ),
    Column("DEST_STATE_NM", "Its state", ALWAYS, ("Texas", "North Carolina", "Tennessee")),
    Column("DEP_TIME", "Departure, local, hhmm", UNLESS_CANCELLED, ("0517", None, "1621")),
    Column(
        "DEP_DELAY", "Minutes late at departure; negative if early", UNLESS_CANCELLED, (2, None, 6)
    ),
    Column("ARR_TIME", "Arrival, local, hhmm", IF_ARRIVED, ("0830", None, None)),
    Column("ARR_DELAY", "Minutes late at arrival; negative if early", IF_ARRIVED, (11, None, None)),
    Column("CANCELLED", "1 if it was cancelled, else 0", ALWAYS, (0, 1, 0)),
    Column("AIR_TIME", "Minutes in the air", IF_ARRIVED, (227, None, None)),
)
"""The three samples: one arrived, one was cancelled, and one was diverted."""


def samples() -> list[Mapping[str, Any]]:
    return [
        {column.name: column.examples[number] for column in COLUMNS}
        for number in range(len(COLUMNS[0].examples))
    ]


def sample_csv() -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [column.name for column in COLUMNS])
    writer.writeheader()
    writer.writerows(samples())
    return text.getvalue()


def sample_ndjson() -> str:
    return "".join(json.dumps(flight) + "\n" for flight in samples())
