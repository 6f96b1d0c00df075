"""Answers that are kept: bounded, of one state, never of options or an index that has gone."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from backend.index.queries import IndexReader
from backend.ledger.answers import Answers
from backend.ledger.ledger import Ledger
from backend.questions.values import Options
from backend.storage.caches import RECENT_S
from tests.api.worlds import GOOD, World, client_of, good, new_chain, problem, seal, world_in
from tests.index.worlds import execute
from tests.submitting import add, sealing

DAYS = {"INITIAL_DATE": "2000-01-01", "FINAL_DATE": "2030-01-01"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return world_in(tmp_path / "chain")


@pytest.fixture
def client(world: World) -> Iterator[FlaskClient]:
    with client_of(world.settings) as client:
        yield client


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by the options of each question that was really asked."""
    asked: list[str] = []
    really = Answers.answer

    def answer(answers: Answers, question: Any, options: Options, costs: Any = None) -> Any:
        asked.append(str(options))
        return really(answers, question, options, costs)

    monkeypatch.setattr(Answers, "answer", answer)
    return asked


def question_of(world: World) -> str:
    carrier = world.transactions[0]["OP_CARRIER_AIRLINE_ID"]
    return "/average_delays?" + urlencode({"OP_CARRIER_AIRLINE_ID": carrier, **DAYS})


def test_a_default_that_is_said_leaves_a_question_as_it_is(
    world: World, client: FlaskClient, asked: list[str]
) -> None:
    question = question_of(world)
    first, (path, _, query) = good(client.get(question)), question.partition("?")
    for url in (
        f"{question}&engine=index",
        f"{path}?engine=index&{query}",
        f"{question}&%65ngine=index",
    ):
        assert [good(client.get(url)) for _ in range(3)] == [first] * 3
    assert len(asked) == 4
    etag = client.get(url).headers["ETag"]
    assert client.get(url, headers={"If-None-Match": etag}).status_code == 304
    assert problem(client.get(f"{question}&engine=index&engine=index"), 400)["field"] == "engine"
    assert len(asked) == 4


@pytest.mark.parametrize("option", ["engine=scan", "%65ngine=scan", "as_of=3", "%61s_of=3"])
def test_options_are_asked_every_time_and_leave_what_is_kept(
    world: World, client: FlaskClient, asked: list[str], option: str
) -> None:
    question = question_of(world)
    plain = good(client.get(question))
    for _ in range(3):
        other = good(client.get(f"{question}&{option}"))
        assert other["as_of"] == world.as_of(3 if "of" in option else None)
        assert good(client.get(question)) == plain
    assert len(asked) == 4


def test_an_answer_of_a_newer_block_is_not_kept_for_an_older_one(
    world: World, client: FlaskClient, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backend.index.queries.RECENT_S", 60.0)
    question = question_of(world)
    older = good(client.get(question))["as_of"]
    seal(world.settings, [[]])
    assert good(client.get(question))["as_of"] == older
    for _ in range(2):
        assert good(client.get(f"{question}&distribution=true"))["as_of"] != older
    assert len(asked) == 3


def test_whoever_was_told_of_a_block_sees_it_in_every_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two readers, as two processes have them; what one committed the other shows at once."""
    for module in (
        "backend.index.queries",
        "backend.ledger.submission",
    ):  # longer, so that it would matter
        monkeypatch.setattr(f"{module}.RECENT_S", 0.1)
    settings = new_chain(tmp_path / "chain", commit_wait_s=10)
    flight = tuple(GOOD.values())
    with closing(Ledger(settings, print)) as ours, closing(IndexReader(settings.folder)) as other:
        has_ended = threading.Event()

        def keep_asking() -> None:
            while not has_ended.is_set():
                other.recent_state()

        def keep_sealing() -> None:
            with sealing(settings) as sealer:
                while not has_ended.is_set():
                    sealer.seal_pending(empty=False)
                    has_ended.wait(0.003)

        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(keep_asking), pool.submit(keep_sealing)]
            try:
                for _ in range(8):
                    receipt = add(ours.submitter, flight, wait_s=10)
                    tip_hash = other.recent_state().tip_hash
                    assert receipt["state"] == "mined"
                    assert tip_hash == ours.answers.recent_state().tip_hash
            finally:
                has_ended.set()
            for future in running:
                future.result()


def test_an_index_made_anew_for_the_same_tip_answers_anew(
    world: World, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = question_of(world)
    right = good(client.get(question))
    execute(world.settings.folder, "UPDATE carrier_total SET flights = flights + 1000")
    with client_of(world.settings) as fresh:
        wrong = good(fresh.get(question))
        assert wrong["flights"] > right["flights"]
        with sealing(world.settings) as sealer:
            sealer.index.rebuild()
        monkeypatch.setattr("backend.index.connections._LOOK_AGAIN_S", 0.0)
        time.sleep(RECENT_S)
        assert good(fresh.get(question)) == right
