"""Visit ratios, demands and bottleneck, against the study's network and random routings."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.models.laws import Routing, demands_s, visit_ratios

from .study import STUDY, same

STUDY_ROUTING: Routing = {
    "terminal": {"cpu": 1},
    "cpu": {
        "terminal": Fraction(1, 523),
        "cpu": Fraction(495, 523),
        "disk": Fraction(27, 523),
    },
    "disk": {"delay": 1},
    "delay": {"cpu": Fraction(1, 19), "disk": Fraction(18, 19)},
}


def test_the_studys_visit_ratios_are_exact() -> None:
    found = visit_ratios(STUDY_ROUTING, "terminal")
    assert found == {"terminal": 1, "cpu": 523, "disk": 513, "delay": 513}
    assert all(isinstance(visits, Fraction) for visits in found.values())


def test_the_studys_demands_and_bottleneck() -> None:
    network = STUDY["network"]
    times_s = dict(zip(network["stations"], network["service_times_s"], strict=True))
    found = demands_s(visit_ratios(STUDY_ROUTING, "terminal"), times_s)
    assert list(found) == ["cpu", "disk", "delay"]
    assert all(same(*pair) for pair in zip(found.values(), network["demands_s"], strict=True))
    assert same(sum(found.values()), network["total_demand_s"])
    assert max(found, key=lambda name: found[name]) == "disk"


@st.composite
def routings(draw: st.DrawFn) -> dict[str, dict[str, Fraction]]:
    """Stations 0, 1 …, each with a way to 0."""
    size = draw(st.integers(1, 6))
    routing = {}
    for station in range(size):
        weights = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
        weights[0] += 1
        total = sum(weights)
        routing[str(station)] = {str(to): Fraction(w, total) for to, w in enumerate(weights)}
    return routing


@given(routings())
def test_visit_ratios_satisfy_the_traffic_equations(
    routing: dict[str, dict[str, Fraction]],
) -> None:
    found = visit_ratios(routing, "0")
    assert found["0"] == 1
    for station in routing:
        assert found[station] == sum(found[j] * routing[j][station] for j in routing)
        assert found[station] >= 0


@pytest.mark.parametrize(
    ("routing", "message"),
    [
        ({"b": {"b": 1}}, "the reference station 'a' is not in the routing"),
        ({"a": {"b": 1}}, "station 'a' leads to 'b', which is not a station"),
        ({"a": {"a": Fraction(1, 2)}}, "from station 'a' add up to 1/2, not to 1"),
        ({"a": {"a": 2, "b": -1}, "b": {"a": 1}}, "the probability from 'a' to 'a' is 2"),
        ({"a": {"b": 1}, "b": {"b": 1}}, "no path leads from station 'b' back to 'a'"),
        ({"a": {}}, "from station 'a' add up to 0, not to 1"),
    ],
)
def test_a_routing_without_an_answer_is_refused(routing: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        visit_ratios(routing, "a")


def test_a_station_that_nobody_visits_has_no_visits() -> None:
    assert visit_ratios({"a": {"a": 1}, "b": {"a": 1}}, "a") == {"a": 1, "b": 0}


def test_a_service_time_without_visits_is_refused() -> None:
    with pytest.raises(ValueError, match="'disk' has a service time and no visit ratio"):
        demands_s({"cpu": 1}, {"disk": 2.0})
