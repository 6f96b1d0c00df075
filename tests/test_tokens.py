"""Who may write: tokens, kept hashed, asked for when others can reach the service."""

import json
import stat
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from backend.api.batch import STRANGERS_BYTES
from backend.base import files
from backend.base.errors import Damage, FlightchainError, InvalidInput, NotAllowed, WriteFailed
from backend.base.settings import Settings
from backend.base.words import COMMAND
from backend.storage.tokens import Tokens, are_needed, require_some
from tests.api.worlds import GOOD, client_of, good, new_chain, problem
from tests.effort import tries
from tests.test_cli import call


@pytest.mark.parametrize(
    ("host", "needed"),
    [
        ("127.0.0.1", False),
        ("127.0.0.2", False),
        ("::1", False),
        ("localhost", False),
        ("0.0.0.0", True),
        ("::", True),
        ("192.168.1.4", True),
        ("raspberrypi.local", True),
    ],
)
def test_tokens_are_needed_beyond_loopback(host: str, needed: bool) -> None:
    assert are_needed(Settings(host=host)) is needed
    assert are_needed(Settings(frontend_host=host)) is needed  # it passes on what it is sent
    assert are_needed(Settings(host=host, require_token=1))


def test_a_token_is_known_until_it_is_removed(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    secret, other = tokens.add("lab"), tokens.add("home")
    assert secret != other
    assert Tokens(tmp_path).owner_of(f"Bearer {secret}") == "lab"
    assert tokens.owner_of(f"bearer  {other} ") == "home"
    Tokens(tmp_path).remove("lab")
    with pytest.raises(NotAllowed, match="is unknown or was revoked"):
        tokens.owner_of(f"Bearer {secret}")
    assert tokens.owner_of(f"Bearer {other}") == "home"


def test_tokens_that_are_gone_are_damage_and_new_ones_can_be_made(tmp_path: Path) -> None:
    secret = Tokens(tmp_path).add("lab")
    (tmp_path / "tokens.json").unlink()
    with pytest.raises(Damage, match="is missing, although tokens existed here"):
        Tokens(tmp_path).owner_of(f"Bearer {secret}")
    Tokens(tmp_path).add("lab")
    with pytest.raises(NotAllowed, match="is unknown or was revoked"):
        Tokens(tmp_path).owner_of(f"Bearer {secret}")


def test_a_change_that_did_nothing_does_not_tell_of_tokens_that_were_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidInput, match=f"has no token; `{COMMAND} token list`"):
        Tokens(tmp_path).remove("typo")
    with monkeypatch.context() as patched:
        patched.setattr(files, "write_new", partial(raising, WriteFailed("the disk is full")))
        with pytest.raises(WriteFailed):
            Tokens(tmp_path).add("lab")
    assert Tokens(tmp_path).all() == []
    Tokens(tmp_path).add("lab")
    (tmp_path / "tokens.json").unlink()
    with pytest.raises(InvalidInput, match="has no token"):
        Tokens(tmp_path).remove("lab")
    with pytest.raises(Damage, match="is missing, although tokens existed here"):
        Tokens(tmp_path).all()


def raising(error: Exception, *_arguments: object, **_options: object) -> None:
    raise error


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer  ", "Basic abc", "abc"])
def test_without_a_token_one_is_told_how_to_get_one(tmp_path: Path, header: str | None) -> None:
    with pytest.raises(NotAllowed, match="token add NAME"):
        Tokens(tmp_path).owner_of(header)


def test_only_a_hash_is_kept_and_only_the_owner_can_read_it(tmp_path: Path) -> None:
    secret = Tokens(tmp_path).add("lab")
    path = tmp_path / "tokens.json"
    assert secret not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", " ", "x" * 61, "a\nb"])
def test_a_name_must_be_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        Tokens(tmp_path).add(name)


def test_a_name_has_one_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    tokens.add("lab")
    with pytest.raises(InvalidInput, match="lab"):
        tokens.add("lab")
    with pytest.raises(InvalidInput, match="home"):
        tokens.remove("home")


