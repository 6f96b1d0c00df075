"""Counts in words, as messages for people say them."""


def counted(count: int, one: str, many: str = "") -> str:
    """1500, "flight" -> "1,500 flights", and 1, "flight" -> "1 flight".

    many: what stands behind any number but 1; without it, `one` with an s.
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
