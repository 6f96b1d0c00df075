"""Shows on a page what a file was taken for, before anything is added."""

from collections.abc import Mapping
from typing import Any

from frontend.backend_client import Json
from frontend.field_labels import TRANSACTION_NAMES

SHOWN_ROWS = 3
NOT_IN_FILES = {"TRANSACTION_ID", "timestamp"}
SHOWN = ("kind", "source", "dates", "dates_written", "emptied", "repeated_headers", "not_used")


def understanding_of(answer: Mapping[str, Any]) -> Json:
    """Return what an answer of the backend says that it took a file for.

    With `fields` in the order of a record: each has its `name`, its `origin` in the file, and its
    `values` in some rows.
    """
    derived = {
        name: f"from {what}"
        for what, names in answer["derived"].items()
        for name in names.split(", ")
    }
    origins = derived | answer["columns"] | dict.fromkeys(answer["left_empty"], "stays empty")
    rows = answer.get("sample", ())[:SHOWN_ROWS]
    fields = [
        {"name": name, "origin": origins.get(name, ""), "values": [row[name] for row in rows]}
        for name in TRANSACTION_NAMES
        if name not in NOT_IN_FILES
    ]
    return {name: answer[name] for name in SHOWN} | {"fields": fields}
