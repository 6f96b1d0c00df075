"""Outputs of load generators are recognised by their form, or refused in a sentence.

The texts are written here in the forms that the tools document and print; those of vegeta and
Locust were compared with what they wrote on this machine.
"""

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from loadtests.generation.rows import COLUMNS, customer_of
from loadtests.grouping import grouped
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_outputs import TRANSACTION, read, read_all
from loadtests.lab.tool_runs import JOINT, OPEN, UNKNOWN, ToolRun

UNIX_S = 1_795_694_549
Request = tuple[float, float]  # begun after so many seconds, and took so many
REQUESTS: Sequence[Request] = [(0.1 * at, 0.02 + 0.001 * at) for at in range(30)]


def own(requests: Sequence[Request]) -> str:
    lines = [f"open,{n},a,{at},{at},,{at + took},,200," for n, (at, took) in enumerate(requests)]
    return "\n".join([",".join(COLUMNS), *lines, ""])


def moment(at_s: float) -> str:
    return f"2026-11-26T12:{int(at_s // 60):02}:{at_s % 60:012.9f}Z"


def vegeta_json(requests: Sequence[Request]) -> str:
    lines = [
        {"attack": "", "seq": n, "code": 200, "timestamp": moment(at), "latency": round(took * 1e9)}
        for n, (at, took) in enumerate(requests)
    ]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def k6_json(requests: Sequence[Request]) -> str:
    lines: list[object] = [
        {
            "type": "Metric",
            "data": {"type": "trend", "contains": "time"},
            "metric": "http_req_duration",
        }
    ]
    for at, took in requests:
        data = {"time": moment(at + took), "value": 1000 * took, "tags": {"status": "200"}}
        lines.append({"type": "Point", "data": data, "metric": "http_req_duration"})
        lines.append({"type": "Point", "data": {**data, "value": 1}, "metric": "http_reqs"})
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def jmeter_csv(requests: Sequence[Request]) -> str:
    lines = ["timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,allThreads"]
    for n, (at, took) in enumerate(requests):
        start_ms, took_ms = round(1000 * (UNIX_S + at)), round(1000 * took)
        lines.append(f"{start_ms},{took_ms},home,200,OK,Group 1-{n},true,{1 + n % 3}")
    return "\n".join([*lines, ""])


def oha_csv(requests: Sequence[Request]) -> str:
    lines = ["request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status"]
    lines += [f"{at},0.0001,0.0002,{took / 2},{took},2,200" for at, took in requests]
    return "\n".join([*lines, ""])


WHOLE: dict[str, Callable[[Sequence[Request]], str]] = {
    "Locust --raw": own,
    "vegeta": vegeta_json,
    "k6": k6_json,
    "JMeter": jmeter_csv,
    "oha": oha_csv,
}


def read_text(folder: Path, text: str) -> ToolRun:
    path = folder / "output"
    path.write_text(text)
    (run,) = read(path)
    return run


@pytest.mark.parametrize("tool", WHOLE)
def test_a_file_with_a_row_for_each_request_is_read_whole(tool: str, tmp_path: Path) -> None:
    run = read_text(tmp_path, WHOLE[tool](REQUESTS))
    assert (run.tool, run.times.requests, run.customers) == (tool, len(REQUESTS), OPEN)
    begun_s = run.rows[0].intended_s
    assert [row.intended_s - begun_s for row in run.rows] == pytest.approx(
        [at for at, _ in REQUESTS], abs=2e-6
    )
    assert [row.open_response_s for row in run.rows] == pytest.approx(
        [took for _, took in REQUESTS], abs=2e-6
    )
    assert all(row.succeeded for row in run.rows)
    rate_per_s = (len(REQUESTS) - 1) / (REQUESTS[-1][0] - REQUESTS[0][0])
    assert run.rate_per_s == pytest.approx(rate_per_s, rel=1e-3)


