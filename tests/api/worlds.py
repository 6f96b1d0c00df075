"""Small real chains to ask, and what plain Python says about the flights in them.

Every answer of a client is held against /openapi.json.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from werkzeug.http import HTTP_STATUS_CODES
from werkzeug.test import TestResponse

from backend.api import Service
from backend.base.clock import now_ms
from backend.base.settings import Settings
from backend.chain.fields import FIELD_NAMES, FIELDS, Value
from backend.chain.flight import Flight
from backend.index.checkpoint_note import note_of, note_settled
from backend.index.index_file import index_path
from backend.sources.generated import Generated
from backend.sources.source import validated
from backend.storage.block_store import BlockStore
from tests.api.held import HeldClient
from tests.submitting import accept_in, sealing

Json = dict[str, Any]

GOOD: Json = {field.name: field.example for field in FIELDS}
SIZES = [40, 1, 0, 59, *[50] * 26]  # transactions of each block after genesis
SEED = 7
CITY_NAMES = ("ORIGIN_CITY_NAME", "DEST_CITY_NAME")


@dataclass(frozen=True)
class World:
    """A chain, and its transactions as `filter_transactions` shows them, without their status."""

    settings: Settings
    transactions: list[Json]
    hashes: list[str]

    @property
    def tip(self) -> int:
        return len(self.hashes) - 1

    def as_of(self, height: int | None = None) -> Json:
        height = self.tip if height is None else height
        return {"height": height, "tip_hash": self.hashes[height]}

    def below(self, height: int | None = None) -> Iterator[Json]:
        """The transactions in blocks 0 to `height`."""
        top = self.tip if height is None else height
        return (flight for flight in self.transactions if flight["BLOCK_HEIGHT"] <= top)


def settings_for(folder: Path, **more: Any) -> Settings:
    return Settings(dir=str(folder), difficulty_bits=0, **more)


def generated(count: int) -> list[Flight]:
    """Valid flights of ten days or so: cancelled, diverted, early and late."""
    columns = validated(Generated(count, SEED, flights_per_day=150))
    return list(chain.from_iterable(zip(*batch, strict=True) for batch in columns))


def seal(settings: Settings, parts: Iterable[list[Flight]]) -> list[int]:
    """Seal one block for each part, empty ones too; the acceptance time of each part."""
    accepted: list[int] = []
    with sealing(settings) as sealer:
        for part in parts:
            accepted.append(accept_in(sealer.mempool, part, now_ms()).timestamp if part else 0)
            sealer.seal_pending(empty=True)
    return accepted


def new_chain(folder: Path, **more: Any) -> Settings:
    """Begin a chain, which has no flights yet. Returns its settings."""
    settings = settings_for(folder, **more)
    seal(settings, [])
    return settings


class _Kept:
    """What `world_in` copies, once it is made; nothing is kept while there is no folder."""

    folder: Path | None = None
    world: World | None = None


def keep_world(folder: Path) -> None:
    """Let `world_in` make a single world, in `folder`, and copy it from then on."""
    _Kept.folder, _Kept.world = folder, None


def world_in(folder: Path) -> World:
    """Genesis and `SIZES`, as a copy of the world that is kept, if one is."""
    if _Kept.folder is None:
        return _made(folder)
    kept = _Kept.world = _Kept.world or _made(_Kept.folder)
    copy_chain(_Kept.folder, folder)
    transactions = [dict(flight) for flight in kept.transactions]
    return World(settings_for(folder), transactions, list(kept.hashes))


def copy_chain(chain: Path, folder: Path) -> None:
    """Copy a chain to `folder`, its index as what its writer left and so needs no check."""
    shutil.copytree(chain, folder, symlinks=True, dirs_exist_ok=True)
    index = index_path(folder).resolve(strict=True)
    note = note_of(index)
    assert note is not None
    note_settled(index, note.height)


def _made(folder: Path) -> World:
    settings = settings_for(folder)
    flights = iter(generated(sum(SIZES)))
    parts = [[next(flights) for _ in range(size)] for size in SIZES]
    accepted = seal(settings, parts)
    with closing(BlockStore(folder)) as store:
        hashes = [store.place(height).hash.hex() for height in range(store.height() + 1)]
    transactions: list[Json] = []
    for height, part in enumerate(parts, 1):
        for flight in part:
            transactions.append({
                "TRANSACTION_ID": len(transactions),
                "timestamp": accepted[height - 1],
                **dict(zip(FIELD_NAMES, flight, strict=True)),
                "BLOCK_HEIGHT": height,
            })  # fmt: skip
    return World(settings, transactions, hashes)


@contextmanager
def client_of(
    settings: Settings, restart: Callable[[], None] = lambda: None
) -> Iterator[FlaskClient]:
    """A client of the service over `settings.folder`, whose files are closed afterwards."""
    service = Service(settings, restart)
    service.application.test_client_class = HeldClient
    with closing(service.ledger):
        yield service.application.test_client()


def status_of(transaction: Mapping[str, Value]) -> str:
    if transaction["CANCELLED"]:
        return "cancelled"
    delay = transaction["ARR_DELAY"]
    if delay is None:
        return "no_arrival"
    return "late" if int(delay) >= 15 else "on_time"


def with_status(transaction: Json) -> Json:
    return {**transaction, "status": status_of(transaction)}


def transaction_of(leg: Json) -> Json:
    """`leg` as `/transactions/ID` and `/blocks/HEIGHT` show it."""
    return {name: value for name, value in leg.items() if name != "BLOCK_HEIGHT"}


def averages_of(transactions: Iterable[Json]) -> Json:
    some = list(transactions)
    late = [flight["ARR_DELAY"] for flight in some if flight["ARR_DELAY"] is not None]
    left = [flight["DEP_DELAY"] for flight in some if flight["DEP_DELAY"] is not None]
    on_time = sum(1 for delay in late if delay < 15)
    cancelled = sum(flight["CANCELLED"] for flight in some)
    return {
        "average_delay": sum(late) / len(late) if late else None,
        "flights": len(some),
        "arrived": len(late),
        "cancelled": cancelled,
        "no_arrival": len(some) - cancelled - len(late),
        "on_time_share_of_arrived": on_time / len(late) if late else None,
        "on_time_share_of_scheduled": on_time / len(some) if some else None,
        "average_departure_delay": sum(left) / len(left) if left else None,
    }


ROUTES = ("filter_transactions", "average_delays", "flight_counter")


def questions_about(flight: Json, days: Json | None = None) -> dict[str, Json]:
    """The parameters of the three questions about a flight. days: by default its own alone."""
    days = days or dict.fromkeys(("INITIAL_DATE", "FINAL_DATE"), flight["FL_DATE"])
    names = (("OP_CARRIER_FL_NUM", "FL_DATE"), ("OP_CARRIER_AIRLINE_ID",), CITY_NAMES)
    questions = [{name: flight[name] for name in of_question} for of_question in names]
    return dict(zip(ROUTES, (questions[0], questions[1] | days, questions[2] | days), strict=True))


def asked_for(flights: Iterable[Json], asked: Json) -> list[Json]:
    """The flights that a question is about, by its parameters."""
    values = dict(asked)
    first, last = values.pop("INITIAL_DATE", ""), values.pop("FINAL_DATE", "9999")
    some = (flight for flight in flights if first <= flight["FL_DATE"] <= last)
    return [flight for flight in some if values.items() <= flight.items()]


def answer_of(route: str, flights: Iterable[Json], asked: Json) -> Json:
    """What a plain loop over flights answers to a question, without `as_of` and `query`."""
    some = asked_for(flights, asked)
    if route == "average_delays":
        return averages_of(some)
    legs = {"flights": list(map(with_status, some))} if route == "filter_transactions" else {}
    return {"count": len(some), **legs}


def good(response: TestResponse, status: int = 200) -> Json:
    """The body of a good answer."""
    assert response.status_code == status, response.get_data(as_text=True)
    assert response.headers["Content-Type"] == "application/json"
    assert int(response.headers["Content-Length"]) == len(response.get_data())
    body: Json = response.get_json()
    return body


def problem(response: TestResponse, status: int, **members: Any) -> Json:
    """The body of a problem: of the one shape that all have, and with these members."""
    assert response.status_code == status, response.get_data(as_text=True)
    assert response.headers["Content-Type"] == "application/problem+json"
    body: Json = response.get_json(force=True)
    assert body["type"] == "about:blank"
    assert body["title"] == HTTP_STATUS_CODES[status]
    assert body["status"] == status
    assert isinstance(body["detail"], str)
    assert body["detail"].strip()
    for name, value in members.items():
        assert body.get(name, "absent") == value, (name, body)
    return body
