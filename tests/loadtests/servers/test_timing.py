"""What is read of a Server-Timing header."""

from time import monotonic

from loadtests.servers.timing import SERVER_TIMING, durations_s, headers, reported


def test_durations_of_entries_are_read_in_seconds() -> None:
    header = 'total;dur=73.5, file;desc="4, dur=9, x";dur=0.5, last;desc="37 blocks", x'
    assert durations_s(header) == {"total": 0.0735, "file": 0.0005}
    assert durations_s("") == {}


def test_what_is_told_is_read_again() -> None:
    by_name = {name.lower(): value for name, value in headers(monotonic() - 1)}
    total_s = durations_s(by_name[SERVER_TIMING.lower()])["total"]
    assert total_s == reported(by_name).service_s
    assert total_s >= 1
