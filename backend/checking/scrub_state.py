"""How far the scrub of a chain is and what it has found: `scrub.json` in the chain's folder.

The miner writes it; whoever asks reads it. It is never synced: what is lost with the power is
looked for again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from backend.storage import files
from backend.words import counted

NAME = "scrub.json"
MOST_SHOWN = 3

Report = Callable[[str], None]


class Problem(msgspec.Struct, frozen=True):
    """Something that is wrong.

    kind, number: the piece in which it was found. what: in words. found_at: UTC milliseconds.
    """

    kind: str
    number: int
    what: str
    found_at: int


class ScrubState(msgspec.Struct, frozen=True):
    """Where a scrub stands.

    height: the tip when this pass began; -1 for no pass yet. pieces: of the pass. done: how many of
    them were looked at. completed_at: when the last whole pass ended, UTC milliseconds. problems:
    that stand, the oldest first.
    """

    height: int = -1
    pieces: int = 0
    done: int = 0
    completed_at: int | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def progress(self) -> float:
        """The share of the pass that is done, 0 to 1."""
        return self.done / self.pieces if self.pieces else 0.0


_decode = msgspec.json.Decoder(ScrubState).decode


def read(folder: Path, report: Report = lambda line: None) -> ScrubState | None:
    """The state of the scrub of the chain in `folder`; None if there is none, or a torn one.

    report: takes a line if there is one that cannot be read.
    """
    path = folder / NAME
    try:
        return _decode(path.read_bytes())
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            report(f"{path} cannot be read: {error.strerror or error}")
    except msgspec.MsgspecError:
        pass  # what it said is looked for again
    return None


def write(folder: Path, state: ScrubState) -> None:
    """Replace the state. Raises WriteFailed."""
    files.replace_unsynced(folder / NAME, msgspec.json.encode(state))


def remove(folder: Path) -> None:
    """Forget it. Raises WriteFailed."""
    files.remove(folder / NAME)


def reasons(problems: Sequence[Problem]) -> list[str]:
    """Why a service with these problems is not ready; the first few, and how many more."""
    shown = [f"the scrub found that {problem.what}" for problem in problems[:MOST_SHOWN]]
    if more := len(problems) - len(shown):
        shown.append(
            f"the scrub found {counted(more, 'more problem')}; run `python -m backend verify`"
        )
    return shown
