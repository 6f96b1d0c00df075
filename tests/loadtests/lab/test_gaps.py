"""The waterfall of a gap, and what it tells."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from loadtests.lab.gaps import WORDS, entries_of, waterfall
from loadtests.models.estimates import Interval
from loadtests.models.gap_ledger import Cause, Ledger

AMOUNTS_S = {Cause.DRIFT: 0.002, Cause.DISPATCH: 0.0004, Cause.SAMPLING: -0.03}


def ledger(amounts_s: Mapping[Cause, float] = AMOUNTS_S, half_s: float = 0.001) -> Ledger:
    gap = Interval(sum(amounts_s.values()), half_s, 5)
    intervals = {cause: Interval(amount_s, half_s, 5) for cause, amount_s in amounts_s.items()}
    return Ledger(5, 5, amounts_s, gap, intervals)


def without_intervals(whole: Ledger) -> Ledger:
    return replace(whole, gap=None, intervals={})


def test_every_cause_is_the_subject_of_a_sentence() -> None:
    assert WORDS.keys() == set(Cause)
    for words in WORDS.values():
        assert "," not in words or words.endswith(",")  # what is inserted has an end


def test_a_waterfall_leads_from_the_prediction_to_the_measurement() -> None:
    figure = waterfall("A gap", ledger(), 0.1)
    names = ["predicted", "sampling", "dispatch lag", "calibration drift", "measured"]
    words = re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg)
    assert [word for word in words if word in names] == names
    assert [row[0] for row in figure.table.rows] == names
    assert [row[1] for row in figure.table.rows] == pytest.approx([100, -30, 0.4, 2, 72.4])
    assert figure.table.rows[1][2:] == pytest.approx((-31, -29))


def test_small_entries_are_seen_beside_a_large_prediction() -> None:
    near = ledger({Cause.DISPATCH: 0.001})
    assert "not from 0 on" in waterfall("A gap", without_intervals(near), 1.0).svg
    assert "not from 0 on" not in waterfall("A gap", ledger({Cause.SAMPLING: -0.06}), 0.1).svg


def test_a_gap_tells_the_causes_that_are_seen_or_the_largest_if_none_has_an_interval() -> None:
    chance = "The chance of these arrivals takes 30.0 ms away"
    drift = "The change of the service time between two calibrations adds 2.00 ms"
    counted = "Runs: 5, calibrations: 5"
    assert waterfall("", ledger(), 0.1).caption == (
        f"Measured less predicted: -27.6 ms (-28.6 to -26.6). {chance} (-31.0 to -29.0). "
        f"{drift} (1.00 to 3.00). {counted}."
    )
    assert waterfall("", without_intervals(ledger()), 0.1).caption == (
        f"Measured less predicted: -27.6 ms. {chance}. {counted}, too few for intervals, which "
        "need 5."
    )
    assert "No single cause is seen." in waterfall("", ledger(half_s=1.0), 0.1).caption


def test_what_is_nothing_beside_the_prediction_is_none() -> None:
    entries = entries_of(ledger({Cause.SAMPLING: 1e-12}), 0.1)
    assert (entries[Cause.SAMPLING].value, entries[Cause.SAMPLING].low) == (0.0, None)
