"""A witness that no one here wrote, filippo.io/torchwood's litewitness, cosigns our checkpoints."""

import base64
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from backend.chain import merkle
from backend.storage.block_store import BlockStore
from backend.trust.log import notes
from backend.trust.log.notes import COSIGNATURE, VerifierKey, signed_at
from backend.trust.log.secret_keys import log_key
from backend.trust.log.tree import HistoryTree
from backend.trust.witness.cosign_requests import Asker, WitnessAddress
from tests.api.processes import ending, free_port, until
from tests.api.worlds import seal, settings_for
from tests.flights import flights
from tests.go_programs import installed, ran
from tests.trust.proofs.proofs import Judge

pytestmark = pytest.mark.slow

LITEWITNESS = "filippo.io/torchwood/cmd/litewitness@v0.9.0"
NAME = "example.org/litewitness"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a chain of a few blocks."""
    chain = tmp_path / "chain"
    seal(settings_for(chain), [flights(3, serial) for serial in range(0, 30, 3)])
    return chain


@pytest.fixture
def litewitness(folder: Path, tmp_path: Path) -> Iterator[WitnessAddress]:
    """A witness that knows the log of `folder`; its key is held by an ssh-agent, as it wants."""
    program = installed(LITEWITNESS)
    if shutil.which("ssh-agent") is None:
        pytest.skip("ssh-agent is not installed")
    home = Path(f"/tmp/{sha256(str(tmp_path).encode()).hexdigest()[:16]}")  # sockets are short
    home.mkdir()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, home)
        agent, secret, database = home / "agent", home / "key", home / "db"
        stack.enter_context(running(["ssh-agent", "-D", "-a", str(agent)]))
        assert (
            ran(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(secret)]).returncode == 0
        )
        adding = ["ssh-add", "-q", str(secret)]
        until(lambda: ran(adding, SSH_AUTH_SOCK=str(agent)).returncode == 0)
        public = base64.b64decode((home / "key.pub").read_text().split()[1])
        digest = base64.b64encode(sha256(public).digest()).decode().rstrip("=")
        port = free_port()
        command = [program, "-db", str(database), "-name", NAME, "-key", f"SHA256:{digest}"]
        command += ["-ssh-agent", str(agent), "-listen", f"127.0.0.1:{port}"]
        stack.enter_context(running(command))
        until(lambda: is_listening(port))
        introduce(database, folder)
        key = VerifierKey(NAME, public[-32:], COSIGNATURE)
        yield WitnessAddress(key, f"http://127.0.0.1:{port}")


def running(command: list[str]) -> AbstractContextManager[object]:
    """A process that is ended afterwards."""
    nowhere = subprocess.DEVNULL
    return ending(subprocess.Popen(command, stdout=nowhere, stderr=nowhere), signal.SIGTERM)


def is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def introduce(database: Path, folder: Path) -> None:
    """Let the witness know the log, as its `witnessctl add-log` and `add-key` do."""
    log = log_key(folder)
    origin, root = log.verifier.name, base64.b64encode(merkle.EMPTY_ROOT).decode()
    with closing(sqlite3.connect(database, timeout=10)) as rows, rows:
        rows.execute(
            "INSERT INTO log (origin, tree_size, tree_hash) VALUES (?, 0, ?)", (origin, root)
        )
        rows.execute("INSERT INTO key (origin, key) VALUES (?, ?)", (origin, str(log.verifier)))


def test_it_cosigns_each_checkpoint_and_our_verifier_believes_it(
    folder: Path, litewitness: WitnessAddress, tmp_path: Path
) -> None:
    reports: list[str] = []
    judge = Judge(tmp_path, (folder / "log.vkey").read_text())
    with closing(BlockStore(folder)) as store:
        asker = Asker(folder, HistoryTree(store), [litewitness], reports.append)
        for serial in range(1000, 1900, 300):
            assert asker.look(), reports
            data = (folder / "cosigned").read_bytes()
            assert signed_at(notes.parse(data), litewitness.key) is not None
            verdict = judge.of(data, witness=str(litewitness.key))
            assert verdict["verdict"] == "verified"
            assert verdict["cosigned"][str(litewitness.key)].startswith("20")
            seal(settings_for(folder), [flights(1, serial + n) for n in range(7)])
    bare = judge.of((folder / "checkpoint").read_bytes(), witness=str(litewitness.key))
    assert bare["verdict"] == "refused"
    assert "not cosigned by all witnesses" in bare["reason"]


def test_it_does_not_cosign_a_log_that_was_put_back(
    folder: Path, litewitness: WitnessAddress, tmp_path: Path
) -> None:
    reports: list[str] = []
    older = tmp_path / "older"
    shutil.copytree(folder, older, symlinks=True)
    seal(settings_for(folder), [flights(1, 500)])
    seal(settings_for(older), [flights(1, 600)])
    with closing(BlockStore(folder)) as store:
        assert Asker(folder, HistoryTree(store), [litewitness], reports.append).look()
    with closing(BlockStore(older)) as store:
        assert not Asker(older, HistoryTree(store), [litewitness], reports.append).look()
    assert "does not cosign: it answers with status 422: bad consistency proof" in reports[0]
