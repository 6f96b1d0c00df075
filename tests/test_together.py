"""Calls that are made as one."""

from collections.abc import Callable
from contextvars import ContextVar

import pytest

from backend.together import Together, run


class Sums:
    """A function that adds a number to each of many, and remembers what it was called with."""

    def __init__(self, added: int = 10) -> None:
        self.calls: list[list[int]] = []
        self._added = added

    def __call__(self, numbers: list[int]) -> list[int | Exception]:
        self.calls.append(numbers)
        return [ValueError(f"{n} is bad") if n < 0 else n + self._added for n in numbers]


@pytest.fixture
def sums() -> Sums:
    return Sums()


def test_a_call_outside_of_a_task_is_a_call_with_one(sums: Sums) -> None:
    assert Together(sums)(1) == 11
    with pytest.raises(ValueError, match="-1 is bad"):
        Together(sums)(-1)
    assert sums.calls == [[1], [-1]]


def test_calls_of_tasks_are_one_and_each_gets_its_own_outcome(sums: Sums) -> None:
    add = Together(sums)

    def task(number: int) -> Callable[[], str]:
        def done() -> str:
            try:
                return f"{number}: {add(number)}"
            except ValueError as error:
                return f"{number}: {error}"

        return done

    found = run([task(3), lambda: "nothing", task(-1), task(1)])
    assert found == ["3: 13", "nothing", "-1: -1 is bad", "1: 11"]
    assert sums.calls == [[3, -1, 1]]
    assert run([]) == []


def test_a_task_may_call_again_and_others_may_call_something_else(sums: Sums) -> None:
    others = Sums(100)
    add, add_more = Together(sums), Together(others)
    found = run([lambda: add(add(1)), lambda: add_more(2), lambda: add(3) + add_more(4)])
    assert found == [21, 102, 117]
    assert sums.calls == [[1, 3], [11]]
    assert others.calls == [[2, 4]]


def test_what_the_function_raises_is_raised_for_all() -> None:
    def refuse(numbers: list[int]) -> list[int | Exception]:
        raise OSError(f"{len(numbers)} at once")

    add = Together(refuse)

    def task() -> str:
        with pytest.raises(OSError, match="2 at once"):
            add(1)
        return "told"

    assert run([task, task]) == ["told", "told"]
    with pytest.raises(OSError, match="1 at once"):
        add(1)


def test_tasks_do_not_see_each_others_context_variables(sums: Sums) -> None:
    add = Together(sums)
    name = ContextVar("name", default="none")

    def task(own: str) -> Callable[[], str]:
        def seen() -> str:
            before = name.get()
            name.set(own)
            add(1)
            return f"{before}, {name.get()}"

        return seen

    assert run([task("a"), task("b")]) == ["none, a", "none, b"]
    assert name.get() == "none"
    assert sums.calls == [[1, 1]]
