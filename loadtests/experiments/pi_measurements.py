"""Sets a service on another machine up, and measures it within some minutes, in resumable steps.

One worker has a queue of its own, which the models describe best; kept answers do not matter, as
each question is asked once. With several workers M/G/m is only a good approximation.

First one customer asks the three questions, each by the index and by a scan. From what they take
follows what can be measured under load in the time: the three questions by the index if they take
long enough for the load generator and there are enough of them, else rankings; and scans. At each
share of L there are ten runs; with less time there are fewer shares, the highest left out first,
because they take longest.

Beside the files of `open_workload`, `service-times.csv` has a line for each run of one customer,
and `machine.csv` what the Pi told of itself in `/metrics` meanwhile.
"""

import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPException
from itertools import product
from math import ceil
from random import Random
from statistics import fmean

from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments import open_workload_measurements as measuring
from loadtests.experiments.open_workload_loads import ARRIVALS, Load, LoadKey
from loadtests.experiments.open_workload_measurements import Requests
from loadtests.experiments.pi_questions import STARTS, each_once, rankings, too_few
from loadtests.generation.schedule import Request
from loadtests.grouping import grouped
from loadtests.lab import generator_check
from loadtests.lab.content import format_time
from loadtests.lab.experiment import Run
from loadtests.lab.one_customer import Recorded, measure_alone, recorded
from loadtests.lab.repeated import unused_name
from loadtests.lab.results import Line, Results
from loadtests.lab.sentences import Sentences
from loadtests.lab.service_facts import ServiceFacts, numbers
from loadtests.models.estimates import LEAST_VALUES, REPLICATIONS
from loadtests.processes import ProgramFailed, Site
from loadtests.questions import FEW_BLOCKS, KINDS, Question, drawn, sample
from loadtests.servers.service import ENDLESS_QUEUE

SENTENCES = Sentences("pi")
WANTED = (
    "FLIGHTCHAIN_WORKERS=1",
    "FLIGHTCHAIN_ANSWER_CACHE_BYTES=0",
    f"FLIGHTCHAIN_LANE_QUEUE={ENDLESS_QUEUE}",  # else scans are refused where many wait
)
UNIT = "flightchain-backend"
_ADDED = f"/run/systemd/system/{UNIT}.service.d/zz-lab"  # which is gone when the machine restarts
_RESTART = f"systemctl daemon-reload; systemctl restart {UNIT}"
_PUT_BACK = f"rm -f {_ADDED}.conf {_ADDED}.env; {_RESTART}"
_SET_UP = f"""
problem="there is no {UNIT}, which scripts/deploy/install makes"
systemctl cat {UNIT} >/dev/null 2>&1 || {{ echo "$problem" >&2; exit 1; }}
mkdir -p {_ADDED.rpartition("/")[0]}
printf '%s\\n' {" ".join(WANTED)} >{_ADDED}.env
printf '%s\\n' '[Service]' EnvironmentFile={_ADDED}.env >{_ADDED}.conf
({_RESTART}) || {{ {_PUT_BACK}; exit 1; }}
"""


def advice(site: Site, ssh: str) -> list[str]:
    """Return what is to be set by hand for clear results, unless it is set by ssh.

    Raises ProgramFailed if there is no Flightchain, or it has too few different questions.
    """
    facts = ServiceFacts.ask(site)
    for kind, count in _different(site).items():
        if count < WARM_UP + LEAST[INDEX]:
            raise too_few(kind, count)
    return [] if ssh or facts.is_simplest else SENTENCES("advice", wanted=WANTED)


@contextmanager
def _set_up(run: Run, site: Site) -> Iterator[None]:
    """Let the service have the wanted settings until the `with` block ends, by --ssh."""
    ssh = run.options.ssh
    try:
        _run_there(ssh, _SET_UP)  # which puts back what it cannot do
    except KeyboardInterrupt:
        _put_back(run, ssh)
        raise
    try:
        if not ServiceFacts.ask(site).is_simplest:
            raise ProgramFailed(f"{site.url} has other settings; is it the {UNIT} of {ssh}?")
        run.say(f"{ssh}: {UNIT} restarted with {' '.join(WANTED)} until all is measured")
        yield
    finally:
        _put_back(run, ssh)


def _put_back(run: Run, ssh: str) -> None:
    try:
        _run_there(ssh, _PUT_BACK)
        run.say(f"{ssh}: {UNIT} restarted with its own settings")
    except ProgramFailed as problem:
        run.say(f"{problem}; it has its own settings again when that machine restarts")


