"""README names the Pythons that it runs with, and the quick tests pass with the newest, too."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import pins
from tests.api.processes import ROOT

NEWEST = f"python{pins.PYTHONS[-1]}"


def test_readme_names_the_pythons_for_which_packages_are_pinned() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {pins.PYTHONS[0]} to {pins.PYTHONS[-1]}" in readme


@pytest.mark.long
def test_the_quick_tests_pass_with_the_newest_python(tmp_path: Path) -> None:
    if shutil.which(NEWEST) is None:
        pytest.skip(f"there is no {NEWEST}")
    settings = {"PYTHON": NEWEST, "VENV": str(tmp_path / "venv")}
    done = subprocess.run(
        [str(ROOT / "scripts/test"), "--quick"],
        env=os.environ | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
