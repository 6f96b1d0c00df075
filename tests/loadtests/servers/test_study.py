"""The study's way over HTTP: what it answers, what it tells, and one request at a time."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from urllib.parse import quote, urlencode

import pytest

from loadtests.baseline import write_chain
from loadtests.processes import ProgramFailed, Service
from loadtests.servers import study
from loadtests.servers.timing import reported
from tests.loadtests.servers.asking import ask, is_answered_before_a_later_one, parts

CITIES = ("Chicago, IL", "San José, CA")
BLOCKS = 60
BLOCK_MS = 85
DAYS = {"INITIAL_DATE": "2010-01-01", "FINAL_DATE": "2010-12-31"}
COUNTER = {"ORIGIN_CITY_NAME": CITIES[0], "DEST_CITY_NAME": CITIES[1], **DAYS}
CARRIER = {"OP_CARRIER_AIRLINE_ID": 19393, **DAYS}


def flight(height: int) -> dict[str, object]:
    return {
        "FL_DATE": "2010-02-01",
        "OP_CARRIER_AIRLINE_ID": 19393,
        "OP_CARRIER_FL_NUM": height,
        "ORIGIN_CITY_NAME": CITIES[0],
        "DEST_CITY_NAME": CITIES[1],
        "ARR_DELAY": height,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One flight a block; its number and delay are the block's height."""
    chain_folder = tmp_path_factory.mktemp("study") / "chain's folder"
    write_chain(chain_folder, [[flight(height)] for height in range(BLOCKS)])
    return chain_folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Service]:
    with study.running(folder, folder.with_name("log")) as running_server:
        yield running_server


@pytest.mark.parametrize(
    ("path", "given", "answer"),
    [
        ("/flight_counter", COUNTER, {"flight_counter": BLOCKS}),
        ("/average_delays", CARRIER, {"average_delays": (BLOCKS - 1) / 2}),
        (
            "/average_delays",
            {**CARRIER, "OP_CARRIER_AIRLINE_ID": 1},
            {"average_delays": None},
        ),
    ],
)
def test_questions_are_answered_by_a_scan(
    server: Service, path: str, given: dict[str, object], answer: object
) -> None:
    status, body, headers = ask(server, path, **given)
    assert (status, body) == (200, answer)
    assert parts(headers)[1]["disk_reads"] >= BLOCKS - 3 * 19


def test_flights_blocks_and_transactions_are_found(server: Service) -> None:
    _, body, _ = ask(server, "/filter_transactions", OP_CARRIER_FL_NUM=7, FL_DATE="2010-02-01")
    (transaction,) = body["filter_transactions"]
    assert (transaction["ARR_DELAY"], transaction["TRANSACTION_ID"]) == ("7", "7")
    assert ask(server, "/get_transaction", id=7)[1] == {"get_transaction": transaction}
    block = ask(server, "/get_block", height=7)[1]["get_block"]
    assert (block["height"], block["transactions"]) == (7, [transaction])


def test_an_answer_tells_when_how_long_where_and_what_it_cost(server: Service) -> None:
    before_s = monotonic()
    _, _, headers = ask(server, "/flight_counter", **COUNTER)
    after_s = monotonic()
    times = reported(headers)
    assert times.start_s is not None
    assert times.service_s is not None
    assert before_s <= times.start_s
    assert times.start_s + times.service_s <= after_s
    assert int(times.worker) != server.pid
    spent_ms, counts = parts(headers)
    assert spent_ms["total"] == pytest.approx(1000 * times.service_s)
    refills = BLOCKS - counts["cache_hits"]
    assert 0 < counts["disk_reads"] <= 19 * refills


def test_costs_are_of_one_request(server: Service) -> None:
    for _ in range(2):
        _, _, headers = ask(server, "/get_block", height=30)
    assert parts(headers)[1] == {"disk_reads": 0, "cache_hits": 1}


def test_an_emulated_disk_takes_its_time(folder: Path, tmp_path: Path) -> None:
    with study.running(folder, tmp_path / "log", emulated_disk=50) as server:
        for _ in range(2):
            _, _, headers = ask(server, "/flight_counter", **COUNTER)
            spent_ms, counts = parts(headers)
            assert counts["disk_reads"] > 0
            # what the last request took too long is taken off: at most a refill
            assert spent_ms["total"] >= (counts["disk_reads"] - 19) * BLOCK_MS / 50
        assert ask(server, "/nothing")[0] == 404


def test_one_request_is_answered_at_a_time(folder: Path, tmp_path: Path) -> None:
    path = f"/flight_counter?{urlencode(COUNTER)}"  # 41 blocks of 8.5 ms
    with study.running(folder, tmp_path / "log", emulated_disk=10) as server:
        assert is_answered_before_a_later_one(server, path)
        assert ask(server, "/flight_counter", **COUNTER)[1] == {"flight_counter": BLOCKS}


def test_a_chain_of_small_blocks_is_scanned_as_the_studys_was(tmp_path: Path) -> None:
    assert study.write_small_chain(tmp_path / "chain") == 522
    with study.running(tmp_path / "chain", tmp_path / "log", emulated_disk=10_000) as server:
        for _ in range(2):  # the second finds nothing that the first has left
            _, body, headers = ask(server, study.FLIGHT_COUNTER)
            assert body == {"flight_counter": 522 * study.SMALL_BLOCK_FLIGHTS}
            assert parts(headers)[1] == {"disk_reads": 503, "cache_hits": 522 - 27}


def test_the_studys_question_is_encoded_as_a_path_must_be() -> None:
    assert quote(study.FLIGHT_COUNTER, safe="/?=&,%") == study.FLIGHT_COUNTER


def test_a_folder_without_a_chain_does_not_come_up(tmp_path: Path) -> None:
    with pytest.raises(ProgramFailed), study.running(tmp_path / "none", tmp_path / "log"):
        pass