def _run_there(ssh: str, script: str) -> None:
    """Run a script as root on the other machine. Raises ProgramFailed."""
    options = ("BatchMode=yes", "ConnectTimeout=20", "ServerAliveInterval=10")
    command = ["ssh", *(f"-o{option}" for option in options), "--", ssh, "sudo -n sh -e"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)  # noqa: S603  the caller's own ssh
    if done.returncode:
        why = done.stderr.strip()[-600:] or f"status {done.returncode}"
        raise ProgramFailed(f"ssh {ssh} could not restart the service: {why}")


INDEX, SCAN, RANKING = "index", "scan", "ranking"
ENGINES = (INDEX, SCAN)
MINUTES = 20.0
SERVICE_TIMES, MACHINE = "service-times", "machine"
DRAWN = 3000  # questions of each kind
WARM_UP = 1
LEAST = {INDEX: 50, SCAN: 5}  # requests of one customer, if they fit into the time
ASKED_SHARE = 1 / 100  # of all the time, for each question by each engine
CHECK_S, EXPLORING_S = 30, 30  # for the load generator's check; closed runs
LOAD_SHARE = 0.4  # of the time without these, for open runs of each engine and their calibrations
LATEST = 1.25  # times that; after it, no run is begun
START_S = 1.0  # of the load generator, for each run and calibration
LEAST_FACTOR = 0.7  # of the usual arrivals; with fewer, a run is nothing but its warm-up
MOST_FACTOR = 4.0
SHORTEST_S = 0.0025  # a question that takes less is too quick for the load generator
FEW = "of which there are too few different ones here"
LEAST_VARIETY = 0.9  # of drawn questions that differ; with fewer, there are soon no new ones
SAMPLE_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class ServiceTimeLine(Line):
    """Lists a run of one customer. warm_up: its first requests, which do not count."""

    run: str
    kind: str
    engine: str
    warm_up: int


Alone = Recorded[ServiceTimeLine]


@dataclass(frozen=True, slots=True)
class MachineLine(Line):
    """Records a look at the machine. at_s: seconds since 1970. None: it does not tell."""

    at_s: float
    cores: float | None
    cpu_seconds_total: float | None
    memory_bytes: float | None
    memory_available_bytes: float | None
    temperature_celsius: float | None
    throttled: float | None
    disk_busy_seconds_total: float | None


def measure(run: Run) -> None:
    """Measure what the results lack. Raises ProgramFailed."""
    is_begun = run.results.has(loads.PLAN)
    lacks_none_alone = not _lacking_alone(run.results)
    if is_begun and lacks_none_alone and measuring.lacks_nothing(run, list(planned(run))):
        return
    site = Site.at(run.options.host)
    setting_up = _set_up(run, site) if run.options.ssh else nullcontext()
    with setting_up, _watched(run.results, site):
        facts = ServiceFacts.ask(site)
        run.say(SENTENCES.paragraph("service", facts=facts))
        for before in run.results.lines_if_any(loads.SERVICE_FACTS, ServiceFacts)[:1]:
            _require_same(before, facts)
        with run.results.more(loads.SERVICE_FACTS, ServiceFacts) as table:
            table.add(facts)
        generator_check.check(run)
        ask_alone(run, site)
        plan = planned(run)
        made = (load.key for load in plan)
        for message in left_out(made, run.options.loads, alone(run.results), facts.workers):
            run.say(message)
        missing = measuring.shortfalls(run, list(plan))
        later_s = sum(map(partial(_takes_s, plan), missing))
        for group in grouped(missing, lambda shortfall: shortfall.load.server).values():
            group_s = sum(map(partial(_takes_s, plan), group))
            later_s -= group_s
            until_s = time.monotonic() + EXPLORING_S + LATEST * max(group_s, _load_s(run))
            in_time = replace(run, until_s=until_s, later_s=later_s)
            measuring.measure_loads(in_time, [shortfall.load for shortfall in group], STARTS)


def _require_same(before: ServiceFacts, now: ServiceFacts) -> None:
    """Raise ProgramFailed if a measurement would go on with another service or other settings."""
    then, today = (
        replace(facts, answer_limit_bytes=bool(facts.answer_limit_bytes)) for facts in (before, now)
    )
    if then != today:
        service = SENTENCES.paragraph("service", facts=before)
        raise ProgramFailed(SENTENCES.paragraph("changed", service=service))


# --- one customer ----------------------------------------------------------------------------


