"""Outputs of load generators are recognised by their form, or refused in a sentence.

The texts are written here in the forms that the tools document and print; those of vegeta and
Locust were compared with what they wrote on this machine.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from loadtests.generation.rows import COLUMNS
from loadtests.lab.results import ResultsError
from loadtests.lab.tool_outputs import read, read_all
from loadtests.lab.tool_rows import TRANSACTION
from loadtests.lab.tool_runs import UNKNOWN, ToolRun

UNIX_S = 1_795_694_549
Request = tuple[float, float]  # begun after so many seconds, and took so many
REQUESTS: Sequence[Request] = [(0.1 * at, 0.02 + 0.001 * at) for at in range(30)]


def own(requests: Sequence[Request]) -> str:
    lines = [f"open,{n},a,{at},{at},,{at + took},,200," for n, (at, took) in enumerate(requests)]
    return "\n".join([",".join(COLUMNS), *lines, ""])


def vegeta_csv(requests: Sequence[Request]) -> str:
    lines = [
        f"{UNIX_S * 10**9 + round(at * 1e9)},200,{round(took * 1e9)},0,2,,b2s=,,{n},GET,http://x/,"
        for n, (at, took) in enumerate(requests)
    ]
    return "\n".join([*lines, ""])


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


def k6_csv(requests: Sequence[Request], unit: float = 1e9) -> str:
    header = "metric_name,timestamp,metric_value,check,error,error_code,group,method,name,status"
    lines = [header]
    for at, took in requests:
        end = (
            int((UNIX_S + at + took) * unit)
            if unit == 1
            else UNIX_S * 10**9 + round((at + took) * 1e9)
        )
        lines.append(f"http_reqs,{end},1.0,,,,,GET,http://x/,200")
        lines.append(f"http_req_duration,{end},{1000 * took},,,,,GET,http://x/,200")
    return "\n".join([*lines, ""])


def jmeter_csv(requests: Sequence[Request]) -> str:
    lines = ["timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,allThreads"]
    for n, (at, took) in enumerate(requests):
        start_ms, took_ms = round(1000 * (UNIX_S + at)), round(1000 * took)
        lines.append(f"{start_ms},{took_ms},home,200,OK,Group 1-{n},true,{1 + n % 3}")
    return "\n".join([*lines, ""])


def jmeter_xml(requests: Sequence[Request]) -> str:
    lines = [
        f'<httpSample t="{round(1000 * took)}" lt="1" ts="{round(1000 * (UNIX_S + at))}" s="true" '
        f'lb="a &amp; b" rc="200" rm="OK" tn="Group 1-1"/>'
        for at, took in requests
    ]
    return "\n".join(
        ['<?xml version="1.0"?>', '<testResults version="1.2">', *lines, "</testResults>"]
    )


def oha_csv(requests: Sequence[Request]) -> str:
    lines = ["request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status"]
    lines += [f"{at},0.0001,0.0002,{took / 2},{took},2,200" for at, took in requests]
    return "\n".join([*lines, ""])


def hey_csv(requests: Sequence[Request]) -> str:
    lines = [
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset"
    ]
    lines += [f"{took},0,0,0,0,0,200,{at}" for at, took in requests]
    return "\n".join([*lines, ""])


WHOLE: dict[str, Callable[[Sequence[Request]], str]] = {
    "Locust --raw": own,
    "vegeta csv": vegeta_csv,
    "vegeta json": vegeta_json,
    "k6 json": k6_json,
    "k6 csv": k6_csv,
    "JMeter csv": jmeter_csv,
    "JMeter xml": jmeter_xml,
    "oha csv": oha_csv,
    "hey csv": hey_csv,
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_file_with_a_row_for_each_request_is_read_whole(name: str, tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_text(WHOLE[name](REQUESTS))
    (run,) = read(path)
    assert run.tool.split()[0] == name.split(maxsplit=1)[0]
    begun_s = run.rows[0].intended_s
    assert [row.intended_s - begun_s for row in run.rows] == pytest.approx(
        [at for at, _ in REQUESTS], abs=2e-6
    )
    assert [row.open_response_s for row in run.rows] == pytest.approx(
        [took for _, took in REQUESTS], abs=2e-6
    )
    assert all(row.succeeded for row in run.rows)


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
VEGETA = {
    "latencies": {
        "total": 330,
        "mean": 33e6,
        "50th": 30e6,
        "90th": 50e6,
        "95th": 51e6,
        "99th": 54e6,
    }
    | {"max": 55e6, "min": 4e6},
    "duration": 1.98e9,
    "requests": 100,
    "rate": 50.5,
    "status_codes": {"200": 98, "503": 2},
}
K6 = {
    "metrics": {
        "http_reqs": {"type": "counter", "values": {"count": 600, "rate": 10.0}},
        "http_req_duration": {
            "type": "trend",
            "values": {"avg": 100, "min": 20, "med": 95, "max": 400, "p(90)": 180, "p(95)": 210},
        },
        "http_req_failed": {"type": "rate", "values": {"rate": 0.01, "passes": 6, "fails": 594}},
        "vus_max": {"type": "gauge", "values": {"value": 1, "min": 1, "max": 1}},
    }
}
K6_EXPORT = {"metrics": {name: metric["values"] for name, metric in K6["metrics"].items()}}
OHA = {
    "summary": {"successRate": 1.0, "total": 10.0, "slowest": 0.09, "fastest": 0.01}
    | {"average": 0.02, "requestsPerSec": 50.0},
    "latencyPercentiles": {"p10": 0.011, "p50": 0.018, "p99": 0.07, "p99.99": None},
    "statusCodeDistribution": {"200": 395, "500": 5},
    "errorDistribution": {"connection refused": 100, "aborted due to deadline": 4},
}
SUMMED: dict[str, tuple[str, ToolRun]] = {
    "wrk2": (WRK2, ToolRun("output", "wrk2", (), 60058, 58, 30.0, 0.006602)),
    "vegeta": (json.dumps(VEGETA), ToolRun("output", "vegeta", (), 100, 2, 1.98, 0.033)),
    "k6": (json.dumps(K6, indent=4), ToolRun("output", "k6", (), 600, 6, 60.0, 0.1)),
    "k6, exported": (json.dumps(K6_EXPORT), ToolRun("output", "k6", (), 600, 6, 60.0, 0.1)),
    "oha": (json.dumps(OHA, indent=2), ToolRun("output", "oha", (), 500, 105, 10.0, 0.02)),
}
MEDIANS = {"wrk2": 0.006671, "vegeta": 0.030, "k6": 0.095, "k6, exported": 0.095, "oha": 0.018}


@pytest.mark.parametrize("name", SUMMED)
def test_a_file_that_sums_up_has_its_numbers(name: str, tmp_path: Path) -> None:
    text, expected = SUMMED[name]
    path = tmp_path / "output"
    path.write_text(text)
    (run,) = read(path)
    for what in ("tool", "requests", "failed", "duration_s", "mean_s"):
        assert getattr(run, what) == pytest.approx(getattr(expected, what)), what
    assert dict(run.quantiles)[0.5] == pytest.approx(MEDIANS[name])
    assert run.quantiles[0][0] == 0
    assert run.quantiles[-1][0] == 1


def test_times_in_whole_seconds_are_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_text(k6_csv(REQUESTS, unit=1))
    (run,) = read(path)
    assert not run.rows
    assert run.requests == len(REQUESTS)


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
    assert (run.name, run.requests, run.failed, run.customers) == ("run", 100, 1, 4)
    assert run.mean_s == pytest.approx(0.0215)
    assert run.duration_s == pytest.approx(10)
    assert run.quantiles == ((0.0, 0.010), (0.5, 0.020), (0.99, 0.045), (1.0, 0.050))


def test_files_of_one_name_have_their_folders_in_theirs(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "run.csv" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(oha_csv(REQUESTS))
    assert [run.name for run in read_all(paths)] == ["a/run.csv", "b/run.csv"]


SPARSE = {
    "nothing": ("", "is no output that is known here"),
    "a letter": ("Dear all,\nit was slow.\n", "is no output that is known here"),
    "wrk": (WRK2.split("  Latency Dist", maxsplit=1)[0], "ask wrk2 with -L"),
    "wrk2 for ten seconds": (
        re.sub(r"Mean *= *[\d.]+", "Mean    =         -nan", WRK2),
        "and -d30s, as it leaves out the first 10 s",
    ),
    "few": (oha_csv(REQUESTS[:3]), "has 3 requests; at least 20 are needed"),
    "torn": (
        oha_csv(REQUESTS).replace("0.02,2", "soon,2"),
        "line 2 a value that its format does not allow, 'soon'; correct the line, or take it out",
    ),
    "cut off": (
        hey_csv(REQUESTS).rpartition(",")[0] + ",",
        "line 31 a value that its format does not allow, ''",
    ),
    "a long cell": (oha_csv(REQUESTS) + '"' + 200_000 * "x", "line 32 a value that .*, 'x{59};"),
    "no number": (oha_csv([(0, float("nan"))] * 30), "has 30 requests in nan s, which cannot be"),
    "negative": (
        vegeta_json([(at, -1) for at, _ in REQUESTS]),
        "has a time of -1 s, which cannot be",
    ),
    "no time": (
        vegeta_json(REQUESTS).replace('"2026', 'null,"x":"2026', 1),
        "format does not allow",
    ),
    "no length": (
        '{"latencies":{"mean":1},"status_codes":{"200":99},"requests":99,"duration":0}',
        "has 99 requests in 0 s, which cannot be",
    ),
    "no rate": (
        '{"metrics":{"http_req_duration":{"avg":0},"http_reqs":{"count":0,"rate":0}}}',
        "has 0 requests",
    ),
    "only a mean": (
        json.dumps(K6_EXPORT).replace('"min": 20, "med": 95, "max": 400, ', ""),
        "lacks the shortest and the median and the longest time; bring .*--summary-trend-stats",
    ),
    "no mean": (json.dumps(K6).replace('"avg": 100, ', ""), "lacks the mean time; run k6 with"),
    "k6's new summary": ('{"results":{"metrics":[]}}', "a summary of k6 that is not known here"),
    "JMeter's words for a time": (
        jmeter_csv(REQUESTS).replace(f"{UNIX_S}000", "Thu 26 Nov"),
        "line 2 the time 'Thu 26 Nov', which cannot be read; ask JMeter for timestamp_format=ms",
    ),
    "no names": (
        jmeter_csv(REQUESTS).partition("\n")[2],
        "JMeter's CSV without the names of its columns; put them into a first line",
    ),
    "only transactions": (
        jmeter_csv(REQUESTS).replace(",OK,", f",{TRANSACTION} : 2,"),
        "only rows of Transaction Controllers, not of their requests; switch off",
    ),
    "a torn line in the middle": (
        vegeta_json(REQUESTS).replace("}\n", "\n", 1),
        "has in line 1 no JSON; correct the line, or take it out if the file was cut off there",
    ),
    "no rows": (own([]), "has 0 requests; at least 20 are needed"),
    "no time at all": (jmeter_csv([(at, 0.0) for at, _ in REQUESTS]), "has only times of 0 s; the"),
    "no sums": ('{"metrics":{"http_reqs":{}}}', "lacks 'count', which its format has"),
    "all refused": (
        json.dumps(
            {"summary": dict.fromkeys(["average", "fastest", "slowest", "total"])}
            | {"latencyPercentiles": {}, "errorDistribution": {"refused": 500}}
        ),
        "has no request that succeeded",
    ),
    "failed": (k6_csv([(0, 0)] * 30, 1).replace(",200\n", ",500\n"), "no request that succeeded"),
    "one of two": (LOCUST["run_stats.csv"], "beside it output_stats_history.csv is missing"),
}


@pytest.mark.parametrize("name", SPARSE)
def test_what_holds_too_little_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    text, message = SPARSE[name]
    path = tmp_path / "output_stats.csv"
    path.write_text(text)
    with pytest.raises(ResultsError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_a_spreadsheet_or_a_shell_of_windows_wrote_is_read_or_named(
    tmp_path: Path,
) -> None:
    path = tmp_path / "output.csv"
    text = oha_csv(REQUESTS).replace("request-start", '"request-start"').replace("\n", "\r\n")
    path.write_text(text, encoding="utf-8-sig", newline="")
    (run,) = read(path)
    assert len(run.rows) == len(REQUESTS)
    path.write_text(text, encoding="utf-16")
    with pytest.raises(ResultsError, match="is UTF-16, as PowerShell writes"):
        read(path)


@pytest.mark.parametrize("form", [jmeter_csv, jmeter_xml])
def test_an_answer_that_jmeter_found_wrong_is_a_failure(
    form: Callable[[Sequence[Request]], str], tmp_path: Path
) -> None:
    path = tmp_path / "output"
    text = form(REQUESTS).replace("-0,true,", "-0,false,").replace('s="true"', 's="false"', 1)
    path.write_text(text)
    (run,) = read(path)
    assert [row.succeeded for row in run.rows] == [False] + [True] * 29


def test_vegetas_binary_form_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.bin"
    path.write_bytes(
        b"\xff\x96\x7f\x03\x01\x01\x06Result\x01\xff\x80\x00\x01\x0c\x01\x06Attack\x01"
    )
    with pytest.raises(ResultsError, match="vegeta encode --to csv"):
        read(path)


def read_text(folder: Path, text: str) -> ToolRun:
    path = folder / "output"
    path.write_text(text)
    (run,) = read(path)
    return run


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_jmeters_columns_may_be_parted_by_others_than_commas(
    delimiter: str, tmp_path: Path
) -> None:
    run = read_text(tmp_path, jmeter_csv(REQUESTS).replace(",", delimiter))
    assert len(run.rows) == len(REQUESTS)


@pytest.mark.parametrize(
    "words", ["2026/11/26 12:{:02}:{:06.3f}", "2026-11-26T12:{:02}:{:012.9f}Z"]
)
def test_times_in_words_are_those_of_numbers(words: str, tmp_path: Path) -> None:
    lines = jmeter_csv(REQUESTS).splitlines()
    at = [words.format(int(at_s // 60), at_s % 60) for at_s, _ in REQUESTS]
    text = [at_ + line[line.index(",") :] for at_, line in zip(at, lines[1:], strict=True)]
    rows = read_text(tmp_path, "\n".join([lines[0], *text])).rows
    assert [row.intended_s for row in rows] == pytest.approx([at_s for at_s, _ in REQUESTS])


def test_k6_may_write_times_in_words(tmp_path: Path) -> None:
    lines = k6_csv(REQUESTS).splitlines()
    ends = [moment(at + took) for at, took in REQUESTS for _ in range(2)]
    text = [
        re.sub(r",\d{19},", f",{end},", line) for end, line in zip(ends, lines[1:], strict=True)
    ]
    rows = read_text(tmp_path, "\n".join([lines[0], *text])).rows
    begun_s = [row.intended_s for row in rows]
    assert begun_s == pytest.approx([at for at, _ in REQUESTS], abs=2e-6)


def test_answers_in_vegetas_csv_may_be_long(tmp_path: Path) -> None:
    run = read_text(tmp_path, vegeta_csv(REQUESTS).replace("b2s=", 200_000 * "A"))
    assert len(run.rows) == len(REQUESTS)


def test_vegetas_last_line_may_be_cut_off(tmp_path: Path) -> None:
    assert len(read_text(tmp_path, vegeta_json(REQUESTS)[:-20]).rows) == len(REQUESTS) - 1


@pytest.mark.parametrize("code", ["404", ""])
@pytest.mark.parametrize("form", [jmeter_csv, jmeter_xml])
def test_a_success_of_jmeter_is_one_whatever_the_code(
    code: str, form: Callable[[Sequence[Request]], str], tmp_path: Path
) -> None:
    text = form(REQUESTS).replace(",200,", f",{code},").replace('rc="200"', f'rc="{code}"')
    assert all(row.succeeded for row in read_text(tmp_path, text).rows)


def test_jmeter_may_leave_out_the_code(tmp_path: Path) -> None:
    text = jmeter_csv(REQUESTS).replace("responseCode", "other")
    assert all(row.succeeded for row in read_text(tmp_path, text).rows)


def test_an_answer_that_k6_expected_is_a_success(tmp_path: Path) -> None:
    text = k6_json(REQUESTS).replace('"200"', '"404","expected_response":"true"')
    assert all(row.succeeded for row in read_text(tmp_path, text).rows)


def with_transactions(requests: Sequence[Request]) -> str:
    """JMeter's CSV of requests, each in a Transaction Controller, which has a row of its own."""
    header, *lines = jmeter_csv(requests).splitlines()
    message = f'"{TRANSACTION} : 1, number of failing samples : 0"'
    controllers = [line.replace(",home,200,OK,", f",Page,200,{message},") for line in lines]
    return "\n".join(
        [header, *(row for two in zip(lines, controllers, strict=True) for row in two)]
    )


