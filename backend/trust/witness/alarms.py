"""Runs the command that tells somebody that a log is not fine."""

import shlex
import subprocess

from backend.base.errors import FlightchainError

ALARM_WITHIN_S = 60.0


class AlarmFailed(FlightchainError):
    """The alarm could not be raised, or its command says that it failed."""


def command_in(text: str) -> list[str]:
    """Return the words of a command, as a shell reads them. Raises ValueError if it is empty."""
    words = shlex.split(text)
    if not words or not words[0]:
        raise ValueError("the command is empty")
    return words


def raise_alarm(command: list[str], message: str) -> None:
    """Run a command with a message as its last argument. Raises AlarmFailed."""
    try:
        done = subprocess.run(  # noqa: S603  as whoever called us wants
            [*command, message], stdin=subprocess.DEVNULL, check=False, timeout=ALARM_WITHIN_S
        )
    except OSError as error:
        raise AlarmFailed(f"{command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        reason = f"{command[0]} did not end within {ALARM_WITHIN_S:g} s and was killed"
        raise AlarmFailed(reason) from error
    if done.returncode:
        raise AlarmFailed(f"{command[0]} ended with status {done.returncode}")
