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
