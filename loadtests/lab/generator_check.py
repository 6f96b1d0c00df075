"""Measures what the load generator adds to response times, and how many requests it can send.

The same server, which answers at once, is asked by an independent client, which pauses before each
request and waits in the kernel for its answer, and by the generator, with Poisson arrivals
at growing rates. What the generator's requests take longer, from their intended arrivals, is its
own error. Its limit is the highest of these rates up to which the mean error does not grow.

Every session that sends open arrivals makes such a check first, and `generator.csv` keeps it. Rates
beyond the limit are refused. `scripts/lab run selftest` makes the check alone.
"""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, repeat, takewhile
from math import inf
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from urllib.parse import urlsplit

from loadtests.generation.rows import Row
from loadtests.generation.rules import RULES, Facts, judge
from loadtests.generation.run import Say
from loadtests.generation.schedule import Request, arrivals
from loadtests.lab.content import Section, Table
from loadtests.lab.experiment import Options, Run
from loadtests.lab.repeated import unused_name
from loadtests.lab.results import Line, Results
from loadtests.lab.sentences import Sentences
from loadtests.models.random_times import poisson_times
from loadtests.models.sample_statistics import quantile
from loadtests.servers.null import null_server

CHECK = "generator"
RATES_PER_S = (50.0, 100.0, 200.0, 400.0, 800.0)
EACH_S, QUICK_EACH_S = 3.0, 0.6  # of each rate
ALONE, QUICK_ALONE = 400, 100  # requests of the independent client, before and after
PAUSE_S = 0.005  # of the independent client, on average; a server that is awake answers sooner
WARM_UP_S = 0.5  # at the first rate, which do not count
MOST_GROWTH_S = 0.0002
TAIL = 0.99
SELFTEST_S = 0.04  # how long the questions take for which a machine is tested
_LONGEST_ANSWER = 65536
_LIMITS = {rule.name: rule.limit for rule in RULES}
_SENTENCES = Sentences("generator_check")


@dataclass(frozen=True, slots=True)
class CheckLine(Line):
    """Compares the generator at a rate with an independent client. run: the generator's."""

    run: str
    rate_per_s: float
    requests: int
    mean_s: float
    p99_s: float
    alone_mean_s: float
    alone_p99_s: float

    @property
    def error_s(self) -> float:
        return self.mean_s - self.alone_mean_s

    @property
    def tail_error_s(self) -> float:
        return self.p99_s - self.alone_p99_s


def selftest(options: Options, say: Say) -> str:
    """Check the generator, and judge that as a run of questions that take SELFTEST_S.

    Returns why this machine is too noisy; "" if it is not. The generator is near its own saturation
    there on purpose. Raises ProgramFailed.
    """
    with TemporaryDirectory(prefix="flightchain-lab-") as name:
        folder = Path(name)
        facts = check(Run(options, Results(folder), folder, say))
    verdict = judge(replace(facts, before_s=SELFTEST_S, client_cpu=None))
    verdict = verdict.on_shared_machine() if options.shared else verdict
    words = _SENTENCES.paragraph(
        "selftest", reasons=verdict.reasons, selftest_s=SELFTEST_S, is_shared=options.shared
    )
    if not verdict.accepted:
        return words
    say(words)
    return ""


def check(run: Run) -> Facts:
    """Measure the generator against a server that answers at once, and say what would be rejected.

    Returns what it did at the rates that may be sent. Raises ProgramFailed.
    """
    run.say("measuring the load generator's own error")
    name, random = unused_name(run.results, CHECK), run.random(CHECK)
    length_s, alone = run.choose(QUICK_EACH_S, EACH_S), run.choose(QUICK_ALONE, ALONE)
    warm_up_s = poisson_times(RATES_PER_S[0], random, until_s=WARM_UP_S)
    parts_s = [poisson_times(rate, random, until_s=length_s) or [0.0] for rate in RATES_PER_S]
    times_s = warm_up_s + [
        WARM_UP_S + n * length_s + at_s for n, part_s in enumerate(parts_s) for at_s in part_s
    ]
    with null_server(run.log) as server:
        alone_s = asked_alone(server.url, alone, random)
        schedule = arrivals(times_s, repeat(Request(CHECK, "/")))
        record = run.generator(is_quiet=True).open(server, schedule, name)
        alone_s += asked_alone(server.url, alone, random)
    in_order = sorted(record.rows, key=lambda row: row.index)
    ends = accumulate(map(len, parts_s), initial=len(warm_up_s))
    rows = [in_order[begin:end] for begin, end in pairwise(ends)]
    lines = [_line(name, *own, alone_s) for own in zip(RATES_PER_S, rows, strict=True)]
    with run.results.more(CHECK, CheckLine) as table:
        for line in lines:
            table.add(line)
    run.say(describe_own_error(lines))
    lags_s = [
        [row.lag_s for row in own] for own in rows[: RATES_PER_S.index(limit_per_s(lines)) + 1]
    ]
    mean_s, p99_s = max(map(fmean, lags_s)), max(quantile(own_s, TAIL) for own_s in lags_s)
    facts = replace(record.facts(), lag_mean_s=mean_s, lag_p99_s=p99_s)
    for sentence in would_be_rejected(facts, is_shared=run.options.shared):
        run.say(sentence)
    return facts


