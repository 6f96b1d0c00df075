"""The calculator's open queue: numbers of the study, laws, limits."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import Refused
from frontend.lab import open_queue_form, study
from frontend.lab.curves import STUDY_CURVE
from frontend.lab.open_queue_form import MOST_LOAD, Queue, answer, answer_to, read, response_chart
from loadtests.lab.published import UNROUNDED
from tests.cases import each_of

FORM = {
    "arrivals": "0.85",
    "arrivals_in": "share",
    "service_time_s": "40.499375",
    "cv": f"{study.CV!r}",
    "servers": "1",
}
QUEUES = st.builds(
    Queue,
    st.floats(1e-6, 1e3),
    st.floats(1e-6, 1e3),
    st.floats(0, 10),
    st.integers(1, open_queue_form.MOST_SERVERS),
)


def refused(**changes: str) -> Refused:
    with pytest.raises(Refused) as caught:
        read(FORM | changes)
    return caught.value


def test_the_studys_numbers_are_those_of_the_lab() -> None:
    assert UNROUNDED.mean_s == study.SERVICE_TIME_S
    assert UNROUNDED.variance_s2 == study.SERVICE_VARIANCE_S2


def test_arrivals_are_a_share_or_by_the_second_or_by_the_hour() -> None:
    rates = [
        read(FORM | {"arrivals": arrivals, "arrivals_in": unit}).arrival_rate_per_s
        for arrivals, unit in (
            ("0.5", "share"),
            ("0.01234586953", "per_s"),
            ("44.4451", "per_hour"),
        )
    ]
    assert rates == pytest.approx([rates[0]] * 3, rel=1e-5)


def test_several_servers_are_erlangs_queue() -> None:
    """The second report's numbers: λ = 5, μ = 2, m = 3."""
    given = {"arrivals": "5", "arrivals_in": "per_s", "service_time_s": "0.5", "cv": "0"}
    answer = answer_to(given | {"servers": "3"}).as_json()
    assert answer["models"].keys() == {"mmm"}
    assert answer["models"]["mmm"]["response_time_s"] == pytest.approx(1.202247191)
    assert answer["models"]["mmm"]["p_wait"] == pytest.approx(0.702247191)


@given(QUEUES)
def test_an_answer_is_stable_exactly_below_the_capacity(queue: Queue) -> None:
    result = answer(queue)
    if queue.utilisation < 1 - 1e-9:
        assert result.unstable is None
    if queue.utilisation > 1 + 1e-9:
        assert result.states == ()
        assert result.backlog_per_s > 0


@given(QUEUES, st.booleans())
def test_its_chart_can_be_drawn_whatever_is_asked(queue: Queue, is_compared: bool) -> None:
    result = answer(queue)
    if is_compared:
        before = answer(open_queue_form.studied(queue.arrival_rate_per_s))
        result = open_queue_form.Answer(queue, result.states, result.unstable, before)
    drawn = response_chart(result)
    assert drawn.lines.lines
    for line in drawn.lines.lines:
        assert not {"nan", "inf"} & {*re.findall("[a-z]{3}", line.path)}
    ours = [line for line in drawn.lines.lines if line.number != STUDY_CURVE]
    marks = [mark for line in ours for mark in line.alone]
    assert len(marks) >= bool(result.states)  # the first model's, which the top has room for


def test_the_studys_curve_is_drawn_where_it_can_be_seen() -> None:
    beside = response_chart(answer_to(FORM | {"service_time_s": "31.8", "against": "study"}))
    assert STUDY_CURVE in {curve.number for curve in beside.curves}
    index = FORM | {"service_time_s": "0.00014", "against": "study"}
    assert STUDY_CURVE not in {curve.number for curve in response_chart(answer_to(index)).curves}


def test_the_curve_goes_from_no_load_to_nearly_all() -> None:
    rows = open_queue_form.curve_rows(read(FORM))
    assert rows[0]["fcfs_response_time_s"] == pytest.approx(study.SERVICE_TIME_S)
    assert rows[-1]["utilisation"] == pytest.approx(MOST_LOAD)
    assert rows[-1].keys() >= {"fcfs_response_time_s", "ps_response_time_s"}


LIMITS = [
    ("arrivals", ("0", "-1", "1e10", "x", "", "0,85", "nan", "inf", "1_0", "٣")),
    ("arrivals_in", ("weeks",)),
    ("service_time_s", ("0", "-1", "1e7", "1e-10", "40 s")),
    ("cv", ("-0.1", "101", "1e-13")),
    ("servers", ("0", "65", "1.5", "x")),
    ("against", ("us",)),
]


@each_of(("name", "text"), [(name, text) for name, texts in LIMITS for text in texts])
def test_what_does_not_fit_is_refused_beside_its_field(name: str, text: str) -> None:
    problem = refused(**{name: text})
    assert problem.status == 400
    assert problem.message_for(name)
    assert [error["field"] for error in problem.errors] == [name]