def ask_alone(run: Run, site: Site) -> None:
    """Let one customer ask each question by each engine, as far as the results lack it."""
    missing = _lacking_alone(run.results)
    if not missing:
        return
    seconds = 60 * (run.options.minutes or MINUTES) * ASKED_SHARE
    run.say(f"service times: about {len(missing) * seconds / 60:.1f} min")
    made = run.results.lines_if_any(SERVICE_TIMES, ServiceTimeLine)
    seed = f"{run.results.folder.name} {len(made)}"  # questions that no session asked before
    random, flights = run.random(seed), sample(site, FEW_BLOCKS)
    questions = drawn(flights, DRAWN, random.getrandbits(32))
    for kind, engine in missing:
        name = unused_name(run.results, f"alone-{engine}-{kind}")
        source: Requests = partial(rankings, flights)
        if kind != RANKING:
            source = partial(_requests, questions[kind], engine)
        measure_alone(
            run.results,
            site,
            name,
            each_once(source, run.asked, random),
            warm_up=WARM_UP,
            least=LEAST[engine],
            least_s=seconds,
            most_s=2 * seconds,
        )
        with run.results.more(SERVICE_TIMES, ServiceTimeLine) as table:
            table.add(ServiceTimeLine(name, kind, engine, WARM_UP))


def _lacking_alone(results: Results) -> list[tuple[str, str]]:
    """Return the kinds and engines of which no run of one customer counts."""
    wanted = [(RANKING, INDEX), *((kind, engine) for engine, kind in product(ENGINES, KINDS))]
    counted = {pair for pair, made in alone(results).items() if made.is_accepted}
    return [pair for pair in wanted if pair not in counted]


def _requests(questions: Sequence[Question], engine: str, _: Random) -> Iterator[Request]:
    """Yield a request for each question, whatever the random numbers."""
    for question in questions:
        path = question.path if engine == INDEX else question.scan_path
        yield Request(question.kind, path)


def alone(results: Results) -> dict[tuple[str, str], Alone]:
    """Return the runs of one customer by kind and engine, accepted by the rules or not."""
    runs = recorded(results, SERVICE_TIMES, ServiceTimeLine)
    return {(run.line.kind, run.line.engine): run for run in runs}


# --- what fits into the time -----------------------------------------------------------------


def planned(run: Run) -> dict[Load, float]:
    """Return the open runs that fit into the time, by what one customer saw, and their seconds."""
    runs, options = alone(run.results), run.options
    workers = run.results.lines(loads.SERVICE_FACTS, ServiceFacts)[-1].workers
    is_ranking = (
        why_rankings(run.results, runs) != FEW or _variety(Site(options.host)) < LEAST_VARIETY
    )
    index = loads.ELSEWHERE if is_ranking else loads.ELSEWHERE_QUESTIONS
    plan = dict[Load, float]()
    for server in (index, loads.ELSEWHERE_SCANS):
        given = options.loads, workers, busy_s(runs, server)
        plan |= fitting(server, first_s(runs, server), _load_s(run), *given)
    return plan


def first_s(runs: Mapping[tuple[str, str], Alone], server: str) -> float:
    """Return E[S] (s) of what a server is asked, as one customer saw it at first."""
    return fmean([fmean(run.times_s) for run in _asked(runs, server)])


def busy_s(runs: Mapping[tuple[str, str], Alone], server: str) -> float:
    """Return how long (s) such a request keeps a worker busy: E[S], if the service does not say."""
    every = (
        fmean(row.service_s or row.closed_response_s for row in run.rows)
        for run in _asked(runs, server)
    )
    return fmean(every)


def _asked(runs: Mapping[tuple[str, str], Alone], server: str) -> list[Alone]:
    engine = SCAN if server == loads.ELSEWHERE_SCANS else INDEX
    kinds = [RANKING] if server == loads.ELSEWHERE else KINDS
    return [runs[kind, engine] for kind in kinds]


def why_rankings(results: Results, runs: Mapping[tuple[str, str], Alone]) -> str:
    """Say why rankings are asked for in place of the three questions, if they are."""
    index_s = first_s(runs, loads.ELSEWHERE_QUESTIONS)
    if index_s < SHORTEST_S:
        return f"which take {format_time(index_s)}, less than {format_time(SHORTEST_S)}"
    limit_per_s = generator_check.limit_per_s(generator_check.last_check(results))
    workers = results.lines(loads.SERVICE_FACTS, ServiceFacts)[-1].workers
    if max(ARRIVALS) * workers / busy_s(runs, loads.ELSEWHERE_QUESTIONS) > limit_per_s:
        return f"of which this load generator cannot send enough, as its limit is {limit_per_s:g}/s"
    return FEW


def _takes_s(plan: Mapping[Load, float], shortfall: measuring.Shortfall) -> float:
    """Return how long (s) the runs take that a load lacks, and their calibrations."""
    return plan[shortfall.load] * shortfall.lacking / shortfall.load.runs


def _variety(site: Site) -> float:
    """Return the share of different ones among many questions, of the kind with the fewest."""
    return min(_different(site).values()) / DRAWN


