"""A running service whose index is damaged, or was copied by hand: it refuses, mends and answers.

On a read-only medium nothing can be mended, but a good index is asked all the same.
"""

import os
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.api.processes import Service, serving, stopped, until
from tests.api.worlds import (
    Json,
    World,
    answer_of,
    questions_about,
    world_in,
)
from tests.faults.disks import read_only
from tests.index.worlds import in_use, settle
from tests.test_cli import call

pytestmark = pytest.mark.slow

PAGE = 4096
LONG_S = 3600  # no block comes meanwhile


def question(leg: Json, **more: object) -> str:
    asked = questions_about(leg)["filter_transactions"]
    return f"/filter_transactions?{urlencode({**asked, **more})}"


def right(world: World, leg: Json) -> list[Json]:
    route, asked = next(iter(questions_about(leg).items()))
    flights: list[Json] = answer_of(route, world.transactions, asked)["flights"]
    return flights


def flip_a_bit_of_every_page(folder: Path) -> None:
    """As a disk would: nothing but the content changes. The first page is what all begin with."""
    with in_use(folder).open("r+b") as stream:
        for offset in range(PAGE + 100, in_use(folder).stat().st_size, PAGE):
            byte = os.pread(stream.fileno(), 1, offset)
            os.pwrite(stream.fileno(), bytes([byte[0] ^ 4]), offset)
    settle(folder)


def metric(service: Service, name: str) -> float:
    lines = service.get("/metrics").text.splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(f"{name} "))
    return float(value)


def test_a_damaged_index_is_refused_said_to_be_so_and_made_anew_at_once(folder: Path) -> None:
    world = world_in(folder)
    with serving(folder, FLIGHTCHAIN_MINE_INTERVAL_S=LONG_S) as service:
        kept, other = world.transactions[0], world.transactions[700]
        assert service.json(question(kept))["flights"] == right(world, kept)
        with stopped(service.miner()):
            flip_a_bit_of_every_page(folder)
            until(lambda: service.get(question(other)).status_code == 503)
            refused = service.get(question(other))
            assert "the index is wrong" in refused.json()["detail"]
            assert int(refused.headers["Retry-After"]) > 0
            until(lambda: all(service.get(question(kept)).status_code == 503 for _ in range(20)))
            ready = service.get("/health/ready")
            assert ready.status_code == 503
            assert any("the index is wrong" in reason for reason in ready.json()["reasons"])
            assert metric(service, "flightchain_index_believed") == 0
            scanned = service.json(question(other, engine="scan"))
            assert scanned["flights"] == right(world, other)
        until(service.answers)
        for leg in (kept, other):
            assert service.json(question(leg))["flights"] == right(world, leg)
        assert metric(service, "flightchain_index_believed") == 1
        until(lambda: metric(service, "flightchain_index_rebuilds_total") == 1)
        assert "the index was rebuilt: " in service.said()


# --- read-only media -------------------------------------------------------------------------


def parameters(leg: Json) -> list[str]:
    return [f"{name}={leg[name]}" for name in ("OP_CARRIER_FL_NUM", "FL_DATE")]


def test_damage_on_a_read_only_medium_is_said(folder: Path) -> None:
    world = world_in(folder)
    flip_a_bit_of_every_page(folder)
    with read_only(folder, folder.with_name("medium")) as place:
        done = call(place, "query", "filter_transactions", *parameters(world.transactions[700]))
        assert done.returncode == 1
        assert "is wrong, and cannot be marked as such" in done.stderr
        assert "ask with engine=scan" in done.stderr
        asked = [*parameters(world.transactions[700]), "engine=scan"]
        assert call(place, "query", "filter_transactions", *asked).returncode == 0
