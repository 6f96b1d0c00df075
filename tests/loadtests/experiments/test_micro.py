"""Experiment `micro` from end to end, with real processes that have little to do."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from loadtests.experiments import micro
from loadtests.experiments.micro import PROGRAMS
from loadtests.experiments.running import analyse, run
from loadtests.lab.experiment import Options
from loadtests.lab.results import NothingCounts, Results
from tests.loadtests.experiments.made_up import judge, results_of

TIMES = 40


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("micro") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(micro, "QUICK_TIMES", TIMES)
        options = Options(quick=True, reps=1)
        run(micro.EXPERIMENT, options, folder, lambda text: None)
    return Results(folder)


def made_up(folder: Path, repeats: int = 3) -> Results:
    """Processes of every program, made so often."""
    results, judged = results_of("micro", folder), dict[str, bool]()
    with results.table("processes", micro.ProcessLine) as processes:
        for program, times, repeat in product(PROGRAMS, (0, micro.TIMES), range(1, repeats + 1)):
            run, wall_s = f"{program.key}-{times}-{repeat}", WALLS_S[program.key] * bool(times)
            took_s = 0.1 + wall_s + 0.001 * repeat, 0.1, 0.0
            processes.add(micro.ProcessLine(run, program.key, times, repeat, *took_s))
            judged[run] = True
    judge(results, judged)
    analyse(results)
    return results


WALLS_S = {
    "round trips ours": 0.2,
    "round trips json": 1.0,
    "validations ours": 3.0,
    "validations jsonschema": 30.0,
}


@pytest.mark.long
def test_every_program_is_timed_in_turns_with_and_without_work(results: Results) -> None:
    rows = results.rows("processes")
    assert len(rows) == 2 * len(PROGRAMS)
    assert {row["times"] for row in rows} == {"0", str(TIMES)}
    assert all(float(row["wall_s"]) > 0 and float(row["user_s"]) >= 0 for row in rows)
    assert [row["run"] for row in rows] == [row["run"] for row in results.rows("runs")]


@pytest.mark.long
def test_all_go_through_the_same_flights_of_the_service(results: Results) -> None:
    lines = {
        name: [json.loads(line) for line in (results.folder / name).read_bytes().splitlines()]
        for name in ("transactions.ndjson", "flights.ndjson")
    }
    assert list(map(len, lines.values())) == [1000, 1000]
    for whole, posted in zip(*lines.values(), strict=True):
        assert len(whole) == 21
        assert {**posted, "TRANSACTION_ID": 0, "timestamp": 0}.keys() == whole.keys()
    schema = json.loads((results.folder / "schema.json").read_bytes())
    assert len(schema["properties"]) == 19


@pytest.mark.long
def test_the_report_has_both_tables_and_the_erratum(results: Results) -> None:
    page = (results.folder / "report.html").read_text(encoding="utf-8")
    for text in ("Serialising and parsing", "Validating", "its text says", "22.7", "76.0"):
        assert text in page
    assert "Schema validation in Go" in page
    assert "from 40 repetitions" in page


def test_what_is_less_than_go_and_what_is_more_is_said_so(tmp_path: Path) -> None:
    results = made_up(tmp_path)
    less, validations, *others = results.summary()["findings"]
    assert "100,000 round trips" in less
    assert "less than the 0.578 s" in less
    assert "100,000 validations" in validations
    assert "less than the 5.07 s" in validations  # of its text; 0.578 s is a copy error
    assert any("take 1.1 s, 3.65 times our time" in finding for finding in others)
    metrics = {metric["name"]: metric for metric in results.summary()["metrics"]}
    ours = metrics["wall_per_100000[round trips, ours]"]
    assert ours["value"] == pytest.approx(0.302)
    assert ours["low"] < ours["value"] < ours["high"]


def test_two_processes_decide_nothing(tmp_path: Path) -> None:
    findings = made_up(tmp_path, repeats=2).summary()["findings"]
    assert all("it takes three processes" in finding for finding in findings[:2])


def test_a_process_that_was_not_judged_does_not_count(tmp_path: Path) -> None:
    results = made_up(tmp_path)
    runs = results.folder / "runs.csv"
    runs.write_text("".join(runs.read_text().splitlines(keepends=True)[:-1]))
    analyse(results)
    metrics = {metric["name"]: metric for metric in results.summary()["metrics"]}
    last = metrics["wall_per_100000[validations, jsonschema]"]
    assert last["value"] == pytest.approx(30.1015)  # the mean of the first two


def test_the_start_of_a_rejected_process_does_not_count(tmp_path: Path) -> None:
    results = made_up(tmp_path)
    runs = results.folder / "runs.csv"
    runs.write_text(re.sub(r"(-0-[12]),yes", r"\1,no", runs.read_text()))
    starts_s = [timed.start_s for timed in micro.timed_programs(results)]
    assert starts_s == pytest.approx([0.103] * 4)


def test_without_work_there_is_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(NothingCounts, match="has no process of ours that counts for round trips"):
        made_up(tmp_path, repeats=0)
