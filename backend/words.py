"""Writes counts with their nouns, for messages."""


def counted(count: int, one: str, many: str = "") -> str:
    """Write a count and its noun: "1,500 flights" for 1500 and "flight", "1 flight" for 1.

    many: the noun for any number but 1; without it, `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