WRK2 = """\
Running 30s test @ http://127.0.0.1:80/index.html
  2 threads and 100 connections
  Thread calibration: mean lat.: 10087 usec, rate sampling interval: 22 msec
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     6.60ms    1.92ms  12.50ms   68.46%
    Req/Sec     1.04k     1.08k    2.50k    72.79%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    6.67ms
 99.000%   11.18ms
  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.921     0.000000            1         1.00
       6.671     0.500000        19783         2.00
      11.183     0.990000        39154       100.00
      12.503     1.000000        39549          inf
#[Mean    =        6.602, StdDeviation   =        1.919]
#[Max     =       12.496, Total count    =        39549]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  60018 requests in 30.00s, 19.81MB read
  Socket errors: connect 0, read 40, write 0, timeout 900
  Non-2xx or 3xx responses: 18
Requests/sec:   2000.28
"""


def test_the_histogram_of_wrk2_has_its_numbers(tmp_path: Path) -> None:
    run = read_text(tmp_path, WRK2)
    assert (run.tool, run.customers, run.rows) == ("wrk2", OPEN, ())
    times = run.times
    assert (times.requests, times.failed, times.duration_s) == (60058, 58, 30.0)
    assert times.mean_s == pytest.approx(0.006602)
    assert dict(times.quantiles) == pytest.approx(
        {0: 921e-6, 0.5: 6671e-6, 0.99: 0.011183, 1: 0.012503}
    )
    for text, duration_s in (("1.50m", 90.0), ("2.00h", 7200.0)):
        assert read_text(tmp_path, WRK2.replace("30.00s", text)).times.duration_s == duration_s


def test_the_corrected_times_of_wrk2_are_taken(tmp_path: Path) -> None:
    """With -U it prints the others, too, which leave out how late requests were sent."""
    start = WRK2.index("  Latency Distribution")
    distribution = WRK2[start : WRK2.index("-----", start)]
    less = distribution.replace("6.671", "1.671").replace("11.183", "2.183").replace("6.602", "1.6")
    uncorrected = less.replace("Recorded Latency", "Uncorrected Latency (measured without ...)")
    at = WRK2.index("-----", start)
    times = read_text(tmp_path, WRK2[:at] + "---\n\n" + uncorrected + WRK2[at:]).times
    known = read_text(tmp_path, WRK2).times
    assert (times.mean_s, times.quantiles) == (known.mean_s, known.quantiles)


LOCUST = {
    "run_stats.csv": (
        "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,"
        "Min Response Time,Max Response Time,Average Content Size,Requests/s,Failures/s,"
        "50%,99%,100%\n"
        "GET,/a,100,1,20,21,10,50,2,10.0,0,20,45,50\n"
        ",Aggregated,100,1,20,21.5,10,50,2,10.0,0,20,45,50\n"
    ),
    "run_stats_history.csv": (
        "Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,99%,100%,Total Request Count\n"
        "1795694549,0,,Aggregated,0,0,N/A,N/A,N/A,0\n"
        + "".join(f"17956945{n},4,,Aggregated,10,0,20,45,50,{n}\n" for n in range(50, 60))
    ),
}


def test_locusts_two_files_are_one_run(tmp_path: Path) -> None:
    for name, text in LOCUST.items():
        (tmp_path / name).write_text(text)
    (run,) = read_all([tmp_path / name for name in LOCUST])
    times = run.times
    assert (run.name, times.requests, times.failed, run.customers) == ("run", 100, 1, 4)
    assert times.mean_s == pytest.approx(0.0215)
    assert times.duration_s == pytest.approx(10)
    assert times.quantiles == [(0.0, 0.010), (0.5, 0.020), (0.99, 0.045), (1.0, 0.050)]


@pytest.mark.parametrize(
    ("pattern", "text", "message"),
    [
        (r",10\.0,", ",0.0,", "has 100 requests in 0 s, which cannot be"),
        ("Aggregated,100,1,", "Aggregated,100,100,", "has no request that succeeded"),
        ("Aggregated", "Total", "has no row Aggregated"),
        (r"100,1,(.*),20,45,50", r"0,0,\1,N/A,N/A,N/A", "has too few requests, 0"),
        ("(5[0-4]),4,", r"\1,5,", "a number of users that changed most of the time"),
        (",4,,", ",0,,", "a number of users that changed most of the time"),
    ],
)
def test_what_locusts_files_lack_is_said(
    pattern: str, text: str, message: str, tmp_path: Path
) -> None:
    for name, whole in LOCUST.items():
        (tmp_path / name).write_text(re.sub(pattern, text, whole))
    with pytest.raises(ResultsError, match=message):
        read(tmp_path / "run_stats.csv")


SET_BACK = [(at + 60 * (at < 1), took) for at, took in REQUESTS]
SPARSE = {
    "nothing": ("", "is no output that is known here"),
    "a letter": ("Dear all,\nit was slow.\n", "is no output that is known here"),
    "wrk": (WRK2.split("  Latency Dist", maxsplit=1)[0], "ask wrk2 with -L"),
    "wrk2 for ten seconds": (
        re.sub(r"Mean *= *[\d.]+", "Mean    =         -nan", WRK2),
        "and -d30s, as it leaves out the first 10 s",
    ),
    "several runs of wrk2": (WRK2 + WRK2, "has several runs of wrk2; write each into a file of"),
    "several runs of JMeter": (
        2 * jmeter_csv(REQUESTS),
        "has several runs; write each into a file of",
    ),
    "few": (oha_csv(REQUESTS[:3]), "has too few requests, 3; at least 20 are needed"),
    "a clock that was set back": (
        k6_json(SET_BACK),
        r"a request that ended 59\.9 s before one above it began; its clock was set back",
    ),
    "a clock that was set back as users came": (jmeter_csv(SET_BACK), "its clock was set back"),
    "torn": (
        oha_csv(REQUESTS).replace("0.02,2", "soon,2"),
        "a value that its format does not allow, 'soon', in line 2; correct it, or take it out",
    ),
    "cut off": (oha_csv(REQUESTS).rpartition(",")[0], "does not allow, '', in line 31"),
    "no number": (oha_csv([(0, float("nan"))] * 30), "nan is not a finite number, in line 2"),
    "negative": (vegeta_json([(at, -1) for at, _ in REQUESTS]), "a time of -1 s, which cannot be"),
    "no time": (vegeta_json(REQUESTS).replace('"2026', 'null,"x":"2026', 1), "does not allow"),
    "no time at all": (jmeter_csv([(at, 0.0) for at, _ in REQUESTS]), "has only times of 0 s; the"),
    "seconds in place of JMeter's milliseconds": (
        jmeter_csv(REQUESTS).replace(",20,", ",0.02,"),
        r"does not allow, '0\.02', in line 2; correct it",
    ),
    "JMeter's words for a time": (
        jmeter_csv(REQUESTS).replace(f"{UNIX_S}000", "Thu 26 Nov"),
        "has the time 'Thu 26 Nov'; ask JMeter for timestamp_format=ms, in line 2",
    ),
    "JMeter's word for success": (
        jmeter_csv(REQUESTS).replace("true", "yes", 1),
        "has the success 'yes', which must be true or false, in line 2; correct it",
    ),
    "a torn line in the middle": (
        vegeta_json(REQUESTS).replace("}\n", "\n", 1),
        "has text that is not JSON by itself, in line 1; correct it, or take it out if the file",
    ),
    "no code": (vegeta_json(REQUESTS).replace('"code"', '"of"', 1), "lacks 'code', which its"),
    "no rows": (own([]), "has too few requests, 0; at least 20 are needed"),
    "failed": (oha_csv(REQUESTS).replace(",200\n", ",500\n"), "has no request that succeeded"),
    "one of two": (LOCUST["run_stats.csv"], "beside it output_stats_history.csv is missing"),
    "Locust's failures": ("Method,Name,Error,Occurrences,First Seen\n", "failures; leave it out"),
    "Locust's exceptions": (
        "Count,Message,Traceback,Nodes\n",
        "that end in _stats.csv and _st",
    ),
    "JMeter's parent samples": (
        jmeter_csv(REQUESTS).replace(",OK,", f",{TRANSACTION} : 3,"),
        "has only rows of transactions, .*; let their Transaction Controllers not generate a par",
    ),
    "vegeta's binary form": ("\x7f\x06Result\x01\x06Attack\x01", "what `vegeta encode` writes"),
    "vegeta's report": ('{"latencies":{},"status_codes":{}}', "only sums up .* `vegeta encode`"),
    "k6's CSV": ("metric_name,timestamp,metric_value\n", "is k6's CSV; bring --out json=FILE"),
    "k6's summary": ('{"metrics":{"http_reqs":{}}}', "only sums up .* --out json=FILE"),
    "JMeter's XML": ('<?xml version="1.0"?>\n<testResults version="1.2">', "JMeter's XML; bring"),
    "vegeta's report as text": ("Requests      [total, rate, throughput]  9", "`vegeta encode`"),
    "k6's summary as text": ("http_req_duration...: avg=3.14ms min=1ms", "--out json=FILE"),
    "semicolons": (jmeter_csv(REQUESTS).replace(",", ";"), "not by commas; write it with commas"),
    "compressed": ("\x1f\x8b\x08\x08xk6.json\0", "is compressed; unpack it with gunzip"),
    "hey's CSV": ("response-time,DNS+dialup,DNS,Request-write\n", "bring oha --output-format csv"),
    "vegeta's CSV": ("1795694549000000000,200,21000000,0,2,,", r"vegeta encode \(JSON\), k6"),
    "oha's JSON": ('{"latencyPercentiles":{}}', "only sums up .* --output-format csv"),
}


