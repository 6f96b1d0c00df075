"""Many cases in one test: pytest takes longer to collect and report one than most of them run."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

Test = Callable[..., None]


def each_of(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for each case, as `pytest.mark.parametrize` does, but within one test.

    A failure names its case in a note. For tests that leave their fixtures as they found them.
    """
    given = (names,) if isinstance(names, str) else names
    kept = list(cases)

    def decorated(test: Test) -> Test:
        signature = inspect.signature(test)
        fixtures = [one for name, one in signature.parameters.items() if name not in given]

        @wraps(test)
        def with_each(**arguments: Any) -> None:
            assert kept
            for case in kept:
                values = (case,) if isinstance(names, str) else case
                try:
                    test(**arguments, **dict(zip(given, values, strict=True)))
                except BaseException as failure:
                    failure.add_note(f"with {', '.join(given)} = {repr(case)[:300]}")
                    raise

        vars(with_each)["__signature__"] = signature.replace(parameters=fixtures)
        return with_each

    return decorated
