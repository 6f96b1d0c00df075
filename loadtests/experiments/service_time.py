"""Measures and reports the service times of study 000: five requests, one customer.

The study's storage, our scan and our index have the same flights, and are asked in turns, so that a
slow minute affects all of them. Our scan has caches in the study's proportion, so that it reads its
blocks from files. Our index has the default settings of the service, except that answers are not
kept, because the same question is asked again and again. Beside the files of `lab.one_customer`,
`plan.csv` has a line for each run.

The mean is that of the accepted runs, with Student's interval over them, or over batches of a
single run. The variance is that of all their requests. Times are measured seconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import itemgetter
from random import Random
from statistics import fmean

from loadtests.baseline import write_chain
from loadtests.chains import generated, imported
from loadtests.generation.schedule import Request
from loadtests.lab import content
from loadtests.lab.content import Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.ledgers import FLIGHTS_PER_BLOCK
from loadtests.lab.one_customer import Recorded, measure_alone, recorded
from loadtests.lab.published import SERVICE_TIMES, ServiceTime
from loadtests.lab.repeated import Repeated, measured
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Line, NothingCounts, Results
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import Interval, confidence_interval, mean_over_runs
from loadtests.models.sample_statistics import variance_of
from loadtests.processes import ProgramFailed, Service, running
from loadtests.questions import FEW_BLOCKS, Question, all_blocks, drawn, sample
from loadtests.questions import KINDS as QUESTIONS
from loadtests.servers import study
from loadtests.servers.service import RUN_BLOCKS, as_in_the_study

KINDS = tuple(SERVICE_TIMES)  # the study's five requests, in its order
STUDY, SCAN, INDEX = "study", "scan", "index"
WARM_UP = 1  # first requests of a run that do not count
PLAN = "plan"
ANSWER_DIGITS = 9  # a mean's last digits depend on the order of the summation
SCANS, LOOKUPS = 4, 30  # requests of a run that count, if it scans the chain, and of any other


@dataclass(frozen=True, slots=True)
class Plan:
    """Says how much is measured. blocks: length of the chain. rounds: turns through all.

    run_blocks: blocks that our service reads at a miss. least_s: least duration of a run, to
    measure the processor time of other programs.
    """

    blocks: int
    run_blocks: int
    rounds: int
    least_s: float


# takes 20 minutes on a PC, over an hour on a Pi
FULL = Plan(study.BLOCKS, RUN_BLOCKS, rounds=6, least_s=1.0)
QUICK = Plan(blocks=60, run_blocks=4, rounds=1, least_s=0.5)


@dataclass(frozen=True, slots=True)
class PlanLine(Line):
    """Lists a run: a way and kind of request. blocks: length of the chain.

    warm_up: number of first requests that do not count.
    """

    run: str
    way: str
    kind: str
    turn: int
    blocks: int
    warm_up: int


def measure(run: Run) -> None:
    """Measure by the quick or the full plan. The option --reps sets the number of turns.

    Raises ProgramFailed if the ways give different answers.
    """
    plan = run.choose(QUICK, FULL)
    with running_ways(run, plan) as ways, run.results.table(PLAN, PlanLine) as table:
        require_same_answers(ways)
        for turn, kind in product(range(1, (run.options.reps or plan.rounds) + 1), KINDS):
            run.say(f"turn {turn}: {kind}")
            for way in ways:
                name = f"{way.name}-{kind}-{turn:02}"
                table.add(PlanLine(name, way.name, kind, turn, plan.blocks, WARM_UP))
                measure_alone(
                    run.results,
                    way.service,
                    name,
                    way.requests(kind, run.random(f"{kind} {turn}")),  # the same for all ways
                    warm_up=WARM_UP,
                    least=SCANS if way.name != INDEX and kind in QUESTIONS else LOOKUPS,
                    least_s=plan.least_s,
                )


# --- what is asked -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Way:
    """Holds a running server, and makes requests to it. flights: in its chain."""

    name: str
    service: Service
    questions: Mapping[str, Question]
    flights: int

    def path(self, kind: str) -> str:
        """Return the path of the question of this kind. Raises KeyError if there is none."""
        question = self.questions[kind]
        return question.scan_path if self.name == SCAN else question.path

    def requests(self, kind: str, random: Random) -> Iterator[Request]:
        """Yield endless requests: the same question, or blocks or transactions at random."""
        block, first, transaction = _STUDYS if self.name == STUDY else _OURS
        while True:
            if kind in self.questions:
                path = self.path(kind)
            elif kind == "get_block":
                path = f"{block}{first + random.randrange(self.flights // FLIGHTS_PER_BLOCK)}"
            else:
                path = f"{transaction}{random.randrange(self.flights)}"
            yield Request(kind, path)


_STUDYS = "/get_block?height=", 0, "/get_transaction?id="
_OURS = "/blocks/", 1, "/transactions/"
"""What a path of a block begins with, the lowest block with flights, and the same of a flight."""


@contextmanager
def running_ways(run: Run, plan: Plan) -> Iterator[list[Way]]:
    """Run each way on the same generated flights, stored in two chains. Raises ProgramFailed."""
    flights, folder = plan.blocks * FLIGHTS_PER_BLOCK, run.scratch / "study"
    run.say(f"importing {flights:,} generated flights")
    chain = imported(generated(flights), run.scratch / "ours", run.log)
    only_http = ("serve", "--only-http")
    with running(chain.folder, run.log, only_http, settings={"workers": 1}) as service:
        run.say("writing the same blocks in the study's way")
        write_chain(folder, all_blocks(service))
        questions = drawn(sample(service, FEW_BLOCKS), 1, run.options.seed)
    like_theirs = as_in_the_study(chain.block_bytes, plan.blocks, run_blocks=plan.run_blocks)
    settings = {"workers": 1, "answer_cache_bytes": 0}
    ours = {kind: only for kind, (only,) in questions.items()}, chain.flights
    with (
        study.running(folder, run.log) as stored,
        running(chain.folder, run.log, only_http, settings=like_theirs) as scan,
        running(chain.folder, run.log, only_http, settings=settings) as index,
    ):
        yield [Way(STUDY, stored, *ours), Way(SCAN, scan, *ours), Way(INDEX, index, *ours)]


def require_same_answers(ways: Sequence[Way]) -> None:
    """Raise ProgramFailed if two ways answer a question differently."""
    for kind in QUESTIONS:
        answers = {way.name: _answer(way, kind) for way in ways}
        if len(set(answers.values())) > 1:
            raise ProgramFailed(f"{kind} is answered differently: {answers}")


def _answer(way: Way, kind: str) -> float | None:
    """Return a way's answer to its question, as a number that must be the same for all ways."""
    answer = way.service.get(way.path(kind))
    ours = "average_delay" if kind == "average_delays" else "count"
    number = answer[kind if kind in answer else ours]
    if isinstance(number, list):  # the study's server answers a number, or the flights themselves
        number = len(number)
    return None if number is None else round(float(number), ANSWER_DIGITS)


