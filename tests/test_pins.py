"""Packages are pinned by hash, base images by digest, and a command refreshes both."""

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pins
from tests.api.processes import ran
from tests.http_servers import Handler, served_by

ROOT = Path(__file__).parent.parent
PIN = re.compile(
    r"^([\w.-]+)==(\S+)((?: ;[^\\\n]*)?) \\\n((?:    --hash=sha256:[0-9a-f]{64}.*\n)+)",
    re.MULTILINE,
)
DIGEST = re.compile(r"@sha256:[0-9a-f]{64}")


def pins_in(part: pins.Part) -> dict[str, str]:
    """Package -> version, of requirements.txt of a part."""
    text = (ROOT / part.target).read_text(encoding="utf-8")
    found = {name: version for name, version, _, _ in PIN.findall(text)}
    packages = re.findall(r"^[a-zA-Z]\S*", text, re.MULTILINE)
    assert len(packages) == len(found) > 0, "a package has no version or no hash"
    return found


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
    found: dict[str, set[str]] = {}
    for part in pins.PARTS:
        for name, version in pins_in(part).items():
            found.setdefault(name, set()).add(version)
    assert len(found) > 50
    assert {name: versions for name, versions in found.items() if len(versions) > 1} == {}


def test_every_requirements_file_of_the_project_is_refreshed() -> None:
    there = {path.relative_to(ROOT) for path in ROOT.glob("[!.]*/**/requirements.txt")}
    assert there | {Path("requirements.txt")} == {part.target for part in pins.PARTS}


# --- images ----------------------------------------------------------------------------------


def index_of(*architectures: str) -> bytes:
    """What a registry has for an image that was built for these."""
    manifests = [{"platform": {"os": "linux", "architecture": each}} for each in architectures]
    return json.dumps({"manifests": manifests}).encode()


@contextmanager
def registry(images: dict[str, bytes]) -> Iterator[str]:
    """The address of a registry that has these: path of a manifest -> its bytes."""

    class Answering(Handler):
        def do_GET(self) -> None:
            body = images.get(self.path)
            asked = self.headers["Accept"] == ", ".join(pins.INDEX_TYPES)
            self.send_response(200 if body is not None and asked else 404)
            self.end_headers()
            self.wfile.write(body or b"")

    with served_by(Answering) as url:
        yield url


def test_every_base_image_is_named_by_its_digest() -> None:
    for name in pins.IMAGE_FILES:
        images = [found[0] for found in pins.IMAGE.finditer((ROOT / name).read_text("utf-8"))]
        assert images, f"{name} names no image"
        assert all(DIGEST.search(image) for image in images), images


def test_images_get_the_digest_of_the_index_of_all_platforms() -> None:
    index = index_of("amd64", "arm64", "s390x")
    digest = hashlib.sha256(index).hexdigest()
    old = "0" * 64
    with registry({"/v2/library/python/manifests/3.13-slim": index}) as url:
        for before in (
            "FROM python:3.13-slim AS build\n",
            f"FROM python:3.13-slim@sha256:{old} AS build\n",
        ):
            after = pins.pinned(f"# from python:3.13-slim\n{before}", url)
            assert (
                after
                == f"# from python:3.13-slim\nFROM python:3.13-slim@sha256:{digest} AS build\n"
            )


def test_an_image_that_is_missing_for_a_platform_is_refused() -> None:
    path = "/v2/library/nginx/manifests/1.28-alpine"
    with (
        registry({path: index_of("amd64")}) as url,
        pytest.raises(pins.PinError, match=r"nginx:1\.28-alpine has no image for arm64"),
    ):
        pins.pinned("    image: nginx:1.28-alpine\n", url)


def test_a_registry_that_cannot_be_asked_leaves_the_files_as_they_are() -> None:
    before = [(ROOT / name).read_bytes() for name in pins.IMAGE_FILES]
    done = ran(
        sys.executable, ROOT / "scripts/pins.py", "--images", "--registry", "http://127.0.0.1:9"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert [(ROOT / name).read_bytes() for name in pins.IMAGE_FILES] == before


def test_whatever_installs_packages_asks_for_their_hashes() -> None:
    for name in ("Dockerfile", "scripts/lib.sh"):
        text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
        installs = re.findall(r"pip .*\binstall\b.*", text)
        assert installs, f"{name} installs nothing"
        assert all("--require-hashes" in line for line in installs), installs
