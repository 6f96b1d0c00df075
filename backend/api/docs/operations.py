"""What the page says about each operation, response and header of an OpenAPI document."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from shlex import quote as shell_quoted
from typing import Any

from markupsafe import Markup, escape

from backend.api.docs import trying
from backend.api.docs.prose import code, json_lines, json_text, link, phrase, prose
from backend.api.docs.references import Document, Part
from backend.api.docs.schemas import MADE_UP, Row, Schemas, examples_in, plain
from backend.api.docs.trying import Form, Given

METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace")
DEFAULT_SERVER = "http://127.0.0.1:8000"

_TOLD_OF_OPERATIONS = {
    *("operationId", "summary", "description", "tags", "parameters", "requestBody", "responses"),
    *("security", "deprecated"),
}
_TOLD_OF_PARAMETERS = {
    *("name", "in", "required", "description", "schema", "example", "examples", "deprecated"),
    "$ref",
}
_TOLD_OF_RESPONSES = {"description", "content", "headers", "$ref"}
_TOLD_OF_CONTENTS = {"schema", "example", "examples"}

Other = tuple[str, str]  # the name of what the page has no words for, and it as JSON


@dataclass(frozen=True, slots=True)
class Example:
    """A body. title: "" if there is nothing to say. text: to be read. sent: as it is sent."""

    title: str
    text: str
    sent: str


@dataclass(frozen=True, slots=True)
class Content:
    """A body in a media type. rows: its members, if no component tells them."""

    media_type: str
    type: Markup
    limits: list[Markup]
    rows: list[Row]
    examples: list[Example]
    others: list[Other]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. anchor: where it is told in full, if it is shared."""

    status: str
    phrase: str
    meaning: Markup
    contents: list[Content]
    headers: list[Row]
    anchor: str
    others: list[Other]


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request."""

    meaning: Markup
    is_required: bool
    contents: list[Content]


@dataclass(frozen=True, slots=True)
class Command:
    """A line for the shell. media_type: of what it sends, if there are several."""

    media_type: str
    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path."""

    anchor: str
    method: str
    path: str
    summary: str
    description: Markup
    is_deprecated: bool
    tag: str
    also: list[str]
    security: Markup
    parameters: list[Row]
    body: Body | None
    answers: list[Answer]
    commands: list[Command]
    links: list[str]
    form: Form | None
    others: list[Other]


def others(part: Part, told: set[str]) -> list[Other]:
    """What `part` says besides `told`, which the page has words for."""
    found: list[Other] = []
    for name, value in part.items():
        if name not in told and isinstance(value, Mapping):
            found += [(f"{name}.{inner}", plain(each)) for inner, each in value.items()]
        elif name not in told:
            found.append((name, plain(value)))
    return found


