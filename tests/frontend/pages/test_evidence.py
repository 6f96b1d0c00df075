"""Files of proofs at the pages' addresses, and citations of answers."""

import errno
import gzip
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from threading import Event
from urllib.parse import parse_qsl, urlencode, urlsplit
from zipfile import ZipFile

import pytest
from flask.testing import FlaskClient

from frontend.backend_client import PIECE_BYTES
from frontend.errors import Refused
from frontend.evidence import Citation
from tests.api.processes import Service
from tests.api.worlds import World
from tests.cases import each_of
from tests.frontend.pages.reading import link, pages_over, source, text
from tests.http_servers import Handler, served_by

DELAYS = "OP_CARRIER_AIRLINE_ID=19393&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-08"
ROUTE = "ORIGIN_CITY_NAME=Los+Angeles,+CA&DEST_CITY_NAME=Seattle,+WA"
FILES = [
    "/transactions/700/proof",
    "/transactions/700/proof?tip=20",
    "/proofs/consistency?from=7",
    "/log/key",
    "/log/checkpoint",
    f"/average_delays/proof?{DELAYS}",
    f"/flight_counter/proof?{ROUTE}&INITIAL_DATE=2015-01-01&FINAL_DATE=2015-01-08",
    "/filter_transactions/proof?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-05",
]
QUESTIONS = [
    f"/average_delays?{DELAYS}",
    f"/compare?what=carrier&item=19393&item=19930&{DELAYS.partition('&')[2]}",
    f"/flight_counter?{ROUTE}",
    "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2015-01-05",
]
every_question = pytest.mark.parametrize("question", QUESTIONS)

# --- files


@each_of("path", FILES)
def test_a_file_is_that_of_the_service(pages: FlaskClient, service: Service, path: str) -> None:
    theirs = service.get(path)
    ours = pages.get(path)
    assert ours.get_data() == theirs.content
    for name in ("Content-Type", "Cache-Control"):
        assert ours.headers[name] == theirs.headers[name]
    zipped = pages.get(path, headers={"Accept-Encoding": "gzip"})
    if zipped.headers.get("Content-Encoding"):
        assert gzip.decompress(zipped.get_data()) == theirs.content
        assert len(zipped.get_data()) < len(theirs.content)
    assert pages.head(path).get_data() == b""


def test_a_proof_is_saved_under_the_name_that_the_page_tells(pages: FlaskClient) -> None:
    for page, file in (("/transactions/700", FILES[0]), (QUESTIONS[0], FILES[5])):
        saved = pages.head(file).headers["Content-Disposition"]
        (name,) = re.findall(r'filename="([^"]+)"', saved)
        assert f"verify.py {name} --key log.vkey" in text(pages, page)
        assert "says which proof of consistency you need" in text(pages, page)


@every_question
def test_evidence_is_a_zip_file(pages: FlaskClient, service: Service, question: str) -> None:
    address = link(source(pages, question), "Evidence")
    answer = pages.get(address)
    assert answer.get_data() == service.get(address).content
    assert answer.headers["Content-Disposition"].endswith('.zip"')
    with ZipFile(io.BytesIO(answer.get_data())) as archive:
        assert "verify.py" in archive.namelist()
        assert archive.testzip() is None


@each_of(
    ("path", "status"),
    [
        ("/transactions/999999/proof", 404),
        ("/transactions/7/proof?tip=x", 400),
        ("/proofs/consistency", 400),
        ("/average_delays/proof", 400),
        ("/average_delays/proof?as_of=999", 400),
        (f"/average_delays/proof?{DELAYS}&as_of=999", 404),
        ("/blocks/proof", 404),
    ],
)
def test_what_cannot_be_proved_has_a_page(pages: FlaskClient, path: str, status: int) -> None:
    assert "<h1>" in pages.get(path).text
    assert pages.get(path).status_code == status


def test_files_say_that_the_backend_is_away(lonely_pages: FlaskClient) -> None:
    for path in FILES:
        assert "The ledger does not answer" in text(lonely_pages, path, 503)


def sending(pieces: Iterable[bytes], size: int) -> AbstractContextManager[str]:
    """The address of a service that promises `size` bytes, and sends these."""

    class Sending(Handler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)

    return served_by(Sending)


def test_a_file_that_breaks_off_does_not_look_finished() -> None:
    with sending([b'{"half":'], 100) as url:
        pages = pages_over(url)
        with pytest.raises(ConnectionResetError) as caught:
            pages.get("/transactions/7/proof", buffered=True)
        assert caught.value.errno == errno.ECONNRESET


def test_a_file_is_passed_on_before_all_of_it_has_come() -> None:
    first, rest = b"1" * PIECE_BYTES, b"2" * PIECE_BYTES
    has_come = Event()

    def pieces() -> Iterator[bytes]:
        yield first
        assert has_come.wait(60)
        yield rest

    with sending(pieces(), len(first + rest)) as url:
        pages = pages_over(url)
        answer = pages.get("/average_delays/proof").iter_encoded()
        assert next(answer) == first
        has_come.set()
        assert b"".join(answer) == rest


# --- citations


def cited(pages: FlaskClient, question: str) -> str:
    address = link(source(pages, question), "Cite this")
    assert address
    return address


