"""A backup that somebody made to do harm is refused before anything is written or removed."""

import json
import os
import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backend.base.errors import BackupRefused, FlightchainError
from backend.verify.backup.manifest import MOST_BYTES, Manifest
from tests.effort import examples
from tests.folders import all_below, unchanged
from tests.test_file_names import HOSTILE
from tests.verify.backup.house import House

pytestmark = pytest.mark.slow

STOLEN = b"nobody else may read this"
STRANGE = "is neither a regular file nor a folder"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(HOSTILE) | st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)


def change_manifest(house: House, **members: Any) -> None:
    path = house.backup / "backup.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **members}))


def refused(house: House, match: str) -> None:
    """Refuse to restore the backup, and change nothing anywhere."""
    with unchanged(house.root), pytest.raises(BackupRefused, match=match):
        house.restore()
    assert not house.restored.exists()


@pytest.mark.parametrize("kind", ["mempool", "aside"])
def test_a_name_that_is_no_file_of_a_mempool_is_refused(house: House, kind: str) -> None:
    known = {"mempool": house.manifest().mempool, "aside": {}}[kind]
    for name in HOSTILE:
        outside = house.backup / "mempool" / name
        if "\0" not in name and len(name) < 250 and name.isprintable():
            outside.parent.mkdir(parents=True, exist_ok=True)
            if not outside.exists():
                outside.write_bytes(STOLEN)
        change_manifest(house, **{kind: {**known, name: len(STOLEN)}})
        refused(house, r"backup\.json is damaged")


def test_a_size_that_is_no_number_of_bytes_is_refused(house: House) -> None:
    name = next(iter(house.manifest().mempool))
    for size in (-1, 1.5, "7", None, 2**80):
        change_manifest(house, mempool={name: size})
        refused(house, r"backup\.json is damaged")


NO_MANIFESTS = (b"", b"null", b"[]", b"[" * 10**5, b'{"x":' * 10**5, b"\xff{}", b"{}" + b" " * 10)


def test_a_manifest_that_is_none_or_endless_is_refused(house: House) -> None:
    endless = b" " * MOST_BYTES + (house.backup / "backup.json").read_bytes()
    for text in (*NO_MANIFESTS, endless):
        (house.backup / "backup.json").write_bytes(text)
        refused(house, r"backup\.json is damaged")


PARTS = """backup.json tokens.json blocks blocks/heights.dat blocks/blocks-0000000000.dat
    mempool mempool/keys.sqlite mempool/lost-1-2.bin mempool/deep log.successions""".split()  # noqa: SIM905


@pytest.mark.parametrize("part", PARTS)
def test_a_link_in_a_backup_is_followed_neither_by_a_restore_nor_by_a_backup(
    house: House, part: str
) -> None:
    path, elsewhere = house.backup / part, house.root / "elsewhere"
    if path.exists():
        path.rename(elsewhere)
    else:
        elsewhere.write_bytes(STOLEN)
        change_manifest(house, aside={"lost-1-2.bin": len(STOLEN)})
    path.symlink_to(elsewhere)
    refused(house, STRANGE)
    with unchanged(house.root), pytest.raises(BackupRefused, match=STRANGE):
        house.back_up()


@pytest.mark.parametrize(
    "part", ["backup.json", "blocks/heights.dat", "tokens.json", "log.successions"]
)
def test_a_pipe_in_a_backup_keeps_nobody_waiting(house: House, part: str) -> None:
    (house.backup / part).unlink(missing_ok=True)
    os.mkfifo(house.backup / part)
    refused(house, STRANGE)


def test_a_file_of_somebody_in_the_mempools_folder_is_in_no_backup(house: House) -> None:
    (house.folder / "mempool" / "holiday.bin").write_bytes(STOLEN)
    (house.folder / "mempool" / "lost-1-2.bin").write_bytes(STOLEN)
    house.back_up()
    assert house.manifest().aside == {"lost-1-2.bin": len(STOLEN)}
    house.restore()


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    field=st.sampled_from(Manifest.__struct_fields__),
    value=JSON,
)
def test_whatever_a_manifest_says_a_restore_stays_in_its_folder(
    original: House, house: House, field: str, value: object
) -> None:
    shutil.copy(original.backup / "backup.json", house.backup)
    change_manifest(house, **{field: value})
    shutil.rmtree(house.restored, ignore_errors=True)
    before = all_below(house.root)
    try:
        house.restore()
    except FlightchainError as error:
        assert "backup" in str(error) or "bytes free" in str(error)
    after = all_below(house.root)
    assert {n: d for n, d in after.items() if not n.startswith("restored")} == before
