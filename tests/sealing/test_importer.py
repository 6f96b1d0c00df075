"""Imports: exactly what the source holds, once, whatever dies and however often it is run again."""

import errno
import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

from backend.base import clock
from backend.base.errors import EXCERPT_CHARACTERS, BadRow, FlightchainError, WriteFailed
from backend.base.settings import PROJECT, Settings
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import Flight
from backend.index.writer import IndexWriter, SealedBlock
from backend.sealing import importer, source_check
from backend.sealing.block_builder import Job, build
from backend.sealing.child import Send
from backend.sealing.importer import Tally, Watcher, import_all
from backend.sealing.sealer import Sealer
from backend.sealing.source_check import Checked
from backend.sealing.trusted_clock import DOUBTED, LEAP_MS
from backend.sources import RawRows, Source, open_source
from backend.sources.flight_file import FlightFile
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from backend.verify.audit import verify
from tests.api.processes import ending, environment, until
from tests.faults.house import IMPORT_COMMAND
from tests.flights import csv_of, flights, import_flights, on_disk, transactions_in
from tests.storage.chains import NOTHING_PENDING
from tests.submitting import accept_in
from tests.test_cli import call

pytestmark = pytest.mark.slow

WAIT_S = 30
STALL_S = 60.0  # the child that stands still is killed
PROMPT_S = 20.0


def settings_for(folder: Path) -> Settings:
    return Settings(dir=str(folder / "chain"), difficulty_bits=4)


@pytest.fixture
def chosen(tmp_path: Path) -> Settings:
    return settings_for(tmp_path)


@pytest.fixture
def one_block_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "BLOCKS_AT_ONCE", 1)


def written(folder: Path, rows: Sequence[Sequence[object]], name: str = "flights.csv") -> Path:
    path = folder / name
    path.write_text(csv_of(rows), encoding="utf-8")
    return path


def assert_holds(settings: Settings, expected: Sequence[Flight]) -> None:
    """Check that the chain holds these flights alone, in this order, and is sound."""
    assert on_disk(settings.folder).flights == list(expected)
    report = verify(settings.folder)
    assert report.transactions == len(expected)
    assert report.index == "the index agrees with every block"


class Scripted(Source):
    """A source of flights in batches of 1000; `at(n)` is called before batch n, by the reader."""

    label = "scripted"

    def __init__(self, rows: Sequence[Flight], at: Callable[[int], None]) -> None:
        self._rows, self._at = rows, at

    def rows(self) -> Generator[RawRows, None, None]:
        for number, start in enumerate(range(0, len(self._rows), 1000)):
            self._at(number)
            part = self._rows[start : start + 1000]
            columns = [[row[i] for row in part] for i in range(len(FIELD_NAMES))]
            yield RawRows(columns, range(start + 1, start + 1 + len(part)), "scripted, row")

    def progress(self) -> float:
        return 0.5


# --- what an import makes --------------------------------------------------------------------


def test_the_chain_holds_the_rows_of_the_file_in_order(tmp_path: Path, chosen: Settings) -> None:
    before_ms = time.time_ns() // 1_000_000
    tally = import_flights(chosen, open_source(written(tmp_path, flights(2345))))
    assert tally == Tally("flights.csv", 2345, blocks=3, first=0, last=2344, fraction=1.0)
    contents = on_disk(chosen.folder)
    assert contents.sizes == [1000, 1000, 345]
    assert all(before_ms - 50 <= time <= before_ms + 60_000 for time in contents.timestamps)
    assert_holds(chosen, flights(2345))


