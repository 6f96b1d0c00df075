"""scripts/bulk_post against a service, which has processes if a test is slow."""

import csv
import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from threading import Event

import pytest

from backend.chain.flight import examine
from tests.api.processes import WITHIN_S, Reached, Service, free_port, ran, until
from tests.cases import each_of
from tests.client.bad_network import spoiling
from tests.client.samples import (
    NDJSON,
    SCRIPTS,
    bulk_post,
    day_first,
    mined,
    packed,
    posted,
    script,
)
from tests.flights import csv_of, flights


@pytest.mark.parametrize(("mode", "batch"), [("async", 15), ("sync", 0), ("commit", 15)])
def test_it_posts_and_measures_in_every_mode(service: Reached, mode: str, batch: int) -> None:
    arguments = ("--generate", 3, "--threads", 3, "--transactions-per-thread", 20)
    status, report, errors = bulk_post(service, *arguments, "--mode", mode, "--batch", batch)
    assert (status, report["errors"], report["messages"]) == (0, {}, [])
    requests = 60 if batch == 0 else 6  # 15 and 5 for each thread
    assert (report["flights"], report["requests"]) == (60, requests)
    assert report["accepted"] == {"mined" if mode == "commit" else "pending": requests}
    assert report["flights_per_s"] == pytest.approx(60 / report["elapsed_s"])
    ranks = [report["latency_s"][name] for name in ("p50", "p90", "p95", "p99", "max")]
    assert ranks == sorted(ranks)
    assert 0 < ranks[-1] <= report["elapsed_s"]
    assert "3 threads" in errors
    assert len(set(mined(service))) == 60


def test_it_writes_every_request_as_a_row(service: Reached, tmp_path: Path) -> None:
    path, arguments = tmp_path / "rows.csv", ("--generate", 1, "--threads", 2, "--no-keys")
    with spoiling(service, "", "1", "cut") as proxy:
        posting = (*arguments, "--transactions-per-thread", 6, "--rows", path, "--url", proxy.url)
        _, report, _ = bulk_post(service, *posting)
    with path.open(newline="", encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert sorted(row["status"] for row in written) == ["0", *["202"] * 10, "503"]
    assert sum(int(row["flights"]) for row in written) == report["flights"] == 10
    for thread in "01":
        of_thread = [row for row in written if row["thread"] == thread]
        assert [row["number"] for row in of_thread] == [str(n) for n in range(len(of_thread))]
        times = [float(row[name]) for row in of_thread for name in ("sent_s", "done_s")]
        assert times == sorted(times)
    first = min(float(row["sent_s"]) for row in written)
    last = max(float(row["done_s"]) for row in written)
    assert 0 < last - first < report["elapsed_s"] + 1e-5
    assert last < time.perf_counter()  # the clock of this process, too


def test_rows_that_cannot_be_written_are_said_before_anything_is_posted(service: Reached) -> None:
    arguments = ("--generate", 1, "--rows", "/proc/nothing/rows.csv")
    status, report, errors = bulk_post(service, *arguments)
    assert (status, report) == (1, {})
    assert "/proc/nothing/rows.csv" in errors
    assert mined(service) == []


def test_made_up_flights_are_valid_and_those_of_their_seed() -> None:
    flights_made = list(islice(script.generated("1 0"), 5000))
    assert [problems for flight in flights_made if (problems := examine(flight)[1])] == []
    assert flights_made[:100] == list(islice(script.generated("1 0"), 100))
    assert flights_made[:100] != list(islice(script.generated("1 1"), 100))
    assert {flight["CANCELLED"] for flight in flights_made} == {0, 1}


MONTHLY = {
    "FL_DATE": "FlightDate",
    "OP_CARRIER_AIRLINE_ID": "DOT_ID_Reporting_Airline",
    "OP_CARRIER_FL_NUM": "Flight_Number_Reporting_Airline",
    "YEAR": "something else",
    "DAY_OF_WEEK": "",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "batch"),
    [("monthly.csv", 4), ("us.csv", 0), ("f.ndjson", 4), ("export.ndjson", 0), ("f.zip", 0)],
)
def test_it_posts_files_once(service: Reached, tmp_path: Path, name: str, batch: int) -> None:
    text = NDJSON if name.endswith("ndjson") else csv_of(flights(25))
    if name == "monthly.csv":
        head, _, rest = text.partition("\n")
        titles = [MONTHLY.get(title, title) for title in head.split(",")]
        text = ",".join(titles) + "\n" + rest
    elif name == "export.ndjson":
        text += '{"complete":true,"count":25}\n'
    elif name == "us.csv":
        text = text.replace("2008-01-03", "1/3/2008 12:00:00 AM")
    path = packed(tmp_path / name, text)
    arguments = ("--threads", 4, "--batch", batch, "--duplicates", "accept")
    status, report, errors = bulk_post(service, path, *arguments)
    assert (status, report["flights"]) == (0, 25), errors
    assert report["requests"] == (7 if batch else 25)
    _, report, _ = bulk_post(service, path, "--batch", batch)
    assert (report["flights"], report["there_already"], report["accepted"]) == (0, 25, {})
    assert sorted(mined(service)) == flights(25)


