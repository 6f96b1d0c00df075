"""The command that imports files: what it asks, says and refuses about bad rows."""

import csv
import gzip
import os
import pty
import select
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest

from tests.api.processes import ROOT, backend, environment
from tests.flights import csv_of, flights, on_disk, transactions_in

WAIT_S = 60
ANSWERED_AGAIN_S = 0.5  # an early Ctrl-C may be lost, as to a person
QUESTION = b"Import the others without them? [y/N]: "


def written(path: Path, count: int, bad: Sequence[int] = (), *, cancelled: int = 0) -> str:
    """Write a file of flights; those numbered `bad` have no known origin. Returns its path.

    cancelled: how many of the bad ones were cancelled; the last one of all has no arrival.
    """
    rows = [list(row) for row in flights(count)]
    for number in bad:
        rows[number][6] = "nowhere"
        rows[number][13:] = ["", "", "", "", 0, ""]
    for number in bad[:cancelled]:
        rows[number][17] = 1
    path.write_text(csv_of(rows), encoding="utf-8")
    return str(path)


def test_too_many_bad_rows_are_left_out_only_if_that_share_is_allowed(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 40, [3], cancelled=1)
    refused = backend(folder, "import", "--skip-bad", file)
    assert refused.returncode == 1
    assert refused.stderr.endswith(
        "\nsome.csv: 1 of 40 rows (2.5 %) is bad, among them 1 cancelled flight and 0 without an "
        "arrival; without them more flights look punctual\n"
        "error: more than 1 % of some.csv is bad; mend the file, or allow more with "
        "--skip-at-most 2.5; nothing was imported\n"
    )
    assert transactions_in(folder) == 0
    done = backend(folder, "import", "--skip-bad", "--skip-at-most", "2.5", file)
    assert done.returncode == 0, done.stderr
    assert "39 flights imported in 1 block, 1 bad row was left out\n" in done.stderr
    assert transactions_in(folder) == 39


def test_many_bad_rows_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    file = written(tmp_path / "some.csv", 100, range(10, 60), cancelled=7)
    done = backend(tmp_path / "chain", "import", file)
    assert done.returncode == 1
    named = [line for line in done.stderr.splitlines() if "ORIGIN 'nowhere'" in line]
    assert [line.partition(":")[0] for line in named] == [
        f"some.csv, line {number}" for number in range(12, 32)
    ]
    assert "50 of 100 rows (50 %) are bad, among them 7 cancelled flights and 43 w" in done.stderr


def test_all_files_are_checked_before_the_first_is_stored(tmp_path: Path) -> None:
    good, bad = written(tmp_path / "good.csv", 2500), written(tmp_path / "bad.csv", 2000, [1900])
    done = backend(tmp_path / "chain", "import", good, bad)
    assert done.returncode == 1
    assert "bad.csv, line 1902: ORIGIN 'nowhere'" in done.stderr
    assert done.stderr.endswith("nothing was imported\n")
    assert transactions_in(tmp_path / "chain") == 0


def in_a_terminal(folder: Path, *arguments: str, answer: str) -> tuple[int, str]:
    """Run an import in a terminal, and answer its question until it goes on.

    Returns its exit status and what was shown.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "backend", "import", *arguments],
        cwd=ROOT,
        env=environment(folder),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    deadline = time.monotonic() + WAIT_S
    with process, suppress(OSError):  # which says that the other end is closed
        while time.monotonic() < deadline:
            if select.select([ours], [], [], ANSWERED_AGAIN_S)[0]:
                shown += os.read(ours, 4096)
            if shown.endswith(QUESTION):
                assert transactions_in(folder) == 0
                os.write(ours, answer.encode())
        process.kill()
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("answer", "status", "end", "stored"),
    [
        ("y\n", 0, "299 flights imported in 1 block, 1 bad row was left out\n", 299),
        ("\n", 1, "error: the bad rows are to be mended first; nothing was imported\n", 0),
        ("\x03", 130, "stopped\n", 0),
        ("\x04", 130, "stopped\n", 0),
    ],
    ids=["yes", "no", "Ctrl-C", "end"],
)
def test_in_a_terminal_it_asks_before_rows_are_left_out(
    tmp_path: Path, answer: str, status: int, end: str, stored: int
) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 300, [70])
    returned, shown = in_a_terminal(folder, "--skip-bad", file, answer=answer)
    assert (returned, shown.endswith(end)) == (status, True), shown
    assert "some.csv, line 72: ORIGIN 'nowhere': " in shown
    assert transactions_in(folder) == stored


def test_with_yes_it_does_not_ask(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 300, [70])
    status, shown = in_a_terminal(folder, "--skip-bad", "--yes", file, answer="")
    assert (status, QUESTION.decode() in shown) == (0, False)
    assert transactions_in(folder) == 299


def changed(path: Path, count: int, numbers: Sequence[int]) -> str:
    """Write a file of flights of which those with these numbers were ten minutes later."""
    rows = [list(row) for row in flights(count)]
    for number in numbers:
        rows[number][16] = int(str(rows[number][16])) + 10
    path.write_text(csv_of(rows), encoding="utf-8")
    return str(path)


def test_flights_that_contradict_stored_ones_are_named_and_left_out(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 50)
    backend(folder, "import", file)
    late = changed(tmp_path / "late.csv", 60, [7, 9])
    done = backend(folder, "import", late)
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "transaction 7 " in line]
    delay = int(str(flights(50)[7][16]))
    assert line.startswith("late.csv: ")
    assert "transaction 7 (block 1)" in line
    assert str(delay) in line.partition("stored")[2]
    assert str(delay + 10) in line.partition("stored")[0]
    assert "late.csv: 2 flights contradict what is stored, which stays\n" in done.stderr
    assert done.stderr.endswith(
        "late.csv: 10 flights imported in 1 block, 48 were there already, "
        "2 contradict what is stored\n"
    )


def test_a_file_that_contradicts_the_ledger_can_be_refused(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 50)
    backend(folder, "import", file)
    late = changed(tmp_path / "late.csv", 60, [7])
    done = backend(folder, "import", "--on-conflict", "fail", late)
    assert done.returncode == 1
    assert "transaction 7 (block 1)" in done.stderr
    assert done.stderr.endswith(
        "error: a file contradicts the ledger; --on-conflict keep goes on; nothing was imported\n"
    )
    assert transactions_in(folder) == 50


def test_files_that_contradict_each_other_are_compared_too(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 50)
    late = changed(tmp_path / "late.csv", 60, [7])
    done = backend(folder, "import", "--on-conflict", "fail", file, late)
    assert done.returncode == 1
    assert "contradicts a record before it: ARR_DELAY -4, stored -14\n" in done.stderr
    assert done.stderr.endswith("--on-conflict keep goes on; nothing was imported\n")
    assert transactions_in(folder) == 0
    done = backend(folder, "import", file, late)
    assert "10 flights imported in 1 block, 49 were there already, 1 contradicts" in done.stderr
    assert transactions_in(folder) == 60


# --- what files are taken for, and pipes -----------------------------------------------------


def through_a_pipe(folder: Path, content: bytes, *arguments: str) -> tuple[int, str]:
    """Import what comes through standard input; the exit status and what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "backend", "import", *arguments],
        cwd=ROOT,
        env=environment(folder),
        input=content,
        capture_output=True,
        check=False,
        timeout=WAIT_S,
    )
    return done.returncode, done.stderr.decode()


