"""What the customers of studies 003 and 004 do."""

import json
from collections import Counter
from typing import Any

import pytest

from loadtests.generation.interactions import ADDED, Interaction
from loadtests.lab.sentences import Sentences
from loadtests.questions import KINDS, Question
from loadtests.scenarios import (
    FREQUENT,
    ITINERARY,
    RARE,
    READING,
    SHARES,
    STEPS,
    itineraries,
    mixed_interactions,
)

QUESTIONS = {kind: [Question(kind, {"n": str(n)}) for n in range(5)] for kind in KINDS}


def flights(count: int) -> list[dict[str, Any]]:
    return [
        {"TRANSACTION_ID": n, "timestamp": n, "OP_CARRIER_FL_NUM": n, "FL_DATE": "2013-01-01"}
        for n in range(count)
    ]


def mixed(customers: int, count: int = 50, pool: int = 5000) -> list[list[Interaction]]:
    return mixed_interactions(QUESTIONS, flights(pool), customers=customers, count=count, seed=1)


def added(sequences: list[list[Interaction]]) -> list[int]:
    steps = (step for own in sequences for interaction in own for step in interaction.steps)
    bodies = [step.body for step in steps if step.body]
    return [json.loads(line)["OP_CARRIER_FL_NUM"] for body in bodies for line in body.splitlines()]


def test_kinds_come_as_often_as_the_study_had_them() -> None:
    kinds = Counter(interaction.kind for own in mixed(10, count=1000) for interaction in own)
    total = sum(SHARES.values())
    for kind, share in SHARES.items():
        assert kinds[kind] / 10_000 == pytest.approx(share / total, abs=0.02)


def test_every_kind_has_the_steps_that_the_table_says() -> None:
    interactions = [interaction for own in mixed(2) for interaction in own]
    interactions += itineraries(QUESTIONS, flights(9), customers=1, count=1)[0]
    assert {interaction.kind: len(interaction.steps) for interaction in interactions} == STEPS
    assert STEPS.keys() == {READING, FREQUENT, RARE, ITINERARY}


def test_no_flight_is_added_twice_before_the_pool_is_used_up() -> None:
    flights_added = added(mixed(7))
    assert len(flights_added) == len(set(flights_added)) > 200


def test_a_pool_that_is_used_up_begins_again() -> None:
    assert set(added(mixed(2, pool=4))) == {0, 1, 2, 3}


def test_what_is_given_by_the_ledger_is_not_sent() -> None:
    bodies = [step.body for interaction in mixed(1)[0] for step in interaction.steps if step.body]
    assert bodies
    assert not any("TRANSACTION_ID" in body or "timestamp" in body for body in bodies)


def test_the_same_seed_makes_the_same_interactions() -> None:
    assert mixed(3) == mixed(3)


def test_strange_shares_and_an_empty_pool_are_refused() -> None:
    with pytest.raises(ValueError, match="no kind 'rarely'"):
        mixed_interactions(
            QUESTIONS, flights(1), customers=1, count=1, seed=1, shares={"rarely": 1}
        )
    with pytest.raises(ValueError, match="no flights"):
        mixed(1, pool=0)
    with pytest.raises(ValueError, match="no legs"):
        itineraries(QUESTIONS, [], customers=1, count=1)


def test_an_itinerary_looks_at_each_leg_before_it_adds_it() -> None:
    (itinerary,) = itineraries(QUESTIONS, flights(9), customers=1, count=1)[0]
    kinds = [step.kind for step in itinerary.steps]
    assert kinds == ["begin", "query", *["query", "reserve"] * 3, "commit"]
    for look, add in zip(itinerary.steps[2:8:2], itinerary.steps[3:8:2], strict=True):
        assert f"OP_CARRIER_FL_NUM={json.loads(add.body)['OP_CARRIER_FL_NUM']}&" in look.path
    assert itinerary.steps[-1].path == ADDED


def test_clients_do_not_meet_at_a_leg() -> None:
    flights_added = added(itineraries(QUESTIONS, flights(240), customers=8, count=10))
    assert sorted(flights_added) == list(range(240))


@pytest.mark.parametrize(
    ("experiment", "part", "count", "columns"),
    [
        ("mixed_clients", "bookstore", 5, 3),
        ("mixed_clients", "workload", 10, 5),
        ("mixed_clients", "books", 4, 5),
        ("itinerary", "agency", 5, 3),
    ],
)
def test_every_request_and_parameter_of_both_studies_has_its_counterpart(
    experiment: str, part: str, count: int, columns: int
) -> None:
    rows = Sentences(experiment).rows(
        part, warm_up="1", count="2", steps=STEPS[READING], batch=5, shares=SHARES
    )
    assert len(rows) == count
    assert all(len(row) == columns and all(row) for row in rows)
