"""Shows how an import goes, and asks a person before rows are left out."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING

import click

from backend.base.day_orders import DAY_FIRST, MONTH_FIRST
from backend.base.errors import FlightchainError, InvalidInput, WriteFailed
from backend.base.files import reason_of
from backend.base.progress import Line, Progress, counting, left
from backend.base.words import counted
from backend.cli.output import say

if TYPE_CHECKING:
    from backend.sealing.importer import Tally, Watcher
    from backend.sealing.repeats import Compared
    from backend.sealing.source_check import Checked
    from backend.sealing.spool import Spool

SHOWN_LINES = 20


@dataclass(frozen=True, slots=True)
class Skipping:
    """Says what a person wants done with bad rows.

    is_wanted: whether they are left out; otherwise nothing is imported. most_percent: of the rows
    of a file that may be bad. without_asking: whether to go on without a question. file: takes the
    bad rows; None for one named after the source, in the working folder. otherwise: what a person
    can do where they are not left out.
    """

    is_wanted: bool = False
    most_percent: float = 0.0
    without_asking: bool = False
    file: Path | None = None
    otherwise: str = "correct the bad rows in the file, or leave them out with --skip-bad"


_TABLES = (".csv", ".tsv", ".txt", ".json", ".ndjson", ".jsonl", ".parquet", ".arrow")
SUFFIXES = {*_TABLES, ".gz", ".xz", ".bz2", ".zst", ".zip"}
KEEP, FAIL = "keep", "fail"
ON_CONFLICT = {
    KEEP: "leave the flights of the file out",
    FAIL: "import nothing",
}


class ImportDialogue:
    """The conversation about an import on standard error; used with `with`.

    An error inside says at its end what was stored.
    """

    def __init__(
        self, skipping: Skipping, on_conflict: str = KEEP, bad_rows: "Spool | None" = None
    ) -> None:
        """on_conflict: a key of `ON_CONFLICT`, about flights that contradict earlier records.

        bad_rows: will hold the bad rows.
        """
        self._skipping = skipping
        self._bad_rows = bad_rows
        self._on_conflict = on_conflict
        self._line = Line(in_a_log=True)
        self._imported = self._importing = 0  # flights of earlier sources, and of this one
        self._is_refused = False  # for conflicts; the same command would be refused again
        self._index_line = ExitStack()
        self._index_progress: Progress | None = None  # while the index is brought to the tip

    def watcher(self) -> "Watcher":
        """Return what the import calls."""
        from backend.sealing.importer import Watcher

        return Watcher(
            on_check=self._show_check,
            on_compare=self._show_comparison,
            decide=self._decide,
            on_progress=self._show_import,
            on_done=self._show_summary,
            on_index_progress=self._show_index,
            report=say,
        )

    def __enter__(self) -> "ImportDialogue":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._line.close()
        self._index_line.close()
        imported = self._imported + self._importing
        if isinstance(error, FlightchainError):
            rest = "nothing was imported"
            if imported:
                least = "at least " if isinstance(error, WriteFailed) else ""
                rest = f"{least}{counted(imported, 'flight was', 'flights were')} imported before"
                rest += "" if self._is_refused else f"; {_GO_ON}"
            error.args = (f"{error}; {rest}",)
        elif isinstance(error, KeyboardInterrupt) and imported:
            say(f"at least {counted(imported, 'flight was', 'flights were')} imported; {_GO_ON}")

    # --- progress -----------------------------------------------------------------------------

    def _show(self, phase: str, fraction: float, count: int, unit: str, *, is_done: bool) -> None:
        """Show how far a phase is, and end its line when it is done."""
        elapsed_s = self._line.elapsed_s()
        text = f"{phase}: {fraction:.0%}, {counted(count, unit)}, "
        text += f"{count / max(elapsed_s, 1e-9):,.0f} a second{left(fraction, elapsed_s)}"
        self._line.show(text, at_once=is_done)
        if is_done:
            self._line.close()
            self._line = Line(in_a_log=True)

    def _show_check(self, checked: "Checked") -> None:
        phase, fraction = f"checking {checked.label}", checked.fraction
        self._show(phase, fraction, checked.rows, "row", is_done=fraction == 1)

    def _show_comparison(self, compared: "Compared") -> None:
        phase, fraction = "comparing flights that are listed more than once", compared.fraction
        self._show(phase, fraction, compared.flights, "flight", is_done=fraction == 1)

    def _show_import(self, tally: "Tally", *, is_done: bool = False) -> None:
        self._importing = tally.imported
        phase = f"importing {tally.label}"
        self._show(phase, tally.fraction, tally.imported, "flight", is_done=is_done)

    def _show_summary(self, tally: "Tally") -> None:
        self._show_import(tally, is_done=True)
        self._imported, self._importing = self._imported + tally.imported, 0
        say(_summary(tally))
        if self._on_conflict == FAIL and tally.conflicts:  # with what the check did not see
            self._is_refused = True
            raise FlightchainError(_conflict_words(tally.label, tally.conflicts))

    def _show_index(self, done: int, to_do: int) -> None:
        if self._index_progress is None:
            progress = counting("updating the index", "block")
            self._index_progress = self._index_line.enter_context(progress)
        self._index_progress(done, to_do)
        if done >= to_do:
            self._index_line.close()
            self._index_progress = None

    # --- what needs a decision ----------------------------------------------------------------

    def _decide(self, sources: Sequence["Checked"]) -> None:
        """Raise FlightchainError if nothing is to be imported."""
        for checked in sources:
            _say_wrapped(f"{checked.label}: {_checked_words(checked)}")
        bad = [checked for checked in sources if checked.bad.count]
        conflicting = [checked for checked in sources if checked.comparison.conflicts]
        rows = [str(row) for checked in bad for row in checked.bad.first]
        conflicts = [
            f"{checked.label}: {conflict}"
            for checked in conflicting
            for conflict in checked.comparison.first_conflicts
        ]
        for line in [*rows[:SHOWN_LINES], *conflicts[:SHOWN_LINES]]:
            _say_wrapped(line)
        for checked in bad:
            say(_bad_words(checked))
        for checked in conflicting:
            say(_conflict_words(checked.label, checked.comparison.conflicts))
        if conflicting and self._on_conflict == FAIL:
            reason = "flights contradict earlier records; go on with --on-conflict keep"
            raise FlightchainError(reason)
        if bad:
            self._require_few(bad)
            self._require_own_files(bad)
            self._require_new_files(bad)
            if not self._skipping.without_asking and sys.stdin is not None and sys.stdin.isatty():
                _require_consent(bad[0].label, self._skipping.otherwise)
            self._write_files(bad)

    def _require_few(self, bad: Sequence["Checked"]) -> None:
        from backend.sources.source import require_days

        skipping = self._skipping
        for checked in bad:
            if not skipping.is_wanted:
                first = map(str, checked.bad.first[:1])
                reason = "; ".join(["has bad rows", *first, skipping.otherwise])
                raise InvalidInput("file", checked.label, reason)
            good = checked.rows - checked.bad.count
            require_days(good, checked.bad.misdated, "file", checked.label)
            if _percent(checked) > skipping.most_percent:
                allowed = f"--skip-at-most {ceil(10 * _percent(checked)) / 10:.1f}"
                reason = f"has more than {skipping.most_percent:g} % bad rows; correct them, or use"
                raise InvalidInput("file", checked.label, f"{reason} {allowed}")

    def _files(self, bad: Sequence["Checked"]) -> Iterator[tuple[Path, bytes]]:
        for checked in bad:
            rows = checked.bad
            if self._bad_rows is not None and rows.start < rows.end:
                content = self._bad_rows.read(rows.end - rows.start, rows.start)
                yield self._file(checked), content

    def _file(self, checked: "Checked") -> Path:
        return self._skipping.file or _bad_rows_file(checked.label, is_json=checked.bad.is_json)

    def _require_own_files(self, bad: Sequence["Checked"]) -> None:
        labels: dict[Path, str] = {}
        for checked in bad:
            file, label = self._file(checked), checked.label
            if file in labels:
                raise FlightchainError(
                    f"the bad rows of {labels[file]} and those of {label} would both go to {file}; "
                    "import these files one after the other, each with its own --bad-rows"
                )
            labels[file] = label

    def _require_new_files(self, bad: Sequence["Checked"]) -> None:
        for file, content in self._files(bad):
            with _writing(file):
                is_other = file.exists() and (not file.is_file() or file.read_bytes() != content)
            if is_other:
                raise FlightchainError(
                    f"{file} exists already, and may hold rows that you have corrected; move it "
                    "away, or name another file with --bad-rows"
                )

    def _write_files(self, bad: Sequence["Checked"]) -> None:
        for checked in bad:
            for file, content in self._files([checked]):
                with _writing(file):
                    file.write_bytes(content)
                order = checked.understood.dates if checked.understood else None
                option = f" with --dates {order}" if order in {DAY_FIRST, MONTH_FIRST} else ""
                say(f"the bad rows are in {file}; correct them there, and import that file{option}")


_GO_ON = "run the same command again to continue"
_THERE = "there already or repeated"  # by an earlier row of the files


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    """Raise FlightchainError, which says what to do, if a file of bad rows cannot be written."""
    try:
        yield
    except OSError as error:
        remedy = "name a file elsewhere with --bad-rows"
        raise FlightchainError(f"cannot write {reason_of(error, file)}; {remedy}") from error


def _bad_rows_file(label: str, *, is_json: bool) -> Path:
    name = Path(label).name
    while (stem := Path(name)).suffix.lower() in SUFFIXES:
        name = stem.stem
    return Path(f"{name}.bad-rows.{'ndjson' if is_json else 'csv'}")


def _say_wrapped(line: str) -> None:
    """Write a long line, in a terminal as several that are cut between words."""
    if sys.stderr.isatty():
        width = max(20, get_terminal_size().columns)
        line = fill(line, width, subsequent_indent="  ", break_on_hyphens=False)
    say(line)


def _checked_words(checked: "Checked") -> str:
    words = [f"taken for {checked.understood}"] if checked.understood else []
    words.append(counted(checked.flights, "flight is new", "flights are new"))
    if count := checked.comparison.already_there:
        words[-1] += f", {counted(count, 'is', 'are')} {_THERE}"
    return "; ".join(words)


def _require_consent(label: str, otherwise: str) -> None:
    if not click.confirm("Import the other rows without them?", err=True):
        raise InvalidInput("file", label, f"has bad rows; {otherwise}")


def _percent(checked: "Checked") -> float:
    return 100 * checked.bad.count / max(1, checked.rows)


def _percent_words(percent: float) -> str:
    """Round to two digits, or to whole percents, without an exponent."""
    if percent >= 10:
        return f"{percent:.0f}"
    return f"{percent:.2g}" if percent >= 0.001 else "under 0.001"


def _bad_words(checked: "Checked") -> str:
    """Say how many rows of a file are bad, and whether that would make flights look punctual."""
    bad = checked.bad
    words = f"{checked.label}: {bad.count:,} of {counted(checked.rows, 'row')} "
    words += f"({_percent_words(_percent(checked))} %) {'is' if bad.count == 1 else 'are'} bad"
    if bad.cancelled or bad.not_arrived:
        words += f", among them {counted(bad.cancelled, 'cancelled flight')} and "
        words += (
            f"{bad.not_arrived:,} without an arrival; if they are left out, more flights look "
            "punctual"
        )
    return words


def _conflict_words(label: str, count: int) -> str:
    flights = counted(count, "flight contradicts", "flights contradict")
    return f"{label}: {flights} earlier records, which stay"


def _summary(tally: "Tally") -> str:
    blocks = counted(tally.blocks, "block")
    parts = [f"{tally.label}: {counted(tally.imported, 'flight')} imported in {blocks}"]
    if tally.already_there:
        parts.append(f"{counted(tally.already_there, 'was', 'were')} {_THERE}")
    if tally.conflicts:
        verb = "contradicts" if tally.conflicts == 1 else "contradict"
        parts.append(f"{tally.conflicts:,} {verb} earlier records")
    if tally.bad:
        parts.append(counted(tally.bad, "bad row was left out", "bad rows were left out"))
    return ", ".join(parts)
