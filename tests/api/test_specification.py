"""/openapi.json: it is OpenAPI, it is complete, its examples work, and it says what is checked."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from backend.api import Service
from backend.api.specification import path_of
from backend.base.settings import Settings
from backend.base.version import VERSION
from tests.api.held import Json, described
from tests.api.worlds import client_of, good, problem, settings_for, world_in
from tests.cases import each_of


class Described(NamedTuple):
    """One method of one path in the document."""

    method: str
    path: str
    operation: Json

    def parameters(self, place: str = "query") -> list[Json]:
        shared = described()["components"]["parameters"]
        parameters = [
            shared[parameter["$ref"].rpartition("/")[2]] if "$ref" in parameter else parameter
            for parameter in self.operation["parameters"]
        ]
        return [parameter for parameter in parameters if parameter["in"] == place]

    def examples(self) -> list[dict[str, str]]:
        """Queries made of the examples: what is needed, with each other one, and with all."""
        needed = {each["name"]: each["example"] for each in self.parameters() if each["required"]}
        others = [
            {each["name"]: each["example"]} for each in self.parameters() if not each["required"]
        ]
        everything = {each["name"]: each["example"] for each in self.parameters()}
        queries = [needed, *({**needed, **other} for other in others), everything]
        return [query for at, query in enumerate(queries) if query not in queries[:at]]

    def brief(self, query: dict[str, str] | None = None) -> dict[str, Any]:
        """A query with what is needed; a proof is as of an early block: one of all takes long."""
        early = {each["name"]: 9 for each in self.parameters() if each["name"] == "as_of"}
        query = {**self.examples()[0], **(query or {})}
        return {**query, **(early if "proof" in self.path else {})}

    def target(self, query: dict[str, Any]) -> str:
        places = {parameter["name"]: parameter["example"] for parameter in self.parameters("path")}
        path = self.path.format(**places)
        return f"{path}?{urlencode(query)}" if query else path

    def bodies(self) -> Iterator[tuple[str, Any]]:
        content = self.operation.get("requestBody", {"content": {}})["content"]
        yield from ((mimetype, media["example"]) for mimetype, media in content.items())

    def ask(
        self, client: FlaskClient, query: dict[str, Any], headers: dict[str, str] | None = None
    ) -> TestResponse:
        """The answer to `query` with the first of the bodies; read to its end."""
        for mimetype, body in self.bodies():
            return self.send(client, query, mimetype, body, headers)
        return client.open(self.target(query), method=self.method, headers=headers, buffered=True)

    def send(
        self,
        client: FlaskClient,
        query: dict[str, Any],
        mimetype: str,
        body: Any,
        headers: dict[str, str] | None = None,
    ) -> TestResponse:
        sent: dict[str, Any] = {"json": body} if mimetype == "application/json" else {"data": body}
        target = self.target(query)
        return client.post(target, **sent, content_type=mimetype, headers=headers)


OPERATIONS = [
    Described(method.upper(), path, operation)
    for path, methods in described()["paths"].items()
    for method, operation in methods.items()
]
READS = [call for call in OPERATIONS if call.method == "GET"]
OF_A_FILE = [call for call in OPERATIONS if "{IMPORT_ID}" in call.path]
WRITES = [call for call in OPERATIONS if call.method == "POST" and call not in OF_A_FILE]


# --- the document --------------------------------------------------------------------------------


def test_it_is_openapi_3_1(client: FlaskClient) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator  # other tests need not wait for it

    answer = good(client.get("/openapi.json"))
    OpenAPIV31SpecValidator(answer).validate()
    assert answer == described()
    assert answer["openapi"].startswith("3.1.")
    assert (answer["info"]["title"], answer["info"]["version"]) == ("Flightchain", VERSION)
    assert answer["servers"] == [{"url": "/"}]


def test_names_suit_generators_and_every_tag_is_described() -> None:
    names = [call.operation["operationId"] for call in OPERATIONS]
    assert len({*names}) == len(names)
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) for name in names)
    assert {"filter_transactions", "average_delays", "flight_counter"} < {*names}
    tags = [tag["name"] for tag in described()["tags"]]
    assert sorted({call.operation["tags"][0] for call in OPERATIONS}) == sorted(tags)


SMALL = {"from", "p90", "status", "to"}


def test_generated_clients_have_types_that_hold_each_value() -> None:
    """Without a type, Java takes 1 for a decimal; without int64, a time for 32 bits.

    Without double, Go takes a mean for 32 bits; without additionalProperties, TypeScript's have no
    members.
    """
    for name, schema in described()["components"]["schemas"].items():
        for field, value in schema.get("properties", {}).items():
            assert "number" not in value.get("type", ()) or value["format"] == "double", field
            item = value.get("items", value)
            assert item.get("type") != "object" or "additionalProperties" in item, (name, field)
            assert "type" in value or "enum" not in value, (name, field)
            is_bounded = value.keys() & {"format", "maximum", "enum"} or field in SMALL
            assert is_bounded or "integer" not in value.get("type", ()), (name, field)


def test_the_lowest_good_status_describes_each_good_answer_of_a_call() -> None:
    """openapi-generator makes clients that read every good answer as that one."""
    for call in OPERATIONS:
        good = [
            answer.get("content", {}).get("application/json", {}).get("schema", {})
            for status, answer in sorted(call.operation["responses"].items())
            if status.startswith("2")
        ]
        lowest, *others = (schema.get("oneOf", [schema]) for schema in good)
        assert all(schema in lowest for choices in others for schema in choices), call.path


# --- complete ------------------------------------------------------------------------------------


def routes() -> set[str]:
    rules = Service(Settings()).application.url_map.iter_rules()
    methods = [(rule, method) for rule in rules for method in rule.methods or ()]
    others = {"HEAD", "OPTIONS"}
    return {f"{method} {path_of(rule.rule)}" for rule, method in methods if method not in others}


def test_routes_and_document_name_the_same_calls() -> None:
    assert {f"{call.method} {call.path}" for call in OPERATIONS} == routes()


# --- parameters ----------------------------------------------------------------------------------


@each_of("described_", OPERATIONS)
def test_an_undocumented_parameter_is_refused(
    client: FlaskClient, world: object, described_: Described
) -> None:
    query = {**described_.examples()[0], "undocumented": "1"}
    problem(described_.ask(client, query), 400, field="undocumented", value="1")


BOUNDED = [
    (call, parameter, value)
    for call in OPERATIONS
    for parameter in call.parameters()
    if parameter["schema"]["type"] == "integer"
    for value in (parameter["schema"]["minimum"] - 1, parameter["schema"]["maximum"] + 1)
]
OF_OTHER_LENGTH = [
    (call, parameter["name"], "x" * length)
    for call in OPERATIONS
    for parameter in call.parameters()
    if "maxLength" in parameter["schema"]
    for length in (parameter["schema"]["minLength"] - 1, parameter["schema"]["maxLength"] + 1)
    if length >= 0
]
CHOSEN = [
    (call, parameter) for call in OPERATIONS for parameter in call.parameters()
    if "enum" in parameter["schema"]
]  # fmt: skip


@each_of(("described_", "parameter", "value"), BOUNDED)
def test_a_number_beyond_its_bounds_is_refused(
    client: FlaskClient, described_: Described, parameter: Json, value: int
) -> None:
    query = {**described_.examples()[0], parameter["name"]: value}
    problem(described_.ask(client, query), 400, field=parameter["name"], value=str(value))


@each_of(("described_", "name", "text"), OF_OTHER_LENGTH)
def test_a_text_that_is_too_short_or_too_long_is_refused(
    client: FlaskClient, described_: Described, name: str, text: str
) -> None:
    query = {**described_.examples()[0], name: text}
    problem(described_.ask(client, query), 400, field=name)


@pytest.fixture(scope="module")
def written_to(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A client of a small chain that may be written to."""
    with client_of(world_in(tmp_path_factory.mktemp("written")).settings) as client:
        yield client


