"""Hypothesis's profiles for all tests, the order of their files, and a service for many.

The profile is bounded, patient with slow machines, the same every time. A test that fails once in a
hundred runs stops a release for nothing that was changed; to look for new examples, run
`scripts/test --hypothesis-profile=explore`.
"""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from backend.sealing.child import sent_by
from tests.api.processes import Service, serving
from tests.api.worlds import World, client_of, keep_world, world_in
from tests.apps import build_once
from tests.bts_server import Bts, bts_server
from tests.effort import EXPLORE, QUICK
from tests.imports import importing, sent_here

BROWSER = "tests/browser/"
# Files that need the whole chain of scripts/run: others would wait until one has imported it.
IMPORTED = tuple(
    f"tests/api/test_{name}.py" for name in ("documents", "export_recipes", "specification")
)
# Folders in which all need a browser, kill processes or measure; other files have the mark.
SLOW_FOLDERS = (
    BROWSER,
    "tests/faults/",
    "tests/loadtests/bench/",
    "tests/loadtests/experiments/",
    "tests/loadtests/generation/",
    "tests/loadtests/lab/",
    "tests/loadtests/servers/",
)

settings.register_profile(
    "flightchain",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    EXPLORE, settings.get_profile("flightchain"), derandomize=False, max_examples=300
)
settings.register_profile(QUICK, settings.get_profile("flightchain"), max_examples=10)
settings.load_profile("flightchain")

# Without compiled files each of the hundreds of processes that tests start would compile all of
# `backend` again: a fifth more processor time for each service, and 12 s to collect the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell lets what it starts in the background ignore Ctrl-C, and so would every program of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _synced(descriptor: int) -> None:
    os.fstat(descriptor)  # refuses one that is not open, as a real sync does


# Nobody cuts the power of this process, and a disk takes a millisecond for each of its many syncs.
# Which of them are made, and what becomes of one that fails, is tested with others in this place;
# the processes that tests start sync as ever, and tests/faults cuts their power.
vars(os).update(fsync=_synced, fdatasync=_synced)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow because of its folder, and begin with the browser and all that is slow.

    A process that begins a long file when the others have nothing left keeps them waiting.
    """
    if settings.get_current_profile_name() != EXPLORE:
        # Else Hypothesis also draws what stands in the files of all modules that are imported by
        # then: other examples in another order of files, and seconds to read them.
        vars(providers).update(_get_local_constants=Constants)
    for item in items:
        if item.nodeid.startswith(SLOW_FOLDERS):
            item.add_marker("slow")
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (item.nodeid.startswith(BROWSER), is_slow(item)), reverse=True)


def is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Leave all files of tests/browser to one process: each would start a browser and six servers.

    So with the files that are IMPORTED. The other processes have the rest to do meanwhile.
    """
    return _FilesAndGroups(config, log) if config.getoption("dist") == "loadfile" else None


class _FilesAndGroups(LoadFileScheduling):  # type: ignore[misc]
    """Hands out one file after the other, and the files of a group together."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((group[0] for group in ((BROWSER,), IMPORTED) if file.startswith(group)), file)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Spare the garbage collector ten thousand tests and what they import.

    They stay until the end, and each look at them takes a quarter of a second: the detectors of
    leaks have it look, and so does whatever makes many objects. Without looks, they are collected
    in three quarters of the time.
    """
    gc.disable()
    if session.config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        _import_another_part_first(session.config.rootpath)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_another_part_first(root: Path) -> None:
    """Import all modules of tests, each of the processes that share them in another order.

    In a clean clone, the first to import a module compiles it. Processes that all begin with the
    same would each compile all of them, for 9 s.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    files = sorted(root.glob("tests/**/test_*.py"))
    first = len(files) * number // count
    for file in files[first:] + files[:first]:
        with suppress(Exception):  # the collection meets it again, and says where
            import_module(".".join(file.relative_to(root).with_suffix("").parts))


@pytest.fixture(scope="session", autouse=True)
def apps_built_once() -> Iterator[None]:
    """Let the apps that tests make share what is the same in all of them."""
    with pytest.MonkeyPatch.context() as patch:
        build_once(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def without_children() -> Iterator[None]:
    """Let imports read and build in this process, unless a test has `with_children`."""
    with importing(sent_here):
        yield


@pytest.fixture
def with_children() -> Iterator[None]:
    """Let the imports of a test have children, as elsewhere."""
    with importing(sent_by):
        yield


@pytest.fixture(scope="session", autouse=True)
def one_world(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the small chain that many tests ask, or change, be made once, when it is needed."""
    keep_world(tmp_path_factory.mktemp("one") / "chain")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The small chain that many tests ask, as a copy for the tests of a module."""
    return world_in(tmp_path_factory.mktemp("world") / "chain")


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[FlaskClient]:
    """A client of the API over `world`, in this process."""
    with client_of(world.settings) as client:
        yield client


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for the tests of a module that leave it as they found it."""
    folder = tmp_path_factory.mktemp("service") / "chain"
    world_in(folder)
    with serving(folder) as service:
        yield service


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a chain may be made."""
    return tmp_path / "chain"


@pytest.fixture
def bts() -> Iterator[Bts]:
    """A server of months that has none yet."""
    with bts_server() as running:
        yield running
