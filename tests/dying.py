"""A process that ends at a certain call, whatever it was about to do."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest


class Killed(BaseException):
    """The process is no more; nobody may handle this."""


@contextmanager
def killed_at(nth: int, module: Any, names: Iterable[str]) -> Iterator[list[str]]:
    """Let the process end at the `nth` call of these functions. Gives the calls before it."""

    def end_at_nth(calls: list[str]) -> None:
        if len(calls) + 1 >= nth:
            raise Killed

    with suppress(Killed), watched(module, names, end_at_nth) as calls:
        yield calls


@contextmanager
def watched(
    module: Any, names: Iterable[str], before: Callable[[list[str]], None]
) -> Iterator[list[str]]:
    """Let `before` take the calls of these functions so far, before each one. Gives all calls."""
    calls: list[str] = []

    def watching(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            before(calls)
            calls.append(name)
            return real(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(module, name, watching(name, getattr(module, name)))
        yield calls
