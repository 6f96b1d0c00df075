"""Parse and serialise transactions with the standard library's json.

    python -m loadtests.programs.json_round_trips FILE TIMES

FILE: JSON lines in canonical bytes. The exit status is 1 if a line is not written as it was read.
"""

import json
import sys
from itertools import cycle, islice

from loadtests.programs.lines import lines_of


def main(path: str, times: str) -> None:
    """Parse and serialise `times` lines; start again at the end of the file."""
    for line in islice(cycle(lines_of(path)), int(times)):
        record = json.loads(line)
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        if text.encode() != line:
            sys.exit(f"error: not canonical bytes: {line!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
