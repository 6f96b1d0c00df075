"""Months are downloaded, checked and imported one after the other, and never twice."""

import json
import re
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner

from backend.base.clock import now_ms
from backend.base.download import NotThere
from backend.base.errors import FlightchainError, InvalidSetting, WriteFailed, WriterBusy
from backend.base.settings import Settings
from backend.cli import month_import
from backend.cli.import_command import file_sources, import_command
from backend.index.index_file import index_path
from backend.ledger.bts_months import MAGIC, Month, MonthRange, months_in
from backend.sealing.importer import import_all
from tests import bts_server as server
from tests.api.processes import WITHIN_S, begun, until
from tests.bts_server import Bts
from tests.flights import on_disk, transactions_in
from tests.sources.samples import archive, zipped
from tests.test_cli import call

pytestmark = pytest.mark.slow

JANUARY, FEBRUARY, MARCH = (Month(2008, number) for number in (1, 2, 3))
WINTER = "bts:2008-01..2008-03"


def bring(bts: Bts, folder: Path, months: str, keep: Path | None = None) -> None:
    """Import months in this process."""
    settings = Settings(dir=str(folder), bts_url=bts.url, min_free_bytes=0)

    def import_file(path: Path, month: Month) -> None:
        with ExitStack() as pipes:
            [source] = file_sources(settings, [path], "", pipes)
            source.month = str(month)
            import_all(settings, [source])

    month_import.import_months(settings, months_in(months), keep, import_file)


def days_in(folder: Path) -> list[str]:
    return [str(row[2]) for row in on_disk(folder).flights]


def names_asked(bts: Bts) -> list[str]:
    return [re.findall(r"_(\d+_\d+)\.zip", name)[0] for name, _ in bts.asked]


def zips_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if ".zip" in path.name]


def test_the_default_import_takes_all_months_that_are_published_and_is_not_asked_again(
    bts: Bts, tmp_path: Path
) -> None:
    bts.publish(JANUARY)
    bts.publish(FEBRUARY, count=4)
    more: dict[str, Any] = {"FLIGHTCHAIN_DATA": WINTER, "FLIGHTCHAIN_BTS_URL": bts.url}
    done = call(tmp_path, "import", "--if-empty", **more)
    assert done.returncode == 0, done.stderr
    assert "2008-03 is not published, or not yet: " in done.stderr
    assert "; 2 months were imported before that\n" in done.stderr
    assert days_in(tmp_path) == ["2008-01-01"] * 3 + ["2008-02-01"] * 4
    assert zips_in(tmp_path) == []
    assert call(tmp_path, "import", "--if-empty", **more).stderr == ""
    bts.publish(MARCH)
    bts.asked.clear()
    (tmp_path / "default-import-unfinished").write_text("bts:2007-10..latest")  # other months
    shutil.rmtree(index_path(tmp_path).parent)  # as if it were of an earlier release
    done = call(tmp_path, "import", "--if-empty", **more)
    assert "2 months from 2008-01 to 2008-02 are in the ledger already\n" in done.stderr
    assert (done.returncode, names_asked(bts)) == (0, ["2008_3"])
    assert transactions_in(tmp_path) == 10


def test_a_month_of_which_the_ledger_lost_or_never_had_a_part_is_downloaded(
    bts: Bts, tmp_path: Path
) -> None:
    bts.publish(JANUARY, count=2)
    bring(bts, tmp_path, "bts:2008-01")
    memory = tmp_path / month_import.MEMORY.name
    assert json.loads(memory.read_bytes()) == {"2008-01": 2}
    bts.publish(JANUARY, count=5)
    bring(bts, tmp_path, "bts:2008-01")
    assert transactions_in(tmp_path) == 2
    damaged = (b"{", b'{"2008-\xb01": 5}')  # the second has one bit changed
    for content in (b'{"2008-01": 3}', *damaged, None):  # another ledger's, damaged, lost
        if content is None:
            memory.unlink()
        else:
            memory.write_bytes(content)
        bring(bts, tmp_path, "bts:2008-01")
        assert transactions_in(tmp_path) == 5
        assert json.loads(memory.read_bytes()) == {"2008-01": 5}
    assert len(bts.asked) == 5


