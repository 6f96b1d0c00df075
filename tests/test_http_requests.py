"""Requests to other programs: one limit of time for the whole answer, one of size, no proxies."""

import datetime
import gc
import socket
import ssl
import time
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from backend.base.http_requests import MOST_BYTES, Answer, NoAnswer, ask
from tests.api.processes import free_port
from tests.http_servers import Handler, Serve, answering, saying, served_by

HEAD = b"HTTP/1.0 200 OK\r\n\r\n"


def dripping(first: bytes) -> Serve:
    """Send something, and then a byte again and again, so that no single reading takes long."""

    def serve(connection: socket.socket) -> None:
        connection.sendall(first)
        for _ in range(400):
            connection.sendall(b"x")
            time.sleep(0.05)

    return serve


def test_an_answer_is_a_status_and_a_body_also_if_it_is_an_error() -> None:
    with answering(saying(HEAD + "grün".encode())) as url:
        answer = ask(url)
        assert (answer, answer.text) == (Answer(200, "grün".encode()), "grün")
    with answering(saying(b"HTTP/1.0 409 Conflict\r\n\r\n5\n")) as url:
        assert ask(url, b"body") == Answer(409, b"5\n")


@pytest.mark.parametrize(("path", "asked"), [("", "/"), ("/blocks/3?limit=1", "/blocks/3?limit=1")])
def test_a_path_is_asked_with_its_query(path: str, asked: str) -> None:
    def say(connection: socket.socket) -> None:
        line = connection.recv(1000).splitlines()[0]
        connection.sendall(HEAD + line)

    with answering(say, is_read=False) as url:
        assert ask(f"{url}{path}").text == f"GET {asked} HTTP/1.1"


def test_what_is_sent_says_what_it_is() -> None:
    class Typed(Handler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.headers["Content-Type"].encode())

    with served_by(Typed) as url:
        assert ask(url, b"size 5\n").text == "text/plain"


@pytest.mark.parametrize(
    "first",
    [HEAD, b"HTTP/1.0 200 OK\r\n", b""],
    ids=["body", "head", "all"],
)
def test_an_answer_that_drips_is_given_up_in_time(first: bytes) -> None:
    with answering(dripping(first)) as url:
        started = time.monotonic()
        with pytest.raises(NoAnswer, match="timed out"):
            ask(url, within_s=0.3)
        assert time.monotonic() - started < 15  # on a busy machine
        gc.collect()  # which warns of a connection that was left open


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_who_takes_a_connection_and_says_nothing_is_given_up_in_time(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        started = time.monotonic()
        with pytest.raises(NoAnswer, match="timed out"):
            ask(f"{scheme}://127.0.0.1:{listening.getsockname()[1]}", within_s=0.3)
        assert time.monotonic() - started < 15  # on a busy machine


def test_no_time_is_no_answer() -> None:
    with answering(saying(HEAD)) as url, pytest.raises(NoAnswer, match="timed out"):
        ask(url, within_s=-1)


@pytest.mark.parametrize("body", [None, b"body"])
@pytest.mark.parametrize("location", ["/there", "http://127.0.0.9/there"])
def test_a_redirection_is_not_followed_but_named(location: str, body: bytes | None) -> None:
    head = f"HTTP/1.0 302 Found\r\nLocation: {location}\r\n\r\n".encode()
    with (
        answering(saying(head)) as url,
        pytest.raises(
            NoAnswer, match=r"it redirects to http://127\.0\.0\..*/there; use that address"
        ),
    ):
        ask(url, body)


def test_an_answer_that_is_too_long_is_none() -> None:
    with answering(saying(HEAD + b"x" * MOST_BYTES)) as url:
        assert len(ask(url).body) == MOST_BYTES
    longer = saying(HEAD + b"x" * (MOST_BYTES + 1))
    with answering(longer) as url, pytest.raises(NoAnswer, match="sends more than 65536 bytes"):
        ask(url)


@pytest.mark.parametrize(
    "url",
    [
        *("nonsense", "http://", "http://x:y/", "ftp://127.0.0.1/x", "file:///etc/hostname"),
        f"http://{'x' * 300}/",
        "http://127.0.0.1:1/",
    ],
)
def test_what_cannot_be_asked_is_told(url: str) -> None:
    with pytest.raises(NoAnswer, match=r"cannot be read: [^\[]"):  # and no [Errno 111]
        ask(url)


def test_what_is_no_http_is_told() -> None:
    with answering(saying(b"nonsense\r\n\r\n")) as url, pytest.raises(NoAnswer):
        ask(url)


def test_the_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with answering(saying(HEAD + b"here")) as url:
        assert ask(url).body == b"here"


# --- HTTPS --------------------------------------------------------------------------------------


def certificate(folder: Path) -> Path:
    """A file with a key and a certificate of this machine, which it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + signed.public_bytes(Encoding.PEM))
    return path


def test_https_is_spoken_with_those_whose_certificate_is_good_and_has_the_same_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)

    def within(serve: Serve) -> Serve:
        def secured(connection: socket.socket) -> None:
            with context.wrap_socket(connection, server_side=True) as secure:
                secure.recv(65536)
                serve(secure)

        return secured

    with answering(within(saying(HEAD + b"here")), is_read=False) as url:
        secure = url.replace("http:", "https:")
        with pytest.raises(NoAnswer, match="certificate"):
            ask(secure)
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        assert ask(secure).body == b"here"
    with answering(within(dripping(HEAD)), is_read=False) as url:
        started = time.monotonic()
        with pytest.raises(NoAnswer, match="timed out"):
            ask(url.replace("http:", "https:"), within_s=0.5)
        assert time.monotonic() - started < 15  # on a busy machine
