"""What clients meet when the disk has damaged, or refuses, what is not in a block: never 500."""

import errno
import os
import shutil
from itertools import cycle
from pathlib import Path

import apsw
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from backend.base.settings import Settings
from backend.chain.flight import as_mapping
from backend.chain.placeholder import VOID
from backend.storage import checked_sqlite
from tests.api.worlds import GOOD, client_of, good, problem, seal, settings_for
from tests.mempool.spoiling import spoil, store_path
from tests.storage.chains import refusing


def post(client: FlaskClient, number: int = 1, **headers: str) -> TestResponse:
    body = {**GOOD, "OP_CARRIER_FL_NUM": number}
    return client.post("/transactions", json=body, headers=headers)


@pytest.fixture
def folder(settings: Settings) -> Path:
    return settings.folder


def with_posts(settings: Settings, count: int = 3) -> None:
    with client_of(settings) as client:
        for number in range(1, 1 + count):
            good(post(client, number), 202)


# --- damage --------------------------------------------------------------------------------------


def test_a_lost_flight_is_named_and_void_and_posts_go_on(settings: Settings) -> None:
    with_posts(settings)
    spoil(settings.folder, 0)
    with client_of(settings) as client:
        for path in ("/transactions/0", "/transactions/2", "/tip"):
            detail = problem(client.get(path), 503)["detail"]
            assert "accepts or mines flights repairs it" in detail
            assert "the record of transaction 0 does not agree with its checksum" in detail
        assert good(post(client, 4), 202)["TRANSACTION_ID"] == 3
        lost = good(client.get("/transactions/0"))
        assert lost["state"] == "pending"
        assert "lost before it was mined" in lost["transaction"]["ORIGIN_CITY_NAME"]
        assert good(client.get("/transactions/1"))["transaction"]["OP_CARRIER_FL_NUM"] == 2
        reasons = problem(client.get("/health/ready"), 503)["reasons"]
        assert any("1 acknowledged flight is lost, transactions 0 to 0" in r for r in reasons)


def test_what_is_lost_is_mined_as_void_and_covers_nothing(settings: Settings) -> None:
    with_posts(settings)
    spoil(settings.folder, 0)
    seal(settings, [[]])
    with client_of(settings) as client:
        answer = good(client.get("/transactions/0"))
        assert answer["state"] == "mined"
        transaction = {name: answer["transaction"][name] for name in as_mapping(VOID)}
        assert transaction == as_mapping(VOID)
        covered = good(client.get("/coverage"))
        assert covered["flights"] == 2
        assert (covered["first_date"], covered["last_date"]) == (GOOD["FL_DATE"], GOOD["FL_DATE"])
        assert [each["flights"] for each in covered["carriers"]] == [2]
        assert {each["code"] for each in covered["airports"]} == {GOOD["ORIGIN"], GOOD["DEST"]}
        for field in ("city", "airport", "carrier", "flight_number"):
            for suggestion in good(client.get(f"/suggest?field={field}&q="))["suggestions"]:
                assert "void" not in str(suggestion).lower()
                assert "98765" not in str(suggestion)


def test_a_chain_of_void_entries_alone_covers_nothing(settings: Settings) -> None:
    with_posts(settings, 1)
    shutil.rmtree(settings.folder / "mempool")
    seal(settings, [[]])
    with client_of(settings) as client:
        answer = good(client.get("/coverage"))
        del answer["as_of"]
        empty = {"flights": 0, "first_date": None, "last_date": None}
        assert answer == {**empty, "carriers": [], "airports": []}


# --- keys and tokens -----------------------------------------------------------------------------


def test_a_store_that_cannot_be_opened_is_named_and_nothing_is_replaced(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_posts(settings)
    before = store_path(settings.folder).read_bytes()

    def refuse(*arguments: object) -> None:
        raise apsw.CantOpenError("unable to open database file")

    with client_of(settings) as client:
        with monkeypatch.context() as patch:
            patch.setattr(checked_sqlite, "connect", refuse)
            for answer in (client.get("/tip"), post(client, 4), client.get("/health/ready")):
                message = str(problem(answer, 503))
                assert "mempool.sqlite cannot be read now: unable to open" in message
                assert "pending flights are unknown and nothing is accepted" in message
        assert store_path(settings.folder).read_bytes() == before
        assert good(post(client, 4), 202)["TRANSACTION_ID"] == 3


@pytest.mark.parametrize("what", ["", "[{}]", "[", '{"name":1}'])
def test_damaged_tokens_are_named_and_nobody_may_write(folder: Path, what: str) -> None:
    (folder / "tokens.json").write_text(what)
    settings = settings_for(folder, require_token=1)
    with client_of(settings) as client:
        detail = problem(post(client, 1, Authorization="Bearer x"), 503)["detail"]
        assert "tokens.json is not a list of tokens" in detail
        assert "python -m backend token add NAME" in detail
        good(client.get("/blocks/0"))


# --- a disk that refuses -------------------------------------------------------------------------

PATHS = ("/tip", "/transactions/0", "/blocks/0", "/blocks", "/health/ready", "/coverage")


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "chain").write_text("no folder")
    with client_of(settings_for(tmp_path / "chain")) as client:
        for path in PATHS:
            assert "chain" in problem(client.get(path), 503)["detail"]
        assert "chain" in problem(post(client), 503)["detail"]


@pytest.mark.parametrize("name", ["mempool", "blocks"])
def test_a_part_that_is_a_file_is_named(folder: Path, name: str) -> None:
    with_posts(settings_for(folder))
    (folder / name).rename(folder / "away")
    (folder / name).write_text("no folder")
    with client_of(settings_for(folder)) as client:
        for path in ("/tip", "/transactions/0", "/health/ready"):
            assert name in problem(client.get(path), 503)["detail"]
        assert name in problem(post(client), 503)["detail"]


CALLS = [
    ("listdir", "mempool"),
    ("open", "mempool"),
    ("open", "mempool.lock"),
    ("open", "acknowledged"),
    ("open", "heights"),
    ("open", "blocks-"),
    ("pread", "heights"),
    ("pread", "acknowledged"),
    ("pread", "blocks-"),
    ("stat", "mempool.sqlite"),
    ("fstat", "mempool.lock"),
    ("statvfs", "chain"),
]
ERRORS = (errno.EIO, errno.EACCES, errno.ENOSPC, errno.EMFILE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "part", "error"), [(*call, error) for call, error in zip(CALLS, cycle(ERRORS))]
)
def test_what_the_disk_refuses_is_503_and_passes(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, call: str, part: str, error: int
) -> None:
    with_posts(settings)
    with client_of(settings) as client:
        with monkeypatch.context() as patch:
            patch.setattr(os, call, refusing(part, getattr(os, call), error))
            answers = [client.get(path) for path in PATHS if path != "/coverage"]
            answers.append(post(client, 9))
        refused = [answer for answer in answers if answer.status_code not in {200, 202}]
        assert refused
        for answer in refused:
            assert int(answer.headers["Retry-After"]) >= 1
            assert problem(answer, 503)["detail"]
    with client_of(settings) as client:
        good(client.get("/transactions/2"))
        good(post(client, 10), 202)
