"""`/metrics`: what is counted adds up over processes, and labels are few."""

import os
import re
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from backend.api import SERVICE
from backend.api.conditions import REVALIDATE
from backend.api.json_answers import ENTRY_BYTES, AnswerCache, CachedAnswer, whole
from backend.api.metrics import ASKED, UNMATCHED, UNREAD
from backend.base.version import VERSION, commit
from backend.index.queries import State
from backend.questions.values import AverageDelays
from tests.api.processes import ROOT, Service, free_port, serving, until
from tests.api.worlds import GOOD, World, client_of, generated, seal, settings_for, world_in

pytestmark = pytest.mark.slow

Sample = tuple[str, frozenset[tuple[str, str]]]

SAMPLED_WITHIN_S = 2.5  # once a second, and a moment for slow machines
ROUTE_OF = {
    "/average_delays?OP_CARRIER_AIRLINE_ID=19393&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-09": (
        "/average_delays",
        "200",
    ),
    "/average_delays": ("/average_delays", "400"),
    "/blocks?limit=2": ("/blocks", "200"),
    "/transactions/3": ("/transactions/<id:transaction_id>", "200"),
    "/transactions/4?x=1": ("/transactions/<id:transaction_id>", "400"),
    "/transactions/999999": ("/transactions/<id:transaction_id>", "404"),
    "/nothing/1": (UNMATCHED, "404"),
    "/nothing/2": (UNMATCHED, "404"),
}


def parsed(text: str) -> dict[Sample, float]:
    """Every sample of a scrape, none of them twice."""
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    values = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(values) == len(samples)
    return values


def value(samples: dict[Sample, float], name: str, **labels: str) -> float:
    return samples["flightchain_" + name, frozenset(labels.items())]


def scraped(source: FlaskClient | Service) -> dict[Sample, float]:
    response = source.get("/metrics")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parsed(response.text)


