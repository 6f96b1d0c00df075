"""Runs of other load generators: pooled by load, forecast from one customer, judged, thresholds."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.experiments import running, tool_results
from loadtests.experiments.tool_loads import measured_runs, pooled
from loadtests.experiments.tool_results import Calibrated
from loadtests.experiments.tool_think_times import laws
from loadtests.generation.rows import COLUMNS, closed_index
from loadtests.lab.content import Report
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.tool_runs import UNKNOWN
from loadtests.models import replay
from loadtests.models.random_times import Gamma, poisson_times
from tests.loadtests.lab.test_tool_outputs import (
    UNIX_S,
    WHOLE,
    Request,
    hey_csv,
    jmeter_csv,
    k6_json,
    moment,
    oha_csv,
    vegeta_csv,
)

SERVICE = Gamma(0.040, 0.3)
RATE = 12.5  # half of what one worker can do
Write = Callable[[Sequence[Request]], str]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate each run less often: the runs of these tests are many and long."""
    monkeypatch.setattr(tool_results, "DRAWS", 6)


def one_customer(random: Random, count: int = 300) -> list[Request]:
    requests, now = [], 0.0
    for _ in range(count):
        took = SERVICE.draw(random)
        requests.append((now, took))
        now += took + 0.0005
    return requests


def open_run(
    random: Random, count: int = 1500, slower: float = 1.0, rate: float = RATE, workers: int = 1
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


def test_six_calibrations_and_six_runs_of_a_perfect_queue_agree(tmp_path: Path) -> None:
    report = reported(tmp_path / "one", files(tmp_path, [WHOLE["Locust --raw"]]))
    (finding,) = report.findings
    assert "the forecast of one customer holds within 5 %" in finding
    assert "runs: 6, of one customer: 6" in finding


def test_the_quick_runs_of_a_load_are_no_runs_of_one_customer(tmp_path: Path) -> None:
    """Each 50 ms a request of 40 ms; in three of six runs two take 90 ms, and the next waits."""
    random, paths = Random(7), []
    contents = {f"one-{n}": one_customer(random) for n in range(5)}
    for n in range(6):
        slow = {30, 60} if n % 2 else set[int]()
        contents[f"open-{n}"] = [(0.05 * at, 0.09 if at in slow else 0.04) for at in range(100)]
    for name, requests in contents.items():
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(vegeta_csv(requests))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert "runs: 6, of one customer: 5" in finding
    groups = {
        group.name: len(group.runs) for group in tool_results.groups(Results(tmp_path / "one"))
    }
    assert groups == {"one customer": 5, "20/s": 6}


def test_runs_of_several_tools_are_one_load(tmp_path: Path) -> None:
    paths = files(tmp_path, [vegeta_csv, hey_csv, k6_json])
    paths += files_elsewhere(tmp_path / "fast", rate=20.0)
    running.bring(paths, tmp_path / "one", 1)
    report = tool_results.analyse(Results(tmp_path / "one"))
    assert report.conclusion.startswith("The forecast of one customer holds within 5 % at 1 of 2")
    loads = pooled([run for run in measured_runs(Results(tmp_path / "one")) if not run.is_alone])
    assert [len(runs) for runs in loads.values()] == [6, 5]
    assert abs(float(list(loads)[1].removesuffix("/s")) - 20) < 1


def files_elsewhere(folder: Path, **of_run: float) -> list[Path]:
    folder.mkdir()
    return files(folder, [oha_csv], runs=5, calibrations=0, **of_run)


def test_a_server_that_is_slower_under_load_is_found(tmp_path: Path) -> None:
    report = reported(tmp_path / "one", files(tmp_path, [oha_csv], slower=1.15))
    assert "the forecast of one customer does not hold within 5 %" in report.findings[0]


def test_workers_are_as_many_as_is_said(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], rate=30.0, workers=2)
    assert "customer holds" in reported(tmp_path / "two", paths, workers=2).findings[0]
    finding = reported(tmp_path / "one", paths, workers=1).findings[0]
    assert "is not decided" in finding
    assert re.search(
        r"One worker has no steady state here, as λE\[S\] is 1\.\d+: .* --workers", finding
    )


