import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from loadtests.bench import benchmark
from loadtests.bench.benchmark import ROWS, describe_answers, options_from, plan_from, text_of
from loadtests.bench.figures import (
    Bound,
    Figure,
    Target,
    and_best,
    at_least,
    at_most,
    is_noisy,
    ratio,
    spread,
    table,
)
from loadtests.bench.measurements import read
from loadtests.bench.posting import CLUSTER, obstacle, slowed
from loadtests.bench.session import QUICK, Bench
from loadtests.chains import RECORD, generated
from loadtests.machine import at_most_cores, file_system
from loadtests.number_format import format_number
from loadtests.process_table import family
from loadtests.processes import PROJECT, ProgramFailed, environment
from loadtests.questions import KINDS, KNOWN_MONTH, Flight, Question, drawn
from loadtests.servers.cluster_server import missing
from loadtests.wrk import Load, WrkFailed, parsed, write_script
from tests.api.processes import until

needs_wrk = pytest.mark.skipif(
    shutil.which("wrk") is None, reason="needs the load generator wrk; on Debian: apt install wrk"
)
needs_strace = pytest.mark.skipif(
    obstacle(slowed(1)) is not None, reason="needs strace; on Debian: apt install strace"
)
AT_MOST_S = 600  # a few minutes on a busy small PC; only there so that nothing hangs

# --- wrk -------------------------------------------------------------------------------------

QUIET = """\
Running 3s test @ http://127.0.0.1:41234
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.06ms    1.25ms  13.58ms   78.03%
    Req/Sec     2.58k   150.00     2.79k    70.00%
  Latency Distribution
     50%    2.88ms
     75%    3.60ms
     90%    4.55ms
     99%    {p99}
  7767 requests in 3.01s, 3.15MB read
{errors}Requests/sec:   2580.40
Transfer/sec:      1.05MB
"""


def printed(p99: str = "7.47ms", errors: str = "") -> str:
    return QUIET.format(p99=p99, errors=errors)


def test_what_wrk_prints_is_understood() -> None:
    assert parsed(printed()) == Load(7767, 2580.40, 7.47, failed=0)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("812.00us", 0.812),
        ("2.88ms", 2.88),
        ("1.50s", 1500.0),
        ("1.17s ", 1170.0),
        ("2.00m", 120_000.0),
    ],
)
def test_every_unit_of_latency_becomes_milliseconds(text: str, milliseconds: float) -> None:
    assert parsed(printed(p99=text)).p99_ms == pytest.approx(milliseconds)


def test_refused_requests_and_socket_errors_are_failures() -> None:
    refused = "  Non-2xx or 3xx responses: 5\n"
    sockets = "  Socket errors: connect 1, read 20, write 300, timeout 4000\n"
    assert parsed(printed(errors=refused)).failed == 5
    assert parsed(printed(errors=sockets)).failed == 4321
    assert parsed(printed(errors=sockets + refused)).failed == 4326


@pytest.mark.parametrize("missing", ["Requests/sec", " requests in ", "     99%"])
def test_output_of_another_shape_is_refused(missing: str) -> None:
    with pytest.raises(WrkFailed):
        parsed("\n".join(line for line in printed().splitlines() if missing not in line))


def test_the_script_holds_every_path(tmp_path: Path) -> None:
    paths = ["/flight_counter?ORIGIN_CITY_NAME=Chicago%2C+IL", "/health/live"]
    text = write_script(tmp_path / "load.lua", paths).read_text()
    assert all(f'"{path}"' in text for path in paths)
    assert "at % #requests" in text


# --- figures ---------------------------------------------------------------------------------


def test_ratios_are_taken_pair_by_pair() -> None:
    figure = ratio(2, "few", [9.0, 10.0], [10.0, 5.0], at_least(1.4))
    assert (figure.measured, figure.reached, figure.noisy) == ("1.45 (0.9 to 2)", True, True)
    with pytest.raises(ValueError, match="longer"):
        ratio(2, "few", [1.0], [1.0, 2.0], None)


