"""The contracts of imports in pyproject.toml notice what goes against them."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.api.processes import ran

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
COPIED = ("backend", "frontend", "loadtests", "tests")
ONLY_CODE = shutil.ignore_patterns("static", "templates", "examples", "data", "__pycache__")

# It is reported by the names of the siblings alone.
CIRCLE = {"frontend/coverage.py": "from frontend.questions import intervals"}
WRONG = {
    "backend/storage/layout.py": "from backend.index import queries",  # upwards
    "backend/mempool/syncs.py": "def late():\n    from backend.index import queries",  # sideways
    "backend/serving/lanes.py": "from backend.base import words",
    "backend/index/totals.py": "import flask",
    "backend/chain/block.py": "import os",
    "frontend/filters.py": "from backend.base import words",
    "loadtests/tables.py": "import frontend",
    "loadtests/models/laws.py": "import time",
    "loadtests/machine_samples.py": "from loadtests.servers import known",
    "frontend/field_labels.py": "from tests import flights",
}


def test_every_wrong_import_is_found(tmp_path: Path) -> None:
    for part in COPIED:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ONLY_CODE)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, line in (WRONG | CIRCLE).items():
        with (tmp_path / path).open("a", encoding="utf-8") as module:
            module.write(f"\n{line}\n")
    lint = Path(sys.executable).with_name("lint-imports")
    done = ran(lint, "--no-cache", "--verbose", cwd=tmp_path)
    assert done.returncode == 1
    broken = done.stdout.partition("Broken contracts")[2]
    modules = [path.removesuffix(".py").replace("/", ".") for path in WRONG]
    assert [name for name in modules if name.removesuffix(".__init__") not in broken] == []
    assert ".coverage" in broken
    assert " 0 kept" in done.stdout


def test_a_web_worker_loads_no_code_that_writes_blocks() -> None:
    script = "import sys, backend.service.web_server; print(*sys.modules)"
    done = ran(sys.executable, "-c", script)
    loaded = {name for name in done.stdout.split() if name.startswith("backend.")}
    assert {"backend.api", "backend.ledger", "backend.service"} <= loaded
    assert {name.split(".")[1] for name in loaded} & {"cli"} == set()
    writers = {"signing", "log_key", "miner", "block_builder", "importer", "audit", "scrub"}
    assert {name.rpartition(".")[2] for name in loaded} & {*writers, "block_writer"} == set()
