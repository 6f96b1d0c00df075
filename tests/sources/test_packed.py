import io
import os
import random
import tracemalloc
import zipfile
from itertools import count
from pathlib import Path

import pytest
import zstandard

from backend.base.errors import InvalidInput
from backend.sources import packed
from backend.sources.packed import MOST_TIMES, PIECE, PackedFile, SentFile, files_of
from tests.sources.samples import PACKINGS, archive, written, zipped

NOISE = random.Random(1).randbytes(300_000)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "BLOCK_BYTES", 100_000)


def read_all(file: PackedFile) -> bytes:
    with file.opened() as blocks:
        return b"".join(blocks)


def content_of(path: Path) -> bytes:
    (file,) = files_of(path)
    return read_all(file)


@pytest.mark.parametrize("packing", PACKINGS)
def test_every_packing_is_told_by_content_not_by_name(tmp_path: Path, packing: str) -> None:
    path = written(tmp_path, PACKINGS[packing](NOISE), "data.txt")
    assert content_of(path) == NOISE


@pytest.mark.parametrize("packing", PACKINGS)
def test_progress_counts_packed_bytes_and_ends_at_one(tmp_path: Path, packing: str) -> None:
    file = PackedFile(written(tmp_path, PACKINGS[packing](NOISE)))
    for _ in range(2):
        progress = [file.progress()]
        with file.opened() as blocks:
            progress += [file.progress() for _ in blocks]
        assert progress[1:] == sorted(progress[1:])
        most = 1.1 if packing == "bzip2" else 0.8  # it unpacks 900 kB at once
        assert 0.2 < progress[1] < most
        assert file.progress() == 1.0


def test_progress_of_an_abandoned_reading_stays_where_it_was(tmp_path: Path) -> None:
    file = PackedFile(written(tmp_path, NOISE))
    with file.opened() as blocks:
        next(blocks)
    assert 0.05 < file.progress() < 0.5


