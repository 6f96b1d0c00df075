"""Service and pages do all they can do behind the filters of their units, each of which is real."""

import re
import subprocess
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.trust.log import notes
from backend.trust.log.notes import COSIGNATURE
from backend.trust.log.secret_keys import SecretKey
from frontend.app import create_app
from frontend.settings import Settings
from tests.api.processes import until
from tests.api.test_specification import READS, WRITES, Described
from tests.api.worlds import World, client_of, generated
from tests.cases import each_of
from tests.flights import csv_of
from tests.trust.witness.logs import answering
from tests.units import UNITS, confined, unit
from tests.units.installed import Installed, installed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(world: World) -> Iterator[Installed]:
    key = SecretKey("example.org/witness", b"\x01" * 32, COSIGNATURE)

    def cosign(_path: str, body: bytes) -> tuple[int, bytes]:
        text = notes.parse(body.partition(b"\n\n")[2]).text
        return 200, f"{key.cosignature(text, int(time.time()))}\n".encode()

    with answering(cosign) as url:
        named = {"FLIGHTCHAIN_WITNESSES": f"{key.verifier} {url}"}
        with installed(world.settings.folder, **named) as site:
            yield site


@pytest.fixture(scope="module")
def unconfined(world: World) -> Iterator[FlaskClient]:
    with client_of(world.settings) as client:
        yield client


@pytest.mark.parametrize("name", UNITS)
def test_each_unit_may_do_what_programs_need_and_nothing_that_changes_the_system(name: str) -> None:
    calls = {*unit(name).allowed_calls()}
    assert {"openat", "fdatasync", "clone3", "sched_getaffinity"} <= calls
    assert not {"setpriority", "sched_setaffinity", "ioprio_set", "mount", "ptrace", "bpf"} & calls


FORBIDDEN = {
    "a priority": "os.setpriority(os.PRIO_PROCESS, 0, 5)",
    "a processor": "os.sched_setaffinity(0, [0])",
    "another kind of socket": "socket.socket(socket.AF_NETLINK)",
    "new executable memory": "mmap.mmap(-1, 1, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)",
}


@pytest.mark.parametrize("attempt", FORBIDDEN.values(), ids=[*FORBIDDEN])
def test_a_unit_is_refused_what_its_file_forbids(tmp_path: Path, attempt: str) -> None:
    program = f"import mmap, os, socket\ntry: {attempt}\nexcept OSError as e: print('refused', e)"
    with confined("backend", tmp_path) as backend:
        done = subprocess.run(backend.python("-c", program), capture_output=True, check=True)
    assert done.stdout.startswith(b"refused")


@each_of("described_", READS)
def test_every_row_that_reads_answers_as_it_does_without_filters(
    site: Installed, unconfined: FlaskClient, described_: Described
) -> None:
    needed, *others = described_.examples()
    for query in (needed, *others[-1:]):  # the last has all parameters
        early = query | {name: "9" for name in ("as_of", "tip") if name in query}
        expected = described_.ask(unconfined, early).status_code
        if described_.operation["operationId"] == "health_ready":
            expected = 200  # there is a miner
        target = described_.target(early)
        assert site.status(site.url + target) == expected, (target, site.log())


@each_of("described_", WRITES)
def test_every_row_that_writes_does(site: Installed, described_: Described) -> None:
    for query in described_.examples():
        for mimetype, body in described_.bodies():
            sent = {"json": body} if mimetype == "application/json" else {"data": body}
            answer = site.session.post(
                site.url + described_.target(query), **sent, headers={"Content-Type": mimetype}
            )
            assert answer.status_code in {200, 201, 202}, (answer.text, site.log())


def test_a_file_that_is_sent_is_checked_and_added(site: Installed) -> None:
    def post(path: str, body: bytes = b"") -> dict[str, Any]:
        answer = site.session.post(site.url + path, body)
        assert answer.status_code in {200, 201, 202}, (answer.text, site.log())
        fields: dict[str, Any] = answer.json()
        return fields

    def state(path: str) -> str:
        return str(site.session.get(site.url + path).json()["state"])

    content = csv_of(generated(5000)).encode()
    path = f"/imports/{post(f'/imports?NAME=f.csv&SIZE={len(content)}')['IMPORT_ID']}"
    post(f"{path}?OFFSET=0", content)
    for action, outcome in (("check", "checked"), ("add", "added")):
        post(f"{path}/{action}")
        until(lambda: state(path) not in {"checking", "adding"})
        assert state(path) == outcome, (site.session.get(site.url + path).text, site.log())


def test_witnesses_that_are_named_cosign(site: Installed) -> None:
    until(lambda: bool(site.session.get(f"{site.url}/log/witnesses").json()["witnesses"]))


def test_every_page_is_shown_and_one_of_each_kind_that_it_links_to(site: Installed) -> None:
    pages = create_app(Settings()).url_map
    rules = [rule for rule in pages.iter_rules() if "GET" in (rule.methods or ())]
    waiting = ["/", *(rule.rule for rule in rules if not rule.arguments)]
    kinds: set[str] = set()
    for address in waiting:
        kind = pages.bind("").match(address.partition("?")[0])[0]
        if kind not in kinds:
            kinds.add(kind)
            answer = site.session.get(site.pages_url + address, timeout=30)
            assert answer.status_code < 500, (address, site.log())
            waiting += map(unescape, re.findall(r'<a [^>]*href="(/[^"#]*)', answer.text))
    assert len(kinds) > len({rule.endpoint for rule in rules if not rule.arguments}) + 5
    assert {name: unit_.kills for name, unit_ in site.units.items()} == dict.fromkeys(site.units, 0)
