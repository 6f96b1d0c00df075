"""Service times in miniature: real servers, and made-up rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from loadtests.experiments import service_time as measuring
from loadtests.experiments.running import analyse, run
from loadtests.experiments.service_time import (
    EXPERIMENT,
    FULL,
    INDEX,
    KINDS,
    PLAN,
    QUICK,
    SCAN,
    STUDY,
    Cells,
    Plan,
    PlanLine,
    Way,
    cells_of,
    require_same_answers,
    times_faster,
)
from loadtests.experiments.service_time import analyse as report_of
from loadtests.generation.rows import Row, closed_index
from loadtests.lab.experiment import Options
from loadtests.lab.results import Results
from loadtests.processes import ProgramFailed
from loadtests.questions import Question
from tests.loadtests.experiments.made_up import judge, keep, results_of

Times = Mapping[tuple[str, str, int], Sequence[float]]  # (way, kind, turn) -> service times


def made_up(
    folder: Path,
    times: Times,
    rejected: Sequence[tuple[str, str, int]] = (),
    blocks: int = 522,
) -> Results:
    """Runs as if measured, each with one request before those that count."""
    results, rows = results_of("service-time", folder), list[Row]()
    with results.table(PLAN, PlanLine) as plan:
        for (way, kind, turn), measured_s in times.items():
            name = f"{way}-{kind}-{turn}"
            plan.add(PlanLine(name, way, kind, turn, blocks, 1))
            for number, time_s in enumerate([99.0, *measured_s]):
                index = closed_index(0, number)
                rows.append(Row(name, index, kind, 0, 0, None, time_s, None, 200, ""))
    keep(results, rows)
    judge(results, {"-".join(map(str, key)): key not in rejected for key in times})
    return results


def cells_in(folder: Path, times: Times, **more: object) -> Cells:
    return cells_of(made_up(folder, times, **more))  # type: ignore[arg-type]


class TestComparing:
    def test_mean_variance_and_rate_are_of_what_counts(self, tmp_path: Path) -> None:
        times = {
            (STUDY, "get_block", 1): [1.0, 3.0],
            (STUDY, "get_block", 2): [3.0, 5.0],
            (STUDY, "get_block", 3): [70.0],
        }
        cell = cells_in(tmp_path / "r", times, rejected=[(STUDY, "get_block", 3)])[
            STUDY, "get_block"
        ]
        assert cell.mean_s.estimate == 3
        assert cell.mean_s.half_width == pytest.approx(12.7062, rel=1e-4)  # t of one degree
        assert cell.service.variance_s2 == pytest.approx(8 / 3)
        assert cell.service.variation == pytest.approx((8 / 3) ** 0.5 / 3)
        assert (len(cell.times_s), len(cell.runs)) == (4, 2)

    def test_ways_are_compared_turn_by_turn(self, tmp_path: Path) -> None:
        kind = "flight_counter"
        times = {
            (STUDY, kind, 1): [10.0, 10.0],
            (STUDY, kind, 2): [20.0, 20.0],
            (STUDY, kind, 3): [50.0],
            (SCAN, kind, 1): [1.0, 1.0],
            (SCAN, kind, 2): [2.0, 2.0],
        }
        ratio = times_faster(cells_in(tmp_path / "r", times), SCAN, kind)
        assert ratio is not None
        assert (ratio.estimate, ratio.half_width) == (10, 0)
        assert times_faster(cells_in(tmp_path / "s", times), INDEX, kind) is None


def test_the_report_has_the_published_figures_beside_ours(tmp_path: Path) -> None:
    times = {
        (way, kind, turn): [time_s, time_s * 1.01]
        for way, time_s in ((STUDY, 9.0), (SCAN, 0.3), (INDEX, 0.003))
        for kind in KINDS
        for turn in (1, 2)
    }
    report = report_of(made_up(tmp_path / "r", times))
    table = report.sections[0].parts[0]
    assert len(table.rows) == 4 * len(KINDS)  # type: ignore[union-attr]
    findings = " ".join(report.findings)
    assert "flight_counter 30" in findings
    assert "Published: 40.5 s, cv 0.029" in findings
    shorter = report_of(made_up(tmp_path / "s", times, blocks=60))
    assert "Published, over 522 blocks: 40.5 s" in shorter.findings[0]
    names = {metric.name for metric in report.metrics}
    assert {f"service_time[{way},{kind}]" for way, kind, _ in times} <= names


class FakeService:
    def __init__(self, answer: object) -> None:
        self._answer = answer

    def get(self, path: str) -> object:
        return self._answer


def test_ways_that_answer_differently_are_not_measured() -> None:
    questions = {kind: Question(kind, {}) for kind in KINDS[:3]}
    ours = {"count": 3, "average_delay": 2.5}
    study = {"flight_counter": 3, "average_delays": 2.5 + 1e-12, "filter_transactions": [1, 2, 3]}

    def way(name: str, kind_answers: Mapping[str, object]) -> Way:
        return Way(name, FakeService(kind_answers), questions, 1)  # type: ignore[arg-type]

    for kind in questions:
        only = {name: value for name, value in study.items() if name == kind}
        assert measuring._answer(way(STUDY, only), kind) == measuring._answer(way(SCAN, ours), kind)
    with pytest.raises(ProgramFailed, match="filter_transactions is answered differently"):
        require_same_answers([way(INDEX, ours), way(SCAN, ours | {"count": 4})])


@pytest.mark.parametrize("plan", [QUICK, FULL])
def test_a_scan_of_the_planned_chain_reads_blocks(plan: Plan) -> None:
    assert plan.blocks >= 3 * 19
    assert plan.blocks > 2 * 2 * plan.run_blocks


TINY = Plan(blocks=8, run_blocks=1, rounds=1, least_s=0.0)  # so few are read from files, too


@pytest.mark.long
def test_all_ways_are_measured_and_analysed_again_byte_for_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "QUICK", TINY)
    results = Results(tmp_path / "r")
    run(EXPERIMENT, Options(quick=True), results.folder, lambda text: None)
    cells = cells_of(results)
    assert set(cells) == {(way, kind) for way in (STUDY, SCAN, INDEX) for kind in KINDS}
    assert len(results.rows("runs")) == len(cells)
    before = [(results.folder / name).read_bytes() for name in ("report.html", "summary.json")]
    analyse(results)
    after = [(results.folder / name).read_bytes() for name in ("report.html", "summary.json")]
    assert before == after