class Operations:
    """The operations of `document`, as the page shows them."""

    def __init__(self, document: Document, schemas: Schemas) -> None:
        self._document = document
        self._schemas = schemas
        servers = document.spec.get("servers", [])
        url = str(servers[0]["url"] if servers else "").rstrip("/")
        is_absolute = "://" in url
        self._server = url if is_absolute else DEFAULT_SERVER + url
        self._before_paths = "" if is_absolute else url
        self._shared_headers = _shared_headers(document)

    def all(self) -> Iterator[Operation]:
        """Every operation, in the order of the document."""
        for path, reference in self._document.spec.get("paths", {}).items():
            item = self._document.followed(reference)
            for method in (name for name in item if name in METHODS):
                yield self._operation(path, method, item)

    def answer(self, status: str, part: Part) -> Answer:
        """A response."""
        found = self._document.followed(part)
        name = self._document.component(part, "responses")
        return Answer(
            status,
            _phrase_of(status),
            phrase(found.get("description", "")),
            self._contents(found.get("content", {}), makes_up=status.startswith("2")),
            [self._header_of(*header) for header in found.get("headers", {}).items()],
            f"response-{name}" if name else "",
            others(found, _TOLD_OF_RESPONSES),
        )

    def headers(self) -> list[Row]:
        """The headers that more than one response has."""
        shared = self._shared_headers.items()
        return [self._row(name, self._document.followed(part)) for name, part in shared]

    def _header_of(self, name: str, part: Part) -> Row:
        """A header of a response."""
        shared = self._document.component(part, "headers")
        if name in self._shared_headers and _tells_the_same(self._shared_headers[name], part):
            shared = name
        return self._row(name, self._document.followed(part), f"header-{shared}" if shared else "")

    def _operation(self, path: str, method: str, item: Part) -> Operation:
        part = item[method]
        parameters = self._parameters(item, part)
        body = self._body(part)
        answers = {str(status): each for status, each in part.get("responses", {}).items()}
        tags = part.get("tags", [])
        demands = part.get("security", self._document.spec.get("security", []))
        given = [self._given(each) for each in parameters]
        tries = method == "get" and (not demands or {} in demands)
        where = self._before_paths + path
        return Operation(
            anchor=part.get("operationId") or _slug(f"{method} {path}"),
            method=method.upper(),
            path=path,
            summary=part.get("summary", item.get("summary", "")),
            description=_described(item, part),
            is_deprecated=bool(part.get("deprecated")),
            tag=tags[0] if tags else "",
            also=tags[1:],
            security=_security(demands),
            parameters=[self._row(each["name"], each) for each in parameters],
            body=body,
            answers=[self.answer(status, each) for status, each in sorted(answers.items())],
            commands=list(self._commands(path, method, given, demands, body)),
            links=trying.links(where, given) if tries else [],
            form=trying.form(where, given) if tries else None,
            others=others(part, _TOLD_OF_OPERATIONS),
        )

    def _parameters(self, item: Part, part: Part) -> list[Part]:
        """Those of the path and the operation; the operation's own take the place of others."""
        found: dict[tuple[str, str], Part] = {}
        for each in (*item.get("parameters", ()), *part.get("parameters", ())):
            parameter = self._document.followed(each)
            found[parameter["in"], parameter["name"]] = parameter
        return list(found.values())

    def _row(self, name: str, part: Part, anchor: str = "") -> Row:
        """A parameter or a header."""
        schema: Part = part.get("schema", {})
        row = self._schemas.row(name, schema, is_required=bool(part.get("required")))
        told = [Markup("deprecated")] if part.get("deprecated") else []
        told += [Markup("{} {}").format(*each) for each in others(part, _TOLD_OF_PARAMETERS)]
        meaning = phrase(part["description"]) if "description" in part else row.meaning
        examples = self._own_examples(part) or [
            (value, "") for value in examples_in(self._document.followed(schema))
        ]
        return Row(
            name,
            row.type,
            row.limits + told,
            row.is_required,
            meaning,
            [(plain(value), said) for value, said in examples],
            part.get("in", ""),
            anchor,
        )

    def _own_examples(self, part: Part) -> list[tuple[Any, str]]:
        """The examples of a parameter or header, not of its schema, with their summaries."""
        given = [self._document.followed(each) for each in part.get("examples", {}).values()]
        found = [(each["value"], each.get("summary", "")) for each in given]
        return [*([(part["example"], "")] if "example" in part else []), *found]

    def _given(self, part: Part) -> Given:
        schema = self._document.followed(part.get("schema", {}))
        own = [value for value, _ in self._own_examples(part)]
        examples = own or examples_in(schema) or [self._schemas.value(schema)]
        return Given(part["name"], part["in"], bool(part.get("required")), schema, examples)

    def _body(self, part: Part) -> Body | None:
        if "requestBody" not in part:
            return None
        found = self._document.followed(part["requestBody"])
        contents = self._contents(found.get("content", {}), makes_up=True)
        return Body(phrase(found.get("description", "")), bool(found.get("required")), contents)

    def _contents(self, content: Mapping[str, Part], *, makes_up: bool) -> list[Content]:
        """makes_up: whether an example is made of the schema where none is given.

        Not for errors: a status or message made up would be that of another error.
        """
        return [self._content(media_type, part, makes_up) for media_type, part in content.items()]

    def _content(self, media_type: str, part: Part, makes_up: bool) -> Content:
        schema = part.get("schema")
        examples = self._examples(media_type, part)
        more = others(part, _TOLD_OF_CONTENTS)
        if schema is None:
            return Content(media_type, Markup(""), [], [], examples, more)
        if makes_up and not examples and _is_json(media_type):
            examples = [_example(MADE_UP, media_type, self._schemas.value(schema))]
        return Content(
            media_type,
            self._schemas.type_of(schema),
            self._schemas.limits(schema),
            list(self._schemas.members(schema)),
            examples,
            more,
        )

    def _examples(self, media_type: str, part: Part) -> list[Example]:
        found = []
        for name, reference in part.get("examples", {}).items():
            given = self._document.followed(reference)
            title = ": ".join(
                t for t in (given.get("summary", name), given.get("description")) if t
            )
            found.append(_example(title, media_type, given["value"]))
        if "example" in part:
            found.append(_example("", media_type, part["example"]))
        return found

    def _commands(
        self,
        path: str,
        method: str,
        given: Sequence[Given],
        demands: Sequence[Part],
        body: Body | None,
    ) -> Iterator[Command]:
        url = self._server + trying.address(path, given)
        options = [*self._credentials(demands)]
        options += [
            _header(each.name, plain(each.examples[0]))
            for each in given
            if each.is_required and each.place == "header"
        ]
        if body is None or not body.contents:
            yield Command("", trying.curl(url, method.upper(), options, None))
            return
        for content in body.contents:
            sent = content.examples[0].sent if content.examples else ""
            with_type = [_header("Content-Type", content.media_type), *options]
            media_type = content.media_type if len(body.contents) > 1 else ""
            yield Command(media_type, trying.curl(url, method.upper(), with_type, sent))

    def _credentials(self, demands: Sequence[Part]) -> Iterator[tuple[str, str]]:
        """What the first way to be let in asks for; `$TOKEN` and `$KEY` are for the reader."""
        for name in demands[0] if demands else ():
            scheme = self._document.followed(
                self._document.named(f"#/components/securitySchemes/{name}", "security")
            )
            if (scheme["type"], scheme.get("scheme", "").lower()) == ("http", "bearer"):
                yield "--header", '"Authorization: Bearer $TOKEN"'
            elif (scheme["type"], scheme.get("in")) == ("apiKey", "header"):
                yield "--header", f'{shell_quoted(scheme["name"] + ": ")}"$KEY"'


