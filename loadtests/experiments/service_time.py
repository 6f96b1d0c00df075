"""Reports the service times of study 000: five requests, one customer. Times are measured seconds.

`service_time_measurements` measures. The mean is that of the accepted runs, with Student's interval
over them, or over batches of a single run. The variance is that of all their requests. Numbers of
blocks read from files are counted by the servers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from loadtests.experiments.service_time_measurements import (
    INDEX,
    KINDS,
    PLAN,
    SCAN,
    STUDY,
    PlanLine,
    measure,
)
from loadtests.grouping import grouped
from loadtests.lab import content
from loadtests.lab.content import Figure, Metric, Report, Section, Table
from loadtests.lab.experiment import Experiment, Mode
from loadtests.lab.one_customer import Recorded, recorded
from loadtests.lab.published import (
    BLOCKS,
    SERVICE_TIMES,
    ServiceTime,
)
from loadtests.lab.repeated import measured
from loadtests.lab.repeated import of as estimated
from loadtests.lab.report.drawing import Axis, Series, Source, figure
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences
from loadtests.models.estimates import Interval, confidence_interval, mean_over_runs
from loadtests.models.sample_statistics import mean_of, summary
from loadtests.questions import KINDS as QUESTIONS

WAYS = {STUDY: "the study's storage, here", SCAN: "our scan", INDEX: "our index"}
PUBLISHED = "the study, on its Pi"
_SOURCES: dict[str, Source] = {STUDY: "second", SCAN: "ours", INDEX: "model"}
_COUNTED_AS = {STUDY: "disk_reads", SCAN: "file"}  # blocks read; our index does not count them


@dataclass(frozen=True)
class Cell:
    """A request by one way. turns: turn -> its accepted run. rejected: number of other runs.

    blocks: length of the chain.
    """

    way: str
    blocks: int
    turns: Mapping[int, Recorded]
    rejected: int

    @cached_property
    def times_s(self) -> list[float]:
        """The service times of all requests that count."""
        return [time_s for run in self.turns.values() for time_s in run.times_s]

    @property
    def made(self) -> int:
        """The number of all its runs."""
        return len(self.turns) + self.rejected

    @property
    def is_known(self) -> bool:
        """Whether there are enough requests, two, for a mean and a variance."""
        return len(self.times_s) > 1

    @cached_property
    def mean_s(self) -> Interval:
        """E[S]."""
        return mean_over_runs([run.times_s for run in self.turns.values()])

    @property
    def service(self) -> ServiceTime:
        """E[S], and the variance of all requests."""
        return ServiceTime(self.mean_s.estimate, summary(self.times_s).variance)

    @cached_property
    def reads(self) -> float:
        """The mean number of blocks that a request reads from files; 0 if it is not counted."""
        name = _COUNTED_AS.get(self.way, "")
        counts = [one.count(name) for run in self.turns.values() for one in run.asked]
        return mean_of(counts) if counts else 0.0


Cells = dict[tuple[str, str], Cell]  # (way, kind), in alphabetical order


def cells(results: Results) -> Cells:
    """The cells of all requests and ways that have a run. Raises ResultsError without a plan."""
    lines = results.lines(PLAN, PlanLine)
    runs = recorded(results, {line.run: line.warm_up for line in lines})
    made = grouped([line for line in lines if line.run in runs], lambda line: (line.way, line.kind))
    found = {}
    for key, of in sorted(made.items(), key=lambda one: one[0]):
        turns = {line.turn: runs[line.run] for line in of if runs[line.run].is_accepted}
        found[key] = Cell(key[0], of[0].blocks, turns, len(of) - len(turns))
    return found


def known(found: Cells, way: str, kind: str) -> Cell | None:
    """The cell with a mean; None if there is none."""
    cell = found.get((way, kind))
    return cell if cell and cell.is_known else None


def times_faster(found: Cells, way: str, kind: str) -> Interval | None:
    """How many times as fast a way is as the study's storage, from the turns that both have.

    None if it is not known.
    """
    study, ours = known(found, STUDY, kind), known(found, way, kind)
    if study is None or ours is None:
        return None
    ratios = [
        mean_of(study.turns[turn].times_s) / mean_of(run.times_s)
        for turn, run in ours.turns.items()
        if turn in study.turns
    ]
    return confidence_interval(ratios) if len(ratios) > 1 else None


# --- the report --------------------------------------------------------------------------------


def analyse(results: Results) -> Report:
    """Report the study's table with ours added. Raises ResultsError if there is no run."""
    found, sentences = cells(results), Sentences("service_time")
    if not found:
        raise ResultsError(f"{results.folder} has no run with a request")
    told = sentences("told", cell=next(iter(found.values())), blocks=BLOCKS)
    of_study = [SERVICE_TIMES[kind].mean_s for kind in QUESTIONS]
    findings = sentences(
        "findings",
        found=found,
        ways=WAYS,
        published=SERVICE_TIMES,
        scans={way: known(found, way, "flight_counter") for way in _ways(found)},
        faster={way: ratios for way in (SCAN, INDEX) if (ratios := _faster(found, way))},
        alike={way: means for way in _ways(found) if (means := _alike(found, way))},
        grows=max(of_study) / min(of_study) - 1,
    )
    figure_of_means = _figure(found, sentences.one("figure"))
    sections = [
        Section("Service times", told, [_table(found), figure_of_means]),
        Section("What a service time consists of", sentences("reads"), [_reads_table(found)]),
    ]
    return Report(findings, sections, [*_metrics(found)])


