"""Writes numbers for people, in reports, reasons and the benchmark's table."""


def format_number(value: float, spec: str = ".3g") -> str:
    """Return a number as text by this specification, but a large one without an exponent."""
    text = format(value, spec)
    return format(value, "+,.0f" if spec.startswith("+") else ",.0f") if "e+" in text else text
