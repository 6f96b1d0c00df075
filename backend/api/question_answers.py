"""Answers the three questions, with kept answers, conditions and encodings.

An answer's ETag is made from the hash of the block up to which it counts and the query string, so
that a 304 costs a comparison and nothing is asked. A scan always reads the blocks, because that is
its purpose.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flask import Response
from msgspec.structs import asdict
from werkzeug.exceptions import NotAcceptable

from backend.api.conditions import REVALIDATE, SETTLED, tag_of, unchanged
from backend.api.encodings import LEAST_BYTES, compressed, encoding_for, rank_of, weights
from backend.api.flight_lines import (
    AS_OF_HEADER,
    FORMATS,
    IN_LINES,
    LEG_NAMES,
    counted_up_to,
    table,
)
from backend.api.json_answers import AnswerCache, AnswerKey, CachedAnswer, encode, versioned, whole
from backend.api.observing import PARTS
from backend.api.operation import JSON, QUESTIONS, READING, Answer, Media, Operation
from backend.api.reading import query_string
from backend.api.routes import Lane, Row
from backend.chain.fields import Value
from backend.index.queries import State
from backend.ledger.ledger import Ledger
from backend.questions.answer_types import (
    COUNTS_OF,
    DELAYS_OF,
    Averages,
    Flights,
    ref,
)
from backend.questions.parameters import AS_OF, FORMAT, Given
from backend.questions.values import (
    BREAKDOWNS,
    ENGINE,
    OFFSET,
    PARAMETERS,
    PROVABLE,
    AverageDelays,
    Departures,
    FilterTransactions,
    FlightCounter,
    Options,
    Selecting,
    asked,
)
from backend.serving.environs import Environ
from backend.storage.scan_costs import EMULATED, FILE, Costs

_DEFAULTS: dict[str, str | None] = {
    ENGINE.name: ENGINE.default,
    AS_OF.name: None,
    FORMAT.name: None,
}
"""Parameters, each with the value with which an answer is kept; None: only if it is left out."""


ANY = "*/*"  # what most clients accept
_RANGES = (JSON, "application/*", ANY)  # of Accept, the most specific first

Rows = Sequence[Mapping[str, Value]]


class Answering:
    """Answers questions to `ledger` over HTTP, and keeps some of the answers in `cache`."""

    def __init__(self, ledger: Ledger, cache: AnswerCache) -> None:
        self._answers, self._blocks = ledger.answers, ledger.cached_blocks
        self._cache = cache

    def answered(self, environ: Environ, given: Given, kind: type[Any]) -> Response:
        """Answer a request that holds a question of `kind`."""
        query = query_string(environ)
        _require_json(environ.get("HTTP_ACCEPT") or ANY, given.get(FORMAT.name))
        if not _DEFAULTS.keys().isdisjoint(given) and _has_options(given):
            return self._answer_uncached(environ, given, kind)
        state, is_conditional = self._answers.recent_state(), "HTTP_IF_NONE_MATCH" in environ
        if is_conditional:
            tag = tag_of(state.tip_hash, kind.__name__, query)
            if known := unchanged(environ, tag, REVALIDATE):
                return known
        answer = self._cache.find((state, kind, query)) or self._ask(environ, given, kind, state)
        if is_conditional:
            tag = tag_of(answer.tip_hash, kind.__name__, query)
            if known := unchanged(environ, tag, REVALIDATE, is_there=True):
                return known
        encoding = encoding_for(environ)
        if encoding and len(answer.body) >= LEAST_BYTES:
            key = (state, kind, f"{encoding} {query}")
            answer = self._cache.find(key) or self._keep(
                key, query, compressed(encoding, answer.body), answer.tip_hash, encoding
            )
        return answer.response

    def _ask(self, environ: Environ, given: Given, kind: type[Any], state: State) -> CachedAnswer:
        query = query_string(environ)
        answer = self._timed(environ, *asked(kind, given))
        return self._keep((state, kind, query), query, encode(answer), answer.as_of.tip_hash)

    def _keep(
        self, key: AnswerKey, query: str, body: bytes, tip_hash: str, encoding: str = ""
    ) -> CachedAnswer:
        """Return an answer as it goes out, and keep it if it is of the state in its key."""
        state, kind, _ = key
        response = whole(body, encoding, tag_of(tip_hash, kind.__name__, query), REVALIDATE)
        answer = CachedAnswer(query, body, tip_hash, response)
        if tip_hash == state.tip_hash:
            self._cache.keep(key, answer)
        return answer

    def _answer_uncached(self, environ: Environ, given: Given, kind: type[Any]) -> Response:
        """Answer a question with options, for which no answer is kept."""
        query, route = query_string(environ), kind.__name__
        form = FORMATS.get(FORMAT.find(given) or "")  # none for JSON
        about = {name: text for name, text in given.items() if name != FORMAT.name}
        question, options = asked(kind, about)
        is_scan, height = options.engine == "scan", options.as_of
        cache_control = REVALIDATE if is_scan or height is None else SETTLED
        if not is_scan and "HTTP_IF_NONE_MATCH" in environ:
            tag = tag_of(self._hash_at(height), route, query)
            if known := unchanged(environ, tag, cache_control):
                return known
        answer = self._timed(environ, question, options)
        tag = tag_of(answer.as_of.tip_hash, route, query)
        if form is None:
            return versioned(environ, encode(answer), cache_control, tag)
        names, lines, total = _table_of(question, options, answer)
        end = options.shown.offset + len(lines)
        body = table(form, names, lines, answer.as_of, 0 if end >= total else total)
        response = versioned(environ, body, cache_control, tag, mimetype=form.mimetype)
        response.headers[AS_OF_HEADER] = counted_up_to(answer.as_of)
        if end < total:
            shown = {AS_OF.name: answer.as_of.height, OFFSET.name: end}  # of one state
            following = urlencode({**given, **shown})
            response.headers["Link"] = f'<{environ["PATH_INFO"]}?{following}>; rel="next"'
        return response

    def _timed(self, environ: Environ, question: Selecting, options: Options) -> Any:
        """Ask, and note the time for Server-Timing; for a scan also the time of each stage."""
        costs = Costs() if options.engine == "scan" else None
        started = time.perf_counter()
        answer = self._answers.answer(question, options, costs)
        took_ms = 1000 * (time.perf_counter() - started)
        parts = "" if costs is None else _parts_of(costs)
        environ[PARTS] = f", {options.engine};dur={took_ms:.3f}{parts}"
        return answer

    def _hash_at(self, height: int | None) -> str:
        if height is None:
            return self._answers.recent_state().tip_hash
        return self._blocks.where(height).hash


def lane_of(kind: type[Selecting]) -> Callable[[Environ, Given], Lane]:
    """Return a function that chooses the lane of a question of `kind`, by its cost.

    Only the form that the study asked is answered at once: it reads a few rows, whatever the ledger
    holds. Others may read tens of thousands, and several threads of one interpreter would be slower
    at it than one.
    """
    plain = {*PROVABLE.get(kind, ()), ENGINE.name}

    def lane(_: Environ, given: Given) -> Lane:
        if given.get(ENGINE.name) == "scan":
            return Lane.SCAN
        return Lane.INLINE if plain.issuperset(given) else Lane.QUESTION

    return lane


def _has_options(given: Mapping[str, str]) -> bool:
    """Return whether an answer with these parameters is not kept."""
    return any(given.get(name, default) != default for name, default in _DEFAULTS.items())


def _require_json(accept: str, form: str | None) -> None:
    """Raise NotAcceptable if the client takes no JSON and does not name another format."""
    if form is None and accept != ANY and not rank_of(_RANGES, weights(accept)):
        raise NotAcceptable(
            "this answer is JSON; add `format=csv` or `format=ndjson` for another format"
        )


def _table_of(
    question: Selecting, options: Options, answer: Any
) -> tuple[Sequence[str], Rows, int]:
    """Return the columns and rows of an answer in lines: flights, groups, or one total.

    The last value is how many rows there are with those that are not shown.
    """
    if isinstance(question, FilterTransactions | Departures):
        return LEG_NAMES, answer.flights, answer.count
    by, is_of_delays = options.group_by, isinstance(question, AverageDelays)
    if by is None:
        names = (Averages if is_of_delays else Flights).__struct_fields__
        return names, [{name: getattr(answer, name) for name in names}], 1
    row = (DELAYS_OF if is_of_delays else COUNTS_OF)[by]
    groups = list(map(asdict, getattr(answer, f"by_{by}")))
    return row.__struct_fields__, groups, answer.groups


def _parts_of(costs: Costs) -> str:
    """Return the costs of a scan, as further parts of Server-Timing."""
    parts = {
        name: f"dur={1000 * seconds:.3f}"
        for name, seconds in costs.stage_s.items()
        if name != EMULATED or seconds
    }
    parts[FILE] += f';desc="{costs.read_blocks} blocks in {costs.refills} refills"'
    parts["last"] = f'desc="{costs.last_blocks} blocks"'
    parts["random"] = f'desc="{costs.random_blocks} blocks"'
    return "".join(f", {name};{what}" for name, what in parts.items())


def question(
    kind: type[Selecting], name: str, tag: str, summary: str, schema: str, meaning: str
) -> Operation:
    """Return the operation for a question of `kind`. schema, meaning: of its answer."""
    content = {JSON: Media(ref(schema)), **IN_LINES}
    return Operation(
        name,
        tag,
        summary,
        {200: Answer(meaning, content, may_have=(AS_OF_HEADER, "Link"))},
        parameters=(*PARAMETERS[kind].values(), ENGINE, AS_OF, *BREAKDOWNS[kind].values(), FORMAT),
        errors=(404, 406),
        has_etag=True,
    )


FILTER_TRANSACTIONS = question(
    FilterTransactions,
    "filter_transactions",
    QUESTIONS,
    "What happened to flight N on day D?",
    "Legs",
    "The legs, oldest id first; the list may be empty.",
)
AVERAGE_DELAYS = question(
    AverageDelays,
    "average_delays",
    QUESTIONS,
    "How late was carrier C on average between two dates?",
    "AverageDelays",
    "Means, counts and shares; a mean of no flights is null.",
)
FLIGHT_COUNTER = question(
    FlightCounter,
    "flight_counter",
    QUESTIONS,
    "How many flights went from city A to city B between two dates?",
    "FlightCount",
    "The count.",
)


DEPARTURES = question(
    Departures,
    "departures",
    READING,
    "Which flights leave on a day, from or to a place, in an hour?",
    "Departures",
    "The flights by scheduled time, at most 10,000; those without a time come last.",
)


def row(answering: Answering, operation: Operation, kind: type[Any], rule: str = "") -> Row:
    """Return the row for questions of `kind`. rule: by default as the operation is named."""

    def answer(environ: Environ, given: Given) -> Response:
        return answering.answered(environ, given, kind)

    return Row("GET", rule or f"/{operation.name}", operation, answer, lane_of(kind))


def rows(answering: Answering) -> list[Row]:
    """Return the routes for the three questions, and for departures."""
    return [
        row(answering, FILTER_TRANSACTIONS, FilterTransactions),
        row(answering, AVERAGE_DELAYS, AverageDelays),
        row(answering, FLIGHT_COUNTER, FlightCounter),
        row(answering, DEPARTURES, Departures),
    ]
