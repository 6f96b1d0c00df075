"""Runs the consensus engine, CometBFT, as a child process, and asks it over its socket.

The engine keeps its own configuration, keys and blocks in its folder (`home`). This module starts
the program in that folder, with two Unix sockets in it, one for ABCI and one for questions, so the
engine opens one port only: that for its peers. Its sockets have no folder in their names, which may
not be longer than 107 bytes.
"""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from backend.base import files
from backend.base.errors import FlightchainError, TryLater
from backend.base.processes.parent_death import dying_with_parent
from backend.base.words import printable
from backend.chain.json_objects import Json
from backend.cluster.engine_files import REBUILD, peers_in
from backend.cluster.membership import PUT_BACK, SET_CLOCK
from backend.cluster.socket_server import socket_name

VERSION = "0.38.26"
MODULE = "github.com/cometbft/cometbft/cmd/cometbft"
VARIABLE = "COMETBFT"  # names the program, if it is not in the PATH nor where Go installs
ABCI_SOCKET, RPC_SOCKET = "abci.sock", "rpc.sock"
ANSWER_WITHIN_S = 10.0
STOP_WITHIN_S = 15.0
MOST_COMPLAINT = 400  # characters

# These begin lines that say why the engine ends.
_COMPLAINTS = ("ERROR", "Error", "panic:", "fatal error:", "failed")
_TOO_NEW = re.compile(r"block time (\S+ [\d:]{8})\S* \S+ UTC is too far in the future")
_IN_CACHE = "already exists in cache"  # what the engine says of a transaction that it has


def program() -> Path:
    """Return the engine's program. Raises FlightchainError without the right version."""
    named = os.environ.get(VARIABLE) or shutil.which("cometbft")
    path = Path(named) if named else Path.home() / "go" / "bin" / "cometbft"
    advice = f"build it with: go install {MODULE}@v{VERSION}"
    if not os.access(path, os.X_OK):
        raise FlightchainError(f"the consensus engine {path} is missing; {advice}")
    try:
        output = subprocess.run(  # noqa: S603  the program that the user named
            [path, "version"], capture_output=True, text=True, check=False, timeout=ANSWER_WITHIN_S
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:  # as if built for another processor
        reason = files.reason_of(error, path, advice)
        raise FlightchainError(f"the consensus engine does not run: {reason}") from error
    if output != VERSION:
        raise FlightchainError(f"{path} is version {output}, not {VERSION}; {advice}")
    return path


class Engine:
    """The engine with the folder `home`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._complaint = ""
        self.too_new = ""  # the time, UTC, of the newest block that was refused because of it
        self.too_new_s = 0.0  # when it was refused, monotonic

    def start(self) -> None:
        """Start the process. It gets SIGTERM if this process dies. Raises FlightchainError."""
        (self._home / RPC_SOCKET).unlink(missing_ok=True)
        command = [
            *(str(program().absolute()), "start", "--home", str(self._home)),
            *("--log_level", "error"),
            *("--proxy_app", f"unix://{ABCI_SOCKET}", "--rpc.laddr", f"unix://{RPC_SOCKET}"),
            "--rpc.unsafe",  # so that it can be asked to dial; only its own user reaches the socket
        ]
        self._process = subprocess.Popen(  # noqa: S603  our own command
            command,
            cwd=self._home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=dying_with_parent(signal.SIGTERM),  # noqa: PLW1509  it only calls prctl
            start_new_session=True,
        )
        self._reader = threading.Thread(
            target=self._pass_on, args=(self._process.stdout,), name="engine output", daemon=True
        )
        self._reader.start()

    def _pass_on(self, output: IO[bytes]) -> None:
        """Write what the engine says to the log of this process, and keep its first complaint."""
        self._complaint = ""
        with output:
            for line in output:
                with suppress(OSError):  # a full disk; an engine that nobody reads would end
                    sys.stderr.buffer.write(line)
                    sys.stderr.flush()
                text = printable(line.decode(errors="replace").strip(), MOST_COMPLAINT)
                if match := _TOO_NEW.search(text):
                    self.too_new, self.too_new_s = match[1], time.monotonic()
                complains = self._complaint.startswith(_COMPLAINTS)
                if text and not complains:
                    self._complaint = text
                elif text and self._complaint.endswith(":"):  # the next line says what
                    self._complaint += f" {text}"

    def end(self) -> str:
        """Return how the engine has ended, with its first complaint or its last line, and a remedy.

        "" while it runs.
        """
        status = self.status()
        if status is None:
            return ""
        if status < 0:
            return f"was ended by signal {-status}, as by a person or for want of memory"
        if self._reader is not None:
            self._reader.join(STOP_WITHIN_S)
        remedy = (
            f"if it cannot use its configuration, {PUT_BACK}; if it cannot read its data, {REBUILD}"
        )
        if _TOO_NEW.search(self._complaint):
            remedy = SET_CLOCK
        return f"ended with status {status}: {self._complaint}; {remedy}"

    def status(self) -> int | None:
        """Return the exit status of the process; None while it runs."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """End the process, and wait until it has ended."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def send(self, transaction: bytes) -> Json:
        """Give the engine a transaction. Returns what the application said: `code` and `log`.

        A transaction that it has already is good, too. Raises TryLater.
        """
        try:
            return self.ask("broadcast_tx_sync", tx=base64.b64encode(transaction).decode())
        except TryLater as error:
            if _IN_CACHE in str(error):
                return {"code": 0, "log": ""}
            raise

    def dial_peers(self) -> None:
        """Have the engine dial the peers that it is not connected with.

        By itself it dials them more and more rarely and gives up after a day, and never dials one
        whose name was not found when it started. Raises TryLater, FlightchainError.
        """
        self.ask("dial_peers", peers=peers_in(self._home).split(","))

    def ask(self, method: str, **parameters: Any) -> Json:
        """Return the result of a method of the engine's RPC. Raises TryLater if there is none."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        connection = _UnixConnection(self._home / RPC_SOCKET)
        try:
            connection.request("POST", "/", json.dumps(body), {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
        except FileNotFoundError:  # its socket, which it makes last
            raise TryLater("the consensus engine is starting") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TryLater(f"the consensus engine does not answer: {error}") from error
        finally:
            connection.close()
        if "error" in answer:
            problem = answer["error"]
            raise TryLater(
                f"the consensus engine refuses: {problem.get('data') or problem['message']}"
            )
        result: Json = answer["result"]
        return result


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_WITHIN_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        with socket_name(self._path) as name:
            self.sock.connect(name)
