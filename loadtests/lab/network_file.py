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
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loadtests.lab.results import ResultsError
from loadtests.models import networks
from loadtests.models.networks import ClassMeans, CustomerClass, Rates, ServiceStation

OF_CLASS = ("name", "customers", "think_time_s", "rate_per_s")
OF_DEMAND = ("visits", "service_time_s", "demand_s")
OF_STATION = ("name", "kind", "servers", "rates")
KINDS = ("queue", "delay")


@dataclass(frozen=True, slots=True)
class Network:
    """A network of queues."""

    title: str
    classes: tuple[CustomerClass, ...]
    stations: tuple[ServiceStation, ...]


def read(path: Path) -> Network:
    """The network that a file describes. Raises ResultsError."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as problem:
        raise ResultsError(f"{path} cannot be read as {path.suffix or 'TOML'}: {problem}") from None
    try:
        return network_from(content)
    except ValueError as problem:
        raise ResultsError(f"{path}: {problem}") from None


def network_from(content: object) -> Network:
    """The network that parsed content describes. Raises ValueError."""
    top = _table(content, "the file", ("title", "classes", "stations"))
    classes = tuple(map(_class, _tables(top, "classes")))
    _check_names("classes", [group.name for group in classes])
    taken = {group.name for group in classes} & {*OF_STATION, *OF_DEMAND}
    if taken:
        raise ValueError(
            f"a class is called {min(taken)!r}, which is a field of a station; rename it"
        )
    stations = tuple(_station(table, classes) for table in _tables(top, "stations"))
    _check_names("stations", [station.name for station in stations])
    return Network(str(top.get("title", "")), classes, stations)


def _tables(top: Mapping[str, Any], name: str) -> Sequence[object]:
    tables = top.get(name)
    if not isinstance(tables, list) or not tables:
        raise ValueError(f"it has no {name}; write a [[{name}]] for each")
    return tables


def _table(content: object, where: str, known: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise ValueError(f"{where} must be a table, is {content!r}")
    if unknown := [name for name in content if name not in known]:
        raise ValueError(f"{where} has {unknown[0]!r}, but may have {', '.join(known)}")
    return content


def _name(table: Mapping[str, Any], what: str) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"each of the {what} needs a name, but one has {name!r}")
    return name


def _check_names(what: str, names: Sequence[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two {what} are called {twice[0]!r}; names must differ")


def _number(table: Mapping[str, Any], name: str, where: str, default: float = 0.0) -> float:
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} of {where} must be a number, is {value!r}")
    return value


def _class(content: object) -> CustomerClass:
    table = _table(content, "a class", OF_CLASS)
    name = _name(table, "classes")
    customers = _number(table, "customers", f"class {name!r}", 0)
    if customers != int(customers):
        raise ValueError(f"customers of class {name!r} must be a whole number, is {customers}")
    think_s, rate = (
        _number(table, field, f"class {name!r}") for field in ("think_time_s", "rate_per_s")
    )
    return CustomerClass(name, int(customers), think_s, rate)


def _station(content: object, classes: Sequence[CustomerClass]) -> ServiceStation:
    names = [group.name for group in classes]
    own = OF_DEMAND if len(classes) == 1 else ()
    table = _table(content, "a station", (*OF_STATION, *own, *names))
    where = f"station {_name(table, 'stations')!r}"
    demands_s = []
    for name in names:
        if len(names) == 1 and name not in table:
            demands_s.append(
                _demand_s({field: table[field] for field in OF_DEMAND if field in table}, where)
            )
        else:
            each = _table(table.get(name, {}), f"{name!r} of {where}", OF_DEMAND)
            demands_s.append(_demand_s(each, f"{name!r} at {where}") if each else 0.0)
    return ServiceStation(table["name"], tuple(demands_s), _rates(table, where))


def _demand_s(table: Mapping[str, Any], where: str) -> float:
    if "demand_s" in table:
        if len(table) > 1:
            raise ValueError(
                f"{where} has demand_s and visits or service_time_s; write one or both"
            )
        return _number(table, "demand_s", where)
    if "service_time_s" not in table:
        raise ValueError(f"{where} needs demand_s, or service_time_s (and visits, if not 1)")
    return _number(table, "visits", where, 1.0) * _number(table, "service_time_s", where)


def _rates(table: Mapping[str, Any], where: str) -> Rates:
    given = [name for name in ("servers", "rates") if name in table]
    kind = table.get("kind", "queue")
    if kind not in KINDS:
        raise ValueError(f"kind of {where} must be one of {', '.join(KINDS)}, is {kind!r}")
    if len(given) > (kind == "queue"):
        raise ValueError(
            f"{where} has {' and '.join(given)}; a queue has one of them, a delay none"
        )
    if kind == "delay":
        return None
    if "rates" in table:
        if not isinstance(table["rates"], list):
            raise ValueError(f"rates of {where} must be a list of numbers, is {table['rates']!r}")
        return tuple(_number({"rate": rate}, "rate", where) for rate in table["rates"])
    return networks.of_servers(table.get("servers", 1))


# --- the means -----------------------------------------------------------------------------------


def solve(path: Path) -> tuple[Network, tuple[ClassMeans, ...]]:
    """The network of a file and its means. Raises ResultsError."""
    network = read(path)
    try:
        return network, networks.solve(network.classes, network.stations)
    except ValueError as problem:
        raise ResultsError(f"{path}: {problem}") from None


def as_json(network: Network, means: Sequence[ClassMeans]) -> str:
    """The means as JSON."""
    content = {"title": network.title, "classes": [asdict(group) for group in means]}
    return json.dumps(content, indent=2, ensure_ascii=False)


def as_text(network: Network, means: Sequence[ClassMeans]) -> str:
    """The means as tables of text: classes, then each at each station, then the stations."""
    lines = [network.title, ""] if network.title else []
    rows = [
        [
            group.name,
            _shown(group.throughput_per_s),
            _shown(group.response_time_s),
            _shown(group.customers),
        ]
        for group in means
    ]
    lines += _text_table(("class", "X, 1/s", "R, s", "customers"), rows)
    visited = [
        [
            group.name,
            at.name,
            _shown(at.residence_time_s),
            _shown(at.customers),
            _shown(at.utilisation),
        ]
        for group in means
        for at in group.at
        if at.residence_time_s
    ]
    lines += ["", *_text_table(("class", "station", "R, s", "customers", "U"), visited)]
    totals = [
        [
            station.name,
            _shown(sum(at.customers for at in means_there)),
            _shown(sum(at.utilisation for at in means_there)),
        ]
        for station, means_there in zip(
            network.stations, zip(*(group.at for group in means), strict=True), strict=True
        )
    ]
    lines += ["", *_text_table(("station", "customers", "U"), totals), "", _EXACT]
    return "\n".join(lines)


_EXACT = """\
X: throughput. R: response time without think time. U: busy share of all servers, or of the highest
rate; of a delay, the customers in it. Exact for exponential service in order of arrival with one
mean for all classes, and for any service that shares the processor. If times vary less, queues in
order of arrival are shorter."""


def _shown(value: float) -> str:
    return f"{value:.5g}"


def _text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
