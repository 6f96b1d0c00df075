"""Sentences of the documents that have a number in them are made here from the code's own."""

import re
from pathlib import Path

import pytest
from gunicorn.config import Config

from backend.api.batch import STRANGERS_BYTES
from backend.api.conditions import SETTLED
from backend.api.encodings import LEAST_BYTES
from backend.api.routes import Lane
from backend.base.files import LOCK_PATIENCE_S
from backend.base.settings import Settings
from backend.chain.flight import MOST_ERRORS
from backend.cluster.engine import VERSION
from backend.cluster.engine_watch import STANDS_STILL_S, STUCK_S
from backend.ledger.file_imports import KEPT_S
from backend.ledger.known_flights import MOST_SHOWN
from backend.mempool.idempotency_keys import KEPT_MS
from backend.questions.values import MOST_DAYS, MOST_DAYS_OF_ALL, MOST_DEPARTURES
from backend.service.web_server import LONG_NICENESS, MOST_QUESTIONS, lanes_of
from backend.serving.client_bounds import MAX_RECEIVED_BYTES, MAX_UNSENT_BYTES, SHARE
from backend.serving.connection import (
    BODY_WITHIN_S,
    BYTES_PER_S,
    HEAD_WITHIN_S,
    MAX_FIELD_BYTES,
    MAX_FIELDS,
    MAX_HEAD_BYTES,
    READ_WITHIN_S,
)
from backend.serving.front import REFUSED_AT_ONCE, REFUSED_IN_S
from backend.serving.gunicorn_app import COMMON
from backend.storage.block_writer import LONGEST_WAIT_S
from backend.storage.caches import RECENT_S
from backend.trust.witness.following import ALARM_WITHIN_S
from backend.trust.witness.witness import MOST_CONTRADICTIONS
from backend.verify.scrub import SHARE as SHARE_OF_SCRUB
from frontend.adding.uploads import MOST_BAD
from frontend.questions.figures import FEW_ARRIVALS, FEW_IN_A_SLOT
from frontend.questions.group_queries import MOST_COUNTED
from frontend.site import LONG_THREADS, MOST_LONG_WAITING, MOST_PAGES_WAITING
from loadtests.bench.figures import NOISY_SHARE
from tests.api.processes import ROOT

KB, MB = 1024, 2**20
PER_S = f"{BYTES_PER_S // KB} KB"
WORDS = {50: "half", 100: "first hundred", 600: "ten minutes", 60: "a minute", 86400: "a day"}
assert MAX_RECEIVED_BYTES == MAX_UNSENT_BYTES

PROMISES = {
    "performance.md": [f"if these differ by more than {NOISY_SHARE:.0%}".replace("%", " %")],
    "reference/rest.md": [
        f"a request has {HEAD_WITHIN_S:g} s for its head",
        f"at most {MAX_FIELDS} fields of {MAX_FIELD_BYTES // KB} KB, {MAX_HEAD_BYTES // KB} KB in",
        f"{BODY_WITHIN_S:g} s for its body, and one second more for each {PER_S}",
        f"{READ_WITHIN_S:g} s to read an answer, and one second more for each {PER_S}",
        f"Idle connections end after {COMMON['keepalive']} s",
        f"take at most {MAX_UNSENT_BYTES // MB} MB of memory each",
        f"{WORDS[int(100 * SHARE)]} of them with one address",
        f"and proofs from {LEAST_BYTES // KB} KB on",
        f"for a height or an id may be kept {WORDS[int(SETTLED.rpartition('=')[2])]}",
        f"names row and field of the {WORDS[MOST_ERRORS]} bad rows",
        f"learns of a new block within {1000 * RECENT_S:g} ms",
        f"a dry run without it has at most {STRANGERS_BYTES // MB} MB",
        f"`departure` takes at most {MOST_DAYS} days, or {MOST_DAYS_OF_ALL} if",
        f"beyond {MOST_DEPARTURES:,} departures",
        f"has at most {Config().worker_connections:,} connections",
    ],
    "explanation/trust.md": [
        f"need more than {SHARE_OF_SCRUB:.0%} of".replace("%", " %"),
    ],
    "explanation/cluster.md": [
        f"CometBFT](https://docs.cometbft.com/v0.38/) {VERSION}, a consensus engine",
        f"No block is decided for {STUCK_S:g} s",
        f"**An engine that stands still** for {STANDS_STILL_S:g} s",
    ],
    "how-to/browser.md": [
        f"fewer than {FEW_ARRIVALS} arrivals are marked",
        f"fewer than {FEW_IN_A_SLOT} has no colour",
        f"more than {MOST_COUNTED:,} flights on the days",
    ],
    "how-to/add.md": [
        f"has kept `mempool.lock` for {LOCK_PATIENCE_S:g} s",
        f"An import waits up to {WORDS[int(LONGEST_WAIT_S)]} for another import",
        f"list the {WORDS[MOST_SHOWN]}",
        f"can be repeated for {WORDS[KEPT_MS // 1000]}",
        f"shows what became of the file for {WORDS[KEPT_S]}",
        f"more than {MOST_BAD:.0%} of the rows".replace("%", " %"),
    ],
    "how-to/witness.md": [
        f"takes longer than {WORDS[int(ALARM_WITHIN_S)]}",
        f"up to {MOST_CONTRADICTIONS} of each kind",
    ],
    "explanation/lanes.md": [
        f"{Settings().threads} threads wait for the backend's answers for pages",
        f"{LONG_THREADS} others for files of flights and {LONG_THREADS} for questions",
        f"when {MOST_PAGES_WAITING} pages, {MOST_LONG_WAITING} files or {MOST_LONG_WAITING} scans",
        f"(`nice` {LONG_NICENESS}, on Linux)",
        f"If a worker refuses more than {REFUSED_AT_ONCE / REFUSED_IN_S:g} a second",
        f"`FLIGHTCHAIN_LANE_THREADS` | {MOST_QUESTIONS} |",
    ],
}
"""What a page of `docs` says."""


def read(page: str) -> str:
    """A page of `docs` with single spaces between words."""
    return " ".join((ROOT / "docs" / Path(page)).read_text(encoding="utf-8").split())


@pytest.mark.parametrize("page", PROMISES)
def test_a_page_promises_what_the_code_keeps(page: str) -> None:
    text = read(page)
    assert [sentence for sentence in PROMISES[page] if sentence not in text] == []


def test_the_table_of_lanes_has_them_all_with_their_queues() -> None:
    rows = re.findall(r"\| `(\w+)` \| [^|]+ \| [^|]+ \| ([^|]+) \|", read("explanation/lanes.md"))
    settings = Settings()
    shown = {name: queue.replace(",", "") for name, queue in rows}
    assert shown.keys() == set(Lane)
    queues = {name: str(threads.most_waiting) for name, threads in lanes_of(settings).items()}
    for name, queue in queues.items():
        expected = shown[name].replace("`FLIGHTCHAIN_LANE_QUEUE`", str(settings.lane_queue))
        assert expected == queue, name
