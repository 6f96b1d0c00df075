"""Asks a person in a terminal whether to go on."""

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}
MOST_BYTES = 1024


def confirm(question: str) -> bool:
    """Return whether a person says yes. Raises KeyboardInterrupt for Ctrl-C and Ctrl-D.

    `input` loses a Ctrl-C that comes after the question is shown and before it waits for an answer.
    """
    while True:
        with _signals() as signals:
            click.echo(f"{question} [y/N]: ", err=True, nl=False)
            select.select([sys.stdin, signals], [], [])
            line = os.read(sys.stdin.fileno(), MOST_BYTES).decode(errors="replace")
        if not line:
            raise KeyboardInterrupt
        if (answer := ANSWERS.get(line.strip().lower())) is not None:
            return answer
        click.echo("Please answer y or n.", err=True)


@contextmanager
def _signals() -> Iterator[int]:
    """Yield a descriptor that can be read once a signal has come."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
