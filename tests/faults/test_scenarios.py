"""Each scenario for a few seconds. `scripts/soak` runs them at length, with any seed."""

import random
from pathlib import Path

import pytest

from tests.faults.report import Task, details
from tests.faults.scenarios import SCENARIOS, Scenario

SEED = 13


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_service_that_is_harmed_forgets_nothing_and_lies_to_nobody(
    scenario: Scenario, tmp_path: Path
) -> None:
    outcome = scenario.run(Task(scenario.short, tmp_path, random.Random(SEED)))
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert not outcome.findings, details([(scenario.name, outcome)])
    assert outcome.done == scenario.short
    assert outcome.acknowledged > 0
