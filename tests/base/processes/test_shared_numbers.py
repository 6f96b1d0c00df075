"""Numbers of several processes: added up, taken over, never lost with a process."""

import os
from errno import ENOSPC
from pathlib import Path
from unittest.mock import Mock

import pytest

from backend.base.files import FileLock, is_locked
from backend.base.processes import shared_numbers
from backend.base.processes.shared_numbers import (
    BOUNDS_S,
    SUFFIX,
    SUM,
    MinerNumbers,
    Numbers,
    note_own_use,
    run_folder,
    totals,
)
from backend.base.settings import Settings


def shared(folder: Path | None, role: str = "worker") -> Numbers:
    assert folder is not None
    numbers = Numbers()
    assert numbers.share(folder, role)
    return numbers


def die(numbers: Numbers) -> None:
    """Leave what a killed process leaves: its file, which nobody holds any more."""
    assert numbers.file_lock is not None
    numbers.file_lock.release()


def test_numbers_of_all_processes_are_added_up(tmp_path: Path) -> None:
    living = [shared(tmp_path) for _ in range(3)]
    for amount, numbers in enumerate(living, 1):
        numbers.add((f"only_{amount}",), 1)
        numbers.add(("all", "a label"), amount)
        numbers.set(("now",), amount)
        numbers.write()
    counts = totals(tmp_path)
    assert counts["all", "a label"] == [6]
    assert [counts[f"only_{i}",] for i in (1, 2, 3)] == [[1], [1], [1]]
    assert counts["now",] == [6]
    die(living[1])
    die(living[2])
    assert totals(tmp_path)["now",] == [1]
    assert totals(tmp_path)["all", "a label"] == [6]
    die(living[0])


def test_the_counts_of_an_ended_process_stay_and_go_on_in_the_next(tmp_path: Path) -> None:
    first, other = shared(tmp_path), shared(tmp_path)
    other.add(("count",), 100)
    other.write()
    for i in range(5):
        first.add(("count",), 1)
        first.set(("now",), 7)
        first.write()
        assert totals(tmp_path) == {("count",): [100 + i + 1], ("now",): [7]}
        first.add(("count",), 1000)  # is not written before it is killed
        die(first)
        assert totals(tmp_path) == {("count",): [100 + i + 1], ("now",): [0]}
        first = shared(tmp_path)
        assert totals(tmp_path) == {("count",): [100 + i + 1]}
    assert len(list(tmp_path.iterdir())) == 2 * 2
    die(first)
    die(other)


def test_roles_do_not_take_over_each_others_numbers(tmp_path: Path) -> None:
    for role in ("worker", "miner"):
        die(shared(tmp_path, role))
    assert {path.name for path in tmp_path.glob("*.json")} == {
        f"miner-0{SUFFIX}",
        f"worker-0{SUFFIX}",
    }


def test_a_damaged_file_does_not_keep_others_from_being_added_up(tmp_path: Path) -> None:
    numbers = [shared(tmp_path) for _ in range(2)]
    for worker in numbers:
        worker.add(("count",), 1)
        worker.write()
        die(worker)
    first, _ = sorted(tmp_path.glob("*.json"))
    first.write_bytes(first.read_bytes()[:-5])
    assert totals(tmp_path) == {("count",): [1]}
    numbers = [shared(tmp_path) for _ in range(2)]
    assert totals(tmp_path) == {("count",): [1]}
    for worker in numbers:
        die(worker)


def test_a_count_kept_elsewhere_is_followed_from_where_the_last_process_ended(
    tmp_path: Path,
) -> None:
    for counts in ([2, 5, 5], [0, 4]):
        numbers = shared(tmp_path)
        for count in counts:
            numbers.follow(("hits",), count)
        numbers.write()
        die(numbers)
    assert totals(tmp_path) == {("hits",): [9]}


