"""Defines an experiment: its name, what it reproduces, how it measures and how it analyses.

The two halves of an experiment meet in its tables alone: `measure` takes a Run and writes them into
`run.results`, `analyse` makes a Report of these Results. Three modes are never mixed on one axis
without a label: `real` measures the service as shipped, `emulated` injects the study's waits
divided by the scale K, `model` needs no server at all.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from loadtests.lab.report.content import Report
from loadtests.lab.results import Results

Choice = TypeVar("Choice")


class Mode(StrEnum):
    """What a result is about."""

    REAL = "real"
    EMULATED = "emulated"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Options:
    """How an experiment is to be run.

    scale: K, by which the study's times are divided. reps: number of replications. None means the
    experiment's own choice for both. quick: everything is run once, within two minutes. host: URL
    of a running service on another machine, to be measured in place of one that is started here.
    until_decided: what has a verdict is measured until it is decided. loads: those of the
    experiment's loads that are measured; none means all.
    """

    mode: Mode
    scale: float | None = None
    seed: int = 1
    reps: int | None = None
    quick: bool = False
    host: str = ""
    until_decided: bool = False
    loads: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an experiment: its options, folders and way to show progress.

    scratch: a folder for chains and logs, removed at the end. say: shows one line of progress.
    """

    options: Options
    results: Results
    scratch: Path
    say: Callable[[str], None]

    @property
    def log(self) -> Path:
        """The log file of all servers, kept with the results."""
        return self.results.folder / "server.log"

    def random(self, purpose: str) -> random.Random:
        """A random generator for one purpose. The same seed and purpose give the same numbers."""
        return random.Random(f"{self.options.seed} {purpose}")  # noqa: S311  no secrets

    def choose(self, quick: Choice, full: Choice) -> Choice:
        """`quick` in a quick run, otherwise `full`."""
        return quick if self.options.quick else full


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment. study: "000" to "004", or "" for our own. modes: the first is the default.

    reproduces: the tables and figures of the study, in words. scales: default K of a full and of a
    quick run with emulated storage. report_seconds: the formula by which the report of such a run
    gives times in the study's seconds; emulated_so: the sentence that says what waited.
    waited: what figures of emulated storage add to K, with the waits {read_ms} and {check_ms}.
    can_resume: `measure` measures only what its results still lack. takes_host: it can measure a
    service on another machine. can_decide: it knows the option `until_decided`. loads: those that
    it has with these options, if one may choose from them.
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
    emulated_so: str = "Blocks were not read; injected waits took their place."
    waited: str = ""
    can_resume: bool = False
    takes_host: bool = False
    can_decide: bool = False
    loads: Callable[[Options], Sequence[float]] = lambda _: ()