def requests_in(samples: dict[Sample, float]) -> Counter[tuple[str, str, str]]:
    """Counts requests by route, method and status."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for (name, labels), count in samples.items():
        if name == "flightchain_requests_total":
            label = dict(labels)
            counts[label["route"], label["method"], label["status"]] = int(count)
    return counts


@pytest.fixture
def fresh(world: World) -> Iterator[FlaskClient]:
    """A client of an application that nobody has asked yet."""
    with client_of(world.settings) as client:
        yield client


# --- one process ---------------------------------------------------------------------------------


def test_requests_are_counted_by_rule_method_and_status(fresh: FlaskClient) -> None:
    expected: Counter[tuple[str, str, str]] = Counter()
    for times, (path, (route, status)) in enumerate(ROUTE_OF.items(), 1):
        for _ in range(times):
            assert fresh.get(path).status_code == int(status)
            expected[route, "GET", status] += 1
    fresh.head("/tip")
    fresh.post("/tip")
    fresh.options("/tip")
    expected += Counter({("/tip", "HEAD", "200"): 1, ("/tip", "OPTIONS", "200"): 1})
    expected[UNMATCHED, "POST", "405"] += 1
    assert requests_in(scraped(fresh)) == expected
    expected["/metrics", "GET", "200"] += 1
    assert requests_in(scraped(fresh)) == expected


def test_durations_add_up_to_the_requests(fresh: FlaskClient) -> None:
    started = time.perf_counter()
    for path in list(ROUTE_OF) * 3:
        fresh.get(path)
    elapsed = time.perf_counter() - started
    samples = scraped(fresh)
    by_route: Counter[str] = Counter()
    for (route, _, _), count in requests_in(samples).items():
        by_route[route] += count
    total = 0.0
    for route, count in by_route.items():
        name = "request_duration_seconds"
        assert value(samples, name + "_count", route=route) == count
        assert value(samples, name + "_bucket", route=route, le="+Inf") == count
        assert value(samples, name + "_bucket", route=route, le="60.0") == count
        buckets = [
            (float(dict(labels)["le"]), below)
            for (sample, labels), below in samples.items()
            if sample.endswith(name + "_bucket") and ("route", route) in labels
        ]
        assert [below for _, below in sorted(buckets)] == sorted(below for _, below in buckets)
        assert (min(buckets)[0], len(buckets)) == (0.0001, 19)
        total += value(samples, name + "_sum", route=route)
    assert 0 < total < elapsed


def test_what_clients_make_up_gives_no_labels(fresh: FlaskClient) -> None:
    for i in range(50):
        fresh.open(f"/made/up/{i}", method=f"METHOD{i}")
        fresh.open("/tip", method=f"METHOD{i}")
        fresh.get(f"/blocks/{i}?made={i}")
    counts = requests_in(scraped(fresh))
    assert counts.keys() == {
        (UNMATCHED, "other", "404"),
        (UNMATCHED, "other", "405"),
        ("/blocks/<height>", "GET", "400"),
    }
    assert set(counts.values()) == {50}


def test_a_request_in_hand_is_in_progress_until_it_has_an_answer(fresh: FlaskClient) -> None:
    for path in ("/tip", "/nothing", "/blocks/x"):
        fresh.get(path)
    assert value(scraped(fresh), "requests_in_progress") == 1  # the scrape itself


def test_an_error_that_gets_through_leaves_nothing_in_progress(fresh: FlaskClient) -> None:
    app = fresh.application
    service = app.extensions[SERVICE]
    counted = service.metrics.requests

    def fails(environ: object, start_response: object) -> list[bytes]:
        assert counted.in_progress() == 1
        raise KeyboardInterrupt

    app.wsgi_app = service.reception.around(fails)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        app.test_client().get("/tip")
    assert counted.in_progress() == 0


def test_the_caches_report_what_they_do(world: World) -> None:
    settings = settings_for(world.settings.folder, cache_bytes=10_000)
    with client_of(settings) as client:
        for height in [*range(world.tip + 1), 0]:
            client.get(f"/blocks/{height}")
        question = next(iter(ROUTE_OF))
        for _ in range(3):
            client.get(question)
        samples = scraped(client)
        counts = client.application.extensions[SERVICE].ledger.cached_blocks.counts()
    asked = 0.0
    for cache in ("last", "random"):
        for what in ("hits", "misses", "evictions"):
            count = value(samples, f"block_cache_{what}_total", cache=cache)
            assert count == getattr(counts[cache], what)
            asked += count if what != "evictions" else 0
        assert value(samples, "block_cache_bytes", cache=cache) == counts[cache].bytes > 0
        assert value(samples, "block_cache_blocks", cache=cache) == counts[cache].entries > 0
    assert asked == world.tip + 2
    assert value(samples, "block_cache_evictions_total", cache="random") > 0
    assert value(samples, "answer_cache_misses_total") == 1
    assert value(samples, "answer_cache_hits_total") == 2
    assert value(samples, "answer_cache_evictions_total") == 0
    assert value(samples, "answer_cache_answers") == 1
    assert value(samples, "answer_cache_bytes") > ENTRY_BYTES
    assert value(samples, "answer_cache_limit_bytes") == settings.answer_cache_bytes


def test_answers_of_an_older_state_make_room_at_once() -> None:
    cache = AnswerCache(10**6)
    kept = CachedAnswer("", b"", "", whole(b"", "", "tag", REVALIDATE))
    for file, query, entries in ((1, "a", 1), (1, "b", 2), (2, "a", 1)):
        cache.keep((State(("index", file), "tip"), AverageDelays, query), kept)
        assert cache.counts().entries == entries


def test_the_ledger_is_described_as_it_stands(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "chain")
    seal(settings, [generated(30), generated(5)])
    with client_of(settings) as client:
        samples = scraped(client)
        assert value(samples, "chain_height") == 2
        assert value(samples, "chain_transactions") == 35
        assert value(samples, "index_lag_blocks") == 0
        assert value(samples, "mempool_transactions") == 0
        assert value(samples, "mempool_oldest_age_seconds") == 0
        assert value(samples, "disk_free_bytes") > 0
        client.post("/transactions", json=GOOD)
        time.sleep(0.3)
        client.post("/transactions", json=GOOD)
        samples = scraped(client)
        assert value(samples, "mempool_transactions") == 2
        assert 0.3 <= value(samples, "mempool_oldest_age_seconds") < 60


def test_what_cannot_be_told_is_left_out_and_the_rest_is_there(tmp_path: Path) -> None:
    with client_of(settings_for(tmp_path / "none")) as client:
        names = {name for name, _ in scraped(client)}
        assert "flightchain_process_cpu_seconds_total" in names
        assert "flightchain_chain_height" not in names
        assert "flightchain_index_lag_blocks" not in names
    folder = tmp_path / "headless"
    world_in(folder)
    for file in (folder / "blocks").glob("blocks-*.dat"):
        file.unlink()
    with client_of(settings_for(folder)) as client:
        assert value(scraped(client), "disk_free_bytes") > 0


# --- a service of several processes --------------------------------------------------------------


OURS = {route for route, _ in ROUTE_OF.values()}


def ours(service: Service) -> Counter[tuple[str, str, str]]:
    """The requests to routes that only these tests ask."""
    counts = requests_in(scraped(service))
    return Counter({asked: count for asked, count in counts.items() if asked[0] in OURS})


def kill(service: Service, worker: int, number: int = signal.SIGKILL) -> None:
    """End a worker, and wait until another one is in its place."""
    os.kill(worker, number)
    until(lambda: worker not in service.workers() and len(service.booted()) == 2)


def until_counted(service: Service, expected: Counter[tuple[str, str, str]]) -> None:
    until(lambda: ours(service) == expected, SAMPLED_WITHIN_S)


def load(service: Service, times: int) -> Counter[tuple[str, str, str]]:
    """Ask everything `times` times from many threads; what was asked."""
    paths = list(ROUTE_OF) * times
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda path: service.get(path).status_code, paths))
    expected: Counter[tuple[str, str, str]] = Counter()
    for path, status in zip(paths, statuses, strict=True):
        assert status == int(ROUTE_OF[path][1])
        expected[ROUTE_OF[path][0], "GET", str(status)] += 1
    return expected


def test_the_requests_of_all_workers_add_up_also_when_one_is_killed(service: Service) -> None:
    until(lambda: "for example" in service.said())
    expected = ours(service) + load(service, 10)
    until_counted(service, expected)
    time.sleep(SAMPLED_WITHIN_S)  # nobody scrapes, and still it is counted
    kill(service, service.booted()[0])
    assert {tuple(ours(service).items()) for _ in range(6)} == {tuple(expected.items())}
    expected += load(service, 5)
    until_counted(service, expected)
    time.sleep(1.2)
    assert ours(service) == expected


def test_the_miner_counts_its_blocks_also_after_it_was_killed(service: Service) -> None:
    def sealed() -> tuple[float, float, float]:
        samples = scraped(service)
        return (
            value(samples, "transactions_sealed_total"),
            value(samples, "blocks_sealed_total"),
            value(samples, "seal_duration_seconds_count"),
        )

    transactions, blocks, _ = sealed()
    seconds = value(scraped(service), "seal_duration_seconds_sum")
    assert service.post(mode="commit").status_code == 201
    until(lambda: sealed() == (transactions + 1, blocks + 1, blocks + 1), SAMPLED_WITHIN_S)
    until(lambda: value(scraped(service), "processes", role="miner") == 1)
    os.kill(service.miner(), signal.SIGKILL)
    until(lambda: value(scraped(service), "processes", role="miner") == 0)
    assert sealed() == (transactions + 1, blocks + 1, blocks + 1)
    samples = scraped(service)
    assert seconds < value(samples, "seal_duration_seconds_sum") < seconds + 5
    until(lambda: value(scraped(service), "processes", role="miner") == 1)
    assert value(samples, "mempool_transactions") == 0
    assert value(samples, "chain_transactions") == service.json("/tip")["transactions"]


def test_what_http_refuses_is_counted_too(service: Service) -> None:
    heads = {
        "411": b"POST /transactions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "413": b"POST /transactions HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n",
        "400": b"GET /tip\r\n\r\n",
        "414": b"GET /" + b"a" * 40_000,
        "431": b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000,
    }
    for head in heads.values():
        with socket.create_connection(("127.0.0.1", service.port), 10) as connection:
            connection.sendall(head)
            assert connection.recv(100)
    expected = dict.fromkeys(heads, 1)

    def refused() -> dict[str, int]:
        counts = requests_in(scraped(service))
        return {status: counts[UNREAD, UNREAD, status] for status in heads}

    until(lambda: refused() == expected, SAMPLED_WITHIN_S)


def test_roles_that_run_apart_share_the_folder_that_is_set(tmp_path: Path) -> None:
    folder, numbers = tmp_path / "chain", tmp_path / "numbers"
    more: Any = {"FLIGHTCHAIN_METRICS_DIR": numbers, "FLIGHTCHAIN_PORT": free_port()}
    mine = (sys.executable, "-m", "backend", "mine")
    with (
        Service(folder, "--only-http", **more) as http,
        Service(folder, command=mine, **more) as miner,
    ):
        until(http.answers)
        assert http.post(mode="commit").status_code == 201
        until(lambda: value(scraped(http), "transactions_sealed_total") == 1, SAMPLED_WITHIN_S)
        assert {http.stop(), miner.stop()} == {0}
    assert len(list(numbers.glob("*.json"))) == 3
    with serving(folder, **more) as again:  # counters go on
        until(lambda: value(scraped(again), "processes", role="miner") == 1)
        assert value(scraped(again), "transactions_sealed_total") == 1
        assert again.stop() == 0


def test_they_tell_of_the_machine_what_it_tells(service: Service) -> None:
    def busy_s() -> float:
        return value(scraped(service), "machine_cpu_seconds_total")

    samples = scraped(service)
    assert value(samples, "machine_cores") == len(os.sched_getaffinity(0))
    available = value(samples, "machine_memory_available_bytes")
    assert 0 < available < value(samples, "machine_memory_bytes")
    before_s = busy_s()
    until(lambda: busy_s() > before_s)


def test_they_say_which_release_and_commit_runs(client: FlaskClient) -> None:
    families = text_string_to_metric_families(client.get("/metrics").text)
    (build,) = next(each.samples for each in families if each.name == "flightchain_build_info")
    assert build.labels == {"version": VERSION, "commit": commit()}
    assert build.value == 1


def test_a_document_names_every_number(client: FlaskClient) -> None:
    page = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    listed = tuple(name.removesuffix("…") for name in re.findall("`(.+?)`", " ".join(rows)))
    told = {name.removeprefix("flightchain_") for name, *_ in ASKED}
    told |= {name.removeprefix("flightchain_") for name, _ in scraped(client)}
    assert {name for name in told if not name.startswith(listed)} == set()
