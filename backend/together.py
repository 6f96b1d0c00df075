"""Calls that tasks of one thread make at the same time, made as one.

    add = Together(add_all)  # takes a list, and gives as many outcomes
    run([task, …])  # each of which calls add(…), somewhere deep inside

Each task of `run` goes until it comes to such a call, and waits there for the others. When all have
come so far or ended, `add_all` gets what they called it with, and each goes on with its own
outcome. So a view of Flask can be written for one request, and many of them still share what is
best done once for all, as a sync is. Who calls `add` elsewhere just calls `add_all` with one.

Tasks are greenlets: they take turns at these calls only, need no thread each, and have context
variables of their own, in which Flask keeps the request in hand. A task must hold no lock when it
calls, for the next one may want it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from greenlet import getcurrent, greenlet

A = TypeVar("A")
B = TypeVar("B")
Result = TypeVar("Result")


class Together(Generic[A, B]):
    """A function of one argument, by way of one that takes many."""

    def __init__(self, function: Callable[[list[A]], Sequence[B | Exception]]) -> None:
        """function: an exception among its outcomes is raised where that one was called for."""
        self.function = function

    def __call__(self, argument: A) -> B:
        """The outcome for `argument`. Raises that, or what the function raised for all."""
        task = getcurrent()
        outcome: B | Exception
        if isinstance(task, _Task):
            outcome = task.wait(self, argument)
        else:
            (outcome,) = self.function([argument])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class _Task(greenlet):
    """A task of `run`. called, argument: what it waits for."""

    called: Together[Any, Any]
    argument: Any

    def wait(self, called: Together[Any, Any], argument: Any) -> Any:
        """Let the others run until there is an outcome for this one."""
        self.called, self.argument = called, argument
        assert self.parent is not None
        return self.parent.switch()


def run(tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """The results of the tasks, which must not raise."""
    running = [_Task(task) for task in tasks]
    results = {task: task.switch() for task in running}
    while waiting := [task for task in running if not task.dead]:
        called = waiting[0].called
        together = [task for task in waiting if task.called is called]
        for task, outcome in zip(together, _outcomes(called, together), strict=True):
            results[task] = task.switch(outcome)
    return [results[task] for task in running]


def _outcomes(called: Together[Any, Any], tasks: list[_Task]) -> Sequence[Any]:
    try:
        return called.function([task.argument for task in tasks])
    except Exception as error:  # noqa: BLE001  each of them raises it
        return [error] * len(tasks)
