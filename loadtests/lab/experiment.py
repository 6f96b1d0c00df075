"""What an experiment is: a name, what it reproduces, how it measures and how it is understood.

    EXPERIMENT = Experiment(
        name="service-time", study="000", reproduces="the table of service times",
        title="…", about="…", modes=(Mode.REAL, Mode.EMULATED),
        measure=measure,   # Run -> None: writes tables into run.results
        analyse=analyse,   # Results -> Report: from those tables alone
    )

Three modes, never mixed on one axis without a label: `real` measures the service as shipped,
`emulated` injects the study's waits divided by the scale K, `model` needs no server at all.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from loadtests.lab.report.content import Report
from loadtests.lab.results import Results


class Mode(StrEnum):
    """What a result says something about."""

    REAL = "real"
    EMULATED = "emulated"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Options:
    """How an experiment is to be run.

    scale: K, by which the study's times are divided; None is the experiment's own choice, and so
    is reps, the number of replications. quick: everything once, within two minutes.
    """

    mode: Mode
    scale: float | None = None
    seed: int = 1
    reps: int | None = None
    quick: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an experiment: its options, where results go, and how to speak to a person.

    scratch: for chains and logs, gone afterwards. say: one line of progress.
    """

    options: Options
    results: Results
    scratch: Path
    say: Callable[[str], None]

    @property
    def log(self) -> Path:
        """Where servers write what they have to say; kept with the results."""
        return self.results.folder / "server.log"

    def random(self, purpose: str) -> random.Random:
        """Random numbers of their own for each purpose, the same for the same seed."""
        return random.Random(f"{self.options.seed} {purpose}")  # noqa: S311  no secrets

    def choose(self, quick: float, full: float) -> float:
        """How much to measure: less in a quick run."""
        return quick if self.options.quick else full


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment. study: "000" to "004", or "" for our own. modes: the first is the default.

    reproduces: the tables and figures of the study, in words. scales: K of a full and of a quick
    run where storage is emulated and nobody chose another. report_seconds: how its report then
    tells times in the study's seconds; emulated_so: what it adds about how storage was emulated.
    can_resume: `measure` makes what its results still lack.
    """

    name: str
    study: str
    title: str
    reproduces: str
    about: str
    modes: tuple[Mode, ...]
    measure: Callable[[Run], None]
    analyse: Callable[[Results], Report]
    scales: tuple[float, float] | None = None
    report_seconds: str = "R/E[S] × 40.499"
    emulated_so: str = ""
    can_resume: bool = False

    def with_scale(self, options: Options) -> Options:
        """`options` with the K of this experiment, if storage is emulated and none was chosen."""
        if options.mode is not Mode.EMULATED or options.scale or self.scales is None:
            return options
        full, quick = self.scales
        return replace(options, scale=quick if options.quick else full)
