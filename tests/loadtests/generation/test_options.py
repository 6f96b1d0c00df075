"""Options of the workloads; `test_by_hand.py` looks at how Locust says that one is wrong."""

from argparse import Namespace

import pytest

from loadtests.generation import options


@pytest.mark.parametrize("text", ["known:1", "a=1,b", "a=one"])
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