# --- what was measured ---------------------------------------------------------------------------

WAYS = {STUDY: "the study's storage on this machine", SCAN: "our scan", INDEX: "our index"}
PUBLISHED = "the study, on its Pi"
_SOURCES: dict[str, Source] = {STUDY: "second", SCAN: "ours", INDEX: "model"}


@dataclass(frozen=True)
class Cell(Repeated[Recorded[PlanLine]]):
    """Sums up a kind of request, answered by one way."""

    @cached_property
    def means_s(self) -> dict[int, float]:
        return {run.line.turn: fmean(run.times_s) for run in self.runs}

    @cached_property
    def times_s(self) -> list[float]:
        return [time_s for run in self.runs for time_s in run.times_s]

    @cached_property
    def mean_s(self) -> Interval:
        return mean_over_runs([run.times_s for run in self.runs])

    @property
    def service(self) -> ServiceTime:
        """Return E[S] in s, and the variance of all requests in s²."""
        return ServiceTime(self.mean_s.estimate, variance_of(self.times_s))


Cells = dict[tuple[str, str], Cell]  # (way, kind)


def cells_of(results: Results) -> Cells:
    """Return the cells that have two requests that count, for a mean and a variance."""
    runs = [run for run in recorded(results, PLAN, PlanLine) if run.is_accepted]
    cells = Cell.of_each(runs, lambda run: (run.line.way, run.line.kind))
    return {(c.line.way, c.line.kind): c for c in cells if len(c.times_s) > 1}


