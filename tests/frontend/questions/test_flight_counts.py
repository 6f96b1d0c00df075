"""What the page of a route says of its days."""

import pytest

from frontend.backend_client import Json
from frontend.coverage import Airport, Coverage
from frontend.question import Question
from frontend.questions.flight_counts import CountsReport

KNOWN = Coverage(
    9,
    "2013-01-01",
    "2013-01-04",
    (),
    (Airport("ORD", "Chicago, IL", "Illinois", 5), Airport("ATL", "Atlanta, GA", "Georgia", 4)),
)


def answer(**by_day: int) -> Json:
    """Counts by the day of January 2013."""
    return {
        "query": {"INITIAL_DATE": "2013-01-01", "FINAL_DATE": "2013-01-04"},
        "count": sum(by_day.values()),
        "by_day": [
            {"FL_DATE": f"2013-01-0{day.removeprefix('on_')}", "count": count}
            for day, count in by_day.items()
        ],
        "by_carrier": [],
    }


@pytest.mark.parametrize(
    ("found", "busiest"),
    [
        (answer(on_1=1, on_3=4, on_4=2), ("Thu 3 Jan 2013", 4)),
        (answer(on_2=3, on_4=3), ("Wed 2 Jan 2013", 3)),
    ],
)
def test_the_busiest_day_is_the_first_of_several(found: Json, busiest: tuple[str, int]) -> None:
    assert CountsReport(KNOWN, Question("flight_counter", {}), found).busiest == busiest
