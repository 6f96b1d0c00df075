"""Defines the command that checks a file that was sent to the service, or adds its flights.

The service runs it (`ledger.file_imports`), and tells the sender what it notes.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from backend.base.errors import BadRow, FlightchainError, InvalidInput, TryLater
from backend.base.settings import Settings
from backend.base.words import counted
from backend.chain.flight import Flight
from backend.chain.json_objects import Json
from backend.cli.output import say

if TYPE_CHECKING:
    from backend.ledger.file_imports import Added
    from backend.ledger.ledger import Ledger
    from backend.sealing.importer import Tally
    from backend.sealing.source_check import Checked
    from backend.sealing.spool import Spool
    from backend.sources import Source

EVERY_S = 0.3  # how far it is, is noted as often
PATIENCE_S = 600  # with a node that accepts nothing now


@click.command(hidden=True)
@click.argument("import_id", metavar="ID")
@click.option("--add", is_flag=True, help="Add its flights.")
@click.pass_obj
def sent_file(settings: Settings, import_id: str, add: bool) -> None:
    """Check the file that was sent to the service under ID."""
    _Job(settings, import_id).run(adds=add)


class _Job:
    """What is done with one file."""

    def __init__(self, settings: Settings, import_id: str) -> None:
        from backend.ledger.file_imports import FileImports

        self._settings = settings
        self._imports = FileImports(settings)
        self._sent = self._imports.of(import_id)
        self._noted_s = 0.0
        self._imported = 0

    def run(self, *, adds: bool) -> None:
        """Check the file, or add its flights, and note what becomes of it."""
        sent = self._sent
        try:
            if adds:
                sent.added = self._added()
                sent.state = "added"
            else:
                sent.report = self._report()
                sent.state = "checked"
            sent.message, sent.fraction = "", 1.0
        except (FlightchainError, OSError) as error:
            sent.state = "refused" if isinstance(error, InvalidInput) else "stopped"
            sent.message = self._words(error)
            if self._imported:
                before = counted(self._imported, "flight was", "flights were")
                sent.message += f"; {before} added before that; check it again to add the rest"
        self._imports.note(sent)
        if sent.state == "added":
            self._imports.remove_content(sent.IMPORT_ID)

    def _words(self, error: Exception) -> str:
        """Say what is wrong. Whoever has sent the file knows its name."""
        if isinstance(error, InvalidInput) and error.value == self._sent.name:
            return f"It {error.reason}"
        return str(error)

    def _source(self) -> "Source":
        """Return the file as a source. Raises InvalidInput."""
        from backend.index.completions import airports_in
        from backend.index.queries import IndexReader
        from backend.sources import open_source
        from backend.sources.dates import DoubtfulDaysError, choice, readings

        sent = self._sent
        airports = airports_in(IndexReader(self._settings.folder))
        try:
            return open_source(
                self._imports.path(sent.IMPORT_ID),
                dates=sent.dates,
                label=sent.name,
                ledger=airports,
            )
        except DoubtfulDaysError as error:
            sent.day = str(error.day)
            sent.readings = {o: day.isoformat() for o, day in readings(error.day).items()}
            raise error.answered_by(choice("dates=")) from None

    # --- how far it is ---------------------------------------------------------------------------

    def _note(self, message: str, fraction: float) -> None:
        if time.monotonic() - self._noted_s >= EVERY_S:
            self._noted_s = time.monotonic()
            self._sent.message, self._sent.fraction = message, fraction
            self._imports.note(self._sent)

    def _note_check(self, checked: "Checked") -> None:
        share = checked.fraction if self._sent.state == "checking" else checked.fraction / 2
        self._note(f"{counted(checked.rows, 'row')} read", share)

    def _note_import(self, tally: "Tally") -> None:
        self._imported = tally.imported
        self._note(f"{counted(tally.imported, 'flight')} added", (1 + tally.fraction) / 2)

    # --- checking --------------------------------------------------------------------------------

    def _check(self, spool: "Spool") -> "Checked":
        """Read the file to its end. spool: takes its new flights."""
        from backend.sealing.source_check import check

        [checked] = check(
            self._settings, [self._source()], spool, None, self._note_check, lambda compared: None
        )
        return checked

    def _report(self) -> Json:
        """Return what the check says. Raises InvalidInput if most days are wrong."""
        from backend.index.queries import IndexReader
        from backend.ledger.known_flights import shown_conflict
        from backend.sealing.spool import Spool
        from backend.sources.source import require_days

        indexed = IndexReader(self._settings.folder).position().transactions
        with closing(Spool(self._settings.folder)) as spool:
            checked = self._check(spool)
            self._leave_out_newest(spool, checked, indexed)
        bad, comparison = checked.bad, checked.comparison
        require_days(checked.rows - bad.count, bad.misdated, "file", checked.label)
        assert checked.understood is not None
        return {
            "dry_run": True,
            "accepted": checked.flights,
            "duplicates": comparison.already_there,
            "duplicate_of": [] if comparison.first_there is None else [comparison.first_there],
            "already_there": comparison.already_there,
            "conflicts": comparison.conflicts,
            "conflicting": [shown_conflict(conflict) for conflict in comparison.first_conflicts],
            "rejected": bad.count,
            "rejected_cancelled": bad.cancelled,
            "rejected_not_arrived": bad.not_arrived,
            "errors": [self._error(row) for row in bad.first],
            "understood": checked.understood.members(with_sample=True),
        }

    def _leave_out_newest(self, spool: "Spool", checked: "Checked", indexed: int) -> None:
        """Leave out what is pending, or in blocks that the index lacked when the check began.

        indexed: how many transactions it had. Adding seals these flights first. Raises TryLater.
        """
        from backend.ledger.ledger import Ledger

        with closing(Ledger(self._settings, say)) as ledger:
            tip = ledger.tip()
            if tip.transactions + tip.pending == indexed:
                return
            for batch in spool.batches(checked.start, checked.end):
                flights = list(zip(*batch.read(), strict=True))
                known = ledger.submitter.compared(flights, skips=True)
                for place, stored in known.copies.items():
                    checked.comparison.note(flights[place], stored)
                for conflict in known.conflicts:
                    checked.comparison.note(*conflict)
                checked.flights -= len(known.copies) + len(known.conflicts)

    def _error(self, row: BadRow) -> Json:
        place = row.place.rpartition(", ")[0]
        table = {} if place == self._sent.name else {"table": place}
        return {**table, **row.described()}

    # --- adding ----------------------------------------------------------------------------------

    def _added(self) -> "Added":
        """Add what the sender has seen the check of. Raises FlightchainError."""
        from backend.ledger.file_imports import Added
        from backend.storage.receipt_store import belongs_to_cluster

        if belongs_to_cluster(self._settings.folder):
            return self._posted()
        from backend.sealing.importer import Watcher, import_all

        watcher = Watcher(
            on_check=self._note_check,
            decide=self._require_as_checked,
            on_progress=self._note_import,
            report=say,
        )
        [tally] = import_all(self._settings, [self._source()], watcher)
        return Added(
            flights=tally.imported,
            first_transaction=tally.first,
            last_transaction=tally.last,
            already_there=tally.already_there,
            conflicts=tally.conflicts,
            left_out=tally.bad,
        )

    def _require_as_checked(self, sources: Sequence["Checked"]) -> None:
        """Raise InvalidInput if a row is bad now that was good, which a new release may bring."""
        bad = sum(checked.bad.count for checked in sources)
        if self._sent.report is None or bad != self._sent.report["rejected"]:
            raise InvalidInput(
                "file",
                self._sent.name,
                "is read differently than when it was checked; check it again",
            )

    def _posted(self) -> "Added":
        """Have the cluster order the flights, as it does those that are posted to this node."""
        from backend.cluster.engine_watch import READS_ONLY
        from backend.cluster.node_status import FILE
        from backend.ledger.file_imports import Added
        from backend.ledger.ledger import Ledger
        from backend.sealing.spool import Spool

        status = FILE.read(self._settings.folder)
        if status is not None and status.reads_only:
            raise TryLater(READS_ONLY)
        with (
            closing(Ledger(self._settings, say)) as ledger,
            closing(Spool(self._settings.folder)) as spool,
        ):
            checked = self._check(spool)
            self._require_as_checked([checked])
            added = Added(
                flights=0,
                first_transaction=None,
                last_transaction=None,
                already_there=checked.comparison.already_there,
                conflicts=checked.comparison.conflicts,
                left_out=checked.bad.count,
            )
            for batch in spool.batches(checked.start, checked.end):
                receipt = self._accepted(ledger, list(zip(*batch.read(), strict=True)))
                self._imported = added.flights = added.flights + receipt["accepted"]
                added.already_there += receipt["already_there"]
                added.conflicts += receipt["conflicts"]
                if receipt["accepted"]:
                    first: str = receipt["receipt"]
                    added.receipt = first if added.receipt is UNSET else added.receipt
                    added.last_receipt = str(receipt.get("last_receipt", first))
                done = (batch.end - checked.start) / (checked.end - checked.start)
                self._note(f"{counted(added.flights, 'flight')} accepted", (1 + done) / 2)
        return added

    def _accepted(self, ledger: "Ledger", flights: list[Flight]) -> Json:
        """Return the receipt of a batch, when the node has room for it. Raises TryLater."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return ledger.submitter.add_batch(flights, skips=True)
            except TryLater as error:
                if time.monotonic() >= deadline:
                    raise
                self._note(str(error), self._sent.fraction)
                time.sleep(error.retry_after_s)