@pytest.mark.parametrize(
    ("target", "words", "reached"),
    [
        (at_least(2), "at least 2 s", True),
        (at_least(2.1), "at least 2.1 s", False),
        (at_most(2), "at most 2 s", True),
        (at_most(1.9), "at most 1.9 s", False),
        (Bound("under", 2), "under 2 s", False),
        (at_most(100_000), "at most 100,000 s", True),
        (None, "", None),
    ],
)
def test_a_target_is_reached_by_the_median(
    target: Target, words: str, reached: bool | None
) -> None:
    figure = Figure.judged(6, "start", [1.9, 2.0, 2.1], target, unit=" s")
    assert (figure.measured, figure.target) == ("2 (1.9 to 2.1) s", words)
    assert figure.reached is reached
    assert Figure.judged(6, "start", 2, target, unit=" s").measured == "2 s"


def test_who_failed_has_reached_nothing() -> None:
    figure = Figure.judged(1, "questions", 2.0, at_least(1), failed=3)
    assert (figure.measured, figure.reached) == ("2, 3 FAILED", False)


def test_a_spread_is_lowest_median_and_highest() -> None:
    assert spread([3.0, 1.0, 2.0]) == "2 (1 to 3)"
    assert and_best([3.0, 1.0, 2.0]) == "2, best 3"
    assert spread([1.0, 2.0]) == "1.5 (1 to 2)"


@pytest.mark.parametrize(
    ("values", "noisy"),
    [([1.0], False), ([0.91, 1.0, 1.09], False), ([0.8, 1.0, 1.05], True), ([10, 10, 13], True)],
)
def test_a_wide_spread_is_noisy(values: list[float], noisy: bool) -> None:
    assert is_noisy(values) is noisy


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.91234, "0.912"), (15.04, "15"), (123.4, "123"), (104_512.7, "104,513"), (0.0, "0")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert format_number(value) == text


FIGURES = [
    Figure(1, "questions", "0.95", "at least 0.9", reached=True),
    Figure(6, "start", "1.2 s", "under 1 s", reached=False, noisy=True),
    Figure(5, "index", "36"),
]


def test_the_table_has_a_line_for_each_figure() -> None:
    heading, rule, *lines = table(FIGURES).splitlines()
    assert heading.split() == ["row", "what", "measured", "target", "reached"]
    assert set(rule) == {"-", " "}
    assert [line.split() for line in lines] == [
        ["1", "questions", "0.95", "at", "least", "0.9", "yes"],
        ["6", "start", "1.2", "s,", "noisy", "under", "1", "s", "no"],
        ["5", "index", "36", "-", "-"],
    ]
    assert {line.index(figure.what) for line, figure in zip(lines, FIGURES, strict=True)} == {5}


def test_a_run_too_small_to_tell_reaches_nothing() -> None:
    text = table(FIGURES, is_meaningless=True)
    assert "yes" not in text
    assert text.count("(too small to tell)") == 2


def test_a_report_says_what_became_of_the_known_answers() -> None:
    assert "not asked" in describe_answers(None)
    assert "from both engines" in describe_answers([])
    answers = describe_answers(["GET /x: 1, not 2"])
    assert answers == "WRONG ANSWERS:\nGET /x: 1, not 2"
    assert answers in text_of({"quick": False}, FIGURES, answers)


def test_a_row_that_fails_loses_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def whole(bench: object) -> Iterator[Figure]:
        yield Figure(4, "first", "1")

    def broken(bench: object) -> Iterator[Figure]:
        yield Figure(5, "second", "2")
        raise ProgramFailed("it broke")

    monkeypatch.setattr(benchmark, "ROWS", {5: broken, 4: whole})
    monkeypatch.setattr("signal.signal", lambda *given: None)
    assert benchmark.main(["--quick"]) == 1
    output = capsys.readouterr().out
    for text in ("first", "second", "NOT measured to its end: it broke"):
        assert text in output


# --- options, questions, machine -------------------------------------------------------------


def test_options_choose_how_much_is_measured() -> None:
    whole = plan_from(options_from([]))
    assert whole.rows == set(range(2, 18)) - {8, 10} == set(ROWS)
    assert (whole.flights, whole.factors) == (606_000, (4,))
    assert plan_from(options_from(["--full"])).factors == (4, 100)
    assert plan_from(options_from(["--only", "2", "3"])).rows == {2, 3}
    assert plan_from(options_from(["--quick"])).flights < 10_000


@pytest.mark.parametrize(
    "wrong", [["--only", "19"], ["--only", "10"], ["--month", "/no/such/file"], ["--fast"]]
)
def test_wrong_options_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        options_from(wrong)
    assert refused.value.code == 2


