"""Clients that public generators make of /openapi.json; those in Python and Go are run."""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.api.processes import Service, living
from tests.api.worlds import GOOD, Json, World, asked_for
from tests.go_programs import go, installed, ran

pytestmark = pytest.mark.slow

PACKAGE = "generated_flightchain"
CONFIG = """
content_type_overrides:  # what the generator has no name for goes out as it is
  application/x-ndjson: application/octet-stream
  application/ndjson: application/octet-stream
  application/jsonl: application/octet-stream
  text/csv: application/octet-stream
post_hooks: []
"""
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
OGEN = "github.com/ogen-go/ogen/cmd/ogen@v1.24.0"
OPENAPI_TYPESCRIPT = "openapi-typescript@7.13.0"
FIRST, LAST = date(2015, 1, 1), date(2015, 1, 31)


@pytest.fixture(scope="module")
def service(world: World) -> Iterator[Service]:
    with living(world.settings.folder, "--only-http") as service:
        yield service


class Generated:
    """The generated package, and a client of its own."""

    def __init__(self, url: str) -> None:
        self._client = self.module("client").Client(base_url=url, httpx_args={"trust_env": False})

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{PACKAGE}.{name}")

    def call(self, where: str, **given: Any) -> Any:
        return self.module(f"api.{where}").sync(client=self._client, **given)

    def close(self) -> None:
        self._client.get_httpx_client().close()


@pytest.fixture(scope="module")
def document(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("client") / "openapi.json"
    path.write_text(service.get("/openapi.json").text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def generated(service: Service, document: Path) -> Iterator[Generated]:
    folder = document.parent
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    arguments = "--path openapi.json --config config.yaml --meta none --fail-on-warning"
    subprocess.run(
        [
            *(sys.executable, "-m", "openapi_python_client", "generate"),
            *arguments.split(),
            *("--output-path", folder / PACKAGE),
        ],
        cwd=folder,
        check=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        generated = Generated(service.url)
        yield generated
        generated.close()


def test_questions_are_answered_as_they_are_without_the_client(
    generated: Generated, service: Service, world: World
) -> None:
    flight, january = world.transactions[7], {"INITIAL_DATE": FIRST, "FINAL_DATE": LAST}
    group_by = generated.module("models.average_delays_group_by").AverageDelaysGroupBy.DAY
    questions = {
        "filter_transactions": taken(flight, "OP_CARRIER_FL_NUM")
        | {"FL_DATE": date.fromisoformat(flight["FL_DATE"])},
        "average_delays": taken(flight, "OP_CARRIER_AIRLINE_ID") | january | {"group_by": group_by},
        "flight_counter": taken(flight, "ORIGIN_CITY_NAME", "DEST_CITY_NAME") | january,
    }
    for name, asked in questions.items():
        given = {key.lower(): value for key, value in asked.items()}
        answer = generated.call(f"the_three_questions.{name}", **given).to_dict()
        assert answer == service.json(f"/{name}?{urlencode(asked)}")
        assert answer["count" if "count" in answer else "flights"] > 0


def test_suggestions_come_with_all_that_they_have(generated: Generated, service: Service) -> None:
    fields = generated.module("models.suggest_field").SuggestField
    for field in fields:
        answer = generated.call("export_and_suggestions.suggest", field=field).to_dict()
        assert answer == service.json(f"/suggest?field={field}")


def taken(flight: Json, *names: str) -> Json:
    return {name: flight[name] for name in names}


def test_a_problem_comes_as_one(generated: Generated) -> None:
    answer = generated.call(
        "the_three_questions.average_delays",
        op_carrier_airline_id=0,
        initial_date=FIRST,
        final_date=LAST,
    )
    assert (answer.status, answer.field, answer.value) == (400, "OP_CARRIER_AIRLINE_ID", "0")


def test_flights_can_be_added(generated: Generated, world: World) -> None:
    flight = generated.module("models.flight").Flight.from_dict(GOOD)
    receipt = generated.call("adding_flights.add_transaction", body=flight)
    assert receipt.transaction_id == len(world.transactions)
    # Of the media types of a file the generator sends the last that is in the document.
    names, values = (",".join(map(str, part)) for part in (GOOD, map(json.dumps, GOOD.values())))
    file = generated.module("types").File(payload=f"{names}\n{values}\n".encode())
    batch = generated.call("adding_flights.add_batch", body=file)
    assert (batch.accepted, batch.rejected) == (1, 0)


# --- in Go and TypeScript -----------------------------------------------------------------------


@pytest.mark.long
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
    tip = service.json("/tip")
    number = tip["transactions"] + tip["pending"]
    flight = {**GOOD, "OP_CARRIER_FL_NUM": world.transactions[7]["OP_CARRIER_FL_NUM"]}
    flight |= {name: world.transactions[7][name] for name in ("YEAR", "DAY_OF_WEEK", "FL_DATE")}
    done = ran([str(tmp_path / "program"), service.url], cwd=tmp_path, text=json.dumps(flight))
    same = asked_for(world.transactions, taken(flight, "OP_CARRIER_FL_NUM", "FL_DATE"))
    assert (done.stdout, done.stderr) == (f"{number} {len(same)}\n", "")


@pytest.mark.long
def test_another_generator_for_go_understands_everything(document: Path, tmp_path: Path) -> None:
    done = ran([installed(OGEN), "--target", str(tmp_path / "client"), str(document)])
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.long
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
