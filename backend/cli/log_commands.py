"""Defines the commands for the log, for witnesses and for cheats. `cli` adds them to its own."""

import signal
import sys
from contextlib import closing
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

import click

from backend.base.errors import FlightchainError, WriteFailed
from backend.base.settings import NO_WITNESS, Settings, require_http
from backend.base.words import COMMAND, counted
from backend.cli.output import print_once, say
from backend.cli.paths import LocalPath, require_no_ledger

if TYPE_CHECKING:
    from backend.trust.log.notes import VerifierKey
    from backend.trust.witness.following import Finding
    from backend.trust.witness.witness import Witness


SHOW = f"{COMMAND} log key"
LISTEN_TAKES = "--listen takes HOST:PORT, and needs --key for each log to cosign"


@click.group()
def log() -> None:
    """Show or change the key of the chain's log."""


@log.command("key")
@click.pass_obj
def print_key(settings: Settings) -> None:
    """Print the key that verifies checkpoints."""
    from backend.trust.log.secret_keys import log_key

    click.echo(str(log_key(settings.folder).verifier))


@log.command("rotate-key")
@click.pass_obj
def rotate_key(settings: Settings) -> None:
    """Give the log a new key, which the old one signs.

    Those who trust the old key can follow, because all proofs hold its signature. The service may
    run meanwhile.
    """
    from backend.sealing.sealer import Sealer
    from backend.trust.log.rotation import rotate
    from backend.verify.folder_check import require_chain

    _require_own_log(settings, "give all of them a new key with `scripts/cluster log-key --new`")
    require_chain(settings.folder, recovers=True)
    try:
        with closing(Sealer(settings, say)) as sealer, sealer.writing(wait=True):
            rotation = rotate(settings.folder)
    except WriteFailed as error:
        raise WriteFailed(f"{error}; `{SHOW}` shows whether the log has a new key") from error
    say(
        "the log has a new key, which the old key has signed; make a backup, and copies of log.key "
        "and log.vkey, because those of the old key are of no use now; the new key is:"
    )
    print_once(str(rotation.verifier), f"`{SHOW}` shows the new key")


@log.command("rebuild-successions")
@click.argument("proofs", nargs=-1, required=True, type=LocalPath(exists=True))
@click.pass_obj
def rebuild_successions_command(settings: Settings, proofs: tuple[Path, ...]) -> None:
    """Rebuild `log.successions` from files with PROOFS.

    Each proof holds signatures of the log's older keys for the keys that followed. The command
    checks them; they must lead to the present key. The service may run meanwhile.
    """
    from backend.sealing.sealer import Sealer
    from backend.trust.log.secret_keys import log_key
    from backend.trust.log.successions import notes_in_proof, rebuild_successions
    from backend.verify.folder_check import require_chain

    _require_own_log(settings, "put a copy of another node's log.successions there")
    require_chain(settings.folder, recovers=True)
    texts = [text for path in proofs for text in notes_in_proof(path)]
    with closing(Sealer(settings, say)) as sealer, sealer.writing(wait=True, sign=False):
        count = rebuild_successions(settings.folder, log_key(settings.folder), texts)
    say(f"log.successions holds {counted(count, 'signature')}, which lead to the present key")


def _require_own_log(settings: Settings, remedy: str) -> None:
    """Raise FlightchainError with the remedy if a cluster keeps the ledger."""
    from backend.storage.receipt_store import belongs_to_cluster

    if belongs_to_cluster(settings.folder):
        raise FlightchainError(
            f"the ledger in {settings.folder} belongs to a cluster, whose nodes share the key of "
            f"the log; {remedy}"
        )


@click.command()
@click.option("--once", is_flag=True, help="Ask once, about the newest checkpoint, then end.")
@click.pass_obj
def cosign(settings: Settings, once: bool) -> None:
    """Ask witnesses to cosign each checkpoint.

    FLIGHTCHAIN_WITNESSES names the witnesses; without any, the command ends. With --once, the exit
    status is 0 if all have cosigned the newest checkpoint, 1 if one has not, 2 without witnesses.
    """
    from backend.storage.block_store import BlockStore
    from backend.trust.log.tree import HistoryTree
    from backend.trust.witness.cosign_requests import Asker, witnesses_in

    if settings.witnesses == NO_WITNESS and once:
        raise click.UsageError("FLIGHTCHAIN_WITNESSES names no witness; set it to KEY URL")
    if settings.witnesses == NO_WITNESS:  # a unit or container that always starts it is done
        say("FLIGHTCHAIN_WITNESSES names no witness, so nobody is asked")
        return
    with closing(BlockStore(settings.folder)) as store:
        witnesses = witnesses_in(settings.witnesses)
        asker = Asker(settings.folder, HistoryTree(store), witnesses, say)
        if once:
            sys.exit(not asker.look())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda received, frame: asker.stop())
        asker.run()


def _key(text: str) -> "VerifierKey":
    from backend.trust.log.notes import NoteError, parse_key

    try:
        return parse_key(text)
    except NoteError as error:
        raise click.UsageError(f"--key: {error}") from error


def _name(text: str) -> str:
    from backend.trust.log.notes import is_name

    if not (is_name(text) and text.isprintable()):
        raise click.UsageError("--name must be printable, and without spaces and +")
    return text


