"""By which names a service may be asked, and which addresses give a token away."""

import logging
from typing import Any

import pytest

from backend.serving.host_policy import (
    HIDDEN,
    MOST_KNOWN,
    SECRET_NAMES,
    HostPolicy,
    hide_query,
    hide_secrets,
    names_in,
)
from tests.cases import each_of

MACHINE = "Raspberry"

LOOPBACK = [
    *("localhost", "LocalHost", "localhost.", "localhost:8000", "localhost:", "127.0.0.1"),
    *("127.0.0.1:1", "127.3.2.1:65535", "[::1]", "[::1]:8000", "[0:0:0:0:0:0:0:1]:8000"),
]
FOREIGN = [
    *("evil.example", "evil.example:8000", "localhost.evil.example", "evil-localhost"),
    *("xlocalhost", "127.0.0.1.evil.example", "127.0.0.1.nip.io:8000", "0.0.0.0:8000"),
    *("[::]:8000", "10.0.0.5:8000", "[fe80::1]:8000", "raspberry", "raspberry.local:8000"),
    *("2130706433", "0x7f.1", "127.1", "127.0.0.01"),
]
MALFORMED = [
    *("", " ", "localhost, evil.example", "localhost,localhost", "localhost:8000:8000"),
    *("localhost:x", "localhost:123456", "user@localhost", "localhost/", "http://localhost"),
    *("localhost evil.example", "localhost\tevil.example", "[::1", "::1", "loc\xe4lhost"),
]


def environ(host: str | None, query: str = "", **more: str) -> dict[str, Any]:
    variables = {"REQUEST_METHOD": "GET", "PATH_INFO": "/tip", "SERVER_PROTOCOL": "HTTP/1.1"}
    variables |= {"QUERY_STRING": query, **more}
    return variables if host is None else {**variables, "HTTP_HOST": host}


def at(listens_at: str = "127.0.0.1", more: str = "localhost") -> HostPolicy:
    return HostPolicy(listens_at, more, MACHINE)


def status(policy: HostPolicy, host: str | None, **more: str) -> int:
    refusal = policy.refusal(environ(host, **more))
    return 200 if refusal is None else refusal.status


# --- names ---------------------------------------------------------------------------------------


@each_of("listens_at", ["127.0.0.1", "localhost", "::1", "127.0.0.5"])
def test_on_loopback_only_names_of_loopback_are_ours(listens_at: str) -> None:
    policy = at(listens_at)
    for _ in range(2):  # a second time from memory
        assert {host: status(policy, host) for host in LOOPBACK} == dict.fromkeys(LOOPBACK, 200)
        assert {host: status(policy, host) for host in FOREIGN} == dict.fromkeys(FOREIGN, 421)
        assert {host: status(policy, host) for host in MALFORMED} == dict.fromkeys(MALFORMED, 400)


def test_a_certain_address_is_a_name_of_its_own_and_so_is_the_machine() -> None:
    policy = at("10.0.0.5")
    ours = ["10.0.0.5", "10.0.0.5:8000", "raspberry", "RASPBERRY:80", "raspberry.local:8000"]
    foreign = ["10.0.0.6", "evil.example", "[::2]", "raspberry.evil.example"]
    assert {host: status(policy, host) for host in [*ours, *LOOPBACK]} == dict.fromkeys(
        [*ours, *LOOPBACK], 200
    )
    assert {host: status(policy, host) for host in foreign} == dict.fromkeys(foreign, 421)
    assert status(at("fd00::5"), "[fd00:0::5]:8000") == 200
    assert status(at("fd00::5"), "[fd00::6]:8000") == 421


def test_a_name_to_listen_at_is_a_name_to_ask_by() -> None:
    assert status(at("pi.example"), "PI.example:8000") == 200
    assert status(at("pi.example"), "10.0.0.5") == 421


@each_of("listens_at", ["0.0.0.0", "::"])
def test_at_all_addresses_every_address_is_ours_and_no_other_name(listens_at: str) -> None:
    policy = at(listens_at)
    ours = [*LOOPBACK, "10.0.0.5:8000", "8.8.8.8", "[fe80::1]:8000", "raspberry", "raspberry.local"]
    assert {host: status(policy, host) for host in ours} == dict.fromkeys(ours, 200)
    for host in ("evil.example", "127.0.0.1.nip.io", "10.0.0.5.evil.example"):
        assert status(policy, host) == 421


