"""Options of the workloads; `test_by_hand.py` looks at how Locust says that one is wrong."""

from argparse import Namespace
from math import inf, nan
from typing import Any

import pytest

from loadtests.generation import options


@pytest.mark.parametrize("text", ["known:1", "a=1,b", "a=one", "a=nan", "a=inf"])
def test_shares_that_are_none_are_named(text: str) -> None:
    assert options.shares_from("a=60, b=.5") == {"a": 60, "b": 0.5}
    with pytest.raises(ValueError, match=f"--mix '{text}': '.*' is not like flight_counter=30"):
        options.shares_from(text)


def test_numbers_that_cannot_be_are_named() -> None:
    chosen = Namespace(interval=-1.0, rate=0.0, num_users=0, think_time=0.0)
    with pytest.raises(ValueError, match=r"--interval is -1\.0; it must not be negative"):
        options.require_not_negative(chosen, "think_time", "interval")
    with pytest.raises(ValueError, match=r"--rate is 0\.0; it must be above 0"):
        options.require_positive(chosen, "rate")
    with pytest.raises(ValueError, match="-u is 0; there must be at least 1 customer"):
        options.require_not_negative(chosen, "think_time")


def test_numbers_that_are_not_finite_are_named() -> None:
    options.require_finite(Namespace(rate=1.0, num_users=10**400, host="inf", run_time=None))
    for value in (nan, inf, -inf):
        with pytest.raises(ValueError, match=rf"--warm-up is {value}; it must be a finite number"):
            options.require_finite(Namespace(rate=1.0, warm_up=value))


@pytest.mark.parametrize(
    ("rate_per_s", "how", "processes", "message"),
    [
        (5.0, {"until_s": 60.0}, 1, ""),
        (9e3, {"count": 10}, 2, ""),
        (9e3, {"count": 10}, 1, "--rate is 9000; .* fewer than 5000 .* lower rate, or more --proc"),
        (1e9, {"until_s": 3.0}, 1, "--rate is 1e[+]09; .* lower rate, or more --processes"),
        (100.0, {"until_s": 1e9}, 1, "100000000000 arrivals; .* at most 3000000, .* --duration"),
        (5.0, {"count": 10**12}, 1, "--arrivals is 1000000000000; a schedule has at most 3000000"),
    ],
)
def test_what_no_generator_can_send_is_refused_before_it_is_computed(
    rate_per_s: float, how: dict[str, Any], processes: int, message: str
) -> None:
    def check() -> None:
        options.require_sendable(rate_per_s, how.get("count"), how.get("until_s"), processes)

    if not message:
        check()
        return
    with pytest.raises(ValueError, match=message):
        check()
