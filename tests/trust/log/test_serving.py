"""The log over HTTP, as auditors ask for it; and an auditor that another project wrote."""

import shutil
import subprocess
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from backend.chain import merkle
from backend.trust.log import checkpoints, notes
from tests.api.worlds import World, client_of, problem, seal, settings_for
from tests.flights import flights
from tests.go_programs import installed, ran
from tests.http_servers import served_in_a_thread

pytestmark = pytest.mark.slow

FSCK = "github.com/transparency-dev/tessera/cmd/fsck@v1.0.4"


def test_the_checkpoint_names_the_tree_of_all_blocks(client: FlaskClient, world: World) -> None:
    response = client.get("/log/checkpoint")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-cache"
    checkpoint = checkpoints.parse(notes.parse(response.data).text)
    assert checkpoint.origin == notes.parse_key(client.get("/log/key").text).name
    entries = [bytes.fromhex(text) for text in world.hashes]
    assert checkpoint.size == len(entries)
    assert checkpoint.root == merkle.root(merkle.leaf_hashes(entries))


def test_tiles_are_there_up_to_the_end_of_the_log(client: FlaskClient, world: World) -> None:
    size = len(world.hashes)
    response = client.get(f"/log/tile/entries/000.p/{size}")
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Cache-Control"] == "public, max-age=600"
    entries = [b"\x00\x20" + bytes.fromhex(text) for text in world.hashes]  # with their lengths
    assert response.data == b"".join(entries)
    for name in (f"0/000.p/{size + 1}", "0/000", "1/000.p/1", "0/001.p/1", "nonsense", "0/000.p/0"):
        assert client.get(f"/log/tile/{name}").status_code == 404, name


def test_a_full_tile_may_be_kept_for_good(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    seal(settings, [[]] * 256)
    with client_of(settings) as client:
        full = client.get("/log/tile/0/000")
        assert full.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert len(full.data) == 256 * 32
        partial = client.get("/log/tile/0/001.p/1")
        assert partial.headers["Cache-Control"] == "public, max-age=600"


def test_before_anything_is_signed_there_is_no_checkpoint(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    shutil.copytree(world.settings.folder, folder, symlinks=True)
    for name in ("checkpoint", "log.vkey"):
        (folder / name).unlink()
    with client_of(settings_for(folder)) as client:
        for path in ("/log/checkpoint", "/log/key"):
            detail = problem(client.get(path), 404)["detail"]
            assert "the miner creates it when it starts" in detail


# --- tessera's fsck ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fsck() -> str:
    return installed(FSCK)


def checked(fsck: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run fsck on the log of a chain, with its key."""
    with client_of(settings_for(folder)) as client, served_in_a_thread(client.application) as url:
        key = folder / "log.vkey"
        return ran([fsck, "--ui=false", f"--storage_url={url}/log/", f"--public_key={key}"])


def test_tessera_finds_our_log_sound(world: World, fsck: str) -> None:
    done = checked(fsck, world.settings.folder)
    assert done.returncode == 0, done.stderr
    assert f"Successfully fsck'd log with size {len(world.hashes)}" in done.stderr


def test_tessera_finds_out_that_other_blocks_were_signed(
    world: World, fsck: str, tmp_path: Path
) -> None:
    """Two chains with the same blocks but for the newest, and one of them signs for the other."""
    one, other = (tmp_path / name for name in ("one", "other"))
    for serial, folder in enumerate((one, other)):
        shutil.copytree(world.settings.folder, folder, symlinks=True)
        seal(settings_for(folder), [flights(1, serial)])
    assert "Successfully" in checked(fsck, one).stderr
    shutil.copy(other / "checkpoint", one / "checkpoint")
    output = checked(fsck, one).stderr  # its status is 0 all the same
    assert "but checkpoint claims" in output
    assert "Successfully" not in output
