"""Command-line options of the locustfiles beside Locust's own. Its web page shows them, too.

Every default has the type of its option, never None, because the web page keeps the type.
"""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadtests.generation.client import TIMEOUT_S
from loadtests.generation.schedule import Request, load_requests
from loadtests.processes import Site
from loadtests.questions import drawn, sample

DRAWN_OF_EACH_KIND = 500
SAMPLED_BLOCKS = 20

Table = Sequence[tuple[str, Any, str]]  # option, default, help

COMMON: Table = (
    ("--seed", 1, "seed of all random numbers"),
    ("--mix", "", "shares of kinds of requests, as filter_transactions=60,flight_counter=40"),
    ("--timeout", TIMEOUT_S, "seconds to wait for an answer before giving up"),
)
# Files are chosen when Locust is started and not on its web page, which others may reach.
PATHS: Table = (
    ("--paths", "", "CSV file of requests: kind,path; default: questions drawn from the service"),
)
FILES: Table = (
    ("--raw", "", "CSV file to append a row for every request to; none by default"),
    ("--facts", "", "JSON file to write when the run begins, for other programs"),
)


def add(parser: Any, table: Table, files: Table, run_id: str) -> None:
    """Add the options of `table` and `files` and the common ones to Locust's parser."""
    named = ("--run-id", run_id, "name of the run in the raw rows")
    for rows, is_shown in (((*table, *COMMON), True), ((*files, *FILES, named), False)):
        for option, default, text in rows:
            shown = f"{text}; default {default}" if default else text
            parser.add_argument(
                option, default=default, type=type(default), help=shown, include_in_web_ui=is_shown
            )


def shares_from(text: str) -> dict[str, float] | None:
    """`a=60,b=40` as weights; None for nothing. Raises ValueError."""
    if not text.strip():
        return None
    shares = {}
    for item in text.split(","):
        kind, _, weight = item.partition("=")
        try:
            shares[kind.strip()] = float(weight)
        except ValueError:
            raise ValueError(f"--mix {text!r}: {item!r} is not like flight_counter=30") from None
    return shares


def choices_from(options: Namespace, host: str) -> Mapping[str, list[Request]]:
    """Requests to choose from: those of the file, or the three questions about the service's data.

    Raises ValueError, OSError, and ProgramFailed if the service does not answer as it should.
    """
    if options.paths:
        return load_requests(Path(options.paths))
    questions = drawn(sample(Site(host), SAMPLED_BLOCKS), DRAWN_OF_EACH_KIND, options.seed)
    return {kind: [Request(kind, one.path) for one in of] for kind, of in questions.items()}
