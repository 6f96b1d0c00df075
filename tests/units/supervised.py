"""The supervisor of a service, whose children are each confined as the unit that has their task.

So the processes are the installation's, with its filters and limits, and are started again by the
supervisor as they would be by systemd. Where a confinement is impossible they run without, and
`reason_without` says why.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from tests.api.processes import Service, serving
from tests.units import Confinement, confined, reason_without_filters
from tests.units.memory import reason_without_groups

UNIT_OF_CHILD = {"the miner": "miner", "the web server": "backend", "the frontend": "frontend"}
PROGRAM = """
import json, sys
from backend.cli.commands import main
from backend.service import supervisor

launchers, sys.argv[1:2] = json.loads(sys.argv[1]), []

class Child(supervisor.Child):
    def __init__(self, name, *arguments):
        super().__init__(name, *arguments)
        self._command = [*launchers[name], *self._command]

supervisor.Child = Child
main()
"""


class Supervised:
    """Confinements for the service in `folder`; `close` ends all that is left in them.

    more: further folders that the service may write to. Its temporary files and its counts are in
    one of its own beside `folder`.
    """

    def __init__(self, folder: Path, *more: Path) -> None:
        self._stack = ExitStack()
        self._run = folder.with_name(f"{folder.name}.run")
        self._run.mkdir(parents=True, exist_ok=True)
        writable = (folder, self._run, *more)
        self.units: dict[str, Confinement] = {}
        for child, name in UNIT_OF_CHILD.items() if not reason_without_filters() else ():
            self.units[child] = self._stack.enter_context(confined(name, *writable))

    def command(self, *arguments: str) -> list[str]:
        """The command that serves, with these arguments of `serve`."""
        if not self.units:
            return [sys.executable, "-m", "backend", "serve", *arguments]
        launchers = json.dumps({child: unit.command() for child, unit in self.units.items()})
        return [sys.executable, "-c", PROGRAM, launchers, "serve", *arguments]

    def settings(self) -> dict[str, str]:
        """Variables of the environment that keep what is written in the folder for that."""
        return {"TMPDIR": str(self._run)}

    def killed(self) -> str:
        """Which limits of memory were reached, in words; "" if none was."""
        kills = {child: unit.kills for child, unit in self.units.items() if unit.kills}
        return ", ".join(f"{child} ({count})" for child, count in kills.items())

    def close(self) -> None:
        """End what is left. Raises AssertionError if a limit of memory was reached."""
        killed = self.killed()
        self._stack.close()
        shutil.rmtree(self._run, ignore_errors=True)
        assert not killed, f"processes were killed at the memory limits of their units: {killed}"


@contextmanager
def serving_confined(folder: Path, *arguments: str, **more: Any) -> Iterator[Service]:
    """A service of `backend.serving` that is ready, each process of it confined as its unit."""
    with closing(Supervised(folder)) as units:
        command = tuple(units.command(*arguments))
        with serving(folder, command=command, **{**units.settings(), **more}) as service:
            yield service


def reason_without() -> str:
    """Returns what of filters and limits cannot be had here, and why; "" if all can."""
    if reason := reason_without_filters():
        return f"without the filters and limits of the units: {reason}"
    reason = reason_without_groups()
    return f"without the memory limits of the units: {reason}" if reason else ""