def times_faster(cells: Cells, way: str, kind: str) -> Interval | None:
    """Return how many times as fast a way is as the study's storage, over turns that both have.

    None if fewer than two turns are known.
    """
    study, ours = cells.get((STUDY, kind)), cells.get((way, kind))
    if study is None or ours is None:
        return None
    ratios = [
        study.means_s[turn] / ours_s
        for turn, ours_s in ours.means_s.items()
        if turn in study.means_s
    ]
    return confidence_interval(ratios) if len(ratios) > 1 else None


# --- the report --------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report the study's table with ours added. Raises NothingCounts if there is no run."""
    cells, sentences = cells_of(results), Sentences("service_time")
    if not cells:
        raise NothingCounts(f"{results.folder} has no run with requests that count")
    lead = sentences("lead", line=next(iter(cells.values())).line, blocks=study.BLOCKS)
    published_s = [SERVICE_TIMES[kind].mean_s for kind in QUESTIONS]
    ways = [way for way in WAYS if any(key[0] == way for key in cells)]
    findings = sentences(
        "findings",
        blocks=study.BLOCKS,
        ways=WAYS,
        published=SERVICE_TIMES,
        scans={way: cells.get((way, "flight_counter")) for way in ways},
        faster={way: ratios for way in (SCAN, INDEX) if (ratios := _faster(cells, way))},
        alike={way: means for way in ways if (means := _alike(cells, way))},
        grows=max(published_s) / min(published_s) - 1,
    )
    drawing = _figure(cells, ways, sentences.paragraph("figure"))
    sections = [Section("Service times", lead, [_table(cells), drawing])]
    return Report(findings, sections, [*_metrics(cells)])


def _faster(cells: Cells, way: str) -> list[tuple[str, str]]:
    """Return how many times as fast a way is, by kind of request, as far as it is known."""
    ratios = {kind: times_faster(cells, way, kind) for kind in KINDS}
    return [(kind, content.shown(ratio)) for kind, ratio in ratios.items() if ratio]


def _alike(cells: Cells, way: str) -> list[tuple[str, float]]:
    """Return the means (s) of the questions about flights, quickest first; none if one lacks."""
    means = {k: cells[way, k].mean_s.estimate for k in QUESTIONS if (way, k) in cells}
    return sorted(means.items(), key=itemgetter(1)) if len(means) == len(QUESTIONS) else []


def _table(cells: Cells) -> Table:
    rows: list[Sequence[content.Cell]] = []
    for kind in KINDS:
        theirs = SERVICE_TIMES[kind]
        rows.append((kind, PUBLISHED, None, *_moments(theirs, theirs.mean_s), None))
        rows += [_row(cells, way, kind) for way in WAYS if (way, kind) in cells]
    columns: Sequence[str] = (
        *("Request", "Answered by", "Requests", "E[S] / s"),
        *("Variance / s²", "cv", "L / 1/s", "Times as fast"),
    )
    note = (
        "L = 1/E[S]. Times as fast: compared with the study's storage on this machine, with the "
        "95 % interval over turns."
    )
    return Table("Service times", columns, rows, note, digits=4)


def _row(cells: Cells, way: str, kind: str) -> Sequence[content.Cell]:
    cell = cells[way, kind]
    ratio = None if way == STUDY else times_faster(cells, way, kind)
    return (kind, WAYS[way], len(cell.times_s), *_moments(cell.service, cell.mean_s), ratio)


def _moments(service: ServiceTime, mean_s: content.Cell) -> Sequence[content.Cell]:
    return (mean_s, service.variance_s2, service.variation, 1 / service.mean_s)


def _figure(cells: Cells, ways: Sequence[str], caption: str) -> Figure:
    """Draw bars on a logarithmic axis, because the ways differ by powers of ten."""
    published_s = [SERVICE_TIMES[kind].mean_s for kind in KINDS]
    series = [Series(PUBLISHED, "study", KINDS, published_s, shape="rows")]
    for way in ways:
        means = [cells[way, kind].mean_s if (way, kind) in cells else None for kind in KINDS]
        series.append(measured(WAYS[way], _SOURCES[way], KINDS, means, shape="rows"))
    x = Axis("E[S] / s", is_logarithmic=True)
    return figure("Mean service times", caption, x, Axis(""), series)


def _metrics(cells: Cells) -> Iterator[Metric]:
    for (way, kind), cell in cells.items():
        yield Metric.of_amount(f"service_time[{way},{kind}]", cell.mean_s, "s")
        yield Metric(f"cv[{way},{kind}]", cell.service.variation)


EXPERIMENT = Experiment.described("service-time", "000", measure, analyse)
