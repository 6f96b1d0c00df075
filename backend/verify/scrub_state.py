"""Tells how far the scrub of a chain is and what it has found, in `scrub.json` in its folder.

The miner writes the file; workers read it. It is never synced: after a power cut the scrub finds
its problems again.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from backend.base.state_file import StateFile
from backend.base.words import COMMAND, Report, counted

NAME = "scrub.json"
MOST_SHOWN = 3
BLOCK = "block"  # the kind of a problem that a block has


class Problem(msgspec.Struct, frozen=True):
    """Something that is wrong with a piece of the chain.

    kind, number: the piece. what: what is wrong, in words.
    """

    kind: str
    number: int
    what: str


class ScrubState(msgspec.Struct, frozen=True):
    """Says how far a scrub is.

    height: the height of the tip when this pass began; -1 if none has begun. pieces: how many the
    pass has. done: how many of them were checked. completed_at: when the last whole pass ended, UTC
    milliseconds. problems: those that still exist, the oldest first.
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


FILE = StateFile(NAME, ScrubState)


def read(folder: Path, report: Report = lambda line: None) -> ScrubState | None:
    """Return the state of the scrub of the chain in `folder`; None if there is none or it is torn.

    report: takes a message if the file cannot be read.
    """
    try:
        return FILE.load(folder)
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            report(f"{folder / NAME} cannot be read: {error.strerror or error}")
    except ValueError:
        pass  # the scrub finds its problems again
    return None


def damaged_blocks(state: ScrubState) -> list[int]:
    """Return the heights of the blocks in which the scrub found something wrong."""
    return [problem.number for problem in state.problems if problem.kind == BLOCK]


def reasons(problems: Sequence[Problem]) -> list[str]:
    """Return why a service is not ready: the first problems, and how many more there are."""
    shown = [f"the scrub found that {problem.what}" for problem in problems[:MOST_SHOWN]]
    if more := len(problems) - len(shown):
        shown.append(f"the scrub found {counted(more, 'more problem')}; run `{COMMAND} verify`")
    return shown
