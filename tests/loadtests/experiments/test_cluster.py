"""Experiment `cluster`: from end to end with four real nodes, and what its tables come to."""

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.experiments.cluster import EXPERIMENT, measuring
from loadtests.experiments.cluster.measuring import Sizes
from loadtests.experiments.cluster.reading import (
    CLUSTER,
    COMMITS,
    ONE,
    POSTS,
    READS,
    PostsLine,
    ReadsLine,
    asked,
    posted,
)
from loadtests.experiments.itinerary import measuring as travelling
from loadtests.experiments.itinerary.reading import PLAN, RunLine
from loadtests.generation.rows import Row, RowFile, closed_index
from loadtests.generation.rules import Facts, Verdict, judge
from loadtests.lab.analysing import analyse
from loadtests.lab.experiment import Mode, Options
from loadtests.lab.results import Results
from loadtests.lab.running import run
from tests.cluster.processes import need_engine


def judged_by_failures(facts: Facts) -> Verdict:
    """Other work on the machine that tests run on is nothing to reject their runs for."""
    return judge(replace(facts, foreign_cpu=None, client_cpu=None))


def test_a_cluster_is_measured_beside_a_single_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_engine()
    if shutil.which("wrk") is None:
        pytest.skip("wrk is not installed")
    monkeypatch.setattr(measuring, "QUICK", Sizes(1, (2,), 1.5, 8, 4, (0.5,), 4, 1, 1))
    monkeypatch.setattr(measuring, "judge", judged_by_failures)
    monkeypatch.setattr(travelling, "judge", judged_by_failures)
    monkeypatch.setattr(measuring, "NEW_FLIGHTS", 100)
    run(EXPERIMENT, Options(Mode.REAL, quick=True), tmp_path / "r", lambda text: None)
    results = Results(tmp_path / "r")
    for of in posted(results, POSTS):
        assert of.cpu_ms(engine=False) > 0
        assert (of.cpu_ms(engine=True) > 0) == (of.server == CLUSTER)
        assert of.mined_per_s.value > 0
    assert {(of.server, of.mode) for of in posted(results, POSTS)} == {
        (server, mode) for server in (ONE, CLUSTER) for mode in ("async", "sync", "commit")
    }
    for of in posted(results, COMMITS):
        assert of.response_s is not None
        assert of.response_s.value > 0.4
    assert [(of.nodes, of.failed) for of in asked(results)] == [(1, 0), (2, 0), (4, 0)]
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    for text in ("Flightchain, 4 nodes, until it is mined", "Share of consensus", "Times one node"):
        assert text in page


# --- what is made of tables ------------------------------------------------------------------


def posts(name: str, every_s: float, statuses: list[int]) -> list[Row]:
    """Requests of one thread, one after the other."""
    return [
        Row(
            *(name, closed_index(0, n), "post", n * every_s, n * every_s, None),
            *((n + 1) * every_s, None, status, ""),
        )
        for n, status in enumerate(statuses)
    ]


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """One run of each server, commits with a block every second, and a round of questions."""
    (tmp_path / "manifest.json").write_text(
        '{"experiment":"cluster","mode":"real","scale":null,"state":"complete","quick":false}',
        encoding="utf-8",
    )
    results, sync, commit = Results(tmp_path), [202] * 20, [201, 202, 201, 201, 201]
    made = {
        "sync-one": (PostsLine("sync-one", POSTS, ONE, "sync", 1, 1, 2, 4, 0, 0.2), 0.1, sync),
        "sync-four": (PostsLine("sync-four", POSTS, CLUSTER, "sync", 1, 1, 2, 8, 1, 3), 0.1, sync),
        "commit": (PostsLine("commit", COMMITS, CLUSTER, "commit", 1, 1, 9, 9, 1, 1), 1.1, commit),
    }
    file = RowFile(tmp_path / "requests.csv")
    with results.table(POSTS, PostsLine.__slots__) as table:
        for name, (line, every_s, statuses) in made.items():
            table.write(**line.cells())
            file.write(posts(name, every_s, statuses))
    file.close()
    with results.table(PLAN, RunLine.__slots__), results.table(READS, ReadsLine.__slots__) as table:
        table.write(**ReadsLine(1, 1, 1, 1000.0, 0).cells())
        table.write(**ReadsLine(1, 1, 4, 1500.0, 0).cells())
    with (tmp_path / "runs.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(
            [["run", "accepted", "reasons"], *([name, "yes", ""] for name in made)]
        )
    return results


def test_rates_are_those_of_the_rows_and_of_the_time_until_all_is_mined(results: Results) -> None:
    analyse(results)
    values = {one["name"]: one["value"] for one in results.summary()["metrics"]}
    assert values == pytest.approx(
        {
            "acknowledged[one-node,sync,1]": 10,
            "mined[one-node,sync,1]": 20 / 4,
            "acknowledged[4-nodes,sync,1]": 10,
            "mined[4-nodes,sync,1]": 20 / 8,
            "commit_time[4-nodes,1]": 1.1,
            "answers[1]": 1000,
            "answers[4]": 1500,
        },
        rel=0.06,
    )


def test_the_report_says_what_consensus_costs(results: Results) -> None:
    analyse(results)
    findings = results.summary()["findings"]
    assert any("takes 25 % of the processor time" in said for said in findings)
    assert any("whatever that is, and 100 ms" in said for said in findings)
    assert any("1,000 of 1, 1,500 of 4" in said for said in findings)
    (alone,) = [of for of in posted(results, POSTS) if of.server == ONE]
    assert alone.cpu_ms(engine=False) == pytest.approx(10)
