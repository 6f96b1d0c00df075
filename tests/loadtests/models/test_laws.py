"""The demands of stations."""

import pytest

from loadtests.models.laws import service_demand_s


def test_a_demand_is_of_all_visits_and_none_is_below_0() -> None:
    assert service_demand_s(4, 0.5) == 2
    for visits, time_s, named in ((-1, 1, "visit_ratio"), (1, -1, "service_time_s")):
        with pytest.raises(ValueError, match=named):
            service_demand_s(visits, time_s)
