"""What the studies print wrong, why 000 measured what it did, and protocols that are repeated."""

from math import comb
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.lab import studies
from loadtests.lab.studies import PAGE, STUDIES, Tried, errata_section, explained, tried, verdict
from loadtests.models.estimates import wilson

TIMES = 40


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies, "RANGE_RUNS", 600)


def share(outcomes: list[Tried], world: str, words: str) -> Tried:
    (claim,) = [
        outcome for outcome in outcomes if world in outcome[0] and outcome[1].startswith(words)
    ]
    return claim


def test_the_protocol_of_study_000_makes_most_of_its_gap_and_chance_the_rest() -> None:
    *_, highest = explained(1500)
    _, _, formula_s, empty_s, weights_s, expected_s, low_s, high_s, printed_s = highest
    assert formula_s == pytest.approx(155.344, abs=0.01)
    assert empty_s == pytest.approx(-37.5, abs=4)  # 20,000 runs of another seed
    assert weights_s == pytest.approx(-6.5, abs=2)
    assert formula_s + empty_s + weights_s == pytest.approx(expected_s)
    assert low_s < printed_s == 102.12 < high_s


def test_study_000_would_have_found_an_mg1_queue_faster_than_mg1() -> None:
    outcomes = tried("000", TIMES)
    below = share(outcomes, "M/G/1)", "at 0.85 its mean is below M/G/1")
    assert below[3] > 0.9
    assert verdict(below[3], is_true=below[2]) == "false, but often reached"
    assert share(outcomes, "M/G/1)", "at 0.85 its mean is as far")[3] < below[3]
    assert share(outcomes, "M/G/1)", "each mean is in the range")[3] > 0.75
    # and it could tell the two queues apart
    assert share(outcomes, "M/G/1)", "each mean is nearer")[3] >= 0.9
    assert share(outcomes, "M/G/1-PS)", "each mean is nearer")[3] < 0.2


def test_study_001_would_have_seen_a_perfect_model_deteriorate() -> None:
    outcomes = tried("001", TIMES)
    assert share(outcomes, "1000 queries", "at χ = 0.3")[3] > 0.9
    assert share(outcomes, "1000 queries", "at χ = 0.95")[3] < 0.4
    assert share(outcomes, "1000 queries", "it fits at")[3] > 0.5


def test_study_003_finds_its_maximum_anywhere_on_the_plateau() -> None:
    outcomes = tried("003", TIMES)
    assert share(outcomes, "6 cores", "throughput is highest")[3] < 0.7
    assert share(outcomes, "6 cores", "beyond")[3] == 0


def test_study_004_tells_what_stores_cost_unless_its_times_spread_much() -> None:
    outcomes = tried("004", 10 * TIMES)
    assert share(outcomes, "as printed, times vary (cv 1)", "a reservation")[3] > 0.95
    assert share(outcomes, "as printed, times vary (cv 1)", "stores slow")[3] > 0.99
    alike = "reserves as fast as it queries, stores slow all alike, times vary"
    assert share(outcomes, f"{alike} (cv 1)", "a reservation takes 1.22")[3] < 0.03
    assert share(outcomes, f"{alike} (cv 3)", "a reservation takes 1.22")[3] > 0.1
    # what is as likely either way is no conclusion
    assert 0.4 < share(outcomes, f"{alike} (cv 3)", "a reservation takes longer")[3] < 0.6


@pytest.mark.parametrize(("held", "total"), [(0, 400), (70, 400), (400, 400)])
def test_the_interval_of_a_share_is_about_that_of_the_binomial(held: int, total: int) -> None:
    low, high = wilson(held, total)
    assert 0 <= low <= held / total + 1e-12
    assert held / total - 1e-12 <= high <= 1

    def at_most(count: int, p: float) -> float:
        return sum(comb(total, n) * p**n * (1 - p) ** (total - n) for n in range(count + 1))

    assert held == total or at_most(held, high) == pytest.approx(0.025, abs=0.02)
    assert held == 0 or 1 - at_most(held - 1, low) == pytest.approx(0.025, abs=0.02)


@pytest.mark.parametrize("study", ["000", "001", "002", "003", "004"])
def test_the_page_lists_what_each_study_prints_wrong(study: str) -> None:
    (table,) = errata_section(study).parts
    assert list(table.columns) == ["Where", "Printed", "Correct", "How it is known"]  # type: ignore[union-attr]
    assert {len(row) for row in table.rows} == {4}  # type: ignore[union-attr]


def test_the_tables_of_the_page_are_made_anew_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "studies.md"
    path.write_bytes(PAGE.read_bytes())
    monkeypatch.setattr(studies, "PAGE", path)
    monkeypatch.setattr(studies, "REPETITIONS", 3)
    ran = CliRunner().invoke(main, ["studies"])
    assert ran.exit_code == 0, ran.output
    ours, theirs = path.read_text("utf-8").split("<!-- "), PAGE.read_text("utf-8").split("<!-- ")
    assert [part.partition("-->")[0] for part in ours] == [p.partition("-->")[0] for p in theirs]
    assert ours[::2] == theirs[::2]  # what is between the tables
    for ours_, theirs_ in zip(ours[1::2], theirs[1::2], strict=True):
        assert [line.split("|")[1:3] for line in ours_.splitlines()[1:]] == [
            line.split("|")[1:3] for line in theirs_.splitlines()[1:]
        ]
    assert sum(part.startswith("repeated") for part in ours) == len(STUDIES)