def test_too_few_runs_decide_nothing_and_say_what_is_missing(tmp_path: Path) -> None:
    report = reported(tmp_path / "one", files(tmp_path, [oha_csv], runs=2, calibrations=1))
    assert "is not decided" in report.findings[0]
    assert "a verdict needs 5 runs and 5 of one customer" in report.findings[0]


def test_without_one_customer_there_are_percentiles_and_no_forecast(tmp_path: Path) -> None:
    running.bring(files(tmp_path, [oha_csv], calibrations=0), tmp_path / "one", 1)
    report = running.analyse(Results(tmp_path / "one"))
    assert report.findings == tool_results.SENTENCES("no_calibration")
    assert any(m.name.startswith("response_time_p99[12.") for m in report.metrics)


def test_runs_of_one_customer_are_known_although_their_times_are_rounded(tmp_path: Path) -> None:
    """As by hey, to 0.1 ms, so that a request seems to begin before the last has ended."""

    def rounded(requests: Sequence[Request]) -> str:
        return hey_csv([(round(at, 4), round(took, 4)) for at, took in requests])

    def back_to_back(requests: Sequence[Request]) -> str:
        ends = np.cumsum([took for _, took in requests])
        return rounded([(end - took, took) for end, (_, took) in zip(ends, requests, strict=True)])

    paths = files(tmp_path, [back_to_back], runs=0)
    paths.append(tmp_path / "three.csv")
    paths[-1].write_text(rounded(closed_run(Random(3), 3, 0.0)))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert finding.startswith("N = 3: ")
    assert "of one customer: 6" in finding


def test_files_that_are_said_to_be_of_one_customer_are(tmp_path: Path) -> None:
    alone, busy = files(tmp_path, [oha_csv], runs=1, calibrations=1)
    words = ["analyse", str(busy), "--calibration", str(alone), "--out", str(tmp_path / "a")]
    outcome = CliRunner().invoke(main, words)
    assert "of one customer: 1" in outcome.output
    words = ["analyse", str(busy), "--calibration", str(busy), "--out", str(tmp_path / "b")]
    assert "All runs are of one customer alone" in CliRunner().invoke(main, words).output


Think = Callable[[Random], float]
Asked = tuple[int, float, float]  # customer, begun after so many seconds, took so many


def closed_requests(
    random: Random, customers: int, think: Think, count: int = 1500, slower: float = 1.0
) -> list[Asked]:
    ready, free, requests = [0.0] * customers, 0.0, []
    for _ in range(count):
        at = min(ready)
        customer = ready.index(at)
        free = max(at, free) + slower * SERVICE.draw(random)
        ready[customer] = free + think(random)
        requests.append((customer, at, free - at))
    return requests


def exponential(mean_s: float) -> Think:
    return lambda random: random.expovariate(1 / mean_s) if mean_s else 0.0


def closed_run(random: Random, customers: int, think_s: float, count: int = 1500) -> list[Request]:
    asked = closed_requests(random, customers, exponential(think_s), count)
    return [(at, took) for _, at, took in asked]


def jmeter_of(customers: int) -> Write:
    def write(requests: Sequence[Request]) -> str:
        lines = jmeter_csv(requests).splitlines()
        return "\n".join(
            [lines[0], *(f"{line[: line.rindex(',')]},{customers}" for line in lines[1:])]
        )

    return write


def jmeter_open(requests: Sequence[Request], again: bool = False) -> str:
    """What an Open Model Thread Group writes: a thread for each arrival; `again`: one for two."""
    lines = ["timeStamp,elapsed,label,responseCode,threadName,success,allThreads"]
    for n, (at, took) in enumerate(requests):
        inside = sum(start <= at + took < start + t for start, t in requests[max(0, n - 50) :])
        begun_ms, took_ms = round(1000 * (UNIX_S + at)), round(1000 * took)
        lines.append(f"{begun_ms},{took_ms},home,200,Open 1-{n // (1 + again)},true,{1 + inside}")
    return "\n".join([*lines, ""])


