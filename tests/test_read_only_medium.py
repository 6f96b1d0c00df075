"""A chain on a medium that can only be read: looking at it and asking works, writing is refused."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from backend.base.clock import now_ms
from backend.base.settings import Settings
from backend.chain.flight import as_mapping
from backend.mempool.idempotency_keys import IdempotencyKey
from backend.storage.block_store import BlockStore
from backend.trust.log.tree import HistoryTree
from backend.verify.folder_check import FolderCheck
from tests.api.processes import living, ran
from tests.faults.disks import mounted as mounted_at
from tests.faults.disks import read_only
from tests.flights import flight, flights
from tests.submitting import accept_in, sealing
from tests.test_cli import call
from tests.verify.backup.house import House, copied

pytestmark = pytest.mark.slow

NUMBER = as_mapping(flight(3))


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder, mounted so that nobody can write there, with a chain and a backup of it."""
    root = tmp_path_factory.mktemp("medium")
    house = House(root / "house")
    house.accept(flights(20, 0), IdempotencyKey("k", "00"))
    house.seal()
    house.add(5, 100)
    house.accept(flights(2, 200))
    house.back_up()
    other = copied(house, root / "other")
    with _left_by_a_kill(other):
        shutil.copytree(other.folder, house.root / "killed", symlinks=True)
    for shared in (house.root / "killed").rglob("*-shm"):
        shared.unlink()
    shutil.rmtree(house.folder / "index")
    with read_only(house.root, root / "mounted") as point:
        yield point


@contextmanager
def _left_by_a_kill(house: House) -> Iterator[None]:
    """Let the newest block and pending flights be in SQLite's logs alone."""
    with sealing(house.settings) as sealer:
        accept_in(sealer.mempool, flights(4, 300), now_ms())
        sealer.seal_pending()
        accept_in(sealer.mempool, flights(3, 400), now_ms())
        yield


@pytest.fixture
def medium(mounted: Path) -> Path:
    """The chain's folder there."""
    return mounted / "chain"


def test_it_is_verified(medium: Path) -> None:
    done = call(medium, "verify")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["height"] == 2
    assert "1 idempotency key and" in done.stderr
    assert "this check was not noted, so --since cannot build on it: cannot write" in done.stderr


def test_what_a_kill_left_in_logs_alone_is_verified_and_asked(mounted: Path) -> None:
    killed = mounted / "killed"
    logs = [path for path in killed.rglob("*-wal") if path.stat().st_size]
    assert {path.parent.name for path in logs} == {"mempool", "index"}
    done = call(killed, "verify")
    assert done.returncode == 0, done.stderr
    assert "3 transactions are pending" in done.stderr
    assert "the index agrees with every block" in done.stderr
    assert json.loads(call(killed, "tip").stdout)["pending"] == 3
    number, day = NUMBER["OP_CARRIER_FL_NUM"], NUMBER["FL_DATE"]
    asked = call(
        killed, "query", "filter_transactions", f"OP_CARRIER_FL_NUM={number}", f"FL_DATE={day}"
    )
    assert json.loads(asked.stdout)["count"] == 1, asked.stderr


def test_tip_blocks_and_questions_are_answered(medium: Path) -> None:
    number, day = NUMBER["OP_CARRIER_FL_NUM"], NUMBER["FL_DATE"]
    of_day = (f"OP_CARRIER_FL_NUM={number}", f"FL_DATE={day}", "engine=scan")
    shown, tip, answer = (
        json.loads(call(medium, *asked).stdout)
        for asked in (("show", "tip"), ("tip",), ("query", "filter_transactions", *of_day))
    )
    assert len(shown["transactions"]) == 5
    assert (tip["height"], tip["transactions"], tip["pending"]) == (2, 25, 2)
    assert answer["count"] == 1


def test_a_backup_is_made_of_it_and_one_on_it_is_verified_and_restored(
    mounted: Path, medium: Path, tmp_path: Path
) -> None:
    assert call(mounted / "backup", "verify").returncode == 0
    copied = call(medium, "backup", str(tmp_path / "backup"))
    restored = call(tmp_path / "restored", "restore", str(mounted / "backup"))
    assert [json.loads(done.stdout)["pending"] for done in (copied, restored)] == [2, 2]


def test_a_service_says_why_it_is_not_ready_there(medium: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "service"  # where its own log is
    elsewhere.symlink_to(medium)
    with living(elsewhere, "--only-http") as service:
        ready = service.get("/health/ready")
        assert ready.status_code == 503
        (message,) = [reason for reason in ready.json()["reasons"] if "the disk of" in reason]
        assert "is read-only: flights are neither accepted nor sealed; see" in message
        assert message.endswith("check the disk, and mount it for writing")
        assert service.get("/transactions/3").status_code == 200
        refused = service.post()
        assert refused.status_code == 503, refused.text
        assert "Read-only file system" in refused.json()["detail"]


def test_a_disk_that_had_errors_is_called_read_only_however_linux_marks_it(tmp_path: Path) -> None:
    """ext4 refuses writes then; statvfs says nothing of that since Linux 6.15."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 * 2**20)
    if os.geteuid() or ran("mkfs.ext4", "-q", image).returncode:
        pytest.skip("only root may make and mount a disk")
    with mounted_at(tmp_path / "disk", "-o", "loop", image) as disk:
        settings = Settings(dir=str(disk / "chain"), min_free_bytes=0)
        done = call(settings.folder, "import", "--generate", "5", FLIGHTCHAIN_MIN_FREE_BYTES=0)
        assert done.returncode == 0, done.stderr
        with closing(BlockStore(settings.folder)) as store:
            check = FolderCheck(settings, store, HistoryTree(store))
            assert check.problems() == []
            ran("mount", "-o", "remount,abort", disk)
            (message,) = check.problems()
    assert f"the disk of {settings.folder} is read-only: flights are neither" in message


def test_writing_is_refused_in_one_line(medium: Path) -> None:
    done = call(medium, "mine", "--once")
    assert done.returncode == 1
    assert "Read-only file system; mount its disk for writing" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr
