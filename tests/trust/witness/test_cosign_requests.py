"""Who asks witnesses takes from them what they sign, and nothing else that they may say."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from backend.trust.log import notes
from backend.trust.log.notes import COSIGNATURE, Signature, signed_at
from backend.trust.log.rotation import rotate
from backend.trust.log.secret_keys import SecretKey, log_key
from backend.trust.log.tree import HistoryTree
from backend.trust.witness import cosign_requests
from backend.trust.witness.cosign_requests import Asker, WitnessAddress
from tests.test_cli import call
from tests.trust.witness.logs import answering, note_of, signed

NAME = "example.org/witness"
KEY = SecretKey(NAME, b"\x01" * 32, COSIGNATURE)
SAME_NAME = SecretKey(NAME, b"\x02" * 32, COSIGNATURE)

Says = Callable[[str], tuple[int, str]]  # of the text of a checkpoint: a status and an answer


class Asked:
    """An Asker, the witnesses that it asks, and what it has reported."""

    def __init__(self, folder: Path, tree: HistoryTree) -> None:
        self.folder = folder
        self.tree = tree
        self.reports: list[str] = []
        self.stack = ExitStack()

    def asker(self, *witnesses: tuple[SecretKey, Says]) -> Asker:
        addresses = [WitnessAddress(key.verifier, self.serving(says)) for key, says in witnesses]
        return Asker(self.folder, self.tree, addresses, self.reports.append)

    def serving(self, says: Says) -> str:
        def reply(path: str, body: bytes) -> tuple[int, bytes]:
            assert path == "/add-checkpoint"
            status, text = says(notes.parse(body.partition(b"\n\n")[2]).text)
            return status, text.encode()

        return self.stack.enter_context(answering(reply))

    def cosigned(self, key: SecretKey) -> bool:
        """Whether `cosigned` has a good signature of a witness on the newest checkpoint."""
        note = notes.parse((self.folder / "cosigned").read_bytes())
        assert note.text == note_of(self.folder).text
        return signed_at(note, key.verifier) is not None


@pytest.fixture
def asked(folder: Path, tree: HistoryTree) -> Iterator[Asked]:
    fixture = Asked(folder, tree)
    with fixture.stack:
        yield fixture


def signs(key: SecretKey, off_s: int = 0) -> Says:
    return lambda text: (200, f"{key.cosignature(text, int(time.time()) + off_s)}\n")


def says(status: int, text: str) -> Says:
    return lambda _text: (status, text)


def test_two_witnesses_of_the_same_name_are_two(asked: Asked) -> None:
    asker = asked.asker((KEY, says(500, "no")), (SAME_NAME, signs(SAME_NAME)))
    assert not asker.look()
    assert not asker.look()
    assert len(asked.reports) == 1
    assert (asked.cosigned(KEY), asked.cosigned(SAME_NAME)) == (False, True)
    assert asked.asker((KEY, signs(KEY)), (SAME_NAME, signs(SAME_NAME))).look()
    assert (asked.cosigned(KEY), asked.cosigned(SAME_NAME)) == (True, True)


def test_an_exit_status_says_whether_the_witness_has_cosigned(asked: Asked) -> None:
    for answer, status in ((says(500, "no"), 1), (signs(KEY), 0)):
        witness = f"{KEY.verifier} {asked.serving(answer)}"
        done = call(asked.folder, "cosign", "--once", FLIGHTCHAIN_WITNESSES=witness)
        assert (done.returncode, asked.cosigned(KEY)) == (status, status == 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("²\n", "it answers with status 409: ²"),
        ("9" * 5000, "it answers with status 409: 999"),
        ("-1", "it answers with status 409: -1"),
        ("٣", "it answers with status 409: ٣"),
        ("", "it answers with status 409"),
        (
            "the log has signed other 5 blocks\n",
            "it answers with status 409: the log has signed other 5",
        ),
        ("7\n", "it has cosigned 7 blocks, more than the 5 that there are"),
    ],
)
def test_a_conflict_that_names_no_size_is_told_and_the_others_are_asked(
    asked: Asked, text: str, reason: str
) -> None:
    asker = asked.asker((SAME_NAME, says(409, text)), (KEY, signs(KEY)))
    assert not asker.look()
    assert asked.cosigned(KEY)
    (report,) = asked.reports
    assert reason in report
    assert len(report) < 400


def test_a_witness_that_cosigns_again_is_reported_once(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cosign_requests, "AGAIN_AFTER_S", 0)
    refusals, signing = [(500, "no")], signs(KEY)
    asker = asked.asker((KEY, lambda text: refusals.pop() if refusals else signing(text)))
    assert [asker.look() for _ in range(3)] == [False, True, True]
    refused, again = asked.reports
    assert "does not cosign" in refused
    assert again.endswith("cosigns again")


def test_a_name_that_did_not_sign_is_not_taken_from_an_answer(asked: Asked) -> None:
    def answer(text: str) -> tuple[int, str]:
        good = KEY.cosignature(text, int(time.time()))
        other = Signature("reputable.example/witness", good.key_id, good.signature)
        return 200, f"{other}\n{good}\n"

    assert asked.asker((KEY, answer)).look()
    note = notes.parse((asked.folder / "cosigned").read_bytes())
    assert [signature.name for signature in note.signatures][1:] == [NAME]
    assert asked.cosigned(KEY)


@pytest.mark.parametrize("off_s", [2**62, 2 * 86_400, -2 * 86_400])
def test_a_signature_of_another_day_is_refused(asked: Asked, off_s: int) -> None:
    assert not asked.asker((KEY, signs(KEY, off_s))).look()
    (report,) = asked.reports
    assert "it says that it signed" in report
    assert not asked.cosigned(KEY)


def test_a_clock_that_stays_wrong_is_told_once(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cosign_requests, "AGAIN_AFTER_S", 0)
    seconds = int(time.time()) - 10 * 86_400
    asker = asked.asker((KEY, lambda text: (200, f"{KEY.cosignature(text, seconds)}\n")))
    asker.look()
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3)
    asker.look()
    (report,) = asked.reports
    assert "10 days ago" in report


@pytest.mark.parametrize("text", ["", "nonsense", "— w ä\n", "— w AAAAAAAA"])
def test_an_answer_that_is_no_signature_is_told(asked: Asked, text: str) -> None:
    assert not asked.asker((SAME_NAME, says(200, text)), (KEY, signs(KEY))).look()
    assert asked.cosigned(KEY)
    assert len(asked.reports) == 1


def test_what_a_witness_says_cannot_write_on_the_terminal(asked: Asked) -> None:
    asked.asker((KEY, says(500, "\x1b[2J\x1b[Hall is fine\u202e\nline\n"))).look()
    (report,) = asked.reports
    assert report.isprintable()
    assert r"\x1b[2J\x1b[Hall is fine\u202e\nline" in report


def test_witnesses_are_asked_again_when_the_log_has_another_key(asked: Asked) -> None:
    asker = asked.asker((KEY, signs(KEY)))
    assert asker.look()
    rotate(asked.folder)
    assert asker.look()
    newest = (asked.folder / "checkpoint").read_bytes()
    assert (asked.folder / "cosigned").read_bytes().startswith(newest)


def test_who_knows_more_blocks_than_there_are_is_asked_what_it_knows(
    asked: Asked, folder: Path
) -> None:
    """After the chain was put back below a service that goes on."""
    olds: list[bytes] = []

    def reply(path: str, body: bytes) -> tuple[int, bytes]:
        olds.append(body.split(b"\n")[0])
        text = notes.parse(body.partition(b"\n\n")[2]).text
        return 200, f"{KEY.cosignature(text, int(time.time()))}\n".encode()

    with answering(reply) as url:
        address = WitnessAddress(KEY.verifier, url)
        asker = Asker(folder, asked.tree, [address], asked.reports.append)
        log = log_key(folder)
        for size in (5, 4):
            (folder / "checkpoint").write_bytes(signed(log, size, asked.tree.root(size)))
            assert asker.look()
    assert olds == [b"old 0", b"old 0"]


def test_a_checkpoint_that_is_damaged_is_waited_for(asked: Asked) -> None:
    note = str(log_key(asked.folder).note("nonsense\n"))
    (asked.folder / "checkpoint").write_text(note)
    assert not asked.asker((KEY, signs(KEY))).look()
