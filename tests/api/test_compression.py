"""Compressed answers: the encoding that the client rates highest, and the same content."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from flask.testing import FlaskClient

from backend.api import block_routes
from backend.api.encodings import encoding_for
from backend.ledger.ledger import Ledger
from tests.api.worlds import World, client_of, settings_for, world_in
from tests.cases import each_of

UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
LARGE = ["/blocks/1", "/blocks/1?limit=30", "/blocks?limit=20", "/transactions_pages"]
DAYS = "INITIAL_DATE=2015-01-01&FINAL_DATE=2015-12-31"

ACCEPTED = [
    (None, ""),
    ("", ""),
    ("gzip", "gzip"),
    ("zstd", "zstd"),
    ("GZIP", "gzip"),
    ("gzip, deflate", "gzip"),
    ("gzip, deflate, br, zstd", "zstd"),
    ("gzip;q=1.0, zstd;q=0.5", "gzip"),
    ("zstd;q=0, gzip", "gzip"),
    ("gzip;q=0", ""),
    ("gzip;q=0, *", "zstd"),
    ("zstd;q=0, *;q=0.3", "gzip"),
    ("*;q=0", ""),
    ("*", "zstd"),
    ("identity", ""),
    ("identity;q=0.5, gzip;q=0.2", ""),
    ("identity;q=0.2, gzip;q=0.5", "gzip"),
    ("identity;q=0, gzip;q=0.1", "gzip"),
    ("br, deflate", ""),
    ("gzip ; q=0.4 , zstd ; q=0.3", "gzip"),
    ("gzip;q=nonsense", ""),
    ("gzip;q=nan", ""),
    (",;,=;q=", ""),
]


@each_of(("accepted", "encoding"), ACCEPTED)
def test_the_encoding_is_what_the_client_rates_highest(
    client: FlaskClient, accepted: str | None, encoding: str
) -> None:
    headers = {} if accepted is None else {"Accept-Encoding": accepted}
    assert encoding_for({"HTTP_ACCEPT_ENCODING": accepted}) == encoding
    response = client.get("/blocks/1", headers=headers)
    assert response.headers.get("Content-Encoding", "") == encoding
    assert response.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("encoding", UNPACK)
@pytest.mark.parametrize("path", LARGE)
def test_an_encoded_answer_says_the_same(client: FlaskClient, path: str, encoding: str) -> None:
    plain = client.get(path)
    for _ in range(2):  # the second may be a kept one
        packed = client.get(path, headers={"Accept-Encoding": encoding})
        data = packed.get_data()
        assert UNPACK[encoding](data) == plain.get_data()
        assert int(packed.headers["Content-Length"]) == len(data) < len(plain.get_data()) / 2
        assert packed.headers["Content-Type"] == plain.headers["Content-Type"]
        assert packed.headers["Cache-Control"] == plain.headers["Cache-Control"]
        assert packed.headers["ETag"] == f'{plain.headers["ETag"][:-1]}-{encoding}"'
    head = client.head(path, headers={"Accept-Encoding": encoding})
    assert (head.headers["ETag"], head.headers["Content-Length"]) == (
        packed.headers["ETag"],
        packed.headers["Content-Length"],
    )


@pytest.mark.parametrize("path", LARGE)
def test_any_form_that_the_client_accepts_is_good_enough(client: FlaskClient, path: str) -> None:
    plain, gzipped, zstd = (
        client.get(path, headers={"Accept-Encoding": accepted}).headers["ETag"]
        for accepted in ("identity", "gzip", "zstd")
    )
    assert len({plain, gzipped, zstd}) == 3
    for accepted, etag, status in (
        ("gzip", gzipped, 304),
        ("gzip", plain, 304),
        ("gzip", zstd, 200),
        ("identity", gzipped, 200),
        ("gzip, zstd", zstd, 304),
    ):
        headers = {"Accept-Encoding": accepted, "If-None-Match": etag}
        response = client.get(path, headers=headers)
        assert response.status_code == status, (accepted, etag)
        if status == 304:
            assert (response.headers["ETag"], response.headers["Vary"]) == (etag, "Accept-Encoding")


def test_a_small_answer_goes_out_as_it_is(client: FlaskClient) -> None:
    for path in ("/health/live", "/tip", f"/average_delays?OP_CARRIER_AIRLINE_ID=1&{DAYS}"):
        response = client.get(path, headers={"Accept-Encoding": "gzip, zstd"})
        assert "Content-Encoding" not in response.headers
        assert "Vary" not in response.headers


@pytest.mark.parametrize("encoding", UNPACK)
def test_an_answer_at_the_tip_is_compressed_once(
    client: FlaskClient, world: World, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [t["OP_CARRIER_FL_NUM"] for t in world.transactions if t["FL_DATE"] == "2015-01-02"]
    number = max(numbers, key=numbers.count)
    path = f"/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE=2015-01-02"
    plain = client.get(path)
    assert len(plain.get_data()) > 1024
    headers = {"Accept-Encoding": encoding}
    first = client.get(path, headers=headers)
    assert UNPACK[encoding](first.get_data()) == plain.get_data()
    monkeypatch.setattr("backend.api.question_answers.compressed", _never)
    again = client.get(path, headers=headers)
    assert again.get_data() == first.get_data()
    again = client.get(path, headers={**headers, "If-None-Match": first.headers["ETag"]})
    assert again.status_code == 304


def _never(*arguments: object, **more: object) -> bytes:
    raise AssertionError("it was done once more")


def test_a_whole_block_is_read_and_compressed_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Accept-Encoding": "gzip"}
    with client_of(world.settings) as client:
        part = client.get("/blocks/4?limit=40", headers=headers).get_data()
        first = client.get("/blocks/4", headers=headers).get_data()
        monkeypatch.setattr(block_routes, "compressed", _never)
        monkeypatch.setattr(Ledger, "encoded_block", _never)
        assert client.get("/blocks/4", headers=headers).get_data() == first != part


def test_without_room_nothing_is_kept_and_everything_answers(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    settings = settings_for(tmp_path, block_bodies_bytes=0, answer_cache_bytes=0)
    with client_of(settings) as client:
        for _ in range(2):
            packed = client.get("/blocks/4", headers={"Accept-Encoding": "zstd"})
            assert UNPACK["zstd"](packed.get_data()) == client.get("/blocks/4").get_data()
    assert world.tip > 4
