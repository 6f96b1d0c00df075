"""Downloads come to their end over broken connections, and leave nothing that looks whole."""

import fcntl
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from backend.base import download as module
from backend.base import files
from backend.base.download import RETRIES, Downloader, DownloadFailed, NotThere
from backend.base.errors import FlightchainError, WriteFailed, WriterBusy
from backend.base.files import lock_within, open_for_writing
from backend.ledger.bts_months import MAGIC, Month
from tests import bts_server as server
from tests.api.processes import until
from tests.bts_server import Bts, Fault
from tests.descriptors import descriptors_of

MONTH = Month(2008, 1)
AT_ONCE = RETRIES.new(total=2, backoff_factor=0)


def fetch(bts: Bts, folder: Path, least_free: int = 0) -> tuple[bytes, list[str]]:
    """Download the month; what it is, and what was said."""
    messages: list[str] = []
    path = folder / MONTH.file_name
    with closing(Downloader(least_free, MAGIC, messages.append, AT_ONCE)) as downloader:
        downloader.download(bts.url + MONTH.file_name, path, lambda done, whole: None)
    assert list(folder.iterdir()) == [path]
    return path.read_bytes(), messages


@pytest.mark.parametrize(
    ("faults", "ranges"),
    [
        ([], [""]),
        ([server.broken_off(100)], ["", "bytes=100-"]),
        ([server.broken_off(10)] * 9, ["", *(f"bytes={10 * n}-" for n in range(1, 10))]),
        ([server.broken_off(100), server.ignoring_the_range], ["", "bytes=100-"]),
        ([server.with_a_weak_tag(100)] * 2, ["", "bytes=100-", "bytes=200-"]),
        ([server.broken_off(3), server.cut_in_the_head], ["", "", ""]),
        ([server.busy, server.busy], ["", "", ""]),
        ([server.broken_off(100), server.busy], ["", "bytes=100-", "bytes=100-"]),
        ([server.in_parts] * 2, ["", "bytes=200-", "bytes=400-"]),
        ([server.broken_off(100), server.in_parts], ["", "bytes=100-", "bytes=300-"]),
        ([server.of_unknown_length], [""]),
        ([server.in_a_chunk_of_negative_length], ["", ""]),
        ([server.encoded()], [""]),
        ([server.encoded(115)] + [server.encoded()] * 2, ["", "bytes=100-", ""]),
        ([server.encoded(115)], ["", "bytes=100-"]),
    ],
)
def test_a_download_goes_on_where_it_broke(
    bts: Bts, tmp_path: Path, faults: list[Fault], ranges: list[str]
) -> None:
    content = bts.publish(MONTH)
    bts.faults.extend(faults)
    fetched, messages = fetch(bts, tmp_path)
    assert fetched == content
    assert [place for _, place in bts.asked] == ranges
    assert len(messages) == len(ranges) - 1


def test_a_file_is_on_the_disk_before_it_has_its_name(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, int]] = []

    def sync(_: int, path: Path) -> None:
        synced.append((path.name, path.stat().st_size))

    monkeypatch.setattr(module, "sync", sync)
    content = bts.publish(MONTH)
    fetch(bts, tmp_path)
    assert synced == [(f"{MONTH.file_name}.part", len(content))]


