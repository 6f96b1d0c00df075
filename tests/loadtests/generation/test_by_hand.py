"""Both workloads as a person runs them: headless, with the web page, over several processes."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest
import requests

from loadtests.generation.rows import Row, read_rows
from loadtests.generation.schedule import Request, mixed, save_requests
from loadtests.processes import Service, free_port
from loadtests.questions import KINDS
from tests.http_servers import Handler, served_by
from tests.loadtests.generation.conftest import WITHIN_S, Hand, until


def in_the_long_run(*values: object) -> Any:
    """A row of parameters that `scripts/test --long` tries: each row starts Locust once more."""
    return pytest.param(*values, marks=pytest.mark.long)


def rows_in(path: Path) -> list[Row]:
    return read_rows(path) if path.exists() else []


def distributed(hand: Hand, workload: str, *arguments: object) -> "list[int]":
    """Exit statuses of a master and its two workers."""
    port = free_port()
    at = ("--master-bind-host", "127.0.0.1", "--master-bind-port", port)
    master = hand.start(workload, "--headless", "--master", "--expect-workers", 2, *at, *arguments)
    workers = [hand.start(workload, "--worker", "--master-port", port) for _ in range(2)]
    return [process.wait(WITHIN_S) for process in (master, *workers)]


SHAPE = """
from pathlib import Path
from locust import LoadTestShape

class EverySecond(LoadTestShape):
    def tick(self):
        is_over = Path(__file__).with_suffix(".over").exists()
        return None if is_over else (2 + int(self.get_run_time()), 50)
"""

# Keeps Locust busy with printing its statistics, where it drops a KeyboardInterrupt.
PRINTING = """
from pathlib import Path
from locust import stats

def printing(found, current=True):
    if Path("{0}.begin").exists():
        Path("{0}.begun").touch()
    while Path("{0}.begun").exists() and not Path("{0}.over").exists():
        pass

