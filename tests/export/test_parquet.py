"""Exports hold exactly the flights of the chain, grow with it, and are known when they do not."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from itertools import pairwise
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from backend.base import files
from backend.base.errors import DamagedBlock, WriteFailed, WriterBusy
from backend.base.progress import no_progress as silent
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight
from backend.chain.placeholder import VOID
from backend.cli import export_commands
from backend.cli.export_commands import export as command
from backend.export import parquet
from backend.export.manifest import ExportRefused
from backend.export.parquet import check, export
from backend.sources.packed import files_of
from tests.api.worlds import generated, seal, settings_for
from tests.dying import killed_at
from tests.flights import on_disk
from tests.storage.chains import flip

COUNT = 700  # of a week, from the end of a year on


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain whose flights are of two years, and one of them of none."""
    folder = tmp_path_factory.mktemp("made") / "chain"
    rows = [*map(moved, generated(COUNT)), VOID]
    seal(settings_for(folder), [rows[:300], [], rows[300:]])
    return folder


def moved(flight: Flight) -> Flight:
    """Move the flight by 364 days, so that a year ends among the flights."""
    day = date.fromordinal(date.fromisoformat(str(flight[2])).toordinal() + 364)
    return (day.year, day.isoweekday(), day.isoformat(), *flight[3:])


@pytest.fixture
def chain(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "chain", symlinks=True)
    return tmp_path / "chain"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "export"


def add(chain: Path, count: int) -> None:
    seal(settings_for(chain), [[moved(flight) for flight in generated(COUNT + count)[COUNT:]]])


def rows_in(folder: Path) -> list[dict[str, Any]]:
    rows = [
        row | {"YEAR": int(path.parent.parent.name.removeprefix("YEAR="))}
        for path in data(folder)
        for row in pq.read_table(path, partitioning=None).to_pylist()
    ]
    return sorted(rows, key=lambda row: int(row["TRANSACTION_ID"]))


def data(folder: Path) -> list[Path]:
    return sorted((folder / "flights").rglob("*.parquet"))


def files_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_flight_comes_back_with_its_id_time_and_block(
    chain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "MOST_ROWS", 250)
    result = export(chain, folder, silent)
    held = on_disk(chain)
    rows = rows_in(folder)
    assert len(rows) == COUNT + 1 == result.new_flights == result.manifest.flights
    for number, (row, flight) in enumerate(zip(rows, held.flights, strict=True)):
        record = {name: row[name] for name in FIELD_NAMES}
        record["FL_DATE"] = record["FL_DATE"].isoformat()
        assert record == dict(zip(FIELD_NAMES, flight, strict=True))
        assert round(row["timestamp"].timestamp() * 1000) == held.timestamps[number]
        assert (row["TRANSACTION_ID"], row["BLOCK_HEIGHT"]) == (number, 1 if number < 300 else 3)
    years = {path.parent.parent.name: path.parent.name for path in data(folder)}
    assert {"YEAR=1900", "YEAR=2015", "YEAR=2016"} == years.keys()
    assert len(data(folder)) > 3
    check(chain, folder, silent)


def test_files_and_manifest_say_what_they_stand_for(chain: Path, folder: Path) -> None:
    manifest = export(chain, folder, silent).manifest
    document = json.loads((folder / "manifest.json").read_text())
    assert (document["height"], document["tip_hash"]) == (3, manifest.tip_hash)
    assert {folder / path for path in manifest.files()} == set(data(folder))
    for name, file in manifest.files().items():
        content = (folder / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.bytes, file.sha256)
        about = pq.read_metadata(folder / name)
        assert about.num_rows == file.flights
        assert about.metadata[b"flightchain.height"] == b"3"
        assert about.metadata[b"flightchain.tip_hash"].decode() == manifest.tip_hash
        assert about.metadata[b"flightchain.genesis_hash"].decode() == manifest.genesis_hash