def test_transactions_of_jmeter_are_no_requests(tmp_path: Path) -> None:
    run = read_text(tmp_path, with_transactions(REQUESTS))
    assert [row.kind for row in run.rows] == ["home"] * len(REQUESTS)


@pytest.mark.parametrize("parent", ["sample", "httpSample"])
def test_samples_with_others_in_them_are_no_requests(parent: str, tmp_path: Path) -> None:
    whole = [
        f'<{parent} t="100" ts="{UNIX_S}{n:03}" s="true" lb="Page" rc="200" na="1">\n'
        f'<httpSample t="30" ts="{UNIX_S}{n:03}" s="true" lb="a" rc="302" na="1"><x>y</x>\n'
        f'</httpSample><httpSample t="70" ts="{UNIX_S}{n + 30:03}" s="true" lb="b" rc="200"/>\n'
        f"</{parent}>"
        for n in range(50)
    ]
    run = read_text(tmp_path, "\n".join(['<testResults version="1.2">', *whole]))
    assert len(run.rows) == 100
    assert sum(row.open_response_s for row in run.rows) == pytest.approx(50 * 0.1)


def test_the_corrected_times_of_wrk2_are_taken(tmp_path: Path) -> None:
    """With -U it prints the others, too, which leave out how late requests were sent."""
    start = WRK2.index("  Latency Distribution")
    distribution = WRK2[start : WRK2.index("-----", start)]
    less = distribution.replace("6.671", "1.671").replace("11.183", "2.183").replace("6.602", "1.6")
    uncorrected = less.replace("Recorded Latency", "Uncorrected Latency (measured without ...)")
    at = WRK2.index("-----", start)
    run = read_text(tmp_path, WRK2[:at] + "---\n\n" + uncorrected + WRK2[at:])
    assert run == read_text(tmp_path, WRK2)


def test_locusts_rate_of_nought_is_refused(tmp_path: Path) -> None:
    for name, text in LOCUST.items():
        (tmp_path / name).write_text(text.replace(",10.0,", ",0.0,"))
    with pytest.raises(ResultsError, match="has 100 requests in 0 s, which cannot be"):
        read_all([tmp_path / "run_stats.csv"])


def test_files_of_one_stem_are_different_runs(tmp_path: Path) -> None:
    forms = {"run.csv": oha_csv, "run.json": vegeta_json, "run.txt": hey_csv}
    for name, form in forms.items():
        (tmp_path / name).write_text(form(REQUESTS))
    paths = [tmp_path / name for name in forms]
    runs = read_all([*paths, tmp_path / "." / "run.csv"], alone=paths[:1])
    assert [(run.name, run.tool, run.customers) for run in runs] == [
        ("run.csv", "oha", 1),
        ("run.json", "vegeta", None),
        ("run.txt", "hey", None),
    ]
    assert [{row.run for row in run.rows} for run in runs] == [{name} for name in forms]


def of_k6(form: str, users: Sequence[int], initialized: int, sleep_s: float | None) -> str:
    """Runs of virtual users who sleep between requests; None: k6 tells of no iterations."""
    points = [("vus", 1.0 + at, float(many)) for at, many in enumerate(users)]
    points += [("vus_max", 1.0 + at, float(initialized)) for at in range(len(users))]
    if sleep_s is not None:
        points += [("iteration_duration", at, 1000 * (t + sleep_s)) for at, t in REQUESTS]
    if form == "csv":
        rows = "".join(
            f"{name},{round((UNIX_S + at) * 1e9)},{value},,,,,,,\n" for name, at, value in points
        )
        return k6_csv(REQUESTS) + rows
    if form == "json":
        lines = [
            {"type": "Point", "metric": name, "data": {"time": moment(at), "value": value}}
            for name, at, value in points
        ]
        return k6_json(REQUESTS) + "".join(json.dumps(line) + "\n" for line in lines)
    content = json.loads(json.dumps(K6_EXPORT))["metrics"]
    length_s = max(at + took for at, took in REQUESTS)
    content["http_reqs"] = {"count": len(REQUESTS), "rate": len(REQUESTS) / length_s}
    content["vus"] = {"value": users[-1], "min": min(users), "max": max(users)}
    content["vus_max"] = dict.fromkeys(("value", "min", "max"), initialized)
    if sleep_s is not None:
        mean_ms = sum(value for name, _, value in points if name == "iteration_duration") / 30
        content |= {"iterations": {"count": 30}, "iteration_duration": {"avg": mean_ms}}
    return json.dumps({"metrics": content})


