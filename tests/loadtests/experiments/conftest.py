"""What tests of experiments share: plain drawings, and a machine that is quiet."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from loadtests.generation import run as generation_run
from loadtests.generation.rules import RULES, Facts, Verdict, judge
from loadtests.lab import generator_check
from loadtests.lab.report import drawing
from loadtests.lab.report.drawing import Axis, Series


@pytest.fixture(scope="package", autouse=True)
def plain_drawings() -> Iterator[None]:
    """Replace figures by their words: drawings take long, and `lab/test_lab` looks at them."""

    def drawn(x: Axis, y: Axis, series: Sequence[Series]) -> str:
        names = [x.label, y.label, *(curve.name for curve in series)]
        return f"<svg>{''.join(f'<text>{name}</text>' for name in names)}</svg>"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "drawn", drawn)
        yield


@pytest.fixture(scope="package", autouse=True)
def quiet_machine() -> Iterator[None]:
    """No run is rejected for what else the machine does that tests run on.

    The load generator is not checked before each experiment; `lab/test_generator_check` is.
    """

    def judged(facts: Facts) -> Verdict:
        quiet = replace(facts, foreign_cpu=None, client_cpu=None)
        return judge(replace(quiet, lag_mean_s=None, lag_p99_s=None))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator_check, "check", lambda run: None)
        patch.setattr(generation_run, "judge", judged)
        yield


@pytest.fixture
def everything_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules reject nothing, not even runs between calibrations of a few requests."""

    def judge(facts: Facts) -> Verdict:
        return Verdict((), {rule.name: rule.value(facts) for rule in RULES})

    monkeypatch.setattr(generation_run, "judge", judge)
