"""The lab's README and by-hand.md name what there is: experiments, commands, options, files."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from loadtests.__main__ import main
from loadtests.experiments import NAMES
from loadtests.generation.rows import COLUMNS

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[2] / "loadtests"
README, BY_HAND = (
    (HERE / name).read_text(encoding="utf-8") for name in ("README.md", "by-hand.md")
)

OF_LOCUST = {"--host", "--headless", "--master", "--worker", "--master-host", "--expect-workers"}
OF_LOCUST |= {"-u", "-r", "-t", "--processes", "--csv", "--html"}
SCENARIOS = ("open_workload", "closed_workload")
SHOW_OPTIONS = """
from importlib import import_module
from loadtests.generation import options
for name in {names}:
    scenario = import_module(f"loadtests.{{name}}")
    tables = (scenario.OPTIONS, getattr(scenario, "FILES", ()), options.COMMON, options.FILES)
    print(*(row[0] for table in tables for row in table))
"""


def named() -> set[str]:
    """The experiments of commands, and of the table's column “Here”."""
    in_commands = re.findall(r"scripts/lab run ([a-z][a-z-]*)", README)
    in_the_table = re.findall(r"^\| (?:00\d|–) \|.*?\|.*?\| `([a-z-]+)` \|", README, re.MULTILINE)
    assert in_the_table
    return {*in_commands, *in_the_table} - {"all", "selftest"}


def test_every_experiment_is_in_the_readme_and_the_readme_names_no_other() -> None:
    assert named() == set(NAMES)


def test_each_table_and_figure_of_the_studies_says_how_it_is_measured() -> None:
    rows = re.findall(r"^\| (00\d) \| (.+?) \| .+ \| (.+) \| (.+) \|$", README, re.MULTILINE)
    assert {study for study, *_ in rows} == {"000", "001", "002", "003", "004"}
    for study, item, here, how in rows:
        assert re.match(r"same protocol|shorter, because |waits for ", how), (study, item)
        assert (here == "–") == how.startswith("waits for "), (study, item)
    figures = {
        (study, int(number))
        for study, item, *_ in rows
        if item.startswith("figure")
        for number in re.findall(r"\d+", item)
    }
    counts = {"000": 11, "001": 5, "003": 2, "004": 1}  # as printed in the studies
    assert figures == {(study, n + 1) for study, count in counts.items() for n in range(count)}


def test_every_command_is_named() -> None:
    assert set(main.commands) == set(re.findall(r"^scripts/lab (\w+)", README, re.MULTILINE))


def test_the_page_of_the_lab_names_only_commands_that_exist() -> None:
    page = (HERE.parent / "frontend/templates/lab/lab.html").read_text(encoding="utf-8")
    named_there = set(re.findall(r"<code>scripts/lab (\w+)", page))
    assert {"list", "pi", "run"} <= named_there <= main.commands.keys()


def test_the_options_of_the_scenarios_are_those_that_exist() -> None:
    """Asked in a process of its own, because Locust changes the one that it is imported in."""
    printed = subprocess.run(
        [sys.executable, "-c", SHOW_OPTIONS.format(names=SCENARIOS)],
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    for name, own in zip(SCENARIOS, printed.stdout.splitlines(), strict=True):
        commands = re.findall(rf"locust -f loadtests/{name}\.py(?!,) ((?:.*\\\n)*.*)", BY_HAND)
        assert len(commands) >= 3
        for arguments in commands:
            named_here = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", arguments))
            assert named_here <= OF_LOCUST | set(own.split()), name


def test_the_columns_of_the_raw_rows_are_those_that_are_written() -> None:
    assert f"`{','.join(COLUMNS)}`" in BY_HAND


def test_every_file_that_is_linked_or_run_is_there() -> None:
    for path in re.findall(r"\]\(([^)#:]+)\)", README + BY_HAND):
        assert (HERE / path).exists(), path
    for path in re.findall(r"(?<![\w/.-])(?:loadtests|scripts)/[\w./]+\b", README + BY_HAND):
        assert path.startswith("loadtests/results") or (HERE.parent / path).exists(), path
