"""What the ledger is, where its API is, and what attempts to cheat come to."""

import pytest
from flask.testing import FlaskClient

from backend.chain.fields import FIELD_NAMES
from backend.sources.kinds import KINDS
from backend.trust.cheating import CHEATS
from frontend.app import create_app
from frontend.field_labels import TEXTS
from frontend.pages.about import PORT_BEHIND_NGINX, api_for
from frontend.settings import Settings, from_environment
from tests.cases import each_of
from tests.test_deploy import NGINX


def test_it_defines_what_is_counted_and_every_field(lonely_pages: FlaskClient) -> None:
    """Also while the backend is away."""
    page = lonely_pages.get("/about")
    assert page.status_code == 200
    text = page.text
    for name in FIELD_NAMES:
        assert f"<code>{name}</code>" in text
    twin = lonely_pages.get("/about.json").get_json()
    names = {field["name"] for field in twin["fields"]}
    assert names == {*FIELD_NAMES, "TRANSACTION_ID", "timestamp"}
    assert "less than 15 minutes" in twin["definitions"]["On time"]


def test_it_lists_the_kinds_of_files_that_the_reader_knows(lonely_pages: FlaskClient) -> None:
    kinds = lonely_pages.get("/about.json").get_json()["kinds"]
    assert kinds == {kind.name: kind.source.replace("`", "") for kind in KINDS}
    assert 'href="/upload#kinds"' in lonely_pages.get("/about").text


LOOPBACK, EVERYWHERE, ONE = ({"FLIGHTCHAIN_HOST": host} for host in ("127.0.0.1", "::", "10.1.1.4"))
ELSEWHERE = {"FLIGHTCHAIN_BACKEND_URL": "http://ledger.example:8100/"}
CONTAINER = {"FLIGHTCHAIN_HOST": "0.0.0.0", "FLIGHTCHAIN_BACKEND_URL": "http://backend:8000"}


@pytest.mark.parametrize(
    ("environment", "visited", "expected"),
    [
        (LOOPBACK, "127.0.0.1", "http://127.0.0.1:8000"),
        (LOOPBACK, "localhost", "http://localhost:8000"),
        (LOOPBACK, "::1", "http://[::1]:8000"),
        (LOOPBACK, "pi.local", None),
        (EVERYWHERE, "pi.local", "http://pi.local:8000"),
        (EVERYWHERE, "127.0.0.1", "http://127.0.0.1:8000"),
        (ONE, "pi.local", "http://10.1.1.4:8000"),
        (ELSEWHERE, "pi.local", "http://ledger.example:8100"),
        (CONTAINER, "pi.local", "http://pi.local:8000"),
    ],
)
def test_the_address_of_the_api_is_one_that_the_visitor_can_reach(
    environment: dict[str, str], visited: str, expected: str | None
) -> None:
    settings = from_environment(environment)
    assert api_for(settings, visited) == expected


@each_of("scheme", ["http", "https"])
def test_behind_nginx_the_api_is_at_the_port_that_nginx_has_for_it(
    lonely_pages: FlaskClient, scheme: str
) -> None:
    assert f"listen {PORT_BEHIND_NGINX} " in NGINX
    base, proxied = f"{scheme}://localhost", {"X-Forwarded-For": "10.1.1.9"}
    twin = lonely_pages.get("/about.json", base_url=base, headers=proxied)
    assert twin.get_json()["api"] == f"{base}:{PORT_BEHIND_NGINX}"


def test_who_cannot_reach_the_api_is_told_how_to_open_it() -> None:
    settings = Settings(backend_url="http://127.0.0.1:1", hosts="pi.local")
    pages = create_app(settings).test_client()
    local = pages.get("/about", headers={"Host": "localhost:5000"}).text
    assert 'href="http://localhost:1/docs"' in local
    remote = pages.get("/about", headers={"Host": "pi.local:5000"}).text
    assert "FLIGHTCHAIN_HOST=0.0.0.0" in remote
    assert "/docs" in remote
    proxied = {"Host": "pi.local", "X-Forwarded-For": "10.1.1.9"}
    assert 'href="http://pi.local:8001/docs"' in pages.get("/about", headers=proxied).get_data(
        as_text=True
    )


def test_each_attempt_has_a_title_and_says_who_notices_it(pages: FlaskClient) -> None:
    titles = TEXTS["cheats"]
    assert list(titles) == [cheat.name for cheat in CHEATS]
    page = pages.get("/cheat")
    assert page.status_code == 200
    text = page.text
    assert text.count("<h2>") == len(CHEATS) + 1
    assert text.count("notices it:") == len(CHEATS)
    assert text.count("notices nothing") == len(CHEATS)
    assert "breaks rule" in text
    assert "`" not in text
    twin = pages.get("/cheat.json").get_json()
    assert [cheat["title"] for cheat in twin["cheats"]] == list(titles.values())