@pytest.mark.parametrize("packing", [name for name in PACKINGS if name != "plain"])
def test_cut_short_is_invalid_input(tmp_path: Path, packing: str) -> None:
    packed = PACKINGS[packing](NOISE)
    for length in (10, 40, len(packed) // 2, len(packed) - 5):
        with pytest.raises(InvalidInput, match=r"'cut' *: is damaged or incomplete"):
            content_of(written(tmp_path, packed[:length], "cut"))


@pytest.mark.parametrize("packing", [name for name in PACKINGS if name != "plain"])
def test_flipped_bytes_never_raise_an_unpackers_own_error(tmp_path: Path, packing: str) -> None:
    packed = PACKINGS[packing](NOISE[:2000])
    dice = random.Random(2)
    refused = 0
    for _ in range(120):
        damaged = bytearray(packed)
        for _ in range(dice.choice((1, 1, 4))):
            damaged[dice.randrange(6, len(packed))] ^= 1 << dice.randrange(8)
        try:
            content_of(written(tmp_path, bytes(damaged)))
        except InvalidInput:
            refused += 1
    assert refused > 40


def test_zip_holds_one_csv_file_beside_others(tmp_path: Path) -> None:
    names = ("readme.html", "folder/A.CSV", "__MACOSX/folder/._A.CSV")
    assert content_of(written(tmp_path, archive({name: name for name in names}))) == b"folder/A.CSV"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_that_hides_files_is_refused(tmp_path: Path) -> None:
    """As two that were put together do, and one to which a file was added again."""
    again = io.BytesIO(zipped(b"1", "a.csv"))
    with zipfile.ZipFile(again, "a") as opened:
        opened.writestr("a.csv", "2")
    for content in (zipped(b"1", "a.csv") + zipped(b"2", "b.csv"), again.getvalue()):
        with pytest.raises(InvalidInput, match="so unpacking it would lose files; make a"):
            content_of(written(tmp_path, content))


def test_an_archive_that_lacks_a_piece_is_damaged(tmp_path: Path) -> None:
    packed = zipped(NOISE, "a.csv")
    for missing in (40, 100, 1500):
        with pytest.raises(InvalidInput, match="is damaged or incomplete"):
            content_of(written(tmp_path, packed[:50] + packed[50 + missing :]))


def test_tables_of_an_archive_or_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    names = [
        "docs/2019_11.csv",
        "airports.csv",
        "2019_10.csv",
        "2019_9.CSV",
        "docs/README.md",
        "docs/page.html",
        ".DS_Store",
        "Data dictionary.txt",
        "L_CARRIER_HISTORY.csv",
    ]
    path = written(tmp_path, archive({name: name for name in names}), "all.zip")
    files = files_of(path)
    assert [file.label for file in files] == [
        "all.zip/2019_9.CSV",
        "all.zip/2019_10.csv",
        "all.zip/docs/2019_11.csv",
    ]
    assert [read_all(file).decode() for file in files] == [file.part for file in files]
    written(tmp_path, "x", "all_9.csv")
    written(tmp_path, "x", "all_9.csv.sha256")
    parts = [file.part for file in files_of(tmp_path)]
    assert parts == [
        "all.zip/2019_9.CSV",
        "all.zip/2019_10.csv",
        "all.zip/docs/2019_11.csv",
        "all_9.csv",
    ]


def test_the_names_in_an_archive_are_not_read_again_for_each_of_its_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = archive({f"{number}.csv": str(number) for number in range(20)})
    looked = list[zipfile.ZipInfo]()
    decode = zipfile.ZipInfo._decodeExtra  # type: ignore[attr-defined]

    def noted(about: zipfile.ZipInfo, *more: int) -> None:
        looked.append(about)
        decode(about, *more)

    monkeypatch.setattr(zipfile.ZipInfo, "_decodeExtra", noted)
    files = files_of(written(tmp_path, content))
    assert [read_all(file) for file in files] == [str(n).encode() for n in range(20)]
    assert len(looked) == 20


def test_the_tables_of_folders_in_a_folder_are_read(tmp_path: Path) -> None:
    names = ["m=1/part-0.csv", "m=2/part-0.csv", "m=10/part-0.csv", "m=2/.cache/a.csv"]
    for name in (
        *names,
        "_temporary/0/part-1.csv",
        "m=1/_SUCCESS",
        "_SUCCESS",
        "_metadata",
        "_common_metadata",
        "_committed_7",
        "~$flights.xlsx",
        "SHA256SUMS",
        "dataset-metadata.json",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        written(tmp_path, name, name)
    files = files_of(tmp_path)
    assert [file.part for file in files] == [read_all(file).decode() for file in files] == names[:3]


@pytest.mark.parametrize(
    "name", ["feb.txt", "feb.tab", "feb", "feb.csv.1", "feb.sql", "metadata.csv"]
)
def test_no_table_is_left_out_in_silence_for_its_name(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, archive({name: "x", "jan.csv": "x"}), "all.zip")
    assert {file.part for file in files_of(path)} == {name, "jan.csv"}


@pytest.mark.parametrize("name", ["T_ONTIME", "airlines.csv"])
def test_a_table_of_any_name_is_taken_where_it_is_alone(tmp_path: Path, name: str) -> None:
    (file,) = files_of(written(tmp_path, zipped(b"x", name), "all.zip"))
    assert (file.label, file.part, read_all(file)) == ("all.zip", "", b"x")


@pytest.mark.parametrize("target", ["away.csv", "more"])
def test_a_link_in_a_folder_that_leads_to_no_file_is_not_left_out(
    tmp_path: Path, target: str
) -> None:
    for name in ("all", "more"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, "x")
    (tmp_path / "all" / "feb").symlink_to(f"../{target}")
    with pytest.raises(InvalidInput, match=r"'all/feb': is a link that leads to no file; check"):
        files_of(tmp_path / "all")


def test_where_there_is_no_table_nothing_is_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"holds no table of flights, but .*readme.html"):
        files_of(written(tmp_path, zipped(b"x", "license.txt")))
    (tmp_path / "sub").mkdir()
    with pytest.raises(InvalidInput, match="folder 'sub': holds no table of flights"):
        files_of(tmp_path / "sub")


@pytest.mark.parametrize("packing", [name for name in PACKINGS if name != "plain"])
def test_a_bomb_is_refused_before_it_takes_hours(
    tmp_path: Path, packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "UNPACKED_ROOM", 1 << 20)
    bomb = written(tmp_path, PACKINGS[packing](b"\n" * (12 << 20)))
    assert bomb.stat().st_size * MOST_TIMES < 8 << 20
    with pytest.raises(InvalidInput, match=r"unpacks to more than [\d,]+ bytes"):
        content_of(bomb)
    dense = NOISE + b"\n" * (3 << 20)  # no bomb, but more than a posted one may unpack to
    assert content_of(written(tmp_path, PACKINGS[packing](dense))) == dense
    for posted in (bomb.read_bytes(), PACKINGS[packing](dense)):
        with pytest.raises(InvalidInput, match=r"unpacks to more than [\d,]+ bytes"):
            read_all(SentFile(posted))


@pytest.mark.parametrize("packing", ["bzip2", "zip of bzip2", "zip of LZMA"])
def test_a_bomb_is_refused_before_it_takes_memory(
    packing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 16 << 20
    monkeypatch.setattr(packed, "UNPACKED_ROOM", room)
    bomb = PACKINGS[packing](bytes(38 << 20))
    assert len(bomb) < PIECE or "LZMA" in packing
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=r"unpacks to more than [\d,]+ bytes"):
            read_all(SentFile(bomb))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2 * room  # of which this test itself keeps one


def test_a_file_of_many_small_frames_is_unpacked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    made, make = list[object](), zstandard.ZstdDecompressor

    def counted() -> zstandard.ZstdDecompressor:
        made.append(make())
        return make()

    monkeypatch.setattr(zstandard, "ZstdDecompressor", counted)
    assert read_all(SentFile(PACKINGS["zstd"](b"a") * 3)) == b"aaa"
    assert len(made) == 1  # which takes thirty times as long as the rest


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_file_that_changed_since_it_was_read_is_refused(tmp_path: Path, packing: str) -> None:
    content = NOISE
    file = PackedFile(written(tmp_path, PACKINGS[packing](content)))
    assert read_all(file) == content
    assert read_all(file) == content
    with pytest.raises(InvalidInput, match="changed while it was read"), file.opened() as blocks:
        next(blocks)
        written(tmp_path, PACKINGS[packing](content[:-1]))
        list(blocks)
    with pytest.raises(InvalidInput, match="changed while it was read"):
        read_all(file)


def test_a_file_has_another_number_at_each_look_on_some_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, fstat = count(), os.fstat

    def stat_on_fat(descriptor: int) -> os.stat_result:
        known = fstat(descriptor)
        named = {"st_mtime_ns": known.st_mtime_ns, "st_ctime_ns": known.st_ctime_ns}
        return os.stat_result((known[0], next(numbers), *known[2:]), named)

    monkeypatch.setattr(os, "fstat", stat_on_fat)
    file = PackedFile(written(tmp_path, NOISE))
    assert read_all(file) == read_all(file) == NOISE


@pytest.mark.parametrize("log", ["_delta_log/00.json", "t/_delta_log/00.json", "t/.hoodie/a"])
def test_rows_that_a_table_has_deleted_are_not_read(tmp_path: Path, log: str) -> None:
    names = ("t/a.parquet", log)
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        written(tmp_path, name, name)
    written(tmp_path, archive({name: name for name in names}), "a.zip")
    for path in (tmp_path, tmp_path / "a.zip"):
        with pytest.raises(InvalidInput, match="which has deleted rows; export it as CSV"):
            files_of(path)


def test_a_posted_archive_must_hold_one_table() -> None:
    assert read_all(SentFile(zipped(NOISE))) == NOISE
    with pytest.raises(InvalidInput, match="holds 2 tables; send it to /upload or by POST"):
        read_all(SentFile(archive({"a.csv": "x", "b.csv": "y"})))


@pytest.mark.parametrize("packing", ["zip", "zip of bzip2", "zip of LZMA"])
def test_an_archive_whose_content_has_another_checksum_is_damaged(packing: str) -> None:
    packed = bytearray(PACKINGS[packing](NOISE))
    packed[packed.rindex(b"PK\x01\x02") + 16] ^= 1
    with pytest.raises(InvalidInput, match="is damaged or incomplete \\(Bad CRC-32"):
        read_all(SentFile(bytes(packed)))


def test_an_archive_with_a_place_before_its_beginning_is_damaged() -> None:
    packed = bytearray(zipped(b"x"))
    packed[packed.rindex(b"PK\x05\x06") + 18] = 1  # in the place of the names
    with pytest.raises(InvalidInput, match="is damaged or incomplete"):
        read_all(SentFile(bytes(packed)))


def test_a_name_of_thousands_of_digits_is_read() -> None:
    assert read_all(SentFile(zipped(NOISE, f"{'9' * 5000}.csv"))) == NOISE


def test_zip_with_a_password_is_refused(tmp_path: Path) -> None:
    packed = bytearray(zipped(b"x"))
    packed[packed.rindex(b"PK\x01\x02") + 8] |= 1  # the flag "encrypted" of the last member
    text = r"cannot be unpacked \(is encrypted, password required for extraction\); unpack it first"
    with pytest.raises(InvalidInput, match=text):
        content_of(written(tmp_path, bytes(packed)))


def test_zip_with_a_name_that_is_not_the_utf8_that_it_says_is_refused(tmp_path: Path) -> None:
    packed = bytearray(zipped(b"x"))
    last = packed.rindex(b"PK\x01\x02")
    packed[last + 9] |= 8  # the flag "UTF-8" of the last member
    packed[last + 46] = 0xFF  # the first byte of its name
    with pytest.raises(InvalidInput, match=r"is damaged or incomplete \('utf-8' codec can't"):
        content_of(written(tmp_path, bytes(packed)))


def test_a_file_that_needs_a_long_window_is_not_called_damaged(tmp_path: Path) -> None:
    frame = b"\x28\xb5\x2f\xfd\0\xa8\x09\0\0a"  # of 2 GB, as zstd --long=31 writes it
    with pytest.raises(InvalidInput, match=r"needs too much memory .*\(zstd -d --long=31\)"):
        content_of(written(tmp_path, frame))


def test_frames_may_each_follow_one_that_is_to_be_skipped(tmp_path: Path) -> None:
    """As pzstd writes them, to tell their lengths."""
    frames = [b"\x50\x2a\x4d\x18\4\0\0\0size" + PACKINGS["zstd"](part) for part in (NOISE, b"b")]
    assert content_of(written(tmp_path, b"".join(frames))) == NOISE + b"b"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'no\.csv': does not exist; check the path"):
        content_of(tmp_path / "no.csv")
    with pytest.raises(InvalidInput, match="is not a file"):
        content_of(Path("/dev/null"))


@pytest.mark.parametrize("packing", [name for name in PACKINGS if name[:3] not in {"pla", "zip"}])
def test_all_frames_of_a_file_are_read_or_it_is_damaged(tmp_path: Path, packing: str) -> None:
    frames = [PACKINGS[packing](content) for content in (b"a", NOISE, b"b")]
    assert content_of(written(tmp_path, bytes(2000).join([*frames, b""]))) == b"a" + NOISE + b"b"
    for place in range(3):
        damaged = bytearray(frames[1])
        damaged[place] ^= 1
        with pytest.raises(InvalidInput, match="is damaged or incomplete"):
            content_of(written(tmp_path, frames[0] + damaged + frames[2]))
    with pytest.raises(InvalidInput, match="is damaged or incomplete"):
        content_of(written(tmp_path, frames[0] + b"junk"))