def test_a_machine_that_is_called_local_already_has_both_names() -> None:
    policy = HostPolicy("0.0.0.0", "localhost", "pi.local")
    assert [status(policy, name) for name in ("pi.local", "pi.local.local")] == [200, 421]


def test_the_setting_adds_names_and_addresses() -> None:
    policy = at(more=" Flights.example.org, 10.0.0.5,fd00::5 ,[fd00::6]")
    for host in ("flights.example.org", "flights.example.org.:443", "10.0.0.5", "[fd00::5]:80"):
        assert status(policy, host) == 200
    assert status(policy, "[fd00::6]") == 200
    assert status(policy, "evil.example.org") == 421
    assert status(policy, "localhost") == 200
    everything = at(more="flights.example.org,*")
    assert {status(everything, host) for host in [*FOREIGN, *LOOPBACK]} == {200}
    assert {status(everything, host) for host in MALFORMED} == {400}


@each_of("text", ["", "a,", "a b", "http://a", "a:80", "*.a", "a/b", "ä", "a,,b"])
def test_a_list_with_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a name or address"):
        names_in(text)


def test_without_a_host_only_clients_older_than_it_are_answered() -> None:
    policy = at()
    assert status(policy, None) == 400
    assert status(policy, None, SERVER_PROTOCOL="HTTP/1.0") == 200
    assert status(policy, "evil.example", SERVER_PROTOCOL="HTTP/1.0") == 421


def test_the_memory_of_good_headers_is_bounded_and_holds_no_bad_one() -> None:
    policy = at()
    for port in range(3 * MOST_KNOWN):
        assert status(policy, f"localhost:{port}") == 200
        assert status(policy, f"evil.example:{port}") == 421
    assert len(policy._known) == MOST_KNOWN
    assert not any("evil" in known for known in policy._known)


def test_a_refusal_names_the_host_cut_and_escaped_and_the_setting() -> None:
    refusal = at().refusal(environ("evil." + "x" * 500))
    assert refusal is not None
    assert "FLIGHTCHAIN_HOSTS" in refusal.detail
    assert len(refusal.detail) < 250


# --- tokens in addresses -------------------------------------------------------------------------

SECRET = "kJ8sW_very-secret"
GIVES_AWAY = [
    *(f"{name}={SECRET}" for name in sorted(SECRET_NAMES)),
    f"TOKEN={SECRET}",
    f"Access_Token={SECRET}",
    f"mode=sync&token={SECRET}",
    f"token={SECRET}&mode=sync",
    f"to%6ben={SECRET}",
    f"%61uthorization=Bearer%20{SECRET}",
    f"+token={SECRET}",
    "token",
    "token=",
]
HARMLESS = ["mode=sync", "q=token", "tokens=1", "field=access_token", "ORIGIN_CITY_NAME=New%20York"]


@each_of("query", GIVES_AWAY)
def test_a_token_in_an_address_is_refused_without_being_repeated(query: str) -> None:
    refusal = at().refusal(environ("localhost", query))
    assert refusal is not None
    assert refusal.status == 400
    assert "Authorization: Bearer" in refusal.detail
    assert SECRET not in repr(refusal)


@each_of("query", HARMLESS)
def test_other_parameters_pass(query: str) -> None:
    assert at().refusal(environ("localhost", query)) is None


def test_whoever_logs_the_request_later_finds_no_token() -> None:
    asked = environ("evil.example", f"token={SECRET}", RAW_URI=f"/tip?token={SECRET}")
    hide_query(asked)
    assert asked["QUERY_STRING"] == HIDDEN
    assert SECRET not in repr(asked)


def test_lines_of_a_log_lose_tokens_and_nothing_else() -> None:
    asked = f"'GET /add?a=1&Token={SECRET}&b=2 x' access_token={SECRET}"
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "Invalid line: %s", (asked,), None)
    assert hide_secrets(record)
    shown = "Invalid line: 'GET /add?a=1&Token=(hidden)&b=2 x' access_token=(hidden)"
    assert record.getMessage() == shown
