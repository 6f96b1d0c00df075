"""Defines the type of all paths that commands take."""

import os
from errno import EACCES
from pathlib import Path
from shlex import quote
from typing import Any

import click

from backend.base.errors import FlightchainError
from backend.base.files import reason_of
from backend.base.settings import require_whole_path
from backend.base.words import COMMAND


class LocalPath(click.Path):
    """A path of this machine. It says so if this user may not see what is there."""

    def __init__(self, **more: Any) -> None:
        super().__init__(path_type=Path, **more)

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        """Refuse what cannot be meant, and what is hidden; `click.Path` checks the rest."""
        path = Path(value)
        try:
            require_whole_path(str(value))
            if self.exists and str(value) != "-":  # standard input, where it is allowed
                path.stat()
                if self.readable and not os.access(path, os.R_OK, effective_ids=True):
                    raise PermissionError(EACCES, os.strerror(EACCES))
        except ValueError as error:
            self.fail(f"{str(value)!r} {error}", parameter, context)
        except PermissionError as error:
            reason = reason_of(error, path)
            if self.allow_dash:
                reason += f"; or let your shell open it: {COMMAND} import - <{quote(str(path))}"
            self.fail(reason, parameter, context)
        except OSError:  # it is not there, which may be right
            pass
        return super().convert(value, parameter, context)


def require_no_ledger(folder: Path, remedy: str = "choose another folder") -> None:
    """Raise FlightchainError for the folder of a ledger, or a part of one: it is for its files."""
    from backend.mempool import FOLDER
    from backend.storage.layout import BLOCKS_FOLDER, TABLE_NAME
    from backend.verify.folder_files import kind_of

    place = folder.resolve()
    for ledger in (place, *place.parents):
        part = place.relative_to(ledger).parts[:1]
        is_its_own = not part or part[0] == FOLDER or kind_of(part[0])
        if is_its_own and (ledger / BLOCKS_FOLDER / TABLE_NAME).exists():
            raise FlightchainError(f"{folder} belongs to the ledger in {ledger}; {remedy}")