@pytest.mark.parametrize("form", ["csv", "json", "summary"])
@pytest.mark.parametrize(
    ("users", "initialized", "sleep_s", "customers"),
    [
        pytest.param([5] * 3, 5, None, 5, id="virtual users who do not change are customers"),
        pytest.param([5] * 3, 5, 0.46, 5, id="they sleep, and are always at an iteration"),
        pytest.param([4, 5, 5], 5, 0.46, 5, id="the last are ending"),
        pytest.param([5] * 3, 5, 0.0, 0, id="most of them wait for an arrival: open"),
        pytest.param([0, 2, 1], 5, 0.0, 0, id="most of them are not at work: open"),
        pytest.param([0, 2, 1], 5, None, 0, id="the same without iterations"),
        pytest.param([2] * 3, 50, 0.16, 0, id="always two of fifty are at work: open"),
        pytest.param([0, 1, 0], 1, 0.0, 1, id="the only one never meets another"),
        pytest.param([1, 3, 5], 5, 0.2, UNKNOWN, id="they become more"),
    ],
)
def test_k6_tells_how_many_customers_it_had_in_all_its_forms(
    form: str,
    users: Sequence[int],
    initialized: int,
    sleep_s: float | None,
    customers: int,
    tmp_path: Path,
) -> None:
    """As k6 counts: `vus` are those at an iteration, also if arrivals begin iterations."""
    assert read_text(tmp_path, of_k6(form, users, initialized, sleep_s)).customers == customers


def test_requests_that_one_user_sends_together_are_not_of_one_customer(tmp_path: Path) -> None:
    vus = f"vus,{UNIX_S}000000000,1.0,,,,,,,\n"
    assert read_text(tmp_path, k6_csv(REQUESTS) + vus).customers == 1
    together = [(at - at % 0.2, took) for at, took in REQUESTS]
    assert read_text(tmp_path, k6_csv(together) + vus).customers == UNKNOWN
