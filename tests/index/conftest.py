"""A leak detector around every test of the index, and a small chain with its index."""

import gc
import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from backend.index.checkpoint_note import note_settled
from tests.descriptors import descriptors_of
from tests.index.worlds import SMALL, follow, in_use, make_chain

_passed = pytest.StashKey[bool]()


def open_files() -> list[str]:
    """What the descriptors of this process point at, as far as it belongs to a chain's folder."""
    parts = ("blocks", "index", ".lock")
    return sorted(n for n in descriptors_of().values() if any(part in n for part in parts))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test passed: the traceback of one that did not keeps files open."""
    report = yield
    if report.when == "call":
        item.stash[_passed] = report.passed
    return report


@pytest.fixture(autouse=True)
def no_descriptor_is_left_open(request: pytest.FixtureRequest) -> Iterator[None]:
    before = Counter(open_files())
    yield
    if request.node.stash.get(_passed, False):
        if Counter(open_files()) - before:
            gc.collect()  # a reader that a test did not close
        assert Counter(open_files()) - before == Counter()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`SMALL` with its index. Not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    make_chain(folder, SMALL)
    follow(folder)
    return folder


@pytest.fixture
def indexed(small: Path, tmp_path: Path) -> Path:
    """Genesis and four blocks with their index: a copy, noted as what its writer left."""
    folder = Path(shutil.copytree(small, tmp_path / "chain", symlinks=True))
    note_settled(in_use(folder), len(SMALL))
    return folder