def test_without_a_file_generated_flights_take_the_months_place_and_this_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "DEFAULT_MONTH", tmp_path / KNOWN_MONTH)
    source = benchmark.month_from(options_from([]))
    assert source.arguments == ("--generate", "605765")
    assert not source.is_known_month
    assert "605,765 generated flights take its place" in capsys.readouterr().err


def test_long_chains_need_room_unless_they_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan = replace(QUICK, flights=1_000_000, factors=(4, 100))
    bench = Bench(plan, generated(1), tmp_path, tmp_path, tmp_path / "log", None)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=9e9))
    with pytest.raises(ProgramFailed, match=r"104,000,000 .* need 12\.5 GB, and .* has 9\.0 GB"):
        bench.require_room()
    kept = tmp_path / "100,000,000 generated flights".replace(" ", "-").replace(",", "")
    kept.mkdir()
    (kept / RECORD).touch()
    bench.require_room()


def test_answers_are_known_for_the_file_of_that_name_alone(tmp_path: Path) -> None:
    for name, is_known in ((KNOWN_MONTH, True), ("other.csv", False)):
        (tmp_path / name).touch()
        options = options_from(["--month", str(tmp_path / name)])
        assert benchmark.month_from(options).is_known_month is is_known


def a_flight(day: str, number: int) -> Flight:
    return {
        "FL_DATE": day,
        "OP_CARRIER_FL_NUM": number,
        "OP_CARRIER_AIRLINE_ID": 19000 + number,
        "ORIGIN_CITY_NAME": f"San José {number}, CA",
        "DEST_CITY_NAME": "Chicago, IL",
    }


ASKED_ABOUT = [
    a_flight(day, number)
    for number, day in enumerate(["2015-01-03", "2015-01-31", "2015-02-01", "2015-03-09"])
]


def test_the_same_seed_draws_the_same_questions() -> None:
    assert drawn(ASKED_ABOUT, 50, seed=1) == drawn(ASKED_ABOUT, 50, seed=1)
    assert drawn(ASKED_ABOUT, 50, seed=1) != drawn(ASKED_ABOUT, 50, seed=2)


def test_every_interval_holds_its_flight_and_lies_within_the_month_and_the_flights() -> None:
    questions = drawn(ASKED_ABOUT, 200, seed=1)
    assert {kind: len(group) for kind, group in questions.items()} == dict.fromkeys(KINDS, 200)
    day_of = {str(flight["OP_CARRIER_AIRLINE_ID"]): flight["FL_DATE"] for flight in ASKED_ABOUT}
    intervals = set()
    for question in questions["average_delays"]:
        day = date.fromisoformat(day_of[question.parameters["OP_CARRIER_AIRLINE_ID"]])
        initial = date.fromisoformat(question.parameters["INITIAL_DATE"])
        final = date.fromisoformat(question.parameters["FINAL_DATE"])
        assert date(2015, 1, 3) <= initial <= day <= final <= date(2015, 3, 9)
        assert (initial.year, initial.month) == (final.year, final.month)
        intervals.add((initial, final))
    assert len(intervals) > 50


def test_a_question_is_a_path_in_ascii() -> None:
    question = Question("flight_counter", {"ORIGIN_CITY_NAME": "San José, CA"})
    assert question.path == "/flight_counter?ORIGIN_CITY_NAME=San+Jos%C3%A9%2C+CA"
    assert question.scan_path == question.path + "&engine=scan"


def test_the_deepest_mount_is_the_file_system(tmp_path: Path) -> None:
    inner = tmp_path / "disk"
    inner.mkdir()
    mounts = f"/dev/a / ext4 rw 0 0\n/dev/b {inner} xfs rw 0 0\nnone {inner}-else tmpfs rw 0 0\n"
    assert file_system(inner / "chain", mounts) == "xfs on /dev/b"
    assert file_system(tmp_path, mounts) == "ext4 on /dev/a"


def test_cores_are_given_back() -> None:
    before = os.sched_getaffinity(0)
    with at_most_cores(1):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_settings_of_the_caller_do_not_reach_the_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLIGHTCHAIN_WORKERS", "7")
    monkeypatch.setenv("HOME", "/somewhere")
    given = environment(tmp_path, {"cache_bytes": 0})
    ours = {name: text for name, text in given.items() if name.startswith("FLIGHTCHAIN_")}
    assert ours == {
        "FLIGHTCHAIN_DIR": str(tmp_path),
        "FLIGHTCHAIN_CACHE_BYTES": "0",
        "FLIGHTCHAIN_CLOCK_WAIT_S": "0",
    }
    assert given["HOME"] == "/somewhere"