@pytest.mark.slow
def test_nothing_of_a_file_with_a_bad_flight_is_posted(service: Reached, tmp_path: Path) -> None:
    for path in (
        packed(tmp_path / "f.csv", csv_of([*flights(9, 12_000), ["?", *flights(1)[0][1:]]])),
        packed(tmp_path / "f.ndjson", NDJSON + "{\n"),
    ):
        status, report, errors = bulk_post(service, path)
        assert (status, report, errors.startswith("error: 422")) == (1, {}, True), errors
        assert ("row 11" in errors) == (path.suffix == ".csv")
    assert mined(service) == []


@pytest.mark.slow
def test_a_file_whose_lines_it_cannot_cut_is_not_posted(service: Reached, tmp_path: Path) -> None:
    text = csv_of(flights(9))
    for other, reason in (
        (text.encode("utf-16"), "it is UTF-16"),
        (gzip.compress(text.encode("utf-16")), "it is UTF-16"),
        (text.replace("\n", "\r").encode(), "its lines end in CR alone"),
        (f"\n{text}".encode(), "its titles do not stand in its first line"),
        (f"sep=,\n{text}".encode(), "its titles do not stand in its first line"),
        (text.replace("Tampa, ", "Tampa,\n").encode(), "a row has a line break in quotes"),
    ):
        path = tmp_path / ("f.csv.gz" if other.startswith(b"\x1f\x8b") else "f.csv")
        path.write_bytes(other)
        status, _, errors = bulk_post(service, path, "--batch", 4)
        assert status == 1
        assert f"{path.name} cannot be cut into batches: {reason}; use python -m backend" in errors
    assert mined(service) == []


@pytest.mark.slow
def test_days_that_may_be_read_in_two_ways_need_an_option(service: Reached, tmp_path: Path) -> None:
    path = day_first(tmp_path, ["03/02/2019", "04/02/2019"])
    status, _, errors = bulk_post(service, path)
    assert (status, "It has days such as '03/02/2019', which may be" in errors) == (1, True)
    assert "dates=" in errors  # of the service, not of its command
    status, report, errors = bulk_post(service, path, "--dates", "day-first")
    assert (status, report["flights"]) == (0, 2), errors


def test_a_zip_that_cannot_be_unpacked_is_named(tmp_path: Path) -> None:
    path = packed(tmp_path / "f.zip", NDJSON)
    content = path.read_bytes().replace(b"\3\x14\0\0\0", b"\3\x14\0\1\0")
    needs_password = content.replace(b"\3\4\x14\0\0\0", b"\3\4\x14\0\1\0")
    for other, reason in ((needs_password, "is encrypted"), (content[:-30], "is not a zip file")):
        path.write_bytes(other)
        status, _, errors = posted("--url", f"http://127.0.0.1:{free_port()}", path)
        assert status == 1
        assert errors.startswith(f"error: {path} cannot be unpacked (")
        assert reason in errors


@pytest.mark.slow
def test_waiting_for_503_is_part_of_the_latency(service: Reached) -> None:
    arguments = ("--generate", 1, "--threads", 1, "--transactions-per-thread", 4)
    with spoiling(service, "", "1", "cut") as proxy:
        status, report, _ = bulk_post(service, *arguments, "--url", proxy.url)
    assert (status, report["flights"], report["requests"]) == (0, 4, 4)
    assert (report["waited_for_503"], report["waited_for_503_share"]) == (1, 0.25)
    assert report["repeats"] == {"503": 1, "unreachable": 1}
    assert (longest_s := report["latency_s"]["max"]) > 1 > report["latency_s"]["p50"]
    assert f"  max {1000 * longest_s:.1f}\n" in script.as_text(report)
    assert len(mined(service)) == 4
    with spoiling(service, "", "1", "cut") as proxy:
        status, report, _ = bulk_post(service, *arguments, "--url", proxy.url, "--no-keys")
    assert (status, report["flights"]) == (1, 2)
    assert report["errors"] == {"503": 1, "unreachable": 1}


