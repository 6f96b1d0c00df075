"""Packages are pinned by hash, base images by digest, and Pythons by README."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import pins
from tests.api.processes import ROOT, ran

PIN = re.compile(
    r"^([\w.-]+)==(\S+)((?: ;[^\\\n]*)?) \\\n((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)",
    re.MULTILINE,
)
IMAGE = re.compile(r"^(?:FROM | *image: )(\w+:\S+)", re.MULTILINE)
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}")


def pins_in(part: pins.Part) -> dict[str, str]:
    """Package -> version, of requirements.txt of a part."""
    text = (ROOT / part.target).read_text(encoding="utf-8")
    pinned = {name: version for name, version, _, _ in PIN.findall(text)}
    packages = re.findall(r"^[a-zA-Z]\S*", text, re.MULTILINE)
    assert len(packages) == len(pinned) > 0, "a package has no version or no hash"
    return pinned


def wanted_by(part: pins.Part) -> set[str]:
    """The packages that requirements.in of a part names."""
    text = (ROOT / part.target.with_suffix(".in")).read_text(encoding="utf-8")
    return {name.lower() for name in re.findall(r"^[a-zA-Z][\w.-]*", text, re.MULTILINE)}


@pytest.mark.parametrize("part", pins.PARTS, ids=lambda part: part.folder)
def test_what_a_part_names_is_pinned_with_hashes(part: pins.Part) -> None:
    assert wanted_by(part) <= set(pins_in(part))


@pytest.mark.parametrize("part", pins.PARTS, ids=lambda part: part.folder)
def test_only_wheels_are_taken_and_no_file_names_an_index(part: pins.Part) -> None:
    text = (ROOT / part.target).read_text(encoding="utf-8")
    assert "--only-binary=:all:" in text.splitlines()
    assert "://" not in text
    assert "index-url" not in text


def test_a_package_is_pinned_to_one_version_everywhere() -> None:
    pinned: dict[str, set[str]] = {}
    for part in pins.PARTS:
        for name, version in pins_in(part).items():
            pinned.setdefault(name, set()).add(version)
    assert len(pinned) > 50
    assert {name: versions for name, versions in pinned.items() if len(versions) > 1} == {}


def test_every_requirements_file_of_the_project_is_refreshed() -> None:
    existing = {path.relative_to(ROOT) for path in ROOT.glob("[!.]*/**/requirements.txt")}
    assert existing | {Path("requirements.txt")} == {part.target for part in pins.PARTS}


def test_every_base_image_is_named_by_its_digest() -> None:
    for name in ("Dockerfile", "scripts/deploy/compose.yaml"):
        images = IMAGE.findall((ROOT / name).read_text("utf-8"))
        assert images, f"{name} names no image"
        assert all(DIGEST.search(image) for image in images), images


def test_whatever_installs_packages_asks_for_their_hashes() -> None:
    for name in ("Dockerfile", "scripts/lib.sh"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
        installs = re.findall(r"pip .*\binstall\b.*", text)
        assert installs, f"{name} installs nothing"
        assert all("--require-hashes" in line for line in installs), installs


NEWEST = f"python{pins.PYTHONS[-1]}"


@pytest.mark.parametrize("name", ["README.md", "scripts/lib.sh", "scripts/deploy/install"])
def test_people_are_told_the_pythons_for_which_packages_are_pinned(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert f"Python {pins.PYTHONS[0]} to {pins.PYTHONS[-1]}" in text


@pytest.mark.long
def test_the_quick_tests_pass_with_the_newest_python(tmp_path: Path) -> None:
    if shutil.which(NEWEST) is None or ran(NEWEST, "--version").returncode:
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
