"""Our scan against the study's way of scanning, with the same flights on the same machine (row 3).

Our scan reads and checks every block for every question: its caches have no bytes, and the bytes
that the service reads are counted. The study's scan is `baseline.StudyLedger`, in this process.
Both find their files in the page cache, and both must give the same answers.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from loadtests.baseline import StudyLedger
from loadtests.bench.figures import Figure, pairwise, spread_of
from loadtests.bench.session import Bench, load_now
from loadtests.chains import write_studys_way
from loadtests.processes import ProgramFailed, Service
from loadtests.questions import KINDS, Question

LEAST_TIMES_FASTER = 15.0


def scan_against_study(bench: Bench) -> Iterator[Figure]:
    """Our scan, reading and checking every block, against the study's scan of the same flights.

    The services have one worker, so that every question meets the same caches.
    """
    chain = bench.chains.month()
    only_http = ("serve", "--only-http")
    with (
        bench.service(chain, only_http, workers=1, cache_bytes=0) as cold,
        bench.service(chain, only_http, workers=1) as warm,
    ):
        questions = bench.questions(chain, cold)
        bench.say("writing the same blocks the study's way, and opening them")
        start_s = perf_counter()
        folder = bench.empty_folder()
        write_studys_way(cold, folder)
        ledger = StudyLedger(folder)
        opened_s = perf_counter() - start_s
        question = questions[KINDS[0]][0]
        warm.get(question.scan_path)
        facts = {
            "bytes_read_per_scan": _bytes_of_a_scan(cold, question),
            "bytes_read_per_cached_scan": _bytes_of_a_scan(warm, question),
            "block_bytes": chain.block_bytes,
            "writing_and_opening_the_study_chain_s": opened_s,
        }
        for kind in KINDS:
            times_s = _scanned(bench, ledger, cold, warm, questions[kind])
            yield from _scan_figures(kind, *times_s, facts)


def _bytes_of_a_scan(service: Service, question: Question) -> int:
    before = service.bytes_read()
    service.get(question.scan_path)
    return service.bytes_read() - before


def _scanned(
    bench: Bench, ledger: StudyLedger, cold: Service, warm: Service, questions: Sequence[Question]
) -> tuple[list[float], list[float], list[float]]:
    """Scan for each of some questions, in turns. Raises ProgramFailed if the answers differ.

    Returns the seconds of each scan: the study's way, and ours without and with caches.
    """
    study_s, cold_s, warm_s = list[float](), list[float](), list[float]()
    for number, question in enumerate(questions[: bench.plan.scan_rounds], start=1):
        bench.say(f"scans: {question.kind}, round {number} of {bench.plan.scan_rounds}")
        start_s = perf_counter()
        studys = getattr(ledger, question.kind)(*question.parameters.values())
        study_s.append(perf_counter() - start_s)
        for service, times_s in ((cold, cold_s), (warm, warm_s)):
            start_s = perf_counter()
            ours = service.get(question.scan_path)
            times_s.append(perf_counter() - start_s)
            _require_same(question, ours, studys)
    return study_s, cold_s, warm_s


def _require_same(question: Question, ours: dict[str, Any], studys: Any) -> None:
    expected = len(studys) if isinstance(studys, list) else studys
    found = ours["average_delay"] if question.kind == "average_delays" else ours["count"]
    if found != expected:
        raise ProgramFailed(f"{question.scan_path}: our scan says {found}, the study's {expected}")


def _scan_figures(
    kind: str,
    study_s: Sequence[float],
    cold_s: Sequence[float],
    warm_s: Sequence[float],
    facts: dict[str, Any],
) -> Iterator[Figure]:
    ratios = pairwise(study_s, cold_s)
    spread = spread_of(ratios)
    read_all = facts["bytes_read_per_scan"] >= 0.9 * facts["block_bytes"]
    yield Figure(
        3,
        f"{kind} by scan, times faster than the study's way",
        str(spread) if read_all else f"{spread}, but NOT every block was read",
        f"at least {LEAST_TIMES_FASTER:g}",
        spread.median >= LEAST_TIMES_FASTER and read_all,
        spread.is_noisy,
        {"ratios": ratios, "study_s": study_s, "ours_s": cold_s, **facts, **load_now()},
    )
    what, warm = f"{kind} by scan, caches warm", spread_of(warm_s)
    yield Figure(3, what, f"{warm} s", raw={"ours_cached_s": warm_s})
