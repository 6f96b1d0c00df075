"""Writes messages to standard error, and answers to standard output."""

from typing import Any

import click
import msgspec

from backend.base.errors import FlightchainError


def say(line: str) -> None:
    """Write a line to standard error, at once even in a pipe."""
    click.echo(line, err=True)


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
