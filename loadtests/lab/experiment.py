"""Defines an experiment: its name, what it reproduces, how it measures and how it analyses.

The two halves of an experiment meet in its tables alone: `measure` takes a Run and writes them into
`run.results`, `analyse` makes a Report of these Results. An experiment has one of two modes: `real`
measures what there is, `emulated` injects the study's waits divided by the scale K.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Self, TypeVar

from loadtests.generation.run import Generator
from loadtests.generation.schedule import Request
from loadtests.lab.content import Report
from loadtests.lab.results import Results
from loadtests.lab.sentences import Sentences

Choice = TypeVar("Choice")
WORDS = ("title", "reproduces", "about", "report_seconds", "emulated_so", "waited")


@dataclass(frozen=True, slots=True)
class Options:
    """Says how an experiment is to be run. None means the experiment's own choice."""

    scale: float | None = None  # K, by which the study's times are divided
    seed: int = 1
    reps: int | None = None  # number of replications
    quick: bool = False  # everything is run once, within two minutes
    host: str = ""  # URL of the service that `pi` measures
    ssh: str = ""  # USER@HOST of that machine, where the service gets settings meanwhile
    shared: bool = False  # on a machine that others share: no run is rejected for that
    minutes: float | None = None  # that all of it may take
    loads: tuple[float, ...] = ()  # those of the experiment that are measured; none means all
    fail_if: tuple[str, ...] = ()  # thresholds that make the report a failure


@dataclass(frozen=True, slots=True)
class Run:
    """Holds what a run of an experiment works with: options, folders, a way to show progress."""

    options: Options
    results: Results
    scratch: Path  # for chains and logs, removed at the end
    say: Callable[[str], None]  # shows one line of progress
    until_s: float = inf  # on CLOCK_MONOTONIC, when no new run is to begin
    later_s: float = 0.0  # that what is measured after these loads takes
    asked: set[Request] = field(default_factory=set)  # of services that may keep answers

    @property
    def log(self) -> Path:
        """Return the log file of all servers, kept with the results."""
        return self.results.folder / "server.log"

    def generator(self, *, is_quiet: bool = False) -> Generator:
        """Return a load generator, which keeps what it saw with the results."""
        say = (lambda text: None) if is_quiet else self.say
        return Generator(self.results.folder, self.options.seed, say)

    def random(self, purpose: str) -> random.Random:
        """Return a random generator for a purpose; the same seed and purpose give the same."""
        return random.Random(f"{self.options.seed} {purpose}")  # noqa: S311  no secrets

    def choose(self, quick: Choice, full: Choice) -> Choice:
        return quick if self.options.quick else full


@dataclass(frozen=True, slots=True)
class Experiment:
    """Describes an experiment, and what its reports say about emulated storage."""

    name: str
    study: str  # "000" to "004", or "" for our own
    title: str
    reproduces: str  # the tables and figures of the study, in words
    about: str
    measure: Callable[[Run], None]
    analyse: Callable[[Results], Report]
    scales: tuple[float, float] | None = None  # K of a full and of a quick run, if it is emulated
    report_seconds: str = ""  # how its report gives times in the study's seconds
    emulated_so: str = ""  # what waited
    waited: str = ""  # what its figures add to K, with the waits {read_ms} and {check_ms}
    can_resume: bool = False  # `measure` measures only what its results still lack
    has_loads: bool = False  # which thresholds (`--fail-if`) can judge
    loads: Callable[[Options], Sequence[float]] = lambda _: ()  # if one may choose from them

    @classmethod
    def described(
        cls,
        name: str,
        study: str,
        measure: Callable[[Run], None],
        analyse: Callable[[Results], Report],
        **more: Any,
    ) -> Self:
        """Return an experiment whose words are parts of its own templates. more: other fields."""
        words = Sentences(name.replace("-", "_"))
        more |= {part: words.paragraph(part) for part in WORDS if part in words.parts}
        return cls(name, study, measure=measure, analyse=analyse, **more)

    @property
    def mode(self) -> str:
        """Return what its results are about, as manifests say it."""
        return "emulated" if self.scales else "real"
