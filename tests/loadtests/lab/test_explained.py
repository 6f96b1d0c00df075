"""Why study 000 measured less than M/G/1 says, from its printed numbers and a simulation."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.lab import gaps
from loadtests.lab.gaps import Explained
from loadtests.lab.published import OPEN_WORKLOADS


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "SIMULATED_RUNS", 1500)
    monkeypatch.setattr(gaps, "SIMULATED_QUEUES", 20)


@pytest.fixture
def highest() -> Explained:
    return gaps.explained(OPEN_WORKLOADS[-1])


def test_the_entries_lead_from_155_to_102_seconds(highest: Explained) -> None:
    assert highest.gap.predicted == pytest.approx(155.344, abs=0.01)
    assert highest.gap.measured == pytest.approx(102.12)


def test_the_protocol_makes_most_of_the_gap_and_chance_suffices_for_the_rest(
    highest: Explained,
) -> None:
    empty, weight, chance = highest.gap.entries
    room_s = 4 * highest.expected.standard_error_s
    assert empty.amount == pytest.approx(-37.5, abs=room_s)  # 20,000 runs of another seed
    assert weight.amount == pytest.approx(-6.5, abs=room_s)
    assert chance.low is not None
    assert chance.high is not None
    assert chance.low < chance.amount < chance.high
    assert "inside" in chance.sentence("s")


def test_the_page_is_whole_and_the_same_again(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    asked = CliRunner().invoke(main, ["explain", "--out", str(path)])
    assert asked.exit_code == 0, asked.output
    page = path.read_text(encoding="utf-8")
    assert page == gaps.study_page()
    assert "is expected to show" in page
    assert len(re.findall(r"<figure>", page)) == 2
    assert page.count("<svg") == 2
