"""The calculator's closed network: the study's table, laws, limits."""

import re
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.app import create_app
from frontend.errors import Refused
from frontend.lab import closed_network_form, network_charts
from frontend.lab.closed_network_form import (
    MOST_STATIONS,
    STUDIED,
    Network,
    Visited,
    answer,
    answer_to,
    read,
    without_blanks,
)
from frontend.lab.curves import STUDY_CURVE
from frontend.lab.presets import NETWORKS
from frontend.settings import Settings
from loadtests.lab.published import NETWORK, NETWORK_THINK_S
from loadtests.models.laws import DELAY
from tests.frontend.pages.reading import text

STUDY_FORM = dict(NETWORKS[0].values)
ONE = {
    "name_1": "CPU",
    "visits_1": "1",
    "service_time_s_1": "0.5",
    "customers": "3",
    "think_time_s": "0",
}


def stations(count: int, **of_each: str) -> dict[str, str]:
    """ONE with so many stations. of_each: other fields, in which {} is the number of a station."""
    fields = {"name": "s{}", "visits": "1", "service_time_s": "1", **of_each}
    return ONE | {
        f"{name}_{row}": text.format(row)
        for row in range(1, count + 1)
        for name, text in fields.items()
    }


VISITED = st.builds(
    Visited, st.just(""), st.floats(1e-6, 1e3), st.floats(1e-6, 1e3), st.sampled_from([1, 1, DELAY])
)


def refused(form: dict[str, str]) -> Refused:
    with pytest.raises(Refused) as caught:
        read(form)
    return caught.value


def test_the_studys_network_is_that_of_the_lab() -> None:
    ours = [(station.name, station.visits, station.service_time_s) for station in STUDIED]
    assert ours == [(station.name, station.visits, station.service_s) for station in NETWORK]
    assert read(STUDY_FORM) == Network(STUDIED, 30, NETWORK_THINK_S)


@given(st.lists(VISITED, min_size=1, max_size=MOST_STATIONS), st.integers(1, 60), st.floats(0, 100))
def test_means_lie_within_the_bounds_and_charts_can_be_drawn_whatever_is_asked(
    visited: list[Visited], customers: int, think_time_s: float
) -> None:
    named = tuple(
        Visited(f"{row}", station.visits, station.service_time_s, station.servers if row else 1)
        for row, station in enumerate(visited)
    )
    result = answer(Network(named, customers, think_time_s))
    slack = 1 + 1e-9
    for row in result.curve.rows():
        assert row["throughput_per_s"] <= row["asymptotic_throughput_per_s"] * slack
        assert row["response_time_s"] >= row["asymptotic_response_time_s"] / slack
        low, high = row["balanced_throughput_low_per_s"], row["balanced_throughput_high_per_s"]
        assert low / slack <= row["throughput_per_s"] <= high * slack
    for draw in (network_charts.throughput, network_charts.response, network_charts.utilisation):
        for line in draw(result).lines.lines:
            assert not {"nan", "inf"} & {*re.findall("[a-z]{3}", line.path)}


def test_stations_with_several_servers_have_no_balanced_bounds() -> None:
    answer = answer_to(STUDY_FORM | {"servers_2": "2"})
    assert answer.curve.balanced == ()
    assert answer.curve.bottleneck.name == "DELAY"
    assert "balanced_response_low_s" not in answer.curve.rows()[0]
    assert [curve.name for curve in network_charts.throughput(answer).curves] == [
        "Throughput X",
        "Asymptotic bound",
    ]


def test_nobody_waits_at_a_delay() -> None:
    form = {**STUDY_FORM, "kind_3": "delay"}
    form.pop("servers_3", None)
    answer = answer_to(form)
    assert answer.network.visited[2].servers is DELAY
    assert answer.curve.last.at("DELAY").residence_time_s == pytest.approx(513 * 0.039)
    assert "DELAY" not in {curve.name for curve in network_charts.utilisation(answer).curves}
    assert [name for name in answer.curve.rows()[0] if name.startswith("utilisation")] == [
        "utilisation CPU",
        "utilisation DISK",
    ]
    shown = text(create_app(Settings()).test_client(), f"/lab/calculator/closed?{urlencode(form)}")
    assert "U CPU U DISK 1 " in shown, "no server of a delay is busy for a share of the time"


