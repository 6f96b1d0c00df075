"""Runs of other load generators: pooled by load, forecast from one customer, judged, thresholds."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.experiments import running, tool_results
from loadtests.experiments.tool_results import lacks, pooled, written_runs
from loadtests.generation.rows import COLUMNS, closed_index
from loadtests.lab.content import Report
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.tool_outputs import read
from loadtests.models import replay
from loadtests.models.random_times import Gamma, poisson_times
from tests.loadtests.lab.test_tool_outputs import (
    LOCUST,
    UNIX_S,
    WHOLE,
    WRK2,
    Request,
    k6_json,
    moment,
    oha_csv,
    vegeta_json,
)

SERVICE = Gamma(0.040, 0.2)
RATE = 12.5  # half of what one worker can do
Write = Callable[[Sequence[Request]], str]
HOLDS = "the forecast of one customer holds within 5 %"
DOES_NOT = "the forecast of one customer does not hold within 5 %"


def one_customer(random: Random, count: int = 300) -> list[Request]:
    requests, now = [], 0.0
    for _ in range(count):
        took = SERVICE.draw(random)
        requests.append((now, took))
        now += took + 0.0005
    return requests


def open_run(
    random: Random, count: int = 800, slower: float = 1.0, rate: float = RATE, workers: int = 1
) -> list[Request]:
    arrivals = poisson_times(rate, random, count=count)
    services = [slower * SERVICE.draw(random) for _ in arrivals]
    return list(zip(arrivals, replay.multi_server(arrivals, services, workers), strict=True))


def files(
    folder: Path, writes: Sequence[Write], runs: int = 6, calibrations: int = 6, **of_run: float
) -> list[Path]:
    """Write files of calibrations and open runs of a perfect M/G/1, in forms of several tools."""
    random, paths = Random(7), []
    contents = [("one", one_customer(random)) for _ in range(calibrations)]
    contents += [("open", open_run(random, **of_run)) for _ in range(runs)]  # type: ignore[arg-type]
    for at, (name, requests) in enumerate(contents):
        paths.append(folder / f"{name}-{at}.out")
        paths[-1].write_text(writes[at % len(writes)](requests))
    return paths


def reported(folder: Path, paths: Sequence[Path], workers: int = 1) -> Report:
    running.bring(paths, folder, workers)
    return tool_results.analyse(Results(folder))


@pytest.mark.parametrize("tool", ["Locust --raw", "vegeta", "k6", "oha"])
def test_six_calibrations_and_six_runs_of_a_perfect_queue_agree(tool: str, tmp_path: Path) -> None:
    report = reported(tmp_path / "one", files(tmp_path, [WHOLE[tool]]))
    (finding,) = report.findings
    assert HOLDS in finding
    assert (tool == "oha") == ("requests that got no answer" in str(report.sections[0].paragraphs))
    assert "runs: 6, of one customer: 6" in finding


@pytest.mark.parametrize("slower", [1.15, 0.87])
def test_a_server_that_is_slower_or_quicker_under_load_is_found(
    slower: float, tmp_path: Path
) -> None:
    (finding,) = reported(tmp_path / "one", files(tmp_path, [oha_csv], slower=slower)).findings
    assert DOES_NOT in finding
    assert ("difference +" if slower > 1 else "difference -") in finding


def test_the_quick_runs_of_a_load_are_no_runs_of_one_customer(tmp_path: Path) -> None:
    """Each 50 ms a request of 40 ms; in three of six runs two take 90 ms, and the next waits."""
    random, paths = Random(7), []
    contents = {f"one-{n}": one_customer(random) for n in range(5)}
    for n in range(6):
        slow = {30, 60} if n % 2 else set[int]()
        contents[f"open-{n}"] = [(0.05 * at, 0.09 if at in slow else 0.04) for at in range(100)]
    for name, requests in contents.items():
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(vegeta_json(requests))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert "runs: 6, of one customer: 5" in finding
    groups = tool_results.groups(Results(tmp_path / "one"))
    assert {group.name: len(group.runs) for group in groups} == {"one customer": 5, "20/s": 6}


def test_runs_of_several_tools_are_one_load(tmp_path: Path) -> None:
    paths = files(tmp_path, [vegeta_json, oha_csv, k6_json])
    (tmp_path / "fast").mkdir()
    paths += files(tmp_path / "fast", [oha_csv], runs=5, calibrations=0, rate=18.0)
    report = reported(tmp_path / "one", paths)
    assert re.match(r"The forecast of one customer holds within 5 % at \d of 2", report.conclusion)
    loads = pooled([run for run in written_runs(Results(tmp_path / "one")) if not run.is_alone])
    assert [len(runs) for runs in loads.values()] == [6, 5]
    assert abs(float(list(loads)[1].removesuffix("/s")) - 18) < 1


def test_workers_are_as_many_as_is_said(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], rate=30.0, workers=2)
    assert HOLDS in reported(tmp_path / "two", paths, workers=2).findings[0]
    finding = reported(tmp_path / "one", paths, workers=1).findings[0]
    assert "is not decided" in finding
    assert re.search(
        r"One worker has no steady state here, as λE\[S\] is 1\.\d+: .* --workers", finding
    )


def test_short_runs_decide_nothing_and_longer_ones_are_asked_for(tmp_path: Path) -> None:
    (finding,) = reported(tmp_path / "one", files(tmp_path, [oha_csv], count=60)).findings
    assert "is not decided" in finding
    assert "of one customer: 6; longer runs, of one customer too, narrow the interval)" in finding


def test_too_few_runs_decide_nothing_and_say_what_is_missing(tmp_path: Path) -> None:
    report = reported(tmp_path / "one", files(tmp_path, [oha_csv], runs=2, calibrations=1))
    assert "is not decided" in report.findings[0]
    assert (
        "a verdict needs 5 runs and 5 of one customer, and 10 runs from 0.8" in report.findings[0]
    )


def test_without_one_customer_there_are_percentiles_and_no_forecast(tmp_path: Path) -> None:
    running.bring(files(tmp_path, [oha_csv], calibrations=0), tmp_path / "one", 1)
    report = running.analyse(Results(tmp_path / "one"))
    (finding,) = report.findings
    assert finding.startswith("No run has one customer alone, so E[S] is not known")
    assert any(m.name.startswith("response_time_p99[12.") for m in report.metrics)


def test_files_that_are_said_to_be_of_one_customer_are(tmp_path: Path) -> None:
    alone, busy = files(tmp_path, [oha_csv], runs=1, calibrations=1)
    words = ["analyse", str(busy), "--calibration", str(alone), "--out", str(tmp_path / "a")]
    outcome = CliRunner().invoke(main, words)
    assert "of one customer: 1" in outcome.output
    words = ["analyse", str(busy), "--calibration", str(busy), "--out", str(tmp_path / "b")]
    assert "All runs are of one customer alone" in CliRunner().invoke(main, words).output


def test_files_that_only_sum_up_have_percentiles_and_no_forecast(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], runs=1, calibrations=1)
    for name, text in {**LOCUST, "wrk2.txt": WRK2}.items():
        paths.append(tmp_path / name)
        paths[-1].write_text(text)
    *_, finding = reported(tmp_path / "one", paths).findings
    assert finding.startswith("Nothing is forecast of run, wrk2.txt. The file only sums up")
    metrics = {m.name: m.value for m in running.analyse(Results(tmp_path / "one")).metrics}
    assert metrics["response_time_p99[N = 4, 10/s]"] == pytest.approx(0.045)
    assert metrics["response_time_p50[2,002/s]"] == pytest.approx(0.006671)


def test_runs_that_went_on_beside_others_are_not_judged(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], runs=0)
    header, *rows = raw_of(closed_requests(Random(1), exponential)).splitlines()
    paths.append(tmp_path / "both.csv")
    paths[-1].write_text(
        "\n".join([header, *rows[:9], *(f"x{row}" for row in rows), *rows[9:], ""])
    )
    (finding,) = reported(tmp_path / "one", paths).findings
    assert "both.csv:closed, both.csv:xclosed. Other runs of its file went on meanwhile" in finding


def test_runs_with_failed_requests_are_not_judged(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv])
    paths[-1].write_text(paths[-1].read_text().replace("2,200\n", "2,500\n", 40))
    judged, failed = reported(tmp_path / "one", paths).findings
    assert "runs: 5, of one customer: 6" in judged
    assert failed.startswith("Nothing is forecast of open-11.out. More than 1 % of the requests")


def test_how_long_few_failed_requests_took_does_not_count(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv])
    for path in paths[6:]:
        path.write_text(re.sub(r"(?m)(?:[^,\n]+)(,2),200$", r"30\1,504", path.read_text(), count=5))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert HOLDS in finding


def test_requests_that_all_begin_at_once_are_a_load_like_others(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], runs=0, calibrations=2)
    paths.append(tmp_path / "burst.csv")
    paths[-1].write_text(oha_csv([(0.25, 0.040 * at) for at in range(1, 31)]))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert re.search(r"measured 620 ms, forecast [567]\d\d ms", finding)


def test_a_file_that_is_not_known_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("slow")
    with pytest.raises(ResultsError, match="no output that is known"):
        running.bring([tmp_path / "x"], tmp_path / "one", 1)
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(
    ("threshold", "status"),
    [
        ("p99 > 100 s", 0),
        ("p50 > 20 ms", 1),
        ("failed > 0 %", 0),
        ("rate < 100 /s", 1),
        ("p99 > 5", 2),
    ],
)
def test_thresholds_decide_the_exit_status(threshold: str, status: int, tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], runs=1, calibrations=1)
    out = ["--out", str(tmp_path / "out"), "--fail-if", threshold]
    outcome = CliRunner().invoke(main, ["analyse", *map(str, paths), *out], standalone_mode=True)
    assert outcome.exit_code == status, outcome.output
    if threshold == "p50 > 20 ms":
        assert "one customer: p50 is" in outcome.output
        assert "and it fails if p50 > 20 ms" in outcome.output
        (folder,) = (tmp_path / "out").iterdir()
        assert "p50 is" in json.loads((folder / "summary.json").read_text())["failure"]


# --- loads ---------------------------------------------------------------------------------------


def loads_of(
    folder: Path, names: Sequence[str], rates: Sequence[float], count: int = 400
) -> list[list[str]]:
    """Return the names of the runs of each load; the runs have these rates."""
    random, paths = Random(2), [folder / f"{name}.csv" for name in names]
    for path, rate in zip(paths, rates, strict=True):
        path.write_text(oha_csv(open_run(random, count, rate=rate)))
    running.bring(paths, folder / "one", 1)
    loads = pooled(written_runs(Results(folder / "one")))
    return [[run.name.removesuffix(".csv") for run in runs] for runs in loads.values()]


def test_runs_are_pooled_unless_their_rates_differ_by_more_than_chance(tmp_path: Path) -> None:
    names, rates = [f"run-{at}" for at in range(12)], [5.0, 12.0, 20.0] * 4
    assert loads_of(tmp_path, names, rates) == [names[at::3] for at in range(3)]


@pytest.mark.parametrize(
    ("names", "loads"),
    [
        (["open-0.8", "open-0.85"], 2),
        (["open-0.8-1", "open-0.85-1"], 2),
        (["morning", "evening"], 1),
        (["open-1", "open-2"], 1),
        (["2026-11-26", "2026-11-27"], 1),
    ],
)
def test_decimal_numbers_in_names_are_rates(
    names: Sequence[str], loads: int, tmp_path: Path
) -> None:
    assert len(loads_of(tmp_path, names, [20.0, 21.25])) == loads


# --- closed customers ----------------------------------------------------------------------------

Think = Callable[[Random], float]
Asked = tuple[int, float, float]  # customer, begun after so many seconds, took so many
WriteClosed = Callable[[Sequence[Asked]], str]
CUSTOMERS = 8


def closed_requests(
    random: Random, think: Think, slower: float = 1.0, pace: float = 0.0, reads: float = 0.0
) -> list[Asked]:
    """Requests of customers who ask again after think times, and after this pace at the least.

    reads: how long an answer is read, in times that it took.
    """
    ready, free, requests = [0.0] * CUSTOMERS, 0.0, []
    for _ in range(600):
        at = min(ready)
        customer = ready.index(at)
        free = max(at, free) + slower * SERVICE.draw(random)
        ready[customer] = max(at + pace, free + reads * (free - at) + think(random))
        requests.append((customer, at, free - at))
    return requests


def raw_of(asked: Sequence[Asked]) -> str:
    numbers: Counter[int] = Counter()
    lines = [",".join(COLUMNS)]
    for customer, at, took in asked:
        index = closed_index(customer, numbers[customer])
        numbers[customer] += 1
        lines.append(f"closed,{index},a,{at:.6f},{at:.6f},,{at + took:.6f},,200,")
    return "\n".join([*lines, ""])


def jmeter_of(asked: Sequence[Asked]) -> str:
    lines = ["timeStamp,elapsed,label,responseCode,threadName,success,allThreads"]
    for customer, at, took in asked:
        begun_ms, took_ms = round(1000 * (UNIX_S + at)), round(1000 * took)
        lines.append(f"{begun_ms},{took_ms},home,200,Group 1-{customer + 1},true,{CUSTOMERS}")
    return "\n".join([*lines, ""])


def k6_of(asked: Sequence[Asked], vu: str = "") -> str:
    lines = k6_json([(at, took) for _, at, took in asked]).splitlines()
    who = (customer for customer, _, _ in asked for _ in range(2))  # two points of a request
    named = [
        line.replace('"value"', vu.replace("N", str(next(who))) + '"value"')
        if "tags" in line
        else line
        for line in lines
    ]
    point = {"metric": "vus", "type": "Point", "data": {"time": moment(1), "value": CUSTOMERS}}
    return "\n".join([*named, json.dumps(point), ""])


def k6_with_vu(asked: Sequence[Asked]) -> str:
    return k6_of(asked, '"metadata":{"vu":"N"},')


def oha_of(asked: Sequence[Asked]) -> str:
    return oha_csv([(at, took) for _, at, took in asked])


def at_once(random: Random) -> float:
    return 0.0


def constant(random: Random) -> float:
    return 0.4


def uniform(random: Random) -> float:
    return random.uniform(0.25, 0.65)


def exponential(random: Random) -> float:
    return random.expovariate(2.5)


def closed_finding(folder: Path, write: WriteClosed, think: Think, **how: float) -> str:
    """Return what is said of customers who think like this."""
    random, paths = Random(10), files(folder, [oha_csv], runs=0)
    for at in range(6):
        paths.append(folder / f"closed-{at}.out")
        paths[-1].write_text(write(closed_requests(random, think, **how)))
    (finding,) = reported(folder / "one", paths).findings
    return finding


@pytest.mark.parametrize(
    ("write", "think", "slower"),
    [
        (raw_of, constant, 1.0),
        (k6_with_vu, uniform, 1.0),
        (jmeter_of, at_once, 1.0),
        (k6_of, at_once, 1.0),
        (oha_of, at_once, 1.0),
        (k6_with_vu, uniform, 1.27),
        (oha_of, at_once, 1.27),
    ],
)
def test_customers_who_are_known_think_in_the_forecast_as_they_did(
    write: WriteClosed, think: Think, slower: float, tmp_path: Path
) -> None:
    finding = closed_finding(tmp_path, write, think, slower=slower)
    assert finding.startswith(f"N = {CUSTOMERS}, ")
    assert (DOES_NOT if slower > 1 else HOLDS) in finding


@pytest.mark.parametrize(
    ("write", "think", "reads"), [(oha_of, at_once, 0.02), (raw_of, constant, 0.1)]
)
def test_what_a_client_does_between_requests_is_hardly_a_think_time(
    write: WriteClosed, think: Think, reads: float, tmp_path: Path
) -> None:
    assert HOLDS in closed_finding(tmp_path, write, think, reads=reads)


def test_think_times_of_short_runs_depend_on_answers_by_chance(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    for seed in range(30):
        path.write_text(raw_of(closed_requests(Random(seed), exponential)[:80]))
        assert [*map(lacks, read(path))] == [""]


@pytest.mark.parametrize(
    ("write", "think", "pace"),
    [
        pytest.param(k6_of, constant, 0.0, id="constant, unnamed"),
        pytest.param(k6_of, exponential, 0.0, id="exponential, unnamed"),
        pytest.param(k6_of, at_once, 0.5, id="a pace, unnamed"),
        pytest.param(jmeter_of, at_once, 0.5, id="a pace"),
        pytest.param(raw_of, at_once, 0.5, id="a pace, in raw rows"),
        pytest.param(k6_with_vu, uniform, 0.6, id="nearly a pace"),
    ],
)
def test_think_times_that_are_not_known_or_depend_on_answers_decide_nothing(
    write: WriteClosed, think: Think, pace: float, tmp_path: Path
) -> None:
    finding = closed_finding(tmp_path, write, think, pace=pace)
    assert finding.startswith("Nothing is forecast of closed-0.out")
    assert "How long its customers think is not known, or depends on the answer" in finding


def test_customers_begin_in_the_forecast_when_they_began(tmp_path: Path) -> None:
    """Forty who begin one after another never wait as long as forty who begin at once."""
    paths, random = files(tmp_path, [oha_csv], runs=0, calibrations=1), Random(6)
    begun = [0.08 * at for at in range(40)]
    took = replay.fcfs(begun, [SERVICE.draw(random) for _ in begun])
    text = jmeter_of([(who, *both) for who, both in enumerate(zip(begun, took, strict=True))])
    paths.append(tmp_path / "slow.csv")
    paths[-1].write_text(text.replace(",true,8", ",true,40"))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert float(re.findall(r"forecast (\d+\.?\d*) ms", finding)[0]) < 60


def test_a_thread_of_jmeter_for_each_arrival_is_an_open_run(tmp_path: Path) -> None:
    random, paths = Random(7), files(tmp_path, [oha_csv], runs=0)
    for at in range(6):
        asked = [(n, *request) for n, request in enumerate(open_run(random, count=600))]
        paths.append(tmp_path / f"open-{at}.jtl")
        paths[-1].write_text(jmeter_of(asked).replace(",true,8", ",true,1"))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert re.match(r"12\.\d/s: " + HOLDS, finding)


def test_of_threads_that_ask_again_it_is_not_known_whether_they_wait(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], runs=0, calibrations=1)
    asked = [(n // 2, *request) for n, request in enumerate(open_run(Random(7), count=300))]
    lines = jmeter_of(asked).splitlines()
    paths.append(tmp_path / "again.jtl")
    paths[-1].write_text("\n".join(f"{line[:-1]}{n % 3}" for n, line in enumerate(lines)))
    paths[-1].write_text(paths[-1].read_text().replace("allThread0", "allThreads"))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert finding.startswith("Nothing is forecast of again.jtl. Neither the file nor its rows")
    assert "if each thread asks once" in finding
