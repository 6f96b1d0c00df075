"""What is in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def all_below(folder: Path, but: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Each file by its path below a folder, and each folder as if it were empty.

    but: what the names of those end with that do not matter.
    """
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(but)
    }


@contextmanager
def unchanged(folder: Path, but: tuple[str, ...] = ()) -> Iterator[None]:
    """Fail unless all that is below a folder is afterwards as it was. but: as in `all_below`."""
    before = all_below(folder, but)
    yield
    assert all_below(folder, but) == before
