"""Experiment `cluster`: from end to end with two real nodes, and what its tables come to."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from loadtests.experiments import cluster
from loadtests.experiments.cluster import (
    CLUSTER,
    EXPERIMENT,
    ONE,
    POSTS,
    LoadLine,
    Sizes,
    posted,
)
from loadtests.experiments.itinerary import PLAN, RunLine
from loadtests.experiments.running import analyse, run
from loadtests.generation.rows import Row, closed_index
from loadtests.lab.experiment import Options
from loadtests.lab.results import Line, Results
from loadtests.processes import ProgramFailed
from tests.cluster.processes import need_engine
from tests.loadtests.experiments.made_up import judge, keep, results_of


@pytest.mark.long
def test_a_cluster_is_measured_beside_a_single_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_engine()
    monkeypatch.setattr(cluster, "QUICK", Sizes(1, (2,), 1.0, 5))
    few = {"BLOCKS": 1, "NODES": 2, "MODES": ("async", "commit")}
    for name, value in few.items():
        monkeypatch.setattr(cluster, name, value)
    run(EXPERIMENT, Options(quick=True), tmp_path / "r", lambda text: None)
    results = Results(tmp_path / "r")
    posts, unfinished = posted(results)
    assert unfinished == []
    assert {(load.line.server, load.line.mode) for load in posts} == {
        (server, mode) for server in (ONE, CLUSTER) for mode in ("async", "commit")
    }
    for load in posts:
        assert load.cpu_ms(engine=False) > 0
        assert (load.cpu_ms(engine=True) > 0) == (load.line.server == CLUSTER)
        assert load.mined_per_s.estimate > 0
        assert all(0 < run.line.mined_s < 60 for run in load.runs)  # from its first request on
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    for text in ("Flightchain, 4 nodes", "Share of consensus"):
        assert text in page


def test_without_an_engine_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMETBFT", str(tmp_path / "nothing"))
    with pytest.raises(ProgramFailed, match="nothing is missing; build it with"):
        run(EXPERIMENT, Options(quick=True), tmp_path / "r", lambda text: None)


# --- what is made of tables ------------------------------------------------------------------


def rows_of(name: str, statuses: list[int]) -> list[Row]:
    """Requests of one thread, one after the other: the first takes 0.5 s, the others 0.1 s."""
    ends_s = [0.5 + 0.1 * n for n in range(len(statuses))]
    return [
        Row(
            *(name, closed_index(0, n), "post", start_s, start_s, None),
            *(ends_s[n], None, status, ""),
        )
        for n, (start_s, status) in enumerate(zip([0.0, *ends_s], statuses, strict=False))
    ]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The report of runs of each server one of them rejected."""
    results = results_of("cluster", tmp_path_factory.mktemp("cluster"))
    sync, mined = [202] * 16, [201, 202] * 8
    loads = [
        (LoadLine("one", "sync", 1, ONE, 4.0, 0.0, 0.16, 0.5), sync),
        (LoadLine("four", "sync", 1, CLUSTER, 8.0, 1.0, 3.0, 0.5), sync),
        (LoadLine("noisy", "sync", 1, CLUSTER, 1.0, 9.0, 9.0, 0.5), sync),
        (LoadLine("commit", "commit", 1, CLUSTER, 2.0, 1.0, 1.0, 0.5), mined),
        (LoadLine("late", "async", 1, CLUSTER, 2.0, 1.0, 1.0, 0.5), sync),
    ]
    keep(results, [row for line, statuses in loads for row in rows_of(line.run, statuses)])
    (first,) = rows_of("late", [202])
    keep(results, [replace(first, index=closed_index(1, 0), sent_s=9.0, done_s=9.1)])
    _fill(results, POSTS, LoadLine, [line for line, _ in loads])
    _fill(results, PLAN, RunLine, [])
    judge(results, {"noisy": False} | dict.fromkeys(("one", "four", "commit", "late"), True))
    analyse(results)
    return results


def _fill(results: Results, name: str, kind: type[Line], lines: Sequence[Line]) -> None:
    with results.table(name, kind) as table:
        for line in lines:
            table.add(line)


def test_figures_are_those_of_the_rows_that_count(results: Results) -> None:
    values = {metric["name"]: metric["value"] for metric in results.summary()["metrics"]}
    assert values == pytest.approx(
        {
            "acknowledged[one-node,sync,1]": 16 / 2.0,
            "mined[one-node,sync,1]": 16 / 4.0,
            "acknowledged[4-nodes,sync,1]": 16 / 2.0,
            "mined[4-nodes,sync,1]": 16 / 8.0,
            "acknowledged[4-nodes,commit,1]": 8 / 2.0,
            "mined[4-nodes,commit,1]": 16 / 2.0,
        }
    )
    (alone,) = [load for load in posted(results)[0] if load.line.server == ONE]
    assert alone.cpu_ms(engine=False) == pytest.approx(10)


def test_the_report_says_what_consensus_costs(results: Results) -> None:
    findings = results.summary()["findings"]
    for text in (
        "take 50 % of the processor time of 4 nodes where these mine most (mode=commit, 1 threads)",
        "mode=sync: 4 nodes acknowledge 8.00 flights a second",
        "Run late has no figures: ",
    ):
        assert any(text in finding for finding in findings), text
    conclusion = results.summary()["conclusion"]
    assert conclusion.startswith("4 nodes on this machine, beside one node: ")
    assert "consensus takes 50 %" in conclusion
