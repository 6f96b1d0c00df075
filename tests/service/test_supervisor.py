"""The running service over real HTTP: its processes, signals, deaths, full and damaged disks."""

import os
import resource
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlencode

import pytest

from backend.base.files import FileLock
from backend.mempool.watermark import Watermark
from backend.verify.audit import verify
from tests.api.processes import (
    STOPS_WITHIN_S,
    WITHIN_S,
    Service,
    backend,
    begun,
    living,
    serving,
    until,
)
from tests.api.worlds import GOOD, Json, seal, settings_for
from tests.faults.clients import memories, posting
from tests.flights import on_disk
from tests.storage.chains import block_file

pytestmark = pytest.mark.slow

DAYS = {"INITIAL_DATE": "2015-01-01", "FINAL_DATE": "2015-01-31"}
BACK_WITHIN_S = 15.0
QUESTION = "/average_delays?" + urlencode({"OP_CARRIER_AIRLINE_ID": 19393, **DAYS})


def numbered(number: int) -> Json:
    return {**GOOD, "OP_CARRIER_FL_NUM": number}


# --- starting and answering ----------------------------------------------------------------------


def test_it_says_where_it_answers_and_gives_an_example_that_works(service: Service) -> None:
    until(lambda: "for example" in service.said())
    assert f"Flightchain answers at {service.url}\n" in service.said()
    (example,) = [line for line in service.said().splitlines() if line.startswith("for example")]
    url = example.partition("'")[2].rstrip("'")
    assert url.startswith(service.url)
    assert service.get(url.removeprefix(service.url)).status_code == 200


def test_it_is_made_of_one_miner_one_web_server_and_its_workers(service: Service) -> None:
    until(lambda: len(service.workers()) == 2)
    ours = {service.process.pid, service.miner(), service.web_master(), *service.workers()}
    assert set(service.processes()) == ours
    assert len(ours) == 5


# --- many at once --------------------------------------------------------------------------------


def test_it_answers_while_others_scan_and_an_import_writes(service: Service) -> None:
    before = service.json("/tip")["transactions"]
    answered: list[int] = []  # as of which heights; the index follows the chain a moment later
    tips: list[int] = []
    with begun(service.folder, "import", "--generate", "12000", "--seed", "5") as running:
        with ThreadPoolExecutor(2) as pool:
            scans = []
            while running.poll() is None:
                scans += [pool.submit(service.json, QUESTION + "&engine=scan") for _ in range(2)]
                started = time.monotonic()
                assert service.get("/health/live", timeout_s=5).status_code == 200
                answered.append(service.json(QUESTION)["as_of"]["height"])
                tips.append(service.json("/tip")["height"])
                assert service.post(timeout_s=10).status_code == 202
                assert time.monotonic() - started < 5
                scans[-1].result()
            assert all(scan.result()["flights"] > 0 for scan in scans)
        output = running.communicate(timeout=60)
    assert running.returncode == 0, output
    assert len(tips) >= 2
    assert answered == sorted(answered)
    assert tips == sorted(tips)
    assert all(height <= tip for height, tip in zip(answered, tips, strict=True))
    until(lambda: service.json("/tip")["pending"] == 0)
    assert service.json("/tip")["transactions"] == before + 12_000 + len(tips)
    index, scan = (service.json(f"{QUESTION}&engine={engine}") for engine in ("index", "scan"))
    assert index["flights"] == scan["flights"] > 300


# --- dying and being started again ---------------------------------------------------------------


def test_a_killed_miner_is_replaced_and_mines_what_was_pending(service: Service) -> None:
    killed = service.miner()
    os.kill(killed, signal.SIGKILL)
    receipt = service.post(mode="commit")
    assert receipt.status_code == 201
    assert service.miner() != killed
    assert "the miner ended with status -9" in service.said()


