"""What is read of a Server-Timing header."""

from time import monotonic

from loadtests.servers.timing import SERVER_TIMING, Entry, entries, headers, told


def test_entries_have_durations_in_seconds_and_descriptions() -> None:
    said = 'total;dur=73.5, file;dur=0.5;desc="4 blocks, in 2 refills", last;desc="37 blocks", x'
    assert entries(said) == [
        Entry("total", 0.0735, ""),
        Entry("file", 0.0005, "4 blocks, in 2 refills"),
        Entry("last", None, "37 blocks"),
        Entry("x", None, ""),
    ]
    assert entries("") == []


def test_what_is_told_is_read_again() -> None:
    found = {name.lower(): value for name, value in headers(monotonic() - 1)}
    total = entries(found[SERVER_TIMING.lower()])[0]
    assert total.name == "total"
    assert total.duration_s == told(found).service_s
    assert (total.duration_s or 0) >= 1
