"""A service with an emulated disk: when it starts, what it says, whom it keeps waiting.

As the study's server, with one worker of type `sync`: `tests/loadtests/servers/test_service.py`.
"""

import socket
from pathlib import Path
from typing import Any

import pytest

from tests.api.processes import free_port, living
from tests.api.worlds import World
from tests.cases import each_of
from tests.test_cli import call

pytestmark = pytest.mark.slow

SPEEDUP = 10
SCAN = (
    "/average_delays?OP_CARRIER_AIRLINE_ID=1&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-02"
    "&engine=scan"
)


@each_of(
    ("command", "settings", "says"),
    [
        (["serve", "--only-http"], {}, "set FLIGHTCHAIN_LAB=yes if this is the lab"),
        (
            ["serve"],
            {"FLIGHTCHAIN_LAB": "yes", "FLIGHTCHAIN_HOST": "0.0.0.0"},
            "others can reach FLIGHTCHAIN_HOST 0.0.0.0",
        ),
        (
            ["import", "--generate", "1", "--then-serve"],
            {"FLIGHTCHAIN_LAB": "yes", "FLIGHTCHAIN_FRONTEND_HOST": "192.0.2.1"},
            "others can reach FLIGHTCHAIN_FRONTEND_HOST 192.0.2.1",
        ),
    ],
)
def test_an_emulated_disk_is_refused_outside_the_lab(
    tmp_path: Path, command: list[str], settings: dict[str, str], says: str
) -> None:
    if not (tmp_path / "tokens.json").exists():
        call(tmp_path, "token", "add", "somebody")
    given: Any = {"FLIGHTCHAIN_EMULATED_DISK": 100, "FLIGHTCHAIN_PORT": free_port(), **settings}
    refused = call(tmp_path, *command, **given)
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith("error: FLIGHTCHAIN_EMULATED_DISK 100: ")
    assert says in line
    assert not (tmp_path / "blocks").exists()


def test_every_answer_tells_of_it_and_a_scan_waits_for_each_block_it_reads(world: World) -> None:
    """A web server alone, of one worker and without caches, so that every read waits."""
    settings: Any = {
        "FLIGHTCHAIN_LAB": "yes",
        "FLIGHTCHAIN_EMULATED_DISK": SPEEDUP,
        "FLIGHTCHAIN_CACHE_BYTES": 0,
        "FLIGHTCHAIN_WORKERS": 1,
    }
    with living(world.settings.folder, "--only-http", **settings) as service:
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as client:
            client.sendall(b"POST /transactions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            head = client.makefile("rb").read().partition(b"\r\n\r\n")[0]
        answer, plain = service.get(SCAN), service.get(SCAN.replace("scan", "index"))
    assert head.startswith(b"HTTP/1.1 411 ")  # the worker refuses it by itself
    assert b"\r\nX-Emulated-Disk: 10\r\n" in head
    assert answer.headers["X-Emulated-Disk"] == plain.headers["X-Emulated-Disk"] == "10"
    blocks = world.tip + 1
    assert f'desc="{blocks} blocks in {blocks} refills"' in answer.headers["Server-Timing"]
    assert answer.elapsed.total_seconds() >= 0.98 * blocks * 0.085 / SPEEDUP
    scanned, indexed = answer.json(), plain.json()
    engines = scanned.pop("query")["engine"], indexed.pop("query")["engine"]
    assert engines == ("scan", "index")
    assert scanned == indexed
