"""No name that a file, a request or a peer brings along leads out of the folder it belongs to."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.base.errors import FlightchainError, InvalidInput
from backend.base.file_names import bare_name, strange_entry
from backend.cluster.configuration import Host
from backend.cluster.local import LocalCluster
from backend.mempool import database, last_release, lost_files
from backend.storage import layout
from backend.trust.log import tiles
from backend.trust.log.notes import VerifierKey
from backend.trust.witness.witness import Memory
from frontend.lab import result_folders
from loadtests.lab.results import Results, ResultsError
from tests.cases import each_of
from tests.frontend.lab.folders import make_result

ANYTHING = re.compile(r".*", re.DOTALL)
HOSTILE = (
    "",
    ".",
    "..",
    "../out",
    "../../../../etc/passwd",
    "/etc/passwd",
    "./here",
    "folder/file",
    "folder\\file",
    "nul\0",
    "pending-0000000000000000.log\0",
    "pending-0000000000000000.log/",
    "pending-0000000000000000.log\n",
    "../pending-0000000000000000.log",
    "/tmp/lost-1-2.bin",
    "PENDING-0000000000000000.LOG",
    "pending-٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠.log",
    "lost-1-2.bin ",
    "Lost-1-2.bin",
    f"damaged-{'1' * 300}.bin",
    "a" * 300,
    "%2e%2e",
    "..%2f..",
    "~root",
    "-rf",
    "\ud800",
    "\u202egnp.exe",
)
names = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=300),
    st.lists(st.sampled_from(["..", ".", "/", "\\", "\0", "a", "lost-1-2.bin"])).map("".join),
)
FORMS = (database.COPY_FORM, last_release.NAME_FORM, lost_files.NAME_FORM)


@given(names)
def test_a_bare_name_names_one_file_of_its_folder(name: str) -> None:
    try:
        bare = bare_name(name, ANYTHING)
    except InvalidInput:
        return
    assert os.path.normpath(f"/folder/{bare}") == f"/folder/{bare}"
    assert len(os.fsencode(bare)) <= 255 if bare.isprintable() else True


@each_of("name", HOSTILE)
def test_no_hostile_name_has_the_form_of_a_file_of_the_mempool(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not the name of a file that belongs here"):
        bare_name(name, *FORMS)


@given(names)
def test_names_of_tiles_and_block_files_are_read_strictly(name: str) -> None:
    tile = tiles.parse(name)
    assert tile is None or tile.name == name
    first = layout.first_height_of(name)
    assert first is None or layout.block_file_name(first) == name


@given(names)
def test_a_witness_keeps_what_it_knows_of_any_log_in_its_own_folder(origin: str) -> None:
    folder = Path("/folder")
    memory = Memory(folder, VerifierKey("witness", bytes(32)))
    if origin.isprintable():
        path = memory.origin_file(origin)
        assert path.parent == folder
        assert re.fullmatch(r"[A-Za-z0-9-]{0,40}-[0-9a-f]{16}\.url", path.name)


@given(names)
def test_a_name_in_an_address_leads_to_no_result_but_those_of_the_lab(name: str) -> None:
    assert result_folders.find([Path("/"), Path("/etc")], name) is None


@each_of("name", HOSTILE)
def test_a_node_of_a_cluster_has_a_name_that_can_be_a_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        Host(name, "127.0.0.1", 1, 2)
    row = {"name": name, "host": "127.0.0.1", "peer_port": 1, "port": 2}
    (tmp_path / "hosts.json").write_text(json.dumps([row]))
    with pytest.raises(FlightchainError, match=r"hosts\.json is damaged"):
        LocalCluster(tmp_path).node(name)


@each_of("text", ["", "null", "1", "[1]", "{}x", '[{"name": 1}]', '[{"a": "b"}]'])
def test_the_nodes_of_a_cluster_are_read_with_care(text: str, tmp_path: Path) -> None:
    (tmp_path / "hosts.json").write_text(text)
    with pytest.raises(FlightchainError, match=r"hosts\.json is damaged .*put back a copy"):
        LocalCluster(tmp_path).node("node0")


@each_of("name", HOSTILE)
def test_a_table_of_results_names_files_of_its_folder_alone(name: str, tmp_path: Path) -> None:
    if name in {"PENDING-0000000000000000.LOG", "Lost-1-2.bin"}:
        assert Results(tmp_path).file(name) == tmp_path / name  # a file like any other
        return
    with pytest.raises(ResultsError):
        Results(tmp_path).file(name)


def secret_of(tmp_path: Path) -> Path:
    path = tmp_path / "secret.json"
    path.write_text('{"experiment": "secret", "findings": [], "metrics": []}')
    return path


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "report.html", "requests.csv"])
def test_a_result_shows_no_file_that_a_link_leads_to(name: str, tmp_path: Path) -> None:
    folder = make_result(tmp_path / "lab" / "run")
    (folder / name).unlink()
    (folder / name).symlink_to(secret_of(tmp_path))
    assert "secret" not in json.dumps([result.as_json() for result in _listed(tmp_path / "lab")])
    result = result_folders.find([tmp_path / "lab"], "run")
    assert (result is None) == (name == "manifest.json")
    if result is not None:
        assert result.file(name) is None
        assert name not in dict(result.files())
        assert result.has_report == (name != "report.html")
        assert bool(result.figures()) == (name != "report.html")


def test_a_result_that_is_a_pipe_keeps_no_page_waiting(tmp_path: Path) -> None:
    folder = make_result(tmp_path / "lab" / "run")
    (folder / "summary.json").unlink()
    os.mkfifo(folder / "summary.json")
    (result,) = _listed(tmp_path / "lab")
    assert result.problem == "summary.json is not a regular file"


def _listed(folder: Path) -> list[result_folders.Result]:
    results, _ = result_folders.listing([folder])
    return results


def as_link(path: Path) -> None:
    path.symlink_to("/etc")


@pytest.mark.parametrize("make", [as_link, os.mkfifo], ids=["link", "pipe"])
def test_an_entry_that_is_no_file_is_seen_wherever_it_is(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "one" / "two").mkdir(parents=True)
    (tmp_path / "one" / "file").touch()
    assert strange_entry(tmp_path) is None
    assert strange_entry(tmp_path / "missing") is None
    make(tmp_path / "one" / "two" / "strange")
    assert strange_entry(tmp_path) == tmp_path / "one" / "two" / "strange"
    assert strange_entry(tmp_path / "one" / "two" / "strange") is not None