def test_a_thread_of_jmeter_for_each_arrival_is_an_open_run(tmp_path: Path) -> None:
    random, paths = Random(7), files(tmp_path, [oha_csv], runs=0)
    for at in range(6):
        paths.append(tmp_path / f"open-{at}.jtl")
        paths[-1].write_text(jmeter_open(open_run(random, count=1000)))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert re.match(r"12\.\d/s: the forecast of one customer holds within 5 %", finding)


def test_threads_of_jmeter_that_ask_again_may_wait_for_answers(tmp_path: Path) -> None:
    paths = files(tmp_path, [oha_csv], runs=0, calibrations=1)
    paths.append(tmp_path / "again.jtl")
    paths[-1].write_text(jmeter_open(open_run(Random(7), count=300), again=True))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert finding.startswith("Nothing is forecast of again.")
    assert "if each thread asks once" in finding


def k6_of(customers: int) -> Write:
    def write(requests: Sequence[Request]) -> str:
        point = {"metric": "vus", "type": "Point", "data": {"time": moment(1), "value": customers}}
        return k6_json(requests) + json.dumps(point) + "\n"

    return write


@pytest.mark.parametrize(
    ("write", "think_s"), [(oha_csv, 0.0), (jmeter_of(3), 0.1), (k6_of(3), 0.1)]
)
def test_closed_customers_are_known_and_forecast(
    write: Write, think_s: float, tmp_path: Path
) -> None:
    random, paths = Random(3), files(tmp_path, [oha_csv], runs=0)
    for at in range(6):
        paths.append(tmp_path / f"closed-{at}.out")
        paths[-1].write_text(write(closed_run(random, 3, think_s)))
    (finding,) = reported(tmp_path / "one", paths).findings
    thinks = r", Z = 0\.\d+ s" if think_s else ""
    assert re.match(f"N = 3{thinks}: the forecast of one customer holds within 5 %", finding)


def raw_of_customers(asked: Sequence[Asked]) -> str:
    numbers: Counter[int] = Counter()
    lines = [",".join(COLUMNS)]
    for customer, at, took in asked:
        index = closed_index(customer, numbers[customer])
        numbers[customer] += 1
        lines.append(f"closed,{index},a,{at:.6f},{at:.6f},,{at + took:.6f},,200,")
    return "\n".join([*lines, ""])


def jmeter_of_customers(asked: Sequence[Asked]) -> str:
    lines = ["timeStamp,elapsed,label,responseCode,threadName,success,allThreads"]
    for customer, at, took in asked:
        begun_ms, took_ms = round(1000 * (UNIX_S + at)), round(1000 * took)
        lines.append(f"{begun_ms},{took_ms},home,200,Group 1-{customer + 1},true,8")
    return "\n".join([*lines, ""])


def k6_with_vu(asked: Sequence[Asked]) -> str:
    lines = k6_of(8)([(at, took) for _, at, took in asked]).splitlines()
    who = (customer for customer, _, _ in asked for _ in range(2))  # two points of a request
    return "".join(
        line.replace('"value"', f'"metadata":{{"vu":"{next(who) + 1}"}},"value"') + "\n"
        if '"tags"' in line
        else line + "\n"
        for line in lines
    )


def k6_without_vu(asked: Sequence[Asked]) -> str:
    return k6_of(8)([(at, took) for _, at, took in asked])


def closed_finding(
    folder: Path,
    write: Callable[[Sequence[Asked]], str],
    think: Think,
    slower: float = 1.0,
    count: int = 800,
) -> str:
    """Return what is said of eight customers who think like this."""
    random, paths = Random(9), files(folder, [oha_csv], runs=0)
    for at in range(6):
        paths.append(folder / f"closed-{at}.out")
        paths[-1].write_text(write(closed_requests(random, 8, think, count, slower)))
    (finding,) = reported(folder / "one", paths).findings
    assert finding.startswith("N = 8, Z = 0.")
    return finding