def test_durations_are_counted_at_the_bound_they_do_not_exceed() -> None:
    numbers = Numbers()
    durations = [0.0, BOUNDS_S[0], BOUNDS_S[0] * 1.001, 60.0, 60.1]
    numbers.observe(("seconds",), durations)
    counts = numbers.totals()["seconds",]
    assert counts[:2] == [2, 1]
    assert counts[len(BOUNDS_S) - 1 : SUM] == [1, 1]
    assert sum(counts[:SUM]) == len(durations)
    assert counts[SUM] == pytest.approx(sum(durations))


def test_where_no_file_can_be_made_counting_goes_on_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    numbers = Numbers()
    assert not numbers.share(tmp_path / "file" / "folder", "worker")
    numbers.add(("count",), 3)
    assert numbers.totals() == {("count",): [3]}
    assert "Not a directory" in caplog.text


def test_on_a_full_disk_counting_goes_on_and_the_log_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = shared(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(Path, "write_bytes", Mock(side_effect=OSError(ENOSPC, "the disk is full")))
        for _ in range(3):
            numbers.add(("count",), 1)
            numbers.write()
    assert caplog.text.count("the disk is full") == 1
    assert totals(tmp_path) == {}
    numbers.write()
    assert totals(tmp_path) == {("count",): [3]}
    die(numbers)


def test_a_process_counts_what_it_uses() -> None:
    numbers = Numbers()
    for _ in range(2):
        note_own_use(numbers, "worker")
    counts = numbers.totals()
    assert counts[shared_numbers.PROCESSES, "worker"] == [1]
    assert counts[shared_numbers.PROCESS_CPU, "worker"][0] > 0
    assert 10**6 < counts[shared_numbers.PROCESS_MEMORY, "worker"][0] < 10**10


def test_a_block_counts_for_others_as_soon_as_it_is_sealed(tmp_path: Path) -> None:
    """In a long round the miner does nothing else, and may be killed."""
    miner = MinerNumbers()
    miner.start(Settings(metrics_dir=str(tmp_path)))
    assert totals(tmp_path)[shared_numbers.BLOCKS_SEALED,] == [0]
    for number in (1, 2):
        miner.sealed(7, 0.5)
        assert totals(tmp_path)[shared_numbers.BLOCKS_SEALED,] == [number]
        assert totals(tmp_path)[shared_numbers.TRANSACTIONS_SEALED,] == [7 * number]
    die(miner._numbers)


# --- the folder of a run -------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(shared_numbers, "MEMORY", folder)
    return folder


def test_the_folder_of_a_run_is_removed_at_its_end(memory: Path) -> None:
    with run_folder(Settings()) as folder:
        assert folder is not None
        assert folder.parent == memory
        die(shared(folder))
    assert not any(memory.iterdir())


def test_a_forked_process_that_leaves_its_makers_frames_changes_nothing(memory: Path) -> None:
    opened = run_folder(Settings())
    folder = opened.__enter__()
    assert folder is not None
    if (child := os.fork()) == 0:
        opened.__exit__(None, None, None)
        os._exit(0)
    os.waitpid(child, 0)
    assert is_locked(folder / shared_numbers.LOCK_NAME)
    opened.__exit__(None, None, None)
    assert not any(memory.iterdir())


def test_what_a_killed_service_left_behind_is_removed_and_nothing_else(memory: Path) -> None:
    left, running, young = (memory / f"{shared_numbers.PREFIX}{name}" for name in "abc")
    other = memory / "other"
    for folder in (left, running, young, other):
        folder.mkdir()
        (folder / shared_numbers.LOCK_NAME).touch()
        if folder != young:
            os.utime(folder, (1, 1))
    with FileLock(running / shared_numbers.LOCK_NAME), run_folder(Settings()) as mine:
        assert set(memory.iterdir()) == {running, young, other, mine}


def test_a_folder_that_is_set_stays(memory: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    with run_folder(Settings(metrics_dir=str(mine))) as folder:
        assert folder == mine
        die(shared(folder))
    assert len(list(mine.iterdir())) == 2
    assert not any(memory.iterdir())


def test_where_no_folder_can_be_made_there_is_none_and_the_log_says_why(
    memory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared_numbers, "PREFIX", "no/such/folder-")
    with run_folder(Settings()) as folder:
        assert folder is None
    assert "No such file" in caplog.text
