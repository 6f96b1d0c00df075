"""Reads a network of queues from a file in TOML or JSON, solves it, and shows the means as text.

    title = "Two kinds of requests"

    [[classes]]                          # closed: so many customers, who think between requests
    name = "readers"
    customers = 20
    think_time_s = 5

    [[classes]]                          # open: so many requests a second arrive
    name = "posts"
    rate_per_s = 0.8

    [[stations]]
    name = "workers"
    servers = 2                          # or rates = [1, 1.8, 2.4], or kind = "delay"; default: 1
    readers = {visits = 1, service_time_s = 0.3}
    posts = {demand_s = 0.05}            # or the product of both

With a single class, a station has `visits`, `service_time_s` or `demand_s` itself. A class that a
station does not name does not visit it.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from loadtests.lab.results import ResultsError
from loadtests.models import networks
from loadtests.models.domain import not_negative
from loadtests.models.networks import ClassMeans, CustomerClass, Rates, ServiceStation

Described = TypeVar("Described", bound=msgspec.Struct)
Name = Annotated[str, msgspec.Meta(min_length=1)]
MOST_NAMED = 20  # fields in a message


class DemandFields(msgspec.Struct, forbid_unknown_fields=True):
    """Holds the demand of a class at a station."""

    visits: float | None = None
    service_time_s: float | None = None
    demand_s: float | None = None

    def total_s(self, where: str) -> float:
        """Return D in s, from one of the two forms. Raises ValueError."""
        if self.demand_s is not None:
            if (self.visits, self.service_time_s) != (None, None):
                raise ValueError(f"{where} has demand_s and visits or service_time_s; write one")
            return self.demand_s
        if self.service_time_s is None:
            raise ValueError(f"{where} needs demand_s, or service_time_s (and visits, if not 1)")
        visits = not_negative(f"visits of {where}", 1.0 if self.visits is None else self.visits)
        return visits * not_negative(f"service_time_s of {where}", self.service_time_s)


class StationFields(msgspec.Struct, forbid_unknown_fields=True):
    """Holds a station without its demands."""

    name: Name
    kind: Literal["queue", "delay"] = "queue"
    servers: int | None = None
    rates: tuple[float, ...] | None = None

    def all_rates(self, where: str) -> Rates:
        """Return the rates of the station, None of a delay. Raises ValueError."""
        given = [name for name in ("servers", "rates") if getattr(self, name) is not None]
        if len(given) > (self.kind == "queue"):
            fields = " and ".join(given)
            raise ValueError(f"{where} has {fields}; a queue has one of them, a delay none")
        if self.kind == "delay":
            return None
        if self.rates is not None:
            return self.rates
        servers = 1 if self.servers is None else self.servers
        return networks.of_servers(servers, f"servers of {where}")


class ClassFields(msgspec.Struct, forbid_unknown_fields=True):
    """Holds a class of customers."""

    name: Name
    customers: float = 0.0
    think_time_s: float = 0.0
    rate_per_s: float = 0.0

    def customer_class(self) -> CustomerClass:
        """Return the class for the models. Raises ValueError."""
        if not self.customers.is_integer():
            what = f"customers of class {self.name!r}"
            raise ValueError(f"{what} must be a whole number, is {self.customers}")
        return CustomerClass(self.name, int(self.customers), self.think_time_s, self.rate_per_s)


class FileFields(msgspec.Struct, forbid_unknown_fields=True):
    """Holds the whole file; what a station may have depends on the names of the classes."""

    classes: list[dict[str, Any]] = []
    stations: list[dict[str, Any]] = []
    title: str = ""


# A decoder builds its type, which is to be done before there are threads (tests/test_prebuilt.py).
# It cannot read the tables themselves: they are parsed already, and JSON has neither nan nor inf.
DECODERS: dict[type[msgspec.Struct], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind)
    for kind in (FileFields, ClassFields, StationFields, DemandFields)
}
CONVERTERS = {kind: partial(msgspec.convert, type=kind) for kind in DECODERS}


@dataclass(frozen=True, slots=True)
class Network:
    """Holds a network of queues."""

    title: str
    classes: tuple[CustomerClass, ...]
    stations: tuple[ServiceStation, ...]


def read(path: Path) -> Network:
    """Return the network that a file describes. Raises ResultsError."""
    is_json = path.suffix.lower() == ".json"
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = msgspec.json.decode(text) if is_json else tomllib.loads(text)
        if is_json:
            json.loads(text, object_pairs_hook=_require_each_once)
    except UnicodeDecodeError:
        raise ResultsError(f"{path} is not text in UTF-8; save it as UTF-8") from None
    except (OSError, ValueError) as problem:
        form = "JSON" if is_json else "TOML"
        raise ResultsError(f"{path} cannot be read as {form}: {problem}") from None
    except RecursionError:
        raise ResultsError(f"{path} has too many lists or tables within each other") from None
    try:
        return network_from(content)
    except ValueError as problem:
        raise ResultsError(f"{path}: {problem}") from None


def _require_each_once(pairs: Sequence[tuple[str, object]]) -> None:
    """Raise ValueError if an object of JSON has a key twice, of which msgspec takes the last."""
    for name, count in Counter(name for name, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the key {name!r} is given {count} times; give it once")


def network_from(content: object) -> Network:
    """Return the network that parsed content describes. Raises ValueError."""
    top = _described(FileFields, content, "the file")
    for what in ("classes", "stations"):
        if not getattr(top, what):
            raise ValueError(f"it has no {what}; write a [[{what}]] for each")
    groups = [
        _described(ClassFields, table, f"class {table.get('name', number)!r}")
        for number, table in enumerate(top.classes, start=1)
    ]
    names = _different("classes", [group.name for group in groups])
    if taken := {*names} & {*StationFields.__struct_fields__, *DemandFields.__struct_fields__}:
        name = min(taken)
        raise ValueError(f"a class is called {name!r}, which is a field of a station; rename it")
    stations = tuple(
        _station(table, names, f"station {table.get('name', number)!r}")
        for number, table in enumerate(top.stations, start=1)
    )
    _different("stations", [station.name for station in stations])
    return Network(top.title, tuple(group.customer_class() for group in groups), stations)


_WORDS = {
    "`object`": "a table",
    "`array`": "a list",
    "`array | null`": "a list",
    "`bool`": "true or false",
    "`str`": "text",
    "`float`": "a number",
    "`float | null`": "a number",
    "`int`": "a whole number",
    "`int | null`": "a whole number",
    "Object": "the table",
    "missing": "lacks the",
    "Expected": "it must be",
    "got": "is",
}
"""What msgspec says, in words for who writes a file."""


def _described(
    kind: type[Described], content: object, where: str, more: Sequence[str] = ()
) -> Described:
    """Return `content` as this kind. more: other fields that it may have, for the message."""
    try:
        fields: Described = CONVERTERS[kind](content)
    except msgspec.ValidationError as problem:
        why, _, place = str(problem).partition(" - at `$")
        place = place.strip(".`")
        field = f"{place}: " if place else ""
        why = re.sub(r"`[^`]+`|\w+", lambda word: _WORDS.get(word[0], word[0]), why)
        raise ValueError(f"{where}: {field}{why}; {_advice(kind, why, place, more)}") from None
    return fields


def _advice(kind: type[msgspec.Struct], why: str, place: str, more: Sequence[str]) -> str:
    """Return what to write: the field that was meant, or all there are."""
    if kind is FileFields and why.startswith("it must be a list"):
        return f"write a [[{place}]] for each"
    if place == "kind":
        return 'write "queue" or "delay"'
    known = [*kind.__struct_fields__, *more]
    unknown = re.search(r"unknown field `(.+)`", why)
    meant = get_close_matches(unknown[1], known, 1) if unknown else []
    shown = [*known[:MOST_NAMED], "…"] if len(known) > MOST_NAMED else known
    return f"it may have {', '.join(shown)}" + (f"; did you mean {meant[0]}?" if meant else "")


def _different(what: str, names: Sequence[str]) -> Sequence[str]:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two {what} are called {twice[0]!r}; names must differ")
    if odd := [name for name in names if not (name.isprintable() and name.strip())]:
        raise ValueError(f"one of the {what} is called {odd[0]!r}; take letters that can be seen")
    return names


def _station(table: Mapping[str, Any], names: Sequence[str], where: str) -> ServiceStation:
    own, more = {field: value for field, value in table.items() if field not in names}, [*names]
    if len(names) == 1 and names[0] not in table:  # the only class's demand is the station's own
        known = DemandFields.__struct_fields__
        table = {names[0]: {field: own.pop(field) for field in known if field in own}}
        more += known
    elif flat := [field for field in DemandFields.__struct_fields__ if field in own]:
        example = f"{names[0]} = {{{flat[0]} = …}}"
        raise ValueError(f"{where} has {flat[0]}; write it for each class, as in {example}")
    fields = _described(StationFields, own, where, more)
    demands_s = tuple(_demand_s(table, name, f"{name!r} at {where}") for name in names)
    return ServiceStation(fields.name, demands_s, fields.all_rates(where))


def _demand_s(table: Mapping[str, Any], name: str, where: str) -> float:
    return _described(DemandFields, table[name], where).total_s(where) if name in table else 0.0


# --- the means -----------------------------------------------------------------------------------


def solve(path: Path) -> tuple[Network, tuple[ClassMeans, ...]]:
    """Return the network of a file and its means. Raises ResultsError."""
    network = read(path)
    try:
        return network, networks.solve(network.classes, network.stations)
    except ArithmeticError:
        raise ResultsError(f"{path}: its times are too small or too large to compute") from None
    except ValueError as problem:
        raise ResultsError(f"{path}: {problem}") from None


def as_json(network: Network, means: Sequence[ClassMeans]) -> str:
    content = {"title": network.title, "classes": [asdict(group) for group in means]}
    return json.dumps(content, indent=2, ensure_ascii=False)


def as_text(network: Network, means: Sequence[ClassMeans]) -> str:
    """Return the means as tables of text: classes, then each at each station, then the stations."""
    stations = zip(network.stations, zip(*(group.at for group in means), strict=True), strict=True)
    tables: Sequence[tuple[Sequence[str], list[Sequence[str | float]]]] = (
        (
            ("class", "X, 1/s", "R, s", "customers"),
            [
                (group.name, group.throughput_per_s, group.response_time_s, group.customers)
                for group in means
            ],
        ),
        (
            ("class", "station", "R, s", "customers", "U"),
            [
                (group.name, at.name, at.residence_time_s, at.customers, at.utilisation)
                for group in means
                for at in group.at
                if at.residence_time_s
            ],
        ),
        (
            ("station", "customers", "U"),
            [
                (own.name, sum(at.customers for at in there), sum(at.utilisation for at in there))
                for own, there in stations
            ],
        ),
    )
    parts = [network.title] if network.title else []
    return "\n\n".join([*parts, *(_text_table(*table) for table in tables), _EXACT])


_EXACT = """\
X: throughput. R: response time without think time. customers: mean number at the stations, without
those who think. U: busy share of all servers, or of the highest rate; of a delay, the customers in
it. Exact for exponential service in order of arrival with one mean for all classes, and for any
service that shares the processor. If times vary less, queues in order of arrival are shorter."""


def _text_table(header: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    cells = [
        [cell if isinstance(cell, str) else f"{cell:.5g}" for cell in row]
        for row in (header, *rows)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