def test_row_groups_of_other_carriers_can_be_skipped(
    chain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROWS_OF_GROUP", 40)
    export(chain, folder, silent)
    path = max(data(folder), key=lambda path: path.stat().st_size)
    about = pq.read_metadata(path)
    carrier = about.schema.to_arrow_schema().get_field_index("OP_CARRIER_AIRLINE_ID")
    groups = [about.row_group(n).column(carrier) for n in range(about.num_row_groups)]
    ends = [(group.statistics.min, group.statistics.max) for group in groups]
    assert len(ends) > 5
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    assert {group.compression for group in groups} == {"ZSTD"}


def test_only_what_is_new_is_added(chain: Path, folder: Path) -> None:
    export(chain, folder, silent)
    before = files_in(folder)
    assert export(chain, folder, silent).new_flights == 0
    assert files_in(folder) == before
    add(chain, 50)
    assert export(chain, folder, silent).new_flights == 50
    after = files_in(folder)
    assert all(after[name] == before[name] for name in before if name != "manifest.json")
    assert len(rows_in(folder)) == COUNT + 51
    assert [run.height for run in check(chain, folder, silent).runs] == [3, 4]


def test_an_export_that_lacks_a_file_is_neither_called_whole_nor_added_to(
    chain: Path, folder: Path
) -> None:
    export(chain, folder, silent)
    path = data(folder)[0]
    content = path.read_bytes()
    for harm, words in (
        (lambda: path.write_bytes(content[1:]), rf"has {len(content) - 1:,} bytes instead of "),
        (path.unlink, r"is missing.* put back a copy of it, or make"),
    ):
        harm()
        before = files_in(folder)
        with pytest.raises(ExportRefused, match=words):
            export(chain, folder, silent)
        add(chain, 10)
        with pytest.raises(ExportRefused, match=words):
            export(chain, folder, silent)
        assert files_in(folder) == before
    path.write_bytes(content)
    assert export(chain, folder, silent).new_flights == 20


def test_what_file_managers_leave_in_a_folder_does_no_harm(chain: Path, folder: Path) -> None:
    left = [folder / ".DS_Store", folder / "flights" / ".directory", folder / "Thumbs.db"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    export(chain, folder, silent)
    add(chain, 10)
    assert export(chain, folder, silent).new_flights == 10
    check(chain, folder, silent)
    assert all(path.exists() for path in left)


def test_an_export_beside_another_says_to_wait(chain: Path, folder: Path) -> None:
    folder.mkdir()
    with (
        files.FileLock(folder / "export.lock"),
        pytest.raises(WriterBusy, match="another export runs there; export again when it has"),
    ):
        export(chain, folder, silent)


@pytest.mark.parametrize("name", ["notes.txt", "flights/YEAR=2013/notes.parquet", "unfinished/x"])
def test_a_folder_with_other_files_is_refused(chain: Path, folder: Path, name: str) -> None:
    for is_begun in (False, True):
        other = folder / name
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("mine")
        with pytest.raises(ExportRefused, match=r"holds.*which is not part of an export"):
            export(chain, folder, silent)
        assert other.read_text() == "mine"
        other.unlink()
        if not is_begun:
            export(chain, folder, silent)


def test_without_a_chain_nothing_is_exported(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ExportRefused, match="nothing holds no chain"):
        export(tmp_path / "nothing", folder, silent)
    assert not folder.exists()


def test_a_block_that_does_not_follow_the_one_below_is_not_exported(
    template: Path, folder: Path, tmp_path: Path
) -> None:
    for name, flights in (("ours", generated(1)), ("other", generated(2)[1:])):
        shutil.copytree(template, tmp_path / name, symlinks=True)
        seal(settings_for(tmp_path / name, block_file_bytes=1), [flights, generated(3)[2:]])
    ours, other = (tmp_path / name / "blocks" for name in ("ours", "other"))
    for path in (ours / "heights.dat", other / "heights.dat"):
        assert len(path.read_bytes()) == 6 * 64
    entries = (ours / "heights.dat").read_bytes()[:-64] + (other / "heights.dat").read_bytes()[-64:]
    (ours / "heights.dat").write_bytes(entries)
    shutil.copy(other / "blocks-0000000005.dat", ours)
    with pytest.raises(DamagedBlock, match=r"block 5 is damaged: it names .* below it, not"):
        export(tmp_path / "ours", folder, silent)


def test_a_chain_that_has_lost_blocks_is_not_called_another_one(
    template: Path, chain: Path, folder: Path, tmp_path: Path
) -> None:
    longer = tmp_path / "longer"
    shutil.copytree(template, longer, symlinks=True)
    seal(settings_for(longer), [generated(1)])
    export(longer, folder, silent)
    add(chain, 1)  # after its older backup was restored
    for ledger in (template, chain):
        for act in (export, check):
            with pytest.raises(ExportRefused, match=r"has no such block: it has lost blocks, or "):
                act(ledger, folder, silent)


def test_the_export_of_another_chain_is_refused(chain: Path, folder: Path, tmp_path: Path) -> None:
    export(chain, folder, silent)
    other = tmp_path / "other"
    seal(settings_for(other), [generated(10)])
    for act in (export, check):
        with pytest.raises(ExportRefused, match="another chain, whose block"):
            act(other, folder, silent)
    (folder / "manifest.json").unlink()
    with pytest.raises(ExportRefused, match="has no manifest"):
        export(chain, folder, silent)


CALLS = ("sync", "rename", "write_new")


def test_an_interrupted_export_looks_whole_nowhere_and_is_completed(
    chain: Path, folder: Path, tmp_path: Path
) -> None:
    with killed_at(4, files, CALLS):  # when the manifest was begun
        export(chain, folder, silent)
    with pytest.raises(ExportRefused, match="no flights yet: a run was interrupted, or still"):
        check(chain, folder, silent)
    left = folder / "flights/YEAR=2013/MONTH=7/flights-000000000999.parquet"  # of fewer blocks
    left.parent.mkdir(parents=True)
    left.write_bytes(b"PAR1")
    export(chain, folder, silent)
    assert not left.exists()
    earlier = files_in(folder)
    add(chain, 300)
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept, copy_function=shutil.copy2)
    for nth in range(1, 100):
        shutil.rmtree(folder)
        shutil.copytree(kept, folder, copy_function=shutil.copy2)
        exported = None
        with killed_at(nth, files, CALLS):
            exported = export(chain, folder, silent)
        if exported:
            break
        assert json.loads((folder / "manifest.json").read_text())["height"] == 3
        assert all(files_in(folder)[name] == earlier[name] for name in earlier)
        if files_in(folder).keys() > earlier.keys():
            with pytest.raises(ExportRefused, match="a run was interrupted"):
                check(chain, folder, silent)
        export(chain, folder, silent)
        check(chain, folder, silent)
        assert list((folder / "unfinished").iterdir()) == []
    assert nth > 5


def test_a_full_disk_is_named_with_what_is_needed(
    chain: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "free_bytes", lambda _: 100)
        with pytest.raises(WriteFailed, match="100 bytes free, but 21,030 are needed"):
            export(chain, folder, silent)
    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", _no_space)
        with pytest.raises(WriteFailed, match=r"cannot write .*No space left"):
            export(chain, folder, silent)
    assert data(folder) == []
    assert export(chain, folder, silent).new_flights == COUNT + 1


def _no_space(*_: object, **more: object) -> None:
    raise OSError(28, os.strerror(28))


def _rewrite(folder: Path, change: Callable[[Any], Any], **options: bool) -> None:
    """Change the flights of a file, and write a manifest that names the changed file."""
    path = max(data(folder), key=lambda path: path.stat().st_size)
    table = pq.read_table(path, partitioning=None)
    pq.write_table(change(table), path, **options)
    content = path.read_bytes()

    def name_changed(manifest: dict[str, Any]) -> None:
        for file in manifest["runs"][0]["files"]:
            if folder / file["path"] == path:
                file.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())

    _edit(folder, name_changed)


