"""The waterfall of a gap, and the sentences of its entries."""

import re

import pytest

from loadtests.lab.gaps import WORDS, Entry, Gap, gap_told, of_ledger, waterfall
from loadtests.models.estimates import Interval
from loadtests.models.gap_ledger import Cause, Ledger

GAP = Gap(
    100.0,
    [
        Entry("sampling", "Chance", -30.0, -50.0, -10.0),
        Entry("dispatch lag", "Late sending", 0.4, -0.1, 0.9),
        Entry("order", "Another order", 0.0),
        Entry("drift", "The drift", 2.0),
    ],
)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (0, "Chance takes 30.0 ms away (-50.0 to -10.0)."),
        (1, "Late sending: no effect is seen (-0.100 to 0.900)."),
        (2, "Another order: none."),
        (3, "The drift adds 2.00 ms."),
    ],
)
def test_each_entry_is_a_sentence(entry: int, sentence: str) -> None:
    assert GAP.entries[entry].sentence == sentence


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_the_subject_of_a_sentence(cause: Cause) -> None:
    words = WORDS[cause]
    assert "," not in words or words.endswith(",")  # what is inserted has an end
    assert ":" not in words
    assert Entry("", words, 1.0).sentence == f"{words} adds 1.00 ms."
    assert ",:" not in Entry("", words, 0.5, -1.0, 2.0).sentence


def test_a_waterfall_leads_from_the_prediction_to_the_measurement() -> None:
    figure = waterfall("A gap", "Told.", GAP)
    words = re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg)
    assert [word for word in words if word in {row[0] for row in figure.table.rows}] == [
        *("predicted", "sampling", "dispatch lag", "order", "drift", "measured")
    ]
    assert GAP.measured == pytest.approx(72.4)
    assert (figure.table.rows[0][1], figure.table.rows[-1][1]) == (100.0, GAP.measured)


def test_small_entries_are_seen_beside_a_large_prediction() -> None:
    near = Gap(1000.0, [Entry("lag", "Late sending", 1.0)])
    assert "not from 0 on" in waterfall("A gap", "Told.", near).svg
    assert "not from 0 on" not in waterfall("A gap", "Told.", GAP).svg


def test_a_gap_tells_the_causes_that_are_seen() -> None:
    assert gap_told(Gap(100.0, GAP.entries, -30.0, -20.0)) == (
        "Measured less predicted: -27.6 ms (-30 to -20). Chance takes 30.0 ms away (-50.0 to "
        "-10.0)."
    )
    assert gap_told(Gap(100.0, GAP.entries)) == (
        "Measured less predicted: -27.6 ms. Chance takes 30.0 ms away (-50.0 to -10.0)."
    )
    assert gap_told(Gap(1.0, [], 0.0, 0.0)).endswith("No single cause is seen.")


def test_a_ledger_is_told_in_milliseconds_from_the_prediction_on() -> None:
    entries = {Cause.DISPATCH: 0.002, Cause.SAMPLING: 1e-12}
    intervals = {cause: Interval(of, 0.001, 5) for cause, of in entries.items()}
    gap = of_ledger(Ledger(5, 5, entries, Interval(0.002, 0.001, 5), intervals), 0.1)
    assert [(entry.name, entry.amount) for entry in gap.entries] == [
        *(("sampling", 0.0), ("dispatch lag", pytest.approx(2.0)))
    ]
    assert gap.gap_low == pytest.approx(1.0)
    assert gap.entries[1].high == pytest.approx(3.0)
    assert gap.measured == pytest.approx(102.0)