def test_the_time_that_a_download_takes_is_told_by_what_came_in_this_run(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, path, sent = bts.publish(JANUARY), tmp_path / JANUARY.file_name, list[Any]()
    path.with_name(f"{path.name}.part").write_bytes(content[:300])
    monkeypatch.setattr(month_import, "EVERY_S", 0)
    month_import._download(bts.url + path.name, path, 0, sent.append)
    assert sent[-1][:3] == (len(content), len(content), 300 + len(MAGIC))
    words = month_import._progress_words(JANUARY, 30_000_000, 40_000_000, 20_000_000, 60)
    assert words == "downloading 2008-01: 30.0 of 40.0 MB, 60 s left"


@pytest.mark.usefixtures("with_children")
def test_the_next_month_comes_while_one_is_imported(bts: Bts, tmp_path: Path) -> None:
    for month in (JANUARY, FEBRUARY, MARCH):
        bts.publish(month)
    settings, came = Settings(dir=str(tmp_path), bts_url=bts.url), Event()

    def send(handler: server._Handler, content: bytes) -> None:
        handler.send_rest(content)
        if len(bts.asked) == 2:
            came.set()

    bts.faults.extend([send] * 2)

    def import_file(path: Path, month: Month) -> None:
        assert came.wait(60)

    with pytest.raises(FlightchainError):  # there is no ledger whose flights could be counted
        month_import.import_months(settings, months_in(WINTER), tmp_path / "kept", import_file)
    assert JANUARY.file_name in zips_in(tmp_path / "kept")


def test_files_that_are_kept_are_not_downloaded_again_unless_they_are_damaged(
    bts: Bts, tmp_path: Path
) -> None:
    content, kept = bts.publish(JANUARY), tmp_path / "kept"
    bring(bts, tmp_path / "one", "bts:2008-01", kept)
    bring(bts, tmp_path / "two", "bts:2008-01", kept)
    assert len(bts.asked) == 1
    (kept / JANUARY.file_name).write_bytes(content.replace(b"On_Time", b"OnxTime", 1))
    bring(bts, tmp_path / "three", "bts:2008-01", kept)
    assert len(bts.asked) == 2
    assert (kept / JANUARY.file_name).read_bytes() == content
    assert transactions_in(tmp_path / "three") == 3


def with_flag(flag_at: int, value: int) -> bytes:
    """A month whose table is marked so in the directory of its zip."""
    content = bytearray(server.month_zip(JANUARY))
    content[content.rindex(b"PK\x01\x02") + flag_at] = value
    return bytes(content)


TWO_MONTHS = {f"{month}.csv": server.month_text(month) for month in (JANUARY, FEBRUARY)}
NOT_IMPORTED = [
    (server.month_zip(FEBRUARY), "of 2008-02-01, but 2008-01 was asked for; nothing was imported"),
    (archive(TWO_MONTHS), "of 2008-02-01, but 2008-01 was asked for; nothing was imported"),
    (zipped(b"<html>Maintenance</html>"), "is a web page"),
    (zipped(server.month_text(JANUARY).replace("IAD", "nowhere").encode()), "has bad rows"),
    (with_flag(8, 1), "is encrypted"),
    (with_flag(10, 9), "compression"),
]


def test_what_cannot_be_imported_is_downloaded_again_by_the_same_command(
    bts: Bts, tmp_path: Path
) -> None:
    for published, words in NOT_IMPORTED:
        bts.files[JANUARY.file_name] = published
        done = call(tmp_path, "import", "bts:2008-01", FLIGHTCHAIN_BTS_URL=bts.url)
        assert done.returncode == 1
        assert words in done.stderr
        assert "was removed" in done.stderr
        assert (transactions_in(tmp_path), zips_in(tmp_path)) == (0, [])
    bts.publish(JANUARY)
    bring(bts, tmp_path, "bts:2008-01")
    assert days_in(tmp_path) == ["2008-01-01"] * 3


@pytest.mark.parametrize("reason", [WriteFailed("the disk is full"), KeyboardInterrupt()])
def test_a_good_file_is_not_downloaded_again_if_something_else_ends_its_import(
    bts: Bts, tmp_path: Path, reason: BaseException
) -> None:
    bts.publish(JANUARY)

    def import_file(path: Path, month: Month) -> None:
        raise reason

    settings = Settings(dir=str(tmp_path), bts_url=bts.url, min_free_bytes=0)
    with pytest.raises(type(reason)):
        month_import.import_months(settings, months_in("bts:2008-01"), None, import_file)
    bring(bts, tmp_path, "bts:2008-01")
    assert (len(bts.asked), transactions_in(tmp_path)) == (1, 3)


def test_a_file_that_is_published_damaged_is_refused_and_leaves_nothing(
    bts: Bts, tmp_path: Path
) -> None:
    bts.publish(JANUARY)
    bts.faults.extend([server.truncated] * 2)
    with pytest.raises(FlightchainError, match=r"incomplete \([^)]*\); try again later"):
        bring(bts, tmp_path, "bts:2008-01")
    assert zips_in(tmp_path) == []


def test_a_stopped_download_goes_on_and_nothing_looks_whole(bts: Bts, tmp_path: Path) -> None:
    content, goes_on = bts.publish(JANUARY), Event()

    more = {"FLIGHTCHAIN_BTS_URL": bts.url}
    part = tmp_path / f"{JANUARY.file_name}.part"
    for end in (signal.SIGINT, signal.SIGKILL):
        bts.faults.append(server.stalled(goes_on))
        size = 200 * (1 + (end == signal.SIGKILL))
        with begun(tmp_path, "import", "bts:2008-01", **more) as running:
            until(lambda: part.exists() and part.stat().st_size == size)  # noqa: B023
            busy = rf"locked by another process \(PID {running.pid}\); another import of months"
            with pytest.raises(WriterBusy, match=busy):
                bring(bts, tmp_path, "bts:2008-02")
            running.send_signal(end)
            running.wait(WITHIN_S)
        assert zips_in(tmp_path) == [part.name]
        assert part.read_bytes() == content[:size]
    goes_on.set()
    bring(bts, tmp_path, "bts:2008-01")
    assert [place for _, place in bts.asked] == ["", "bytes=200-", "bytes=400-"]
    assert (transactions_in(tmp_path), zips_in(tmp_path)) == (3, [])


def test_latest_is_the_newest_month_that_is_published(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(month_import, "now_ms", lambda: 1_209_600_000_000)  # 1 May 2008
    assert now_ms() > 1_209_600_000_000
    bts.publish(JANUARY)
    bts.publish(FEBRUARY)
    bring(bts, tmp_path, "bts:latest")
    assert names_asked(bts) == ["2008_4", "2008_3", "2008_2", "2008_2"]
    bring(bts, tmp_path, "bts:2008-01..latest")
    assert transactions_in(tmp_path) == 6
    with pytest.raises(NotThere, match="2008-03 is not published; the newest is 2008-02"):
        bring(bts, tmp_path, "bts:2008-03..latest")
    monkeypatch.setattr(month_import, "now_ms", lambda: 10_000)  # a machine without a battery
    with pytest.raises(NotThere, match="this machine's date, which is 1970-01-01"):
        bring(bts, tmp_path, "bts:latest")


def test_a_month_after_this_one_is_refused_without_asking(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(month_import, "now_ms", lambda: 1_209_600_000_000)  # 1 May 2008
    words = "2008-06 is not published: this machine's date is 2008-05-01"
    for months in ("bts:2008-06", "bts:2008-06..2008-07", "bts:2008-06..latest"):
        with pytest.raises(NotThere, match=words):
            bring(bts, tmp_path, months)
    assert bts.asked == []


def test_months_are_written_in_one_way() -> None:
    year = [Month(2007, 12), JANUARY, FEBRUARY]
    assert list(months_in("bts:2007-12..2008-02").months()) == year
    assert list(months_in("bts:2008-02").months()) == [FEBRUARY]
    assert list(months_in("bts:2007-12..latest").months(FEBRUARY)) == year
    assert months_in("bts:latest") == MonthRange(None, None)
    assert (FEBRUARY.last_day.day, FEBRUARY.file_name[-11:]) == (29, "_2008_2.zip")
    for text in ("", "2008", "2008-13", "2008-1", "2008-02..2008-01", "latest..2008-01", "1987-09"):
        with pytest.raises(InvalidSetting):
            months_in(f"bts:{text}")


def test_what_does_not_go_with_months_is_a_wrong_call(tmp_path: Path) -> None:
    a_range = "2008-01..2008-12"
    for arguments, said in (
        (["bts:2008-01", __file__], a_range),
        (["bts:2008-01", "bts:2008-02"], a_range),
        (["bts:08"], a_range),
        (["--keep-zips", ".", "--nycflights"], "--keep-zips works only with bts:"),
    ):
        done = CliRunner().invoke(import_command, arguments, obj=Settings(dir=str(tmp_path)))
        assert done.exit_code == 2
        assert said in done.output
    assert not list(tmp_path.iterdir())