def _edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what the manifest says."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _forget_file(manifest: dict[str, Any]) -> None:
    manifest["flights"] -= manifest["runs"][0]["files"].pop()["flights"]


def _go_back(manifest: dict[str, Any]) -> None:
    """Add a run that ends below its beginning, and one that goes up again."""
    below, last = manifest["runs"][-2:]
    back = below | {"first": last["height"] + 1, "files": []}
    manifest["runs"] += [back, last | {"files": []}]


def _move_file(run: int, to: int, manifest: dict[str, Any]) -> None:
    manifest["runs"][to]["files"].append(manifest["runs"][run]["files"].pop())


def _to_another_year(folder: Path) -> None:
    """Move a file, and write a manifest that names its new place."""

    def move(manifest: dict[str, Any]) -> None:
        file = manifest["runs"][0]["files"][-1]
        path = folder / file["path"]
        file["path"] = file["path"].replace("YEAR=2016", "YEAR=2017")
        (folder / file["path"]).parent.mkdir(parents=True)
        path.rename(folder / file["path"])

    _edit(folder, move)


def _flip(folder: Path) -> None:
    path = data(folder)[-1]
    flip(path, path.stat().st_size // 3)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_flip, "differs .* in sha256|cannot be read"),
        (lambda folder: data(folder)[0].unlink(), "cannot be read"),
        (lambda folder: data(folder)[0].write_bytes(b""), "cannot be read"),
        (lambda folder: _rewrite(folder, lambda table: table.slice(1)), "other flights"),
        (lambda folder: _rewrite(folder, lambda table: table.take([1, 0])), "other flights"),
        (
            lambda folder: shutil.copy(
                data(folder)[0], data(folder)[0].with_name("flights-999999999999.parquet")
            ),
            "is not in manifest.json",
        ),
        *(
            (
                lambda folder, name=name: _rewrite(
                    folder,
                    lambda table: table.replace_schema_metadata(
                        table.schema.metadata | {f"flightchain.{name}".encode(): b"2"}
                    ),
                ),
                f"differs .* in flightchain.{name};",
            )
            for name in ("format", "genesis_hash", "height", "tip_hash")
        ),
        (
            lambda folder: _rewrite(folder, lambda table: table, write_statistics=False),
            "has no or wrong statistics of AIR_TIME, .*, timestamp, by which programs skip flights",
        ),
        (_to_another_year, "differs .* in path;"),
        (lambda folder: (folder / "manifest.json").write_text("{}"), "is damaged"),
        (
            lambda folder: (folder / "manifest.json").write_bytes(b'{"tip_hash":"\xff"'),
            "is damaged",
        ),
        (lambda folder: _edit(folder, lambda known: known.update(format=2)), "not of format 1"),
        (shutil.rmtree, "holds no export"),
    ],
    ids=[
        *("flipped", "missing", "empty", "short", "swapped", "more"),
        *("of format", "of chain", "of height", "of tip", "unbounded", "moved", "manifest"),
        *("no UTF-8", "format", "nothing"),
    ],
)
def test_check_finds_what_is_not_as_in_the_chain(
    chain: Path, folder: Path, harm: Callable[[Path], object], words: str
) -> None:
    export(chain, folder, silent)
    harm(folder)
    with pytest.raises(ExportRefused, match=words):
        check(chain, folder, silent)


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ([0, 2, 3, None, None, None], []),
        ([1, 2, 3, None, None, None], ["a"]),
        ([0, 2, 4, None, None, None], ["a"]),
        ([0, 2, 3, 3, None, None], ["a"]),
        ([0, 2, 3, None, 3, None], ["a"]),
    ],
    ids=["same", "lowest", "highest", "nulls", "only nulls"],
)
def test_bounds_and_nulls_of_each_row_group_are_compared(
    tmp_path: Path, written: list[int | None], wrong: list[str]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": written}), path, row_group_size=2)
    rows = pa.table({"a": [0, 2, 3, None, None, None]})
    assert list(parquet.wrong_statistics(path, rows)) == wrong


def _changes(part: Any) -> Iterator[tuple[object, Callable[[], object]]]:
    """Calls that each spoil one place in or below `part` of a manifest, and the places' names."""
    for at, value in list(part.items() if isinstance(part, dict) else enumerate(part)):
        if isinstance(part, list):
            yield at, partial(part.pop, at)
            yield at, partial(part.insert, at, value)
        if isinstance(value, dict | list):
            yield from _changes(value)
        elif isinstance(value, int):
            yield from ((at, partial(part.update, {at: value + by})) for by in (-1, 1))
        else:
            yield at, partial(part.update, {at: f"{value[:-1]}x"})


def test_a_manifest_changed_at_any_place_is_neither_agreed_with_nor_added_to(
    chain: Path, folder: Path
) -> None:
    for count in (0, 50):
        add(chain, count)
        export(chain, folder, silent)
    text = (folder / "manifest.json").read_text()
    add(chain, 10)
    for number, (name, _) in enumerate(_changes(json.loads(text))):
        manifest = json.loads(text)
        list(_changes(manifest))[number][1]()
        _edit(folder, methodcaller("update", manifest))
        before = files_in(folder)
        for act in (check, export) if name != "sha256" else (check,):
            with pytest.raises(
                ExportRefused, match=r"; (put back .* or make a new export|keep this|choose an)"
            ):
                act(chain, folder, silent)
        assert files_in(folder) == before
    (folder / "manifest.json").write_text(text)
    assert export(chain, folder, silent).new_flights == 10
    text = (folder / "manifest.json").read_text()
    for harm, words, acts in (
        (_forget_file, r"names .*, where the chain has", (check, export)),
        (_go_back, "names blocks 7 to 5, where block 7 comes next", (check, export)),
        (partial(_move_file, 0, 1), "has other files than", (check,)),
        (partial(_move_file, 1, 0), "has other files than", (check,)),
    ):
        (folder / "manifest.json").write_text(text)
        check(chain, folder, silent)
        _edit(folder, harm)
        for act in acts:
            with pytest.raises(ExportRefused, match=words):
                act(chain, folder, silent)


def test_the_whole_folder_can_be_imported(chain: Path, folder: Path) -> None:
    export(chain, folder, silent)
    (folder / "unfinished/flights-000000000000.parquet").write_bytes(b"PAR1")
    read = {file.label for file in files_of(folder)}
    assert read == {str(path.relative_to(folder.parent)) for path in data(folder)}


def test_without_pyarrow_the_command_says_how_to_install_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_commands, "find_spec", lambda _: None)
    done = CliRunner().invoke(command, ["parquet", str(folder)], obj=settings_for(folder))
    assert "pip install -r backend/sources/parquet/requirements.txt" in str(done.exception)
