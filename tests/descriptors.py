"""What processes have open, by /proc."""

from contextlib import suppress
from pathlib import Path


def descriptors_of(pid: int | str = "self") -> dict[int, str]:
    """Each descriptor of a process, and what it points at."""
    targets = {}
    with suppress(OSError):  # it has ended
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile, as that which lists this very folder
                targets[int(link.name)] = str(link.readlink())
    return targets