def _command(text: str) -> list[str]:
    from backend.trust.witness.following import command_in

    try:
        return command_in(text)
    except ValueError as error:
        raise click.UsageError(f"--alarm: {error}") from error


def _log_url(text: str) -> str:
    try:
        require_http(text)
    except ValueError as error:
        raise click.UsageError(f"the URL {text!r} {error}") from error
    return text


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isdecimal() and port.isascii() and int(port) < 1 << 16):
        raise click.UsageError(LISTEN_TAKES)
    return host.strip("[]"), int(port)


@click.command()
@click.argument("urls", nargs=-1, type=_log_url, metavar="[URL]…")
@click.option("--folder", type=LocalPath(), default="witness", show_default=True,
              help="Folder of the witness's key and of what it has seen.")  # fmt: skip
@click.option("--name", type=_name, metavar="NAME",
              help="Name of a new witness, such as example.org/pi. The default is made of "
              "the name of this machine.")  # fmt: skip
@click.option("--key", "keys", type=_key, metavar="KEY", multiple=True,
              help="Key of a log; may be given several times.")  # fmt: skip
@click.option("--silent-after", type=click.FloatRange(0), default=24.0, show_default=True,
              metavar="HOURS", help="Hours that a log may go without a new block.")  # fmt: skip
@click.option("--alarm", type=_command, metavar="COMMAND",
              help="Run COMMAND with a message if a log has a problem.")  # fmt: skip
@click.option("--listen", type=_address, metavar="HOST:PORT",
              help="Wait for logs to send checkpoints, and cosign those, instead of "
              "asking.")  # fmt: skip
def witness(
    urls: tuple[str, ...],
    folder: Path,
    name: str | None,
    keys: "tuple[VerifierKey, ...]",
    silent_after: float,
    alarm: list[str] | None,
    listen: tuple[str, int] | None,
) -> None:
    """Look at other logs, and cosign those that only grow.

    URL is the address above a log's `checkpoint`, such as http://pi:8000/log. Without --key, the
    key of a Flightchain is taken from its log at the first look.

    The exit status is 0 if all logs are fine, 3 if one is silent, 4 if one was put back, has forked
    or was replaced by another, and 5 if the witness cannot do its work.
    """
    if bool(urls) == bool(listen):
        raise click.UsageError("give either the URLs of logs, or --listen HOST:PORT")
    if len({key.name for key in keys}) < len(set(keys)):
        raise click.UsageError("--key names two keys of the same log; name only its current key")
    if not listen:
        sys.exit(_look(folder, name, keys, 3600 * silent_after, urls, alarm))
    if not keys:
        raise click.UsageError(LISTEN_TAKES)
    from backend.service.supervisor import require_port
    from backend.service.witness_server import run_witness

    require_port(*listen, "choose another HOST:PORT for --listen")
    cosigner = _witness(folder, name)
    say(f"this witness is {cosigner.key.verifier}")
    run_witness(cosigner, keys, *listen)


def _look(
    folder: Path,
    name: str | None,
    keys: "tuple[VerifierKey, ...]",
    silent_after_s: float,
    urls: tuple[str, ...],
    alarm: list[str] | None,
) -> int:
    """Look at each log, and say how it was found. Returns the exit status."""
    from backend.trust.witness.following import Follower, Verdict, finding, worst

    findings = []
    try:
        follower = Follower(_witness(folder, name), keys, silent_after_s)
    except FlightchainError as error:
        findings.append(finding(Verdict.UNABLE, error))
        _tell(findings[-1], alarm)
    else:
        for url in urls:
            findings.append(follower.look(url))
            _tell(findings[-1], alarm)
    return worst(findings)


def _witness(folder: Path, name: str | None) -> "Witness":
    """Return the witness in a folder, which gets this name if it is new."""
    from backend.trust.log.secret_keys import WITNESS, exposure
    from backend.trust.witness.witness import Witness

    if not (folder / WITNESS.secret).exists():
        require_no_ledger(folder)
    witness = Witness(folder, name or f"{gethostname()}/flightchain-witness")
    kept_name = witness.key.verifier.name
    if name not in {None, kept_name}:
        raise click.UsageError(
            f"--name: the witness in {folder} is named {kept_name}, and keeps its name; "
            "use another --folder for another witness"
        )
    if warning := exposure(folder, WITNESS):
        say(warning)
    return witness


def _tell(finding: "Finding", alarm: list[str] | None) -> None:
    """Say how a log was found, and raise the alarm if it is not fine."""
    from backend.trust.witness.following import AlarmFailed, raise_alarm

    say(finding.message)
    if alarm and finding.verdict:
        try:
            raise_alarm(alarm, finding.message)
        except AlarmFailed as error:
            say(f"the alarm command failed: {error}")


@click.command()
def cheat() -> None:
    """Cheat on a temporary chain and show which check notices it."""
    from backend.trust.cheating import try_all

    for outcome in try_all():
        click.echo(f"{outcome.name}: {outcome.what}")
        for who, says in (("verify", outcome.verify), ("a witness", outcome.witness)):
            click.echo(f"    {who} says: {says}" if says else f"    {who} notices nothing")


COMMANDS = (cheat, cosign, log, witness)
