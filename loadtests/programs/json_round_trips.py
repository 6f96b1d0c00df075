"""Parse and serialise transactions with the standard library's json.

    python -m loadtests.programs.json_round_trips FILE TIMES

FILE: JSON lines in canonical bytes. Status 1 if one is not written as it was read.
"""

import json
import sys
from itertools import cycle, islice

from loadtests.programs.lines import lines_of


def main(path: str, times: str) -> None:
    """Go through the lines until `times` are done."""
    for line in islice(cycle(lines_of(path)), int(times)):
        record = json.loads(line)
        text = json.dumps(record, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        if text.encode() != line:
            sys.exit(f"error: these are no canonical bytes: {line!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
