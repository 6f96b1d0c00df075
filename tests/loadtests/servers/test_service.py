"""The service set up as the study's server was: it reads the blocks of a scan once, in order."""

import re
from pathlib import Path

import pytest

from loadtests.chains import size_bytes
from loadtests.processes import running
from loadtests.servers.service import RUN_BLOCKS, RUNS_CACHED, as_in_the_study
from tests.api.worlds import generated, seal, settings_for
from tests.loadtests.servers.asking import ask, is_answered_before_a_later_one, parts

BLOCKS, SPEEDUP = 130, 40
SCAN = (
    "/average_delays?OP_CARRIER_AIRLINE_ID=1&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-02"
    "&engine=scan"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("as-in-the-study") / "chain"
    flights = generated(3)
    seal(settings_for(folder), [flights] * (BLOCKS - 1))
    return folder


def test_every_scan_reads_the_blocks_that_no_cache_keeps_and_none_twice(
    folder: Path, tmp_path: Path
) -> None:
    settings = as_in_the_study(size_bytes(folder / "blocks"), BLOCKS, emulated_disk=SPEEDUP)
    serving = ("serve", "--only-http")
    with running(folder, tmp_path / "log", serving, "/health/live", settings) as service:
        for _ in range(3):
            status, _, headers = ask(service, SCAN)
            assert status == 200
        match = re.search(r'file;dur=[0-9.]+;desc="(\d+) blocks in (\d+) refills"', str(headers))
        assert match is not None
        read, refills = int(match[1]), int(match[2])
        assert read == RUN_BLOCKS * refills
        assert read <= BLOCKS - 0.9 * RUNS_CACHED * RUN_BLOCKS + RUN_BLOCKS
        spent_ms, _ = parts(headers)
        assert spent_ms["file"] + spent_ms["emulated"] >= (read - RUN_BLOCKS) * 85 / SPEEDUP
        assert headers["x-emulated-disk"] == str(SPEEDUP)
        assert is_answered_before_a_later_one(service, SCAN, "/health/live")


def test_without_emulation_the_service_is_in_no_lab() -> None:
    settings = as_in_the_study(1000, 10)
    assert settings.keys().isdisjoint({"lab", "emulated_disk"})
    assert settings["worker_type"] == "sync"


@pytest.mark.parametrize("given", [{"blocks": 0}, {"blocks": 1, "run_blocks": 0}])
def test_what_cannot_be_is_refused(given: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        as_in_the_study(1, **given)
