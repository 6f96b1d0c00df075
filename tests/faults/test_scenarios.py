"""Each scenario for a few seconds. `scripts/soak` runs all of them at length, with any seed."""

import random
from pathlib import Path

import pytest

from tests.api.processes import ROOT
from tests.faults.report import Task, details
from tests.faults.scenarios import SCENARIOS, Scenario

SEED = 13
LONG = {"clocks", "damaged-files", "evil-bodies", "failed-calls", "fresh-workers", "fuzz"}
SHORT = [
    pytest.param(one, id=one.name, marks=[pytest.mark.long] if one.name in LONG else [])
    for one in SCENARIOS
    if one.short
]


@pytest.mark.parametrize("scenario", SHORT)
def test_a_service_that_is_harmed_forgets_nothing_and_lies_to_nobody(
    scenario: Scenario, tmp_path: Path
) -> None:
    outcome = scenario.run(Task(scenario.short, tmp_path, random.Random(SEED)))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert not outcome.findings, details([(scenario.name, outcome)])
    assert outcome.done >= scenario.short


def test_the_documents_name_every_scenario_and_how_much_of_it_is_done() -> None:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for scenario in SCENARIOS:
        (line,) = [line for line in text.splitlines() if line.startswith(f"| `{scenario.name}` |")]
        assert line.endswith(f"`--{scenario.option} {scenario.full:g}` |"), line
