"""Closed networks for tests, drawn by hypothesis."""

from hypothesis import strategies as st

from loadtests.models.laws import DELAY, Station

demands = st.integers(1, 400).map(lambda hundredths: hundredths / 100)
servers = st.sampled_from([1, 1, 2, 3, 5, DELAY])


@st.composite
def networks(draw: st.DrawFn, *, only_single: bool = False) -> tuple[list[Station], float]:
    """Stations, one with a queue at least, and a think time."""
    size = draw(st.integers(1, 4))
    kinds = st.sampled_from([1, 1, DELAY]) if only_single else servers
    stations = [Station(f"s{at}", draw(demands), draw(kinds)) for at in range(size)]
    stations.append(Station("queue", draw(demands), 1 if only_single else draw(st.integers(1, 3))))
    return stations, draw(st.integers(0, 500)) / 100
