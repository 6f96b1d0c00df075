import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mempool.house import House


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    opened = House(tmp_path)
    yield opened
    opened.close()
    assert opened.descriptors() == []


@pytest.fixture
def instant_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Syncs return at once: for tests that open many logs and cut no power."""
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
