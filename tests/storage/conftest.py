"""A leak detector around every test of the storage, and the sample chains."""

import pytest

from tests import descriptors
from tests.storage.chains import (
    Sample,
    sample_of,
)

no_descriptor_is_left_open = descriptors.no_descriptor_is_left_open


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Genesis and five blocks, one of them without transactions."""
    return sample_of(tmp_path_factory.mktemp("sample"), [3, 0, 2, 4, 1])
