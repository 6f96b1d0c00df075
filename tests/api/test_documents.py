"""The documents say what is so: generated parts are current, links lead somewhere, commands run."""

import ast
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from backend.cli.commands import main as command_line
from loadtests.bench.benchmark import ROWS
from loadtests.bench.measurements import read
from loadtests.bench.session import QUICK
from loadtests.chains import generated
from tests import reference
from tests.api.processes import ROOT, Service, environment, free_port, ran, serving
from tests.api.worlds import copy_chain
from tests.cases import each_of
from tests.settings_table import table

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "scripts" / "deploy" / "README.md",
]
MOST_README_BYTES = 8 * 1024
NOT_IN_A_CLONE = {"loadtests/results"}  # which the lab makes

NOT_RUN_HERE = {
    "git clone": "tests/test_scripts.py",
    "scripts/run": "tests/test_scripts.py",
    "scripts/test": "tests/test_scripts.py",
    "scripts/bench": "tests/loadtests/bench/test_benchmark.py",
    ".venv/bin/python -m tests.reference": "tests/api/test_documents.py",
    "scripts/cluster": "tests/cluster/test_faults.py",
    "scripts/cluster configure": "tests/cluster/test_configure.py",
    "scripts/cluster log-key": "tests/cluster/test_log_key.py",
    "FLIGHTCHAIN_BACKEND_URL": "tests/browser/test_cluster.py",
    ".venv/bin/python -m backend import flights.zip": "docs/how-to/add.md",
    ".venv/bin/python -m backend import bts:": "tests/test_month_import.py",
    "sudo scripts/deploy/install": "tests/test_deploy.py",
    "sudo flightchain": "tests/faults/installed.py",
    "sudo systemctl": "tests/faults/installed.py",
    "go run": "tests/trust/log/test_serving.py",
    ".venv/bin/python -m backend witness": "tests/api/test_documents.py",
    "export FLIGHTCHAIN_WITNESSES": "tests/api/test_documents.py",
    ".venv/bin/python -m backend cosign": "tests/api/test_documents.py",
    "python3 scripts/verify.py proof.json": "tests/api/test_documents.py",
}
"""How a command of a page begins, and the test or page that runs it."""

CANNOT_BE_RUN = {
    "sudo apt": "installs Debian's packages",
    "sudo install": "makes a folder of another user",
    "sudo chown": "gives a folder to another user",
    "sudo ufw": "changes the firewall",
    "docker": "needs a container engine",
    "FLIGHTCHAIN_DATA=nycflights docker": "needs a container engine",
    "scp": "needs other machines",
    "rm -r ~/node0": "needs other machines",
    "timedatectl": "needs systemd",
    "curl -s http://127.0.0.1:8000/health/ready": "stands among commands for other machines",
    "0 * * * *": "is a line for cron",
    "0 5 * * 1": "is a line for cron",
}
"""How a command of a page begins that no test can run, and why."""


@each_of("path", sorted(reference.FOLDER.rglob("*.md")))
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


@each_of("path", PAGES)
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


def commands_not_run_here() -> Iterator[str]:
    """The lines of blocks without a language, but for the transcripts and usages of a reference."""
    for path in PAGES:
        if path.parent.name != "reference":
            for block in blocks_of(path, ""):
                lines = block.replace("\\\n", " ").splitlines()
                yield from (line for line in lines if not is_run_of_readme(line))


def is_run_of_readme(line: str) -> bool:
    """Whether a line is one of README's questions, which are run although their block is plain."""
    return line.startswith("curl 'http://")


def test_every_command_is_run_somewhere_or_cannot_be() -> None:
    beginnings = {**NOT_RUN_HERE, **CANNOT_BE_RUN}
    needed = set()
    for line in commands_not_run_here():
        matches = [beginning for beginning in beginnings if line.startswith(beginning)]
        assert matches, f"{line}: no test runs it"
        needed.add(max(matches, key=len))
    assert needed == beginnings.keys()


def test_whatever_runs_a_command_is_there() -> None:
    assert [name for name in NOT_RUN_HERE.values() if not (ROOT / name).is_file()] == []


@each_of("path", PAGES)
def test_every_file_that_is_named_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = {
        *re.findall(r"`((?:backend|frontend|loadtests|tests|docs)/[\w./]+)[` ]", text),
        *re.findall(r"(?<![\w/.])scripts/[\w/]+(?:\.\w+)*", text),
    }
    missing = {name for name in names if not (ROOT / name).exists()}
    assert missing - NOT_IN_A_CLONE == set()
    if path.name in {"CONTRIBUTING.md", "house.md"}:
        assert len(names) > 10


def test_the_house_has_the_floors_that_imports_keep_to() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each.get("containers") == ["backend"]]
    floors = [name for layer in layers for name in layer.split(" | ")]
    house = (ROOT / "docs" / "explanation" / "house.md").read_text(encoding="utf-8")
    assert re.findall(r"^  (\w+)/ ", house, re.MULTILINE) == floors


@each_of("package", sorted((ROOT / "backend").glob("*/__init__.py")))
def test_the_docstring_of_a_package_names_its_modules(package: Path) -> None:
    docstring = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
    modules = {path.stem for path in package.parent.glob("*.py")} - {"__init__"}
    assert modules - set(re.findall(r"\w+", docstring)) == set()


