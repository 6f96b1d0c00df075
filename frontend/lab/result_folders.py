"""Reads folders that the performance lab left; `loadtests/lab/results.py` writes them.

    manifest.json   what was run, how, where and when; without it a folder is no result
    summary.json    findings and metrics; may be missing or half written while a run goes on
    report.html     the whole report; may be missing or half written, too

They are read with care: nothing in them breaks a page. A name leads to a folder only if it is a
plain name, and a file that is a symbolic link is not read, so neither an address nor a result that
somebody else made leads out of the folders of results.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from frontend.backend_client import Json
from frontend.lab.report_figures import Figure, figures_in

MANIFEST, SUMMARY, REPORT = "manifest.json", "summary.json", "report.html"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,119}", re.ASCII)
TWINS = (".json", ".csv")  # a folder with such an end would have the address of another's twin
MOST_JSON_BYTES = 4 * 2**20
MOST_REPORT_BYTES = 16 * 2**20
YEARS = range(2000, 2200)  # a time in other years is not believed
FINDINGS_AT_ONCE = 2  # in a list of results

FILES = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".jsonl": "text/plain",
    ".log": "text/plain",
    ".txt": "text/plain",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}
"""Kinds of files beside the manifest that may be looked at -> the type they are sent as."""

Content = TypeVar("Content")

MODES = {"real": "Real", "emulated": "Emulated", "files": "From files"}


class Unreadable(Exception):
    """A file that is not what the lab writes; the message says why."""


class Metric(msgspec.Struct, frozen=True):
    """A metric. value, low, high: None where there is none, or where it is not a number."""

    name: str
    value: float | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None


class Summary(msgspec.Struct, frozen=True):
    """A summary. failure: why the experiment answered its question with no; "" if it did not.

    conclusion: what it comes to, in one sentence.
    """

    findings: tuple[str, ...]
    metrics: tuple[Metric, ...]
    failure: str = ""
    conclusion: str = ""


class Machine(msgspec.Struct, frozen=True):
    """The machine of a run."""

    cpu: str = ""
    cores: int | None = None


class Run(msgspec.Struct, frozen=True):
    """Says what pages show of a run, as its manifest has it. scale: K of an emulated disk.

    host: of a service elsewhere, which was measured from `machine`; "" if it ran there, too.
    """

    experiment: str
    title: str = ""
    mode: str = ""
    scale: float | None = None
    state: str = ""
    host: str = ""
    quick: bool = False  # everything was run once and briefly, which proves nothing
    started: datetime | None = None
    ended: datetime | None = None
    machine: Machine = Machine()


# Made before there are threads, as tests/test_prebuilt.py says.
RUNS, SUMMARIES = msgspec.json.Decoder(Run), msgspec.json.Decoder(Summary)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run. problem: why there is no summary; "" if there is one."""

    folder: Path
    manifest: Json
    run: Run
    summary: Summary
    problem: str
    is_example: bool

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def title(self) -> str:
        words = self.run.experiment.replace("-", " ")
        return self.run.title or words[:1].upper() + words[1:]

    @property
    def conclusion(self) -> str:
        """What it comes to; the first finding if no conclusion is written down."""
        return self.summary.conclusion or next(iter(self.summary.findings), "")

    @property
    def findings(self) -> list[str]:
        """What it comes to, and then the other findings."""
        return list(filter(None, dict.fromkeys((self.conclusion, *self.summary.findings))))

    @property
    def mode(self) -> str:
        """The mode in words, with the scale K of an emulated disk."""
        words = MODES.get(self.run.mode, self.run.mode or "Unknown mode")
        return f"{words}, K = {self.run.scale:g}" if self.is_emulated and self.run.scale else words

    @property
    def is_emulated(self) -> bool:
        return self.run.mode == "emulated"

    @property
    def is_complete(self) -> bool:
        return self.run.state == "complete"

    @property
    def started_ms(self) -> int | None:
        """When the run started, in UTC milliseconds; None if that is not known."""
        return _milliseconds(self.run.started)

    @property
    def took_s(self) -> float | None:
        """How long the run took; None if it has not ended."""
        started, ended = self.started_ms, _milliseconds(self.run.ended)
        return None if started is None or ended is None else (ended - started) / 1000

    @property
    def machine(self) -> str:
        """What was measured on; "" if nothing was measured, but files were brought."""
        if self.run.mode == "files":
            return ""
        cores = self.run.machine.cores
        here = ", ".join(filter(None, (self.run.machine.cpu, f"{cores} cores" if cores else "")))
        return f"{self.run.host}, asked from {here}" if self.run.host else here

    @property
    def has_report(self) -> bool:
        return _is_own_file(self.folder / REPORT)

    def figures(self) -> list[Figure]:
        """Return the drawings of the report, in its order; none while it is half written."""
        try:
            if not self.has_report or (self.folder / REPORT).stat().st_size > MOST_REPORT_BYTES:
                return []
            text = (self.folder / REPORT).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return []
        return list(figures_in(text))

    def files(self) -> list[tuple[str, int]]:
        """Return names and sizes of the files that may be looked at, besides the report."""
        try:
            paths = [path for path in self.folder.iterdir() if path.name != REPORT]
            return sorted((path.name, path.stat().st_size) for path in paths if _is_offered(path))
        except OSError:  # it is being moved away, or may not be read
            return []

    def file(self, name: str) -> Path | None:
        """Return a file of the folder that may be looked at; None if there is none of that name."""
        path = self.folder / name
        return path if NAME.fullmatch(name) and _is_offered(path) else None

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield the manifest as names and values; a nested value has both names."""
        for name, value in self.manifest.items():
            is_of_generator = name == "machine" and self.run.host
            shown = "machine of the generator" if is_of_generator else name  # as in reports
            if isinstance(value, dict):
                yield from ((f"{shown}: {part}", _fact(inner)) for part, inner in value.items())
            else:
                yield shown, _fact(value)

    def as_json(self) -> Json:
        return {
            "name": self.name,
            "title": self.title,
            "is_example": self.is_example,
            "manifest": self.manifest,
            **msgspec.to_builtins(self.summary),
            "conclusion": self.conclusion,
            "problem": self.problem,
        }


def listing(folders: Sequence[Path]) -> tuple[list[Result], list[tuple[str, str]]]:
    """Return all results in `folders`, newest first, and (folder, why) of what cannot be read.

    Of two with one name, that in the earlier folder.
    """
    results: dict[str, Result] = {}
    left_out = []
    for place, folder in enumerate(folders):
        for inner in _folders_in(folder):
            try:
                result = _result(inner, is_example=place > 0)
            except Unreadable as problem:
                shown = inner.name.encode(errors="replace").decode()
                left_out.append((shown, str(problem)))
            else:
                if result:
                    results.setdefault(result.name, result)
    newest = sorted(results.values(), key=lambda r: (r.started_ms or 0, r.name), reverse=True)
    return newest, left_out


def find(folders: Sequence[Path], name: str) -> Result | None:
    """Return the result with that name; None if there is none that can be read."""
    if not _is_name(name):
        return None
    for place, folder in enumerate(folders):
        try:
            result = _result(folder / name, is_example=place > 0)
        except Unreadable:
            continue
        if result:
            return result
    return None


def _folders_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:  # the folder is missing, or may not be read: the page says where it looked
        return []


def _is_name(name: str) -> bool:
    return bool(NAME.fullmatch(name)) and not name.endswith(TWINS)


def _result(folder: Path, *, is_example: bool) -> Result | None:
    """Return the result in `folder`; None if it has no manifest. Raises Unreadable."""
    try:
        manifest = _read_json(folder / MANIFEST)
    except FileNotFoundError:
        return None
    run = _as(RUNS, manifest, MANIFEST)
    if not _is_name(folder.name):
        raise Unreadable("its name has characters that a web address cannot have")
    summary, problem = Summary((), ()), ""
    try:
        summary = _as(SUMMARIES, _read_json(folder / SUMMARY), SUMMARY)
    except FileNotFoundError:
        problem = f"{SUMMARY} does not exist yet"
    except Unreadable as unreadable:
        problem = str(unreadable)
    return Result(folder, manifest, run, summary, problem, is_example)


def _as(decoder: msgspec.json.Decoder[Content], content: Json, name: str) -> Content:
    """Return the content of a file as what the lab writes. Raises Unreadable."""
    try:
        return decoder.decode(msgspec.json.encode(content))
    except (msgspec.ValidationError, OverflowError) as error:
        raise Unreadable(f"{name}: {error}") from error


def _read_json(path: Path) -> Json:
    """Return the object in a file. Raises FileNotFoundError, Unreadable."""
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            raise Unreadable(f"{path.name} is larger than {MOST_JSON_BYTES:,} bytes")
        if not _is_own_file(path):
            raise Unreadable(f"{path.name} is not a regular file")
        content = json.loads(
            path.read_text(encoding="utf-8"), parse_constant=lambda _: None, parse_float=_finite
        )
        json.dumps(content, ensure_ascii=False).encode()  # half a surrogate could not be sent
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path.name} is not complete JSON") from error
    if not isinstance(content, dict):
        raise Unreadable(f"{path.name} is not a JSON object")
    return content


def _finite(text: str) -> float | None:
    """Return a number in JSON; None for one that a float cannot hold."""
    value = float(text)
    return value if math.isfinite(value) else None


def _is_offered(path: Path) -> bool:
    return path.suffix in FILES and bool(NAME.fullmatch(path.name)) and _is_own_file(path)


def _is_own_file(path: Path) -> bool:
    """Return whether a file is in its folder, and is no link to another."""
    return path.is_file() and not path.is_symlink()


def _milliseconds(moment: datetime | None) -> int | None:
    if moment is None or moment.year not in YEARS:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _fact(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)