def _different(site: Site) -> dict[str, int]:
    """Return how many different ones there are among many questions of each kind."""
    questions = drawn(sample(site, FEW_BLOCKS), DRAWN, seed=1)
    return {kind: len({q.path for q in alike}) for kind, alike in questions.items()}


def _load_s(run: Run) -> float:
    """Return how long (s) the open runs of a server and their calibrations are to take."""
    return LOAD_SHARE * (60 * (run.options.minutes or MINUTES) - CHECK_S - 2 * EXPLORING_S)


def fitting(
    server: str,
    mean_s: float,
    seconds: float,
    chosen: Sequence[float] = (),
    workers: int = 1,
    busy_s: float = 0.0,
) -> dict[Load, float]:
    """Return ten runs at as many shares of L as fit into `seconds`, lowest first, and their time.

    There is at least one share, unless its calibrations alone take all the time.
    mean_s: E[S], as one customer sees it. busy_s: its part that keeps a worker busy, if not all.
    chosen: from these shares; none: all.
    """
    wanted = sorted(chosen or ARRIVALS)
    calibrating_s = (LEAST_VALUES + 1) * measuring.CALIBRATION_REQUESTS * mean_s
    if calibrating_s > seconds:
        return {}
    calibrating_s += (LEAST_VALUES + 1 + REPLICATIONS) * START_S
    for count in range(len(wanted), 0, -1):
        usual_s = {
            share: REPLICATIONS * ARRIVALS[share] / share * (busy_s or mean_s) / workers
            for share in wanted[:count]
        }
        factor = (seconds - count * calibrating_s) / sum(usual_s.values())
        if factor >= LEAST_FACTOR:
            break
    factor = min(MOST_FACTOR, max(LEAST_FACTOR, factor))
    return {
        Load(server, loads.STEADY, share, REPLICATIONS, arrivals=round(factor * ARRIVALS[share])): (
            calibrating_s + factor * runs_s
        )
        for share, runs_s in usual_s.items()
    }


def left_out(
    made: Iterable[LoadKey],
    chosen: Sequence[float],
    runs: Mapping[tuple[str, str], Alone],
    workers: int,
) -> list[str]:
    """Return a sentence for each engine whose higher loads did not fit into the time.

    chosen: the shares of L that were to be measured; none: all. runs: of one customer.
    """
    by_server, wanted = grouped(made, lambda key: key.server), sorted(chosen or ARRIVALS)
    index = loads.ELSEWHERE_QUESTIONS if loads.ELSEWHERE_QUESTIONS in by_server else loads.ELSEWHERE
    sentences = []
    for server in (index, loads.ELSEWHERE_SCANS):
        highest = max((key.fraction for key in by_server.get(server, ())), default=0.0)
        if others := [share for share in wanted if share > highest]:
            least = [share for share in wanted if share <= others[0]]
            minutes = minutes_for(least, first_s(runs, server), workers, busy_s(runs, server))
            words = {"questions": loads.SERVERS[server], "shares": of_l(others)}
            sentences += SENTENCES("left_out", **words, next=others[0], minutes=minutes)
    return sentences


def minutes_for(shares: Sequence[float], mean_s: float, workers: int, busy_s: float) -> int:
    """Return how many --minutes these shares of L take. Times (s) are those of `fitting`."""
    calibrating_s = (LEAST_VALUES + 1) * (measuring.CALIBRATION_REQUESTS * mean_s + START_S)
    calibrating_s += REPLICATIONS * START_S
    runs_s = sum(REPLICATIONS * ARRIVALS[share] / share for share in shares) * busy_s / workers
    loads_s = len(shares) * calibrating_s + LEAST_FACTOR * runs_s
    return ceil((loads_s / LOAD_SHARE + CHECK_S + 2 * EXPLORING_S) / 60)


def of_l(shares: Iterable[float]) -> str:
    return f"{listed([f'{share:g}' for share in sorted(shares)])} of L"


def listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


# --- the machine meanwhile -------------------------------------------------------------------


@contextmanager
def _watched(results: Results, site: Site) -> Iterator[None]:
    """Note every few seconds what the machine tells of itself, until the `with` block ends."""
    is_over = threading.Event()

    def watch() -> None:
        with results.more(MACHINE, MachineLine) as table:
            while True:
                with suppress(OSError, ProgramFailed, HTTPException):
                    table.add(_machine_now(site))
                if is_over.wait(SAMPLE_EVERY_S):
                    return

    watching = threading.Thread(target=watch, name="machine", daemon=True)
    watching.start()
    try:
        yield
    finally:
        is_over.set()
        watching.join()


def _machine_now(site: Site) -> MachineLine:
    metrics = numbers(site)
    names = MachineLine.columns()[1:]
    return MachineLine(time.time(), *(metrics.get(f"flightchain_machine_{n}") for n in names))