@pytest.mark.parametrize("name", SPARSE)
def test_what_holds_too_little_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    text, message = SPARSE[name]
    path = tmp_path / "output_stats.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ResultsError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


def test_commands_that_append_to_one_file_made_a_run_each(tmp_path: Path) -> None:
    """The second is longer, and answers of the third come in another order."""
    header, *first = own(REQUESTS[:25]).splitlines()
    second, third = (own(part).splitlines()[1:] for part in (REQUESTS, REQUESTS[:20]))
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([header, *first, *second, third[1], third[0], *third[2:], ""]))
    assert [(run.name, len(run.rows)) for run in read(path)] == [
        ("rows.csv:open", 25),
        ("rows.csv:open (2)", 30),
        ("rows.csv:open (3)", 20),
    ]


def test_runs_of_one_file_whose_rows_take_turns_went_on_together(tmp_path: Path) -> None:
    header, *rows = own(REQUESTS).splitlines()
    twice = [text for row in rows for text in (row, row.replace("open", "closed"))]
    path = tmp_path / "rows.csv"
    path.write_text(
        "\n".join([header, *twice, *(row.replace("open", "later") for row in rows), ""])
    )
    tools = {run.name: run.tool for run in read(path)}
    assert [*tools] == ["rows.csv:open", "rows.csv:closed", "rows.csv:later"]
    assert [*tools.values()] == [JOINT, JOINT, "Locust --raw"]


def test_a_single_user_of_locust_may_have_sent_all_arrivals(tmp_path: Path) -> None:
    for name, text in LOCUST.items():
        (tmp_path / name).write_text(text.replace(",4,,", ",1,,"))
    (run,) = read(tmp_path / "run_stats.csv")
    assert run.customers == UNKNOWN


def test_a_file_that_a_spreadsheet_wrote_is_read(tmp_path: Path) -> None:
    path = tmp_path / "output.csv"
    text = oha_csv(REQUESTS).replace("request-start", '"request-start"').replace("\n", "\r\n")
    path.write_text(text, encoding="utf-8-sig", newline="")
    (run,) = read(path)
    assert len(run.rows) == len(REQUESTS)


def test_oha_may_write_its_requests_in_any_order(tmp_path: Path) -> None:
    assert len(read_text(tmp_path, oha_csv(REQUESTS[::-1])).rows) == len(REQUESTS)


def test_requests_may_be_written_when_they_end_and_not_quite_in_order(tmp_path: Path) -> None:
    requests = [*REQUESTS[1::-1], *REQUESTS[2:], (0.0, 5.0)]
    assert len(read_text(tmp_path, k6_json(requests)).rows) == len(requests)


def test_vegetas_last_line_may_be_cut_off(tmp_path: Path) -> None:
    assert len(read_text(tmp_path, vegeta_json(REQUESTS)[:-20]).rows) == len(REQUESTS) - 1


@pytest.mark.parametrize(("code", "success"), [("200", "false"), ("404", "true"), ("", "true")])
def test_jmeter_says_whether_a_request_succeeded(code: str, success: str, tmp_path: Path) -> None:
    text = jmeter_csv(REQUESTS).replace(",200,OK,Group 1-0,true", f",{code},OK,Group 1-0,{success}")
    first, *others = (row.succeeded for row in read_text(tmp_path, text).rows)
    assert first == (success == "true")
    assert all(others)


