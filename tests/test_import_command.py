"""The command that imports files: what it asks, says and refuses about bad rows."""

import csv
import gzip
import json
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, chdir
from datetime import date
from io import StringIO
from pathlib import Path

import pytest

from backend.base.errors import FlightchainError, WriteFailed
from backend.base.settings import Settings
from backend.base.words import COMMAND
from backend.chain.fields import FIELD_NAMES
from backend.chain.flight import as_mapping
from backend.cli.import_command import NEEDS, file_sources, import_command
from backend.cli.import_dialogue import FAIL, ImportDialogue, Skipping
from backend.sealing.importer import Tally
from backend.sealing.source_check import BadRows, Checked
from tests.api.processes import ROOT, environment, free_port, ran, until
from tests.cases import each_of
from tests.descriptors import descriptors_of
from tests.flights import csv_of, csv_of_days, flights, on_disk, transactions_in
from tests.folder_harms import as_nobody, folder_of_nobody, give_to_nobody
from tests.sources.samples import zipped
from tests.test_cli import Done, call

WAIT_S = 60
QUESTION = b"Import the other rows without them? [y/N]: "


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


def variables(folder: Path) -> dict[str, str]:
    """Return the environment of a command that runs elsewhere than in the project."""
    return {**environment(folder), "PYTHONPATH": str(ROOT)}


def imported(folder: Path, *arguments: str, content: bytes = b"") -> Done:
    """Run an import in the folder above that of its chain.

    content: what comes through standard input.
    """
    folder.parent.mkdir(exist_ok=True)
    if not content:
        with chdir(folder.parent):  # in this process, which is quicker
            return call(folder, "import", *arguments)
    done = subprocess.run(
        [sys.executable, "-m", "backend", "import", *arguments],
        cwd=folder.parent,
        env=variables(folder),
        input=content,
        capture_output=True,
        check=False,
        timeout=WAIT_S,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_too_many_bad_rows_are_left_out_only_if_that_share_is_allowed(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "früh.csv", 40, [3], cancelled=1)
    refused = imported(folder, "--skip-bad", file)
    assert refused.returncode == 1
    assert refused.stderr.endswith(
        "\nfrüh.csv: 1 of 40 rows (2.5 %) is bad, among them 1 cancelled flight and 0 without an "
        "arrival; if they are left out, more flights look punctual\n"
        "error: file 'früh.csv': has more than 1 % bad rows; correct them, or use --skip-at-most "
        "2.5; nothing was imported\n"
    )
    assert transactions_in(folder) == 0
    done = imported(folder, "--skip-bad", "--skip-at-most", "2.5", file)
    assert done.returncode == 0, done.stderr
    assert "39 flights imported in 1 block, 1 bad row was left out\n" in done.stderr
    assert transactions_in(folder) == 39


def test_a_default_file_with_bad_rows_can_be_imported_by_hand_and_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 200, [3])
    refused = call(folder, "import", "--if-empty", FLIGHTCHAIN_DATA=file)
    by_hand = f"`{COMMAND} import {file} --skip-bad`"
    assert refused.stderr.endswith(f"leave them out: {by_hand}; nothing was imported\n")
    assert imported(folder, "--skip-bad", file).returncode == 0
    again = call(folder, "import", "--if-empty", FLIGHTCHAIN_DATA=file)
    assert (again.returncode, again.stderr) == (0, "")


def test_days_that_agree_by_chance_are_not_imported_whatever_is_allowed(tmp_path: Path) -> None:
    """2019-03-04 of 3 April: its weekday is that of 4 March by chance."""
    path, rows = tmp_path / "some.csv", []
    for number, row in enumerate(flights(28)):
        day = date(2019, 3, number % 28 + 1)
        rows.append([2019, day.isoweekday(), f"{day:%Y-%d-%m}", *row[3:]])
    path.write_text(csv_of(rows), encoding="utf-8")
    refused = imported(tmp_path / "chain", "--skip-bad", "--skip-at-most", "100", str(path))
    assert refused.returncode == 1
    assert "has wrong days in most rows, so the others may be right by chance" in refused.stderr


