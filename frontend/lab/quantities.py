"""Numbers with units as people read them: with some significant digits and a fitting unit."""

import math

from frontend.filters import NOTHING

DIGITS = 4
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LEAST_POWER = -4  # of ten; a smaller number is written with its power
EQUAL = 0.005  # two values that differ by less, relatively, are said to be the same

TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
"""(unit in seconds, its name), from the largest."""
LEAST_OF_A_UNIT = {"s": 0.1, "ms": 0.01}
"""A value below this takes a smaller unit. 0.14 ms is easier to compare with 40 s than 140 µs."""


def significant(value: float | None, digits: int = DIGITS) -> str:
    """Return 1234567.8 as "1,234,568", 40.499375 as "40.50", 0.0000029 as "2.900·10⁻⁶"."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    if int(power) < LEAST_POWER:
        text = f"{mantissa}·10{str(int(power)).translate(SUPERSCRIPT)}"
    else:
        text = f"{value:,.{max(0, digits - 1 - int(power))}f}"
    return text.replace("-", "−")


def plain(value: float) -> str:
    """Return a number for a field of a form with as few digits as it needs: 31.778 -> "31.778"."""
    return f"{value:.7g}"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the largest unit that fits `seconds` (seconds, name); µs for the smallest."""
    if seconds == 0:
        return TIMES[0]
    fitting = (
        (factor, name) for factor, name in TIMES[:-1] if seconds >= LEAST_OF_A_UNIT[name] * factor
    )
    return next(fitting, TIMES[-1])


def time(seconds: float | None) -> str:
    """Return 155.3446 as "155.3 s", 0.00014 as "0.1400 ms"."""
    if seconds is None:
        return NOTHING
    factor, name = time_unit(seconds)
    return f"{significant(seconds / factor)} {name}"


def rate(per_s: float | None) -> str:
    """Return 0.020988 as "0.02099/s"."""
    return NOTHING if per_s is None else f"{significant(per_s)}/s"


def change(before: float, after: float) -> str:
    """Return how one value became another, both positive: "÷ 2.44", "× 1.5", "the same"."""
    ratio = after / before
    if abs(ratio - 1) < EQUAL:
        return "the same"
    times = float(f"{max(ratio, 1 / ratio):.3g}")  # seven digits of a large ratio help no reader
    return f"{'×' if ratio > 1 else '÷'} {significant(times, 3)}"


FILTERS = (significant, plain, time, rate, change)
"""Filters of templates, which put `lab_` before these names."""
