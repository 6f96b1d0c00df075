"""One hypothesis profile for all tests, and a service for those that want a whole one.

The profile is bounded, patient with slow machines, the same every time. A test that fails once in a
hundred runs stops a release for nothing that was changed; to look for new examples, run
`scripts/test --hypothesis-profile=explore`.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.api.processes import Service, serving
from tests.api.worlds import world_in

settings.register_profile(
    "flightchain",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("flightchain"), derandomize=False)
settings.load_profile("flightchain")

# A shell lets what it starts in the background ignore Ctrl-C, and so would every program of a test.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for the tests of a module that leave it as they found it."""
    folder = tmp_path_factory.mktemp("service") / "chain"
    world_in(folder)
    with serving(folder) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where a chain may be made."""
    return tmp_path / "chain"