@pytest.mark.usefixtures("one_block_at_once")
def test_the_index_lacks_one_batch_at_most_whenever_the_import_is_killed(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are sealed by then that the index does not have: few, or the next start takes long."""
    take_in, behind = IndexWriter.apply, list[int]()

    def slowly(writer: IndexWriter, blocks: Sequence[SealedBlock]) -> None:
        time.sleep(0.2)  # the next batch is built meanwhile
        position = writer.position()
        with closing(BlockStore(chosen.folder)) as store:
            behind.append(store.height() - (position.height if position else -1))
        take_in(writer, blocks)

    monkeypatch.setattr(IndexWriter, "apply", slowly)
    import_flights(chosen, Scripted(flights(4000), lambda batch: None))
    assert behind == [1] * 5, "of genesis and four blocks"


@pytest.mark.usefixtures("one_block_at_once")
def test_a_clock_that_leaps_while_the_index_takes_blocks_in_is_waited_for(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_in, ahead_ms, lines = IndexWriter.apply, [0], list[str]()

    def leaping(writer: IndexWriter, blocks: Sequence[SealedBlock]) -> None:
        time.sleep(0.3)  # the next batch waits for this one
        if blocks[0].header.height == 1:
            ahead_ms[0] = 2 * LEAP_MS
        take_in(writer, blocks)

    def report(line: str) -> None:
        lines.append(line)
        ahead_ms[0] = 0

    monkeypatch.setattr(IndexWriter, "apply", leaping)
    monkeypatch.setattr(clock, "now_ms", lambda: time.time_ns() // 1_000_000 + ahead_ms[0])
    import_all(chosen, [Scripted(flights(3000), lambda batch: None)], Watcher(report=report))
    assert [line for line in lines if line.startswith(DOUBTED)]
    assert_holds(chosen, flights(3000))


def test_an_empty_source_makes_a_chain_without_flights(chosen: Settings) -> None:
    assert import_flights(chosen, Scripted([], lambda batch: None)).imported == 0
    assert_holds(chosen, [])


def test_what_waits_in_the_mempool_is_not_imported_again(tmp_path: Path, chosen: Settings) -> None:
    posted_meanwhile: list[Checked] = []

    def post(checked: Checked) -> None:
        if not posted_meanwhile:
            accept_in(sealer.mempool, flights(50, 100), 1)
        posted_meanwhile.append(checked)

    with closing(Sealer(chosen, print)) as sealer:
        accept_in(sealer.mempool, flights(100), 1)
        source = FlightFile(written(tmp_path, flights(200)))
        tally = import_flights(chosen, source, Watcher(on_check=post))
    assert (tally.imported, tally.already_there) == (50, 150)
    assert posted_meanwhile[-1].flights == 100
    assert_holds(chosen, flights(200))


@pytest.mark.usefixtures("one_block_at_once", "with_children")
def test_progress_goes_up_to_one(tmp_path: Path, chosen: Settings) -> None:
    progress: list[tuple[float, int]] = []
    import_flights(
        chosen,
        FlightFile(written(tmp_path, flights(5500))),
        Watcher(on_progress=lambda tally: progress.append((tally.fraction, tally.imported))),
    )
    assert progress == sorted(progress)
    assert {imported for _, imported in progress} >= {1000, 2000, 3000, 4000, 5000, 5500}
    assert len({fraction for fraction, _ in progress}) > 2
    assert progress[-1][0] == 1.0


def test_two_imports_at_the_same_time_leave_each_flight_once(
    tmp_path: Path, chosen: Settings
) -> None:
    first = str(written(tmp_path, flights(3000), "first.csv"))
    second = str(written(tmp_path, flights(3000, 1500), "second.csv"))
    with started(chosen, first) as one, started(chosen, second) as other:
        assert [process.wait(WAIT_S) for process in (one, other)] == [0, 0]
    contents = on_disk(chosen.folder).flights
    assert contents in [flights(4500), [*flights(3000, 1500), *flights(1500)]]
    assert verify(chosen.folder).transactions == 4500


# --- bad rows --------------------------------------------------------------------------------


def with_bad_rows() -> list[tuple[object, ...]]:
    """Returns 3000 rows; those of lines 1502 and 2602 are bad."""
    rows: list[tuple[object, ...]] = [*flights(3000)]
    rows[1500] = (*rows[1500][:4], "0", *rows[1500][5:])
    rows[2600] = (*rows[2600][:6], "nowhere", *rows[2600][7:])
    return rows


def test_a_bad_row_late_in_a_file_stores_nothing_of_it(tmp_path: Path, chosen: Settings) -> None:
    path = written(tmp_path, with_bad_rows())
    with pytest.raises(
        BadRow,
        match=r"^flights\.csv, line 1502: OP_CARRIER_FL_NUM '0': must be between .* \(2 of 3,000",
    ):
        import_flights(chosen, FlightFile(path))
    assert_holds(chosen, [])


@pytest.mark.usefixtures("with_children")
@pytest.mark.parametrize("processes", [1, 2])
def test_bad_rows_are_left_out_counted_and_named_if_that_is_decided(
    tmp_path: Path, chosen: Settings, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    if processes > 1:
        monkeypatch.setattr(source_check, "LEAST_BYTES", 0)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(processes))
    decided: list[Checked] = []
    watcher = Watcher(decide=decided.extend)
    rows = flights(5000)  # five batches
    path = written(tmp_path, [*with_bad_rows(), *rows[3000:]])
    path.write_text(path.read_text() + ",".join(FIELD_NAMES))
    tally = import_flights(chosen, FlightFile(path), watcher)
    assert (tally.imported, tally.bad, tally.fraction) == (4998, 2, 1.0)
    (checked,) = decided
    assert (checked.rows, checked.flights, checked.bad.count) == (5000, 4998, 2)
    assert str(checked.understood).endswith("; 1 repeated header left out")
    assert [(row.place, row.field, row.value) for row in checked.bad.first] == [
        ("flights.csv, line 1502", "OP_CARRIER_FL_NUM", "0"),
        ("flights.csv, line 2602", "ORIGIN", "nowhere"),
    ]
    assert [str(row) for row in checked.bad.first] == [
        f"{row.place}: {row.field} '{row.value}': {row.reason}" for row in checked.bad.first
    ]
    assert_holds(chosen, [f for n, f in enumerate(rows) if n not in {1500, 2600}])


def test_only_the_first_bad_rows_are_kept_however_many_there_are(
    tmp_path: Path, chosen: Settings
) -> None:
    rows = [(*row[:6], "nowhere" * 99, *row[7:]) for row in flights(3000)]
    decided, shares = list[Checked](), list[float]()
    watcher = Watcher(
        on_check=lambda checked: shares.append(checked.fraction), decide=decided.extend
    )
    import_flights(chosen, FlightFile(written(tmp_path, rows)), watcher)
    assert len(shares) == 2  # progress is shown although no batch has a flight, and room looked for
    assert shares[0] < shares[1] == 1  # at which a terminal ends its line
    assert (decided[0].bad.count, len(decided[0].bad.first)) == (3000, 100)
    assert len(str(decided[0].bad.first[0].value)) == EXCERPT_CHARACTERS
    assert_holds(chosen, [])


def test_the_disk_must_have_room_for_all_sources_together(
    tmp_path: Path, chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = chosen.min_free_bytes + 1500 * source_check.STORED_BYTES
    monkeypatch.setattr(source_check, "free_bytes", lambda _: room)
    first = FlightFile(written(tmp_path, flights(1000), "first.csv"))
    second = FlightFile(written(tmp_path, flights(1000, 1000), "second.csv"))
    with pytest.raises(WriteFailed, match=f"the import needs about {room + 65_000:,};"):
        import_all(chosen, [first, second])
    assert transactions_in(chosen.folder) == 0
    import_all(chosen, [first, first])
    assert_holds(chosen, flights(1000))
    monkeypatch.setattr(source_check, "free_bytes", lambda _: chosen.min_free_bytes)
    with pytest.raises(WriteFailed, match=f"needs about {chosen.min_free_bytes + 260_000:,};"):
        import_all(chosen, [Scripted(flights(3000, 1000), lambda batch: None)])  # by its first half


# --- what dies in between --------------------------------------------------------------------


@pytest.mark.usefixtures("one_block_at_once", "with_children")
def test_an_interrupted_import_is_continued(chosen: Settings) -> None:
    rows = flights(4500)
    for blocks, error in ((1, KeyboardInterrupt), (2, RuntimeError)):

        def interrupt(tally: Tally, at: int = blocks, by: type[BaseException] = error) -> None:
            if tally.blocks >= at:
                raise by

        with pytest.raises(error):
            import_flights(
                chosen, Scripted(rows, lambda batch: None), Watcher(on_progress=interrupt)
            )
    assert transactions_in(chosen.folder) == 3000
    tally = import_flights(chosen, Scripted(rows, lambda batch: None))
    assert (tally.imported, tally.already_there) == (1500, 3000)
    assert_holds(chosen, rows)


def slow_to_build(job: Job, send: Send, at: Callable[[], None]) -> None:
    """Build blocks as an import does, but call `at` before the third message is sent."""
    sent = [0]

    def send_slowly(message: object) -> None:
        sent[0] += 1
        if sent[0] == 3:
            at()
        send(message)

    build(job, send_slowly)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("one_block_at_once", "with_children")
def test_a_killed_child_ends_the_import_with_a_word_and_it_is_continued(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child of the check or the builder, before a message, or in the middle of one."""
    rows = flights(4500)
    real = Connection.send

    def dying_at(number: int, share: float) -> Callable[[Connection, object], None]:
        left = [number]

        def send(self: Connection, message: object) -> None:
            left[0] -= 1
            if left[0] > 0:
                real(self, message)
                return
            data = bytes(ForkingPickler.dumps(message))
            whole = struct.pack("!i", len(data)) + data
            os.write(self.fileno(), whole[: round(len(whole) * share)])
            die()

        return send

    for place, name, dying, stored in (
        (Connection, "send", dying_at(2, 0.0), 0),
        (Connection, "send", dying_at(2, 0.5), 0),
        (importer, "build", partial(slow_to_build, at=die), 1000),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, dying)
            with pytest.raises(FlightchainError, match="died; run the import again"):
                import_flights(chosen, Scripted(rows, lambda batch: None))
        assert transactions_in(chosen.folder) == stored
    import_flights(chosen, Scripted(rows, lambda batch: None))
    assert_holds(chosen, rows)


@pytest.mark.usefixtures("with_children")
def test_a_user_with_many_pipes_imports_through_short_ones(
    chosen: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system bounds the pages of all pipes of a user, whatever programs have them."""
    real = fcntl.fcntl

    def refuse(descriptor: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_SETPIPE_SZ:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        return real(descriptor, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    import_flights(chosen, Scripted(flights(2500), lambda batch: None))
    assert_holds(chosen, flights(2500))


SLOW_BUILDER = """
import sys, time
from functools import partial
from pathlib import Path
from backend.sealing import importer
from tests.sealing import test_importer
from tests.flights import flights, import_flights

importer.build = partial(
    test_importer.slow_to_build, at=partial(time.sleep, test_importer.STALL_S)
)
"""
STALLED = f"""{SLOW_BUILDER}
importer.BLOCKS_AT_ONCE = 1
import_flights(
    test_importer.settings_for(Path(sys.argv[1])),
    test_importer.Scripted(flights(5000), lambda batch: None),
)
"""


def test_a_killed_import_frees_the_writer_lock_though_its_builder_is_slow(
    tmp_path: Path, chosen: Settings
) -> None:
    with subprocess.Popen([sys.executable, "-c", STALLED, str(tmp_path)], cwd=PROJECT) as process:
        until(lambda: transactions_in(chosen.folder) > 0)
        process.kill()
    start = time.monotonic()
    with closing(BlockWriter(chosen, lambda: 0, print, NOTHING_PENDING)) as writer:
        writer.acquire(wait=True)
    assert time.monotonic() - start < PROMPT_S


# --- the command -----------------------------------------------------------------------------


def started(
    settings: Settings, *arguments: str, is_slow: bool = False
) -> AbstractContextManager[subprocess.Popen[str]]:
    """`python -m backend import …` that seals every block on its own; killed at the end.

    is_slow: whether its builder stands still after two messages.
    """
    bits = settings.difficulty_bits
    program = (SLOW_BUILDER if is_slow else "") + IMPORT_COMMAND
    process = subprocess.Popen(
        [sys.executable, "-c", program, "import", *arguments],
        cwd=PROJECT,
        env=environment(settings.folder, FLIGHTCHAIN_DIFFICULTY_BITS=bits),
        stderr=subprocess.PIPE,
        text=True,
    )
    return ending(process)


def command(settings: Settings, *arguments: str) -> tuple[int, str]:
    """Run the command in this process. Returns its exit status and what it said."""
    bits = settings.difficulty_bits
    done = call(settings.folder, "import", *arguments, FLIGHTCHAIN_DIFFICULTY_BITS=bits)
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_the_command_says_what_it_did(tmp_path: Path, chosen: Settings) -> None:
    path = str(written(tmp_path, flights(1200)))
    status, output = command(chosen, path)
    assert status == 0
    assert "importing flights.csv: 100%" in output
    assert re.search(r"1,200 flights, [\d,]+ a second", output)
    assert output.endswith("flights.csv: 1,200 flights imported in 2 blocks\n")
    status, output = command(chosen, path, str(written(tmp_path, flights(1500), "more.csv")))
    assert status == 0
    assert (
        "flights.csv: 0 flights imported in 0 blocks, 1,200 were there already or repeated\n"
        in output
    )
    assert output.endswith(
        "more.csv: 300 flights imported in 1 block, 1,200 were there already or repeated\n"
    )
    assert_holds(chosen, flights(1500))


def test_ctrl_c_ends_with_130_and_running_it_again_completes(
    tmp_path: Path, chosen: Settings
) -> None:
    rows = flights(3000)
    path = str(written(tmp_path, rows))
    with started(chosen, path, is_slow=True) as process:
        until(lambda: transactions_in(chosen.folder) > 0)
        process.send_signal(signal.SIGINT)
        output = process.communicate(timeout=WAIT_S)[1]
    assert process.returncode == 130, output
    assert output.endswith("stopped\n")
    assert "Traceback" not in output
    assert 0 < transactions_in(chosen.folder) < len(rows)
    assert command(chosen, path)[0] == 0
    assert_holds(chosen, rows)
