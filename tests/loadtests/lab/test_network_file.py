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


def test_whole_numbers_may_be_written_with_a_point_after_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    path.write_text(CLASSES.replace("3", "2.0") + STATION, encoding="utf-8-sig")
    (group,) = network_file.read(path).classes
    assert repr(group.customers) == "2"


@pytest.mark.parametrize("value", ["NaN", "1e400", '"\\ud800"'])
def test_json_without_a_meaning_is_refused(tmp_path: Path, value: str) -> None:
    path = tmp_path / "network.json"
    path.write_text(f'{{"classes": [{{"name": {value}}}]}}')
    with pytest.raises(ResultsError, match=r"cannot be read as JSON"):
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
        (CLASSES + STATION + "servers = 10001", "servers must be at most 10000, is 10001"),
        (
            CLASSES + STATION.replace("2.0", "1e-320"),
            "class 'a': its times are too small or too la",
        ),
        (
            CLASSES + "think_time_s = 1e308\n" + STATION.replace("2.0", "1e308"),
            "too small or too la",
        ),
        (CLASSES + STATION + "servers = 0", "servers must be a whole number of at least 1, is 0"),
        (CLASSES + STATION + "servers = 1.5", "it must be a whole number, is a number - at"),
        (CLASSES + STATION + "servers = 2\nrates = [1]", "a queue has one of them, a delay none"),
        (
            CLASSES + STATION + 'kind = "stack"',
            "station 'cpu': Invalid enum value 'stack' - at `$.kind`",
        ),
        (CLASSES + STATION + STATION, "two stations are called 'cpu'; names must differ"),
        (
            CLASSES + STATION.replace("2.0", '"x"'),
            "'a' at station 'cpu': it must be a number, is text - at `$.service_time_s`",
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
        (CLASSES + STATION + "rates = 2", "station 'cpu': it must be a list, is a whole number"),
        (CLASSES.replace("3", "true") + STATION, "it must be a number, is true or false"),
        (CLASSES + STATION + "rates = []", "number of rates of station 'cpu' must be"),
        (
            CLASSES.replace("customers = 3", "rate_per_s = 0.1\nthink_time_s = 1") + STATION,
            "class 'a' is open and has no think_time_s; leave it out",
        ),
        (CLASSES + "rate_per_s = nan\n" + STATION, "must be 0 or a positive number, is nan"),
        (
            CLASSES + "think_s = 1\n" + STATION,
            "class 'a': the table contains unknown field `think_s`; it may have " + OF_CLASS,
        ),
        (
            CLASSES.replace('name = "a"', "") + STATION,
            "class '': the table lacks the required field `name`; it may have " + OF_CLASS,
        ),
        (CLASSES.replace('"a"', '""') + STATION, "class '': it must be text of length >= 1"),
        (CLASSES + STATION.replace('"cpu"', '""'), "station '': it must be text of length >= 1"),
        (CLASSES.replace("customers = 3", "rate_per_s = 0.6") + STATION, "no steady state"),
        (
            CLASSES.replace("customers = 3", "rate_per_s = 0.499975") + STATION,
            "bring 0.99995 s of work a second to station 'cpu', which can do 1: more than 0.9999",
        ),
        (CLASSES.replace('"a"', '"visits"') + STATION, "is a field of a station; rename it"),
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
