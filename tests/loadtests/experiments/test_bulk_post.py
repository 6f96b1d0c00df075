"""Experiment `bulk-post` from end to end, with a real service and the real program."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from loadtests.experiments import bulk_post
from loadtests.experiments.running import analyse, run
from loadtests.generation import bulk as posting
from loadtests.generation.bulk import Bulk
from loadtests.generation.rows import Row, closed_index, read_rows
from loadtests.generation.rules import RULES
from loadtests.generation.run import Generator
from loadtests.lab.experiment import Options
from loadtests.lab.results import NothingCounts, Results
from loadtests.machine_samples import Sample, Sampler, append
from loadtests.processes import HOST, ProgramFailed, Service, free_port, running
from tests.loadtests.experiments.made_up import judge, keep, results_of


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("bulk") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk_post, "QUICK_THREADS", (2,))
        patch.setattr(bulk_post, "MODES", ("sync", "commit"))
        patch.setattr(bulk_post, "QUICK_RUN_S", 1.0)
        run(bulk_post.EXPERIMENT, Options(quick=True), folder, lambda text: None)
    return Results(folder)


@pytest.mark.long
def test_every_mode_is_posted_to_and_every_request_kept(results: Results) -> None:
    rows = read_rows(results.folder / "requests.csv")
    points = {row["run"]: row for row in results.rows("points")}
    assert points.keys() == {"sync-2-1", "commit-2-1"} == {row.run for row in rows}
    assert all(row.succeeded and 0 <= row.sent_s < row.done_s for row in rows)
    assert {row.status for row in rows if row.run != "commit-2-1"} == {202}
    assert {row.status for row in rows if row.run == "commit-2-1"} == {201}
    assert {row["run"] for row in results.rows("runs")} == points.keys()
    assert min(row.sent_s for row in rows) == 0


@pytest.mark.long
def test_the_report_has_figures_and_says_what_each_mode_promises(results: Results) -> None:
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    for text in (
        "Throughput against threads",
        "Latency against threads",
        "if the power fails before",
    ):
        assert text in page
    findings = results.summary()["findings"]
    assert [text.partition(":")[0] for text in findings[:2]] == ["mode=sync", "mode=commit"]


# --- what is made of rows --------------------------------------------------------------------


def rows(run: str, kind: str, every_s: float, statuses: list[int], threads: int = 2) -> list[Row]:
    """Return each thread's requests, one after the other."""
    return [
        Row(
            *(run, closed_index(thread, n), kind, n * every_s, n * every_s, None),
            *((n + 1) * every_s, None, status, ""),
        )
        for thread in range(threads)
        for n, status in enumerate(statuses)
    ]


def make_results(folder: Path, runs: dict[str, list[Row]]) -> Results:
    results = results_of("bulk-post", folder)
    with results.table("points", bulk_post.PointLine) as table:
        for name in runs:
            mode, threads, repeat = name.split("-")
            table.add(bulk_post.PointLine(name, mode, int(threads), int(repeat)))
    keep(results, chain.from_iterable(runs.values()))
    judge(results, dict.fromkeys(runs, True))
    for name in runs:
        append(folder / "samples.csv", name, [Sample(0.5, 0.8, 0.9, 0.0)])
    return results


def test_throughput_and_latency_are_those_of_the_rows(tmp_path: Path) -> None:
    runs = {
        f"sync-2-{repeat}": rows(f"sync-2-{repeat}", "post-sync", 0.1, [202] * 12)
        for repeat in (1, 2)
    }
    results = make_results(tmp_path / "r", runs)
    analyse(results)
    metrics = {metric["name"]: metric for metric in results.summary()["metrics"]}
    throughput = metrics["throughput[sync, 2 threads]"]
    assert [throughput[end] for end in ("value", "low", "high")] == [pytest.approx(20)] * 3
    assert metrics["latency_median[sync, 2 threads]"]["value"] == pytest.approx(0.1)
    (busy,) = (text for text in results.summary()["findings"] if "bulk_post itself" in text)
    assert busy.startswith("At 1 of 1 points bulk_post itself needed more than 0.7 cores")


def test_commit_counts_only_answers_from_a_block(tmp_path: Path) -> None:
    runs = {"commit-2-1": rows("commit-2-1", "post-commit", 0.1, [202, 202, 202, 201] * 3)}
    results = make_results(tmp_path / "r", runs)
    analyse(results)
    findings = results.summary()["findings"]
    assert "at most 5 flights per second" in findings[0]
    assert "with 2 threads 75 % of the answers promised only what sync" in findings[1]


def test_failures_are_said(tmp_path: Path) -> None:
    runs = {"async-2-1": rows("async-2-1", "post-async", 0.1, [202, 503, 0, 202])}
    results = make_results(tmp_path / "r", runs)
    analyse(results)
    assert "Failed requests: 4." in results.summary()["findings"]


def test_a_run_that_ended_before_all_had_begun_has_no_figures(tmp_path: Path) -> None:
    late = [
        *rows("sync-2-1", "post-sync", 0.1, [202], threads=1),
        Row("sync-2-1", closed_index(1, 0), "post-sync", 2.0, 2.0, None, 2.5, None, 202, ""),
    ]
    runs = {"sync-2-1": late, "async-2-1": rows("async-2-1", "post-async", 0.1, [202] * 12)}
    results = make_results(tmp_path / "r", runs)
    analyse(results)
    assert (
        "Run sync-2-1 has no figures: the first customer fin" in results.summary()["findings"][-1]
    )
    with pytest.raises(NothingCounts, match="no run that counts in which all threads posted"):
        bulk_post.analyse(make_results(tmp_path / "none", {"sync-2-1": late}))


# --- the program ------------------------------------------------------------------------------


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    settings = {"mine_interval_s": 0.5}
    with running(tmp_path / "chain", tmp_path / "log", settings=settings) as service:
        yield service


@pytest.mark.long
def test_an_interrupted_run_is_kept_and_listed(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        while service.get("/tip")["pending"] < 3:
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr(Sampler, "while_running", interrupted)
    with pytest.raises(KeyboardInterrupt):
        generator = Generator(tmp_path, say=lambda text: None)
        posting.bulk_run(generator, service, Bulk("sync", 2), "sync-2-1", duration_s=60)
    assert len(read_rows(tmp_path / "requests.csv", "sync-2-1")) >= 3
    (line,) = Results(tmp_path).rows("runs")
    assert (line["run"], line["accepted"]) == ("sync-2-1", "no")
    assert RULES[0].reason in line["reasons"]


@pytest.mark.long
def test_a_service_that_is_not_there_is_said(tmp_path: Path) -> None:
    nowhere = Service(f"http://{HOST}:{free_port()}", 1)
    with (
        pytest.raises(ProgramFailed, match="is the service running"),
        posting.posting(nowhere, Bulk("sync", 1), 1, tmp_path / "log"),
    ):
        pass
