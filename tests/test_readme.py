"""The README says what is so: settings, addresses, commands."""

import re
from pathlib import Path

from backend.api import create_app
from backend.cli import main
from backend.settings import Settings, table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_settings_is_that_of_the_code() -> None:
    rows = [
        f"| `{name}` | `{default}` | {unit} | {reason} |" for name, default, unit, reason in table()
    ]
    found = [line for line in README.splitlines() if line.startswith("| `FLIGHTCHAIN_")]
    assert found == rows


def test_every_route_is_named(tmp_path: Path) -> None:
    app = create_app(Settings(dir=str(tmp_path)))
    for rule in app.url_map.iter_rules():
        shown = rule.rule.replace("<height>", "HEIGHT").replace("<id:transaction_id>", "ID")
        shown = shown.replace("<path:tile>", "TILE").replace("<receipt>", "RECEIPT")
        assert shown in README, rule.rule


def test_every_file_that_is_linked_or_shown_is_there() -> None:
    linked = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README)
    assert len(linked) >= 2
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_every_command_is_named() -> None:
    for name in main.commands:
        assert f"`{name}" in README or f"backend {name}" in README, name
