"""Defines the command line, `python -m backend`: all that people do with a ledger in a terminal.

Answers go to standard output as JSON, messages and progress to standard error. The exit status is 0
if all was done, 1 for an error, which one line names, 2 for a command that was called wrongly, and
130 for Ctrl-C.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from errno import ENOSPC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from backend.base.errors import Damage, FlightchainError, TryLater
from backend.base.files import reason_of
from backend.base.processes import interruption
from backend.base.progress import counting
from backend.base.settings import Settings, from_environment
from backend.base.version import VERSION, commit
from backend.base.words import counted
from backend.cli import cluster_commands, log_commands, serve_commands
from backend.cli.export_commands import export
from backend.cli.import_command import import_command
from backend.cli.output import explained_damage, members, print_json, print_once, say
from backend.cli.paths import LocalPath
from backend.cli.sent_file import sent_file

if TYPE_CHECKING:
    from backend.verify.repeated import Again

MOST_CHECKING = 4  # how many processes `verify` starts by default: a Pi has as many cores
HELP = {"-h", "--help"}
WITHOUT_SETTINGS = HELP | {"--version"}
HELD = ("height", "tip_hash", "transactions", "pending")


def _held_words(held: dict[str, Any]) -> str:
    mined = counted(held["transactions"], "transaction")
    waiting = counted(held["pending"], "pending flight")
    return f"blocks 0 to {held['height']} with {mined}, and {waiting}"


class Commands(click.Group):
    """A group of commands that shows errors in one line, and Ctrl-C without a traceback."""

    def invoke(self, context: click.Context) -> Any:
        try:
            interruption.may_be_caught()
            if not _needs_no_settings():  # help is shown even if a setting is wrong
                context.obj = from_environment(os.environ)
            return super().invoke(context)
        except FlightchainError as error:
            say(f"error: {error}")
            sys.exit(1)
        except BrokenPipeError:  # nobody reads on; click ends quietly
            raise
        except OSError as error:
            nameless = "standard output" if error.errno == ENOSPC else "the system"
            reason = f"{nameless}: {error.strerror}"
            if error.filename or not isinstance(error, PermissionError):  # which has advice
                reason = reason_of(error, error.filename or nameless)
            say(f"error: {reason}")
            sys.exit(1)
        except (KeyboardInterrupt, click.Abort):
            say(interruption.STOPPED)
            sys.exit(interruption.STATUS)


def _needs_no_settings() -> bool:
    words = sys.argv[1:]
    return not WITHOUT_SETTINGS.isdisjoint(words[: words.index("--")] if "--" in words else words)


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"flightchain {VERSION} ({commit()})")
        context.exit()


@click.group(cls=Commands, context_settings={"help_option_names": sorted(HELP)})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show release and commit, and exit.",
)
def main() -> None:
    """Keep flight records in a blockchain, and ask three questions about them.

    Environment variables FLIGHTCHAIN_… set the ledger's folder and everything else;
    docs/reference/settings.md lists them.
    """


@main.group()
def token() -> None:
    """Add, list and remove tokens for writing.

    Posting flights needs a token if other machines can reach the service, or if
    FLIGHTCHAIN_REQUIRE_TOKEN is 1. Fetching months by POST /months always needs one.
    """


@token.command("add")
@click.argument("name")
@click.pass_obj
def add_token(settings: Settings, name: str) -> None:
    """Create a token for NAME and print it once."""
    from backend.storage.layout import require_ledger
    from backend.storage.tokens import Tokens

    require_ledger(settings.folder)
    tokens = Tokens(settings.folder)
    secret = tokens.add(name)
    say(f"this is the token of {name}; keep it, because only its hash is stored:")
    try:
        print_once(secret, "no token was created")
    except FlightchainError:
        tokens.remove(name)  # nobody has it
        raise


@token.command("list")
@click.pass_obj
def list_tokens(settings: Settings) -> None:
    """List the names that have a token."""
    from backend.storage.layout import is_backup
    from backend.storage.tokens import ADD, Tokens

    entries = Tokens(settings.folder).all()
    for entry in entries:
        click.echo(entry.name)
    if not entries:
        remedy = "" if is_backup(settings.folder) else f"; create one with: {ADD}"
        say(f"there are no tokens for {settings.folder}{remedy}")


@token.command("remove")
@click.argument("name")
@click.pass_obj
def remove_token(settings: Settings, name: str) -> None:
    """Revoke NAME's token immediately."""
    from backend.storage.layout import require_ledger
    from backend.storage.tokens import MAKE_ONE, Tokens, are_needed

    require_ledger(settings.folder)
    tokens = Tokens(settings.folder)
    tokens.remove(name)
    say(f"the token of {name} is revoked")
    if are_needed(settings) and not tokens.all():
        say(f"the service does not start again without a token; {MAKE_ONE}")


