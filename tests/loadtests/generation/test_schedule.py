"""Schedules: when requests arrive and what they ask, from a seed and nothing else."""

from itertools import cycle, islice, repeat
from math import sqrt
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.generation.schedule import (
    Arrival,
    Request,
    arrivals,
    demanded,
    load,
    load_requests,
    mixed,
    save,
    save_requests,
)
from loadtests.models.random_times import deterministic_times, poisson_times

RATES = st.floats(0.01, 1000)
TIMES = st.lists(st.floats(0, 1e6), min_size=1, max_size=50).map(sorted)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=20)


def some_requests(count: int) -> list[Request]:
    return [Request("known", f"/?service_s={number}") for number in range(count)]


class TestTimes:
    @given(rate=RATES, seed=st.integers(0, 99), count=st.integers(1, 300))
    def test_a_count_gives_so_many_in_order_and_the_same_for_the_same_seed(
        self, rate: float, seed: int, count: int
    ) -> None:
        times_s = poisson_times(rate, Random(seed), count=count)
        assert len(times_s) == count
        assert times_s == sorted(times_s) == poisson_times(rate, Random(seed), count=count)
        assert times_s[0] > 0

    @given(rate=RATES, seed=st.integers(0, 99))
    def test_an_end_gives_all_arrivals_before_it(self, rate: float, seed: int) -> None:
        more = poisson_times(rate, Random(seed), count=100)
        end_s = more[50]
        assert poisson_times(rate, Random(seed), until_s=end_s) == [t for t in more if t < end_s]

    def test_deterministic_gaps_are_equal(self) -> None:
        assert deterministic_times(4, count=3) == [0.25, 0.5, 0.75]
        assert deterministic_times(4, until_s=0.75) == [0.25, 0.5]

    @pytest.mark.parametrize("rate", [0, -1, float("inf"), float("nan")])
    def test_a_rate_that_is_none_is_refused(self, rate: float) -> None:
        with pytest.raises(ValueError, match="rate_per_s must be a positive number"):
            poisson_times(rate, Random(1), count=1)

    def test_a_count_and_an_end_exclude_each_other(self) -> None:
        for how in ({}, {"count": 1, "until_s": 1.0}):
            with pytest.raises(ValueError, match="either count or until_s"):
                deterministic_times(1, **how)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="count is 0"):
            deterministic_times(1, count=0)


class TestRequests:
    def test_kinds_come_by_their_shares(self) -> None:
        choices = {kind: [Request(kind, f"/{kind}?{n}") for n in range(3)] for kind in "abc"}
        requests = list(islice(mixed(choices, Random(3), {"a": 60, "b": 30, "c": 10}), 10_000))
        for kind, share in (("a", 0.6), ("b", 0.3), ("c", 0.1)):
            assert sum(request.kind == kind for request in requests) == pytest.approx(
                10_000 * share, abs=5 * sqrt(10_000 * share * (1 - share))
            )
        assert {request.path for request in requests} == {
            r.path for rs in choices.values() for r in rs
        }

    def test_kinds_without_shares_come_alike_and_one_of_share_zero_never(self) -> None:
        choices = {kind: [Request(kind, f"/{kind}")] for kind in "ab"}
        alike = sum(request.kind == "a" for request in islice(mixed(choices, Random(1)), 1000))
        assert 400 < alike < 600
        never = islice(mixed(choices, Random(1), {"a": 1, "b": 0}), 1000)
        assert {request.kind for request in never} == {"a"}

    @pytest.mark.parametrize("shares", [{"x": 1.0}, {"a": 0.0}, {"a": -1.0}, {}])
    def test_shares_that_cannot_be_are_refused(self, shares: dict[str, float]) -> None:
        with pytest.raises(ValueError, match=r"shares are|no requests of kind"):
            mixed({"a": [Request("a", "/a")]}, Random(1), shares)

    def test_a_request_of_known_demand_says_it(self) -> None:
        (request,) = islice(demanded(repeat(0.0405)), 1)
        assert request == Request("known", "/?service_s=0.040500000", 0.0405)


class TestSchedules:
    @given(
        times_s=TIMES,
        kinds=st.lists(TEXTS, min_size=1),
        demand=st.none() | st.floats(0, 9),
        body=TEXTS | st.just('{"a": "b,c"}\n'),
    )
    def test_a_saved_schedule_is_loaded_as_it_was(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        times_s: list[float],
        kinds: list[str],
        demand: float | None,
        body: str,
    ) -> None:
        file = tmp_path_factory.mktemp("schedule") / "schedule.csv"
        requests = (Request(kind, f"/{kind}", demand, body) for kind in cycle(kinds))
        schedule = arrivals(times_s, requests)
        save(file, schedule)
        assert load(file) == schedule

    def test_its_file_is_csv_with_a_header(self, tmp_path: Path) -> None:
        file = tmp_path / "schedule.csv"
        save(file, [Arrival(0, 0.1, "known", "/?service_s=1", 1.0)])
        assert file.read_bytes() == (
            b"index,intended_s,kind,path,demand_s,body\r\n0,0.1,known,/?service_s=1,1.0,\r\n"
        )

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ("0,1,a,/,\n2,2,a,/,\n", "without gaps"),
            ("0,1,a,/,\n1,0.5,a,/,\n", "never fall"),
            ("0,1,a,x,\n", "does not begin with /"),
            ("0,1,a,/,much\n", "is not a Arrival, demand_s: .* 'much'"),
            ("", "no rows"),
        ],
    )
    def test_a_file_that_is_no_schedule_is_refused(
        self, tmp_path: Path, rows: str, message: str
    ) -> None:
        file = tmp_path / "schedule.csv"
        file.write_text(f"index,intended_s,kind,path,demand_s\n{rows}")
        with pytest.raises(ValueError, match=message):
            load(file)

    def test_there_must_be_a_request_for_every_arrival(self) -> None:
        with pytest.raises(ValueError, match="2 arrivals have only 1 requests"):
            arrivals([1.0, 2.0], some_requests(1))

    def test_what_may_be_asked_is_kept_kind_by_kind(self, tmp_path: Path) -> None:
        choices = {
            "a": [Request("a", "/1", 0.5), Request("a", "/2")],
            "b": [Request("b", "/3", body="{}")],
        }
        save_requests(tmp_path / "paths.csv", choices)
        assert load_requests(tmp_path / "paths.csv") == choices

    def test_a_list_written_by_hand_may_leave_out_what_has_a_default(self, tmp_path: Path) -> None:
        file = tmp_path / "paths.csv"
        file.write_text("kind,path,demand_s,body\na,/1\na,/2,0.5\n")
        assert load_requests(file) == {"a": [Request("a", "/1"), Request("a", "/2", 0.5)]}
