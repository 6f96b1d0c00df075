"""Attempts to cheat, as a person reads of them."""

from flask.testing import FlaskClient

from backend.trust.cheating import CHEATS
from frontend.context import texts


def test_each_attempt_has_a_title_and_says_who_notices_it(pages: FlaskClient) -> None:
    with pages.application.app_context():
        titles = texts("cheats")
    assert list(titles) == [cheat.name for cheat in CHEATS]
    page = pages.get("/cheat")
    assert page.status_code == 200
    text = page.text
    assert text.count("<h2>") == len(CHEATS) + 1
    assert text.count("notices it:") == len(CHEATS)
    assert text.count("notices nothing") == len(CHEATS)
    assert "breaks rule" in text
    twin = pages.get("/cheat.json").get_json()
    assert [one["title"] for one in twin["cheats"]] == list(titles.values())
