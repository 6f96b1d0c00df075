"""Numbers of several processes: added up, taken over, never lost with a process."""

import gc
import os
from pathlib import Path

import pytest

from backend.base.files import FileLock, is_locked
from backend.base.processes import shared_numbers
from backend.base.processes.shared_numbers import (
    BOUNDS_S,
    PLACES,
    SUFFIX,
    SUM,
    Numbers,
    OwnUse,
    run_folder,
    totals,
)
from backend.base.settings import Settings


def shared(folder: Path | None, role: str = "worker") -> Numbers:
    assert folder is not None
    numbers = Numbers()
    assert numbers.share(folder, role)
    return numbers


def test_numbers_of_all_processes_are_added_up(tmp_path: Path) -> None:
    living = [shared(tmp_path) for _ in range(3)]
    for amount, numbers in enumerate(living, 1):
        numbers.add(numbers.place(f"only_{amount}"), 1)
        numbers.add(numbers.place("all", "a label"), amount)
        numbers.set(numbers.place("now", lives=True), amount)
    counts = totals(tmp_path)
    assert counts["all", "a label"] == [6]
    assert [counts[f"only_{i}",] for i in (1, 2, 3)] == [[1], [1], [1]]
    assert counts["now",] == [6]
    del numbers, living[1:]
    gc.collect()
    assert totals(tmp_path)["now",] == [1]
    assert totals(tmp_path)["all", "a label"] == [6]


def test_the_counts_of_an_ended_process_stay_and_go_on_in_the_next(tmp_path: Path) -> None:
    first, other = shared(tmp_path), shared(tmp_path)
    other.add(other.place("count"), 100)
    for i in range(5):
        first.add(first.place("count"), 1)
        first.set(first.place("now", lives=True), 7)
        assert totals(tmp_path) == {("count",): [100 + i + 1], ("now",): [7]}
        del first
        gc.collect()
        assert totals(tmp_path) == {("count",): [100 + i + 1], ("now",): [0]}
        first = shared(tmp_path)
    assert totals(tmp_path)["now",] == [0]
    assert len(list(tmp_path.iterdir())) == 2
    del first


def test_roles_do_not_take_over_each_others_numbers(tmp_path: Path) -> None:
    shared(tmp_path, "worker")
    shared(tmp_path, "miner")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"miner-0{SUFFIX}",
        f"worker-0{SUFFIX}",
    ]


def test_a_name_half_written_is_no_name(tmp_path: Path) -> None:
    numbers = shared(tmp_path)
    numbers.add(numbers.place("whole"), 1)
    del numbers
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    end = data.rindex(b"\n") + 1
    path.write_bytes(data[:end] + b'[false, 1, "tor' + data[end + 15 :])
    assert totals(tmp_path) == {("whole",): [1]}
    numbers = shared(tmp_path)
    numbers.add(numbers.place("next"), 2)
    assert totals(tmp_path) == {("whole",): [1], ("next",): [2]}


def test_a_count_kept_elsewhere_is_followed_from_where_the_last_process_ended(
    tmp_path: Path,
) -> None:
    for counts in ([2, 5, 5], [0, 4]):
        numbers = shared(tmp_path)
        for count in counts:
            numbers.follow(numbers.place("hits"), count)
        del numbers
    assert totals(tmp_path) == {("hits",): [9]}


def test_durations_are_counted_at_the_bound_they_do_not_exceed() -> None:
    numbers = Numbers()
    durations = [0.0, BOUNDS_S[0], BOUNDS_S[0] * 1.001, 60.0, 60.1]
    numbers.observe(numbers.histogram("seconds"), durations)
    counts = numbers.totals()["seconds",]
    assert counts[:2] == [2, 1]
    assert counts[len(BOUNDS_S) - 1 : SUM] == [1, 1]
    assert sum(counts[:SUM]) == len(durations)
    assert counts[SUM] == pytest.approx(sum(durations))


def test_when_there_is_no_room_the_rest_is_left_out_and_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    numbers = Numbers()
    for i in range(PLACES):
        numbers.add(numbers.place("count", str(i)))
    numbers.observe(numbers.histogram("seconds"), [1.0])
    counts = numbers.totals()
    assert 1000 < len(counts) < PLACES
    assert set(map(tuple, counts.values())) == {(1.0,)}
    before = len(caplog.records)
    numbers.observe(numbers.histogram("seconds"), [1.0])
    assert len(caplog.records) == before == PLACES - len(counts) + 1


def test_where_no_file_can_be_made_counting_goes_on_and_the_log_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    numbers = Numbers()
    assert not numbers.share(tmp_path / "file" / "folder", "worker")
    numbers.add(numbers.place("count"), 3)
    assert numbers.totals() == {("count",): [3]}
    assert "Not a directory" in caplog.text


def test_a_process_counts_what_it_uses(tmp_path: Path) -> None:
    numbers = shared(tmp_path)
    use = OwnUse(numbers, "worker")
    use.sample()
    use.sample()
    counts = totals(tmp_path)
    assert counts[shared_numbers.PROCESSES, "worker"] == [1]
    assert counts[shared_numbers.PROCESS_CPU, "worker"][0] > 0
    assert 10**6 < counts[shared_numbers.PROCESS_MEMORY, "worker"][0] < 10**10


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
        shared(folder)
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
        shared(folder)
    assert len(list(mine.iterdir())) == 1
    assert not any(memory.iterdir())


def test_where_no_folder_can_be_made_there_is_none_and_the_log_says_why(
    memory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shared_numbers, "PREFIX", "no/such/folder-")
    with run_folder(Settings()) as folder:
        assert folder is None
    assert "No such file" in caplog.text
