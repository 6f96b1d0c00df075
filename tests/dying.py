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
    calls: list[str] = []

    def ending(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if len(calls) + 1 >= nth:
                raise Killed
            calls.append(name)
            return real(*arguments, **options)

        return call

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        for name in names:
            patch.setattr(module, name, ending(name, getattr(module, name)))
        yield calls