def constant(random: Random) -> float:
    return 0.4


def uniform(random: Random) -> float:
    return random.uniform(0.0, 0.8)


@pytest.mark.parametrize(
    "write", [raw_of_customers, jmeter_of_customers, k6_with_vu, k6_without_vu]
)
def test_constant_think_times_are_forecast_as_they_were(
    write: Callable[[Sequence[Asked]], str], tmp_path: Path
) -> None:
    finding = closed_finding(tmp_path, write, constant)
    assert "the forecast of one customer holds within 5 %" in finding


@pytest.mark.parametrize("write", [raw_of_customers, k6_without_vu])
def test_a_slower_server_is_found_although_think_times_are_constant(
    write: Callable[[Sequence[Asked]], str], tmp_path: Path
) -> None:
    finding = closed_finding(tmp_path, write, constant, slower=1.27)
    assert "the forecast of one customer does not hold within 5 %" in finding


def test_think_times_of_customers_who_are_named_may_have_any_law(tmp_path: Path) -> None:
    def near(random: Random) -> float:
        return random.uniform(0.35, 0.55)

    assert "one customer holds" in closed_finding(tmp_path, raw_of_customers, near, count=1500)


def test_names_that_are_given_in_turn_tell_nothing_of_customers(tmp_path: Path) -> None:
    def in_turn(asked: Sequence[Asked]) -> str:
        return jmeter_of_customers([(n % 8, at, took) for n, (_, at, took) in enumerate(asked)])

    assert "is not decided" in closed_finding(tmp_path, in_turn, uniform)


def test_think_times_that_rows_do_not_tell_decide_nothing_and_the_report_says_why(
    tmp_path: Path,
) -> None:
    finding = closed_finding(tmp_path, k6_without_vu, uniform)
    assert "is not decided" in finding
    assert "Bring rows that name the customer" in finding


@pytest.mark.parametrize(
    ("think", "slower"), [(constant, 1.0), (constant, 1.27), (exponential(0.4), 1.0)]
)
def test_files_that_only_sum_up_do_not_tell_how_customers_think(
    think: Think, slower: float, tmp_path: Path
) -> None:
    def k6_summary(asked: Sequence[Asked]) -> str:
        took = [1000 * t for _, _, t in asked]
        rate = len(took) / max(at + t for _, at, t in asked)
        times = {name: float(np.quantile(took, q)) for name, q in (("min", 0), ("med", 0.5))}
        times |= {"max": max(took), "avg": fmean(took), "p(90)": float(np.quantile(took, 0.9))}
        users = {"value": 8, "min": 8, "max": 8}
        made = {"count": len(took), "rate": rate}
        named = {"http_req_duration": times, "http_reqs": made, "vus": users, "vus_max": users}
        return json.dumps({"metrics": named})

    finding = closed_finding(tmp_path, k6_summary, think, slower)
    assert "the forecast of one customer is not decided" in finding
    assert re.search(r"constant ones are forecast to give \d+.* ms, others up to", finding)