def test_a_killed_web_server_is_replaced_with_all_its_workers_though_clients_keep_asking(
    service: Service,
) -> None:
    master, workers, remembered = service.web_master(), service.workers(), memories(4)
    with posting(service.port, remembered, pause_s=0.001):
        until(lambda: all(memory.acknowledged for memory in remembered))
        os.kill(master, signal.SIGKILL)
        until(lambda: not {master, *workers} & set(service.processes()))
        until(lambda: len(service.booted()) == 2, BACK_WITHIN_S)
    until(service.answers)
    assert service.web_master() != master
    assert service.post(mode="commit").status_code == 201


# --- stopping ------------------------------------------------------------------------------------


def test_a_chain_begins_in_an_empty_folder_and_signals_stop_everything_in_order(
    folder: Path,
) -> None:
    """The second start finds a torn tip, cuts it off, and mines its flight again.

    Its supervisor is killed, which ends the others. The third start notices that it is ready,
    though it is behind a proxy.
    """
    with serving(folder) as service:
        tip = service.json("/tip")
        assert (tip["height"], tip["transactions"], tip["pending"]) == (0, 0, 0)
        for engine in ("index", "scan"):
            answer = service.json(f"{QUESTION}&engine={engine}")
            assert (answer["flights"], answer["average_delay"]) == (0, None)
            assert answer["as_of"] == {"height": 0, "tip_hash": tip["hash"]}
        for number in (1, 2, 3):
            assert service.post(numbered(number), mode="commit").status_code == 201
        accepted = [service.post(numbered(n)).json()["TRANSACTION_ID"] for n in (4, 5)]
        assert accepted == [3, 4]
        assert_stops(service, signal.SIGTERM)
    os.truncate(block_file(folder), block_file(folder).stat().st_size - 7)
    with serving(folder) as service:
        assert "because no committed block stands" in service.said()
        assert service.sealed() == 5
        assert [service.post(numbered(n)).json()["TRANSACTION_ID"] for n in (6, 7, 8)] == [5, 6, 7]
        until(lambda: service.said().count("Flightchain answers") == 2)
        service.process.kill()
        service.process.wait()
        until(lambda: not service.processes())
    with serving(folder, http_proxy="http://127.0.0.1:9") as service:
        until(lambda: service.said().count("Flightchain answers") == 3)
        assert service.sealed() == 8
        mined = [service.json(f"/transactions/{n}")["transaction"] for n in range(8)]
        assert [flight["OP_CARRIER_FL_NUM"] for flight in mined] == [1, 2, 3, 4, 5, 6, 7, 8]
        assert_stops(service, signal.SIGINT)
    assert verify(folder).transactions == 8


def assert_stops(service: Service, number: signal.Signals) -> None:
    """Stop a service by a signal, which leaves no process and all flights on the disk."""
    started = time.monotonic()
    assert service.stop(number) == 0
    assert time.monotonic() - started < STOPS_WITHIN_S
    assert service.processes() == {}
    assert service.said().endswith("stopped; every acknowledged flight is on the disk\n")
    assert "Traceback" not in service.said()


@pytest.mark.parametrize("worker_type", ["asgi", "gthread"])
def test_what_was_accepted_without_a_sync_is_on_the_disk_when_the_web_server_has_stopped(
    folder: Path, worker_type: str
) -> None:
    assert backend(folder, "mine", "--once").returncode == 0
    with living(folder, "--only-http", FLIGHTCHAIN_WORKER_TYPE=worker_type) as service:
        assert service.post(mode="async").status_code == 202
        assert service.stop() == 0
    with closing(Watermark(folder, lambda: "")) as watermark:
        mark = watermark.read()
    assert mark is not None
    assert mark.next == 1, "it was not synced"


