"""What tests of experiments share: chains that are imported once, and a machine that is quiet."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from loadtests import chains
from loadtests.chains import Chain, Source
from loadtests.experiments import (
    client_server_measurements,
    cluster,
    itinerary,
    mixed_clients,
    open_workload_servers,
    service_time,
)
from loadtests.generation import run as generation_run
from loadtests.generation.rules import RULES, Facts, Verdict, judge
from loadtests.generation.run import Generator
from loadtests.lab import generator_check, ledgers
from loadtests.lab.experiment import Options, Run
from loadtests.lab.ledgers import Material, TwoChains
from loadtests.lab.report import drawing
from loadtests.lab.report.drawing import Axis, Series
from loadtests.lab.results import Results
from tests.api.worlds import copy_chain
from tests.loadtests.experiments import plain_generator

RECORD = "imported.json"  # tells that the chain beside it is whole
IMPORTING = (client_server_measurements, open_workload_servers, ledgers)
PREPARING = (cluster, itinerary, mixed_clients)
SCANNED_BLOCKS = 8  # enough for a scan to read some from files


@pytest.fixture(scope="session", autouse=True)
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Ledgers are made once: chains of as many flights, those for posts, those for scans."""
    folder = tmp_path_factory.mktemp("made")
    kept: dict[Source, Path] = {}

    def imported(source: Source, home: Path, log: Path | None) -> Chain:
        if source in kept and not home.exists():
            home.mkdir(parents=True)
            copy_chain(kept[source] / "chain", home / "chain")
            shutil.copy(kept[source] / RECORD, home / RECORD)
        chain = chains.imported(source, home, log)
        if source not in kept:
            kept[source] = folder / str(len(kept))
            copy_chain(home / "chain", kept[source] / "chain")
            shutil.copy(home / RECORD, kept[source] / RECORD)
        return chain

    @cache
    def material() -> Material:
        return ledgers.prepared(_run(folder / "posts"), (0, 1), 200)

    @cache
    def two_chains() -> TwoChains:
        return ledgers.two_chains(_run(folder / "scans"), SCANNED_BLOCKS)

    with pytest.MonkeyPatch.context() as patch:
        for module in IMPORTING:
            patch.setattr(module, "imported", imported)
        for module in PREPARING:
            patch.setattr(module, "prepared", lambda *_: material())
        patch.setattr(service_time, "two_chains", lambda *_: two_chains())
        yield


def _run(folder: Path) -> Run:
    folder.mkdir()
    return Run(Options(), Results(folder), folder, lambda text: None)


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
    """No run is rejected for what else the machine does that tests run on, or waits for Locust.

    The load generator is not checked before each experiment; `lab/test_generator_check` is.
    """

    def judged(facts: Facts) -> Verdict:
        quiet = replace(facts, foreign_cpu=None, client_cpu=None)
        return judge(replace(quiet, lag_mean_s=None, lag_p99_s=None))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generator_check, "check", lambda run: None)
        patch.setattr(generation_run, "judge", judged)
        patch.setattr(Generator, "open", plain_generator.open_run)
        patch.setattr(Generator, "closed", plain_generator.closed_run)
        patch.setattr(Generator, "interactions", plain_generator.interactions)
        yield


@pytest.fixture
def everything_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules reject nothing, not even runs between calibrations of a few requests."""

    def judge(facts: Facts) -> Verdict:
        return Verdict((), {rule.name: rule.value(facts) for rule in RULES})

    monkeypatch.setattr(generation_run, "judge", judge)
