"""Interactions as data: kept, numbered, and folded into one row each."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.generation.interactions import (
    STEPS_AT_MOST,
    Interaction,
    Step,
    interaction_of,
    load,
    save,
    step_index,
    step_of,
    whole,
)
from loadtests.generation.rows import Row, closed_window, customer_of, number_of

TWO = Interaction("two", (Step("look", "GET", "/tip"), Step("add", "POST", "/transactions", "{}")))
LENGTHS = {"two": 2}


def row(customer: int, number: int, step: int, sent_s: float, status: int = 200) -> Row:
    kind = TWO.row_kind(TWO.steps[step])
    index = step_index(customer, number, step)
    return Row("r", index, kind, sent_s, sent_s, None, sent_s + 0.1, 0.05, status, "w")


@given(st.integers(0, 9999), st.integers(0, 1000), st.integers(0, STEPS_AT_MOST - 1))
def test_an_index_tells_customer_interaction_and_step(
    customer: int, number: int, step: int
) -> None:
    request = Row("r", step_index(customer, number, step), "k", 0, 0, None, 1, None, 200, "")
    assert interaction_of(request) == (customer, number)
    assert step_of(request) == step


def test_what_customers_do_is_kept_in_its_order(tmp_path: Path) -> None:
    short = Interaction("one", (Step("look", "GET", "/x"),))
    parted = Interaction("one", (Step("add", "POST", "/x", "a\u2028b\nc"),))
    sequences = [[TWO, short], [short, parted, TWO]]
    save(tmp_path / "file.jsonl", sequences)
    assert load(tmp_path / "file.jsonl") == sequences


@pytest.mark.parametrize("steps", [0, STEPS_AT_MOST + 1])
def test_an_interaction_has_neither_no_steps_nor_too_many(tmp_path: Path, steps: int) -> None:
    save(tmp_path / "file", [[Interaction("strange", TWO.steps[:1] * steps)]])
    with pytest.raises(ValueError, match=r"line 1: no interactions: Expected `array` of length"):
        load(tmp_path / "file")


STEP = '[{"kind":"k","steps":[{"kind":"s","method":"GET","path":"/"}]}]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1: no interactions"),
        (STEP + '[{"kind":"k"}]\n', "line 2: no interactions: .*missing .*`steps`"),
        (STEP.replace('"path"', '"way"'), "line 1: no interactions: .*unknown field `way`"),
        (STEP + "[]", "line 2: no interactions: Expected `array` of length >= 1"),
        ("", "file has no customers"),
    ],
)
def test_what_is_no_file_of_interactions_is_explained(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "file")


def test_an_interaction_lasts_from_its_first_request_to_its_last_answer() -> None:
    (result,) = whole([row(3, 5, 1, sent_s=2.0), row(3, 5, 0, sent_s=1.0)], LENGTHS)
    assert (result.kind, result.sent_s, result.done_s, result.status) == ("two", 1.0, 2.1, 200)
    assert result.service_s == pytest.approx(0.1)
    assert (customer_of(result), number_of(result)) == (3, 5)


def test_a_step_that_failed_fails_its_interaction() -> None:
    (interaction,) = whole([row(0, 0, 0, sent_s=1.0, status=503)], LENGTHS)
    assert not interaction.succeeded


def test_what_the_end_of_the_run_cut_off_is_no_interaction() -> None:
    assert whole([row(0, 0, 0, sent_s=1.0)], LENGTHS) == []


def test_a_step_that_is_asked_again_lasts_until_its_last_answer() -> None:
    rows = [row(0, 0, 0, 1.0), row(0, 0, 1, 2.0), row(0, 0, 1, 3.0), row(0, 1, 0, 4.0, status=0)]
    first, second = whole(rows, LENGTHS)
    assert (first.sent_s, first.done_s) == (1.0, 3.1)
    assert not second.succeeded


def test_a_window_counts_interactions_after_the_warm_up() -> None:
    rows = [
        row(customer, number, step, sent_s=number + 0.5 * step + 0.1 * customer)
        for customer in range(2)
        for number in range(4)
        for step in range(2)
    ]
    window = closed_window(whole(rows, LENGTHS), warm_up=1)
    assert window.start_s == pytest.approx(0.7)
    assert window.end_s == pytest.approx(3.6)
    assert len(window.rows) == 5
    assert window.mean_response_s == pytest.approx(0.6)
