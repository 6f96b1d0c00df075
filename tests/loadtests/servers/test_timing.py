"""What is read of a Server-Timing header."""

from time import monotonic

from loadtests.servers.timing import SERVER_TIMING, Entry, entries, headers, reported


def test_entries_have_durations_in_seconds_and_descriptions() -> None:
    header = 'total;dur=73.5, file;dur=0.5;desc="4 blocks, in 2 refills", last;desc="37 blocks", x'
    assert entries(header) == [
        Entry("total", 0.0735, ""),
        Entry("file", 0.0005, "4 blocks, in 2 refills"),
        Entry("last", None, "37 blocks"),
        Entry("x", None, ""),
    ]
    assert entries("") == []


def test_what_is_told_is_read_again() -> None:
    by_name = {name.lower(): value for name, value in headers(monotonic() - 1)}
    total = entries(by_name[SERVER_TIMING.lower()])[0]
    assert total.name == "total"
    assert total.duration_s == reported(by_name).service_s
    assert (total.duration_s or 0) >= 1
