"""Request ids, Server-Timing and the access log."""

import json
import logging
import os
import re
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.api import metrics, observing
from backend.api.metrics import CountedRequests
from backend.api.reception import Reception
from backend.base.processes.shared_numbers import Numbers
from backend.serving.host_policy import HostPolicy
from tests.api.worlds import Json, World, client_of, seal, settings_for

QUESTION = "/average_delays?OP_CARRIER_AIRLINE_ID=1&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-02"


@pytest.mark.parametrize("given", ["a", "A-z_0.9", "x" * 64, "00-4bf9-01"])
def test_the_client_may_name_its_request(client: FlaskClient, given: str) -> None:
    for path in ("/tip", "/nothing", "/blocks/x"):
        assert client.get(path, headers={"X-Request-ID": given}).headers["X-Request-ID"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a,b", 'a"b', "ü", "a/b", "{}"])
def test_a_name_that_is_none_is_replaced(client: FlaskClient, given: str) -> None:
    request_id = client.get("/tip", headers={"X-Request-ID": given}).headers["X-Request-ID"]
    assert re.fullmatch("[a-z0-9-]{8,64}", request_id)


def test_every_request_has_an_id_of_its_own(client: FlaskClient) -> None:
    ids = {client.get("/health/live").headers["X-Request-ID"] for _ in range(100)}
    assert len(ids) == 100


def test_ids_of_a_forked_process_are_its_own() -> None:
    reads, writes = os.pipe()
    if os.fork() == 0:
        os.write(writes, observing.new_request_id().encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        theirs = pipe.read()
    os.wait()
    ours = observing.new_request_id()
    assert theirs.partition("-")[0] != ours.partition("-")[0]


STAGES = ["file", "decompress", "hash", "decode", "filter"]


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/tip", ["total"]),
        ("/nothing", ["total"]),
        (f"{QUESTION}&engine=index", ["total", "index"]),
        (f"{QUESTION}&engine=scan", ["total", "scan", *STAGES, "last", "random"]),
    ],
)
def test_an_answer_says_how_long_it_took(client: FlaskClient, path: str, parts: list[str]) -> None:
    timings = client.get(path).headers["Server-Timing"]
    names, durations_ms, _ = timing(timings)
    assert names == parts
    assert all(duration < 10_000 for duration in durations_ms.values())
    last = list(durations_ms.values())[1:2] or [0.0]
    assert durations_ms["total"] >= last[0]


def test_the_stages_of_a_scan_are_parts_of_it(client: FlaskClient, world: World) -> None:
    for path in ("filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-01", QUESTION[1:]):
        timings = client.get(f"/{path}&engine=scan").headers["Server-Timing"]
        _, durations_ms, descriptions = timing(timings)
        stages_ms = [durations_ms[name] for name in STAGES]
        assert sum(stages_ms) <= durations_ms["scan"] + 0.01  # rounded
        assert min(stages_ms[1:]) > 0
        read, blocks = blocks_in(descriptions)
        assert blocks == world.tip + 1
    assert read == 0  # all are in the caches now


def test_a_scan_for_a_name_in_another_spelling_tells_of_both_its_walks(
    client: FlaskClient, world: World
) -> None:
    city = str(world.transactions[0]["ORIGIN_CITY_NAME"]).upper()
    days = {"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-01-02"}
    asked = {"ORIGIN_CITY_NAME": city, **days, "engine": "scan"}
    answer = client.get("/flight_counter", query_string=asked)
    _, blocks = blocks_in(timing(answer.headers["Server-Timing"])[2])
    assert blocks == 2 * (world.tip + 1)


def blocks_in(descriptions: dict[str, str]) -> tuple[int, int]:
    """Returns how many blocks a scan has read from files, and how many it has looked at."""
    match = re.fullmatch(r"(\d+) blocks in (\d+) refills", descriptions["file"])
    assert match is not None
    read, refills = map(int, match.groups())
    assert read >= refills
    return read, refills + sum(int(descriptions[name].removesuffix(" blocks")) for name in CACHES)


CACHES = ("last", "random")
_PART = re.compile(r'(\w+)(?:;dur=(\d+\.\d{3}))?(?:;desc="([^"]*)")?')


def timing(header: str) -> tuple[list[str], dict[str, float], dict[str, str]]:
    """Returns the names of a Server-Timing header, their durations and their descriptions."""
    matches = [part for text in header.split(", ") if (part := _PART.fullmatch(text))]
    assert ", ".join(part[0] for part in matches) == header
    names = [part[1] for part in matches]
    return (
        names,
        {part[1]: float(part[2]) for part in matches if part[2]},
        {part[1]: part[3] for part in matches if part[3]},
    )