def test_all_files_are_checked_before_the_first_is_stored_and_bad_rows_named(
    tmp_path: Path,
) -> None:
    file = written(tmp_path / "some.csv", 100, range(10, 60), cancelled=7)
    done = imported(tmp_path / "chain", written(tmp_path / "good.csv", 2500), file)
    assert done.returncode == 1
    assert done.stderr.endswith("nothing was imported\n")
    assert transactions_in(tmp_path / "chain") == 0
    named = [line for line in done.stderr.splitlines()[:-1] if "ORIGIN 'nowhere'" in line]
    assert [line.partition(":")[0] for line in named] == [
        f"some.csv, line {number}" for number in range(12, 32)
    ]
    assert "50 of 100 rows (50 %) are bad, among them 7 cancelled flights and 43 w" in done.stderr


def in_a_terminal(folder: Path, *arguments: str, answer: str) -> tuple[int, str]:
    """Run an import in a terminal of its own, and answer its question.

    Returns its exit status and what was shown.
    """
    shown = b""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "backend", "import", *arguments],
        cwd=folder.parent,
        env=variables(folder),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        while select.select([ours], [], [], WAIT_S)[0] and (piece := _read(ours)):
            shown += piece
            if shown.endswith(QUESTION):
                assert transactions_in(folder) == 0
                time.sleep(0.05)  # a Ctrl-C that comes before it waits for an answer may be lost
                os.write(ours, answer.encode())
        status = process.wait(WAIT_S)
    os.close(ours)
    return status, shown.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    """Read what is shown; b"" once the other end is closed."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.mark.parametrize(
    ("answer", "status", "end", "stored"),
    [
        ("y\n", 0, "299 flights imported in 1 block, 1 bad row was left out\n", 299),
        ("\n", 1, "or leave them out with --skip-bad; nothing was imported\n", 0),
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


def test_flights_that_contradict_stored_ones_are_refused_or_left_out(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 50)
    imported(folder, file)
    late = changed(tmp_path / "late.csv", 60, [7, 9])
    done = imported(folder, "--on-conflict", "fail", late)
    assert done.returncode == 1
    assert "transaction 7 (block 1)" in done.stderr
    assert done.stderr.endswith(
        "error: flights contradict earlier records; go on with --on-conflict keep; nothing was "
        "imported\n"
    )
    assert transactions_in(folder) == 50
    done = imported(folder, late)
    assert done.returncode == 0
    (line,) = [line for line in done.stderr.splitlines() if "transaction 7 " in line]
    delay = int(str(flights(50)[7][16]))
    assert line.startswith("late.csv: ")
    assert "transaction 7 (block 1)" in line
    assert str(delay) in line.partition("earlier")[2]
    assert str(delay + 10) in line.partition("earlier")[0]
    assert "late.csv: 2 flights contradict earlier records, which stay\n" in done.stderr
    assert done.stderr.endswith(
        "late.csv: 10 flights imported in 1 block, 48 were there already or repeated, "
        "2 contradict earlier records\n"
    )


def test_rows_that_repeat_or_contradict_an_earlier_row_are_not_said_to_be_stored(
    tmp_path: Path,
) -> None:
    first = flights(1)[0]
    late = [*first[:16], int(str(first[16])) + 10, *first[17:]]
    file = tmp_path / "twice.csv"
    file.write_text(csv_of([first, first, late]), encoding="utf-8")
    done = imported(tmp_path / "chain", "--on-conflict", "fail", str(file))
    assert "; 1 flight is new, 1 is there already or repeated\n" in done.stderr
    assert f"a record before it: ARR_DELAY {late[16]}, earlier {first[16]}\n" in done.stderr
    assert "twice.csv: 1 flight contradicts earlier records, which stay\n" in done.stderr
    assert "stored" not in done.stderr
    assert "ledger" not in done.stderr


# --- what files are taken for, and pipes -----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pack"), [("-", bytes), ("-", zipped), ("/dev/stdin", gzip.compress)]
)
def test_a_pipe_is_imported_as_a_file_is(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    content = pack(csv_of_days(map(as_mapping, flights(2500)), ["02/03/2015"] * 2500).encode())
    done = imported(tmp_path / "chain", name, "--dates", "day-first", content=content)
    label = "standard input" if name == "-" else name
    assert done.stderr.endswith(f"\n{label}: 2,500 flights imported in 3 blocks\n"), done.stderr
    assert done.returncode == 0
    assert {flight[2] for flight in on_disk(tmp_path / "chain").flights} == {"2015-03-02"}
    assert [path.name for path in tmp_path.iterdir()] == ["chain"]


def test_what_comes_through_a_pipe_does_not_fill_the_disk(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"text")
    os.close(theirs)
    done = call(tmp_path, "import", f"/dev/fd/{ours}", FLIGHTCHAIN_MIN_FREE_BYTES=2**50)
    os.close(ours)
    assert f"the disk of {tmp_path} has too little room: " in done.stderr


@pytest.mark.parametrize("bad", [[], [2900]])
def test_a_named_pipe_is_imported_or_nothing_of_it(tmp_path: Path, bad: list[int]) -> None:
    content = Path(written(tmp_path / "some.csv", 3000, bad)).read_bytes()
    pipe = tmp_path / "flights"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    done = imported(tmp_path / "chain", str(pipe))
    writer.join()
    assert ("flights, line 2902: ORIGIN 'nowhere'" in done.stderr) == bool(bad)
    end = "nothing was imported\n" if bad else "flights: 3,000 flights imported in 3 blocks\n"
    assert done.stderr.endswith(end), done.stderr
    assert transactions_in(tmp_path / "chain") == (0 if bad else 3000)


def test_days_that_can_be_read_in_two_ways_are_read_as_the_user_says(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", tmp_path / "days.csv"
    file.write_text(csv_of_days(map(as_mapping, flights(3)), ["02/03/2015"] * 3))
    refused = imported(folder, str(file))
    assert refused.returncode == 1
    assert "add --dates month-first or --dates day-first" in refused.stderr
    default = call(folder, "import", "--if-empty", FLIGHTCHAIN_DATA=file)
    answer = f"; run `{COMMAND} import {file}` with --dates month-first or --dates day-first\n"
    assert default.stderr.endswith(answer)
    assert ": file 'days.csv': has days such as '02/03/2015'" in default.stderr
    done = imported(folder, "--dates", "day-first", str(file))
    assert {flight[2] for flight in on_disk(folder).flights} == {"2015-03-02"}
    assert "days are written day" in done.stderr


def test_it_says_what_it_took_a_file_for(tmp_path: Path) -> None:
    file = written(tmp_path / "some.csv", 30)
    done = imported(tmp_path / "chain", file)
    assert "\nsome.csv: taken for the 19 fields; " in done.stderr
    assert "; 30 flights are new\n" in done.stderr
    again = imported(tmp_path / "chain", file)
    assert "; 0 flights are new, 30 are there already or repeated\n" in again.stderr


def test_cities_that_a_file_lacks_come_from_the_ledger(tmp_path: Path) -> None:
    folder, first, second = tmp_path / "chain", tmp_path / "first.csv", tmp_path / "second.csv"
    second.write_text(
        "Year,Month,DayofMonth,UniqueCarrier,FlightNum,Origin,Dest,DepTime,DepDelay,ArrTime,"
        "ArrDelay,Cancelled\n2008,1,3,WN,335,QQQ,TPA,2003,8,2211,-14,0\n",
        encoding="utf-8",
    )
    refused = imported(folder, str(second))
    assert "line 2: ORIGIN_CITY_NAME 'QQQ': is an airport whose city and state" in refused.stderr
    rows = [list(row) for row in flights(1)]
    rows[0][6:9] = "QQQ", "Nowhere, TX", "Texas"
    first.write_text(csv_of(rows), encoding="utf-8")
    done = imported(folder, str(first), str(second))
    assert done.returncode == 1, "the second is checked before the first is stored"
    assert imported(folder, str(first)).returncode == 0
    assert imported(folder, str(second)).returncode == 0
    assert transactions_in(folder) == 2
    assert on_disk(folder).flights[1][6:9] == ("QQQ", "Nowhere, TX", "Texas")
    settings = Settings(dir=str(folder))
    before = len(descriptors_of())
    with ExitStack() as pipes:
        read = [list(s.rows()) for s in file_sources(settings, [second] * 30, "", pipes)]
        assert len(read) == 30
        assert len(descriptors_of()) < before + 10


# --- the file of bad rows --------------------------------------------------------------------


def test_a_file_of_bad_rows_is_not_written_over(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 300, [3])
    bad = tmp_path / "some.bad-rows.csv"
    bad.write_text("mended in the afternoon\n")
    done = imported(folder, "--skip-bad", file)
    assert done.returncode == 1
    assert "error: some.bad-rows.csv exists already, and may hold rows that you" in done.stderr
    assert (bad.read_text(), transactions_in(folder)) == ("mended in the afternoon\n", 0)
    done = imported(folder, "--skip-bad", "--bad-rows", "other.csv", file)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "other.csv").read_text().count("nowhere") == 1
    assert imported(folder, "--skip-bad", "--bad-rows", "other.csv", file).returncode == 0


def test_a_file_of_bad_rows_that_cannot_be_written_is_to_be_another(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", written(tmp_path / "some.csv", 300, [3])
    done = imported(folder, "--skip-bad", "--bad-rows", "not/there.csv", file)
    assert done.returncode == 1
    assert "cannot write not/there.csv: No such file or directory; name a file" in done.stderr
    assert "elsewhere with --bad-rows" in done.stderr
    assert transactions_in(folder) == 0


@pytest.mark.parametrize("mode", [0o555, 0])
def test_bad_rows_that_this_user_may_not_write_here_are_to_go_elsewhere(mode: int) -> None:
    """As in a home, for `sudo flightchain import --skip-bad - <flights.csv`."""
    with folder_of_nobody() as root:
        file = written(root / "some.csv", 300, [3])
        (ledgers := root / "ledgers").mkdir()
        give_to_nobody(ledgers)
        (home := root / "home").mkdir()
        with chdir(home):
            home.chmod(mode)
            with as_nobody():
                done = call(ledgers / "chain", "import", "--skip-bad", file)
    assert done.returncode == 1
    assert "cannot write some.bad-rows.csv: Permission denied; user " in done.stderr
    assert "; name a file elsewhere with --bad-rows; nothing was imported\n" in done.stderr


@pytest.mark.parametrize("names", [("a/f.csv", "b/f.csv"), ("f.CSV", "f.txt")])
def test_two_files_do_not_share_a_file_of_bad_rows(tmp_path: Path, names: Sequence[str]) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    files = [written(tmp_path / name, 300, [number]) for number, name in enumerate(names, 3)]
    done = imported(tmp_path / "chain", "--skip-bad", "--yes", *files)
    assert done.returncode == 1
    first, second = (Path(name).name for name in names)
    assert done.stderr.endswith(
        f"error: the bad rows of {first} and those of {second} would both go to f.bad-rows.csv; "
        "import these files one after the other, each with its own --bad-rows; "
        "nothing was imported\n"
    )
    assert (list(tmp_path.glob("*bad*")), transactions_in(tmp_path / "chain")) == ([], 0)


def test_bad_rows_stand_in_a_file_of_their_own_as_in_theirs_and_can_be_mended(
    tmp_path: Path,
) -> None:
    rows = [list(row) for row in flights(600)]
    rows[3][6] = "nowhere"
    for row in rows:
        row[14] = f"{row[14]},00" if row[14] is not None else ""
    lines = StringIO()
    csv.writer(lines, delimiter=";").writerows([[*FIELD_NAMES, "Größe"], *rows])
    content = [*lines.getvalue().splitlines()]
    content[1:] = [f"{line};" for line in content[1:]]
    content[5] = f'{content[5].partition(";")[0]};"open;and;short'
    content[6] += ";1;too;many"
    folder, file = tmp_path / "chain", tmp_path / "some.2024.csv"
    file.write_bytes("\r\n".join(["sep=;", *content]).encode("latin-1"))
    done = imported(folder, "--skip-bad", str(file))
    assert done.returncode == 0, done.stderr
    assert "\nthe bad rows are in some.2024.bad-rows.csv; correct them there, and" in done.stderr
    bad = tmp_path / "some.2024.bad-rows.csv"
    written_lines = bad.read_bytes().decode("latin-1").splitlines()
    assert written_lines == ["sep=;", content[0], *content[4:7]]
    mended = [
        content[0],
        content[4].replace("nowhere", "DCA"),
        content[6].removesuffix(";1;too;many"),
    ]
    bad.write_bytes("\n".join(["sep=;", *mended]).encode("latin-1"))
    done = imported(folder, bad.name)
    assert done.stderr.endswith("\nsome.2024.bad-rows.csv: 2 flights imported in 1 block\n")
    assert transactions_in(folder) == 599


def test_bad_rows_are_imported_with_the_order_of_days_of_their_file(tmp_path: Path) -> None:
    folder, file = tmp_path / "chain", tmp_path / "some.csv"
    rows = [as_mapping(flight) for flight in flights(200)]
    rows[0] = {**rows[0], "ORIGIN": "nowhere"}
    file.write_text(csv_of_days(rows, ["02/03/2015", *["13/03/2015"] * 199]))
    done = imported(folder, "--skip-bad", file.name)
    assert "import that file with --dates day-first\n" in done.stderr
    bad = tmp_path / "some.bad-rows.csv"
    bad.write_text(bad.read_text().replace("nowhere", "DCA"))
    assert imported(folder, "--dates", "day-first", bad.name).returncode == 0
    assert transactions_in(folder) == 200


def test_bad_rows_of_json_are_an_object_a_line(tmp_path: Path) -> None:
    objects = [json.dumps(dict(zip(FIELD_NAMES, row, strict=True))) for row in flights(600)]
    folder, note = tmp_path / "chain", "n" * 2000
    content = list(objects)
    content[2] = content[2].replace("{", '{"NOTE": "' + note + '", ', 1)
    content[3] = content[3][:-1]
    content[4] = content[4].replace('"FL_DATE"', '"YEAR"')
    content[5] = content[5].replace('"CANCELLED": ', '"CANCELLED": 7')
    file = tmp_path / "some.ndjson"
    file.write_text("\n".join(content))
    done = imported(folder, "--skip-bad", file.name)
    assert done.returncode == 0, done.stderr
    bad = tmp_path / "some.bad-rows.ndjson"
    assert bad.read_text().splitlines() == content[3:6]
    bad.write_text("\n".join(objects[3:6]))
    assert imported(folder, bad.name).returncode == 0
    assert transactions_in(folder) == 600


def test_bad_rows_below_two_headers_do_not_go_into_one_file(tmp_path: Path) -> None:
    months = tmp_path / "months"
    months.mkdir()
    for month in ("1", "2"):
        written(months / f"{month}.csv", 300, [int(month)])
    text = (months / "2.csv").read_text()
    (months / "2.csv").write_text(text.replace("YEAR", "Year", 1))
    done = imported(tmp_path / "chain", "--skip-bad", str(months))
    assert done.returncode == 1
    assert "months/2.csv': has bad rows, and its header differs from" in done.stderr
    assert transactions_in(tmp_path / "chain") == 0


ONE_FILE = (
    "--bad-rows needs FILES to be a single file or month; without it, each gets a file in the "
    "working folder"
)


NO_FILE = "Invalid value for '[FILES]...': there is no file"


@each_of(
    ("arguments", "refusal"),
    [
        ("--if-empty --skip-bad --yes", "--skip-bad needs FILES or --nycflights"),
        ("--if-empty --on-conflict keep", "--on-conflict needs FILES or --nycflights"),
        ("--if-empty --dates day-first", "--dates needs FILES"),
        ("--if-empty --seed 1", "--seed needs --generate"),
        ("--generate 5 --frontend", "--frontend needs --then-serve"),
        ("--nycflights --dates month-first", "--dates needs FILES"),
        ("bts:2008-01 --dates month-first", "--dates needs FILES"),
        (f"{__file__} --yes", "--yes needs --skip-bad"),
        ("nycflights", f"{NO_FILE} 'nycflights'; did you mean --nycflights?"),
        ("generate:9:3", f"{NO_FILE} 'generate:9:3'; did you mean --generate 9 --seed 3?"),
        (f"{__file__} --skip-at-most 1", "--skip-at-most needs --skip-bad"),
        (f"{__file__} --bad-rows x.csv", "--bad-rows needs --skip-bad"),
        *(
            (f"{files} --skip-bad --bad-rows x.csv", ONE_FILE)
            for files in ("--nycflights", f"{__file__} {__file__}", "bts:2008-01..latest")
        ),
    ],
)
def test_what_would_do_nothing_is_refused(tmp_path: Path, arguments: str, refusal: str) -> None:
    done = call(tmp_path / "chain", "import", *arguments.split())
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"Error: {refusal}")
    assert not (tmp_path / "chain").exists()


@pytest.mark.parametrize("more", [[], ["--frontend"]])
def test_after_the_import_it_serves_with_the_pages_where_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, words: commands.append(words[1:]))
    ports = {f"FLIGHTCHAIN_{name}PORT": free_port() for name in ("", "FRONTEND_")}
    done = call(tmp_path, "import", "--generate", "3", "--then-serve", *more, **ports)
    assert done.returncode == 0, done.stderr
    assert commands == [["-m", "backend", "serve", *more]]


def test_every_option_of_import_is_refused_where_it_would_do_nothing() -> None:
    """An option that needs no other begins an import, or is good for each."""
    free = {"files", "nycflights", "generate", "if_empty", "then_serve", "keep_zips"}
    assert {option.name for option in import_command.params} - free == set(NEEDS)


@pytest.mark.parametrize(
    ("file", "closed", "status", "message"),
    [
        ("-", "<&-", 1, "error: standard input is closed; name a file, or send one through a pipe"),
        ("some.csv", ">&- 2>&-", 0, ""),
    ],
)
def test_a_closed_descriptor_is_no_traceback(
    tmp_path: Path, file: str, closed: str, status: int, message: str
) -> None:
    written(tmp_path / "some.csv", 3)
    done = ran(
        *("sh", "-c", f'exec "$@" {closed}', "sh"),
        *(sys.executable, "-m", "backend", "import", file),
        cwd=tmp_path,
        env=variables(tmp_path / "chain"),
        timeout_s=WAIT_S,
    )
    assert (done.returncode, done.stderr.strip()) == (status, message)
    assert transactions_in(tmp_path / "chain") == (0 if message else 3)


def test_the_share_of_bad_rows_is_rounded_so_that_the_advice_works(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = Checked("some.csv", rows=10_000, bad=BadRows(count=104))
    refused = pytest.raises(FlightchainError, match=r"--skip-at-most 1\.1; nothing")
    with refused, ImportDialogue(Skipping(is_wanted=True, most_percent=1.0)) as dialogue:
        dialogue.watcher().decide([few])
    with pytest.raises(FlightchainError), ImportDialogue(Skipping()) as dialogue:
        dialogue.watcher().decide([Checked("some.csv", rows=9, bad=BadRows(count=9))])
    assert "9 of 9 rows (100 %) are bad" in capsys.readouterr().err


def test_a_disk_that_refuses_may_have_taken_more_than_was_counted() -> None:
    with (
        pytest.raises(WriteFailed, match="full; at least 8 flights were imported before; run"),
        ImportDialogue(Skipping()) as dialogue,
    ):
        for done in (5, 2):
            dialogue.watcher().on_done(Tally("done.csv", imported=done))
        dialogue.watcher().on_progress(Tally("begun.csv", imported=1))
        raise WriteFailed("the disk is full")


def test_conflicts_that_came_after_the_check_end_the_import_where_they_are_not_wanted() -> None:
    with (
        pytest.raises(FlightchainError, match=r"2 flights contradict .* 5 flights .* before$"),
        ImportDialogue(Skipping(), FAIL) as dialogue,
    ):
        dialogue.watcher().on_done(Tally("some.csv", imported=5, conflicts=2))


def test_ctrl_c_may_come_when_more_is_stored_than_was_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(KeyboardInterrupt), ImportDialogue(Skipping()) as dialogue:
        dialogue._importing = 9
        raise KeyboardInterrupt
    assert "at least 9 flights were imported; run" in capsys.readouterr().err


# --- a full disk, and a kill, in the check ---------------------------------------------------


def test_an_import_killed_in_its_check_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    assert imported(folder, "--generate", "10").returncode == 0
    before = sorted(folder.rglob("*"))
    ours, theirs = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-m", "backend", "import", "-"], env=variables(folder), stdin=ours
    ) as process:
        os.close(ours)
        os.write(theirs, csv_of(flights(100)).encode())
        until(lambda: any("(deleted)" in name for name in descriptors_of(process.pid).values()))
        process.kill()
    os.close(theirs)
    assert sorted(folder.rglob("*")) == before
    assert transactions_in(folder) == 10