def would_be_rejected(facts: Facts, *, is_shared: bool) -> list[str]:
    """Return what the rules would say of runs on this machine now, with what can be done.

    facts: of requests at the rates that may be sent.
    """
    mean_s, p99_s = facts.lag_mean_s or 0.0, facts.lag_p99_s or 0.0
    shortest_s = max(
        100 * mean_s / _LIMITS["dispatch_lag_mean"], 100 * p99_s / _LIMITS["dispatch_lag_p99"]
    )
    return _SENTENCES(
        "would_be_rejected",
        foreign=100 * (facts.foreign_cpu or 0.0),
        limit=_LIMITS["foreign_cpu"],
        mean_s=mean_s,
        p99_s=p99_s,
        shortest_s=shortest_s,
        is_shared=is_shared,
    )


def _line(name: str, rate: float, rows: Sequence[Row], alone_s: Sequence[float]) -> CheckLine:
    times_s = [row.open_response_s for row in rows]
    own, other = ((fmean(values), quantile(values, TAIL)) for values in (times_s, alone_s))
    return CheckLine(name, rate, len(rows), *own, *other)


def asked_alone(url: str, count: int, random: Random) -> list[float]:
    """Return response times (s) of an independent client, which asks `count` times, with pauses."""
    address = urlsplit(url)
    request = f"GET / HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n\r\n".encode()
    times_s = []
    for _ in range(count):
        sleep(random.expovariate(1 / PAUSE_S))
        begun_s = done_s = monotonic()
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(request)
            while connection.recv(_LONGEST_ANSWER):
                done_s = monotonic()
        times_s.append(done_s - begun_s)
    return times_s


def last_check(results: Results) -> list[CheckLine]:
    """Return the lines of the last check, by rate; none if there was no check."""
    lines = results.lines_if_any(CHECK, CheckLine)
    return [line for line in lines if line.run == lines[-1].run]


def limit_per_s(lines: Sequence[CheckLine]) -> float:
    """Return the highest rate up to which the mean error grows by no more than MOST_GROWTH_S.

    It is infinite without a check.
    """
    if not lines:
        return inf
    first_s = lines[0].error_s
    carried = takewhile(lambda line: line.error_s - first_s <= MOST_GROWTH_S, lines)
    return max(line.rate_per_s for line in carried)


def describe_own_error(lines: Sequence[CheckLine]) -> str:
    """Return sentences on the generator's own error, up to its limit, and on what it matters to.

    An error below 0 is chance, or that of the independent client.
    """
    limit = limit_per_s(lines)
    carried = [line for line in lines if line.rate_per_s <= limit]
    return _SENTENCES.paragraph(
        "own_error",
        mean_s=max(line.error_s for line in carried),
        tail_s=max(line.tail_error_s for line in carried),
        limit_per_s=limit,
        share=_LIMITS["dispatch_lag_mean"] / 100,
    )


def generator_section(results: Results) -> Section | None:
    if not (lines := last_check(results)):
        return None
    table = Table.from_items(
        "The load generator's own error",
        lines,
        [
            ("Requests a second", lambda line: line.rate_per_s),
            ("Requests", lambda line: line.requests),
            ("Mean / ms", lambda line: 1000 * line.mean_s),
            ("Independent client / ms", lambda line: 1000 * line.alone_mean_s),
            ("Adds to the mean / ms", lambda line: 1000 * line.error_s),
            ("Adds to the 99th percentile / ms", lambda line: 1000 * line.tail_error_s),
        ],
    )
    return Section("The load generator", [describe_own_error(lines)], [table])