# --- looking ---------------------------------------------------------------------------------


@main.command()
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=lambda: min(MOST_CHECKING, len(os.sched_getaffinity(0))),
    show_default=f"one for each core, at most {MOST_CHECKING}",
    help="Number of processes that check blocks.",
)
@click.option(
    "--since",
    metavar="HEIGHT",
    help="Of blocks up to HEIGHT, which were verified before, only check that no byte has changed; "
    "`last` is the last block that was verified.",
)
@click.option("--chain-only", is_flag=True, help="Check only the blocks.")
@click.pass_obj
def verify(settings: Settings, processes: int, since: str | None, chain_only: bool) -> None:
    """Check every byte of the chain, the index and pending flights.

    With --since, everything is checked as if for the first time if a byte of these blocks has
    changed, and the index if it has. That finds damage, but no forgery: who can change blocks can
    change `verified.json`, which remembers their bytes.

    The exit status is 1 if there is a problem, or if acknowledged flights were lost, even if void
    entries hold their places.
    """
    from backend.mempool import FOLDER as MEMPOOL_FOLDER
    from backend.mempool.lost_files import lost_in
    from backend.storage.layout import is_backup
    from backend.verify.backup import require_restorable
    from backend.verify.repeated import MEMORY, verify_again

    memory = MEMORY.read(settings.folder)
    if since == "last":
        height = memory.height if memory else None
    else:
        height = None if since is None else _height(since)
    with explained_damage(settings.folder), counting("verifying", "block") as progress:
        result = verify_again(settings.folder, progress, processes, height, chain_only=chain_only)
    if not chain_only and is_backup(settings.folder):
        require_restorable(settings.folder)
    if result.note:
        say(result.note)
    sums = result.verified
    say(
        f"blocks 0 to {sums.height} with {counted(sums.transactions, 'transaction')} are as they "
        f"were sealed; {_also_checked(settings, result, height, chain_only=chain_only)}"
    )
    if result.forgotten:
        say(f"this check was not noted, so --since cannot build on it: {result.forgotten}")
    lost = [] if chain_only else lost_in(settings.folder / MEMPOOL_FOLDER)
    print_json({"height": sums.height, "tip_hash": sums.tip_hash, "verified": not lost})
    sys.exit(1 if lost else 0)  # until a person has seen to them, as `/health/ready` says


def _also_checked(
    settings: Settings, result: "Again", since: int | None, *, chain_only: bool
) -> str:
    """Return what was checked besides the blocks, in words. since: up to which bytes alone were."""
    from backend.cluster.engine_files import check_engine

    sums, before = result.verified, result.before
    words = [sums.index, sums.mempool, "" if chain_only else check_engine(settings)]
    if before:
        words.insert(0, f"up to block {since} their bytes are those of {before.time}")
        if before.index and not chain_only:
            words.insert(1, f"the bytes of the index are those of {before.index.time}")
    return "; ".join(filter(None, words)) or "nothing else was checked"


def _height(text: str) -> int:
    """Read a height. Raises BadParameter."""
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    raise click.BadParameter(f"{text!r} is not the height of a block, such as 12")


@main.command()
@click.argument("height")
@click.pass_obj
def show(settings: Settings, height: str) -> None:
    """Print block HEIGHT, or the newest block (`tip`), as JSON."""
    wanted = None if height == "tip" else _height(height)
    with _ledger(settings) as ledger:
        at = ledger.tip().height if wanted is None else wanted
        print_json(msgspec.Raw(ledger.encoded_block(at, 0, 1000).json))


@main.command()
@click.pass_obj
def tip(settings: Settings) -> None:
    """Print the newest block and the number of pending flights."""
    with _ledger(settings) as ledger:
        print_json(ledger.tip())


@main.command()
@click.argument("question")
@click.argument("parameters", nargs=-1, metavar="[NAME=VALUE]…")
@click.pass_obj
def query(settings: Settings, question: str, parameters: tuple[str, ...]) -> None:
    """Ask one of the three questions.

    QUESTION is filter_transactions, average_delays or flight_counter. The parameters are those of
    the REST service without `format`; the answer is JSON. For example: query average_delays
    OP_CARRIER_AIRLINE_ID=20366 INITIAL_DATE=2013-01-01 FINAL_DATE=2013-01-31
    """
    from backend.questions.values import NAMES, asked

    kinds: dict[str, type[Any]] = {name: kind for kind, name in NAMES.items()}
    given: dict[str, str] = {}
    for parameter in parameters:
        name, equals, value = parameter.partition("=")
        if not equals or name in given:
            raise click.BadParameter(f"{parameter!r} is not NAME=VALUE, or {name} is given twice")
        given[name] = value
    if question not in kinds:
        raise click.BadParameter(f"unknown question {question!r}; allowed: {', '.join(kinds)}")
    with _ledger(settings) as ledger:
        print_json(ledger.answers.answer(*asked(kinds[question], given)))


