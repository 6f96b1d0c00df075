"""Defines the commands for the log of the chain and for witnesses. `cli` adds them to its own."""

import shlex
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from socket import gethostname

import click

from backend.settings import NO_WITNESS, Settings


def say(line: str) -> None:
    """Write a line to standard error, at once even in a pipe."""
    click.echo(line, err=True)


@click.group()
def log() -> None:
    """Show or change the key of the chain's log."""


@log.command("key")
@click.pass_obj
def print_key(settings: Settings) -> None:
    """Print the key that verifies checkpoints."""
    from backend.transparency.secret_keys import log_key

    click.echo(str(log_key(settings.folder).verifier))


@log.command("rotate-key")
@click.pass_obj
def rotate_key(settings: Settings) -> None:
    """Give the log a new key, which the old one signs.

    Whoever trusts the old key can follow: all proofs hold the signature. The service may run.
    """
    from backend.sealing.miner import Sealer
    from backend.transparency.rotation import rotate

    with closing(Sealer(settings, say)) as sealer, sealer.writing(wait=True):
        found = rotate(settings.folder)
    say("the log has a new key, which the old one has signed; it follows:")
    click.echo(str(found.verifier))


@click.command()
@click.option("--once", is_flag=True, help="Ask for the newest checkpoint, and end.")
@click.pass_obj
def cosign(settings: Settings, once: bool) -> None:
    """Ask witnesses to cosign each checkpoint.

    FLIGHTCHAIN_WITNESSES names them. With --once, the exit status is 1 unless all of them have
    cosigned the newest one.
    """
    from backend.storage.block_store import BlockStore
    from backend.transparency.tree import HistoryTree
    from backend.witness.asking import Asker, witnesses_in

    if settings.witnesses == NO_WITNESS:
        raise click.UsageError("FLIGHTCHAIN_WITNESSES names no witness")
    with closing(BlockStore(settings.folder)) as store:
        witnesses = witnesses_in(settings.witnesses)
        asker = Asker(settings.folder, HistoryTree(store), witnesses, say)
        if once:
            sys.exit(not asker.look())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, frame: asker.stop())
        asker.run()


@click.command()
@click.argument("urls", nargs=-1, metavar="[URL]…")
@click.option("--folder", type=click.Path(path_type=Path), default="witness", show_default=True,
              help="Where the witness keeps its key and what it has seen.")  # fmt: skip
@click.option("--key", "keys", multiple=True, help="The key of a log; may be given several times.")
@click.option("--silent-after", type=click.FloatRange(0), default=24.0, show_default=True,
              metavar="HOURS", help="How long a log may go without a new block.")  # fmt: skip
@click.option("--alarm", metavar="COMMAND", help="Run COMMAND with a message if a log is not fine.")
@click.option("--listen", metavar="HOST:PORT", help="Cosign what logs send, instead of looking.")
def witness(
    urls: tuple[str, ...],
    folder: Path,
    keys: tuple[str, ...],
    silent_after: float,
    alarm: str | None,
    listen: str | None,
) -> None:
    """Look at other logs, and cosign those that only grow.

    URL is where a log's `checkpoint` is, such as http://pi:8000/log. The key of a log that is not
    named with --key is taken from a Flightchain when it is first seen. The exit status is 0 if all
    logs are fine, 3 if one is silent, and 4 if one was put back or has forked.
    """
    from backend.transparency.notes import NoteError, parse_key
    from backend.witness.following import Follower, Verdict
    from backend.witness.witness import Witness

    try:
        logs = [parse_key(key) for key in keys]
    except NoteError as error:
        raise click.UsageError(f"--key: {error}") from error
    if bool(urls) == bool(listen):
        raise click.UsageError("name the logs to look at, or --listen")
    host, _, port = (listen or "").rpartition(":")
    if listen and not (port.isdecimal() and logs):
        raise click.UsageError("--listen takes HOST:PORT, and --key names the logs to cosign")
    one = Witness(folder, f"{gethostname()}/flightchain-witness")
    if listen:
        from backend.service.witness_server import run_witness

        say(f"this witness is {one.key.verifier}")
        run_witness(one, logs, host.strip("[]"), int(port))
        return
    follower = Follower(one, logs, 3600 * silent_after)
    found = [follower.look(url) for url in urls]
    for finding in found:
        say(finding.message)
        if alarm and finding.verdict is not Verdict.FINE:
            subprocess.run([*shlex.split(alarm), finding.message], check=False)  # noqa: S603  as told
    sys.exit(max(finding.verdict for finding in found))


@click.command()
def cheat() -> None:
    """Try to cheat on a throw-away chain, and tell what notices it."""
    from backend.cheating.cheats import try_all

    for one in try_all():
        click.echo(f"{one.name}: {one.what}")
        for who, says in (("verify", one.verify), ("a witness", one.witness)):
            click.echo(f"    {who} says: {says}" if says else f"    {who} notices nothing")


COMMANDS = (cheat, cosign, log, witness)