def test_every_flipped_bit_in_the_file_is_named(tmp_path: Path) -> None:
    secret = Tokens(tmp_path).add("Zoë")
    kept = Tokens(tmp_path).all()
    path = tmp_path / "tokens.json"
    data = path.read_bytes()
    same = 0
    for bit in range(0, 8 * len(data), tries(5, exploring=1)):
        byte = data[bit // 8] ^ 1 << bit % 8
        path.write_bytes(data[: bit // 8] + bytes([byte]) + data[bit // 8 + 1 :])
        try:
            assert Tokens(tmp_path).all() == kept, (bit // 8, bit % 8)
            same += 1
        except Damage as error:
            assert f"{path} is not a list of tokens" in str(error)
    assert same <= 2  # \u00eb may be written \u00EB
    path.write_bytes(data)
    assert Tokens(tmp_path).owner_of(f"Bearer {secret}") == "Zoë"


def test_a_public_service_without_a_token_does_not_start(tmp_path: Path) -> None:
    settings = Settings(dir=str(tmp_path), host="0.0.0.0")
    with pytest.raises(FlightchainError, match=r"0\.0\.0\.0.*token add NAME"):
        require_some(settings)
    Tokens(tmp_path).add("lab")
    require_some(settings)
    require_some(Settings(dir=str(tmp_path / "other")))
    with pytest.raises(FlightchainError, match=r"FLIGHTCHAIN_FRONTEND_HOST 0\.0\.0\.0"):
        require_some(Settings(dir=str(tmp_path / "other"), frontend_host="0.0.0.0"))


def test_writing_needs_a_token_and_neither_reading_nor_a_dry_run_does(tmp_path: Path) -> None:
    settings = new_chain(tmp_path, require_token=1)
    secret = Tokens(tmp_path).add("lab")
    with client_of(settings) as client:
        for path in ("/transactions", "/transactions/batch", "/new_transaction"):
            response = client.post(path, json=GOOD)
            problem(response, 401)
            assert response.headers["WWW-Authenticate"] == "Bearer"
            wrong = {"Authorization": f"Bearer {secret}x"}
            problem(client.post(path, json=GOOD, headers=wrong), 401)
        right = {"Authorization": f"Bearer {secret}"}
        good(client.post("/transactions", json=GOOD, headers=right), 202)
        tip = good(client.get("/tip"))
        for path in ("/transactions", "/transactions/batch"):
            kind = "json" if path == "/transactions" else "x-ndjson"
            send = partial(client.post, data=json.dumps(GOOD), content_type=f"application/{kind}")
            assert good(send(f"{path}?dry_run=true"))["accepted"] == 1
            problem(send(f"{path}?dry_run=true", headers=wrong), 401)
            problem(send(f"{path}?dry_run=false"), 401)
        assert good(client.get("/tip")) == tip
        tried = "/transactions/batch?dry_run=true"
        long = {"data": b"\n" * (STRANGERS_BYTES + 1), "content_type": "application/x-ndjson"}
        assert "5242880 are accepted" in problem(client.post(tried, **long), 413)["detail"]
        good(client.post(tried, headers=right, **long))
    with client_of(replace(settings, require_token=0)) as client:
        good(client.post("/transactions", json=GOOD), 202)


def test_the_command_makes_lists_and_removes(tmp_path: Path) -> None:
    secret = call(tmp_path, "token", "add", "lab").stdout.strip()
    assert Tokens(tmp_path).owner_of(f"Bearer {secret}") == "lab"
    assert call(tmp_path, "token", "list").stdout == "lab\n"
    assert call(tmp_path, "token", "remove", "lab").returncode == 0
    assert call(tmp_path, "token", "list").stdout == ""


def test_who_removes_the_last_token_learns_that_the_service_needs_one_to_start(
    tmp_path: Path,
) -> None:
    for needed, is_said in ((0, [False, False]), (1, [False, True])):
        for name in ("lab", "pi"):
            assert call(tmp_path, "token", "add", name).returncode == 0
        done = [
            call(tmp_path, "token", "remove", name, FLIGHTCHAIN_REQUIRE_TOKEN=needed)
            for name in ("lab", "pi")
        ]
        assert ["does not start again" in result.stderr for result in done] == is_said
