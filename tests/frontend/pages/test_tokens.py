"""A ledger that wants a token: its forms ask for one, and repeat none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.storage.tokens import Tokens
from tests.api.worlds import generated
from tests.flights import csv_of
from tests.frontend.writing import GOOD_FORM, Visitor, errors_beside, hidden, visiting

FIELD = 'name="TOKEN" type="password"'
NONE, WRONG = "This needs a token", "This token is unknown or was revoked"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("token")


@pytest.fixture(scope="module")
def secret(folder: Path) -> dict[str, str]:
    return {"TOKEN": Tokens(folder).add("me")}


@pytest.fixture(scope="module")
def visitor(folder: Path, secret: dict[str, str]) -> Iterator[Visitor]:
    assert secret  # a ledger whose folder has a token when it is served
    with visiting(folder, FLIGHTCHAIN_REQUIRE_TOKEN=1) as visitor:
        yield visitor


def test_a_flight_needs_a_token(visitor: Visitor, secret: dict[str, str]) -> None:
    before = visitor.service.sealed()
    assert FIELD in visitor.client.post("/add", data={**GOOD_FORM, **visitor.hidden()}).text
    for wrong, message in (("", NONE), (f"{secret['TOKEN']}x", WRONG), ("ä\n\0", WRONG)):
        page = visitor.send({"TOKEN": wrong})
        assert page.status_code == 401
        assert message in errors_beside(page)["TOKEN"]
        assert hidden(page.text)["DEP_TIME"] == GOOD_FORM["DEP_TIME"]
    form = {**GOOD_FORM, **visitor.hidden(), "step": "add"}
    page = visitor.client.post("/add", data={**form, **secret, "DEP_TIME": ""})
    assert errors_beside(page).keys() == {"DEP_TIME"}
    assert secret["TOKEN"] not in page.text
    assert visitor.send({"TOKEN": f" {secret['TOKEN']}\n"}).status_code == 303  # as it was pasted
    assert visitor.service.sealed() == before + 1


def test_a_file_needs_a_token(visitor: Visitor, secret: dict[str, str]) -> None:
    before, body = visitor.service.sealed(), csv_of(generated(90)[60:]).encode()
    assert FIELD in visitor.client.get("/upload").text
    page = visitor.upload(body)
    assert page.status_code == 401
    assert NONE in errors_beside(page)["TOKEN"]
    checked = visitor.upload(body, **secret)
    assert checked.text.count(FIELD) == 1
    refused = visitor.go_on(checked)
    assert (refused.status_code, NONE in refused.text) == (401, True)
    added = visitor.go_on(refused, **secret)
    assert "30 flights were added" in added.text
    assert secret["TOKEN"] not in added.text
    assert visitor.service.sealed() == before + 30
    for token, status in (("x", 401), (secret["TOKEN"], 200)):
        assert visitor.part(NAME="a.csv", SIZE=5, token=token).status_code == status