@pytest.mark.parametrize("path", ["/tip", "/nothing", f"{QUESTION}&engine=scan", "/health/live"])
def test_an_emulated_disk_is_told_in_every_answer_and_a_real_one_in_none(
    client: FlaskClient, world: World, path: str
) -> None:
    assert "X-Emulated-Disk" not in client.get(path).headers
    settings = replace(world.settings, emulated_disk=100_000)
    with client_of(settings) as emulated:
        answer = emulated.get(path)
        assert answer.headers.getlist("X-Emulated-Disk") == ["100000"]
        names, durations_ms, descriptions = timing(answer.headers["Server-Timing"])
    if "scan" in path:
        read = int(descriptions["file"].split()[0])
        assert read > 0
        assert "emulated" in names
        waited_ms = durations_ms["file"] + durations_ms["emulated"]
        assert waited_ms >= 0.9 * read * 85 / 100_000


@pytest.mark.parametrize("path", ["/tip", "/nothing", f"{QUESTION}&engine=scan"])
def test_only_in_the_lab_an_answer_tells_when_it_was_begun(
    client: FlaskClient, world: World, path: str
) -> None:
    elsewhere = client.get(path).headers
    assert not {"X-Service-Start", "X-Boot-Id", "X-Worker"} & set(elsewhere.keys())
    with client_of(replace(world.settings, lab="yes")) as lab:
        sent_s = time.monotonic()
        headers = lab.get(path).headers
        received_s = time.monotonic()
    start_s = float(headers["X-Service-Start"])
    took_ms = timing(headers["Server-Timing"])[1]["total"]
    assert sent_s <= start_s <= start_s + took_ms / 1000 <= received_s + 1e-6
    assert headers["X-Worker"] == str(os.getpid())
    assert headers["X-Boot-Id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_an_error_in_the_log_names_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with client_of(settings_for(tmp_path)) as client, caplog.at_level(logging.ERROR):
        assert client.get("/tip", headers={"X-Request-ID": "who-asked"}).status_code == 503
    assert "request who-asked" in caplog.text


def test_a_client_that_tries_again_at_once_does_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with client_of(settings_for(tmp_path)) as client, caplog.at_level(logging.ERROR):
        assert {client.get("/tip").status_code for _ in range(100)} == {503}
    assert 1 <= len(caplog.records) < 50


def logged(text: str) -> list[Json]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_access_log_is_off_unless_it_is_turned_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seal(settings_for(tmp_path), [])
    with client_of(settings_for(tmp_path)) as client:
        client.get("/tip")
    assert capfd.readouterr().err == ""


def test_the_access_log_has_a_line_for_each_request(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seal(settings_for(tmp_path), [])
    with client_of(settings_for(tmp_path, access_log=1)) as client:
        answer = client.get("/blocks/0?limit=1", headers={"X-Request-ID": "mine"}).get_data()
        client.get(f"/nothing?q=%22%0a{'x' * 2000}").get_data()
        client.head("/tip").get_data()
    lines = logged(capfd.readouterr().err)
    first, second, third = lines
    assert first.keys() == second.keys() == third.keys()
    assert first.pop("time").startswith("20")
    assert 0 < first.pop("duration_ms") < 10_000
    assert first == {
        "request_id": "mine",
        "method": "GET",
        "route": "/blocks/<height>",
        "query": "limit=1",
        "status": 200,
        "bytes": len(answer),
        "client": "127.0.0.1",
        "is_whole": True,
    }
    assert (second["route"], second["status"]) == (None, 404)
    assert second["query"] == f"q=%22%0a{'x' * 992}"  # a line is written in one piece
    assert (third["method"], third["bytes"], third["status"]) == ("HEAD", 0, 200)


def test_a_slow_request_is_counted_when_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "WRITE_EVERY_S", 0.0)
    numbers = Numbers()
    reception = Reception(
        HostPolicy("127.0.0.1", "*", "machine"), CountedRequests(numbers), access_log=False
    )
    slow, quick = ({"REQUEST_METHOD": "GET", "HTTP_HOST": "localhost"} for _ in range(2))
    reception.receive(slow)
    reception.receive(quick)
    for environ in (quick, slow):
        reception.finalise_response(environ, "200 OK", [])
        reception.leave(environ)
    assert numbers.totals()[metrics.REQUESTS, metrics.UNMATCHED, "GET", "200"] == [2]


def test_the_access_log_says_when_an_answer_broke_off(capfd: pytest.CaptureFixture[str]) -> None:
    def broken(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [])
        yield b"abc"
        raise ConnectionResetError

    counted = CountedRequests(Numbers())
    reception = Reception(HostPolicy("127.0.0.1", "*", "machine"), counted, access_log=True)
    environ = {"REQUEST_METHOD": "GET", "HTTP_HOST": "localhost"}
    pieces = iter(reception.around(broken)(environ, lambda *started: None))
    assert next(iter(pieces)) == b"abc"
    with pytest.raises(ConnectionResetError):
        next(pieces)
    (line,) = logged(capfd.readouterr().err)
    assert (line["is_whole"], line["bytes"], line["status"]) == (False, 3, 200)
