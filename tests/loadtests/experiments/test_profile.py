"""Experiment `profile` from end to end where the kernel lets one process look into another."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loadtests.experiments import profile
from loadtests.experiments.running import analyse, run
from loadtests.generation.bulk import Bulk
from loadtests.lab import stacks
from loadtests.lab.experiment import Options
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.stacks import record
from loadtests.processes import ProgramFailed
from tests.loadtests.experiments.made_up import results_of

FOREIGN = re.compile(
    r"""(?:href|src)\s*=\s*["']?(?:https?:)?//|url\(\s*["']?(?:https?:)?//|@import"""
)


def may_trace() -> bool:
    """Whether py-spy can look into a process that is not its child."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            done = subprocess.run(
                [str(Path(sys.executable).with_name("py-spy")), "dump", "--pid", str(process.pid)],
                capture_output=True,
                check=False,
            )
        finally:
            process.communicate(b"\n")
    return done.returncode == 0


needs_trace = pytest.mark.skipif(not may_trace(), reason="needs the right to trace (SYS_PTRACE)")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("profile") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profile, "QUICK_CASES", (Bulk("sync", 4),))
        patch.setattr(profile, "QUICK_LOOK_S", 1.0)
        run(profile.EXPERIMENT, Options(quick=True), folder, lambda text: None)
    return Results(folder)


@pytest.mark.long
@needs_trace
def test_it_leaves_stacks_and_a_flame_graph(results: Results) -> None:
    looks = {row["look"]: row for row in results.rows("recordings")}
    assert looks.keys() == {"lock", "graph"}
    assert all((results.folder / row["file"]).stat().st_size > 0 for row in looks.values())


@pytest.mark.long
@needs_trace
def test_the_flame_graph_opens_without_a_network_and_the_report_links_to_it(
    results: Results,
) -> None:
    svg = (results.folder / "sync-4-graph.svg").read_text(encoding="utf-8")
    assert "</svg>" in svg
    assert FOREIGN.findall(svg) == []
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    assert '<a href="sync-4-graph.svg">' in page
    assert "<script" not in page
    assert re.findall(r'src="', page) == []


FOREIGN_TEXTS = ['<a href="https://x">', "src=//x/y.js", "url('http://x')", "@import x"]


@pytest.mark.parametrize("text", FOREIGN_TEXTS)
def test_what_would_load_from_elsewhere_is_found(text: str) -> None:
    assert FOREIGN.search(text)
    assert not FOREIGN.search('<svg xmlns="http://www.w3.org/2000/svg"><a href="#x">')


# --- what is made of stacks -------------------------------------------------------------------

LOOP = "UvicornWorker.run (uvicorn_worker/_workers.py:1)"
THREAD = "_worker (concurrent/futures/thread.py:83)"
ADD = "Submitter.add (backend/ledger/submission.py:375)"
EXAMINE = "examine (backend/chain/flight.py:70)"
HASH = "transaction_bytes (backend/chain/transaction.py:50)"
HELD = [
    (f"{THREAD};{ADD};{EXAMINE}", 10),
    (f"{THREAD};{ADD};{HASH}", 30),
    (f"{LOOP};unknown (somewhere.py:1)", 60),
]


def make_results(folder: Path, held: list[tuple[str, int]]) -> Results:
    results = results_of("profile", folder)
    with results.table("recordings", profile.RecordingLine) as table:
        text = "".join(f"{stack} {count}\n" for stack, count in held)
        (folder / "lock.txt").write_text(text, encoding="utf-8")
        file = "lock", "lock.txt", 50, 200, sum(count for _, count in held), 0
        table.add(profile.RecordingLine("async-100", "async", 100, *file))
    return results


def test_shares_are_those_of_the_samples(tmp_path: Path) -> None:
    results = make_results(tmp_path / "r", HELD)
    analyse(results)
    metrics = {metric["name"]: metric for metric in results.summary()["metrics"]}
    shares = {"validation": 0.1, "canonical bytes and hash": 0.3, "other": 0.6}
    for name, share in shares.items():
        assert metrics[f"share[async, 100 threads, {name}]"]["value"] == share
    validation = metrics["share[async, 100 threads, validation]"]
    assert validation["low"] == pytest.approx(0.0552, abs=1e-4)  # Wilson, 10 of 100
    assert validation["high"] == pytest.approx(0.1744, abs=1e-4)


def test_findings_follow_the_samples(tmp_path: Path) -> None:
    results = make_results(tmp_path / "r", HELD)
    analyse(results)
    first, beside, other, few = results.summary()["findings"]
    assert "lock was held in 50 % of the samples" in first
    assert "canonical bytes and hash (30 %), validation (10 %)" in first
    assert "in the study Schema validation 1.4 %" in beside
    assert "At most 60.0 %" in other
    assert "fewer than 500 samples" in few
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    for text in ("41.8", "28.4"):
        assert text in page


def test_a_case_without_samples_is_left_out_and_none_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no case with stacks"):
        profile.analyse(make_results(tmp_path / "r", []))


def test_a_file_that_holds_no_stacks_is_named(tmp_path: Path) -> None:
    results = make_results(tmp_path / "r", HELD)
    (results.folder / "lock.txt").write_text("nonsense\n", encoding="utf-8")
    with pytest.raises(
        ResultsError, match=r"lock\.txt cannot be read: 'nonsense' is not a collapsed"
    ):
        profile.analyse(results)


# --- py-spy -----------------------------------------------------------------------------------


def test_it_says_what_to_do_when_tracing_is_not_permitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "py-spy"
    refusing.write_text(
        "#!/bin/sh\necho 'Error: Permission Denied: Try running again' >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setattr(stacks, "_program", lambda: str(refusing))
    with pytest.raises(ProgramFailed, match=r"may not trace the process 1.*SYS_PTRACE"):
        record(1, tmp_path / "out", "--format=raw", rate_hz=10, duration_s=1)


@pytest.mark.long
@needs_trace
def test_a_process_that_has_ended_is_named(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with pytest.raises(ProgramFailed, match=f"could not sample the process {process.pid}"):
        record(process.pid, tmp_path / "out", "--format=raw", rate_hz=10, duration_s=1)


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setitem(os.environ, "PATH", "/nowhere")
    with pytest.raises(ProgramFailed, match="scripts/lab installs it"):
        stacks._program()
