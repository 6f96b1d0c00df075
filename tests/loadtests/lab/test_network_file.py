"""`scripts/lab solve`: networks in files, and what is said about files that describe none."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from loadtests.__main__ import main
from loadtests.lab import network_file
from loadtests.lab.results import ResultsError
from loadtests.models import mva
from loadtests.models.laws import Station

BY_HAND = Path(__file__).parents[3] / "loadtests" / "by-hand.md"
CLASSES = '[[classes]]\nname = "a"\ncustomers = 3\n'
OF_CLASS = "name, customers, think_time_s, rate_per_s"
STATION = '[[stations]]\nname = "cpu"\nservice_time_s = 2.0\n'
LARGE = STATION.replace("2.0", "1e308")


def test_the_example_of_the_page_is_solved(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", BY_HAND.read_text("utf-8"), re.DOTALL)
    path = tmp_path / "network.toml"
    path.write_text(text)
    outcome = CliRunner().invoke(main, ["solve", str(path)])
    assert outcome.exit_code == 0, outcome.output
    assert re.search(r"^readers +3\.69", outcome.output, re.MULTILINE)
    as_json = CliRunner().invoke(main, ["solve", "--json", str(path)])
    readers, posts = json.loads(as_json.output)["classes"]
    assert readers["throughput_per_s"] == pytest.approx(3.6966, abs=1e-4)
    assert posts["at"][0]["name"] == "workers"


def test_one_class_in_json_is_mean_value_analysis(tmp_path: Path) -> None:
    path = tmp_path / "network.json"
    cpu = {"name": "cpu", "visits": 2, "service_time_s": 0.5, "servers": 2}
    content = {
        "classes": [{"name": "a", "customers": 4, "think_time_s": 1}],
        "stations": [cpu, {"name": "way", "kind": "delay", "demand_s": 0.25}],
    }
    path.write_text(json.dumps(content))
    _, (means,) = network_file.solve(path)
    same = mva.solve([Station("cpu", 1.0, 2), Station("way", 0.25, None)], 4, 1.0)[-1]
    assert means.throughput_per_s == pytest.approx(same.throughput_per_s)


def test_a_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text('title = "é"', encoding="latin-1")
    with pytest.raises(ResultsError, match="is not text in UTF-8; save it as UTF-8"):
        network_file.read(path)


def test_the_name_of_a_json_file_may_end_in_capitals(tmp_path: Path) -> None:
    path = tmp_path / "NETWORK.JSON"
    path.write_text('{"classes": [{"name": "a", "customers": 1}], "stations": [{"name": "s"}]}')
    with pytest.raises(ResultsError, match="needs demand_s"):
        network_file.read(path)


def test_a_message_names_only_some_of_many_fields(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    groups = (CLASSES.replace('"a"', f'"c{number}"') for number in range(1000))
    path.write_text("".join(groups) + '[[stations]]\nname = "cpu"\nzzz = 1')
    with pytest.raises(ResultsError, match="unknown field `zzz`") as caught:
        network_file.read(path)
    assert len(str(caught.value)) < len(str(path)) + 300


def test_whole_numbers_may_be_written_with_a_point_after_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(CLASSES.replace("3", "2.0") + STATION, encoding="utf-8-sig")
    (group,) = network_file.read(path).classes
    assert repr(group.customers) == "2"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("NaN", ""),
        ("1e400", ""),
        ('"\\ud800"', ""),
        ('"a", "customers": 3, "customers": 4', "the key 'customers' is given 2 times"),
    ],
)
def test_json_without_a_meaning_is_refused(tmp_path: Path, value: str, reason: str) -> None:
    path = tmp_path / "network.json"
    path.write_text(f'{{"classes": [{{"name": {value}}}]}}')
    with pytest.raises(ResultsError, match=rf"cannot be read as JSON: .*{reason}"):
        network_file.read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no classes; write a [[classes]] for each"),
        (CLASSES, "it has no stations; write a [[stations]] for each"),
        ("classes = 3 [", "cannot be read as TOML"),
        (
            CLASSES + STATION + "speed = 2",
            "field `speed`; it may have name, kind, servers, rates, a, visits, service_time_s, dem",
        ),
        (
            CLASSES + STATION + "servers = 10001",
            "servers of station 'cpu' must be at most 10000, is",
        ),
        (
            CLASSES + STATION.replace("2.0", "1e-320"),
            "class 'a': its times are too small or too la",
        ),
        (
            CLASSES + "think_time_s = 1e308\n" + STATION.replace("2.0", "1e308"),
            "too small or too la",
        ),
        (
            CLASSES + STATION + "servers = 0",
            "servers of station 'cpu' must be a whole number of at",
        ),
        (CLASSES + STATION + "servers = 1.5", "servers: it must be a whole number, is a number;"),
        (CLASSES + STATION + "servers = 2\nrates = [1]", "a queue has one of them, a delay none"),
        (
            CLASSES + STATION + 'kind = "stack"',
            "station 'cpu': kind: Invalid enum value 'stack'; write \"queue\" or \"delay\"",
        ),
        (CLASSES + STATION + STATION, "two stations are called 'cpu'; names must differ"),
        (
            CLASSES + STATION.replace("2.0", '"x"'),
            "'a' at station 'cpu': service_time_s: it must be a number, is text; it may have",
        ),
        (CLASSES + '[[stations]]\nname = "cpu"', "needs demand_s, or service_time_s"),
        (CLASSES + STATION.replace("2.0", "-1"), "must be 0 or a positive number, is -1"),
        (
            CLASSES + STATION.replace("2.0", "-1") + "visits = -2",
            "visits of 'a' at station 'cpu' must be 0 or a positive number, is -2",
        ),
        (CLASSES + STATION.replace("2.0", "0"), "a round takes no time"),
        (
            CLASSES.replace("customers = 3", "customers = 2.5") + STATION,
            "customers of class 'a' must be a whole number, is 2.5",
        ),
        (CLASSES.replace("3", "nan") + STATION, "must be a whole number, is nan"),
        (CLASSES + STATION + "visits = nan", "must be 0 or a positive number, is nan"),
        (CLASSES + STATION + "visits = inf", "must be 0 or a positive number, is inf"),
        (CLASSES + STATION + "rates = [nan]", "must be a positive number, is nan"),
        (CLASSES + STATION + "rates = 2", "station 'cpu': rates: it must be a list, is a whole"),
        (CLASSES.replace("3", "true") + STATION, "it must be a number, is true or false"),
        (CLASSES + STATION + "rates = []", "number of rates of station 'cpu' must be"),
        (
            CLASSES.replace("customers = 3", "rate_per_s = 0.1\nthink_time_s = 1") + STATION,
            "class 'a' is open and has no think_time_s; leave it out",
        ),
        (CLASSES + "rate_per_s = nan\n" + STATION, "must be 0 or a positive number, is nan"),
        (
            CLASSES + "think_s = 1\n" + STATION,
            "class 'a': the table contains unknown field `think_s`; it may have "
            + OF_CLASS
            + "; did you mean think_time_s?",
        ),
        (
            CLASSES.replace('name = "a"', "") + STATION,
            "class 1: the table lacks the required field `name`; it may have " + OF_CLASS,
        ),
        (CLASSES.replace('"a"', '""') + STATION, "class '': name: it must be text of length >= 1"),
        (
            CLASSES + STATION.replace('"cpu"', '""'),
            "station '': name: it must be text of length >=",
        ),
        (CLASSES.replace("customers = 3", "rate_per_s = 0.6") + STATION, "no steady state"),
        (
            CLASSES.replace("customers = 3", "rate_per_s = 0.499975") + STATION,
            "bring 0.99995 s of work a second to station 'cpu', which can do 1: more than 0.9999",
        ),
        (CLASSES.replace('"a"', '"visits"') + STATION, "is a field of a station; rename it"),
        (CLASSES + STATION + "x = " + "[" * 5000, "has too many lists or tables within each other"),
        (
            CLASSES + STATION.replace("time_s", "time_ms"),
            "; did you mean service_time_s?",
        ),
        (
            CLASSES.replace("[[classes]]", "[classes]") + STATION,
            "table; write a [[classes]] for each",
        ),
        (
            CLASSES + CLASSES.replace('"a"', '"b"') + STATION,
            "'cpu' has service_time_s; write it for each class, as in a = {service_time_s = …}",
        ),
        (CLASSES + STATION + STATION.replace('name = "cpu"', ""), "station 2: the table lacks the"),
        (
            CLASSES.replace('"a"', r'"x\ny"') + STATION,
            r"one of the classes is called 'x\ny'; take ",
        ),
        (CLASSES + STATION.replace('"cpu"', '" "'), "one of the stations is called ' '; take"),
        (CLASSES.replace("3", "0") + STATION, "above 0; it has 0 customers and a rate of 0"),
        (CLASSES.replace("3", "1e308") + STATION + "servers = 2", "too many populations to solve"),
        (
            CLASSES + LARGE + LARGE.replace("cpu", "disk"),
            "its times are too small or too large to compute",
        ),
        (
            CLASSES
            + '[[classes]]\nname = "idle"\nrate_per_s = 1\n'
            + '[[stations]]\nname = "cpu"\na = {demand_s = 1}',
            "class 'idle': a round takes no time: all demands",
        ),
    ],
)
def test_a_file_that_describes_no_network_is_told_what_is_wrong(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "network.toml"
    path.write_text(text)
    with pytest.raises(ResultsError, match=re.escape(message)) as caught:
        network_file.solve(path)
    assert str(path) in str(caught.value)