def test_a_server_that_falls_silent_is_asked_again(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SILENCE_S", 0.1)
    content = bts.publish(MONTH)

    def silent(handler: server._Handler, content: bytes) -> None:
        handler.send_rest(content, 50)
        handler.wfile.flush()
        handler.connection.recv(1)  # until the client gives up

    bts.faults.append(silent)
    assert fetch(bts, tmp_path)[0] == content
    assert bts.asked[1][1] == "bytes=50-"


def test_a_server_that_is_too_slow_is_asked_again_and_not_for_ever(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLOW_S", 0.2)
    content = bts.publish(MONTH)
    bts.faults.append(server.dripping)
    fetched, messages = fetch(bts, tmp_path)
    assert (fetched, len(bts.asked)) == (content, 2)
    assert "the server sends less than 1,000 bytes a second; trying again" in messages[0]
    (tmp_path / MONTH.file_name).unlink()
    bts.faults.extend([server.dripping] * 3)
    with pytest.raises(DownloadFailed, match="less than 1,000 bytes a second; the part that came"):
        fetch(bts, tmp_path)
    assert all(place for _, place in bts.asked[3:])
    bts.faults.extend([server.dripping, server.busy] * 2)
    with pytest.raises(DownloadFailed, match="the part that came is kept"):
        fetch(bts, tmp_path)


@pytest.mark.parametrize(
    ("named", "pause_s"), [("7", 7), ("soon", 0), ("Fri, 31 Dec 99999 23:59:59 GMT", 0)]
)
def test_a_server_that_is_busy_is_asked_again_after_the_pause_that_it_names(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, pause_s: int
) -> None:
    content, slept = bts.publish(MONTH), list[float]()
    bts.faults.append(lambda handler, _: handler.send(503, b"", Retry_After=named))
    monkeypatch.setattr("urllib3.util.retry.time.sleep", slept.append)
    fetched, [message] = fetch(bts, tmp_path)
    assert (fetched, slept) == (content, [pause_s])
    assert message.endswith("answers 503; trying again" + (" in 7 s" if pause_s else ""))


def test_a_file_that_changes_meanwhile_is_begun_again(bts: Bts, tmp_path: Path) -> None:
    bts.publish(MONTH)

    def corrected(handler: server._Handler, content: bytes) -> None:
        handler.send_rest(content, 100)
        bts.publish(MONTH, count=40)

    bts.faults.append(corrected)
    assert fetch(bts, tmp_path)[0] == bts.files[MONTH.file_name]


@pytest.mark.parametrize("held", [100, None, 10_000], ids=["a part", "all", "too much"])
def test_what_an_earlier_run_left_is_continued(bts: Bts, tmp_path: Path, held: int | None) -> None:
    content = bts.publish(MONTH)
    (tmp_path / f"{MONTH.file_name}.part").write_bytes(
        (content + bytes(10_000))[: held or len(content)]
    )
    assert fetch(bts, tmp_path)[0] == content


def unreachable(bts: Bts) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        bts.url = f"http://127.0.0.1:{nobody.getsockname()[1]}/"


@pytest.mark.parametrize(
    ("harm", "kind", "words"),
    [
        (lambda bts: bts.files.clear(), NotThere, "does not exist"),
        (lambda bts: bts.faults.append(server.login_page), DownloadFailed, "log in with"),
        (lambda bts: bts.faults.extend([server.busy] * 3), DownloadFailed, "503; check this"),
        (lambda bts: bts.faults.append(lambda h, _: h.send(403, b"")), DownloadFailed, "403; try"),
        (lambda bts: bts.faults.extend([server.redirecting] * 4), DownloadFailed, "302 again"),
        (
            lambda bts: bts.faults.append(lambda h, _: h.send(302, b"", Location="http://[")),
            DownloadFailed,
            "Invalid IPv6 URL",
        ),
        (unreachable, DownloadFailed, "refused"),
    ],
    ids=["404", "login page", "always busy", "403", "redirects", "no address", "unreachable"],
)
def test_a_refusal_says_what_is_wrong_and_leaves_nothing(
    bts: Bts, tmp_path: Path, harm: Callable[[Bts], None], kind: type[FlightchainError], words: str
) -> None:
    bts.publish(MONTH)
    harm(bts)
    with pytest.raises(kind, match=words):
        fetch(bts, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_login_page_in_the_middle_does_not_cost_what_has_come(bts: Bts, tmp_path: Path) -> None:
    content = bts.publish(MONTH)
    bts.faults.extend([server.broken_off(100), server.login_page])
    with pytest.raises(DownloadFailed, match="log in with"):
        fetch(bts, tmp_path)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content[:100]]
    assert fetch(bts, tmp_path)[0] == content


def test_a_disk_that_is_too_small_is_named_with_what_is_needed(bts: Bts, tmp_path: Path) -> None:
    size = len(bts.publish(MONTH))
    with pytest.raises(WriteFailed, match=f"{10**18 + size:,} are needed"):
        fetch(bts, tmp_path, least_free=10**18)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_unknown_length_does_not_fill_the_disk(
    bts: Bts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bts.publish(MONTH)
    bts.faults.append(server.of_unknown_length)
    free = iter((100, 99))
    monkeypatch.setattr(files, "free_bytes", lambda _: next(free))
    with pytest.raises(WriteFailed, match="99 bytes free, but 100 are needed"):
        fetch(bts, tmp_path, least_free=100)


def test_two_processes_do_not_write_one_part(bts: Bts, tmp_path: Path) -> None:
    bts.publish(MONTH)
    part = tmp_path / f"{MONTH.file_name}.part"
    descriptor = open_for_writing(part)
    lock_within(descriptor, 1, part)
    with pytest.raises(WriterBusy):
        fetch(bts, tmp_path)
    assert (bts.asked, part.stat().st_ino) == ([], os.fstat(descriptor).st_ino)
    os.close(descriptor)


@pytest.mark.parametrize("is_removed", [False, True], ids=["finished", "finished and imported"])
def test_a_file_that_another_process_has_just_finished_is_not_written(
    bts: Bts, tmp_path: Path, is_removed: bool
) -> None:
    content = bts.publish(MONTH)
    path, part = tmp_path / MONTH.file_name, tmp_path / f"{MONTH.file_name}.part"
    part.write_bytes(content)
    descriptor = open_for_writing(part)
    lock_within(descriptor, 1, part)
    bts.faults.append(server.ignoring_the_range)
    with ThreadPoolExecutor(1) as pool:
        fetching = pool.submit(fetch, bts, tmp_path)
        until(lambda: [*descriptors_of().values()].count(str(part.resolve())) == 2)
        part.rename(path)
        if is_removed:
            path.unlink()
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        assert fetching.result() == (content, [])
    assert [place for _, place in bts.asked] == [""] * is_removed
    assert (path.stat().st_ino == os.fstat(descriptor).st_ino) is not is_removed
    os.close(descriptor)