def _ways(found: Cells) -> list[str]:
    return [way for way in WAYS if any(key[0] == way for key in found)]


def _faster(found: Cells, way: str) -> list[tuple[str, str]]:
    """How many times as fast a way is, by kind of request, as far as it is known."""
    ratios = {kind: times_faster(found, way, kind) for kind in KINDS}
    return [(kind, estimated(of).plus_minus()) for kind, of in ratios.items() if of]


def _alike(found: Cells, way: str) -> list[tuple[str, float]]:
    """The means of the three questions about flights, the quickest first; none if one lacks."""
    means = {kind: cell.mean_s.estimate for kind in QUESTIONS if (cell := known(found, way, kind))}
    return sorted(means.items(), key=lambda one: one[1]) if len(means) == len(QUESTIONS) else []


def _table(found: Cells) -> Table:
    rows: list[Sequence[content.Cell]] = []
    for kind in KINDS:
        rows.append((kind, PUBLISHED, None, *_moments(SERVICE_TIMES[kind], None), None))
        rows += [_row(found, way, kind) for way in WAYS if (way, kind) in found]
    columns: Sequence[str] = (
        *("Request", "Answered by", "Requests", "E[S] / s", "95 %, ±"),
        *("Variance / s²", "cv", "L / 1/s", "Times as fast"),
    )
    note = (
        "L = 1/E[S]. Times as fast: compared with the study's storage on this machine, with the "
        "95 % interval over turns."
    )
    return Table("Service times", columns, rows, note, digits=4)


def _row(found: Cells, way: str, kind: str) -> Sequence[content.Cell]:
    cell = found[way, kind]
    first = (kind, WAYS[way], len(cell.times_s))
    if not cell.is_known:
        return (*first, *[None] * 6)
    ratio = None if way == STUDY else times_faster(found, way, kind)
    faster = estimated(ratio).plus_minus() if ratio else None
    return (*first, *_moments(cell.service, cell.mean_s.half_width), faster)


def _moments(of: ServiceTime, half_width: float | None) -> Sequence[content.Cell]:
    return (of.mean_s, half_width, of.variance_s2, of.variation, 1 / of.mean_s)


def _figure(found: Cells, told: str) -> Figure:
    """Bars on a logarithmic axis, because the ways differ by powers of ten."""
    names = [kind.replace("_", "\n", 1) for kind in KINDS]
    published = [SERVICE_TIMES[kind].mean_s for kind in KINDS]
    series = [Series(PUBLISHED, "study", names, published, shape="bars")]
    for way in _ways(found):
        of_way = [known(found, way, kind) for kind in KINDS]
        means = [estimated(one.mean_s) if one else None for one in of_way]
        series.append(measured(WAYS[way], _SOURCES[way], names, means, shape="bars"))
    rows = [(kind, one.name, one.ys[at]) for at, kind in enumerate(KINDS) for one in series]
    table = Table("Mean service times", ("Request", "Answered by", "E[S] / s"), rows, digits=4)
    x, y = Axis("request"), Axis("E[S] / s", is_logarithmic=True)
    return figure("Mean service times", told, x, y, series, table)


def _reads_table(found: Cells) -> Table:
    means_ms = {
        key: 1000 * cell.mean_s.estimate
        for key, cell in found.items()
        if cell.reads and cell.is_known
    }
    columns: Sequence[content.Column[tuple[str, str]]] = [
        ("Request", lambda of: of[1]),
        ("Answered by", lambda of: WAYS[of[0]]),
        ("Blocks", lambda of: found[of].blocks),
        ("Blocks read", lambda of: found[of].reads),
        ("E[S] / ms", lambda of: means_ms[of]),
        ("E[S] per read / ms", lambda of: means_ms[of] / found[of].reads),
    ]
    note = "By the study's profile reading a block took 46 ms and checking 39 ms; 503 of 522 read."
    return Table.of("Blocks read", means_ms, columns, note)


def _metrics(found: Cells) -> Iterator[Metric]:
    for (way, kind), cell in found.items():
        if cell.is_known:
            yield estimated(cell.mean_s).metric(f"service_time[{way},{kind}]", "s")
            yield Metric(f"cv[{way},{kind}]", cell.service.variation)


EXPERIMENT = Experiment(
    name="service-time",
    study="000",
    title="Service time: five requests, one customer",
    reproduces="the table of service times",
    about=(
        "One customer asks again as soon as an answer comes, so there is no waiting and a response "
        "time is a service time. The mean, variance and rate L = 1/E[S] of each of the study's "
        "five requests are measured in three ways: with the study's storage on this machine, with "
        "our scan of all blocks, and with our index."
    ),
    modes=(Mode.REAL,),
    measure=measure,
    analyse=analyse,
)