def test_an_answer_that_k6_expected_is_a_success(tmp_path: Path) -> None:
    text = k6_json(REQUESTS).replace('"200"', '"404","expected_response":"true"')
    assert all(row.succeeded for row in read_text(tmp_path, text).rows)
    text = k6_json(REQUESTS).replace('"200"', '"404"', 2)
    assert read_text(tmp_path, text).times.failed == 1


def test_arrivals_that_k6_dropped_are_requests_that_failed(tmp_path: Path) -> None:
    """They came, even if all users were busy all the time, as customers are.

    Iterations for which the time was over are none: of these there is one point for all.
    """
    dropped = [
        {"metric": "dropped_iterations", "type": "Point", "data": {"time": moment(at), "value": n}}
        for at, n in ((2.95, 1), (2.96, 1), (3.0, 500))
    ]
    lines = "".join(json.dumps(point) + "\n" for point in dropped)
    assert read_text(tmp_path, k6_of_users([4, 5, 5], 5, 0.46) + lines).customers == OPEN
    times = read_text(tmp_path, k6_json(REQUESTS) + lines).times
    assert (times.requests, times.failed) == (len(REQUESTS) + 2, 2)
    assert times.mean_s == pytest.approx(read_text(tmp_path, k6_json(REQUESTS)).times.mean_s)


def test_transactions_of_jmeter_are_no_requests(tmp_path: Path) -> None:
    """Each request is in a Transaction Controller, which has a row of its own."""
    header, *lines = jmeter_csv(REQUESTS).splitlines()
    message = f'"{TRANSACTION} : 1, number of failing samples : 0"'
    controllers = [line.replace(",home,200,OK,", f",Page,200,{message},") for line in lines]
    run = read_text(tmp_path, "\n".join([header, *lines, *controllers]))
    assert [row.kind for row in run.rows] == ["home"] * len(REQUESTS)


def test_runs_are_named_by_their_files(tmp_path: Path) -> None:
    forms = {"a/run.csv": oha_csv, "a/run.json": vegeta_json, "b/run.csv": k6_json}
    paths = [tmp_path / name for name in forms]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(forms[str(path.relative_to(tmp_path))](REQUESTS))
    runs = read_all([*paths, tmp_path / "b" / ".." / "a" / "run.csv"], alone=paths[:1])
    assert [(run.name, run.tool, run.customers) for run in runs] == [
        ("a/run.csv", "oha", 1),
        ("a/run.json", "vegeta", OPEN),
        ("b/run.csv", "k6", OPEN),
    ]


# --- customers -----------------------------------------------------------------------------------


def k6_of_users(users: Sequence[int], initialized: int, sleep_s: float | None) -> str:
    """A run of virtual users who sleep between requests; None: k6 tells of no iterations."""
    points = [("vus", 1.0 + at, float(many)) for at, many in enumerate(users)]
    points += [("vus_max", 1.0 + at, float(initialized)) for at in range(len(users))]
    if sleep_s is not None:
        points += [("iteration_duration", at, 1000 * (t + sleep_s)) for at, t in REQUESTS]
    lines = [
        {"type": "Point", "metric": name, "data": {"time": moment(at), "value": value}}
        for name, at, value in points
    ]
    return k6_json(REQUESTS) + "".join(json.dumps(line) + "\n" for line in lines)


@pytest.mark.parametrize(
    ("users", "initialized", "sleep_s", "customers"),
    [
        pytest.param([5] * 3, 5, None, 5, id="virtual users who do not change are customers"),
        pytest.param([5] * 3, 5, 0.46, 5, id="they sleep, and are always at an iteration"),
        pytest.param([4, 5, 5], 5, 0.46, 5, id="the last are ending"),
        pytest.param([5] * 3, 5, 0.0, OPEN, id="most of them wait for an arrival: open"),
        pytest.param([0, 2, 1], 5, 0.0, OPEN, id="most of them are not at work: open"),
        pytest.param([0, 2, 1], 5, None, OPEN, id="the same without iterations"),
        pytest.param([2] * 3, 50, 0.16, OPEN, id="always two of fifty are at work: open"),
        pytest.param([0, 1, 0], 1, 0.0, 1, id="the only one never meets another"),
        pytest.param([1, 3, 5], 5, 0.2, UNKNOWN, id="they become more"),
    ],
)
def test_k6_tells_how_many_customers_it_had(
    users: Sequence[int], initialized: int, sleep_s: float | None, customers: int, tmp_path: Path
) -> None:
    """As k6 counts: `vus` are those at an iteration, also if arrivals begin iterations."""
    run = read_text(tmp_path, k6_of_users(users, initialized, sleep_s))
    assert run.customers == customers


