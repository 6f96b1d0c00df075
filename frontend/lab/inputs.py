"""Turns the text of a form into numbers within limits, or into messages beside its fields."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from frontend.errors import Refused

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
WHOLE = re.compile(r"\d{1,9}", re.ASCII)
MOST_TEXT = 40  # characters in a number
LEAST = 1e-12  # a smaller number counts as 0


class Inputs:
    """The values of a form, by name. Reading goes on after a fault, so that all are named at once.

    Call `check` before using any value: the value of a faulty field is arbitrary.
    """

    def __init__(self, given: Mapping[str, str], known: Collection[str]) -> None:
        self._given = given
        self._errors: list[dict[str, Any]] = []
        for name in given:
            if name not in known:
                self.refuse(name, "is not a field of this form")

    def refuse(self, name: str, detail: str) -> None:
        self._errors.append({"field": name, "value": self._given.get(name), "detail": detail})

    def check(self) -> None:
        if self._errors:
            first = self._errors[0]
            detail = f"{first['field']} {first['detail']}"
            problem = {"detail": detail, "field": first["field"], "errors": self._errors}
            raise Refused(problem, 400, None)

    def text(self, name: str, most: int) -> str:
        text = self._given.get(name, "")
        if not text:
            self.refuse(name, "is missing")
        elif len(text) > most or not text.isprintable():
            self.refuse(name, f"must be at most {most} printable characters")
        return text

    def number(self, name: str, low: float, high: float) -> float:
        """Return a number from `low` to `high`; if it is not 0, at least LEAST away from it."""
        text = self._given.get(name, "")
        if not text:
            self.refuse(name, "is missing")
        elif len(text) > MOST_TEXT or not NUMBER.fullmatch(text):
            self.refuse(name, "must be a number such as 0.85 or 1e-4")
        elif not low <= float(text) <= high:
            self.refuse(name, f"must be between {_limit(low)} and {_limit(high)}")
        elif 0 < abs(float(text)) < LEAST:
            self.refuse(name, f"must be 0 or at least {_limit(LEAST)}")
        else:
            return float(text)
        return high

    def whole(self, name: str, low: int, high: int, default: str = "") -> int:
        text = self._given.get(name, default)
        if not text:
            self.refuse(name, "is missing")
        elif not WHOLE.fullmatch(text) or not low <= int(text) <= high:
            self.refuse(name, f"must be a whole number from {low} to {high}")
        else:
            return int(text)
        return high

    def choice(self, name: str, options: Collection[str], default: str) -> str:
        text = self._given.get(name, default)
        if text not in options:
            self.refuse(name, f"must be one of {', '.join(filter(None, options))}")
        return text


def _limit(value: float) -> str:
    return f"{value:,.10g}"
