"""The errors of the frontend: the backend is away, or has refused a request."""

from collections.abc import Mapping, Sequence
from typing import Any

RETRY_AFTER_S = 5  # when the backend is away, or names no time itself


class BackendAway(Exception):
    """The backend cannot be reached, or its answer breaks off."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url} does not answer: {reason}")


class Refused(Exception):
    """A problem (RFC 9457) that the backend answered with.

    status: of HTTP. field, value: the parameter or field at fault, if it is one. errors: each has
    `field`, `value`, `detail` and perhaps `row`. retry_after_s: when another try may help.
    damaged_blocks: the heights of blocks that are damaged, if that is the problem.
    """

    def __init__(
        self, problem: Mapping[str, Any], status: int, retry_after_s: int | None = None
    ) -> None:
        self.detail = str(problem.get("detail") or problem.get("title") or f"status {status}")
        super().__init__(self.detail)
        self.status = status
        self.field = str(problem.get("field") or "")
        self.value = problem.get("value")
        self.errors: Sequence[Mapping[str, Any]] = problem.get("errors") or ()
        self.retry_after_s = retry_after_s
        self.damaged_blocks: Sequence[int] = problem.get("damaged_blocks") or ()

    @classmethod
    def parameter(cls, name: str, value: object, reason: str) -> "Refused":
        """Return the refusal of a page's parameter, in the form that the backend uses."""
        detail = f"{name} {value!r}: {reason}"
        return cls({"field": name, "value": value, "detail": detail}, 400)

    @classmethod
    def choice(cls, name: str, value: object, choices: Mapping[str, str]) -> "Refused":
        """Return the refusal of a parameter that must be one of `choices`: value -> its label."""
        named = (f"{choice} ({label})" if label else choice for choice, label in choices.items())
        return cls.parameter(name, value, f"must be one of {', '.join(named)}")

    @classmethod
    def missing(cls, name: str) -> "Refused":
        """Return the refusal of a page without a parameter that it needs."""
        return cls({"field": name, "detail": f"{name} is missing"}, 400)

    @property
    def fields(self) -> list[str]:
        """The names of all fields at fault, each once, in the order of the answer."""
        names = [str(error["field"]) for error in self.errors if error.get("field")]
        return list(dict.fromkeys(names)) or ([self.field] if self.field else [])

    def describe(self, field: str) -> str:
        """Return what is wrong with `field`, with its name; what is wrong at all without errors."""
        reason = self._errors_of(field)
        return f"{field} {reason}" if reason else self.detail

    def message_for(self, field: str) -> str:
        """Return what is wrong with `field`, without its name and value; "" if nothing is."""
        reason = self._errors_of(field)
        if reason or self.field != field:
            return reason
        return self.detail.removeprefix(f"{field} {self.value!r}: ").removeprefix(f"{field} ")

    def _errors_of(self, field: str) -> str:
        return "; ".join(str(e["detail"]) for e in self.errors if e.get("field") == field)