def test_commands_and_settings_that_are_named_are_there() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    commands = set(re.findall(r"(?:python -m backend|sudo flightchain) ([a-z][a-z-]*)", text))
    assert commands - command_line.commands.keys() == set()
    assert len(commands) > 12
    cluster: Any = command_line.commands["cluster"]
    assert set(re.findall(r"scripts/cluster ([a-z-]+)", text)) == cluster.commands.keys()
    variables = set(re.findall(r"\bFLIGHTCHAIN_[A-Z_]*[A-Z]\b", text))
    assert variables - {name for name, *_ in table()} == set()


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


@pytest.fixture(scope="module")
def ledger(default_import: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service over the flights that scripts/run imports, to which some pages add others."""
    folder = tmp_path_factory.mktemp("default") / "chain"
    copy_chain(default_import, folder)
    with serving(folder) as service:
        yield service


VARIES = r"""…|(?<="timestamp":)\d+|(?<="tip_hash":")[\da-f]+"""


@pytest.mark.slow
def test_the_answers_that_are_shown_are_those_that_come(ledger: Service) -> None:
    """Compared up to what differs from ledger to ledger, or is cut, and before a page adds."""
    transcripts = "".join(blocks_of(ROOT / "docs" / "reference" / "rest.md", "")).split("$ curl ")
    assert len(transcripts) > 4
    for transcript in transcripts[1:]:
        address, _, shown = transcript.partition("\n")
        url = address.strip("'").replace("127.0.0.1:8000", f"127.0.0.1:{ledger.port}")
        answer = requests.get(url, timeout=30).text
        for part in re.split(VARIES, shown.replace("\n", "").strip()):
            assert part in answer, part


DEFAULT_DATA = ["README.md", "docs/how-to/add.md", "docs/how-to/prove.md"]
ANY_LEDGER = ["docs/tutorial.md", "docs/how-to/backup.md", "docs/how-to/witness.md"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DEFAULT_DATA, *ANY_LEDGER])
def test_the_commands_of_a_page_do_what_it_says(
    request: pytest.FixtureRequest, clone: Path, name: str
) -> None:
    ledger: Service = request.getfixturevalue("ledger" if name in DEFAULT_DATA else "service")
    blocks = blocks_of(ROOT / name, "sh")
    if name == "README.md":
        blocks = [block for block in blocks_of(ROOT / name, "") if block.startswith("curl")]
    assert blocks
    if name.endswith("add.md"):
        make_files_to_import(ledger, clone)
    folders = {folder: str(clone.parent / folder.strip("/")) for folder in ("/mnt/usb", "/srv")}
    for folder in folders.values():
        Path(folder).mkdir(parents=True)
    printed = printed_by(blocks, ledger, clone, folders)
    if name.endswith(("tutorial.md", "prove.md")):
        assert "VERIFIED" in printed


def printed_by(
    commands: Iterable[str], ledger: Service, clone: Path, others: Mapping[str, str]
) -> str:
    """Returns what the commands print in the folder of a clone, one after the other.

    others: stand in the place of addresses and folders of the page, as do those of the service.
    """
    script = "\n".join(commands)
    for shown, real in {"127.0.0.1:8000": f"127.0.0.1:{ledger.port}", **others}.items():
        script = script.replace(shown, real)
    with_curl = f'curl() {{ command curl --silent --show-error --fail "$@"; }}\nset -e\n{script}'
    done = ran("bash", "-c", with_curl, cwd=clone, env=environment(ledger.folder), timeout_s=600)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.slow
def test_a_witness_is_set_up_by_the_commands_of_its_page(service: Service, clone: Path) -> None:
    blocks = "\n".join(blocks_of(ROOT / "docs" / "how-to" / "witness.md", ""))
    (asks, listens), (names,), (cosigns,), (verifies,) = (
        [line for line in blocks.splitlines() if line.startswith(beginning)]
        for beginning in (
            ".venv/bin/python -m backend witness",
            "export FLIGHTCHAIN_WITNESSES",
            ".venv/bin/python -m backend cosign",
            "python3 scripts/verify.py",
        )
    )
    witness, folder = f"127.0.0.1:{free_port()}", clone.parent / "witness"
    others = {
        "~/witness": str(folder),
        "http://pi:8000": service.url,
        "0.0.0.0:8100": witness,
        "second-pi:8100": witness,
        "'example.org/second-pi+c2f3…+BG…": f'"$(cat {folder}/witness.vkey)"\'',
        "example.org/second-pi+c2f3…+BG…": f'"$(cat {folder}/witness.vkey)"',
    }
    printed = printed_by(
        [
            f"curl {service.url}/log/key > log.vkey",
            asks.partition("#")[0],
            f"{listens.partition('#')[0]} & trap 'kill $!' EXIT",
            f"until curl http://{witness}/key 2> /dev/null; do kill -0 $!; sleep 0.1; done",
            names,
            cosigns,
            f"curl {service.url}/transactions/700/proof > proof.json",
            verifies,
        ],
        service,
        clone,
        others,
    )
    assert "VERIFIED" in printed
    assert "example.org/second-pi" in printed


def make_files_to_import(ledger: Service, clone: Path) -> None:
    """Make the files that docs/how-to/add.md imports: an export, and a month of BTS as a zip."""
    days = "INITIAL_DATE=2013-01-01&FINAL_DATE=2013-01-01"
    for form, name in (("ndjson", "flights.ndjson"), ("csv", "month.csv")):
        answer = requests.get(f"{ledger.url}/flights?{days}&format={form}", timeout=30)
        (clone / name).write_bytes(answer.content)
    with zipfile.ZipFile(clone / "flights.zip", "w") as archive:
        archive.write(clone / "month.csv", "On_Time_Reporting_2024_1.csv")
