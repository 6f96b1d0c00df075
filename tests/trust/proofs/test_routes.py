"""The routes for proofs: what they refuse, and what they cost."""

import csv
import io
import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from flask.testing import FlaskClient

from tests.api.processes import ran
from tests.api.worlds import World, problem
from tests.cases import each_of
from tests.trust.proofs.proofs import DAYS


@each_of(
    ("path", "status", "detail"),
    [
        ("/transactions/1400/proof", 404, "transaction 1400 is not in any block that is signed"),
        ("/transactions/700/proof?tip=3", 404, "transaction 700 is not in any block up to 3"),
        ("/transactions/7/proof?tip=31", 404, "block 31 is not signed yet; the newest"),
        ("/transactions/7/proof?tip=x", 400, "tip 'x': must be a whole number"),
        ("/transactions/x/proof", 400, "TRANSACTION_ID 'x'"),
        ("/transactions/7/proof?as_of=3", 400, "as_of '3'"),
        ("/proofs/consistency", 400, "from is missing"),
        ("/proofs/consistency?from=0", 400, "from '0'"),
        ("/proofs/consistency?from=5&to=4", 400, "from '5': must be at most `to`, 4"),
        ("/proofs/consistency?from=32", 404, "the log has 31 signed blocks, not 32"),
        ("/proofs/consistency?from=3&to=32", 404, "block 31 is not signed yet"),
        ("/proofs/chain?as_of=31", 404, "block 31 is not signed yet"),
        ("/average_delays/proof", 400, "OP_CARRIER_AIRLINE_ID is missing"),
        (
            "/average_delays/proof?INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31",
            400,
            "OP_CARRIER_AIRLINE_ID is missing",
        ),
        ("/average_delays/proof?engine=scan", 400, "engine 'scan'"),
    ],
)
def test_what_is_not_there_or_not_sensible_is_told(
    client: FlaskClient, path: str, status: int, detail: str
) -> None:
    assert detail in problem(client.get(path), status)["detail"]


def test_before_anything_is_signed_there_are_no_proofs(client: FlaskClient, world: World) -> None:
    note = world.settings.folder / "checkpoint"
    kept = note.read_bytes()
    try:
        note.unlink()
        assert (
            "no checkpoint has been signed yet"
            in problem(client.get("/transactions/7/proof"), 404)["detail"]
        )
        note.write_bytes(kept[:-10])
        damaged = problem(client.get("/transactions/7/proof"), 503)["detail"]
        assert "the signed checkpoint is damaged" in damaged
    finally:
        note.write_bytes(kept)


def test_proofs_are_small(client: FlaskClient) -> None:
    for path, most in (("/transactions/700/proof", 4000), ("/proofs/consistency?from=9", 2000)):
        assert len(client.get(path).get_data()) < most


def test_a_proof_has_an_etag(client: FlaskClient) -> None:
    first: Any = client.get("/transactions/7/proof")
    again = client.get("/transactions/7/proof", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("question", ["average_delays", "filter_transactions", "flight_counter"])
def test_the_evidence_for_an_answer_can_be_checked_with_what_is_in_it(
    client: FlaskClient, world: World, tmp_path: Path, question: str
) -> None:
    some = world.transactions[700]
    names = {
        "average_delays": ("OP_CARRIER_AIRLINE_ID",),
        "filter_transactions": ("OP_CARRIER_FL_NUM", "FL_DATE"),
        "flight_counter": ("ORIGIN_CITY_NAME", "DEST_CITY_NAME"),
    }[question]
    query = {name: some[name] for name in names}
    query |= {} if question == "filter_transactions" else DAYS
    path = f"/{question}/proof"
    packing = {"Accept-Encoding": "gzip"}  # a program may save an encoded zip file as it comes
    with client.get(path, query_string={**query, "format": "zip"}, headers=packing) as response:
        assert response.headers["Content-Type"] == "application/zip"
        assert response.headers["Cache-Control"] == "no-store"
        archive = ZipFile(io.BytesIO(response.get_data()))
    assert archive.testzip() is None
    archive.extractall(tmp_path)
    command = ["-I", "verify.py", "proof.ndjson", "--key", "log.vkey", "--kept", "checkpoint"]
    done = ran(sys.executable, *command, cwd=tmp_path)
    assert done.stdout.startswith("VERIFIED"), done
    plain = client.get(f"/{question}", query_string=query).get_json()
    document = json.loads((tmp_path / "answer.json").read_text())
    assert document.pop("as_of") == plain.pop("as_of") == world.as_of()
    assert document == plain
    flights = list(csv.DictReader((tmp_path / "flights.csv").read_text().splitlines()))
    assert len(flights) == plain.get("flights" if question == "average_delays" else "count")
    assert (tmp_path / "log.vkey").read_text().strip() in (tmp_path / "README.txt").read_text()


def test_the_evidence_says_what_is_proved_and_what_is_not(
    client: FlaskClient, world: World, tmp_path: Path
) -> None:
    query = {"OP_CARRIER_AIRLINE_ID": world.transactions[700]["OP_CARRIER_AIRLINE_ID"], **DAYS}
    path = "/average_delays/proof"
    with client.get(path, query_string={**query, "as_of": 3, "format": "zip"}) as response:
        ZipFile(io.BytesIO(response.get_data())).extractall(tmp_path)
    readme = " ".join((tmp_path / "README.txt").read_text().split())
    assert "The log has signed blocks 0 to 30 (checkpoint)" in readme
    assert "The answer is from blocks 0 to 3 of these" in readme
    assert "python3 verify.py proof.ndjson --key log.vkey" in readme  # Debian has no `python`
    assert "verify.py reads neither answer.json nor flights.csv" in readme
    assert sha256((tmp_path / "verify.py").read_bytes()).hexdigest() in readme
    assert "Take verify.py from the project" in readme
    assert "relies on the sums" in readme