@pytest.mark.long
@each_of(("described_", "parameter"), CHOSEN)
def test_each_choice_is_accepted_and_nothing_else(
    written_to: FlaskClient, described_: Described, parameter: Json
) -> None:
    name = parameter["name"]
    for choice in parameter["schema"]["enum"]:
        answer = described_.ask(written_to, {**described_.examples()[0], name: choice})
        is_of_no_file = answer.status_code == 404 and "/imports/" in described_.path
        assert answer.status_code < 300 or is_of_no_file, choice
    query = {**described_.examples()[0], name: "another"}
    problem(described_.ask(written_to, query), 400, field=name, value="another")


@pytest.mark.slow
def test_what_holds_without_a_parameter_is_its_default(default_client: FlaskClient) -> None:
    for call in READS:
        needed = call.brief()
        if "FINAL_DATE" in needed:
            needed["FINAL_DATE"] = needed["INITIAL_DATE"]  # a day says what a month does
        defaults = {
            parameter["name"]: parameter["schema"]["default"]
            for parameter in call.parameters()
            if "default" in parameter["schema"]
        }
        plain = call.ask(default_client, needed).get_data() if defaults else b""
        for name, default in defaults.items():
            given = call.ask(default_client, {**needed, name: default})
            assert plain == given.get_data(), (call.path, name)


# --- examples, over the chain that scripts/run makes ---------------------------------------------


@pytest.fixture(scope="module")
def default_client(default_chain: Settings) -> Iterator[FlaskClient]:
    with client_of(default_chain) as client:
        yield client


NEED_MORE = {"health_ready", "get_receipt", "fetch_month"}  # a miner, a cluster, a token
NEED_MORE |= {call.operation["operationId"] for call in OF_A_FILE}  # see tests/test_file_imports.py