@main.command("accept-loss")
@click.pass_obj
def accept_loss(settings: Settings) -> None:
    """Go on with blocks that are older than the rest of the folder.

    Restore a backup instead if there is one.

    If `blocks/` was put back to an earlier state, nothing is sealed or signed until it is newer
    again, because others may have seen the missing blocks. This command gives the missing blocks
    up: it rebuilds the index and signs the chain as it is. Acknowledged flights that are nowhere
    else are named as lost, and void entries take their places. Witnesses, and everybody who has
    kept a checkpoint, will refuse what follows.
    """
    from backend.sealing.sealer import Sealer
    from backend.verify.folder_check import exchanged_from, require_chain

    require_chain(settings.folder, recovers=True)
    with suppress(Damage), closing(Sealer(settings, say)) as sealer:
        with sealer.writing(wait=True, follow=False, sign=False):  # as the miner does
            sealer.mempool.pending(1)
        say("no block is missing, so nothing is given up")
        return
    if (first := exchanged_from(settings.folder)) is not None:
        say(f"from transaction {first} on, ids stand for other flights than before")
    with closing(Sealer(settings, say, accepts_loss=True)) as sealer, sealer.writing(wait=True):
        height = sealer.height()
    say(f"the chain continues after block {height}; later blocks are given up")


@main.command()
@click.pass_obj
def reindex(settings: Settings) -> None:
    """Rebuild the index from the chain.

    The service uses the old index meanwhile.
    """
    from backend.sealing.sealer import Sealer
    from backend.verify.folder_check import require_chain

    require_chain(settings.folder, recovers=True)
    with (
        closing(Sealer(settings, say)) as sealer,
        sealer.writing(wait=True, follow=False),
        explained_damage(settings.folder),
        counting("making the index", "block") as progress,
    ):
        sealer.index.rebuild(progress)
        height = sealer.height()
    say(f"the index has blocks 0 to {height}")


# --- backup ----------------------------------------------------------------------------------


@main.command()
@click.argument("folder", type=LocalPath())
@click.pass_obj
def backup(settings: Settings, folder: Path) -> None:
    """Create or update the backup in FOLDER.

    The first backup needs an empty folder. The service may run meanwhile. The command copies only
    what is new, reads the copy again, and checks it.
    """
    from backend.verify.backup import back_up

    with counting("copying and checking", "block") as progress:
        result = back_up(settings, folder, report=say, progress=progress)
    held = members(result.manifest, *HELD)
    new = counted(result.new_blocks, "block was", "blocks were")
    say(f"{folder} holds {_held_words(held)}; {new} new")
    print_json({
        **held,
        "new_blocks": result.new_blocks,
        "new_bytes": result.new_bytes,
        "seconds": round(result.seconds, 3),
    })  # fmt: skip


@main.command()
@click.argument("folder", type=LocalPath(exists=True, file_okay=False))
@click.pass_obj
def restore(settings: Settings, folder: Path) -> None:
    """Restore a ledger and its index from the backup in FOLDER.

    The ledger's folder must not hold a ledger yet. The command checks the whole backup before it
    puts anything in place.
    """
    from backend.verify.backup import restore as restore_backup

    watched = partial(counting, unit="block")
    manifest = restore_backup(settings, folder, watched=watched, report=say)
    held = members(manifest, *HELD)
    say(f"{settings.folder} holds {_held_words(held)}, as on {manifest.time}")
    say(
        "put back your copies of log.key and log.vkey before the service starts; otherwise the log "
        "gets a new key"
    )
    print_json({**held, "time": manifest.time})


@contextmanager
def _ledger(settings: Settings) -> Iterator[Any]:
    from backend.ledger.ledger import Ledger
    from backend.storage.block_store import BlockStore
    from backend.verify.folder_check import require_chain, require_one_ledger

    require_chain(settings.folder)
    with explained_damage(settings.folder), closing(Ledger(settings, say)) as ledger:
        try:
            yield ledger
        except TryLater:  # if blocks were lost, no index is built meanwhile
            with closing(BlockStore(settings.folder)) as store:
                require_one_ledger(settings.folder, store, accepts_loss=False)
            raise


for command in (
    import_command,
    sent_file,
    export,
    *serve_commands.COMMANDS,
    *log_commands.COMMANDS,
    *cluster_commands.COMMANDS,
):
    main.add_command(command)
