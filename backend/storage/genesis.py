"""Reads the hash of block 0, which names the ledger that a file belongs to."""

from pathlib import Path

from backend.storage import layout


class Genesis:
    """The hash of block 0 of the chain in a folder, read once."""

    def __init__(self, folder: Path) -> None:
        self._table = folder / layout.BLOCKS_FOLDER / layout.TABLE_NAME
        self._hash = ""

    def __call__(self) -> str:
        """Return it in hexadecimal; "" while there is no block 0, or its entry is damaged."""
        if not self._hash:
            try:
                with self._table.open("rb") as table:
                    place = layout.place_from(table.read(layout.ENTRY_BYTES))
            except OSError:
                return ""
            self._hash = "" if place is None else place.hash.hex()
        return self._hash