FINDS = {
    "filter_transactions": lambda answer: answer["count"],
    "flight_status": lambda answer: answer["count"],
    "average_delays": lambda answer: answer["flights"],
    "flight_counter": lambda answer: answer["count"],
    "suggest": lambda answer: answer["suggestions"],
    "coverage": lambda answer: answer["flights"],
    "get_block": lambda answer: answer["block"]["transactions"],
    "list_blocks": lambda answer: answer["blocks"],
    "transactions_pages": lambda answer: answer["transactions"],
}


@pytest.mark.slow
@each_of(
    ("described_", "query"),
    [(call, query) for call in READS for query in call.examples()
     if call.operation["operationId"] not in NEED_MORE
     and "hash" not in query],  # every chain has others
)  # fmt: skip
def test_every_example_finds_something(
    default_client: FlaskClient, described_: Described, query: dict[str, str]
) -> None:
    answer = described_.ask(default_client, described_.brief(query))
    assert answer.status_code == 200, answer.get_data(as_text=True)
    name = described_.operation["operationId"]
    if answer.mimetype == "application/json":
        assert FINDS.get(name, bool)(answer.get_json())
    elif answer.mimetype == "application/octet-stream":
        assert len(answer.get_data()) > 1
    else:  # more than a first or last line, but for the key, and for groups behind the last
        may_be_one = name in {"log_key", "average_delays", "flight_counter"}
        assert answer.get_data(as_text=True).count("\n") > (not may_be_one)
    assert FINDS.keys() <= {call.operation["operationId"] for call in READS}


@pytest.mark.slow
@each_of(
    ("described_", "query"),
    [(call, query) for call in WRITES for query in call.examples()],
)
def test_every_example_of_a_body_is_accepted(
    default_client: FlaskClient, described_: Described, query: dict[str, str]
) -> None:
    for mimetype, body in described_.bodies():
        answer = described_.send(default_client, query, mimetype, body)
        assert answer.status_code in {200, 201, 202}, answer.get_data(as_text=True)
        receipt = answer.get_json()
        assert receipt.get("accepted", 1) + receipt.get("already_there", 0) == 1


@pytest.mark.slow
def test_examples_of_headers_are_understood(default_client: FlaskClient) -> None:
    for call in OPERATIONS:
        name = call.operation["operationId"]
        headers = {one["name"]: one["example"] for one in call.parameters("header")}
        if "Idempotency-Key" in headers:
            headers["Idempotency-Key"] += name  # for each its own
        if name in NEED_MORE:
            continue
        assert call.ask(default_client, call.brief(), headers).status_code < 300, call.path


# --- errors --------------------------------------------------------------------------------------


def declaring(status: int) -> list[Described]:
    return [call for call in OPERATIONS if str(status) in call.operation["responses"]]


FAR = 10**15 - 1
SIGNED = {
    "log_checkpoint",
    "log_key",
    "log_witnesses",
}  # missing only where nothing was ever sealed


@each_of("described_", declaring(404))
def test_what_may_be_missing_can_be(client: FlaskClient, described_: Described) -> None:
    names = {parameter["name"] for parameter in described_.parameters()}
    if places := described_.parameters("path"):
        target = described_.path.format(**{each["name"]: FAR for each in places})
        needed = urlencode({p["name"]: p["example"] for p in described_.parameters("query")})
        asked = client.open(f"{target}?{needed}", method=described_.method)
        problem(asked, 404)
    else:
        if described_.operation["operationId"] in SIGNED:
            return
        (name,) = names & {"as_of", "page", "to"}
        problem(described_.ask(client, {**described_.examples()[0], name: FAR}), 404)


@each_of("described_", declaring(406))
def test_what_may_be_in_no_form_can_be(client: FlaskClient, described_: Described) -> None:
    headers = {"Accept": "image/png"}
    problem(described_.ask(client, described_.examples()[0], headers), 406)


@each_of("described_", declaring(422))
def test_each_fault_of_a_body(client: FlaskClient, described_: Described) -> None:
    mimetype, _ = next(described_.bodies())
    target = described_.target({})
    no_flight = {} if mimetype == "application/json" else "{}"
    problem(described_.send(client, {}, mimetype, no_flight), 422)
    problem(client.post(target, data=b"x", content_type="text/plain"), 415)
    problem(client.post(target, data=b"", content_type=mimetype), 411)
    long = {"CONTENT_LENGTH": str(2**40)}
    problem(client.post(target, content_type=mimetype, environ_overrides=long), 413)


def test_writing_may_need_a_token(tmp_path: Path) -> None:
    with client_of(settings_for(tmp_path, require_token=1)) as client:
        for write in WRITES:
            without: list[Json] = [] if write.path == "/months" else [{}]
            assert write.operation["security"] == [*without, {"token": []}]
            answer = write.ask(client, write.examples()[0])
            problem(answer, 401)
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_without_a_chain_there_are_answers_of_the_document_too(tmp_path: Path) -> None:
    with client_of(settings_for(tmp_path)) as client:
        for call in OPERATIONS:
            if call.path != "/cheats":  # which makes a chain of its own
                answer = call.ask(client, call.examples()[0])
                if answer.status_code == 503:
                    assert int(answer.headers["Retry-After"]) > 0