stats.print_stats, stats.CONSOLE_STATS_INTERVAL_SEC = printing, 0.1
"""


@pytest.mark.parametrize("ended_by", ["ctrl-c", in_the_long_run("shape")])
def test_what_is_under_way_at_a_stop_is_a_row_but_no_failure_of_the_server(
    hand: Hand, threads: Service, tmp_path: Path, ended_by: str
) -> None:
    raw, paths, ending = tmp_path / "raw.csv", tmp_path / "paths.csv", tmp_path / "ending.py"
    paths.write_text("kind,path\nshort,/?service_s=0.05\nlong,/?service_s=3\n")
    ending.write_text(SHAPE if ended_by == "shape" else PRINTING.format(ending.with_suffix("")))
    chosen = ("--rate", 20, "--law", "deterministic", "--duration", 600)
    service = ("--host", threads.url, "--paths", paths, "--raw", raw)
    workloads = "open" if ended_by == "shape" else "open,closed"  # who hears it twice dies of it
    locust = hand.start(f"{workloads},{ending}", "--headless", *service, *chosen)
    until(lambda: len(rows_in(raw)) >= 5)
    if ended_by == "ctrl-c":
        ending.with_suffix(".begin").touch()
        until(ending.with_suffix(".begun").exists)
        locust.send_signal(signal.SIGINT)
    ending.with_suffix(".over").touch()
    assert locust.wait(WITHIN_S) == 0, hand.output
    rows = [row for row in rows_in(raw) if row.run == "open"]
    assert sorted(row.index for row in rows) == list(range(len(rows)))
    stopped = [row for row in rows if row.status == 0]
    assert stopped, "some were under way"
    assert len(rows) - len(stopped) >= 5
    assert {row.status for row in rows} == {0, 200}
    assert f"{len(stopped)} requests were under way" in hand.output


def test_a_master_and_two_workers_send_every_arrival_once(
    hand: Hand, threads: Service, tmp_path: Path, quick: Path
) -> None:
    raw = tmp_path / "raw.csv"
    service = ("--host", threads.url, "--paths", quick, "--raw", raw)
    chosen = ("--rate", 40, "--law", "deterministic", "--arrivals", 81)
    assert distributed(hand, "open", *service, *chosen) == [0, 0, 0], hand.output
    rows = sorted(rows_in(raw), key=lambda row: row.index)
    assert [row.index for row in rows] == list(range(81))
    assert [row.intended_s for row in rows] == pytest.approx(
        [(n + 1) / 40 for n in range(81)], abs=2e-6
    )
    assert {row.status for row in rows} == {200}


def test_customers_ask_for_kinds_by_their_shares(
    hand: Hand, threads: Service, tmp_path: Path
) -> None:
    raw, paths = tmp_path / "raw.csv", tmp_path / "paths.csv"
    choices = {kind: [Request(kind, "/?service_s=0")] for kind in "abc"}
    save_requests(paths, choices)
    chosen = ("--users", 1, "--think", 0, "--requests", 40, "--mix", "a=60,b=30,c=10", "--seed", 7)
    files = ("--paths", paths, "--raw", raw)
    assert hand.run("closed", "--host", threads.url, *files, *chosen) == 0, hand.output
    drawn = islice(mixed(choices, Random("7/0"), {"a": 60, "b": 30, "c": 10}), 40)
    assert [row.kind for row in rows_in(raw)] == [request.kind for request in drawn]


@pytest.mark.long
@pytest.mark.parametrize(("law", "is_random"), [("constant", False), ("exponential", True)])
def test_customers_think_as_the_law_says(
    hand: Hand, threads: Service, tmp_path: Path, quick: Path, law: str, *, is_random: bool
) -> None:
    raw = tmp_path / "raw.csv"
    chosen = ("--users", 1, "--think", 0.02, "--law", law, "--requests", 8)
    service = ("--host", threads.url, "--paths", quick, "--raw", raw)
    assert hand.run("closed", *service, *chosen) == 0, hand.output
    thoughts_s = [after.intended_s - row.done_s for row, after in pairwise(rows_in(raw))]
    assert (min(thoughts_s) < 0.0199) is is_random  # a busy machine adds to some, and takes nothing


@pytest.mark.long
def test_a_worker_that_is_lost_ends_the_run_and_its_rows_are_kept(
    hand: Hand, threads: Service, tmp_path: Path, quick: Path
) -> None:
    raw, port = tmp_path / "raw.csv", free_port()
    at = ("--master-bind-host", "127.0.0.1", "--master-bind-port", port)
    chosen = ("--host", threads.url, "--paths", quick, "--raw", raw, "--rate", 40)
    master = hand.start("open", "--headless", "--master", "--expect-workers", 2, *at, *chosen)
    workers = [hand.start("open", "--worker", "--master-port", port) for _ in range(2)]
    until(lambda: {row.index % 2 for row in rows_in(raw)} == {0, 1})
    workers[0].kill()
    assert master.wait(WITHIN_S) == 1
    assert "is lost, so the run ends" in hand.output
    assert workers[1].wait(WITHIN_S) == 0


def test_the_web_page_starts_runs_and_shows_the_same_latencies(
    hand: Hand, threads: Service, tmp_path: Path, quick: Path
) -> None:
    raw, port = tmp_path / "raw.csv", free_port()
    at = ("--web-host", "127.0.0.1", "--web-port", port)
    locust = hand.start("open", *at, "--paths", quick, "--raw", raw, "--host", "http://127.0.0.1:1")
    page = f"http://127.0.0.1:{port}"
    until(lambda: _answers(page))
    assert "Locust" in requests.get(page, timeout=10).text
    form = {"user_count": 7, "spawn_rate": 1, "host": threads.url, "rate": 50}
    for count in (20, 21):
        chosen = {**form, "arrivals": count}
        assert requests.post(f"{page}/swarm", data=chosen, timeout=10).json()["success"]
        until(lambda count=count: _total(page)["num_requests"] == count)  # type: ignore[misc]
        until(lambda: _stats(page)["state"] == "stopped")
    rows = rows_in(raw)
    assert [row.run for row in rows] == ["open"] * 20 + ["open-2"] * 21
    latest_ms = [row.open_response_s * 1e3 for row in rows[20:]]
    shown = _total(page)
    assert shown["max_response_time"] == pytest.approx(max(latest_ms), abs=1)
    assert shown["avg_response_time"] == pytest.approx(sum(latest_ms) / 21, abs=0.01)
    locust.send_signal(signal.SIGTERM)
    assert locust.wait(WITHIN_S) == 0


def _answers(page: str) -> bool:
    try:
        return requests.get(page, timeout=10).ok
    except requests.ConnectionError:
        return False


def _stats(page: str) -> dict[str, Any]:
    """What the page shows; it looks every two seconds."""
    statistics: dict[str, Any] = requests.get(f"{page}/stats/requests", timeout=10).json()
    return statistics


def _total(page: str) -> dict[str, float]:
    total: dict[str, float] = _stats(page)["stats"][-1]
    return total


@pytest.mark.parametrize(
    ("workload", "chosen", "message"),
    [
        in_the_long_run("open", ("--rate", 0), "error: --rate is 0.0; it must be above 0"),
        in_the_long_run(
            "open", ("--duration", "inf"), "error: --duration is inf; it must be a fin"
        ),
        in_the_long_run("interaction", ("--interactions", 10**9), "error: --interactions is 10000"),
        in_the_long_run("interaction", ("--scenario", "x"), "error: --scenario is 'x'; it must be"),
        in_the_long_run(
            "closed", ("-u", 10_001), "error: -u is 10001; there are at most 10000 cus"
        ),
        in_the_long_run(
            "open", ("--rate", 1e9, "-t", "3s"), "error: --rate is 1e+09; a Locust process sends fe"
        ),
        ("open", ("--raw", "PATHS"), "error: --raw: "),
    ],
)
def test_what_cannot_be_is_explained_and_ends_with_an_error(
    hand: Hand, quick: Path, workload: str, chosen: tuple[object, ...], message: str
) -> None:
    paths = () if workload == "interaction" else ("--paths", quick)
    host = ("--host", "http://127.0.0.1:1", *paths)
    given = [quick if item == "PATHS" else item for item in chosen]
    assert hand.run(workload, *host, *given) == 1
    assert message in hand.output


@pytest.mark.long
def test_a_host_at_which_nobody_answers_is_named(hand: Hand) -> None:
    assert hand.run("open", "--host", "http://127.0.0.1:1") == 1
    assert "error: no service answers at http://127.0.0.1:1: " in hand.output


@contextmanager
def slow_to_read(url: str, delay_s: float) -> Iterator[str]:
    """The service at `url`, but each block is read that late."""

    class Late(Handler):
        def do_GET(self) -> None:
            if self.path.startswith("/blocks"):
                sleep(delay_s)
            answer = requests.get(url + self.path, timeout=30)
            self.send_response(answer.status_code)
            self.send_header("Content-Length", str(len(answer.content)))
            self.send_header("Server-Timing", answer.headers["Server-Timing"])
            self.end_headers()
            self.wfile.write(answer.content)

    with served_by(Late) as late:
        yield late


@pytest.mark.parametrize("workload", ["open", in_the_long_run("closed")])
def test_questions_are_drawn_from_the_service_and_the_run_time_counts_the_load_alone(
    hand: Hand, request: pytest.FixtureRequest, tmp_path: Path, workload: str
) -> None:
    raw = tmp_path / "raw.csv"
    of_open = ("--rate", 20, "--law", "deterministic")
    chosen = of_open if workload == "open" else ("-u", 2, "-r", 2, "--think", 0.1)
    with slow_to_read(request.getfixturevalue("service").url, 0.15) as url:
        host = ("--host", url, "-t", "2s", "--raw", raw)
        assert hand.run(workload, *host, *chosen) == 0, hand.output
    rows = rows_in(raw)
    assert max(row.intended_s for row in rows) <= 2.001
    sent = len(rows)  # the 40th is due at the end
    assert sent in (39, 40) if workload == "open" else 0 < sent <= 42
    answered = [row for row in rows if row.status]  # the last may be under way at the end
    assert {row.status for row in answered} == {200}
    assert {row.kind for row in rows} == {*KINDS}
    assert all(row.service_s is not None and row.server_start_s is None for row in answered)


@pytest.mark.long
def test_both_files_load_together_in_several_processes(
    hand: Hand, threads: Service, tmp_path: Path, quick: Path
) -> None:
    raw = tmp_path / "raw.csv"
    service = ("--host", threads.url, "--paths", quick, "--raw", raw, "--processes", 2)
    chosen = ("--rate", 20, "--law", "deterministic", "-t", "2s", "-u", 4, "-r", 4, "--think", 0.1)
    port = free_port()
    at = ("--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--master-port", port)
    more = ("--csv", tmp_path / "table", "--html", tmp_path / "page.html")
    hand.start("open,closed", "--headless", *service, *chosen, *at, *more).wait(WITHIN_S)
    rows = rows_in(raw)
    assert sum(row.run == "open" for row in rows) == pytest.approx(40, abs=1), hand.output
    customers = {row.index % 10_000 for row in rows if row.run == "closed"}
    assert customers, "on a busy machine some begin when the time is over"
    assert customers <= {0, 1, 2, 3}
    assert {row.status for row in rows} == {200}
    total = (tmp_path / "table_stats.csv").read_text().splitlines()[-1].split(",")
    assert total[1] == "Aggregated"
    assert int(total[2]) == pytest.approx(len(rows), abs=10)
    assert "<html" in (tmp_path / "page.html").read_text()[:1000].lower()
