"""Posting flights that the ledger has already, or that contradict what it says about them."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from backend.base.settings import Settings
from backend.chain.flight import Flight, as_mapping
from backend.ledger.known_flights import LegRecords
from backend.ledger.ledger import Ledger
from tests.api.test_batches import as_csv, as_ndjson, pending, post
from tests.api.worlds import Json, client_of, generated, good, new_chain, seal
from tests.effort import examples
from tests.flights import changed, on_disk
from tests.same_flights import CANCELLED, flown, kept_of, same_or_similar
from tests.submitting import sealing

SKIP = "?duplicates=skip"
FLIGHTS = generated(60)


@pytest.fixture
def client(settings: Settings) -> Iterator[FlaskClient]:
    with client_of(settings) as client:
        yield client


def answered(client: FlaskClient, flights: Sequence[Flight], query: str = SKIP, **key: str) -> Json:
    response = post(client, as_ndjson(flights), query, **key)
    return good(response, response.status_code)


def counts(answer: Json) -> list[int]:
    return [answer[name] for name in ("accepted", "already_there", "conflicts")]


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}])
def test_a_script_that_is_run_again_adds_nothing(
    client: FlaskClient, settings: Settings, key: dict[str, str]
) -> None:
    assert counts(answered(client, FLIGHTS[:40], **key)) == [40, 0, 0]
    other = {name: f"{value} of the second run" for name, value in key.items()}
    again = answered(client, FLIGHTS, **other)
    assert counts(again) == [20, 40, 0]
    assert (again["first_transaction"], again["last_transaction"]) == (40, 59)
    seal(settings, [[]])
    third = {name: f"{value} of the third run" for name, value in key.items()}
    response = post(client, as_csv(FLIGHTS), SKIP, "text/csv", **third)
    assert counts(good(response)) == [0, 60, 0]
    assert "Location" not in response.headers
    assert pending(client) == 0
    assert on_disk(settings.folder).flights == FLIGHTS


def test_a_contradiction_is_shown_with_both_versions_and_not_added(
    client: FlaskClient, settings: Settings
) -> None:
    answered(client, [flown(), flown(OP_CARRIER_FL_NUM=1)])
    seal(settings, [[]])
    answered(client, [flown(OP_CARRIER_FL_NUM=2)])
    late = flown(DEP_TIME="2100", DEP_DELAY=65, ARR_DELAY=40)
    never = flown(**CANCELLED, OP_CARRIER_FL_NUM=2)
    answer = answered(client, [late, flown(OP_CARRIER_FL_NUM=1), never, flown(ORIGIN="DCA")])
    assert counts(answer) == [1, 1, 2]
    assert answer["conflicting"] == [
        {
            "TRANSACTION_ID": 0,
            "BLOCK_HEIGHT": 1,
            "fields": ["DEP_TIME", "DEP_DELAY", "ARR_DELAY"],
            "flight": as_mapping(late),
            "stored": as_mapping(flown()),
        },
        {
            "TRANSACTION_ID": 2,
            "BLOCK_HEIGHT": None,
            "fields": ["ARR_DELAY", "CANCELLED"],
            "flight": as_mapping(never),
            "stored": as_mapping(flown(OP_CARRIER_FL_NUM=2)),
        },
    ]
    assert pending(client) == 2


def test_a_batch_is_compared_with_itself(client: FlaskClient) -> None:
    later, cancelled = flown(DEP_TIME="2203"), flown(**CANCELLED)
    batch = [flown(), flown(AIR_TIME=None), later, flown(ARR_DELAY=9), cancelled]
    tried = answered(client, batch, f"{SKIP}&dry_run=true")
    answer = answered(client, batch)
    assert counts(tried) == counts(answer) == [3, 1, 1]
    assert tried["conflicting"] == answer["conflicting"]
    assert answer["conflicting"][0]["TRANSACTION_ID"] is None
    assert answer["conflicting"][0]["stored"] == as_mapping(flown())


def test_a_key_gets_the_same_answer_though_everything_is_there_then(
    client: FlaskClient, settings: Settings
) -> None:
    answered(client, FLIGHTS[:10])
    batch = [*FLIGHTS[5:20], changed(FLIGHTS[0], ORIGIN_CITY_NAME="Elsewhere"), FLIGHTS[19]]
    batch.append(changed(FLIGHTS[18], DEST_CITY_NAME="Elsewhere"))
    key = {"Idempotency-Key": "k"}
    first = answered(client, batch, **key)
    assert counts(first) == [10, 6, 2]
    again = answered(client, batch, **key)
    assert counts(again) == [10, 6, 2]
    ids = ("first_transaction", "last_transaction", "timestamp")
    assert [again[name] for name in ids] == [first[name] for name in ids]
    for _ in range(3):
        seal(settings, [[], [FLIGHTS[50]]])
    seal(settings, [batch[15:]])  # the contradictions, too
    mined = answered(client, batch, **key)
    assert (counts(mined), mined["state"]) == ([10, 6, 2], "mined")
    assert [mined[name] for name in ids] == [first[name] for name in ids]


def test_batches_with_keys_are_searched_and_added_unless_asked_otherwise(
    client: FlaskClient, settings: Settings
) -> None:
    answered(client, FLIGHTS[:3], "", **{"Idempotency-Key": "a"})
    for _ in range(2):
        answer = answered(client, FLIGHTS[1:4], "", **{"Idempotency-Key": "b"})
        assert (answer["accepted"], answer["duplicates"]) == (3, 2)
        assert answer["duplicate_of"] == [
            {"TRANSACTION_ID": 3, "duplicate_of": 1},
            {"TRANSACTION_ID": 4, "duplicate_of": 2},
        ]
        seal(settings, [[]])
    other = changed(FLIGHTS[0], ORIGIN_CITY_NAME="Elsewhere")
    for _ in range(2):
        answer = answered(client, [other], "", **{"Idempotency-Key": "c"})
        assert counts(answer) == [1, 0, 1]
        assert answer["conflicting"][0]["TRANSACTION_ID"] == 0


def test_a_single_flight_is_accepted_and_the_contradiction_named(
    client: FlaskClient, settings: Settings
) -> None:
    def receipt(flight: Flight, query: str = "", **headers: str) -> list[object]:
        response = client.post(f"/transactions{query}", json=as_mapping(flight), headers=headers)
        answer = good(response, response.status_code)
        return [answer["duplicate_of"], answer["conflicts_with"]]

    late = flown(ARR_DELAY=99)
    assert receipt(flown()) == [None, None]
    assert receipt(late, "?dry_run=true") == [None, 0]
    for _ in range(2):
        assert receipt(late, **{"Idempotency-Key": "k"}) == [None, 0]
        assert receipt(flown(AIR_TIME=None), "?dry_run=true") == [0, None]
        seal(settings, [[]])
    assert receipt(late) == [1, None]
    assert receipt(late, **{"Idempotency-Key": "k"}) == [None, 0]  # a newer record is none


def test_a_dry_run_counts_what_would_be_left_out(client: FlaskClient) -> None:
    answered(client, FLIGHTS[:3])
    batch = [*FLIGHTS[2:5], changed(FLIGHTS[0], CANCELLED=1 - int(FLIGHTS[0][17] or 0))]
    batch[-1] = changed(FLIGHTS[0], ORIGIN_CITY_NAME="Elsewhere")
    tried = answered(client, batch, f"{SKIP}&dry_run=true")
    assert (counts(tried), tried["duplicate_of"]) == ([2, 1, 1], [2])
    tried = answered(client, batch, "?dry_run=true")
    assert (counts(tried), tried["duplicate_of"]) == ([4, 0, 1], [2])
    assert pending(client) == 3


def test_without_an_index_nothing_is_taken_for_new(
    client: FlaskClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(client, FLIGHTS[:3])
    seal(settings, [[]])
    monkeypatch.setattr("backend.ledger.known_flights.INDEX_PATIENCE_S", 0.05)
    (settings.folder / "index").rename(settings.folder / "gone")
    with client_of(settings) as other:
        for query in (SKIP, f"{SKIP}&dry_run=true"):
            assert post(other, as_ndjson(FLIGHTS[:3]), query).status_code == 503
        assert answered(other, FLIGHTS[:3], "")["accepted"] == 3


# --- a plain loop as the judge -------------------------------------------------------------------


@hypothesis_settings(max_examples=examples(12), deadline=None)
@given(st.lists(st.lists(same_or_similar, min_size=1, max_size=5), max_size=6), st.data())
def test_the_ledger_holds_what_a_plain_loop_keeps(
    batches: list[list[Flight]], data: st.DataObject
) -> None:
    kept: list[Flight] = []
    with TemporaryDirectory() as folder, closing(_ledger(Path(folder))) as ledger:
        for batch in batches:
            new, duplicates, conflicts = kept_of(batch, kept)
            tried = ledger.submitter.try_batch(batch, skips=True)
            answer = ledger.submitter.add_batch(batch, skips=True)
            assert counts(tried) == counts(answer) == [len(new), duplicates, conflicts]
            kept += new
            if data.draw(st.booleans()):
                seal(ledger.settings, [[]])
        seal(ledger.settings, [[]])
        assert on_disk(Path(folder)).flights == kept


def _ledger(folder: Path) -> Ledger:
    return Ledger(new_chain(folder), print)


# --- several at once -----------------------------------------------------------------------------


def test_the_same_batches_of_several_clients_are_accepted_once_while_blocks_are_sealed(
    settings: Settings,
) -> None:
    """Three clients send the same 1,200 flights, and a miner seals all the time."""
    flights = generated(1200)
    accepted: list[int] = []
    done = threading.Event()

    def send() -> None:
        with closing(Ledger(settings, print)) as ledger:
            for start in range(0, len(flights), 30):
                part = flights[start : start + 30]
                accepted.append(ledger.submitter.add_batch(part, skips=True)["accepted"])

    def mine() -> None:
        with sealing(settings) as sealer:
            while not done.is_set():
                sealer.seal_pending()
            sealer.seal_pending()

    clients = [threading.Thread(target=send) for _ in range(3)]
    miner = threading.Thread(target=mine)
    for thread in (miner, *clients):
        thread.start()
    for thread in clients:
        thread.join()
    done.set()
    miner.join()
    assert sum(accepted) == len(flights)
    assert sorted(map(str, on_disk(settings.folder).flights)) == sorted(map(str, flights))


def test_blocks_that_were_sealed_after_the_comparison_are_compared_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Ledger(settings, print)) as ledger:
        known = ledger.submitter._records_in_blocks
        look, late = known.up_to_tip, iter([FLIGHTS[:2], FLIGHTS[2:3]])

        def overtaken(flights: Sequence[Flight], before: LegRecords | None) -> LegRecords:
            records = look(flights, before)
            if (part := next(late, None)) is not None:
                seal(settings, [part])
                seal(settings, [[FLIGHTS[50 + len(part)]]])  # the mempool keeps no record
            return records

        monkeypatch.setattr(known, "up_to_tip", overtaken)
        assert counts(ledger.submitter.add_batch(FLIGHTS[:5], skips=True)) == [2, 3, 0]
