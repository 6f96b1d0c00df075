"""Defines the commands that run the service. `cli` adds them to its own."""

import os
import signal
from contextlib import closing
from typing import Any

import click

from backend.base.settings import Settings
from backend.base.words import PYTHON, counted
from backend.cli.output import say


@click.command()
@click.option("--only-http", is_flag=True, help="Do not start the miner; run it separately.")
@click.option("--frontend", is_flag=True, help="Also serve the pages.")
@click.pass_obj
def serve(settings: Settings, only_http: bool, frontend: bool) -> None:
    """Serve HTTP requests and mine until SIGTERM or Ctrl-C."""
    from backend.service import supervisor
    from backend.storage.layout import make_ledger_folder, require_ledger

    if only_http and frontend:
        raise click.UsageError(
            f"--only-http does not start the pages; start them with `{PYTHON} -m frontend`"
        )
    require_ledger(settings.folder, may_be_half_restored=True)
    require_all_to_serve(settings, frontend=frontend)
    make_ledger_folder(settings.folder)
    if only_http:
        from backend.service.web_server import run_http

        run_http(settings)
        return
    supervisor.supervise(settings, say, frontend=frontend)


def require_all_to_serve(settings: Settings, *, frontend: bool) -> None:
    """Raise the error that `serve` would end with, if there is one."""
    from backend.service import supervisor
    from backend.storage import tokens

    tokens.require_some(settings)
    supervisor.require_lab(settings)
    supervisor.require_witnesses(settings)
    supervisor.require_ports(settings, frontend=frontend)


@click.command()
@click.option("--once", is_flag=True, help="Seal the flights that are pending now, then end.")
@click.pass_obj
def mine(settings: Settings, once: bool) -> None:
    """Seal pending flights into blocks until SIGTERM or Ctrl-C.

    The command finishes the current block before it ends.
    """
    from backend.base.processes.systemd import Notifier
    from backend.sealing.sealer import Sealer
    from backend.storage.layout import require_ledger

    require_ledger(settings.folder)
    if once:
        with closing(Sealer(settings, say)) as sealer:
            sealer.wait_for_clock()
            with sealer.writing(wait=True):
                sealed = sealer.seal_pending(empty=bool(settings.mine_empty))
        say(f"sealed {counted(len(sealed), 'block')}")
        return
    miner: Any
    notifier = Notifier(os.environ, say)
    if settings.engine_home is None:
        from backend.sealing.miner import Miner

        miner = Miner(settings, say, notifier)
    else:
        from backend.cluster.node import Node

        miner = Node(settings, say, notifier)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: miner.stop())
    miner.run()


COMMANDS = (serve, mine)
