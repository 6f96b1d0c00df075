"""Packs an answer, its flights and its proof into a zip file that needs nothing else to be checked.

The file is made while it is sent. It holds `answer.json`, `flights.csv`, `proof.ndjson`, the signed
`checkpoint`, the log's key `log.vkey`, `verify.py`, and `README.txt`, which says what to type.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec

from backend.api.exporting import lines_of
from backend.api.flight_lines import CSV, LEG_NAMES, table
from backend.base.settings import PROJECT
from backend.ledger.ledger import Ledger
from backend.questions.selection import Selection
from backend.questions.values import FilterTransactions, Question, asked_for
from backend.trust.proofs import Anchor

VERIFY = PROJECT / "scripts" / "verify.py"
MODE = 0o644 << 16  # of the files, as zip files tell it

README = """This is the evidence for an answer of a Flightchain, a ledger of flights.
To check it you need Python 3.11 or later, and no network:

    python3 verify.py proof.ndjson --key log.vkey

Only what this prints after VERIFIED is proved: the question, the answer, and the blocks that it is
from. The log has signed blocks 0 to {newest} (checkpoint). The answer is from blocks 0 to {last} of
these. Compare it with answer.json, which says more than is proved; flights.csv has the flights
behind the answer, for reading. verify.py reads neither answer.json nor flights.csv.

These files cannot vouch for themselves. Take verify.py from the project, where it is in the folder
scripts: it is short and written to be read. The one that comes with these files has the SHA-256

    {program}

Compare the key with one from somebody you trust:

    {key}

If you kept a checkpoint of this log from another day, add `--kept FILE`: that shows whether the log
still holds what it held then. The check that the answer leaves nothing out relies on the sums that
each block has of its flights; the proof of the chain (/proofs/chain) shows whether they are right.
No proof shows that the flights are true, or that the log tells everybody the same, unless witnesses
have signed the checkpoint (--witness KEY).
"""


def evidence(
    ledger: Ledger, question: Question, answer: Any, anchor: Anchor, proof: Iterator[bytes]
) -> Iterator[bytes]:
    """Return the zip file, piece by piece. answer: with `as_of` and `query`. proof: its lines."""
    members = anchor.members
    program = VERIFY.read_bytes()
    readme = README.format(
        newest=anchor.signed - 1,
        last=anchor.size - 1,
        program=sha256(program).hexdigest(),
        key=members["key"],
    )
    text = msgspec.json.format(msgspec.json.encode(answer))
    return _zipped(
        (
            ("README.txt", [readme.encode()]),
            ("answer.json", [text + b"\n"]),
            ("checkpoint", [members["checkpoint"].encode()]),
            ("log.vkey", [f"{members['key']}\n".encode()]),
            ("verify.py", [program]),
            ("flights.csv", _flights(ledger, question, answer)),
            ("proof.ndjson", proof),
        )
    )


def _flights(ledger: Ledger, question: Question, answer: Any) -> Iterable[bytes]:
    if isinstance(question, FilterTransactions):
        return [table(CSV, LEG_NAMES, answer.flights, answer.as_of)]
    asked: dict[str, Any] = asked_for(question)
    return lines_of(ledger, CSV, Selection(**asked), answer.as_of)


class _Sink:
    """Takes what a zip file writes. It cannot be rewound, so the file is written in one go."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is nothing behind it."""

    def taken(self) -> bytes:
        """Return the bytes that were written since the last call."""
        data, self._written = b"".join(self._written), []
        return data


def _zipped(files: Iterable[tuple[str, Iterable[bytes]]]) -> Iterator[bytes]:
    """Yield a zip file with these files. It holds no time, so equal bytes give equal files."""
    sink: Any = _Sink()
    with ZipFile(sink, "w") as archive:
        for name, pieces in files:
            entry = ZipInfo(name)
            entry.compress_type, entry.external_attr = ZIP_DEFLATED, MODE
            with archive.open(entry, "w", force_zip64=True) as file:
                for piece in pieces:
                    file.write(piece)
                    yield sink.taken()
    yield sink.taken()
