"""Rows of the list of blocks: headers, and what is known of blocks that are damaged.

A row with `detail` is of a damaged block: it has only `height`, and what the table of heights says,
which is `hash`, `first_transaction` and `transaction_count`, each None if that is damaged, too.
"""

from frontend.backend_client import Json


def by_height(answer: Json) -> list[Json]:
    """Return the rows of an answer of `/blocks`, newest first."""
    rows = [*answer["blocks"], *answer.get("damaged", ())]
    return sorted(rows, key=lambda row: -row["height"])