@pytest.mark.parametrize("write", [raw_of_customers, k6_without_vu])
def test_requests_at_a_constant_pace_of_each_customer_are_forecast(
    write: Callable[[Sequence[Asked]], str], tmp_path: Path
) -> None:
    def paced(asked: Sequence[Asked]) -> str:
        """The same number of requests, which begin every 0.5 s, all customers at once."""
        random = Random(repr(asked))
        arrivals = [0.5 * (n // 8) for n in range(len(asked))]
        took = replay.fcfs(arrivals, [SERVICE.draw(random) for _ in arrivals])
        return write([(n % 8, arrivals[n], took[n]) for n in range(len(asked))])

    assert "one customer holds" in closed_finding(tmp_path, paced, constant)


def wrk2(
    random: Random, rate: float, threads: int = 1, connections: int = 1, apart_s: float = 0.005
) -> str:
    """What wrk2 prints of a perfect queue.

    Each connection has a constant rate; those of a thread begin 5 ms apart, threads nearly at once.
    """
    begun = [
        apart_s * n + random.uniform(0, 0.0005)
        for _ in range(threads)
        for n in range(connections // threads)
    ]
    arrivals = sorted(
        at + turn * connections / rate for at in begun for turn in range(1500 // connections)
    )
    took = replay.fcfs(arrivals, [SERVICE.draw(random) for _ in arrivals])
    rows = [
        f"{1000 * np.quantile(took, share):12.3f} {share:12.6f} {round(1500 * share):8} {1:8}"
        for share in np.linspace(0, 1, 101)
    ]
    return (
        "Running 1m test @ http://127.0.0.1/\n"
        f"  {threads} threads and {connections} connections\n"
        + "\n".join(rows)
        + f"\n#[Mean = {1000 * np.mean(took)}"
        f", StdDeviation = 1.0]\n  1500 requests in {1500 / rate:.2f}s, 1.00MB read\n"
    )


def test_files_that_only_sum_up_are_forecast_with_evenly_spaced_arrivals(tmp_path: Path) -> None:
    random, paths = Random(5), []
    for at in range(12):
        paths.append(tmp_path / f"{at}.txt")
        paths[-1].write_text(wrk2(random, 2.0 if at < 6 else 20.0))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert finding.startswith("20/s: the forecast of one customer holds within 5 %")


@pytest.mark.parametrize(
    ("threads", "connections", "rate"), [(1, 2, 12.5), (2, 10, 12.5), (2, 10, 17.0), (2, 100, 12.5)]
)
def test_each_connection_of_wrk2_has_a_schedule_of_its_own(
    threads: int, connections: int, rate: float, tmp_path: Path
) -> None:
    random, paths = Random(5), []
    for at in range(12):
        paths.append(tmp_path / f"{at}.txt")
        load = (2.0, 1, 1) if at < 6 else (rate, threads, connections)
        paths[-1].write_text(wrk2(random, *load))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert finding.startswith(f"{rate:g}/s: the forecast of one customer holds within 5 %")


def test_threads_of_wrk2_that_begin_late_make_no_server_slow_or_quick(tmp_path: Path) -> None:
    random, paths = Random(5), []
    for at in range(12):
        text = wrk2(random, 2.0) if at < 6 else wrk2(random, 12.5, 1, 2, apart_s=0.03)
        paths.append(tmp_path / f"{at}.txt")
        paths[-1].write_text(text.replace("1 threads and 2", "2 threads and 2"))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert "is not decided" in finding


def test_requests_of_two_threads_of_wrk2_may_meet_or_not(tmp_path: Path) -> None:
    """So much as it matters for requests that take a few milliseconds."""
    random, paths = Random(5), []
    for at in range(12):
        load = (2.0, 1, 1) if at < 6 else (20.0, 2, 2)
        lines = wrk2(random, *load).splitlines()
        quick = re.compile(r"^ +[\d.]+(?= +[01]\.\d{6} )|(?<=Mean = )[\d.]+")
        tenth = [quick.sub(lambda ms: f" {float(ms[0]) / 10:.4f}", line) for line in lines]
        paths.append(tmp_path / f"{at}.txt")
        paths[-1].write_text("\n".join(tenth))
    (finding,) = reported(tmp_path / "one", paths).findings
    assert "is not decided" in finding
    assert "use one thread (-t1)" in finding


def test_two_connections_of_wrk2_meet_however_low_the_rate(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text(wrk2(Random(5), 2.0, 1, 2))
    running.bring([tmp_path / "two.txt"], tmp_path / "one", 1)
    (run,) = measured_runs(Results(tmp_path / "one"))
    assert not run.is_alone


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


def spaced(random: Random, rate: float, count: int = 3000) -> list[Request]:
    """Evenly spaced requests to one worker whose times are exponential, E[S] = 10 ms."""
    arrivals = [at / rate for at in range(count)]
    services = [random.expovariate(100) for _ in arrivals]
    return list(zip(arrivals, replay.fcfs(arrivals, services), strict=True))


def vegeta_report(requests: Sequence[Request]) -> str:
    at = {name: f"{share:g}" for name, share in (("50th", 0.5), ("95th", 0.95), ("99th", 0.99))}
    took = [1e9 * t for _, t in requests]
    times = {name: float(np.quantile(took, float(share))) for name, share in at.items()}
    times |= {"mean": fmean(took), "min": min(took), "max": max(took)}
    content = {"latencies": times, "duration": 1e9 * requests[-1][0], "requests": len(took)}
    return json.dumps(content | {"status_codes": {"200": len(took)}})


def oha_json(requests: Sequence[Request]) -> str:
    took, length_s = [t for _, t in requests], max(at + t for at, t in requests)
    sums = {"total": length_s, "average": fmean(took), "requestsPerSec": len(took) / length_s}
    sums |= {"fastest": min(took), "slowest": max(took), "successRate": 1.0}
    at = (0.1, 0.5, 0.9, 0.99)
    names = {f"p{100 * share:g}": float(np.quantile(took, share)) for share in at}
    content = {"summary": sums, "latencyPercentiles": names}
    return json.dumps(content | {"statusCodeDistribution": {"200": len(took)}})


@pytest.mark.parametrize("rate", [63.0, 98.0])
def test_a_whole_number_inside_by_chance_makes_no_closed_run(rate: float, tmp_path: Path) -> None:
    """At 63 a second one request is inside on average, at 98 about 25."""
    random, paths = Random(11), files(tmp_path, [oha_csv], runs=0, calibrations=5)
    for at in range(10):
        paths.append(tmp_path / f"spaced-{at}.json")
        paths[-1].write_text((vegeta_report, oha_json)[at % 2](spaced(random, rate)))
    running.bring(paths, tmp_path / "one", 1)
    runs = measured_runs(Results(tmp_path / "one"))
    assert sum(run.is_alone for run in runs) == 5
    assert [run.customers for run in runs if not run.is_alone] == [0, UNKNOWN] * 5
    loads = pooled([run for run in runs if not run.is_alone])
    undecided, decided = loads
    assert decided == f"{rate:g}/s"
    assert undecided.endswith("/s (open or closed)")
    *_, unknown = tool_results.analyse(Results(tmp_path / "one")).findings
    assert unknown.startswith("Nothing is forecast of spaced-1, spaced-3, spaced-5, spaced-7,")
    assert "name files of one customer with --calibration" in unknown


def poisson_files(folder: Path, names: Sequence[str], rates: Sequence[float]) -> list[Path]:
    random, paths = Random(2), [folder / f"{name}.csv" for name in names]
    for path, rate in zip(paths, rates, strict=True):
        path.write_text(oha_csv(open_run(random, 400, rate=rate)))
    return paths


def loads_of(paths: Sequence[Path], folder: Path) -> dict[str, list[str]]:
    running.bring(paths, folder, 1)
    loads = pooled(measured_runs(Results(folder)))
    return {name: sorted(run.line.run for run in runs) for name, runs in loads.items()}


def test_names_tell_loads_apart_that_chance_may_hide(tmp_path: Path) -> None:
    names = [f"p{rate}_{at}" for at in range(6) for rate in (20, 21)]
    loads = loads_of(poisson_files(tmp_path, names, [20.0, 21.25] * 6), tmp_path / "one")
    assert sorted(loads.values()) == [names[::2], names[1::2]]


@pytest.mark.parametrize(
    ("names", "together"),
    [
        (["open-0.8", "open-0.85"], False),
        (["open-0.8-1", "open-0.85-1"], False),
        (["morning", "evening"], True),
        (["open-1", "open-2"], True),
        (["2026-11-26", "2026-11-27"], True),
    ],
)
def test_decimal_numbers_in_names_are_rates(
    names: Sequence[str], together: bool, tmp_path: Path
) -> None:
    loads = loads_of(poisson_files(tmp_path, names, [20.0, 21.25]), tmp_path / "one")
    assert len(loads) == (1 if together else 2)


def test_where_names_do_not_tell_runs_are_pooled_unless_they_differ_by_more_than_chance(
    tmp_path: Path,
) -> None:
    names = list("abcdefghijklmnop")
    rates = [20.0, 21.25] * 6 + [12.0] * 4
    paths = poisson_files(tmp_path, names, rates)
    loads = loads_of(paths, tmp_path / "one")
    assert sorted(loads.values()) == [list("abcdefghijkl"), list("mnop")]
    runs = measured_runs(Results(tmp_path / "one"))
    Random(1).shuffle(runs)
    assert pooled(runs).keys() == loads.keys()


def test_runs_of_one_name_and_different_rates_are_different_loads(tmp_path: Path) -> None:
    names, rates = [f"run-{at}" for at in range(12)], [5.0, 12.0, 20.0] * 4
    loads = loads_of(poisson_files(tmp_path, names, rates), tmp_path / "one")
    assert sorted(loads.values()) == sorted(sorted(names[at::3]) for at in range(3))


def test_loads_that_are_called_alike_are_both_kept(tmp_path: Path) -> None:
    names = [f"{letter}-{at}" for letter in "ab" for at in range(3)]
    random = Random(4)
    for name in names:
        requests = [(at, t / 10) for at, t in spaced(random, 50.0, 100)]
        (tmp_path / f"{name}.csv").write_text(oha_csv(requests))
    loads = loads_of([tmp_path / f"{name}.csv" for name in names], tmp_path / "one")
    assert loads == {"50/s (a-0 …)": names[:3], "50/s (b-0 …)": names[3:]}


def test_as_many_customers_who_think_for_other_times_are_another_load(tmp_path: Path) -> None:
    random, paths = Random(8), []
    for at in range(8):
        paths.append(tmp_path / f"{at}.csv")
        paths[-1].write_text(jmeter_of(5)(closed_run(random, 5, (0.3, 0.6)[at % 2])))
    loads = loads_of(paths, tmp_path / "one")
    assert sorted(loads.values()) == [["0", "2", "4", "6"], ["1", "3", "5", "7"]]
    assert all(re.fullmatch(r"N = 5, Z = 0\.\d+ s", name) for name in loads)


def test_runs_of_equally_many_requests_have_random_numbers_of_their_own(tmp_path: Path) -> None:
    """So that what a simulation errs averages out over runs, and is in the interval."""
    paths = files(tmp_path, [oha_csv], runs=0, calibrations=1)
    busy = open_run(Random(1), 400, rate=20.0)
    for name in "ab":
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(oha_csv(busy))
    running.bring(paths, tmp_path / "one", 1)
    alone, *runs = measured_runs(Results(tmp_path / "one"))
    calibrated = Calibrated([alone])
    assert len({calibrated.forecast_s(run) for run in runs}) == 2
    assert calibrated.forecast_s(runs[0]) == calibrated.forecast_s(runs[0])


def test_customers_begin_in_the_forecast_when_they_began(tmp_path: Path) -> None:
    """Forty who begin one after another never wait as long as forty who begin at once."""
    paths, random = files(tmp_path, [oha_csv], runs=0, calibrations=1), Random(6)
    begun = [0.08 * at for at in range(40)]
    services = [SERVICE.draw(random) for _ in begun]
    slow = list(zip(begun, replay.fcfs(begun, services), strict=True))
    paths.append(tmp_path / "slow.csv")
    paths[-1].write_text(jmeter_of(40)(slow))
    running.bring(paths, tmp_path / "one", 1)
    alone, run = measured_runs(Results(tmp_path / "one"))
    assert Calibrated([alone]).forecast_s(run, law=laws([run])[0]) < 0.06
