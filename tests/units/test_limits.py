"""Each unit does its ordinary work within the memory that its file allows it."""

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from tests.api.processes import backend, environment, ran
from tests.flights import csv_of, flights
from tests.units import confined, require_limits
from tests.units.installed import Installed, installed

pytestmark = pytest.mark.long

FLIGHTS, POSTED = 30_000, 20_000
YEARS = "INITIAL_DATE=2000-01-01&FINAL_DATE=2030-01-01"
QUESTION = f"/average_delays?OP_CARRIER_AIRLINE_ID=19393&{YEARS}"
WORK = {
    "backend": (
        QUESTION,
        f"{QUESTION}&group_by=route",
        f"{QUESTION}&engine=scan",
        f"/flights?{YEARS}&format=csv",
        f"/flights?{YEARS}",
        f"/average_delays/proof?OP_CARRIER_AIRLINE_ID=19393&{YEARS}",
        "/blocks/3",
        "/metrics",
    ),
    "frontend": (
        "/",
        QUESTION,
        f"{QUESTION}&engine=scan",
        "/rankings?by=route",
        "/blocks",
        "/blocks/3",
        "/transactions/7",
        "/upload",
    ),
}
AT_ONCE = 4
# Only so many exports go out at a time; a client asks for one more after the time that it is given.
AS_CLIENTS_DO = Retry(3, connect=0, read=0, status_forcelist=[503])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_limits()
    folder = tmp_path_factory.mktemp("limits") / "chain"
    done = backend(folder, "import", "--generate", str(FLIGHTS))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Installed]:
    with installed(folder) as site:
        yield site


@pytest.mark.parametrize("name", WORK)
def test_many_who_ask_at_once_are_all_answered(site: Installed, name: str) -> None:
    url = site.pages_url if name == "frontend" else site.url
    addresses = [url + path for path in WORK[name]]
    with ThreadPoolExecutor(AT_ONCE) as pool, requests.Session() as session:
        session.trust_env = False
        session.mount("http://", HTTPAdapter(max_retries=AS_CLIENTS_DO))
        answers = pool.map(lambda address: session.get(address, timeout=60), addresses)
        statuses = {answer.url: answer.status_code for answer in answers}
    assert statuses == dict.fromkeys(addresses, 200), site.log()
    assert site.units[name].kills == 0


def test_a_long_file_is_taken_and_sealed(site: Installed) -> None:
    body = csv_of(flights(POSTED))
    url = f"{site.url}/transactions/batch"
    answer = site.session.post(url, body, headers={"Content-Type": "text/csv"}, timeout=60)
    assert answer.status_code in {200, 201, 202}, answer.text
    assert answer.json()["accepted"] == POSTED
    assert {name: unit.kills for name, unit in site.units.items()} == dict.fromkeys(site.units, 0)


@pytest.mark.parametrize("name", ["verify", "backup"])
def test_check_and_backup_succeed(folder: Path, tmp_path: Path, name: str) -> None:
    command = ("verify",) if name == "verify" else ("backup", str(tmp_path / "backup"))
    with confined(name, folder, tmp_path) as unit:
        run = unit.python("-m", "backend", *command)
        done = ran(*run, env=environment(folder, TMPDIR=tmp_path), timeout_s=600)
        assert (done.returncode, unit.kills) == (0, 0), done.stderr


def test_a_process_that_needs_more_memory_than_its_unit_has_is_killed(tmp_path: Path) -> None:
    require_limits()
    with confined("frontend", tmp_path) as unit:
        size = unit.unit.memory_bytes
        done = subprocess.run(unit.python("-c", f"len({size} * b'x')"), check=False)
        assert (done.returncode, unit.kills) == (-9, 1)
