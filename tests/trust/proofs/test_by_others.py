"""Proofs as a library sees them that no one here wrote: golang.org/x/mod/sumdb."""

import copy
import json
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.api.processes import ran
from tests.go_programs import built
from tests.trust.proofs.proofs import Json, fetched

pytestmark = pytest.mark.slow

MODULE = "golang.org/x/mod@v0.33.0"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = Path(__file__).parent / "tlog" / "main.go"
    return built(source, MODULE, tmp_path_factory.mktemp("go"))


@pytest.fixture(scope="module")
def proofs(client: FlaskClient) -> Json:
    (transaction,) = fetched(client, "/transactions/700/proof")
    (consistency,) = fetched(client, "/proofs/consistency", **{"from": 13})
    return {"transaction": transaction, "consistency": consistency}


def says(program: str, proofs: Json) -> tuple[int, str]:
    done = ran(program, text=json.dumps(proofs))
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_our_proofs_are_proofs(program: str, proofs: Json) -> None:
    assert says(program, proofs) == (0, "")


@pytest.mark.parametrize(
    ("kind", "member"),
    [("transaction", "path"), ("transaction", "history"), ("consistency", "path")],
)
def test_other_hashes_prove_nothing(program: str, proofs: Json, kind: str, member: str) -> None:
    changed = copy.deepcopy(proofs)
    changed[kind][member].reverse()
    status, output = says(program, changed)
    assert status == 1
    assert "invalid" in output


def test_another_checkpoint_is_not_signed(program: str, proofs: Json) -> None:
    changed = copy.deepcopy(proofs)
    note = changed["transaction"]["checkpoint"]
    changed["transaction"]["checkpoint"] = note.replace("\n31\n", "\n30\n")
    status, output = says(program, changed)
    assert status == 1
    assert "invalid signature" in output
