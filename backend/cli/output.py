"""Writes messages to standard error, and answers to standard output."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from backend.base.errors import Damage, DamagedBlock, FlightchainError


def say(line: str) -> None:
    """Write a line to standard error, at once even in a pipe.

    A line for which there is no room is lost: a service whose messages go to a file goes on while
    the disk is full.
    """
    try:
        click.echo(line, err=True)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def print_json(value: Any) -> None:
    """Write the answer of a command to standard output."""
    click.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def members(value: object, *names: str) -> dict[str, Any]:
    """Return some members of a value, for an answer."""
    return {name: getattr(value, name) for name in names}


def print_once(text: str, otherwise: str) -> None:
    """Print what is shown once. otherwise: says what follows if that cannot be done."""
    try:
        click.echo(text)
    except OSError as error:
        raise FlightchainError(
            f"cannot write to standard output: {error.strerror}; {otherwise}"
        ) from error


@contextmanager
def explained_damage(folder: Path) -> Iterator[None]:
    """Let an error about a damaged block of `folder` say where it is, and what to do."""
    try:
        yield
    except Damage as error:
        if remedy := _remedy(folder, error):
            raise Damage(f"{error}; {remedy}") from error
        raise


def _remedy(folder: Path, error: Damage) -> str:
    """Return what to do about damage; "" if the error says it."""
    from backend.storage.layout import BLOCKS_FOLDER, is_backup
    from backend.storage.recovery import WHAT_TO_DO

    if "Permission denied" in str(error):  # its files may be good
        return ""
    if is_backup(folder):
        return "this is a backup; if its ledger still exists, make a new one in another folder"
    is_silent = isinstance(error, DamagedBlock) and WHAT_TO_DO not in str(error)
    return f"it is in {folder / BLOCKS_FOLDER}; {WHAT_TO_DO}" if is_silent else ""
