"""Clients that generators for Go and TypeScript make of /openapi.json, of which one is run.

To build the generators takes a minute, so this is for runs that have time (profile `explore`).
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.processes import Service, serving
from tests.api.worlds import GOOD, World, world_in
from tests.effort import EXPLORE, tries
from tests.go_programs import go, installed, ran

pytestmark = pytest.mark.skipif(
    not tries(0, exploring=1),
    reason=f"builds generators, with --hypothesis-profile={EXPLORE} alone",
)
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
OGEN = "github.com/ogen-go/ogen/cmd/ogen@v1.24.0"
OPENAPI_TYPESCRIPT = "openapi-typescript@7.13.0"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world_in(tmp_path_factory.mktemp("generated") / "chain")


@pytest.fixture(scope="module")
def service(world: World) -> Iterator[Service]:
    with serving(world.settings.folder, FLIGHTCHAIN_MINE_INTERVAL_S=3600) as found:
        yield found


@pytest.fixture(scope="module")
def document(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("document") / "openapi.json"
    found.write_text(service.get("/openapi.json").text, encoding="utf-8")
    return found


def test_a_client_in_go_adds_and_asks(
    service: Service, world: World, document: Path, tmp_path: Path
) -> None:
    """The flight is on a day of which the ledger has flights, but none with its number."""
    shutil.copy(Path(__file__).parent / "generated_go" / "main.go", tmp_path)
    (tmp_path / "client").mkdir()
    options = ("-generate", "types,client", "-package", "client", "-o", "client/client.go")
    for command in (
        [go(), "mod", "init", "checking"],
        [installed(OAPI_CODEGEN), *options, str(document)],
        [go(), "mod", "tidy"],
        [go(), "build", "-o", "program"],
    ):
        done = ran(command, cwd=tmp_path)
        assert done.returncode == 0, (command, done.stderr)
    flight = {**GOOD, "OP_CARRIER_FL_NUM": world.transactions[7]["OP_CARRIER_FL_NUM"]}
    flight |= {name: world.transactions[7][name] for name in ("YEAR", "DAY_OF_WEEK", "FL_DATE")}
    done = ran([str(tmp_path / "program"), service.url], cwd=tmp_path, text=json.dumps(flight))
    same = [
        each
        for each in world.transactions
        if all(each[name] == flight[name] for name in ("OP_CARRIER_FL_NUM", "FL_DATE"))
    ]
    assert (done.stdout, done.stderr) == (f"{len(world.transactions)} {len(same)}\n", "")


def test_another_generator_for_go_understands_everything(document: Path, tmp_path: Path) -> None:
    done = ran([installed(OGEN), "--target", str(tmp_path / "client"), str(document)])
    assert done.returncode == 0, done.stderr[-2000:]


def test_types_for_typescript_can_be_made(document: Path, tmp_path: Path) -> None:
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("Node is not installed")
    done = ran([npx, "--yes", OPENAPI_TYPESCRIPT, str(document), "-o", str(tmp_path / "types.ts")])
    if "npm error" in done.stderr:
        pytest.skip(f"{OPENAPI_TYPESCRIPT} cannot be had: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "types.ts").read_text(encoding="utf-8")
    assert "YEAR: number | string;" in text