def zipped(content: bytes) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("flights.csv", content)
    return packed.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zipped])
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_pipe_is_imported_as_a_file_is(
    tmp_path: Path, pack: Callable[[bytes], bytes], name: str
) -> None:
    status, said = through_a_pipe(tmp_path, pack(csv_of(flights(2500)).encode()), name)
    label = "standard input" if name == "-" else name
    assert (status, said.splitlines()[-1]) == (
        0,
        f"{label}: 2,500 flights imported in 3 blocks",
    ), said
    assert sorted(path.name for path in tmp_path.iterdir() if "import" in path.name) == []


def test_a_bad_row_in_a_pipe_stores_nothing(tmp_path: Path) -> None:
    content = Path(written(tmp_path / "some.csv", 3000, [2900])).read_bytes()
    status, said = through_a_pipe(tmp_path / "chain", content, "-")
    assert status == 1
    assert "standard input, line 2902: ORIGIN 'nowhere'" in said
    assert said.endswith("nothing was imported\n")
    assert transactions_in(tmp_path / "chain") == 0


def test_a_named_pipe_is_imported(tmp_path: Path) -> None:
    pipe = tmp_path / "flights"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(csv_of(flights(10)),))
    writer.start()
    done = backend(tmp_path / "chain", "import", str(pipe))
    writer.join()
    assert done.stderr.endswith("flights: 10 flights imported in 1 block\n"), done.stderr


def test_days_that_can_be_read_in_two_ways_are_read_as_the_user_says(tmp_path: Path) -> None:
    rows = [row for row in flights(400) if int(str(row[2])[-2:]) <= 12]
    table = [list(row) for row in csv.reader(csv_of(rows).splitlines())]
    for row in table[1:]:
        row[2] = "/".join(reversed(row[2].split("-")))
        row[1] = ""
    table[0][1] = "NOT_USED"  # instead of the weekday, which would decide
    file = tmp_path / "days.csv"
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows(table)
    folder = tmp_path / "chain"
    refused = backend(folder, "import", str(file))
    assert refused.returncode == 1
    assert "--dates day-first" in refused.stderr
    done = backend(folder, "import", "--dates", "day-first", str(file))
    assert done.returncode == 0, done.stderr
    assert on_disk(folder).flights == list(rows)
    assert "days are written day" in done.stderr


def test_it_says_what_it_took_a_file_for(tmp_path: Path) -> None:
    file = written(tmp_path / "some.csv", 30)
    done = backend(tmp_path / "chain", "import", file)
    assert "\nsome.csv: taken for the 19 fields; " in done.stderr
    assert "; 30 flights are new\n" in done.stderr
    again = backend(tmp_path / "chain", "import", file)
    assert "; 0 flights are new, 30 are there already\n" in again.stderr


def test_cities_that_a_file_lacks_come_from_the_ledger(tmp_path: Path) -> None:
    folder, first, second = tmp_path / "chain", tmp_path / "first.csv", tmp_path / "second.csv"
    second.write_text(
        "Year,Month,DayofMonth,UniqueCarrier,FlightNum,Origin,Dest,DepTime,DepDelay,ArrTime,"
        "ArrDelay,Cancelled\n2008,1,3,WN,335,QQQ,TPA,2003,8,2211,-14,0\n",
        encoding="utf-8",
    )
    refused = backend(folder, "import", str(second))
    assert "line 2: ORIGIN_CITY_NAME 'QQQ': is an airport whose city is neither" in refused.stderr
    rows = [list(row) for row in flights(1)]
    rows[0][6:9] = "QQQ", "Nowhere, TX", "Texas"
    first.write_text(csv_of(rows), encoding="utf-8")
    done = backend(folder, "import", str(first), str(second))
    assert done.returncode == 1, "the second is checked before the first is stored"
    assert backend(folder, "import", str(first)).returncode == 0
    assert backend(folder, "import", str(second)).returncode == 0
    assert transactions_in(folder) == 2
    assert on_disk(folder).flights[1][6:9] == ("QQQ", "Nowhere, TX", "Texas")
