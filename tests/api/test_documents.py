"""The documents say what is so: generated parts are current, links lead somewhere, commands run."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from backend.base.settings import Settings
from loadtests.bench.benchmark import ROWS
from loadtests.bench.measurements import read
from loadtests.bench.session import QUICK
from loadtests.chains import generated
from tests import reference
from tests.api.processes import ROOT, Service, environment, serving
from tests.api.worlds import copy_chain

PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
MOST_README_BYTES = 8 * 1024

COMMAND = re.compile(r"(\S+=\S+ )*(curl|\S*python3?|sudo|docker|go|scripts/\S+|scp) ")
NOT_RUN = {
    "git clone": "brings the code; scripts/run and scripts/test are run by tests/test_scripts.py",
    "scripts/": "run by tests/test_scripts.py and tests/cluster",
    "sudo": "needs root; the installer is run by tests/test_deploy.py",
    "docker": "needs a container engine",
    "go run": "run by tests/trust/log/test_serving.py",
    "scp": "needs other machines",
    "rm -r ~/node0": "needs other machines",
    "timedatectl": "needs systemd",
    "curl -s http://127.0.0.1:8000/health/ready": "stands among commands for other machines",
    "0 * * * *": "a line for cron",
    ".venv/bin/python -m backend witness": "run by tests/witness",
    ".venv/bin/python -m backend cosign": "run by tests/witness",
    "FLIGHTCHAIN_WITNESSES": "run by tests/witness",
    "FLIGHTCHAIN_DATA": "needs a container engine",
    "python3 scripts/verify.py proof.json --key log.vkey --witness": "run by tests/witness",
    "FLIGHTCHAIN_BACKEND_URL": "run by tests/cluster/test_pages.py",
}
"""How a command begins that stands in a block which is not run, and why."""


def name_of(path: Path) -> str:
    """How a test of a page is called."""
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", sorted(reference.FOLDER.rglob("*.md")), ids=name_of)
def test_what_is_generated_is_as_the_code_says(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert reference.with_parts(text) == text, "run python -m tests.reference"


def test_every_part_is_shown_somewhere() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in reference.FOLDER.rglob("*.md"))
    assert set(re.findall(r"<!-- generated: (\w+) -->", text)) == reference.PARTS.keys()


def test_every_row_of_the_benchmark_is_in_a_table() -> None:
    numbers = [number for rows in reference.MEASURED.values() for number in rows]
    assert sorted(numbers) == sorted(ROWS)


def test_what_is_shown_was_measured_on_real_data() -> None:
    rows = read(reference.MEASUREMENTS)
    assert rows
    assert not [row for row in rows if not (row.machine and row.date and row.commit)]
    assert not [row for row in rows if row.flights == generated(QUICK.flights).label]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= MOST_README_BYTES


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_file_that_is_linked_or_shown_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for target, _, anchor in re.findall(r"\]\(([^)#:\s]*)(#([^)\s]+))?\)", text):
        file = (path.parent / target).resolve() if target else path
        assert file.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            names = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in names, f"{target}#{anchor}"


# --- commands ------------------------------------------------------------------------------------


def blocks_of(path: Path, language: str) -> list[str]:
    """The blocks of a page that are in a language; "" if they name none."""
    fenced = path.read_text(encoding="utf-8").split("\n```")
    blocks = [block.partition("\n") for block in fenced[1::2]]
    return [text for named, _, text in blocks if named.strip() == language]


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_command_that_is_not_run_is_run_elsewhere_or_cannot_be(path: Path) -> None:
    if path.parent.name == "reference" or path.name == "performance.md":
        pytest.skip("what stands there are answers and usages")
    for block in blocks_of(path, ""):
        for line in block.replace("\\\n", " ").splitlines():
            is_command = COMMAND.match(line)
            if is_command and path.parent != ROOT:
                assert line.startswith(tuple(NOT_RUN)), line


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder in which commands find the project as in a clone."""
    folder = tmp_path / "flightchain"
    folder.mkdir()
    for name in ("backend", "frontend", "loadtests", "scripts", "requirements.txt"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder


@pytest.fixture
def ledger(default_chain: Settings, tmp_path: Path) -> Iterator[Service]:
    """A service over the flights that scripts/run imports."""
    copy_chain(default_chain.folder, tmp_path / "chain")
    with serving(tmp_path / "chain") as service:
        yield service


RUNS = ["README.md", "docs/tutorial.md"] + [
    f"docs/how-to/{name}.md" for name in ("add", "prove", "backup", "witness")
]


@pytest.mark.parametrize("name", RUNS)
def test_the_commands_of_a_page_do_what_it_says(ledger: Service, clone: Path, name: str) -> None:
    blocks = blocks_of(ROOT / name, "sh")
    if name == "README.md":
        blocks = [block for block in blocks_of(ROOT / name, "") if block.startswith("curl")]
    assert blocks
    make_files_to_import(ledger, clone)
    script = "\n".join(["set -e", *blocks]).replace("127.0.0.1:8000", f"127.0.0.1:{ledger.port}")
    for folder in ("/mnt/usb", "/srv"):
        script = script.replace(folder, str(clone.parent / folder.strip("/")))
        (clone.parent / folder.strip("/")).mkdir(parents=True)
    with_curl = f'curl() {{ command curl --silent --show-error --fail "$@"; }}\n{script}'
    done = subprocess.run(
        ["bash", "-c", with_curl],
        cwd=clone,
        env=environment(ledger.folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    if name.endswith(("tutorial.md", "prove.md")):
        assert "VERIFIED" in done.stdout


def make_files_to_import(ledger: Service, clone: Path) -> None:
    """Make the files that docs/how-to/add.md imports: an export, and a month of BTS as a zip."""
    days = "INITIAL_DATE=2013-01-01&FINAL_DATE=2013-01-01"
    for form, name in (("ndjson", "flights.ndjson"), ("csv", "month.csv")):
        answer = requests.get(f"{ledger.url}/flights?{days}&format={form}", timeout=30)
        (clone / name).write_bytes(answer.content)
    with zipfile.ZipFile(clone / "ON_TIME_2024_1.zip", "w") as archive:
        archive.write(clone / "month.csv", "On_Time_Reporting_2024_1.csv")