def test_it_fails_and_ends_when_the_service_has_gone_or_the_file_is_cut(tmp_path: Path) -> None:
    options = script.parsed(["--url", f"http://127.0.0.1:{free_port()}", "--generate", "1"])
    path = packed(tmp_path / "f.ndjson.gz", NDJSON)
    path.write_bytes(path.read_bytes()[:-9])
    for pieces, error in (
        (script.made_up(options, 0), "unreachable"),
        (script.batches_in(path, 99), "file"),
    ):
        poster = script.Poster(options, pieces, Event())
        poster.run()
        assert [row.error for row in poster.rows] == [error]


def test_it_can_be_interrupted_while_the_file_is_checked(
    service: Reached, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flightchain_client._SentFile.report", interrupted)
    status, output, errors = posted("--url", service.url, packed(tmp_path / "f.csv", "text"))
    assert (status, output, errors) == (130, "", "\nstopped; nothing was posted\n")
    assert list(service.folder.glob("import-*")) == []


def test_percentiles_are_nearest_ranks() -> None:
    values = [float(n) for n in range(1, 11)]
    percentiles = [script.percentile(values, p) for p in (0, 10, 50, 51, 90, 91, 99, 100)]
    assert percentiles == [1, 1, 5, 6, 9, 10, 10, 10]
    assert script.percentile([], 50) is None
    assert script.percentile([7.0], 50) == 7


@pytest.mark.slow
def test_interrupted_it_tells_what_was_measured(guarded: tuple[Service, str]) -> None:
    service, token = guarded
    arguments = ["--generate", "2", "--threads", "12", "--mode", "commit", "--token", token]
    command = [sys.executable, str(SCRIPTS / "bulk_post"), "--url", service.url, *arguments]
    before = service.json("/tip")["pending"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(lambda: service.json("/tip")["pending"] > before + 30)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=WITHIN_S)
    accepted = service.json("/tip")["pending"] - before
    assert process.returncode == 130
    assert "Traceback" not in errors
    numbers = {line[:14].strip(): line[14:].split()[0] for line in output.splitlines()}
    assert numbers["failed"] == "none"
    assert 0 < int(numbers["unfinished"]) < 12  # those who wait for a block that does not come
    assert int(numbers["flights"]) == accepted - int(numbers["unfinished"])


@each_of(
    ("arguments", "message"),
    [
        ((), "--generate SEED"),
        (("f.csv", "--generate", "1"), "--generate SEED"),
        (("nothing.csv",), "error: nothing.csv: No such file or directory"),
        ((str(SCRIPTS / "lib.sh"),), "also in a .gz or .zip); use python -m backend import"),
        (("--generate", "1", "--batch", "-1"), "--batch"),
        (("--generate", "1", "--threads", "0"), "--threads"),
        (("--generate", "1"), "is the service running"),
    ],
)
def test_what_it_cannot_do_it_says(arguments: tuple[str, ...], message: str) -> None:
    status, _, errors = posted("--url", f"http://127.0.0.1:{free_port()}", *arguments)
    assert status in {1, 2}
    assert message in errors


def test_it_never_posts_to_an_address_that_was_not_given() -> None:
    status, output, errors = posted("--generate", "1")
    assert (status, output) == (2, "")
    assert "--url" in errors


@pytest.mark.slow
def test_it_needs_the_client_beside_it_and_nothing_else_of_ours(
    service: Reached, tmp_path: Path
) -> None:
    assert os.access(SCRIPTS / "bulk_post", os.X_OK)
    for name in ("bulk_post", "flightchain_client.py"):
        shutil.copy(SCRIPTS / name, tmp_path / name)
    arguments = ["--generate", "1", "--threads", "1", "--transactions-per-thread", "1"]
    command = [sys.executable, str(tmp_path / "bulk_post"), "--url", service.url, *arguments]
    done = ran(*command, cwd=Path("/"))
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["flights", "1"])


@pytest.mark.slow
def test_without_requests_it_says_what_to_install(tmp_path: Path) -> None:
    for name in ("bulk_post", "flightchain_client.py"):
        shutil.copy(SCRIPTS / name, tmp_path / name)
    command = [sys.executable, "-S", "-E", str(tmp_path / "bulk_post")]  # -S: no site-packages
    bare = {name: value for name, value in os.environ.items() if name != "VENV"}  # of scripts/test
    done = ran(*command, env=bare)
    assert done.returncode == 1
    assert "No module named 'requests'" in done.stderr
    assert "-m pip install requests" in done.stderr