def test_a_family_is_a_process_and_its_descendants() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 60 & wait"]) as shell:
        try:
            until(lambda: len(family(shell.pid)) == 2)
            members = family(shell.pid)
            assert members[0] == shell.pid
            assert len(members) == 2
            assert set(members) < set(family(os.getpid()))
        finally:
            for pid in reversed(family(shell.pid)):
                os.kill(pid, signal.SIGKILL)


# --- a slow disk -----------------------------------------------------------------------------

SYNCING = "import os, sys, time\nbefore = time.monotonic()\nos.fdatasync(int(sys.argv[1]))\n"
SYNCING += "print(os.getpid(), time.monotonic() - before)"


@needs_strace
def test_syncs_take_so_much_longer_and_the_process_stays_the_one_that_was_started(
    tmp_path: Path,
) -> None:
    prefix = slowed(300)
    assert obstacle(prefix) is None
    with (tmp_path / "file").open("wb") as file:
        command = [*prefix, sys.executable, "-c", SYNCING, str(file.fileno())]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, pass_fds=[file.fileno()]
        ) as process:
            output, _ = process.communicate(timeout=AT_MOST_S)
    pid, took_s = output.split()
    assert int(pid) == process.pid
    assert float(took_s) >= 0.3


def test_without_strace_nothing_is_slowed_and_it_is_said() -> None:
    assert "nowhere is missing" in str(obstacle(slowed(1, strace="nowhere")))
    assert "false does not work" in str(obstacle(slowed(1, strace="false")))


# --- whole runs ------------------------------------------------------------------------------


@contextmanager
def a_quick_run(folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    """`--quick` with its temporary files below `folder`."""
    with subprocess.Popen(
        [sys.executable, "-m", "loadtests.bench.benchmark", "--quick", *options],
        cwd=PROJECT,
        env=os.environ | {"TMPDIR": str(folder), "FLIGHTCHAIN_PORT": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            yield run
        finally:
            run.terminate()


@pytest.mark.long
@needs_wrk
def test_a_quick_run_measures_every_row_and_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary, report = tmp_path / "temporary", tmp_path / "report.json"
    temporary.mkdir()
    with a_quick_run(temporary, "--json", str(report)) as run:
        output, progress = run.communicate(timeout=AT_MOST_S)
    assert run.returncode == 0, progress
    assert "THE NUMBERS MEAN NOTHING" in output
    assert list(temporary.iterdir()) == []
    rows = read(report)
    left_out = {CLUSTER} if missing() else set()
    assert {row.number for row in rows} == ROWS.keys() - left_out
    assert {row.flights for row in rows} == {generated(QUICK.flights).label}
    assert not [row for row in rows if "FAILED" in row.value or "NOT" in row.value]
    assert "\nfile_system: " in output
    assert all(f"  {row.name}  " in output for row in rows)


@needs_wrk
def test_an_interrupted_run_ends_its_services_and_removes_its_files(tmp_path: Path) -> None:
    with a_quick_run(tmp_path, "--only", "7") as run:
        assert run.stderr is not None
        for line in run.stderr:
            if "every question, and scans" in line:
                break
        # Who watches, the miner, the web server and its workers, the last of which may come late.
        until(lambda: len(family(run.pid)[1:]) >= 5)
        started = family(run.pid)[1:]
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=AT_MOST_S)
    assert run.returncode == 130
    assert list(tmp_path.iterdir()) == []
    # wrk was killed, which the kernel may not have finished.
    until(lambda: not [pid for pid in started if has_not_ended(pid)])


def has_not_ended(pid: int) -> bool:
    """Whether the process is more than an entry that nobody has taken note of yet (a zombie)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


@needs_wrk
def test_chains_that_are_kept_are_used_again(tmp_path: Path) -> None:
    for is_first in (True, False):
        kept = ("--only", "5", "--keep", str(tmp_path / "kept"))
        with a_quick_run(tmp_path, *kept) as run:
            _, progress = run.communicate(timeout=AT_MOST_S)
        assert run.returncode == 0, progress
        assert ("importing" in progress) is is_first