def test_posts_in_hand_and_those_that_wait_for_them_are_answered_before_it_stops(
    folder: Path,
) -> None:
    with serving(folder) as service, ThreadPoolExecutor(9) as clients:
        service.post(numbered(1))
        with FileLock(folder / "mempool.lock"):
            posts = [clients.submit(service.post, numbered(n)) for n in range(2, 6)]
            time.sleep(0.3)  # both workers wait for the lock
            posts += [clients.submit(service.post, numbered(n)) for n in range(6, 10)]
            time.sleep(0.3)  # these wait for the first
            stopping = clients.submit(service.stop)
            time.sleep(0.2)
            assert not any(post.done() for post in posts)
        assert [post.result().status_code for post in posts] == [202] * 8
        assert stopping.result() == 0
        ids = {post.result().json()["TRANSACTION_ID"] for post in posts}
    assert ids == set(range(1, 9))


def test_a_signal_before_it_is_ready_stops_it_as_well(folder: Path) -> None:
    with Service(folder) as service:
        until(lambda: len(service.processes()) >= 3)
        # a worker that is just being forked may miss the signal: it is killed after 25 s
        assert service.stop(within_s=35) == 0
        assert service.processes() == {}


# --- starting where it should not ----------------------------------------------------------------


def test_a_second_service_on_the_same_folder_answers_but_does_not_mine(
    service: Service, tmp_path: Path
) -> None:
    (link := tmp_path / "chain").symlink_to(service.folder)
    miner, before = service.miner(), service.sealed()
    with serving(link) as second:
        until(lambda: "miner.lock is locked by another process" in second.said())
        assert service.miner() == miner
        receipts = [each.post(mode="commit") for each in (service, second) * 2]
        assert [receipt.status_code for receipt in receipts] == [201] * 4
        assert service.json("/tip")["hash"] == second.json("/tip")["hash"]
        assert second.stop(within_s=STOPS_WITHIN_S) == 0
    assert service.answers()
    assert service.miner() == miner
    assert service.post(mode="commit").status_code == 201
    assert service.sealed() == before + 5


# --- disks that refuse ---------------------------------------------------------------------------


def test_without_its_disk_it_stops_in_order(folder: Path) -> None:
    """A link to itself stands for a disk that is gone."""
    with serving(folder) as service:
        folder.rename(folder.with_name("gone"))
        folder.symlink_to(folder)
        assert service.process.wait(WITHIN_S) == 1
        assert service.processes() == {}
        assert "metrics" not in service.said()


def accepted_until(service: Service, refusal: Callable[[], bool]) -> list[int]:
    """Post until `refusal`; the ids that were acknowledged. A refusal is a 503 with a time."""
    accepted: list[int] = []
    deadline = time.monotonic() + 20
    while not refusal():
        assert time.monotonic() < deadline
        response = service.post()
        if response.status_code == 202:
            accepted.append(response.json()["TRANSACTION_ID"])
        else:
            assert response.status_code == 503, response.text
            assert response.headers["Content-Type"] == "application/problem+json"
            assert int(response.headers["Retry-After"]) >= 1
    return accepted


def test_after_a_failed_write_nothing_is_lost_and_the_service_recovers(folder: Path) -> None:
    """A limit on the size of files stands for a disk that refuses."""
    seal(settings_for(folder), [])
    with living(folder, "--only-http") as service:
        until(lambda: len(service.role("--only-http")) == 3)
        for pid in service.role("--only-http"):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
        accepted = accepted_until(service, lambda: "disk I/O error" in service.said())
        assert accepted == list(range(len(accepted)))
        assert service.json(f"/transactions/{accepted[-1]}")["state"] == "pending"

        def give_space() -> bool:
            for pid in service.role("--only-http"):
                with suppress(ProcessLookupError):
                    most = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, most)
            return service.post().status_code == 202

        until(give_space)
        for _ in range(10):
            until(lambda: service.post().status_code == 202)
        assert service.stop() == 0
    seal(settings_for(folder), [[]])
    report = verify(folder)
    assert report.transactions >= len(accepted) + 11
    assert on_disk(folder).flights == [tuple(GOOD.values())] * report.transactions
