"""A witness of ours looks at a Flightchain, and cosigns for it over HTTP."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests

from backend.storage.block_store import BlockStore
from backend.trust.log import checkpoints, notes
from backend.trust.log.notes import VerifierKey, signed_at
from backend.trust.log.secret_keys import SecretKey, log_key
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.cosign_requests import Asker, WitnessAddress, witnesses_in
from backend.trust.witness.following import Finding, Follower, Verdict
from backend.trust.witness.witness import Witness
from tests.api.processes import ROOT, ending, free_port, until
from tests.api.worlds import client_of, good, settings_for
from tests.http_servers import served_in_a_thread
from tests.trust.witness.logs import grow, note_of

pytestmark = pytest.mark.slow

NAME = "example.org/witness"


# --- looking ----------------------------------------------------------------------------------


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of an API over a chain, in this process."""
    with (
        client_of(settings_for(folder)) as client,
        served_in_a_thread(client.application) as url,
    ):
        yield url


def looked_at(folder: Path, follower: Follower) -> Finding:
    """Returns the finding of one look at the API over a chain."""
    with served(folder) as url:
        return follower.look(f"{url}/log")


def test_a_log_that_grows_is_fine_and_one_that_was_put_back_is_not(
    folder: Path, witness: Witness, tmp_path: Path
) -> None:
    follower = Follower(witness, [], silent_after_s=3600)
    shutil.copytree(folder, tmp_path / "older", symlinks=True)
    other = tmp_path / "other"
    shutil.copytree(folder, other, symlinks=True)
    findings = looked_at(folder, follower)
    assert (findings.verdict, "has 5 blocks" in findings.message) == (Verdict.FINE, True)
    for serial in range(3):
        grow(folder, 1000 + serial)
    findings = looked_at(folder, follower)
    assert (findings.verdict, "has 8 blocks" in findings.message) == (Verdict.FINE, True)
    findings = looked_at(tmp_path / "older", follower)
    assert (findings.verdict, "shows 5 now" in findings.message) == (Verdict.WRONG, True)
    for serial in range(4):  # a longer chain with the same key, but others from block 5 on
        grow(other, 2000 + serial)
    findings = looked_at(other, follower)
    assert findings.verdict is Verdict.WRONG
    assert "nothing shows that they are still there" in findings.message
    (folder / "log.key").unlink()
    (folder / "log.vkey").unlink()
    (folder / "checkpoint").unlink()
    grow(folder, 3000)  # with another key
    findings = looked_at(folder, follower)
    assert (findings.verdict, "is not signed by" in findings.message) == (Verdict.WRONG, True)


# --- over HTTP --------------------------------------------------------------------------------


@contextmanager
def listening(folder: Path, log: VerifierKey) -> Iterator[WitnessAddress]:
    """Run a witness of ours that cosigns what a log sends."""
    port = free_port()
    command = [sys.executable, "-m", "backend", "witness", "--listen", f"127.0.0.1:{port}"]
    command += ["--folder", str(folder), "--key", str(log)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, env=os.environ)
    with ending(process, signal.SIGTERM):
        url = f"http://127.0.0.1:{port}"
        until(lambda: asked(f"{url}/key") is not None)
        written = asked(f"{url}/key")
        assert written is not None
        yield WitnessAddress(notes.parse_key(written[1]), url)


def asked(url: str, body: bytes | None = None) -> tuple[int, str] | None:
    """Returns status and text of an answer; None if nobody answers."""
    try:
        answer = requests.request("POST" if body else "GET", url, data=body, timeout=60)
    except requests.RequestException:
        return None
    return answer.status_code, answer.content.decode()


