"""Makes words and units of what reports tell."""


def capital(text: str) -> str:
    """`text` with a capital first letter; other letters stay as they are."""
    return text[:1].upper() + text[1:]


def told_s(seconds: float) -> str:
    """A time as text: in seconds, or in milliseconds if it is less than one."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def times(factor: float, value: float | None) -> float | None:
    """`factor` times a value that may be missing."""
    return None if value is None else factor * value
