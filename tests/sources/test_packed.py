import gzip
import io
import lzma
import random
import zipfile
from pathlib import Path

import pytest

from backend.base.errors import InvalidInput
from backend.sources.packed import PackedFile
from tests.sources.samples import PACKINGS, written, zipped

NOISE = random.Random(1).randbytes(300_000)


def content_of(path: Path) -> bytes:
    with PackedFile(path).opened() as read:
        return b"".join(iter(lambda: read(10_000), b""))


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_packing_is_told_by_content_not_by_name(tmp_path: Path, packing: str) -> None:
    path = written(tmp_path, PACKINGS[packing](NOISE), "data.txt")
    assert content_of(path) == NOISE


@pytest.mark.parametrize("packing", PACKINGS)
def test_progress_counts_packed_bytes_and_ends_at_one(tmp_path: Path, packing: str) -> None:
    file = PackedFile(written(tmp_path, PACKINGS[packing](NOISE)))
    for _ in range(2):
        seen = [file.progress()]
        with file.opened() as read:
            while read(100_000):
                seen.append(file.progress())
        assert seen[1:] == sorted(seen[1:])
        assert 0.2 < seen[1] < 0.8
        assert file.progress() == 1.0


def test_progress_of_an_abandoned_reading_stays_where_it_was(tmp_path: Path) -> None:
    file = PackedFile(written(tmp_path, NOISE))
    with file.opened() as read:
        read(30_000)
    assert 0.05 < file.progress() < 0.5


@pytest.mark.parametrize("packing", ["gzip", "xz", "zip"])
def test_cut_short_is_invalid_input(tmp_path: Path, packing: str) -> None:
    packed = PACKINGS[packing](NOISE)
    for length in (7, 40, len(packed) // 2, len(packed) - 5):
        with pytest.raises(InvalidInput, match=r"'cut' *: is damaged or incomplete"):
            content_of(written(tmp_path, packed[:length], "cut"))


@pytest.mark.parametrize("packing", ["gzip", "xz", "zip"])
def test_flipped_bytes_never_raise_an_unpackers_own_error(tmp_path: Path, packing: str) -> None:
    packed = PACKINGS[packing](NOISE[:2000])
    dice = random.Random(2)
    refused = 0
    for _ in range(300):
        damaged = bytearray(packed)
        for _ in range(dice.choice((1, 1, 4))):
            damaged[dice.randrange(6, len(packed))] ^= 1 << dice.randrange(8)
        try:
            content_of(written(tmp_path, bytes(damaged)))
        except InvalidInput:
            refused += 1
    assert refused > 100


def test_zip_holds_one_csv_file_beside_others(tmp_path: Path) -> None:
    packed = io.BytesIO(zipped(b"x", "folder/A.CSV"))
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("__MACOSX/folder/._A.CSV", "shadow")
    assert content_of(written(tmp_path, packed.getvalue())) == b"x"


def test_zip_with_no_or_several_csv_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"holds no \.csv file; .*readme.html"):
        content_of(written(tmp_path, zipped(b"x", "a.txt")))
    packed = io.BytesIO(zipped(b"x", "a.csv"))
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("b.csv", "y")
    with pytest.raises(InvalidInput, match=r"holds 2 \.csv files"):
        content_of(written(tmp_path, packed.getvalue()))


def test_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    packed = bytearray(zipped(b"x"))
    packed[packed.rindex(b"PK\x01\x02") + 8] |= 1  # the flag "encrypted" of the last member
    with pytest.raises(InvalidInput, match="unpack it first"):
        content_of(written(tmp_path, bytes(packed)))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'no\.csv': does not exist; check the path"):
        content_of(tmp_path / "no.csv")
    with pytest.raises(InvalidInput, match="is not a file"):
        content_of(tmp_path)


def test_concatenated_members_are_read_to_the_end(tmp_path: Path) -> None:
    assert content_of(written(tmp_path, gzip.compress(b"a") + gzip.compress(b"b"))) == b"ab"
    assert content_of(written(tmp_path, lzma.compress(b"a") + lzma.compress(b"b"))) == b"ab"
