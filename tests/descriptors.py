"""What processes have open, by /proc, and a detector of leaks."""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

PARTS = ("blocks", "index", ".lock")  # of the names of a ledger's files that must not stay open


def descriptors_of(pid: int | str = "self") -> dict[int, str]:
    """Each descriptor of a process, and what it points at."""
    targets = {}
    with suppress(OSError):  # it has ended
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile, as that which lists this very folder
                targets[int(link.name)] = str(link.readlink())
    return targets


def open_files() -> list[str]:
    """What the descriptors of this process point at, as far as it belongs to a chain's folder."""
    return sorted(n for n in descriptors_of().values() if any(part in n for part in PARTS))


@pytest.fixture(autouse=True)
def no_descriptor_is_left_open() -> Iterator[None]:
    """Detect a file that a test opens and leaves open, where this fixture is named."""
    before = Counter(open_files())
    yield
    if Counter(open_files()) - before:
        gc.collect()  # a reader that was not closed, or a file that an error refers to
    assert Counter(open_files()) - before == Counter()