def test_requests_that_one_user_sends_together_are_not_of_one_customer(tmp_path: Path) -> None:
    point = {"type": "Point", "metric": "vus", "data": {"time": moment(1), "value": 1}}
    batches = k6_json([(0.05 * (n // 2), 0.05) for n in range(30)])
    assert read_text(tmp_path, batches + json.dumps(point)).customers == UNKNOWN


def jmeter_of(threads: Sequence[str], customers: Sequence[int]) -> str:
    header, *lines = jmeter_csv(REQUESTS).splitlines()
    about = zip(lines, threads, customers, strict=True)
    named = [re.sub(r"Group 1-\d+,true,\d", f"{who},true,{n}", line) for line, who, n in about]
    return "\n".join([header, *named])


def test_threads_of_jmeter_may_stand_one_after_the_other_as_machines_sent_them(
    tmp_path: Path,
) -> None:
    header, *lines = jmeter_of([f"T {n % 2}" for n in range(30)], [2] * 30).splitlines()
    run = read_text(tmp_path, "\n".join([header, *lines[1::2], *lines[::2]]))
    assert [row.intended_s for row in run.rows] == pytest.approx(
        [at for at, _ in REQUESTS], abs=1e-3
    )


@pytest.mark.parametrize(
    ("threads", "all_threads", "customers"),
    [
        pytest.param([f"T {n % 3}" for n in range(30)], [3] * 30, 3, id="three threads"),
        pytest.param(["T"] * 30, [1] * 30, 1, id="a single one"),
        pytest.param([f"T {n}" for n in range(30)], [1] * 30, OPEN, id="one for each arrival"),
        pytest.param([f"T {n // 2}" for n in range(30)], [1, 2] * 15, UNKNOWN, id="some ask again"),
    ],
)
def test_jmeter_tells_how_many_customers_it_had(
    threads: Sequence[str], all_threads: Sequence[int], customers: int, tmp_path: Path
) -> None:
    run = read_text(tmp_path, jmeter_of(threads, all_threads))
    assert run.customers == customers
    if customers == 3:
        assert [customer_of(row) for row in run.rows] == [0, 1, 2] * 10


@pytest.mark.parametrize(
    ("times_s", "gaps_s", "customers"),
    [
        pytest.param((0.0209, 0.0409), (0.0205, 0.0405), 1, id="one who asks again at once"),
        pytest.param((0.003, 0.003), (0.001, 0.002), UNKNOWN, id="more than one at a time"),
    ],
)
def test_whole_milliseconds_of_jmeter_show_customers(
    times_s: Sequence[float], gaps_s: Sequence[float], customers: int, tmp_path: Path
) -> None:
    starts_s = [n // 2 * sum(gaps_s) + n % 2 * gaps_s[0] for n in range(50)]
    text = jmeter_csv([(at, times_s[n % 2]) for n, at in enumerate(starts_s)])
    without_threads = re.sub(r"Group 1-\d+,true,\d", ",true,", text)
    assert read_text(tmp_path, without_threads).customers == customers


def test_rows_show_customers_who_ask_again_at_once(tmp_path: Path) -> None:
    """Two, one of whom is always quicker; at even intervals, they are a generator's arrivals."""
    asked = sorted([(0.02 * n, 0.02) for n in range(50)] + [(0.07 * n, 0.07) for n in range(14)])
    run = read_text(tmp_path, oha_csv(asked))
    assert run.customers == 2
    waits_s = [
        b.sent_s - a.done_s
        for own_rows in grouped(run.rows, customer_of).values()
        for a, b in pairwise(own_rows)
    ]
    assert len(waits_s) == len(asked) - 2
    assert all(abs(wait_s) < 1e-5 for wait_s in waits_s)
    assert read_text(tmp_path, oha_csv([(0.1 * n, 0.199) for n in range(50)])).customers == OPEN
