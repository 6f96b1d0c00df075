"""Stacks and activities: what the table of patterns makes of frames that there are."""

import re
from collections import Counter
from pathlib import Path

import pytest

from loadtests.lab.stacks import OTHER, WORK, activity, shares, stacks
from tests.cases import each_of

ROOT = Path(__file__).parents[3]
BASE = "Thread.run (threading.py:982);_worker (concurrent/futures/thread.py:83)"
VIEW = f"{BASE};Flask.wsgi_app (flask/app.py:1);add (backend/api/transaction_routes.py:6)"
ACCEPTING = "Writing.accept (backend/api/writing.py:76)"
ADD = f"{VIEW};{ACCEPTING};Submitter.add (backend/ledger/submission.py:375)"
ACCEPT = f"{ADD};Mempool.accept_all (backend/mempool/mempool.py:94)"
SENT = f"{VIEW};sent_flight (backend/api/writing.py:53)"
POSTS = f"{BASE};Writing.accept_all (backend/api/writing.py:6)"
MANY = f"{POSTS};Submitter.accept_all (backend/ledger/submission.py:446)"

LOOP = "UvicornWorker.run (uvicorn_worker/_workers.py:1)"
PARSER = "Connection._feed (backend/serving/connection.py:2)"
SYNC = f"{ACCEPT};GroupCommit.sync (backend/mempool/syncs.py:38)"
EXCLUSIVE = f"{ACCEPT};Mempool.exclusive (backend/mempool/mempool.py:121)"
SENDING, HANDING = "HTTP: the loop, receiving and sending", "handing requests to threads"
ROUTING = "routing and calling: Flask, WSGI"

WORKS = [
    (f"{SENT};json_object (backend/api/reading.py:110)", "reading the JSON"),
    (f"{SENT};examine (backend/chain/flight.py:7);x (backend/chain/fields.py:5)", "validation"),
    (f"{ADD};transaction_bytes (backend/chain/transaction.py:50)", "canonical bytes and hash"),
    (f"{ADD};_others (backend/ledger/submission.py:1)", "looking for duplicates"),
    (f"{ACCEPT};Mempool._records_of (backend/mempool/mempool.py:1)", "looking for duplicates"),
    (f"{MANY};IndexReader.records_of (backend/index/queries.py:1)", "looking for duplicates"),
    (f"{MANY};now_ms (backend/base/clock.py:7)", "making the answer"),
    (f"{LOOP};RequestGroups._finish (backend/serving/lanes.py:2)", HANDING),
    (f"{LOOP};Table.match (backend/api/routes.py:1)", ROUTING),
    (EXCLUSIVE, "mempool: locks"),
    (f"{ACCEPT};Log.append (backend/mempool/log.py:9)", "mempool: log, ids and keys"),
    (f"{SYNC};sync (backend/base/files.py:80)", "mempool: syncing the disk"),
    (f"{ADD};now_ms (backend/base/clock.py:7)", "making the answer"),
    (f"{VIEW};Headers.set (werkzeug/datastructures/headers.py:1)", ROUTING),
    (f"{LOOP};Connection.data_received (backend/serving/connection.py:2)", SENDING),
    (LOOP, SENDING),
    (f"{LOOP};{PARSER}", "HTTP: parsing the request"),
    (
        f"{LOOP};HttpToolsProtocol.on_headers_complete (uvicorn/x.py:2)",
        "HTTP: parsing the request",
    ),
    ("Threads.run (backend/serving/lanes.py:2);submit (concurrent/futures/x.py:2)", HANDING),
    (BASE, HANDING),
    (f"{BASE};nobody (nowhere.py:1)", OTHER),
    (f"{LOOP};nobody (nowhere.py:1)", OTHER),
]


@each_of(("line", "name"), WORKS)
def test_work_is_told_by_the_innermost_frame_that_is_known(line: str, name: str) -> None:
    (stack,) = stacks(f"{line} 1\n")
    assert activity(stack, WORK) == name


CLASSES = r"(Mempool|GroupCommit|FileLock|Ledger)\\\."


def test_the_classes_and_modules_of_ours_that_patterns_name_are_there() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "backend").rglob("*.py"))
    for pattern in WORK:
        frames = f"{pattern.frame} {pattern.innermost}"
        for module in re.findall(r"backend/\w+/\w+(?=\\\.py)", frames):
            assert (ROOT / f"{module}.py").exists(), pattern
        for folder, names in re.findall(r"(backend/\w+)/\(([\w|]+)\)", frames):
            for module in names.split("|"):
                assert (ROOT / folder / f"{module}.py").exists(), pattern
        for name in re.findall(CLASSES, frames):
            assert f"class {name}" in source
        for name in re.findall(r"(?:Ledger|GroupCommit)\\\.(\w+)", frames):
            assert f"def {name}(" in source


def test_shares_add_up_and_the_largest_comes_first() -> None:
    counts = stacks("a (x.py:1) 1\nexamine (backend/chain/flight.py:1) 3\n")
    assert list(shares(counts, WORK).items()) == [("validation", 0.75), (OTHER, 0.25)]
    assert shares(Counter(), WORK) == {}


def test_line_numbers_go_and_strange_frames_stay() -> None:
    counts = stacks("<module> (a b.py:12);__init__ (<string>:7);native 5\n")
    assert counts == {("<module> (a b.py)", "__init__ (<string>)", "native"): 5}


def test_a_thread_without_a_frame_is_counted() -> None:
    counts = stacks(" 1\na (x.py:1) 3\n")
    assert counts == {(): 1, ("a (x.py)",): 3}
    assert shares(counts, WORK) == {OTHER: 1.0}


@pytest.mark.parametrize("line", ["nonsense", "a;b", "a;b x", "5"])
def test_what_is_no_stack_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not a collapsed stack"):
        stacks(line)
