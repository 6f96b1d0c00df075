"""Writes numbers for people, in reports, reasons and the benchmark's table, and reads theirs."""

from math import isfinite


def finite(text: str) -> float:
    """Return the number in a text. Raises ValueError unless it is one, and finite."""
    if not isfinite(number := float(text)):
        raise ValueError(f"{text} is not a finite number")
    return number


def format_number(value: float, spec: str = ".3g") -> str:
    """Return a number as text by this specification, but a large one without an exponent."""
    text = format(value, spec)
    return format(value, "+,.0f" if spec.startswith("+") else ",.0f") if "e+" in text else text
