"""What the tests of the client and of scripts/bulk_post share."""

import gzip
import json
import sys
import zipfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from backend.chain.flight import Flight, as_mapping
from tests.api.processes import ROOT, Reached
from tests.api.worlds import Json
from tests.flights import csv_of_days, flights, on_disk

SCRIPTS = ROOT / "scripts"
PAGE = (ROOT / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")


on_an_empty_ledger = pytest.mark.usefixtures("empty_ledger")
BEFORE: dict[Path, int] = {}  # folder of a ledger -> its flights when the test began


def mappings(count: int, start: int = 0) -> list[Json]:
    return [dict(as_mapping(flight)) for flight in flights(count, start)]


def mined(service: Reached) -> list[Flight]:
    """All flights that the ledger got in this test, once none is pending."""
    service.sealed()
    return on_disk(service.folder).flights[BEFORE.get(service.folder, 0) :]


def packed(path: Path, text: str) -> Path:
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.html", "BTS")
            archive.writestr("ontime.csv", text)
            archive.writestr("__MACOSX/._ontime.csv", "as a Mac adds it")
    else:
        path.write_text(text, encoding="utf-8")
    return path


NDJSON = "".join(json.dumps(row) + "\n" for row in mappings(25))


def day_first(folder: Path, days: Sequence[str]) -> Path:
    """A file of flights on these days, without weekdays."""
    path = folder / "days.csv"
    path.write_text(csv_of_days(mappings(len(days)), days), encoding="utf-8")
    return path


def loaded(path: Path) -> Any:
    """A script as a module."""
    loader = SourceFileLoader(path.name, str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        spec = spec_from_loader(path.name, loader)
        assert spec is not None
        module = sys.modules[path.name] = module_from_spec(spec)  # dataclasses look there
        loader.exec_module(module)
    return module


script = loaded(SCRIPTS / "bulk_post")


def posted(*arguments: object) -> tuple[int, str, str]:
    """Run scripts/bulk_post to its end in this process; its status, output and errors."""
    with redirect_stdout(StringIO()) as output, redirect_stderr(StringIO()) as errors:
        try:
            status: int = script.main([*map(str, arguments)])
        except SystemExit as ended:
            status = int(str(ended.code))
    return status, output.getvalue(), errors.getvalue()


def bulk_post(service: Reached, *arguments: object) -> tuple[int, Json, str]:
    """Let it post to a service; its status, what it says in JSON, and its errors."""
    status, output, errors = posted("--url", service.url, "--json", *arguments)
    return status, json.loads(output) if output else {}, errors