def test_a_comparison_has_the_same_customers_on_both_sides() -> None:
    form = STUDY_FORM | {"service_time_s_2": "0.029", "against": "study"}
    curves = network_charts.throughput(answer_to(form)).curves
    assert STUDY_CURVE in {curve.number for curve in curves}
    pages = create_app(Settings()).test_client()
    shown = text(pages, f"/lab/calculator/closed?{urlencode(form)}")
    assert "Bottleneck DELAY different DISK" in shown
    assert "per request, D 35.30 s ÷ 1.25" in shown
    assert re.search(r"R, N = 30 [\d.]+ s ÷ [\d.]+ 703.7 s", shown)
    assert "Compared with" not in text(pages, f"/lab/calculator/closed?{urlencode(STUDY_FORM)}")


def test_a_chart_shows_the_six_busiest_stations() -> None:
    drawn = network_charts.utilisation(answer_to(stations(10, service_time_s="{}")))
    assert [curve.name for curve in drawn.curves] == ["s10", "s9", "s8", "s7", "s6", "s5"]


def test_rows_in_which_nothing_was_typed_do_not_count() -> None:
    sent = ONE | {"kind_1": "queue", "kind_2": "queue", "servers_2": "1", "kind_9": "delay"}
    assert without_blanks(sent) == ONE | {"kind_1": "queue"}
    assert len(read(sent).visited) == 1


LIMITS = [
    ({"customers": "0"}, "customers"),
    ({"customers": "201"}, "customers"),
    ({"customers": "2.5"}, "customers"),
    ({"think_time_s": "-1"}, "think_time_s"),
    ({"visits_1": "-1"}, "visits_1"),
    ({"visits_1": "1e7"}, "visits_1"),
    ({"service_time_s_1": "soon"}, "service_time_s_1"),
    ({"service_time_s_1": "1e-300"}, "service_time_s_1"),
    ({"service_time_s_1": "0"}, "service_time_s_1"),
    ({"kind_1": "delay"}, "service_time_s_1"),
    ({"kind_1": "stack"}, "kind_1"),
    ({"servers_1": "65"}, "servers_1"),
    ({"name_1": "x" * 25}, "name_1"),
    ({"name_1": "a\x00"}, "name_1"),
    ({"name_2": "Disk", "visits_2": "1"}, "service_time_s_2"),
    ({"name_2": "CPU", "visits_2": "1", "service_time_s_2": "1"}, "name_2"),
    ({"name_11": "Eleventh"}, "name_11"),
]


@pytest.mark.parametrize(("change", "field"), LIMITS, ids=str)
def test_what_does_not_fit_is_refused_beside_its_field(change: dict[str, str], field: str) -> None:
    problem = refused(ONE | change)
    assert problem.status == 400
    assert [error["field"] for error in problem.errors] == [field]


def test_few_stations_may_have_several_servers() -> None:
    form = stations(4, servers="2")
    problem = refused(form)
    assert [error["field"] for error in problem.errors] == ["servers_3", "servers_4"]
    assert len(read(form | {"servers_3": "1", "servers_4": "1"}).visited) == 4


def test_a_form_without_stations_asks_for_the_first() -> None:
    fields = [error["field"] for error in refused({"customers": "3"}).errors]
    assert fields == ["name_1", "visits_1", "service_time_s_1", "think_time_s"]


def test_the_limits_are_those_of_the_models() -> None:
    from loadtests.models.networks import MOST_DEPENDENT

    assert closed_network_form.MOST_MULTI_SERVERS <= MOST_DEPENDENT
