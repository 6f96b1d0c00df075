"""What is in a folder."""

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
