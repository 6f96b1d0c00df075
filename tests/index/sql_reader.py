"""A process that asks an index with Python's own SQLite, as other programs do.

In the process of a test it would drop the locks of the SQLite that the product uses.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from backend.index.index_file import index_path

READER = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], uri=True)
for line in sys.stdin:
    print(json.dumps(connection.execute(line).fetchall()), flush=True)
"""


class Reader:
    """A process that asks the index with Python's own SQLite, over one connection."""

    def __init__(self, folder: Path) -> None:
        uri = index_path(folder).as_uri() + "?mode=ro"
        self.process = subprocess.Popen(
            [sys.executable, "-c", READER, uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, sql: str) -> list[Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(" ".join(sql.split()) + "\n")
        self.process.stdin.flush()
        rows: list[Any] = json.loads(self.process.stdout.readline())
        return rows

    def close(self) -> None:
        self.process.communicate()
        assert self.process.returncode == 0
