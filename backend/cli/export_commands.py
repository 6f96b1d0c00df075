"""Defines the commands that copy flights into files for other programs."""

from importlib.util import find_spec
from pathlib import Path

import click

from backend.base.errors import FlightchainError
from backend.base.progress import counting
from backend.base.settings import Settings
from backend.base.words import counted
from backend.cli.output import explained_damage, members, print_json, say
from backend.cli.paths import LocalPath, require_no_ledger

HELD = ("height", "tip_hash", "flights")


@click.group()
def export() -> None:
    """Copy flights to Parquet, and compare that with the chain."""
    if find_spec("pyarrow") is None:
        from backend.sources.columnar import INSTALL_PYARROW

        raise FlightchainError(f"exports need pyarrow; install it with `{INSTALL_PYARROW}`")


@export.command("parquet")
@click.argument("folder", type=LocalPath(file_okay=False))
@click.pass_obj
def export_parquet(settings: Settings, folder: Path) -> None:
    """Write all flights into FOLDER, or add those that are new.

    The first export needs an empty folder. The service may run meanwhile.
    """
    from backend.export.parquet import export as export_to

    require_no_ledger(folder)
    with explained_damage(settings.folder), counting("exporting", "block") as progress:
        result = export_to(settings.folder, folder, progress)
    manifest = result.manifest
    flights, new = counted(manifest.flights, "flight"), f"{result.new_flights:,} of them new"
    say(f"{folder} holds the {flights} of blocks 0 to {manifest.height}, {new}")
    new_sizes = {"new_flights": result.new_flights, "new_bytes": result.new_bytes}
    print_json(members(manifest, *HELD) | new_sizes)


@export.command("check")
@click.argument("folder", type=LocalPath(exists=True, file_okay=False))
@click.pass_obj
def export_check(settings: Settings, folder: Path) -> None:
    """Compare each flight of the export in FOLDER with the chain."""
    from backend.export.parquet import check

    with explained_damage(settings.folder), counting("checking", "block") as progress:
        manifest = check(settings.folder, folder, progress)
    flights = counted(manifest.flights, "flight")
    say(f"{folder} holds the {flights} of blocks 0 to {manifest.height} as the chain has them")
    print_json(members(manifest, *HELD) | {"agrees": True})