def changed(address: str, **parameters: str) -> str:
    parts = urlsplit(address)
    pairs = [(name, parameters.get(name, value)) for name, value in parse_qsl(parts.query)]
    return f"{parts.path}?{urlencode([(name, value) for name, value in pairs if value])}"


@every_question
def test_a_citation_says_unchanged(pages: FlaskClient, world: World, question: str) -> None:
    address = cited(pages, question)
    assert f"tip_hash={world.hashes[world.tip]}" in address
    page = text(pages, address)
    assert "Unchanged." in page
    assert f"Block {world.tip} still has the hash that this link cites" in page
    assert cited(pages, address) == address
    shouted = {name: value.upper() for name, value in parse_qsl(urlsplit(address).query)}
    hashes = {name: shouted[name] for name in ("tip_hash", "digest")}
    assert "Unchanged." in text(pages, changed(address, **hashes))
    assert "Unchanged." not in text(pages, question)


def test_a_citation_of_several_carriers_leads_to_their_comparison(pages: FlaskClient) -> None:
    """Pages of delays had several carriers once, and such links are kept."""
    address = cited(pages, f"{QUESTIONS[1]}&as_of=20")
    evidence = address.partition("&as_of")[2]
    old = f"/average_delays?{DELAYS}&OP_CARRIER_AIRLINE_ID=19930&as_of{evidence}"
    leads_to = pages.get(old).headers["Location"]
    assert sorted(parse_qsl(leads_to)) == sorted(parse_qsl(address))
    assert "Unchanged." in text(pages, leads_to)


def test_a_citation_stays_the_same_when_blocks_are_added(pages: FlaskClient, world: World) -> None:
    """As of an older block, the page cites what it would have cited then."""
    address = cited(pages, f"{QUESTIONS[0]}&as_of=20")
    assert f"as_of=20&tip_hash={world.hashes[20]}" in address
    assert address != cited(pages, QUESTIONS[0])
    assert "Unchanged." in text(pages, address)


@every_question
def test_a_citation_says_what_differs(pages: FlaskClient, world: World, question: str) -> None:
    address = cited(pages, question)
    other_answer = text(pages, changed(address, digest="0" * 16))
    assert "Changed." in other_answer
    assert "has the hash that this link cites, but the answer differs" in other_answer
    other_chain = text(pages, changed(address, tip_hash="f" * 64))
    assert "this is a different chain; the answer is the same." in other_chain
    neither = text(pages, changed(address, tip_hash="f" * 64, digest="0" * 16))
    assert "the answer is different, too." in neither
    gone = text(pages, changed(address, as_of="900"))
    assert "counted up to block 900, which this ledger does not have" in gone
    assert f"it ends at block {world.tip}, and so does this answer." in gone


def test_a_refusal_for_another_reason_does_not_say_that_the_block_is_missing() -> None:
    given = {"as_of": "7", "tip_hash": "f" * 64, "digest": "0" * 16}

    def ask(values: dict[str, str]) -> str:
        if "as_of" in values:
            raise Refused({"detail": "try again later"}, 503)
        return "an answer up to another block"

    with pytest.raises(Refused, match="try again later"):
        Citation(given).or_newest(ask)(given)


@each_of(
    "wrong",
    [
        {"digest": "0"},
        {"digest": "G" * 16},
        {"tip_hash": "abc"},
        {"as_of": "-1"},
        {"as_of": "\u0661"},
        {"digest": ""},
        {"tip_hash": ""},
        {"as_of": ""},
    ],
)
@every_question
def test_a_bad_citation_is_refused(
    pages: FlaskClient, question: str, wrong: dict[str, str]
) -> None:
    answer = pages.get(changed(cited(pages, question), **wrong))
    assert answer.status_code == 400
    assert f"The citation&#39;s {next(iter(wrong))} " in answer.text


@every_question
def test_the_twins_of_a_citation_are_those_of_its_answer(pages: FlaskClient, question: str) -> None:
    address = cited(pages, question)
    path, _, query = address.partition("?")
    for form in ("json", "csv"):
        assert pages.get(f"{path}.{form}?{query}").status_code == 200
    before = pages.get(f"{path}.json?{query}").get_json()
    assert before == pages.get(f"{path}.json?{query.partition('&tip_hash')[0]}").get_json()


@each_of(("question", "carriers"), [(QUESTIONS[0], [19393]), (QUESTIONS[1], [19393, 19930])])
def test_the_digest_is_of_the_answers_that_the_proofs_have(
    pages: FlaskClient, question: str, carriers: list[int]
) -> None:
    files = [FILES[5].replace("19393", str(carrier)) for carrier in carriers]
    proofs = [json.loads(pages.get(file).get_data().splitlines()[0]) for file in files]
    answers = [proof["answer"] for proof in proofs]
    canonical = json.dumps(answers, sort_keys=True, separators=(",", ":"))
    digest = sha256(canonical.encode()).hexdigest()[:16]
    assert dict(parse_qsl(cited(pages, question)))["digest"] == digest


# --- what the pages say without scripts


def test_pages_claim_no_more_than_the_service_says(pages: FlaskClient) -> None:
    for address in ("/transactions/700", "/blocks/17", *QUESTIONS):
        page = text(pages, address)
        assert "This browser has not checked it." in page
        assert "Verified in this browser" not in page
        assert "itself" not in page
