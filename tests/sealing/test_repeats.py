"""Flights that are listed more than once: in a file, in the files of one import, in the ledger."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.chain.identity import Stored
from backend.sealing import repeats
from backend.sealing.importer import Tally, Watcher, import_all
from backend.sealing.newcomers import SourceComparison
from backend.sealing.repeats import Compared
from backend.sources import open_source
from backend.verify.audit import verify
from tests.effort import examples
from tests.flights import changed, csv_of, flights, on_disk
from tests.same_flights import CANCELLED, flown, kept_of, same_or_similar


def imported(folder: Path, *files: Sequence[Flight], watcher: Watcher | None = None) -> list[Tally]:
    """Import files of these flights with one command."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.csv" for number, _ in enumerate(files)]
    for path, rows in zip(paths, files, strict=True):
        path.write_text(csv_of(rows), encoding="utf-8")
    settings = Settings(dir=str(folder / "chain"), difficulty_bits=0)
    return import_all(settings, [open_source(path) for path in paths], watcher or Watcher())


def counts(tallies: Sequence[Tally]) -> list[tuple[int, int, int]]:
    return [(tally.imported, tally.already_there, tally.conflicts) for tally in tallies]


def assert_holds(folder: Path, rows: Sequence[Flight]) -> None:
    assert on_disk(folder / "chain").flights == list(rows)
    assert verify(folder / "chain").transactions == len(rows)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep few hashes in memory, and compare few legs at once."""
    monkeypatch.setattr(repeats, "BUFFERED", 3)
    monkeypatch.setattr(repeats, "MOST_AT_ONCE", 50)


@pytest.mark.usefixtures("small")
def test_a_file_that_holds_everything_twice_is_imported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeats, "ROWS_PER_REPORT", 2000)
    rows, reports = flights(2500), list[Compared]()
    watcher = Watcher(on_compare=reports.append)
    tallies = imported(tmp_path, [*rows, *reversed(rows)], watcher=watcher)
    assert counts(tallies) == [(2500, 2500, 0)]
    assert_holds(tmp_path, rows)
    assert [round(report.flights, -3) for report in reports] == [1000, 2000, 3000, 4000, 5000]
    assert reports[-1].fraction == 1.0  # each flight was read twice, however many groups there are
    reports.clear()
    tallies = imported(tmp_path / "few", [*rows, *rows[:130]], watcher=watcher)
    assert counts(tallies) == [(2500, 130, 0)]
    assert reports[-1] == (2630, 1.0)


@pytest.mark.usefixtures("small")
def test_files_of_one_command_are_compared_before_the_first_is_stored(tmp_path: Path) -> None:
    late = changed(flights(1)[0], ARR_DELAY=99)
    tallies = imported(tmp_path, flights(40), [*flights(60), late])
    assert counts(tallies) == [(40, 0, 0), (20, 40, 1)]
    assert_holds(tmp_path, flights(60))


def test_a_state_that_is_spelt_otherwise_is_the_same_state(tmp_path: Path) -> None:
    rows = [changed(row, DEST_STATE_NM="Georgia") for row in flights(20)]
    others = [changed(row, DEST_STATE_NM="GA", DEST_AIRPORT_ID=None) for row in rows]
    assert counts(imported(tmp_path, rows)) == [(20, 0, 0)]
    assert counts(imported(tmp_path, others)) == [(0, 20, 0)]
    assert counts(imported(tmp_path, others, rows)) == [(0, 20, 0), (0, 20, 0)]
    another_state = [changed(row, DEST_STATE_NM="Ohio") for row in rows]
    assert counts(imported(tmp_path, another_state)) == [(0, 0, 20)]
    assert_holds(tmp_path, rows)


def test_the_first_hundred_contradictions_of_a_source_are_shown() -> None:
    of_batch, of_source = SourceComparison(), SourceComparison()
    for _ in range(101):
        of_batch.note(flown(), Stored(0, 1, flown(ARR_DELAY=99)))
    assert (of_batch.conflicts, len(of_batch.first_conflicts)) == (101, 100)
    for _ in range(2):
        of_source.add(of_batch)
    assert (of_source.conflicts, len(of_source.first_conflicts)) == (202, 100)


sources = st.lists(st.lists(same_or_similar, min_size=1, max_size=6), min_size=1, max_size=3)


@hypothesis_settings(max_examples=examples(5), deadline=None)
@given(st.lists(sources, max_size=2))
@example([[[flown()], [flown(AIR_TIME=None), flown(**CANCELLED)]]])
def test_the_chain_holds_what_a_plain_loop_keeps(commands: list[list[list[Flight]]]) -> None:
    kept: list[Flight] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        for files in commands:
            expected = []
            for rows in files:
                new, repeated, conflicts = kept_of(rows, kept)
                expected.append((len(new), repeated, conflicts))
                kept += new
            assert counts(imported(folder, *files)) == expected
        if commands:
            assert_holds(folder, kept)
