"""The network of report 000 over HTTP: its visits and demands, its order, what it tells."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path
from time import monotonic

import pytest

from loadtests.processes import Service
from loadtests.servers import network
from loadtests.servers.network import INTERACTION, TOLD, Station
from loadtests.servers.timing import reported
from tests.loadtests.servers.asking import ask, is_answered_before_a_later_one

VISITS = {"cpu": 523, "disk": 513, "delay": 513}
DEMANDS_S = {"cpu": 0.4184, "disk": 23.598, "delay": 20.007}
STATIONS = (Station("cpu"), Station("disk"), Station("delay"))
K = 400


@pytest.mark.parametrize("group", [1, network.FILLED_BLOCKS])
def test_the_way_has_the_demands_of_the_report(group: int) -> None:
    demands_s = dict.fromkeys(DEMANDS_S, 0.0)
    for step in network.route(*STATIONS, 1.0, group):
        demands_s[step.station.name] += step.mean_s
    assert demands_s == pytest.approx(DEMANDS_S)


def test_the_way_has_the_visits_of_the_report_in_its_order() -> None:
    names = [step.station.name for step in network.route(*STATIONS, 1.0, 1)]
    assert Counter(names) == VISITS
    runs = [(is_cpu, len(list(run))) for is_cpu, run in groupby(names, lambda name: name == "cpu")]
    assert runs == [(True, 1), *[(False, 38), (True, 19)] * 26, (False, 38), (True, 28)]
    assert names[1:39] == ["disk", "delay"] * 19


def test_grouped_visits_are_one_a_filling() -> None:
    names = Counter(step.station.name for step in network.route(*STATIONS, 1.0, 19))
    assert names == {"cpu": 28, "disk": 27, "delay": 27}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    log = tmp_path_factory.mktemp("network") / "log"
    with network.running(log, emulated_disk=K, cv=0, threads=8) as running_server:
        yield running_server


def test_an_interaction_takes_its_demands_and_tells_of_them(server: Service) -> None:
    before_s = monotonic()
    status, body, headers = ask(server, INTERACTION)
    took_s = monotonic() - before_s
    assert status == 200
    for name, demand_s in DEMANDS_S.items():
        assert body[name] == pytest.approx(demand_s / K)
        assert body[f"{name}_queue"] == pytest.approx(0, abs=1e-6)
    assert body["late"] >= 0
    times = reported(headers)
    assert times.service_s is not None
    assert sum(DEMANDS_S.values()) / K <= times.service_s <= took_s
    assert times.start_s is not None
    assert before_s <= times.start_s
    assert int(times.worker) != server.pid


def test_customers_queue_at_the_bottleneck(server: Service) -> None:
    """The disk serves one at a time: four interactions take four times its demand at least."""
    start_s = monotonic()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ask(server, INTERACTION), range(4)))
    assert monotonic() - start_s >= 4 * DEMANDS_S["disk"] / K
    assert {status for status, _, _ in answers} == {200}


def test_what_interactions_told_is_told_once_in_their_order(tmp_path: Path) -> None:
    with network.running(tmp_path / "log", emulated_disk=4000, cv=0, group=19) as server:
        answers = [ask(server, INTERACTION)[1] for _ in range(2)]
        assert ask(server, TOLD)[1] == answers
        assert ask(server, TOLD)[1] == []


def test_the_seed_decides_all_service_times_and_interactions_differ(tmp_path: Path) -> None:
    bodies = []
    for seed in (5, 6, 5):
        with network.running(
            tmp_path / "log", emulated_disk=4000, cv=1, group=19, seed=seed
        ) as server:
            answers = [ask(server, INTERACTION)[1] for _ in range(2)]
            bodies.append([[times[name] for name in DEMANDS_S] for times in answers])
    assert bodies[0] == bodies[2] != bodies[1]
    assert bodies[0][0] != bodies[0][1]


@pytest.mark.parametrize(("threads", "speedup", "is_in_order"), [(1, 100, True), (8, 20, False)])
def test_one_thread_is_one_request_at_a_time(
    tmp_path: Path, threads: int, speedup: int, is_in_order: bool
) -> None:
    with network.running(tmp_path / "log", emulated_disk=speedup, cv=0, threads=threads) as server:
        assert is_answered_before_a_later_one(server, INTERACTION) == is_in_order