def test_our_witness_cosigns_what_our_ledger_sends(folder: Path, tmp_path: Path) -> None:
    reports: list[str] = []
    with listening(tmp_path / "witness", log_key(folder).verifier) as address:
        store = BlockStore(folder)
        asker = Asker(folder, HistoryTree(store), [address], reports.append)
        for serial in range(3):
            assert asker.look()
            cosigned = notes.parse((folder / "cosigned").read_bytes())
            assert cosigned.text == note_of(folder).text
            assert signed_at(cosigned, address.key) is not None
            grow(folder, 500 + serial)
        again = Asker(folder, HistoryTree(store), [address], reports.append)
        assert again.look()  # it learns what the witness knows
        with client_of(settings_for(folder)) as client:
            served = notes.parse(client.get("/log/checkpoint").data)
            assert signed_at(served, address.key) is not None
            answer = good(client.get("/log/witnesses"))
            assert (answer["size"], [witness["name"] for witness in answer["witnesses"]]) == (
                checkpoints.parse(served.text).size,
                [address.key.name],
            )
            assert abs(answer["witnesses"][0]["cosigned_at"] / 1000 - time.time()) < 60
            proof = good(client.get("/transactions/0/proof"))
            assert proof["checkpoint"] == str(served)
        store.close()
        assert reports == []
    grow(folder, 900)
    store = BlockStore(folder)
    asker = Asker(folder, HistoryTree(store), [address], reports.append)
    assert not asker.look()
    assert "cannot be reached" in reports[0]
    assert notes.parse((folder / "cosigned").read_bytes()) == note_of(folder)
    store.close()


@contextmanager
def dribbling(port: int, count: int) -> Iterator[None]:
    """Run so many clients, each of which sends a checkpoint's body at a byte a second."""
    head = b"POST /add-checkpoint HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    over = threading.Event()
    clients = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(count)]

    def dribble() -> None:
        while not over.wait(1):
            for client in clients:
                with suppress(OSError):
                    client.send(b"o")

    for number, client in enumerate(clients):
        client.sendall(head if number % 2 else head[:40])
    thread = threading.Thread(target=dribble)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for client in clients:
            client.close()


def test_clients_that_dribble_keep_no_log_waiting(folder: Path, tmp_path: Path) -> None:
    note = str(note_of(folder)).encode()
    with listening(tmp_path / "witness", log_key(folder).verifier) as address:
        port = int(address.url.rpartition(":")[2])
        with dribbling(port, 100):
            started = time.monotonic()
            answers = [asked(f"{address.url}/add-checkpoint", b"old 0\n\n" + note)]
            answers += [
                asked(f"{address.url}/add-checkpoint", b"old 5\n\n" + note) for _ in range(9)
            ]
            keys = [asked(f"{address.url}/key") for _ in range(8)]
            took_s = time.monotonic() - started
    assert [answer and answer[0] for answer in (*answers, *keys)] == [200] * 18
    assert took_s < 10


def test_a_witness_refuses_over_http_what_is_no_checkpoint(folder: Path, tmp_path: Path) -> None:
    """What else it refuses is in test_answering.py."""
    note = str(note_of(folder)).encode()
    with listening(tmp_path / "witness", log_key(folder).verifier) as address:
        add = f"{address.url}/add-checkpoint"
        unknown = "unknown address; allowed: POST /add-checkpoint and GET /key\n"
        assert asked(f"{address.url}/nothing") == (404, unknown)
        cut = b"old 0\n\n" + note[:-9]
        for body, status in ((b"nonsense", 400), (cut, 400), (b"x" * 100_000, 413)):
            answer = asked(add, body)
            assert answer is not None
            assert answer[0] == status, (body, answer)
        assert asked(add, b"old 3\n\n" + note) == (409, "0\n")


def test_the_setting_names_what_is_wrong_with_it() -> None:
    key = SecretKey(NAME, bytes(32), b"\x04").verifier
    assert witnesses_in(f"{key} http://w:1/, {key} https://x") == [
        WitnessAddress(key, "http://w:1"),
        WitnessAddress(key, "https://x"),
    ]
    assert witnesses_in("") == []
    log = SecretKey(NAME, bytes(32)).verifier
    for bad in ("nonsense", f"{key}", f"{key} ftp://x", f"{log} http://x"):
        with pytest.raises(Exception, match="FLIGHTCHAIN_WITNESSES"):
            witnesses_in(bad)
    with pytest.raises(Exception, match="and the URL must begin with https:// or http://"):
        witnesses_in(f"{key} example.org")
    with pytest.raises(
        Exception, match="and the URL must have a host; a port must be from 1 to 65535"
    ):
        witnesses_in(f"{key} http://w:99999")
