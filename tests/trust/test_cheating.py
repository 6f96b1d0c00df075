"""Every cheat is noticed: by `verify`, or by a witness alone if all is mined and signed again."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from backend.base import files
from backend.cli.commands import main
from backend.trust import cheating
from backend.trust.cheating import CHEATS, HEIGHT, Outcome, try_all
from tests.api.worlds import client_of, good, settings_for

pytestmark = pytest.mark.slow

ABOVE = HEIGHT + 1
VERIFY = {
    "change-a-delay": rf"block {HEIGHT} breaks rule R\d+: body_hash is [0-9a-f]{{64}}, not ",
    "mine-it-again": rf"block {ABOVE} breaks rule R\d+: previous_hash is",
    "mine-all-again": "checkpoint was signed for other blocks",
    "delete-a-block": rf"block {HEIGHT} breaks rule R\d+: previous_hash is",
    "swap-two-blocks": rf"block {HEIGHT} breaks rule R\d+: previous_hash is",
    "roll-back": r"has 4 blocks, but chain/checkpoint, which this log has signed, has 6",
    "edit-the-index": "the index is wrong: table carrier_total",
}
WITNESS = {
    "sign-it-all": "had 6 blocks, and has signed other 6 blocks: both are in witness/",
    "sign-with-a-new-key": "had 6 blocks, and has signed other 6 blocks: both are in witness/",
    "roll-back-and-sign": "had 6 blocks, and shows 4 now: it was restored",
    "sign-a-fork": "had 6 blocks, and has signed other 6 blocks: both are in witness/",
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """With as little room as containers have for temporary files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "free_bytes", lambda _: 16 * 10**6)
        return {result.name: result for result in try_all()}


def test_each_cheat_is_noticed_by_the_check_that_can(outcomes: dict[str, Outcome]) -> None:
    assert outcomes.keys() == {*VERIFY, *WITNESS} == {cheat.name for cheat in CHEATS}
    for name, result in outcomes.items():
        assert bool(result.verify) == (name in VERIFY), result
        assert bool(result.witness) == (name in WITNESS), result
        assert re.search({**VERIFY, **WITNESS}[name], result.verify or result.witness or ""), result


def test_the_command_and_the_service_tell_the_same(
    outcomes: dict[str, Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were tried once; docs/tutorial.md and the examples of the API try them again."""
    monkeypatch.setattr(cheating, "try_all", lambda: list(outcomes.values()))
    done = CliRunner().invoke(main, ["cheat"])
    assert done.exit_code == 0
    assert done.stdout.count("notices nothing") == len(CHEATS)
    with client_of(settings_for(tmp_path)) as client:
        answer = good(client.get("/cheats"))["cheats"]
    assert [row["name"] for row in answer] == list(outcomes)
    assert [bool(row["verify"]) for row in answer] == [bool(o.verify) for o in outcomes.values()]
    assert list(tmp_path.iterdir()) == []


def test_those_who_ask_first_at_once_wait_for_the_same_attempts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def slowly() -> list[Outcome]:
        tried.append(1)
        time.sleep(0.1)
        return []

    monkeypatch.setattr(cheating, "try_all", slowly)
    with client_of(settings_for(tmp_path)) as client, ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda _: good(client.get("/cheats")), range(4)))
    assert answers == 4 * [{"cheats": []}]
    assert len(tried) == 1
