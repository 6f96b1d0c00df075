"""Reads the block files of the study that this project goes back to: JSON, one object per file.

The object's `transactions` is a list of objects whose members are named as the fields of a flight;
values are strings (`"-11.00"`). Other members, such as the study's own TRANSACTION_ID and
timestamp, are ignored, because the ledger gives its own. The genesis file has no transactions.
"""

import json
import re
from collections.abc import Generator, Iterator
from pathlib import Path

from backend.base.errors import InvalidInput
from backend.sources.packed import PackedFile
from backend.sources.source import BATCH_ROWS, Fault, NumberedObject, RawRows, raw_rows

MAX_FILE_BYTES = 64 << 20
_NAME_PARTS = re.compile(r"([^0-9]*)([0-9]*)")


class StudyBlocks:
    """Reads a block file, or a folder of them (*.json) in the numeric order of their names.

    Raises InvalidInput if the folder holds no .json file.
    """

    unit = "transaction"

    def __init__(self, path: Path) -> None:
        self.label = path.name or str(path)
        self._is_folder = path.is_dir()
        self._paths = _block_files(path) if self._is_folder else [path]
        self._done = 0
        if not self._paths:
            raise InvalidInput("folder", self.label, "holds no .json files")

    def progress(self) -> float:
        """Return the share of the files read, 0 to 1."""
        return self._done / len(self._paths)

    def rows(self) -> Generator[RawRows, None, None]:
        """Yield all transactions; numbers count from 1 in each file.

        Raises InvalidInput for a file that is not a block of the study.
        """
        for done, path in enumerate(self._paths):
            self._done = done
            transactions = _transactions(PackedFile(path))
            part = path.name if self._is_folder else ""
            for start in range(0, len(transactions), BATCH_ROWS):
                some = transactions[start : start + BATCH_ROWS]
                yield raw_rows(_objects(some, start + 1), part)
        self._done = len(self._paths)


def _block_files(folder: Path) -> list[Path]:
    return sorted((p for p in folder.glob("*.json") if p.is_file()), key=_numeric_order)


def _numeric_order(path: Path) -> list[tuple[str, int]]:
    """Return a sorting key that compares digits as numbers, so that block9 comes before block10."""
    return [(text, int(digits or 0)) for text, digits in _NAME_PARTS.findall(path.name)]


def _transactions(file: PackedFile) -> list[object]:
    """Return the list in a block file. Raises InvalidInput if there is none."""
    with file.opened() as read:
        content = read(MAX_FILE_BYTES)
        if read(1):
            raise file.problem(f"is longer than {MAX_FILE_BYTES} bytes; split it")
    try:
        block = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise file.problem(f"is not JSON ({error})") from error
    transactions = block.get("transactions") if isinstance(block, dict) else None
    if not isinstance(transactions, list):
        raise file.problem('is not a block of the study: it has no list "transactions"')
    return transactions


def _objects(transactions: list[object], first: int) -> Iterator[NumberedObject]:
    """Yield the objects in `transactions`, numbered from `first`; a Fault for what is no object."""
    for number, transaction in enumerate(transactions, first):
        if isinstance(transaction, dict):
            yield number, transaction
        else:
            yield number, Fault(number, "transaction", transaction, "must be an object")