def _shared_headers(document: Document) -> dict[str, Part]:
    """Header components, and what several responses write out alike. Name -> header."""
    found: dict[str, list[Part]] = {}
    spec = document.spec
    components = spec.get("components", {})
    items = [document.followed(item) for item in spec.get("paths", {}).values()]
    operations = [item[method] for item in items for method in METHODS if method in item]
    responses = [each for one in operations for each in one.get("responses", {}).values()]
    for response in (*components.get("responses", {}).values(), *responses):
        for name, header in response.get("headers", {}).items():
            found.setdefault(name, []).append(header)
    alike = {
        name: headers[0]
        for name, headers in found.items()
        if len(headers) > 1
        and "$ref" not in headers[0]
        and all(_tells_the_same(header, headers[0]) for header in headers)
    }
    return {**alike, **components.get("headers", {})}


def _tells_the_same(header: Part, other: Part) -> bool:
    """Whether they differ at most in `required`, which is about one response."""
    return {**header, "required": None} == {**other, "required": None}


def _described(item: Part, part: Part) -> Markup:
    """What is said of a path, then of its operation. The summary of either is told elsewhere."""
    texts = [item.get("description", ""), part.get("description", "")]
    if "summary" in item and "summary" in part:
        texts.insert(0, item["summary"])
    return Markup("\n").join(prose(text) for text in texts if text)


def _header(name: str, value: str) -> tuple[str, str]:
    return "--header", shell_quoted(f"{name}: {value}")


def _is_json(media_type: str) -> bool:
    bare = media_type.partition(";")[0]
    return bare == "application/json" or bare.endswith("+json")


def _example(title: str, media_type: str, value: Any) -> Example:
    if isinstance(value, str) and not _is_json(media_type):
        return Example(title, value, value)
    return Example(title, json_lines(value), json_text(value))


def _phrase_of(status: str) -> str:
    return HTTPStatus(int(status)).phrase if status.isdigit() else ""


def _slug(text: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in text).split()
    return "-".join(words)


def _security(demands: Sequence[Part]) -> Markup:
    """Who may: "bearer, or nothing"; empty if nothing is asked for."""
    ways = [
        Markup(" and ").join(link(f"#security-{name}", code(name)) for name in demand)
        for demand in demands
        if demand
    ]
    may_do_without = escape(", or nothing" if ways and {} in demands else "")
    return Markup(" or ").join(ways) + may_do_without
