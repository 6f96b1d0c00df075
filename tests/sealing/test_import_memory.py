"""An import takes no more memory because something large was freed before it."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes
import sys
from backend.cli.commands import main

MB = 1 << 20

class Mallinfo2(ctypes.Structure):  # malloc.h of glibc
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd",
        "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]

if sys.argv[1] == "import":
    main(["import", "--generate", "1"], standalone_mode=False)
bytes(8 * MB)
kept = bytes(4 * MB)
mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo2
print("returned when freed" if mallinfo2().hblkhd >= 4 * MB else "kept for this process")
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has such settings")
@pytest.mark.parametrize(
    ("command", "what_is_large"),
    [("import", "returned when freed"), ("no command", "kept for this process")],
)
def test_an_import_returns_what_is_large(tmp_path: Path, command: str, what_is_large: str) -> None:
    environment = {**os.environ, "FLIGHTCHAIN_DIR": str(tmp_path / "chain")}
    process = [sys.executable, "-c", PROGRAM, command]
    done = subprocess.run(process, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == what_is_large
