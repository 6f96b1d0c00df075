"""Protocols of studies, repeated in simulation, and the claims that they lead to."""

from math import comb
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.lab import conclusions
from loadtests.lab.conclusions import STUDIES, Tried, tried
from loadtests.models.estimates import wilson

TIMES = 40


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conclusions, "RANGE_RUNS", 600)


def share(found: list[Tried], world: str, words: str) -> Tried:
    (one,) = [one for one in found if world in one.world and one.words.startswith(words)]
    return one


def test_study_000_would_have_found_an_mg1_queue_faster_than_mg1() -> None:
    found = tried("000", TIMES)
    below = share(found, "M/G/1)", "at 0.85 its mean is below M/G/1")
    assert below.share.value > 0.9
    assert below.told == "false, and the protocol often says it"
    assert share(found, "M/G/1)", "at 0.85 its mean is as far").share.value < below.share.value
    assert share(found, "M/G/1)", "each mean is in the range").share.value > 0.75
    # and it could tell the two queues apart
    assert share(found, "M/G/1)", "each mean is nearer").told == "true"
    assert share(found, "M/G/1-PS)", "each mean is nearer").share.value < 0.2


def test_study_001_would_have_seen_a_perfect_model_deteriorate() -> None:
    found = tried("001", TIMES)
    assert share(found, "1000 queries", "at χ = 0.3").share.value > 0.9
    assert share(found, "1000 queries", "at χ = 0.95").share.value < 0.4
    assert share(found, "1000 queries", "it fits at").share.value > 0.5


def test_study_003_finds_its_maximum_anywhere_on_the_plateau() -> None:
    found = tried("003", TIMES)
    assert share(found, "6 cores", "throughput is highest").share.value < 0.7
    assert share(found, "6 cores", "beyond").share.value == 0


def test_study_004_tells_what_stores_cost_unless_its_times_spread_much() -> None:
    found = tried("004", 10 * TIMES)
    assert share(found, "as printed, times vary (cv 1)", "a reservation").share.value > 0.95
    assert share(found, "as printed, times vary (cv 1)", "stores slow").share.value > 0.99
    alike = "reserves as fast as it queries, stores slow all alike, times vary"
    assert share(found, f"{alike} (cv 1)", "a reservation takes 1.22").share.value < 0.03
    assert share(found, f"{alike} (cv 3)", "a reservation takes 1.22").share.value > 0.1
    # what is as likely either way is no conclusion
    longer = share(found, f"{alike} (cv 3)", "a reservation takes longer")
    assert (longer.share.low or 0.5) < 0.5 < (longer.share.high or 0.5)


@pytest.mark.parametrize(("held", "of"), [(0, 400), (70, 400), (400, 400)])
def test_the_interval_of_a_share_is_about_that_of_the_binomial(held: int, of: int) -> None:
    low, high = wilson(held, of)
    assert 0 <= low <= held / of + 1e-12
    assert held / of - 1e-12 <= high <= 1

    def at_most(count: int, p: float) -> float:
        return sum(comb(of, n) * p**n * (1 - p) ** (of - n) for n in range(count + 1))

    assert held == of or at_most(held, high) == pytest.approx(0.025, abs=0.02)
    assert held == 0 or 1 - at_most(held - 1, low) == pytest.approx(0.025, abs=0.02)


@pytest.mark.parametrize("study", [study for study in STUDIES if study != "000"])
def test_a_page_is_whole_and_the_same_again(study: str, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    asked = CliRunner().invoke(main, ["repeat", study, "--times", "10", "--out", str(path)])
    assert asked.exit_code == 0, asked.output
    page = path.read_text(encoding="utf-8")
    assert page == conclusions.page(study, 10)
    assert page.count("<svg") == len(STUDIES[study].worlds())
    assert STUDIES[study].concluded[1:40] in page
